"""What clients of S3 are made with, and what their requests carry."""

import base64
import os
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from s3lake.errors import ConfigurationError
from s3lake.index.store import client
from s3lake.index.store.s3_connection import S3Connection
from s3lake_tests.index.store.scripted import TOKEN, Scripted

PLACE = S3Connection("http://store:9000", "eu-north-1", access_key_id="a", secret_access_key="b")


def test_a_client_has_the_address_and_the_limits_of_its_connection() -> None:
    patient = replace(PLACE, connect_timeout_s=1.5, read_timeout_s=2.5, max_pool_connections=7)
    made = client.make_client(patient, 4)
    assert (made.meta.endpoint_url, made.meta.region_name) == ("http://store:9000", "eu-north-1")
    manners = made.meta.config
    assert (manners.connect_timeout, manners.read_timeout, manners.max_pool_connections) == (1.5, 2.5, 7)
    assert manners.retries["total_max_attempts"] == 4
    assert manners.proxies is None  # which lets the environment name one
    assert manners.request_checksum_calculation == manners.response_checksum_validation == "when_required"


@pytest.mark.parametrize(
    ("settings", "address"),
    [
        ({}, "http://store:9000/lake/a"),
        ({"path_style": False}, "http://lake.store:9000/a"),
        ({"endpoint_url": None}, "https://s3.eu-north-1.amazonaws.com/lake/a"),
        ({"endpoint_url": None, "path_style": False}, "https://lake.s3.eu-north-1.amazonaws.com/a"),
        ({"endpoint_url": None, "use_ssl": False}, "http://s3.eu-north-1.amazonaws.com/lake/a"),
        ({"endpoint_url": None, "path_style": False, "accelerate": True}, "https://lake.s3-accelerate.amazonaws.com/a"),
    ],
)
def test_the_address_of_an_object_depends_on_the_connection(settings: dict[str, Any], address: str) -> None:
    class Answered(Exception): ...

    def answer(request: Any, **_: Any) -> None:
        raise Answered(request.url)

    made = client.make_client(replace(PLACE, **settings))
    made.meta.events.register("before-send.s3", answer)
    with pytest.raises(Answered, match=f"^{re.escape(address)}$"):
        made.head_object(Bucket="lake", Key="a")


@pytest.mark.parametrize(
    ("settings", "checks"),
    [
        ({}, True),
        ({"verify": False}, False),
        ({"ca_file": __file__}, __file__),
        ({"ca_file": __file__, "verify": False}, __file__),
    ],
)
def test_a_certificate_is_checked_as_the_connection_sets(
    settings: dict[str, Any], checks: bool | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REQUESTS_CA_BUNDLE", raising=False)
    assert client.make_client(replace(PLACE, **settings))._endpoint.http_session._verify == checks


def test_missing_certificates_are_refused_before_any_request(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"s3\.ca_file .*/ca\.pem: no such file where this runs"):
        client.make_client(replace(PLACE, ca_file=str(tmp_path / "ca.pem")))


def test_requests_have_the_user_agent_of_s3lake(server: Scripted) -> None:
    server.store().get("k")
    assert server.headers[0]["user-agent"].startswith("s3lake ")


def test_requests_have_the_token_of_their_session(server: Scripted) -> None:
    server.store().get("k")
    assert server.headers[0]["x-amz-security-token"] == TOKEN


def test_requests_go_through_the_proxy(server: Scripted) -> None:
    proxy = server.url.replace("//", "//me:p%40ss%2Fword@")
    server.store(endpoint_url="http://store.invalid:9000", proxy=proxy).put("k", b"")
    assert server.asked == ["PUT http://store.invalid:9000/lake/k"]
    assert server.headers[0]["proxy-authorization"] == f"Basic {base64.b64encode(b'me:p@ss/word').decode()}"


def test_uploads_carry_no_checksum_that_other_stores_refuse(server: Scripted) -> None:
    server.store().put("k", b"body")
    assert not [name for name in server.headers[0] if "checksum" in name or name == "x-amz-trailer"]
    assert server.headers[0]["content-length"] == "4"


def test_threads_share_one_client(server: Scripted) -> None:
    store = server.store(region="one-client")
    with ThreadPoolExecutor(8) as pool:
        clients = set(pool.map(lambda _: id(client.get_s3_client(store.connection)), range(8)))
    assert len(clients) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_process_makes_a_client_of_its_own(server: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    store = server.store()
    store.put("parent", b"")
    parent, parents_client = os.getpid(), client.get_s3_client(store.connection)
    held, release, make_client = threading.Event(), threading.Event(), client.make_client

    def make_slowly(*how: Any, **more: Any) -> Any:
        if os.getpid() == parent:
            held.set()
            release.wait()
        return make_client(*how, **more)

    monkeypatch.setattr(client, "make_client", make_slowly)
    thread = threading.Thread(target=client.get_s3_client, args=(replace(store.connection, region="other"),))
    thread.start()
    held.wait()
    child = os.fork()
    if child == 0:
        try:
            store.put("child", b"")  # would wait for ever for the lock that a thread of the parent holds
            os._exit(2 if client.get_s3_client(store.connection) is parents_client else 0)
        except BaseException:
            os._exit(1)
    try:
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        release.set()
        thread.join()
    store.put("parent again", b"")
    assert server.asked == ["PUT /lake/parent", "PUT /lake/child", "PUT /lake/parent%20again"]


def test_a_client_of_another_service_has_the_role_the_proxy_and_the_certificates_of_s3(tmp_path: Path) -> None:
    ca = tmp_path / "ca.pem"
    ca.write_text("")
    place = replace(PLACE, role_arn="arn:aws:iam::1:role/lake", proxy="http://proxy:3128", ca_file=str(ca))
    glue = client.make_client(place, service="glue")
    assert glue.meta.endpoint_url == "https://glue.eu-north-1.amazonaws.com"
    assert glue._request_signer._credentials.method == "assume-role"
    assert glue.meta.config.proxies == {"http": "http://proxy:3128", "https": "http://proxy:3128"}
    assert glue._endpoint.http_session._verify == str(ca)
