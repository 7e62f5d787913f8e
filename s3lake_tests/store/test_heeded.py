"""What a configuration asks of S3 beside keeping bytes: servers that heed it, and that do not."""

import base64
import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from s3lake.demo.s3 import EmbeddedS3
from s3lake.errors import ConfigurationError, StoreDeniedError
from s3lake.sink import S3
from s3lake.store import COMMIT
from s3lake.store.client import make_client
from s3lake.store.connection import S3Connection
from s3lake.store.s3 import S3Store
from s3lake.store.trial import try_store
from s3lake.table.iceberg import catalog
from s3lake_tests.store.conftest import BUCKET, connection_to
from s3lake_tests.store.watching import Watching

MIB = 2**20
MINE = base64.b64encode(b"0123456789abcdef0123456789abcdef").decode()
OTHER = base64.b64encode(b"fedcba9876543210fedcba9876543210").decode()


@pytest.fixture
def watched(request: pytest.FixtureRequest, moto: EmbeddedS3) -> Iterator[Watching]:
    with Watching(moto.endpoint_url, strict=getattr(request, "param", False)) as proxy:
        yield proxy


def store_with(server: EmbeddedS3, proxy: Watching | None = None, **settings: Any) -> S3Store:
    """A store as a configuration's `s3` describes it, reached through the proxy where one is given."""
    said = S3Connection.of(S3.model_validate({"endpoint_url": proxy.url if proxy else server.endpoint_url, **settings}))
    keys = connection_to(server)
    return S3Store(
        replace(said, access_key_id=keys.access_key_id, secret_access_key=keys.secret_access_key, backoff_ms=1), BUCKET
    )


def use(store: S3Store, prefix: str) -> None:
    """Everything that landing, its index and reading back ask."""
    store.put(f"{prefix}index.json", b"{}", if_absent=True, metadata={COMMIT: "c"})
    upload = store.create_upload(f"{prefix}data", {COMMIT: "c"})
    parts = [store.upload_part(f"{prefix}data", upload, 1, b"x" * 5 * MIB)]
    parts.append(store.upload_part(f"{prefix}data", upload, 2, b"yz"))
    assert store.complete_upload(f"{prefix}data", upload, parts) == "completed"
    whole, some = store.get(f"{prefix}data"), store.get(f"{prefix}data", (5 * MIB, 5 * MIB + 1))
    assert whole is not None
    assert some is not None
    assert (len(whole.body), some.body, some.metadata[COMMIT]) == (5 * MIB + 2, b"y", "c")
    head = store.head(f"{prefix}data")
    assert head is not None
    assert head.size == 5 * MIB + 2
    document = store.get(f"{prefix}index.json")
    assert document is not None
    assert document.body == b"{}"
    assert list(store.list(prefix)) == [f"{prefix}data", f"{prefix}index.json"]
    store.abort_upload(f"{prefix}other", store.create_upload(f"{prefix}other", {}))
    list(store.list_uploads(prefix))
    store.delete(f"{prefix}data")


def headers(proxy: Watching, operation: str, name: str) -> set[str | None]:
    asked = proxy.of(operation)
    assert asked, f"no {operation} was asked"
    return {request.headers.get(name) for request in asked}


CREATE = ("PutObject", "CreateMultipartUpload")
READ = ("GetObject", "HeadObject", "ListObjectsV2", "ListMultipartUploads")
AFTER = ("UploadPart", "CompleteMultipartUpload", "AbortMultipartUpload", "DeleteObject")
SSE = "x-amz-server-side-encryption"


@pytest.mark.parametrize(
    ("objects", "sent"),
    [
        ({"encryption": "AES256"}, {SSE: "AES256"}),
        (
            {"encryption": "aws:kms", "kms_key_id": "alias/lake"},
            {SSE: "aws:kms", f"{SSE}-aws-kms-key-id": "alias/lake"},
        ),
        ({"acl": "bucket-owner-full-control"}, {"x-amz-acl": "bucket-owner-full-control"}),
        ({"tags": {"team": "data", "cost centre": "7/b"}}, {"x-amz-tagging": "team=data&cost+centre=7%2Fb"}),
        ({"storage_class": "STANDARD_IA"}, {"x-amz-storage-class": "STANDARD_IA"}),
    ],
    ids=["SSE-S3", "SSE-KMS", "ACL", "tags", "storage class"],
)
def test_data_and_index_are_created_with_it_and_nothing_else_is_asked_with_it(
    moto: EmbeddedS3, watched: Watching, prefix: str, objects: dict[str, Any], sent: dict[str, str]
) -> None:
    use(store_with(moto, watched, objects=objects), prefix)
    for name, value in sent.items():
        assert {operation: headers(watched, operation, name) for operation in CREATE} == {
            operation: {value} for operation in CREATE
        }
        for operation in (*READ, *AFTER):
            assert headers(watched, operation, name) == {None}


def test_the_store_has_done_it(moto: EmbeddedS3, prefix: str) -> None:
    objects = {
        "encryption": "aws:kms",
        "kms_key_id": "key-1",
        "tags": {"team": "data"},
        "storage_class": "GLACIER_IR",
        "acl": "public-read",
    }
    store = store_with(moto, objects=objects)
    store.put(f"{prefix}index.json", b"{}")
    upload = store.create_upload(f"{prefix}data", {})
    store.complete_upload(f"{prefix}data", upload, [store.upload_part(f"{prefix}data", upload, 1, b"x")])
    plain = make_client(connection_to(moto))
    for key in (f"{prefix}index.json", f"{prefix}data"):
        at = {"Bucket": BUCKET, "Key": key}
        head = plain.head_object(**at)
        assert (head["ServerSideEncryption"], head["SSEKMSKeyId"]) == ("aws:kms", "key-1")
        assert head["StorageClass"] == "GLACIER_IR"
        assert plain.get_object_tagging(**at)["TagSet"] == [{"Key": "team", "Value": "data"}]
        grants = plain.get_object_acl(**at)["Grants"]
        assert any(grant["Grantee"].get("URI", "").endswith("/AllUsers") for grant in grants)


# Tags that say which records an object holds


# Keys of one's own


@pytest.mark.parametrize("watched", [True], indirect=True)
def test_with_a_key_of_ones_own_everything_is_written_and_read_back(
    moto: EmbeddedS3, watched: Watching, prefix: str
) -> None:
    store = store_with(moto, watched, objects={"customer_key": MINE})
    use(store, prefix)
    try_store(store, f"{prefix}.indexes", f"{prefix}raw/")
    for operation in (*CREATE, "UploadPart", "CompleteMultipartUpload", "GetObject", "HeadObject"):
        assert headers(watched, operation, f"{SSE}-customer-key") == {MINE}, operation
        assert headers(watched, operation, f"{SSE}-customer-algorithm") == {"AES256"}, operation
    for operation in ("ListObjectsV2", "DeleteObject", "AbortMultipartUpload"):
        assert headers(watched, operation, f"{SSE}-customer-key") == {None}, operation


@pytest.mark.parametrize("watched", [True], indirect=True)
@pytest.mark.parametrize("key", [None, OTHER])
def test_without_the_key_or_with_another_one_the_remedy_is_told_and_no_key(
    moto: EmbeddedS3, watched: Watching, prefix: str, key: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    store_with(moto, watched, objects={"customer_key": MINE}).put(f"{prefix}a", b"one")
    stranger = store_with(moto, watched, objects={"customer_key": key})
    for ask in (stranger.get, stranger.head):
        with caplog.at_level(logging.DEBUG, "s3lake"), pytest.raises(StoreDeniedError) as refused:
            ask(f"{prefix}a")
        assert "s3.objects.customer_key" in str(refused.value)
        for text in (str(refused.value), repr(stranger), repr(stranger.connection), caplog.text):
            assert MINE not in text
            assert OTHER not in text


def test_a_store_that_reads_over_a_key_of_ones_own_is_told_before_anything_is_landed(
    moto: EmbeddedS3, prefix: str
) -> None:
    store = store_with(moto, objects={"customer_key": MINE})
    with pytest.raises(
        StoreDeniedError, match=r"did not heed s3\.objects\.customer_key\. To go on: take it out, or use"
    ):
        try_store(store, f"{prefix}.indexes", f"{prefix}raw/")


@pytest.mark.slow("versitygw, a Go program")
@pytest.mark.parametrize(
    ("objects", "lost"), [({"encryption": "AES256"}, "encryption"), ({"storage_class": "STANDARD_IA"}, "storage_class")]
)
def test_a_store_that_reads_over_a_setting_is_told(
    versitygw: EmbeddedS3, prefix: str, objects: dict[str, Any], lost: str
) -> None:
    store = store_with(versitygw, objects=objects)
    with pytest.raises(StoreDeniedError, match=rf"s3\.objects\.{lost}|s3\.objects asks"):
        try_store(store, f"{prefix}.indexes", f"{prefix}raw/")


@pytest.mark.parametrize("objects", [{"encryption": "aws:kms"}, {"storage_class": "STANDARD_IA"}, {"tags": {"a": "b"}}])
def test_a_store_that_does_it_is_trusted(moto: EmbeddedS3, prefix: str, objects: dict[str, Any]) -> None:
    try_store(store_with(moto, objects=objects), f"{prefix}.indexes", f"{prefix}raw/")


# Checksums


@pytest.mark.slow("versitygw, a Go program")
@pytest.mark.parametrize("algorithm", ["CRC32", "SHA1", "SHA256"])
def test_an_upload_of_parts_is_checked_and_its_checksum_is_kept(
    versitygw: EmbeddedS3, prefix: str, algorithm: str
) -> None:
    store = store_with(versitygw, objects={"checksum": algorithm})
    use(store, f"{prefix}used/")
    try_store(store, f"{prefix}.indexes", f"{prefix}raw/")
    store.put(f"{prefix}index.json", b"{}")
    upload = store.create_upload(f"{prefix}data", {})
    parts = [store.upload_part(f"{prefix}data", upload, number, b"x" * 5 * MIB) for number in (1, 2)]
    assert all(f" Checksum{algorithm}=" in part for part in parts)
    assert store.complete_upload(f"{prefix}data", upload, parts) == "completed"
    plain = make_client(connection_to(versitygw))
    for key in (f"{prefix}index.json", f"{prefix}data"):
        assert f"Checksum{algorithm}" in plain.head_object(Bucket=BUCKET, Key=key, ChecksumMode="ENABLED")


@pytest.mark.slow("versitygw, a Go program")
def test_a_checksum_that_this_machine_cannot_reckon_is_told_with_the_package(
    versitygw: EmbeddedS3, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("botocore.httpchecksum.HAS_CRT", False)
    with pytest.raises(StoreDeniedError, match=r"pip install botocore\[crt\].*correct s3\.objects\.checksum"):
        store_with(versitygw, objects={"checksum": "CRC64NVME"}).put(f"{prefix}a", b"one")


def test_pyiceberg_knows_no_certificates() -> None:
    connection = S3Connection.of(S3(endpoint_url="https://127.0.0.1:1", ca_file="ca.pem"))
    with pytest.raises(ConfigurationError, match=r"pyiceberg .* knows no s3\.ca_file"):
        catalog.open_catalog({}, "lake", connection)
