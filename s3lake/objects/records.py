"""Records of text files as Arrow batches: each as it was in Kafka, where its converter allows it."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from s3lake.objects import parts
from s3lake.objects.shape import BYTES, TEXT, Shape

_Members = dict[str, msgspec.Raw]
_any = msgspec.json.Decoder().decode


def batch(shape: Shape, texts: Sequence[bytes], schema: pa.Schema) -> pa.RecordBatch:
    """Records in the columns of `schema`, as `columns.of` gives them."""
    envelope = shape.envelope
    if envelope is None or envelope.style == "iggy":
        return pa.record_batch([pa.array(texts, pa.binary()).cast(schema.field("value").type)], schema=schema)
    rows: list[Any]
    reads: dict[str, Callable[[Any], Any]]
    if shape.format == "csv":
        rows = [parts.flat_fields(shape, line) for line in texts]
        reads = {field: _of_csv(shape, field, at) for at, field in enumerate(envelope.fields)}
    else:
        reads = {field: _of_json(shape, field) for field in envelope.fields}
        rows = [{envelope.fields[0]: msgspec.Raw(text)} if envelope.bare else parts.members(text) for text in texts]
    return pa.record_batch([pa.array(map(reads[field.name], rows), field.type) for field in schema], schema=schema)


def _of_json(shape: Shape, field: str) -> Callable[[_Members], Any]:
    read: Callable[[msgspec.Raw], Any] = _any
    if field in ("key", "value"):
        read = {TEXT: parts.text_of, BYTES: parts.bytes_of}.get(shape.converter(field), _spelled)
    elif field == "timestamp":
        read = _instant
    elif field == "headers":
        return lambda members: _pairs(parts.headers_of(members["headers"], members.get("headersOrder")))
    return lambda members: read(members[field])


def _pairs(headers: Sequence[parts.Header]) -> list[dict[str, Any]]:
    return [{"key": name, "value": value} for name, value in headers]


def _spelled(text: msgspec.Raw) -> str | None:
    return None if (spelling := bytes(text)) == b"null" else spelling.decode()


def _instant(text: msgspec.Raw) -> int | None:
    """Microseconds since 1970."""
    stamp = parts.text_of(text)
    return None if stamp is None else int(pa.scalar(stamp).cast(pa.timestamp("us", "UTC")).value)


def _of_csv(shape: Shape, field: str, at: int) -> Callable[[Sequence[bytes]], Any]:
    read: Callable[[bytes], Any] = _decoded
    if field == "offset":
        read = int
    elif field == "timestamp":
        read = _micros
    elif field == "headers":
        return lambda row: _pairs([_header(pair) for pair in row[at].split(b";")[:-1]])
    elif field == "value" and shape.envelope and shape.envelope.value_encoding == "none":
        read = bytes if shape.value == BYTES else bytes.decode
    return lambda row: read(row[at]) if row[at] else None


def _micros(text: bytes) -> int:
    return int(text) * 1000


def _decoded(text: bytes) -> bytes:
    return base64.b64decode(text, validate=True)


def _header(pair: bytes) -> parts.Header:
    name, _, value = pair.partition(b":")
    return _decoded(name).decode(), _decoded(value) if value else None
