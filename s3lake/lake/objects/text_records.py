"""Records of text files: each text as the parts of its record, which are as in Kafka if the converter allows it."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec
import pyarrow as pa

from s3lake.index.commit.documents import EnvelopeForm
from s3lake.lake.objects.instants import parse_timestamp
from s3lake.lake.objects.shape import BYTES, STRING, ObjectShape

Row = dict[str, Any]
_Read = Callable[[Any], Any]
_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_any = msgspec.json.Decoder().decode
_string = msgspec.json.Decoder(str | None).decode
_FLAGS = {"key": "keyIsArray", "value": "valueIsArray"}
_IGGY_METADATA = ("offset", "timestamp", "stream", "topic", "partition_id")


def to_batch(shape: ObjectShape, texts: Sequence[bytes], schema: pa.Schema) -> pa.RecordBatch:
    """Convert records to the columns of `schema` (see `columns.read_schema`); a part with one has one column."""
    if shape.envelope is None or shape.envelope.style == "iggy":
        return pa.record_batch([pa.array(texts, pa.binary()).cast(schema.field("value").type)], schema=schema)
    rows = list(map(build_row_reader(shape), texts))
    for row in rows:
        if row.get("headers") is not None:
            row["headers"] = [{"key": name, "value": value} for name, value in row["headers"]]
        if row.get("timestamp") is not None:
            row["timestamp"] *= 1000  # microseconds
    return pa.record_batch([pa.array([row[field.name] for row in rows], field.type) for field in schema], schema=schema)


def build_row_reader(shape: ObjectShape) -> Callable[[bytes], Row]:
    """Return what splits a text into the parts of its record, named as the envelope's fields; without one, `value`.

    Strings, bytes and headers are decoded, timestamps are milliseconds. JSON stays its text, and null is None. The
    reader raises a ValueError, LookupError or TypeError for a text that is not a record.
    """
    envelope = shape.envelope
    if envelope is not None and shape.format == "csv":
        return partial(_split_flat_row, envelope)
    read = {part: _build_part_reader(shape, part) for part in ("key", "value")}
    if envelope is None:
        return lambda text: {"value": read["value"](text)}
    if envelope.bare or (envelope.style == "iggy" and envelope.fields == ("value",)):
        (field,) = envelope.fields
        bare = {**read, **_READERS}[field]
        return lambda text: {field: bare(msgspec.Raw(text))}
    if envelope.style == "iggy":
        return partial(_parse_iggy, envelope.fields, read["value"])
    readers = {name: {**read, **_READERS}[name] for name in envelope.fields if name != "headers"}
    flags = {part for part in _FLAGS if envelope.style == "record" and shape.converter(part) == BYTES}
    return partial(_parse_object, readers, flags & readers.keys(), "headers" in envelope.fields)


def _parse_object(readers: dict[str, _Read], flagged: set[str], has_headers: bool, text: bytes) -> Row:
    members = _members(text)
    row = {name: read(members.pop(name)) for name, read in readers.items()}
    if has_headers:
        row["headers"] = parse_headers(members.pop("headers"), members.pop("headersOrder", None))
    for part in flagged:  # so that base64 is not taken for a text
        flag = members.pop(_FLAGS[part], None)
        if row[part] is not None and (flag is None or bytes(flag) != b"true"):
            raise ValueError(f"{_FLAGS[part]} does not mark the base64 of its {part}")
    return _require_empty(members, row)


def _parse_iggy(fields: Sequence[str], read_value: _Read, text: bytes) -> Row:
    members, row = _members(text), Row()
    if "metadata" in fields:
        row["metadata"] = {name: _any(members.pop(name)) for name in _IGGY_METADATA}
        row["metadata"]["timestamp"] = parse_timestamp(1000, row["metadata"]["timestamp"])
    if "headers" in fields:  # without headers the member is missing
        row["headers"] = parse_headers(members.pop("headers", b"{}"), members.pop("headersOrder", None))
    if "value" in fields:
        row["value"] = read_value(members.pop("payload"))
    return _require_empty(members, row)


def _require_empty(members: dict[str, msgspec.Raw], row: Row) -> Row:
    if members:
        raise ValueError(f"it has a member {next(iter(members))!r}")
    return row


def _build_part_reader(shape: ObjectShape, part: str) -> _Read:
    if not shape.format.startswith("json"):
        return bytes
    return {STRING: _string, BYTES: _parse_base64}.get(shape.converter(part), _read_json)


def _read_json(text: Any) -> bytes | None:
    stripped = bytes(text).strip(b" \t")
    return None if stripped == b"null" else stripped


def _parse_timestamp(text: Any) -> int | None:
    stamp = _string(text)
    return None if stamp is None else parse_timestamp(1000, stamp)


def _parse_base64(text: Any) -> bytes | None:
    encoded = _string(text)
    return None if encoded is None else _decode_cell(encoded)


def parse_headers(text: bytes | msgspec.Raw, order: bytes | msgspec.Raw | None = None) -> list[tuple[str, Any]]:
    """Parse headers: a list, or an object name -> value or list of values.

    Args:
        order: the names in their order, if headers of an object repeat in another one.
    """
    headers: Any = _any(text)
    if not isinstance(headers, dict):
        return [(header["key"], _decode_header_value(header["value"])) for header in headers or ()]
    values = {name: value if isinstance(value, list) else [value] for name, value in headers.items()}
    names: Any = [name for name in values for _ in values[name]] if order is None else _any(order)
    remaining = {name: iter(of_name) for name, of_name in values.items()}
    if sorted(names) != sorted(name for name in values for _ in values[name]):
        raise ValueError("the order does not have every header once")
    return [(name, _decode_header_value(next(remaining[name]))) for name in names]


def _decode_header_value(value: Any) -> bytes | None:
    if value is None:
        return None
    return value.encode() if isinstance(value, str) else _decode_cell(value["base64"])


def _split_flat_row(envelope: EnvelopeForm, line: bytes) -> Row:
    """Split a row of CSV that quotes nothing: commas are the value's own if nothing encodes it."""
    cells, names = line.split(b","), envelope.fields
    if envelope.value_encoding == "none" and "value" in names:
        at = names.index("value")
        end = len(cells) - (len(names) - at - 1)
        cells = [*cells[:at], b",".join(cells[at:end]), *cells[end:]]
    return {name: _read_cell(envelope, name, cell) for name, cell in zip(names, cells, strict=True)}


def _read_cell(envelope: EnvelopeForm, name: str, cell: bytes) -> Any:
    if name == "headers":
        pairs = (pair.partition(b":") for pair in cell.split(b";")[:-1])
        return [(_decode_cell(name).decode(), _decode_cell(value) if value else None) for name, _, value in pairs]
    if not cell:
        return None
    if name in ("offset", "timestamp"):
        return int(cell)
    return _decode_cell(cell) if name == "key" or envelope.value_encoding == "base64" else cell


def _decode_cell(cell: bytes | str) -> bytes:
    return base64.b64decode(cell, validate=True)


_READERS: dict[str, _Read] = {
    "headers": parse_headers,
    "metadata": _any,
    "offset": _any,
    "timestamp": _parse_timestamp,
}
