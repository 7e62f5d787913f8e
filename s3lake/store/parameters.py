"""What every request of a connection carries beside its own: encryption, tags, checksums, who pays."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from s3lake.store.connection import S3Connection

_CREATE = ("PutObject", "CreateMultipartUpload")
_UPLOAD = (*_CREATE, "UploadPart")


def register(client: Any, connection: S3Connection) -> None:
    """Let `client` add the parameters of `connection` to its requests, each to the operations that know it."""

    def added(params: Mapping[str, Any], model: Any, **_: Any) -> dict[str, Any]:
        names = model.input_shape.members
        beside = _of(connection, model.name)
        return {**{name: value for name, value in beside.items() if name in names}, **params}

    client.meta.events.register("provide-client-params.s3", added)


def _of(connection: S3Connection, operation: str) -> dict[str, Any]:
    beside: dict[str, Any] = dict(connection.created_with) if operation in _CREATE else {}
    if connection.customer_key is not None:
        # A copy is asked for the key twice: of what is read, and of what is written.
        for prefix in ("SSECustomer", "CopySourceSSECustomer"):
            beside |= {f"{prefix}Algorithm": "AES256", f"{prefix}Key": base64.b64decode(connection.customer_key)}
    if connection.checksum is not None:
        beside |= {"ChecksumAlgorithm": connection.checksum} if operation in _UPLOAD else {"ChecksumMode": "ENABLED"}
    return beside


def ignored(connection: S3Connection, head: Mapping[str, Any]) -> list[str]:
    """The settings that the store took and did not heed, seen at the head of an object that was created with them."""
    created = dict(connection.created_with)
    wanted = {
        "encryption": ("ServerSideEncryption", created.get("ServerSideEncryption")),
        "customer_key": ("SSECustomerAlgorithm", "AES256" if connection.customer_key else None),
        "storage_class": ("StorageClass", created.get("StorageClass")),
    }
    usual = {"StorageClass": "STANDARD", **head}  # of which S3 says nothing
    lost = [setting for setting, (name, value) in wanted.items() if value is not None and usual.get(name) != value]
    if connection.checksum is not None and f"Checksum{connection.checksum}" not in head:
        lost.append("checksum")
    return [f"s3.objects.{setting}" for setting in lost]


def receipt(part: Mapping[str, Any], checksum: str | None) -> str:
    """What completing an upload has to say of a part: its ETag, and the checksum that was asked for.

    Nobody asked for one that a store gives by itself, and of an upload without any Complete may name none.
    """
    name = f"Checksum{checksum}"
    return f"{part['ETag']} {name}={part[name]}" if name in part else str(part["ETag"])


def of_receipt(number: int, text: str) -> dict[str, Any]:
    """A part as CompleteMultipartUpload names it."""
    etag, _, checksum = text.partition(" ")
    name, _, value = checksum.partition("=")
    return {"PartNumber": number, "ETag": etag} | ({name: value} if name else {})
