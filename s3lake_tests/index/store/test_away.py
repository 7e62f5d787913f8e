"""A store that is away: how long it is waited for, and that tidying up neither waits again nor hides the reason."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection

import pytest

from s3lake.demo.process import free_ports
from s3lake.errors import StoreUnavailableError
from s3lake.index.commit.commit_files import abort_uploads
from s3lake.index.commit.documents import File
from s3lake.index.store.s3_connection import S3Connection
from s3lake.index.store.s3_store import S3Store
from s3lake.index.store.trial import try_store
from s3lake_tests.index.store.scripted import Scripted, ok
from s3lake_tests.kit.cost import PATIENCE_S
from s3lake_tests.kit.http import DROPPED


def store(url: str, **settings: float | str) -> S3Store:
    connection = S3Connection(url, "us-east-1", access_key_id="k", secret_access_key="s", **settings)  # type: ignore[arg-type]
    return S3Store(connection, "lake")


@pytest.fixture
def hole(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Takes every connection, and never answers anything; a body is sent without a second's wait for leave to do so."""
    monkeypatch.setattr("botocore.awsrequest.AWSConnection._send_output", HTTPConnection._send_output)
    with closing(socket.create_server(("127.0.0.1", 0), backlog=64)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


def test_by_default_a_silent_store_ends_within_two_minutes_and_a_refusing_one_not_before_a_minute() -> None:
    connection = S3Connection()
    longest_pause = 20
    assert 2 * connection.read_timeout_s >= connection.patience_s  # two silences, and it is over
    assert connection.patience_s + connection.read_timeout_s - 15 <= 120
    assert connection.patience_s - longest_pause >= 60


def test_a_silent_store_is_given_up_when_patience_ends(hole: str) -> None:
    silent = store(hole, read_timeout_s=0.1, patience_s=0.2, max_attempts=50)
    with pytest.raises(
        StoreUnavailableError, match=r"^GetObject s3://lake/k .* failed [123] times in \d+ s, .*ReadTimeout"
    ):
        silent.get("k")


def test_a_silent_store_is_given_up_before_a_pause_that_patience_does_not_reach(
    hole: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("random.uniform", lambda _, longest: longest)
    monkeypatch.setattr("tenacity.nap.time.sleep", pauses.append)
    with pytest.raises(StoreUnavailableError, match="failed 1 times"):
        store(hole, read_timeout_s=0.05, patience_s=15, backoff_ms=16_000, max_attempts=3).get("k")
    assert pauses == []


def test_a_token_service_that_is_silent_is_waited_for_no_longer_than_a_store(hole: str) -> None:
    role = {"role_arn": "arn:aws:iam::1:role/a", "role_endpoint_url": hole}
    with pytest.raises(StoreUnavailableError, match=r"failed 1 times in \d+ s, at last with ReadTimeoutError"):
        store(hole, read_timeout_s=0.05, patience_s=0, **role).get("k")


def test_a_port_that_refuses_is_asked_until_it_answers_however_often_that_is() -> None:
    (port,) = free_ports(1)
    asked: list[bytes] = []
    away = store(f"http://127.0.0.1:{port}", patience_s=PATIENCE_S, max_attempts=2, backoff_ms=5)

    def late() -> None:
        while away.requests["GetObject"] <= 2:
            time.sleep(0.01)
        with socket.create_server(("127.0.0.1", port)) as server, server.accept()[0] as taken:
            asked.append(taken.recv(65536))
            taken.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    thread = threading.Thread(target=late)
    thread.start()
    assert away.get("k") is None
    thread.join()
    assert len(asked) == 1
    assert away.requests["GetObject"] > 2


def test_a_port_that_refuses_for_good_is_given_up_when_patience_ends_and_attempts_are_used_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (port,) = free_ports(1)
    away, pauses = store(f"http://127.0.0.1:{port}", patience_s=0.2, max_attempts=2), list[float]()
    monkeypatch.setattr("tenacity.nap.time.sleep", pauses.append)
    with pytest.raises(StoreUnavailableError, match="EndpointConnectionError"):
        away.get("k")
    assert max(pauses[1:], default=0) < 0.2
    often = store(f"http://127.0.0.1:{port}", patience_s=0, max_attempts=3)
    with pytest.raises(StoreUnavailableError, match="failed 3 times"):
        often.get("k")
    with pytest.raises(StoreUnavailableError, match="failed 1 times"):
        store(f"http://127.0.0.1:{port}", patience_s=60, max_attempts=1).get("k")


def test_dropping_uploads_waits_only_once_for_an_unavailable_store(hole: str) -> None:
    silent = store(hole, read_timeout_s=0.1, patience_s=60, max_attempts=1)
    with pytest.raises(StoreUnavailableError, match="UploadPart"):
        silent.upload_part("k", "u", 1, b"x")
    with pytest.raises(StoreUnavailableError, match=r"AbortMultipartUpload .* was not tried: the store did not answer"):
        silent.abort_upload("k", "u")
    # Another store object of the same place, as the driver and each task make them.
    other = S3Store(silent.connection, "lake")
    abort_uploads(other, [File(f"k{n}", "u", (), 0, 0, 0, 1, 1) for n in range(50)])
    assert (silent.requests, other.requests) == ({"UploadPart": 1}, {})


def test_a_store_that_answers_again_is_available() -> None:
    with Scripted(ok()).running() as server:
        back = server.store(max_attempts=1, patience_s=60)
        server.script = [DROPPED, ok()]
        with pytest.raises(StoreUnavailableError, match="GetObject"):
            back.get("k")
        assert back.get("k") is not None
        back.abort_upload("k", "u")
        assert server.asked[-1].startswith("DELETE /lake/k?uploadId=u")


def test_the_probe_of_a_silent_store_names_the_request_that_failed_first_and_asks_no_other(hole: str) -> None:
    silent = store(hole, read_timeout_s=0.1, patience_s=0.1, max_attempts=2)
    with pytest.raises(StoreUnavailableError, match=r"^PutObject s3://lake/index/\.probe/"):
        try_store(silent, "index", "data/")
    assert silent.requests == {"PutObject": 1}
