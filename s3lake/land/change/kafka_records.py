"""Rows of objects as the records that they were in Kafka, as far as their format and envelope give them back."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass
from itertools import count
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from s3lake.index.commit.documents import File
from s3lake.lake.objects import Body, ObjectShape, read_batches, read_text_rows, spark_columns
from s3lake.lake.objects.shape import BYTES, STRING
from s3lake.land.request.in_process_tasks import KafkaRecord

_MICROS_PER_MS = 1000


@dataclass(frozen=True)
class Parts:
    """The parts of a record that objects of a shape have as they were in Kafka.

    Attributes:
        lacking: why the value cannot be had; empty where it can.
    """

    key: bool
    headers: bool
    timestamp: bool
    offset: bool
    lacking: str = ""

    @classmethod
    def from_shape(cls, shape: ObjectShape) -> Parts:
        """Return the parts that a shape has."""
        fields = shape.envelope.fields if shape.envelope else ()
        metadata = "metadata" in fields
        key = "key" in fields and (shape.key in (STRING, BYTES) or not shape.in_columns)
        # One style has no column of them, another a map, which keeps one header of each name.
        column = next((column for column in spark_columns.build_read_schema(shape) if column.name == "headers"), None)
        headers = "headers" in fields and column is not None and not pa.types.is_map(column.type)
        return cls(key, headers, metadata or "timestamp" in fields, metadata or "offset" in fields, _lacking(shape))


def _lacking(shape: ObjectShape) -> str:
    envelope = shape.envelope
    if envelope is not None and (envelope.style == "iggy" or "value" not in envelope.fields or envelope.bare):
        return "its envelope does not hold the value as it was"
    if shape.value not in (STRING, BYTES, "json"):
        return f"converter.value {shape.value} made something else of the bytes that Kafka had"
    if shape.in_columns and shape.value == "json":
        return "its columns are fields of the value, whose text is not kept"
    if not shape.separable:
        return "its records cannot be separated"
    return ""


def read_kafka_records(
    shape: ObjectShape, body: Body, file: File, topic: str, others: Set[int] = frozenset()
) -> Iterator[list[KafkaRecord]]:
    """Yield the records of an object, some at a time; the `Parts` of its shape lack nothing.

    If neither rows nor their number determine an offset, it is the least that it can have been: none of `others`, the
    offsets whose records are in no such object.

    Raises:
        UnreadableError: it is not a file of its shape.
    """
    parts, offsets = Parts.from_shape(shape), find_least_offsets(file, others)
    blocks: Iterator[list[Any]]
    if shape.in_columns:
        batches = read_batches(shape, body, file.key, spark_columns.build_read_schema(shape))
        blocks = (batch.to_pylist() for batch in batches)
    else:
        blocks = read_text_rows(shape, body, file.key)
    for rows in blocks:
        some = []
        for row in rows:
            at = next(offsets)
            if parts.offset:
                at = int(row["metadata"]["offset"] if row.get("metadata") else row["offset"])
            stamp = _timestamp(row) if parts.timestamp else -1
            headers = tuple(map(_to_pair, row["headers"] or ())) if parts.headers else ()
            key = _to_bytes(row["key"]) if parts.key else None
            some.append(KafkaRecord(topic, file.partition, at, stamp, key, _to_bytes(row["value"]), headers))
        yield some


def find_least_offsets(file: File, others: Set[int]) -> Iterator[int]:
    """The least offsets that the rows of an object can have, one after the other."""
    return (offset for offset in count(file.first_offset) if offset not in others)


def read_offsets(rows: pa.RecordBatch) -> pa.Int64Array:
    """Return the offsets that rows of an envelope contain."""
    if "metadata" in rows.schema.names:
        return pc.struct_field(rows.column("metadata"), "offset")
    return rows.column("offset")


def slack(shape: ObjectShape, file: File, others: Set[int]) -> int:
    """How much greater the offset of a record may have been than `read_kafka_records` returns."""
    if Parts.from_shape(shape).offset:
        return 0
    strange = sum(file.first_offset <= offset <= file.last_offset for offset in others)
    return file.last_offset - file.first_offset + 1 - file.records - strange


def _timestamp(row: Any) -> int:
    if row.get("metadata"):
        return int(row["metadata"]["timestamp"])
    stamp = row["timestamp"]
    if stamp is None:
        return -1
    return stamp if isinstance(stamp, int) else round(stamp.timestamp() * _MICROS_PER_MS)


def _to_pair(header: Any) -> tuple[str, bytes | None]:
    return (header["key"], header["value"]) if isinstance(header, dict) else header


def _to_bytes(cell: str | bytes | None) -> bytes | None:
    return cell.encode() if isinstance(cell, str) else cell
