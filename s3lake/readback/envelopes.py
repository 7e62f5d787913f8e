"""Texts with the record's parts in them, taken apart again: as they were in Kafka where the converter allows."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from s3lake.readback.shape import Shape

Text = bytes | msgspec.Raw
Header = dict[str, Any]

_decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_any: Callable[[Text], Any] = msgspec.json.Decoder().decode
_string = msgspec.json.Decoder(str | None).decode


def json_rows(shape: Shape, texts: Sequence[bytes], schema: pa.Schema) -> pa.RecordBatch:
    """Records of the styles `record` and `flat` in JSON."""
    if shape.bare:
        read = _reader(shape, shape.fields[0])
        columns = {shape.fields[0]: [read({shape.fields[0]: msgspec.Raw(text)}) for text in texts]}
    else:
        objects = list(map(_decode, texts))
        columns = {field: list(map(_reader(shape, field), objects)) for field in shape.fields}
    return pa.record_batch([pa.array(columns[field.name], field.type) for field in schema], schema=schema)


def flat_rows(shape: Shape, lines: Sequence[bytes], schema: pa.Schema) -> pa.RecordBatch:
    """Records of the style `flat` in CSV: nothing is quoted, null is empty."""
    rows = [_split(shape, line) for line in lines]
    columns = []
    for at, field in enumerate(shape.fields):
        read = _of_csv(shape, field)
        columns.append(pa.array([read(row[at]) for row in rows], schema.field(field).type))
    return pa.record_batch(columns, schema=schema)


def headers_of_map(headers: Any, order: Sequence[str] | None) -> list[Header]:
    """Headers of an object name -> text or list of texts; `order` has the names where that does not tell it."""
    many = {name: one if isinstance(one, list) else [one] for name, one in (headers or {}).items()}
    left = {name: iter(values) for name, values in many.items()}
    names = [name for name, values in many.items() for _ in values] if order is None else order
    return [{"key": name, "value": _bytes(next(left[name]))} for name in names]


def _reader(shape: Shape, field: str) -> Callable[[dict[str, msgspec.Raw]], Any]:
    if field in ("key", "value"):
        read = _part(shape.key if field == "key" else shape.value)
        return lambda row: read(row[field])
    if field == "headers" and shape.style == "record":
        return lambda row: headers_of_map(
            _any(row["headers"]), _any(row["headersOrder"]) if "headersOrder" in row else None
        )
    if field == "headers":
        return lambda row: [{"key": one["key"], "value": _bytes(one["value"])} for one in _any(row[field]) or ()]
    if field == "timestamp":
        return lambda row: _instant(_string(row[field]))
    return lambda row: _any(row[field])


def _part(converter: str) -> Callable[[msgspec.Raw], Any]:
    if converter == "string":
        return _string
    if converter == "bytes":
        return lambda text: None if (found := _string(text)) is None else base64.b64decode(found, validate=True)
    return lambda text: None if (found := bytes(text)) == b"null" else found.decode()


def _bytes(value: Any) -> bytes | None:
    if isinstance(value, dict):
        return base64.b64decode(value["base64"], validate=True)
    return None if value is None else value.encode()


def _instant(text: str | None) -> int | None:
    """Microseconds since 1970, as Spark's timestamps have them."""
    if text is None:
        return None
    return int(pa.scalar(text).cast(pa.timestamp("us", "UTC")).value)


def _split(shape: Shape, line: bytes) -> list[bytes]:
    """The fields of a line; commas are the value's own where nothing encodes it."""
    fields = line.split(b",")
    if shape.value_encoding == "base64" or "value" not in shape.fields:
        return fields
    at = shape.fields.index("value")
    end = len(fields) - (len(shape.fields) - at - 1)
    return [*fields[:at], b",".join(fields[at:end]), *fields[end:]]


def _of_csv(shape: Shape, field: str) -> Callable[[bytes], Any]:
    match field:
        case "offset":
            return lambda text: int(text) if text else None
        case "timestamp":
            return lambda text: int(text) * 1000 if text else None
        case "headers":
            return _csv_headers
        case "value" if shape.value_encoding == "none":
            decode = shape.value != "bytes"
            return lambda text: (text.decode() if decode else text) if text else None
    return lambda text: base64.b64decode(text, validate=True) if text else None


def _csv_headers(text: bytes) -> list[Header]:
    pairs = [one.partition(b":") for one in text.split(b";")[:-1]]
    return [
        {
            "key": base64.b64decode(name, validate=True).decode(),
            "value": base64.b64decode(value, validate=True) if value else None,
        }
        for name, _, value in pairs
    ]
