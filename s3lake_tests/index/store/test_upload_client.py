"""Requests of uploads without boto3: the same requests, results and errors, and boto3 itself in every other case."""

import base64
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from io import BytesIO
from ipaddress import ip_address
from itertools import count
from pathlib import Path
from ssl import PROTOCOL_TLS_SERVER, SSLContext
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given, settings
from hypothesis import strategies as st
from urllib3 import HTTPResponse

from s3lake.demo.process import free_ports
from s3lake.errors import StoreDeniedError
from s3lake.index.store import client
from s3lake.index.store.s3_connection import S3Connection
from s3lake.index.store.s3_store import S3Store
from s3lake.index.store.upload_client import UploadClient
from s3lake_tests.conftest import short_id
from s3lake_tests.index.store.scripted import Scripted, answering, ok, status
from s3lake_tests.kit.http import DROPPED, Request, Response, serve

PLACE = S3Connection("http://127.0.0.1:9000", "eu-north-1", access_key_id="AKIA", secret_access_key="hush")
KEY = base64.b64encode(bytes(32)).decode()
STARTED = ok(b"<InitiateMultipartUploadResult><UploadId>u-1</UploadId></InitiateMultipartUploadResult>")
COMPLETED = ok(b"<CompleteMultipartUploadResult><ETag>e</ETag></CompleteMultipartUploadResult>")
OF_BOTO3 = {"content-length", "expect", "amz-sdk-invocation-id", "amz-sdk-request", "accept-encoding"}
"""Headers that do not change what is asked."""

NUMBERS = count()
"""Each connection has a client of its own, and boto3 makes its first requests."""

Asked = tuple[str, str, bytes, dict[str, str]]
"""Method, address, body and headers."""


def to_text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def to_asked(method: str, address: str, body: Any, headers: Mapping[str, Any]) -> Asked:
    content = body.getvalue() if isinstance(body, BytesIO) else body or b""
    shown = {name.lower(): to_text(value) for name, value in headers.items() if name.lower() not in OF_BOTO3}
    shown.pop("host", None)  # boto3 leaves it to its connection, and signs it
    return method, address, content, shown


class Both:
    """boto3 and an `UploadClient` of one connection. Nothing is sent: all that is asked is kept and succeeds."""

    def __init__(self, **settings: Any) -> None:
        connection = replace(PLACE, **settings)
        self.by_boto3: list[Asked] = []
        self.by_us: list[Asked] = []
        self.boto3 = client.make_client(connection)
        self.credentials = client.find_access_keys(connection)
        self.uploads = UploadClient(self.boto3, self, self.connect)
        self.boto3.meta.events.register("before-send.s3", self.answer_boto3)

    def get_frozen_credentials(self) -> Any:
        return self.credentials

    def connect(self, origin: str) -> "Both":
        self.origin = origin
        return self

    def answer_boto3(self, request: Any, **_: Any) -> AWSResponse:
        self.by_boto3.append(to_asked(request.method, request.url, request.body, request.headers))
        answer = self.answer(request.url)
        return AWSResponse(request.url, answer.status, answer.headers, answer)

    def urlopen(self, method: str, target: str, *, body: bytes, headers: Mapping[str, str], **_: Any) -> HTTPResponse:
        self.by_us.append(to_asked(method, self.origin + target, body, headers))
        return self.answer(target)

    def answer(self, address: str) -> HTTPResponse:
        response = STARTED if address.endswith("?uploads") else COMPLETED
        return HTTPResponse(BytesIO(response.body), {"ETag": '"e"'}, 200, preload_content=False)

    def ask_both(self, method: str, **parameters: Any) -> tuple[Asked, Asked]:
        """Ask for the same in one second, so that the signatures can be compared."""
        while True:
            getattr(self.uploads, method)(**parameters)
            getattr(self.boto3, method)(**parameters)
            ours, theirs = self.by_us[-1], self.by_boto3[-1]
            if ours[3]["x-amz-date"] == theirs[3]["x-amz-date"]:
                return ours, theirs


METHODS: dict[str, dict[str, Any]] = {
    "create_multipart_upload": {"Metadata": {"s3lake-commit": "c1"}},
    "upload_part": {"UploadId": "u", "PartNumber": 1, "Body": b"part"},
    "complete_multipart_upload": {
        "UploadId": "u",
        "MultipartUpload": {"Parts": [{"PartNumber": 1, "ETag": '"e"'}]},
        "IfNoneMatch": "*",
    },
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"session_token": "token"},
        {"endpoint_url": "https://127.0.0.1:9000"},
        {"endpoint_url": "https://store.example:443"},
        {"endpoint_url": "http://[::1]:9000"},
        {"endpoint_url": "http://store.example", "path_style": False},
        {"endpoint_url": None},
        {"endpoint_url": None, "path_style": False},
        {"endpoint_url": None, "path_style": False, "accelerate": True},
        {"created_with": (("ServerSideEncryption", "AES256"), ("StorageClass", "STANDARD_IA"))},
        {"created_with": (("ServerSideEncryption", "aws:kms"), ("SSEKMSKeyId", "alias/lake"))},
        {"created_with": (("ACL", "bucket-owner-full-control"), ("Tagging", "team=data+lake&b=c%2Fd"))},
        {"customer_key": KEY},
    ],
    ids=short_id,
)
def test_a_request_is_the_one_that_boto3_would_send(settings: dict[str, Any], method: str) -> None:
    both = Both(**settings)
    getattr(both.uploads, method)(Bucket="lake", Key="first", **METHODS[method])
    assert (len(both.by_boto3), len(both.by_us)) == (1, 0)
    ours, theirs = both.ask_both(method, Bucket="lake", Key="raw/a b+c=d/é~%.json", **METHODS[method])
    assert ours == theirs


ALWAYS = Both(session_token="token")
TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20)
PLAIN = st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=20)


@settings(max_examples=200, deadline=None)
@given(key=TEXTS, metadata=st.dictionaries(st.from_regex("[A-Za-z0-9-]{1,9}", fullmatch=True), PLAIN, max_size=3))
def test_any_key_and_metadata_are_written_as_by_boto3(key: str, metadata: dict[str, str]) -> None:
    ALWAYS.uploads.create_multipart_upload(Bucket="lake", Key="first", Metadata={})
    if len({name.lower() for name in metadata}) < len(metadata):
        return
    ours, theirs = ALWAYS.ask_both("create_multipart_upload", Bucket="lake", Key=key, Metadata=metadata)
    assert ours == theirs


@settings(max_examples=200, deadline=None)
@given(
    key=TEXTS,
    upload=TEXTS,
    number=st.integers(1, 10_000),
    body=st.binary(max_size=100),
    etags=st.lists(PLAIN, min_size=1),
)
def test_any_part_and_list_of_parts_are_written_as_by_boto3(
    key: str, upload: str, number: int, body: bytes, etags: list[str]
) -> None:
    place = {"Bucket": "lake", "Key": key, "UploadId": upload}
    parts = [{"PartNumber": at, "ETag": etag, "ChecksumSHA1": etag} for at, etag in enumerate(etags, 1)]
    for method, asked in (
        ("upload_part", {"PartNumber": number, "Body": body}),
        ("complete_multipart_upload", {"MultipartUpload": {"Parts": parts}}),
    ):
        getattr(ALWAYS.uploads, method)(Bucket="lake", Key="first", **METHODS[method])
        ours, theirs = ALWAYS.ask_both(method, **place, **asked)
        assert ours == theirs


# Who makes a request


def is_of_boto3(request: Request) -> bool:
    return "amz-sdk-request" in request.headers


def upload(store: S3Store, server: Scripted, key: str = "k", body: bytes = b"part") -> str:
    """Upload an object of one part and complete it."""
    server.script = [STARTED, ok(), COMPLETED]
    id = store.create_upload(key, {"s3lake-commit": "c1"})
    return store.complete_upload(key, id, [store.upload_part(key, id, 1, body)])


def list_makers(server: Scripted) -> list[bool]:
    """Return for each request whether boto3 made it, and forget the requests."""
    makers = [is_of_boto3(request) for request in server.requests]
    server.requests.clear()
    return makers


def test_boto3_makes_the_first_requests_to_a_bucket_and_no_more(server: Scripted) -> None:
    store, other = server.store(region="makers"), server.store(region="makers")
    other.bucket = "other"
    for asked, of_boto3 in ((store, True), (store, False), (other, True), (other, False), (store, False)):
        assert upload(asked, server) == "completed"
        assert list_makers(server) == [of_boto3] * 3


@pytest.mark.parametrize(
    ("settings", "of_boto3"),
    [
        ({"customer_key": KEY, "created_with": (("StorageClass", "STANDARD_IA"),)}, [False, False, False]),
        ({"checksum": "SHA256"}, [False, True, False]),
        ({"unsigned": True}, [True, True, True]),
    ],
)
def test_boto3_goes_on_if_a_request_has_a_header_that_depends_on_it(
    server: Scripted, settings: dict[str, Any], of_boto3: list[bool]
) -> None:
    store = server.store(**settings)
    upload(store, server)
    list_makers(server)
    upload(store, server)
    assert list_makers(server) == of_boto3


def test_boto3_makes_all_requests_through_a_proxy(server: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", server.url)
    for proxy in (server.url, None):
        store = server.store(endpoint_url="http://store.invalid:9000", proxy=proxy)
        upload(store, server)
        upload(store, server)
        assert list_makers(server) == [True] * 6


def test_boto3_does_not_make_requests_to_an_address_that_needs_no_proxy(
    server: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.invalid:3128")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    store = server.store(region="no-proxy")
    upload(store, server)
    list_makers(server)
    upload(store, server)
    assert list_makers(server) == [False] * 3


def test_boto3_makes_all_requests_if_the_aws_configuration_asks_for_keep_alive(
    server: Scripted, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "config").write_text("[default]\ntcp_keepalive = true\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    store = server.store(region="keep-alive")
    upload(store, server)
    upload(store, server)
    assert list_makers(server) == [True] * 6


def test_boto3_asks_whether_a_large_part_may_come(server: Scripted) -> None:
    store = server.store(region="large")
    for body, of_boto3 in ((b"x", True), (bytes(2**21), False), (bytes(2**21 + 1), True)):
        upload(store, server, body=body)
        assert is_of_boto3(server.requests[1]) == of_boto3
        assert server.bodies[1] == body
        assert server.headers[1].get("expect") == ("100-continue" if of_boto3 else None)
        server.requests.clear()


# What comes of an answer


@pytest.fixture
def direct(server: Scripted) -> S3Store:
    """A store whose uploads boto3 does not make."""
    store = server.store(region="direct")
    upload(store, server)
    server.requests.clear()
    store.requests.clear()
    return store


ASKS: dict[str, Callable[[S3Store], object]] = {
    "CreateMultipartUpload": lambda store: store.create_upload("k", {"s3lake-commit": "c1"}),
    "UploadPart": lambda store: store.upload_part("k", "u", 1, b"part"),
    "CompleteMultipartUpload": lambda store: store.complete_upload("k", "u", ['"e"']),
}


def find_outcome(store: S3Store, server: Scripted, answers: list[Response], operation: str) -> tuple[object, ...]:
    """Return what the store returned or raised, after how many requests."""
    server.script = answers
    server.requests.clear()
    try:
        outcome: object = ASKS[operation](store)
    except Exception as error:
        outcome = type(error), re.sub(r"in \d+ s", "in S s", str(error))
    return outcome, len(server.requests), store.requests[operation], store.retries


@pytest.mark.parametrize("operation", ASKS)
@pytest.mark.parametrize(
    "answers",
    [
        [status(503, "SlowDown"), STARTED],
        [status(503)],
        [status(500, "InternalError", "We encountered an internal error.")],
        [answering(502, b"<html>Bad Gateway</html>")],
        [status(429, "TooManyRequests")],
        [DROPPED],
        [DROPPED, COMPLETED],
        [status(403, "AccessDenied", "Access Denied.")],
        [status(403)],
        [status(400, "ExpiredToken")],
        [status(400, "InvalidRequest", "Wrong encryption key")],
        [status(404, "NoSuchBucket")],
        [status(404, "NoSuchUpload")],
        [status(404, "NoSuchKey")],
        [status(412, "PreconditionFailed")],
        [status(409, "ConditionalRequestConflict")],
        [status(304)],
        [status(400, "InvalidPart")],
        [status(501, "NotImplemented")],
        [status(200, "InternalError", "We encountered an internal error.")],
        [status(200, "PreconditionFailed")],
        [status(200, "NoSuchUpload")],
        [Response(200)],
        [ok(b"<Other><UploadId>u-2</UploadId></Other>")],
        [answering(204, b"")],
        [answering(500, STARTED.body)],
        [answering(500, COMPLETED.body)],
    ],
    ids=lambda answers: short_id(f"{answers[0].status} {answers[0].body.decode().rpartition('?>')[2]}"),
)
def test_an_answer_means_what_it_means_to_boto3(
    server: Scripted, direct: S3Store, answers: list[Response], operation: str
) -> None:
    first = server.store(region=f"first-{next(NUMBERS)}")
    expected = find_outcome(first, server, list(answers), operation)
    assert is_of_boto3(server.requests[0])
    assert find_outcome(direct, server, list(answers), operation) == expected
    assert not any(map(is_of_boto3, server.requests))


@pytest.mark.parametrize(("operation", "answer"), list(zip(ASKS, (STARTED, ok(), COMPLETED), strict=True)))
def test_a_request_is_made_again_if_its_answer_breaks_off(
    server: Scripted, direct: S3Store, operation: str, answer: Response
) -> None:
    result, requests, *_ = find_outcome(direct, server, [replace(answer, cut=True), answer], operation)
    assert (result in ("u-1", '"e"', "completed"), requests) == (True, 2)


def test_an_unavailable_server_means_what_it_means_to_boto3() -> None:
    with Scripted(ok()).running() as server:
        direct, first = server.store(region="direct"), server.store(region="first")
        upload(direct, server)
        first.head("k")
    for operation in ASKS:
        outcomes = [find_outcome(store, server, [ok()], operation) for store in (direct, first)]
        assert outcomes[0] == (outcomes[1][0], 0, 1 + outcomes[1][2], outcomes[1][3])
        assert "EndpointConnectionError" in str(outcomes[0])


def test_a_server_that_does_not_answer_means_what_it_means_to_boto3() -> None:
    with Scripted(ok()).running() as server:
        limits = {"read_timeout_s": 0.2, "max_attempts": 1}
        direct, first = server.store(region="direct", **limits), server.store(region="first", **limits)
        upload(direct, server)
        for operation in ASKS:
            outcomes = [find_outcome(store, server, [Response(wait_s=1)], operation)[0] for store in (direct, first)]
            assert outcomes[0] == outcomes[1]
            assert "ReadTimeoutError" in str(outcomes[0])


def test_a_redirected_request_goes_where_boto3_finds_the_bucket(server: Scripted, direct: S3Store) -> None:
    redirected = answering(301, status(301, "PermanentRedirect").body, {"x-amz-bucket-region": "eu-west-9"})
    for of_boto3 in (True, False):
        server.script = [redirected, STARTED] if of_boto3 else [STARTED]
        assert direct.create_upload("k", {}) == "u-1"
        assert is_of_boto3(server.requests[-1]) == of_boto3
        assert "/eu-west-9/s3/aws4_request" in server.headers[-1]["authorization"]


# Who signs, and who is trusted


def test_renewed_keys_of_a_role_sign_the_next_request(server: Scripted) -> None:
    soon = (datetime.now(timezone.utc) + timedelta(minutes=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    keys = iter(range(100))

    def answer(request: Request) -> Response:
        server.requests.append(request)
        if b"Action=AssumeRole" not in request.body:
            return STARTED
        given = f"<AccessKeyId>ASIA{next(keys)}</AccessKeyId><SecretAccessKey>s</SecretAccessKey>"
        given += f"<SessionToken>t</SessionToken><Expiration>{soon}</Expiration>"
        result = f"<AssumeRoleResult><Credentials>{given}</Credentials></AssumeRoleResult>"
        return ok(f"<AssumeRoleResponse>{result}</AssumeRoleResponse>".encode())

    with serve(answer) as address:
        store = server.store(endpoint_url=address, role_arn="arn:aws:iam::1:role/r", role_endpoint_url=address)
        signers = []
        for _ in range(3):
            store.create_upload("k", {})
            signers.append(server.headers[-1]["authorization"].partition("Credential=")[2].partition("/")[0])
    assert len(set(signers)) == 3


@contextmanager
def serving_tls(folder: Path, port: int) -> Iterator[Scripted]:
    """Serve with a new certificate, which is in `ca.pem` of the folder."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    now = datetime.now(timezone.utc)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now, now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=True)
        .sign(key, hashes.SHA256())
        .public_bytes(serialization.Encoding.PEM)
    )
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "ca.pem").write_bytes(certificate)
    (folder / "server.pem").write_bytes(pem + certificate)
    tls = SSLContext(PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(folder / "server.pem")
    server = Scripted(ok())
    with serve(server.answer, tls, port) as server.url:
        yield server


@pytest.mark.filterwarnings("ignore:Unverified HTTPS request")
def test_a_server_is_trusted_by_its_certificates_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (port,) = free_ports(1)
    other = tmp_path / "other"
    other.mkdir()
    with serving_tls(tmp_path, port) as server:
        monkeypatch.setenv("AWS_CA_BUNDLE", str(tmp_path / "ca.pem"))
        by_file = server.store(ca_file=str(tmp_path / "ca.pem"))
        stores = {"file": by_file, "variable": server.store(), "unverified": server.store(verify=False)}
        for store in stores.values():
            for of_boto3 in (True, False):
                assert upload(store, server) == "completed"
                assert list_makers(server) == [of_boto3] * 3
    with serving_tls(other, port) as server:
        assert upload(stores["unverified"], server) == "completed"
        server.requests.clear()
        for name in ("file", "variable"):
            with pytest.raises(StoreDeniedError, match=r"CERTIFICATE_VERIFY_FAILED.*s3\.ca_file"):
                upload(stores[name], server)
        assert server.requests == []
