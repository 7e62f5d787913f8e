"""What every request of a connection carries beside its own, and what tells that a store has heeded it."""

import base64
from dataclasses import replace
from typing import Any

import pytest

from s3lake.store.client import client
from s3lake.store.connection import S3Connection
from s3lake.store.parameters import ignored, of_receipt, receipt
from s3lake_tests.store.scripted import Scripted, ok

MINE = base64.b64encode(b"0123456789abcdef0123456789abcdef").decode()
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
    made = client(replace(server.store().connection, **settings))
    for operation, parameters in ASKED.items():
        getattr(made, operation)(Bucket="lake", Key="a", **parameters)
    return dict(zip(ASKED, server.headers, strict=True))


def test_each_request_carries_what_its_operation_knows_and_nothing_else(server: Scripted) -> None:
    carried = headers(
        server,
        created_with=(("ServerSideEncryption", "AES256"), ("StorageClass", "STANDARD_IA")),
        customer_key=MINE,
        checksum="SHA256",
    )
    values = {
        SSE: "AES256",
        "x-amz-storage-class": "STANDARD_IA",
        f"{SSE}-customer-key": MINE,
        f"{SSE}-customer-algorithm": "AES256",
        "x-amz-copy-source-server-side-encryption-customer-key": MINE,
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


def test_a_connection_that_asks_for_nothing_adds_nothing(server: Scripted) -> None:
    plain = {"x-amz-date", "x-amz-content-sha256", "x-amz-security-token", "x-amz-copy-source"}
    assert {name for sent in headers(server).values() for name in sent if name.startswith("x-amz-")} == plain


def test_what_a_request_says_itself_counts(server: Scripted) -> None:
    made = client(replace(server.store().connection, created_with=(("ACL", "private"),)))
    made.put_object(Bucket="lake", Key="a", ACL="public-read")
    assert server.headers[0]["x-amz-acl"] == "public-read"


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
        ({"customer_key": MINE}, {"SSECustomerAlgorithm": "AES256"}, []),
        ({"customer_key": MINE}, {}, ["s3.objects.customer_key"]),
        (COOL, {"StorageClass": "STANDARD_IA"}, []),
        (COOL, {}, ["s3.objects.storage_class"]),
        (USUAL, {}, []),
        (ENCRYPTED, {"ServerSideEncryption": "AES256", "StorageClass": "EXPRESS_ONEZONE"}, []),
        ({"checksum": "SHA1"}, {"ChecksumSHA1": "x"}, []),
        ({"checksum": "SHA1"}, {"ChecksumCRC32": "x"}, ["s3.objects.checksum"]),
        (
            {**ENCRYPTED, "customer_key": MINE, "checksum": "SHA1"},
            {},
            ["s3.objects.encryption", "s3.objects.customer_key", "s3.objects.checksum"],
        ),
    ],
)
def test_what_the_head_of_an_object_does_not_show_was_ignored(
    settings: dict[str, Any], head: dict[str, str], lost: list[str]
) -> None:
    assert ignored(S3Connection(**settings), head) == lost


@pytest.mark.parametrize(
    ("checksum", "part", "text", "named"),
    [
        (None, {"ETag": '"e"'}, '"e"', {}),
        (None, {"ETag": '"e"', "ChecksumCRC32": "x=="}, '"e"', {}),
        ("SHA1", {"ETag": '"e"', "ChecksumSHA1": "x=="}, '"e" ChecksumSHA1=x==', {"ChecksumSHA1": "x=="}),
        ("SHA1", {"ETag": '"e"', "ChecksumCRC32": "x=="}, '"e"', {}),
    ],
)
def test_a_part_is_named_by_its_etag_and_the_checksum_that_was_asked_for(
    checksum: str | None, part: dict[str, str], text: str, named: dict[str, str]
) -> None:
    assert receipt(part, checksum) == text
    assert of_receipt(7, text) == {"PartNumber": 7, "ETag": '"e"', **named}
