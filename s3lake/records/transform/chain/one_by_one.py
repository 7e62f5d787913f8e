"""Apply a chain to records one by one: values without a schema are JSON, text or bytes.

Every record is decoded once, goes through all steps, and is encoded once. A value that no step changed keeps the
producer's bytes. If all steps add headers that are the same for every record, no record is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from s3lake.records.convert.read import value_checks
from s3lake.records.convert.read.converters import CONVERTERS
from s3lake.records.convert.read.keys_and_values import Column, Schemas
from s3lake.records.record_timestamps import NO_TIMESTAMP, to_epoch_ms
from s3lake.records.schema.connect_schema import Schema
from s3lake.records.transform.chain.chain import Chain
from s3lake.records.transform.chain.header_column import (
    append_headers,
    make_entries,
    merge_headers,
    read_headers,
    replace_column,
)
from s3lake.records.transform.step.record import Record
from s3lake.records.transform.step.record_values import (
    NOT_READ,
    Header,
    MarkInstants,
    TransformError,
    decode_side,
    encode,
    make_marker,
    make_unit_marker,
)
from s3lake.text.masking import strip_values


class Transformed(NamedTuple):
    """A batch after its chain.

    Attributes:
        batch: the remaining records; with a column `topic` if the chain has a router.
        rows: their rows in the batch before the chain, in order.
        refused: row -> reason.
        filtered: how many records were filtered out.
        columns: `key` or `value` as conversion takes it, if records come with schemas that the chain changes, too.
    """

    batch: pa.RecordBatch
    rows: pa.Int64Array
    refused: dict[int, str]
    filtered: int
    columns: Mapping[str, Column] = {}


def apply_links(
    transforms: Chain, batch: pa.RecordBatch, schemas: Mapping[str, Schemas], topic: str, wallclock_ms: int
) -> Transformed:
    """Apply the links to the column of headers if all are constant, else to each record."""
    constants = [link.step.constant for link in transforms.links if link.step.constant is not None]
    if len(constants) < len(transforms.links):
        return _Run(transforms, schemas, topic, wallclock_ms).run(batch)
    rows = np.arange(batch.num_rows)
    if headers := [header for constant in constants for header in constant(wallclock_ms)]:
        column = batch.column("headers")
        added = make_entries(headers, column.type).take(pa.array(np.tile(np.arange(len(headers)), len(rows))))
        batch = replace_column(batch, "headers", merge_headers(column, np.repeat(rows, len(headers)), added))
    return Transformed(batch, pa.array(rows, pa.int64()), {}, 0)


@dataclass
class _Kept:
    """Columns of the remaining records, without their decoded values: thousands of those would cost time."""

    rows: list[int] = field(default_factory=list)
    keys: list[bytes | None] = field(default_factory=list)
    values: list[bytes | None] = field(default_factory=list)
    topics: list[str] = field(default_factory=list)
    headers: list[list[Header]] = field(default_factory=list)


@dataclass(frozen=True)
class _Run:
    """A chain that is applied record by record to one batch."""

    chain: Chain
    schemas: Mapping[str, Schemas]
    topic: str
    wallclock_ms: int

    def run(self, batch: pa.RecordBatch) -> Transformed:
        kept, refused = _Kept(), dict[int, str]()
        opened = dict.fromkeys(self.chain.wrapped, "json")
        key_converter, value_converter = opened.get("key", self.chain.key), opened.get("value", self.chain.value)
        reads, writes = self.chain.reads, self.chain.writes
        key_read, value_read = "key" in reads, "value" in reads
        key_written, value_written = "key" in writes, "value" in writes
        steps = [(link.step.apply, link.label) for link in self.chain.links]
        record = Record(self.topic, self.wallclock_ms)
        repeated = {side: self._find_repeated_names(batch, side, opened) for side in ("key", "value")}
        key_marks, value_marks = (self._list_marks(side, batch.num_rows) for side in ("key", "value"))
        for row, raw_key, raw_value in self._iterate_rows(batch, record):
            label = ""
            try:
                if key_read:
                    label = "the key"
                    record.key = decode_side(raw_key, key_converter, key_marks[row])
                if value_read:
                    label = "the value"
                    record.value = decode_side(raw_value, value_converter, value_marks[row])
                key, value = record.key, record.value
                for apply, label in steps:  # noqa: B007 - an error is the last one's
                    if apply(record):
                        break
                else:
                    for side, before in (("key", key), ("value", value)):
                        if row in repeated[side] and getattr(record, side) is not before:
                            raise TransformError(repeated[side][row])
                    new_key = encode_changed_side(record.key, key, raw_key, key_converter) if key_written else None
                    if value_written:
                        kept.values.append(encode_changed_side(record.value, value, raw_value, value_converter))
                    if key_written:
                        kept.keys.append(new_key)
                    kept.topics.append(record.topic)
                    kept.headers.append(record.headers)
                    kept.rows.append(row)
            except TransformError as refusal:
                refused[row] = f"{label}: {refusal}"
            except RecursionError:
                refused[row] = f"{label}: nested too deeply"
            except (ArithmeticError, ValueError) as error:
                refused[row] = f"{label}: {strip_values(str(error))}"
        rows = pa.array(kept.rows, pa.int64())
        remaining = batch if len(rows) == batch.num_rows else batch.take(rows)
        filtered = batch.num_rows - len(rows) - len(refused)
        return Transformed(self._replace_columns(remaining, kept), rows, refused, filtered)

    def _find_repeated_names(self, batch: pa.RecordBatch, side: str, opened: Mapping[str, str]) -> dict[int, str]:
        """Return rows whose JSON, if a step changes it, would lose a member that has the name of another."""
        converter = opened.get(side, self.chain.key if side == "key" else self.chain.value)
        if side not in self.chain.writes or CONVERTERS[converter].gives != "json":
            return {}
        return value_checks.find_repeated_names(batch.column(side))

    def _iterate_rows(self, batch: pa.RecordBatch, record: Record) -> Iterator[tuple[int, bytes | None, bytes | None]]:
        """Yield row number, key and value as Kafka has them. Before each, sets the other parts of `record`."""
        reads = self.chain.reads
        touched = reads | self.chain.writes
        sides = (batch.column(side).to_pylist() if side in touched else repeat(None) for side in ("key", "value"))
        tombstones = batch.column("value").is_null().to_pylist() if "tombstone" in reads else repeat(False)
        existing = read_headers(batch.column("headers")) if "headers" in reads else None
        places = (batch.column(name).to_pylist() for name in ("partition", "offset"))
        times = list_timestamps(batch)
        columns = zip(times, *places, *sides, tombstones, strict=False)
        for row, (record.timestamp, partition, offset, key, value, tombstone) in enumerate(columns):
            record.topic, record.partition, record.offset = self.topic, partition, offset
            record.key, record.value = NOT_READ, None if tombstone else NOT_READ
            record.headers = [] if existing is None else existing[row]
            yield row, key, value

    def _list_marks(self, side: str, count: int) -> list[MarkInstants | None]:
        """Return how the dates and times of each row are marked, None if its schema has none."""
        schemas = self.schemas.get(side)
        if schemas is None:
            return [None] * count
        marks = [*(_make_marker(schema) for schema in schemas.distinct), None]  # rows without a schema have code -1
        return [marks[code] for code in schemas.codes.tolist()]

    def _replace_columns(self, batch: pa.RecordBatch, kept: _Kept) -> pa.RecordBatch:
        writes = self.chain.writes
        for side, values in (("key", kept.keys), ("value", kept.values)):
            if side in writes:
                batch = replace_column(batch, side, pa.array(values, batch.schema.field(side).type))
        if "headers" in writes:
            column = batch.column("headers")
            before = pa.nulls(batch.num_rows, column.type) if "headers" in self.chain.reads else column
            batch = replace_column(batch, "headers", append_headers(before, kept.headers))
        if "topic" in writes:
            batch = batch.append_column("topic", pa.array(kept.topics, pa.string()))
        return batch


def _make_marker(schema: Schema) -> MarkInstants | None:
    """Return how the times of a schema are marked: its columns of times, and numbers that are times by their schema."""
    instants, numbers = make_marker(schema.type), make_unit_marker(schema.type, schema.detail)
    if instants is None or numbers is None:
        return instants or numbers
    return lambda value: numbers(instants(value))


def encode_changed_side(after: Any, before: Any, raw: bytes | None, converter: str) -> bytes | None:
    """Return a key or value after the chain as JSON: the same bytes if no step changed it."""
    if after is before and converter == "json":
        return raw
    return encode(decode_side(raw, converter) if after is NOT_READ else after)


def list_timestamps(batch: pa.RecordBatch) -> list[int | None]:
    """Return the records' timestamps in milliseconds, None for those to which Kafka gives none."""
    stamps = to_epoch_ms(batch.column("timestamp")).to_pylist()
    return [None if stamp == NO_TIMESTAMP else stamp for stamp in stamps]
