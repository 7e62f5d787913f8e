"""Parameters that a connection adds to its requests: encryption, tags, checksums."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from s3lake.store.connection import S3Connection

_CREATE = ("PutObject", "CreateMultipartUpload")
_UPLOAD = (*_CREATE, "UploadPart")


def register(client: Any, connection: S3Connection) -> None:
    """Let `client` add the parameters of `connection` to the requests whose operation has them."""

    def add_parameters(params: Mapping[str, Any], model: Any, **_: Any) -> dict[str, Any]:
        names = model.input_shape.members
        extra = _list_parameters(connection, model.name)
        return {**{name: value for name, value in extra.items() if name in names}, **params}

    client.meta.events.register("provide-client-params.s3", add_parameters)


def _list_parameters(connection: S3Connection, operation: str) -> dict[str, Any]:
    extra: dict[str, Any] = dict(connection.created_with) if operation in _CREATE else {}
    if connection.customer_key is not None:
        for prefix in ("SSECustomer", "CopySourceSSECustomer"):
            extra |= {f"{prefix}Algorithm": "AES256", f"{prefix}Key": base64.b64decode(connection.customer_key)}
    if connection.checksum is not None:
        extra |= {"ChecksumAlgorithm": connection.checksum} if operation in _UPLOAD else {"ChecksumMode": "ENABLED"}
    return extra


def find_ignored_settings(connection: S3Connection, head: Mapping[str, Any]) -> list[str]:
    """Return the settings that the store ignored, by the head of an object that was created with them."""
    created = dict(connection.created_with)
    expected = {
        "encryption": ("ServerSideEncryption", created.get("ServerSideEncryption")),
        "customer_key": ("SSECustomerAlgorithm", "AES256" if connection.customer_key else None),
        "storage_class": ("StorageClass", created.get("StorageClass")),
    }
    usual = {"StorageClass": "STANDARD", **head}  # which S3 leaves out
    lost = [setting for setting, (name, value) in expected.items() if value is not None and usual.get(name) != value]
    if connection.checksum is not None and f"Checksum{connection.checksum}" not in head:
        lost.append("checksum")
    return [f"s3.objects.{setting}" for setting in lost]


def format_part(part: Mapping[str, Any], checksum: str | None) -> str:
    """Return a part's ETag and, if it was requested, its checksum, which Complete has to name too."""
    name = f"Checksum{checksum}"
    return f"{part['ETag']} {name}={part[name]}" if name in part else str(part["ETag"])


def parse_part(number: int, text: str) -> dict[str, Any]:
    """Return a part as CompleteMultipartUpload names it."""
    etag, _, checksum = text.partition(" ")
    name, _, value = checksum.partition("=")
    return {"PartNumber": number, "ETag": etag} | ({name: value} if name else {})
