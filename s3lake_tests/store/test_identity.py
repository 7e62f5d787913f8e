"""Who a connection is to S3: keys, one place of them, a role, a web identity; and what its requests go through."""

import base64
import json
import logging
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from s3lake.demo.s3 import EmbeddedS3
from s3lake.errors import StoreDeniedError
from s3lake.sink import S3
from s3lake.store.connection import S3Connection
from s3lake.store.s3 import S3Store
from s3lake_tests.proxy import Answer, ProxiedS3
from s3lake_tests.store.conftest import BUCKET
from s3lake_tests.store.watching import Watching

pytestmark = pytest.mark.s3
ROLE = "arn:aws:iam::123456789012:role/lake"
KEYS = {"access_key_id": "AKIAOWN", "secret_access_key": "hush-hush"}


@pytest.fixture(autouse=True)
def _nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No credentials of this machine."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_ROLE_ARN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))


@pytest.fixture
def watched(moto: EmbeddedS3) -> Iterator[Watching]:
    with Watching(moto.endpoint_url) as proxy:
        yield proxy


def store_of(watched: Watching, **s3: Any) -> S3Store:
    return S3Store(S3Connection.of(S3.model_validate({"endpoint_url": watched.url, **s3})), BUCKET)


def signed_by(watched: Watching) -> str:
    """The access key of the last request."""
    authorization = watched.asked[-1].headers.get("authorization", "")
    return authorization.partition("Credential=")[2].partition("/")[0]


def assumed(watched: Watching) -> dict[str, str]:
    """What the one request to the token service said."""
    [asked] = [request for request in watched.asked if b"Action=AssumeRole" in request.body]
    return {name: value for name, [value] in parse_qs(asked.body.decode()).items()}


def test_a_role_is_assumed_with_what_it_asks_for_and_its_keys_sign(
    watched: Watching, caplog: pytest.LogCaptureFixture
) -> None:
    role = {"arn": ROLE, "external_id": "ours-alone", "session_name": "night", "duration": "15m"}
    store = store_of(watched, credentials=KEYS, role={**role, "endpoint_url": watched.url})
    with caplog.at_level(logging.DEBUG, "s3lake"):
        store.head("a")
    asked = assumed(watched)
    assert (asked["RoleArn"], asked["ExternalId"], asked["RoleSessionName"]) == (ROLE, "ours-alone", "night")
    assert asked["DurationSeconds"] == "900"
    assert signed_by(watched).startswith("ASIA")
    assert "x-amz-security-token" in watched.asked[-1].headers
    for text in (caplog.text, repr(store), repr(store.connection)):
        assert "ours-alone" not in text


def test_a_web_identity_assumes_the_role_without_keys(watched: Watching, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("header.payload.signature")
    role = {"arn": ROLE, "token_file": str(tmp_path / "token"), "endpoint_url": watched.url}
    store_of(watched, role=role).head("a")
    asked = assumed(watched)
    assert (asked["Action"], asked["WebIdentityToken"]) == ("AssumeRoleWithWebIdentity", "header.payload.signature")
    assert signed_by(watched).startswith("ASIA")


def test_a_web_identity_without_its_file_is_told(watched: Watching, tmp_path: Path) -> None:
    role = {"arn": ROLE, "token_file": str(tmp_path / "none"), "endpoint_url": watched.url}
    with pytest.raises(StoreDeniedError, match=r"s3\.role\.token_file .*none cannot be read: No such file"):
        store_of(watched, role=role).head("a")


@pytest.mark.parametrize(
    ("source", "access"), [("default", "AKIAVARIABLE"), ("environment", "AKIAVARIABLE"), ("profile", "AKIAFILE")]
)
def test_credentials_are_looked_for_in_the_one_place_that_is_named(
    watched: Watching, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, access: str
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAVARIABLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush")
    (tmp_path / "credentials").write_text("[default]\naws_access_key_id = AKIAFILE\naws_secret_access_key = hush\n")
    store_of(watched, credentials=source).head("a")
    assert signed_by(watched) == access


def test_a_place_without_credentials_is_told_though_another_one_has_some(
    watched: Watching, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAVARIABLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush")
    for source in ("profile", "instance", "container", "web_identity"):
        with pytest.raises(StoreDeniedError, match=r"Unable to locate credentials\. To go on: correct s3\.credentials"):
            store_of(watched, credentials=source).head("a")


def test_a_profile_is_taken_by_its_name(watched: Watching, tmp_path: Path) -> None:
    (tmp_path / "credentials").write_text("[lake]\naws_access_key_id = AKIALAKE\naws_secret_access_key = hush\n")
    store_of(watched, profile="lake").head("a")
    assert signed_by(watched) == "AKIALAKE"


def test_the_containers_credentials_are_asked_for(watched: Watching, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {
        "AccessKeyId": "ASIACONTAINER",
        "SecretAccessKey": "hush",
        "Token": "t",
        "Expiration": "2099-01-01T00:00:00Z",
    }

    class Agent(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(keys).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    with serving(Agent) as address:
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"http://{address}/keys")
        store_of(watched, credentials="container").head("a")
    assert signed_by(watched) == "ASIACONTAINER"


def test_nobody_in_particular_signs_nothing(watched: Watching) -> None:
    store_of(watched, credentials="anonymous").head("a")
    assert "authorization" not in watched.asked[-1].headers


class serving:
    """A server of a handler, while the block runs: its address."""

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    def __enter__(self) -> str:
        self._thread.start()
        return f"127.0.0.1:{self._server.server_port}"

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def test_data_and_index_go_through_the_proxy_with_its_user(moto: EmbeddedS3, prefix: str) -> None:
    passed: list[tuple[str, str, str | None]] = []

    class Forward(ProxiedS3):
        def passed_on(self, request: BaseHTTPRequestHandler, body: bytes) -> tuple[Answer, bytes]:
            address = urlsplit(request.path)
            place, login = f"{address.scheme}://{address.netloc}", request.headers["Proxy-Authorization"]
            passed.append((str(request.command), place, login))
            request.path = request.path.partition(address.netloc)[2]
            return super().passed_on(request, body)

    with Forward(moto.endpoint_url) as forward:
        proxy = {"url": forward.url, "user": "me", "password": "p@ss/word"}
        s3 = S3.model_validate({"endpoint_url": moto.endpoint_url, "credentials": KEYS, "proxy": proxy})
        store = S3Store(S3Connection.of(s3), BUCKET)
        store.put(f"{prefix}index.json", b"{}")
        upload = store.create_upload(f"{prefix}data", {})
        store.complete_upload(f"{prefix}data", upload, [store.upload_part(f"{prefix}data", upload, 1, b"x")])
        assert store.head(f"{prefix}data") is not None
    login = f"Basic {base64.b64encode(b'me:p@ss/word').decode()}"
    assert [command for command, _, _ in passed] == ["PUT", "POST", "PUT", "POST", "HEAD"]
    assert {(upstream, user) for _, upstream, user in passed} == {(moto.endpoint_url, login)}
