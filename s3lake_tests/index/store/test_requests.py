"""What each request of a store contains, and what it makes of the answer."""

import base64
import logging
import uuid
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, urlsplit
from xml.etree import ElementTree

import pytest
from botocore import exceptions

from s3lake.errors import StoreDeniedError
from s3lake.index.store import Document, Head, PendingUpload
from s3lake.index.store.client import make_client
from s3lake.index.store.memory import MemoryStore
from s3lake.index.store.s3_connection import S3Connection
from s3lake.index.store.s3_errors import NoResponseError, NotReachedError, RetryableError, to_store_error
from s3lake.index.store.s3_store import find_ignored_settings
from s3lake_tests.index.store.scripted import Scripted, answering, ok, status
from s3lake_tests.kit.http import Response

MINE = {"X-Amz-Meta-S3lake-Commit": "c1"}


@pytest.mark.parametrize(("span", "ranged"), [(None, None), ((3, 5), "bytes=3-4"), ((0, 1), "bytes=0-0")])
def test_an_object_is_its_bytes_its_etag_and_its_metadata(
    server: Scripted, span: tuple[int, int] | None, ranged: str | None
) -> None:
    server.script = [answering(200, b"34", MINE)]
    assert server.store().get("raw/k", span) == Document(b"34", '"e"', {"s3lake-commit": "c1"})
    assert server.asked == ["GET /lake/raw/k"]
    assert server.headers[0].get("range") == ranged


def test_a_head_is_the_etag_the_size_and_the_metadata(server: Scripted) -> None:
    server.script = [answering(200, b"four", MINE)]
    assert server.store().head("raw/k") == Head('"e"', 4, {"s3lake-commit": "c1"})
    assert server.asked == ["HEAD /lake/raw/k"]


def page(**parts: str) -> Response:
    return ok("".join(["<Page>", *(f"<{name}>{text}</{name}>" for name, text in parts.items()), "</Page>"]).encode())


def queried(server: Scripted, *names: str) -> list[tuple[str | None, ...]]:
    """What each request contained under these names."""
    queries = [dict(parse_qsl(urlsplit(asked).query)) for asked in server.asked]
    return [tuple(map(query.get, names)) for query in queries]


def test_a_listing_goes_on_where_a_page_ends(server: Scripted) -> None:
    server.script = [
        page(IsTruncated="true", Contents="<Key>raw/a</Key>", NextContinuationToken="t2"),
        page(IsTruncated="true", NextContinuationToken="t3"),
        page(IsTruncated="false", Contents="<Key>raw/b</Key>"),
    ]
    assert list(server.store().list("raw/")) == ["raw/a", "raw/b"]
    assert queried(server, "prefix", "continuation-token") == [("raw/", None), ("raw/", "t2"), ("raw/", "t3")]


def test_the_names_below_a_prefix_are_listed_page_by_page_up_to_the_next_slash(server: Scripted) -> None:
    store = server.store()
    server.script = [
        page(IsTruncated="true", CommonPrefixes="<Prefix>raw/a/</Prefix>", NextContinuationToken="t2"),
        page(IsTruncated="true", NextContinuationToken="t3"),
        page(IsTruncated="false", CommonPrefixes="<Prefix>raw/bc/</Prefix>"),
    ]
    assert list(store.list_steps("raw/")) == ["a", "bc"]
    assert queried(server, "prefix", "delimiter", "continuation-token") == [
        ("raw/", "/", None),
        ("raw/", "/", "t2"),
        ("raw/", "/", "t3"),
    ]
    assert store.requests == {"ListObjectsV2": 3}


def test_uploads_under_way_are_listed_page_by_page_with_the_moment_they_began(server: Scripted) -> None:
    one = "<Key>raw/{}</Key><UploadId>u-{}</UploadId><Initiated>2026-11-22T10:14:48.125Z</Initiated>"
    server.script = [
        page(IsTruncated="true", Upload=one.format("a", 1), NextKeyMarker="raw/a", NextUploadIdMarker="u-1"),
        page(IsTruncated="true", NextKeyMarker="raw/b"),
        page(IsTruncated="false", Upload=one.format("c", 2)),
    ]
    begun = list(server.store().list_uploads("raw/"))
    assert begun == [PendingUpload("raw/a", "u-1", 1_795_342_488_125), PendingUpload("raw/c", "u-2", 1_795_342_488_125)]
    assert queried(server, "prefix", "key-marker", "upload-id-marker") == [
        ("raw/", None, None),
        ("raw/", "raw/a", None),
        ("raw/", "raw/b", None),
    ]


def test_an_object_is_written_with_its_metadata_and_without_a_condition_by_default(server: Scripted) -> None:
    assert server.store().put("raw/k", b"body", metadata={"s3lake-commit": "c1"}) == '"e"'
    assert (server.asked, server.bodies) == (["PUT /lake/raw/k"], [b"body"])
    assert server.headers[0]["x-amz-meta-s3lake-commit"] == "c1"
    assert "if-none-match" not in server.headers[0]


def test_an_upload_has_its_metadata_from_the_beginning(server: Scripted) -> None:
    server.script = [page(UploadId="u-1")]
    assert server.store().create_upload("raw/k", {"s3lake-commit": "c1"}) == "u-1"
    assert server.asked == ["POST /lake/raw/k?uploads"]
    assert server.headers[0]["x-amz-meta-s3lake-commit"] == "c1"


def test_a_part_is_known_by_its_etag_and_the_checksum_that_was_asked_for(server: Scripted) -> None:
    server.script = [answering(200, b"", {"x-amz-checksum-sha1": "x=="})]
    assert server.store(checksum="SHA1").upload_part("k", "u", 7, b"part") == '"e" ChecksumSHA1=x=='
    assert server.store().upload_part("k", "u", 7, b"part") == '"e"'
    assert server.asked == ["PUT /lake/k?uploadId=u&partNumber=7"] * 2
    assert server.bodies == [b"part", b"part"]


def texts(document: bytes, *names: str) -> list[tuple[str, ...]]:
    """What an XML document contains under these names, side by side."""
    root = ElementTree.fromstring(document)
    message = ([part.text or "" for part in root.iter() if part.tag.endswith(f"}}{name}")] for name in names)
    return list(zip(*message, strict=True))


@pytest.mark.parametrize(("replaces", "condition"), [(False, "*"), (True, None)])
def test_an_upload_is_completed_of_its_parts_in_their_order(
    server: Scripted, replaces: bool, condition: str | None
) -> None:
    server.script = [page(ETag="e")]
    assert server.store().complete_upload("k", "u", ["one", "two ChecksumSHA1=x=="], replace=replaces) == "completed"
    assert texts(server.bodies[0], "PartNumber", "ETag") == [("1", "one"), ("2", "two")]
    assert texts(server.bodies[0], "ChecksumSHA1") == [("x==",)]
    assert server.headers[0].get("if-none-match") == condition


def test_a_store_in_memory_has_the_tags_of_its_objects() -> None:
    store = MemoryStore()
    store.tag_offsets("raw/k", 7, 12, 5)
    assert store.tagged == {"raw/k": (7, 12, 5)}


@pytest.mark.parametrize(("wanted", "times"), [(None, 0), ("tried", 1), ("required", 1)])
def test_an_object_is_tagged_with_its_records_next_to_its_own_tags_where_that_is_asked_for(
    server: Scripted, wanted: str | None, times: int
) -> None:
    server.store(offset_tags=wanted, tags=(("team", "data"),)).tag_offsets("raw/k", 7, 12, 5)
    assert server.asked == ["PUT /lake/raw/k?tagging"] * times
    tags = [("team", "data"), ("startOffset", "7"), ("endOffset", "12"), ("recordCount", "5")]
    assert [texts(content, "Key", "Value") for content in server.bodies] == [tags] * times


def test_a_bucket_that_refuses_tags_is_logged_once_if_tags_are_only_tried(
    server: Scripted, caplog: pytest.LogCaptureFixture
) -> None:
    server.script = [status(403, "AccessDenied")]
    store, other = server.store(offset_tags="tried"), server.store(offset_tags="tried")
    store.bucket, other.bucket = f"lake-{uuid.uuid4()}", f"other-{uuid.uuid4()}"  # no test has met them before
    for tagged in (store, store, other, other):
        tagged.tag_offsets("k", 7, 12, 5)
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert [f"s3://{store.bucket}/k" in text for text in warnings] == [True, False]
    with pytest.raises(StoreDeniedError, match="PutObjectTagging s3://lake/k at "):
        server.store(offset_tags="required").tag_offsets("k", 7, 12, 5)


# What every request of a connection carries next to its own parameters, and what shows that a store has applied it


KEY = base64.b64encode(b"0123456789abcdef0123456789abcdef").decode()
SSE = "x-amz-server-side-encryption"
CREATE = {"put_object", "create_multipart_upload"}
READ = {"get_object", "head_object"}
ASKED: dict[str, dict[str, Any]] = {
    "put_object": {},
    "create_multipart_upload": {},
    "upload_part": {"UploadId": "u", "PartNumber": 1},
    "complete_multipart_upload": {"UploadId": "u"},
    "abort_multipart_upload": {"UploadId": "u"},
    "get_object": {},
    "head_object": {},
    "delete_object": {},
    "copy_object": {"CopySource": "lake/b"},
}


def headers(server: Scripted, **settings: Any) -> dict[str, dict[str, str]]:
    """What each operation is asked with."""
    server.script = [ok(b"<Answer><ETag>e</ETag></Answer>")]
    made = make_client(replace(server.store().connection, **settings))
    for operation, parameters in ASKED.items():
        getattr(made, operation)(Bucket="lake", Key="a", **parameters)
    return dict(zip(ASKED, server.headers, strict=True))


def test_each_request_carries_what_its_operation_knows_and_nothing_else(server: Scripted) -> None:
    carried = headers(
        server,
        created_with=(("ServerSideEncryption", "AES256"), ("StorageClass", "STANDARD_IA")),
        customer_key=KEY,
        checksum="SHA256",
    )
    values = {
        SSE: "AES256",
        "x-amz-storage-class": "STANDARD_IA",
        f"{SSE}-customer-key": KEY,
        f"{SSE}-customer-algorithm": "AES256",
        "x-amz-copy-source-server-side-encryption-customer-key": KEY,
        "x-amz-copy-source-server-side-encryption-customer-algorithm": "AES256",
        "x-amz-checksum-mode": "ENABLED",
    }
    assert {name: {operation for operation in carried if name in carried[operation]} for name in values} == {
        SSE: CREATE,
        "x-amz-storage-class": CREATE,
        f"{SSE}-customer-key": {*CREATE, *READ, "upload_part", "complete_multipart_upload", "copy_object"},
        f"{SSE}-customer-algorithm": {*CREATE, *READ, "upload_part", "complete_multipart_upload", "copy_object"},
        "x-amz-copy-source-server-side-encryption-customer-key": {"copy_object"},
        "x-amz-copy-source-server-side-encryption-customer-algorithm": {"copy_object"},
        "x-amz-checksum-mode": READ,
    }
    for sent in carried.values():
        assert values | sent == sent | values
    for operation in ("put_object", "upload_part"):
        assert "x-amz-checksum-sha256" in carried[operation]
    assert carried["create_multipart_upload"]["x-amz-checksum-algorithm"] == "SHA256"


ENCRYPTED = {"created_with": (("ServerSideEncryption", "AES256"),)}
COOL = {"created_with": (("StorageClass", "STANDARD_IA"),)}
USUAL = {"created_with": (("StorageClass", "STANDARD"),)}


@pytest.mark.parametrize(
    ("settings", "head", "lost"),
    [
        ({}, {}, []),
        (ENCRYPTED, {"ServerSideEncryption": "AES256"}, []),
        (ENCRYPTED, {}, ["s3.objects.encryption"]),
        (ENCRYPTED, {"ServerSideEncryption": "aws:kms"}, ["s3.objects.encryption"]),
        ({"customer_key": KEY}, {"SSECustomerAlgorithm": "AES256"}, []),
        ({"customer_key": KEY}, {}, ["s3.objects.customer_key"]),
        (COOL, {"StorageClass": "STANDARD_IA"}, []),
        (COOL, {}, ["s3.objects.storage_class"]),
        (USUAL, {}, []),
        (ENCRYPTED, {"ServerSideEncryption": "AES256", "StorageClass": "EXPRESS_ONEZONE"}, []),
        ({"checksum": "SHA1"}, {"ChecksumSHA1": "x"}, []),
        ({"checksum": "SHA1"}, {"ChecksumCRC32": "x"}, ["s3.objects.checksum"]),
        (
            {**ENCRYPTED, "customer_key": KEY, "checksum": "SHA1"},
            {},
            ["s3.objects.encryption", "s3.objects.customer_key", "s3.objects.checksum"],
        ),
    ],
)
def test_settings_that_a_head_does_not_show_were_ignored(
    settings: dict[str, Any], head: dict[str, str], lost: list[str]
) -> None:
    assert find_ignored_settings(S3Connection(**settings), head) == lost


def test_the_settings_that_were_ignored_are_found_by_a_head(server: Scripted) -> None:
    assert server.store(**ENCRYPTED).find_ignored("raw/k") == ["s3.objects.encryption"]
    assert server.asked == ["HEAD /lake/raw/k"]


# The meaning of an exception of boto3


URL = "https://s3.example"


def meaning(error: Exception) -> Exception | None:
    return to_store_error(error, ["hunter2"], "GetObject s3://lake/a", "GetObject", frozenset())


@pytest.mark.parametrize(
    ("error", "means"),
    [
        (exceptions.EndpointConnectionError(endpoint_url=URL), NotReachedError),
        (exceptions.ConnectTimeoutError(endpoint_url=URL), NotReachedError),
        (exceptions.ReadTimeoutError(endpoint_url=URL), NoResponseError),
        (exceptions.ConnectionClosedError(endpoint_url=URL), RetryableError),
        (exceptions.SSLError(endpoint_url=URL, error="EOF occurred in violation of protocol"), RetryableError),
        (exceptions.SSLError(endpoint_url=URL, error="[SSL: CERTIFICATE_VERIFY_FAILED]"), StoreDeniedError),
        (exceptions.SSLError(endpoint_url=URL, error="[SSL: WRONG_VERSION_NUMBER]"), StoreDeniedError),
        (exceptions.ProxyConnectionError(proxy_url="http://CERTIFICATE_VERIFY_FAILED"), RetryableError),
        (exceptions.MissingDependencyException(msg="install awscrt"), StoreDeniedError),
        (exceptions.NoCredentialsError(), StoreDeniedError),
        (ValueError("Invalid endpoint"), StoreDeniedError),
    ],
)
def test_each_exception_of_boto3_has_its_meaning(error: Exception, means: type[Exception]):
    assert type(meaning(error)) is means


def test_a_quoted_error_has_no_secrets_and_no_last_full_stop():
    error = exceptions.HTTPClientError(error="hunter2 has no route to PHX.")

    assert str(meaning(error)) == (
        "HTTPClientError: An HTTP Client raised an unhandled exception: ******** has no route to PHX"
    )
    assert str(meaning(exceptions.IncompleteReadError(actual_bytes=1, expected_bytes=2))) == (
        "IncompleteReadError: 1 read, but total bytes expected is 2"
    )
