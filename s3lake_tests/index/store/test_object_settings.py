"""What a configuration asks of S3 next to keeping bytes: servers that do it, and servers that ignore it."""

import base64
from dataclasses import replace
from typing import Any

import pytest

from s3lake.config.model import S3
from s3lake.demo.embedded_s3 import EmbeddedS3
from s3lake.errors import ConfigurationError, StoreDeniedError
from s3lake.index.store.client import make_client
from s3lake.index.store.s3_connection import S3Connection
from s3lake.index.store.s3_store import S3Store
from s3lake.index.store.trial import try_store
from s3lake.lake.table.iceberg import iceberg_catalog
from s3lake_tests.index.store.conftest import BUCKET
from s3lake_tests.kit.s3 import connection_to

MIB = 2**20
MINE = base64.b64encode(b"0123456789abcdef0123456789abcdef").decode()


def store_with(server: EmbeddedS3, **settings: Any) -> S3Store:
    """A store as a configuration's `s3` describes it."""
    message = S3Connection.from_settings(S3.model_validate({"endpoint_url": server.endpoint_url, **settings}))
    keys = connection_to(server)
    return S3Store(
        replace(message, access_key_id=keys.access_key_id, secret_access_key=keys.secret_access_key, backoff_ms=1),
        BUCKET,
    )


def test_objects_are_created_with_the_configured_settings(moto: EmbeddedS3, prefix: str) -> None:
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


def test_a_store_that_ignores_a_customer_key_is_refused_before_landing(moto: EmbeddedS3, prefix: str) -> None:
    store = store_with(moto, objects={"customer_key": MINE})
    with pytest.raises(StoreDeniedError, match=r"ignored s3\.objects\.customer_key\. To go on: take out what"):
        try_store(store, f"{prefix}.indexes", f"{prefix}raw/")


@pytest.mark.parametrize("objects", [{"encryption": "aws:kms"}, {"storage_class": "STANDARD_IA"}, {"tags": {"a": "b"}}])
def test_a_store_that_applies_a_setting_passes(moto: EmbeddedS3, prefix: str, objects: dict[str, Any]) -> None:
    try_store(store_with(moto, objects=objects), f"{prefix}.indexes", f"{prefix}raw/")


# Checksums


@pytest.mark.slow("versitygw, a Go program")
@pytest.mark.parametrize("algorithm", ["CRC32", "SHA1", "SHA256"])
def test_an_upload_of_parts_is_checked_and_its_checksum_is_kept(
    versitygw: EmbeddedS3, prefix: str, algorithm: str
) -> None:
    store = store_with(versitygw, objects={"checksum": algorithm})
    try_store(store, f"{prefix}.indexes", f"{prefix}raw/")
    store.put(f"{prefix}index.json", b"{}")
    upload = store.create_upload(f"{prefix}data", {})
    parts = [store.upload_part(f"{prefix}data", upload, number, b"x" * 5 * MIB) for number in (1, 2)]
    assert all(f" Checksum{algorithm}=" in part for part in parts)
    assert store.complete_upload(f"{prefix}data", upload, parts) == "completed"
    some = store.get(f"{prefix}data", (5 * MIB, 5 * MIB + 1))
    assert some is not None
    assert some.body == b"x"
    plain = make_client(connection_to(versitygw))
    for key in (f"{prefix}index.json", f"{prefix}data"):
        assert f"Checksum{algorithm}" in plain.head_object(Bucket=BUCKET, Key=key, ChecksumMode="ENABLED")


@pytest.mark.slow("versitygw, a Go program")
def test_the_package_of_an_unavailable_checksum_is_named(
    versitygw: EmbeddedS3, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("botocore.httpchecksum.HAS_CRT", False)
    with pytest.raises(StoreDeniedError, match=r"pip install botocore\[crt\].*correct s3\.objects\.checksum"):
        store_with(versitygw, objects={"checksum": "CRC64NVME"}).put(f"{prefix}a", b"one")


def test_a_table_with_a_ca_file_is_refused() -> None:
    connection = S3Connection.from_settings(S3(endpoint_url="https://127.0.0.1:1", ca_file="ca.pem"))
    with pytest.raises(ConfigurationError, match=r"pyiceberg .* knows no s3\.ca_file"):
        iceberg_catalog.open_catalog({}, "lake", connection, {})
