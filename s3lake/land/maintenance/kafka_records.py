"""Rows of objects as the records that they were in Kafka, as far as their format and envelope give them back."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass
from itertools import count
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from s3lake.commit.documents import File
from s3lake.land.given import Record
from s3lake.objects import Body, Shape, batches, columns
from s3lake.objects.shape import BYTES, TEXT

_MICROS_PER_MS = 1000
_texts = msgspec.json.Decoder(str | None).decode


@dataclass(frozen=True)
class Parts:
    """Which parts of a record the objects of a shape have as Kafka had them.

    Attributes:
        lacking: why the value cannot be had; empty where it can.
    """

    key: bool
    headers: bool
    timestamp: bool
    offset: bool
    lacking: str = ""

    @classmethod
    def of(cls, shape: Shape) -> Parts:
        """Those of a shape."""
        fields = shape.envelope.fields if shape.envelope else ()
        metadata = "metadata" in fields
        key = "key" in fields and (shape.key in (TEXT, BYTES) or not shape.in_columns)
        # One style has no column of them, another a map, which keeps one header of each name.
        column = next((column for column in columns.of(shape, {}) if column.name == "headers"), None)
        headers = "headers" in fields and column is not None and not pa.types.is_map(column.type)
        return cls(key, headers, metadata or "timestamp" in fields, metadata or "offset" in fields, _lacking(shape))


def _lacking(shape: Shape) -> str:
    envelope = shape.envelope
    if envelope is not None and (envelope.style == "iggy" or "value" not in envelope.fields or envelope.bare):
        return "its envelope does not hold the value as it was"
    if shape.value not in (TEXT, BYTES, "json"):
        return f"converter.value {shape.value} made something else of the bytes that Kafka had"
    if shape.in_columns and shape.value == "json":
        return "its columns are fields of the value, whose text is not kept"
    if not shape.separable:
        return "its records cannot be told apart"
    return ""


def records(shape: Shape, body: Body, file: File, topic: str, others: Set[int] = frozenset()) -> Iterator[list[Record]]:
    """The records of an object, some at a time.

    Where neither rows nor their number say an offset, it is the least that it can have been.

    Args:
        shape: whose `Parts` lack nothing.
        body: of the object.
        file: what its manifest says of it.
        topic: of the records.
        others: offsets of the topic-partition whose records are in no such object.

    Raises:
        UnreadableError: it is no file of its shape.
    """
    parts, schema = Parts.of(shape), columns.of(shape, {})
    value, key = _reader(shape, schema, "value"), _reader(shape, schema, "key")
    offsets = offsets_of(file, others)
    for batch in batches(shape, body, file.key, schema):
        rows = []
        for row in batch.to_pylist():
            offset = next(offsets)
            at = _offset(row) if parts.offset else offset
            stamp = _timestamp(row) if parts.timestamp else -1
            headers = tuple((one["key"], one["value"]) for one in row["headers"] or ()) if parts.headers else ()
            raw_key = key(row["key"]) if parts.key else None
            rows.append(Record(topic, file.partition, at, stamp, raw_key, value(row["value"]), headers))
        yield rows


def offsets_of(file: File, others: Set[int]) -> Iterator[int]:
    """The least offsets that the rows of an object can have, one after the other."""
    return (offset for offset in count(file.first_offset) if offset not in others)


def read_offsets(rows: pa.RecordBatch) -> pa.Int64Array:
    """Return the offsets that rows of an envelope say."""
    if "metadata" in rows.schema.names:
        return pc.struct_field(rows.column("metadata"), "offset")
    return rows.column("offset")


def slack(shape: Shape, file: File, others: Set[int]) -> int:
    """How much greater the offset of a record may have been than `records` says."""
    if Parts.of(shape).offset:
        return 0
    strange = sum(file.first_offset <= offset <= file.last_offset for offset in others)
    return file.last_offset - file.first_offset + 1 - file.records - strange


def _offset(row: Any) -> int:
    return int(row["metadata"]["offset"] if row.get("metadata") else row["offset"])


def _timestamp(row: Any) -> int:
    if row.get("metadata"):
        return int(row["metadata"]["timestamp"])
    stamp = row["timestamp"]
    if stamp is None:
        return -1
    return stamp if isinstance(stamp, int) else round(stamp.timestamp() * _MICROS_PER_MS)


def _reader(shape: Shape, schema: pa.Schema, part: str) -> Callable[[Any], bytes | None]:
    """From a cell to the bytes that Kafka had."""
    if shape.envelope is None and shape.format.startswith("json"):
        return {TEXT: _of_json_text, BYTES: _of_json_base64}.get(shape.converter(part), _of_json)
    if part in schema.names and pa.types.is_string(schema.field(part).type):
        return _of_text
    return _of_bytes


def _of_json_text(text: str) -> bytes | None:
    return _of_text(_texts(text))


def _of_json_base64(text: str) -> bytes | None:
    decoded = _texts(text)
    return None if decoded is None else base64.b64decode(decoded, validate=True)


def _of_json(text: str) -> bytes | None:
    return None if text == "null" else text.encode()


def _of_text(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def _of_bytes(data: bytes | None) -> bytes | None:
    return data
