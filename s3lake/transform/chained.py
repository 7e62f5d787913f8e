"""Batches through a chain of transforms: as Kafka has them in, as conversion takes them out.

Every record is decoded once, goes through all steps, and is encoded once. A value that no step changed keeps the
producer's bytes. Headers that are the same for every record are added in Arrow, without looking at records.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import Any

import pyarrow as pa

from s3lake.convert.framed import Unframing
from s3lake.convert.schemas import Schemas
from s3lake.text.masking import strip_values
from s3lake.transform import headers
from s3lake.transform.chain import Chain, Link, parts
from s3lake.transform.instants import Marking, marking
from s3lake.transform.record import UNREAD, Header, Record, Refusal, decoded, encoded

_NO_TIMESTAMP = -1000  # µs


@dataclass(frozen=True)
class Transformed:
    """A batch after its chain.

    Attributes:
        batch: the records that are left; with a column `topic` where the chain has a router.
        rows: where they were in the batch that came in, in order.
        refused: row -> why.
        dropped: how many were filtered out.
    """

    batch: pa.RecordBatch
    rows: pa.Int64Array
    refused: dict[int, str]
    dropped: int


def transformed(chain: Chain, batch: pa.RecordBatch, topic: str, wallclock_ms: int) -> Transformed:
    """One batch of one topic, through `chain`; `wallclock_ms` is the micro-batch's time."""
    if not chain.framed:
        return _transformed(chain, batch, {}, topic, wallclock_ms)
    plain, schemas, refused = Unframing(chain.framed, chain.schemas)(batch)
    rows = [row for row in range(batch.num_rows) if row not in refused]
    kept = pa.array(rows, pa.int64())
    schemas = {side: of_side.take(kept) for side, of_side in schemas.items()}
    done = _transformed(chain, plain.take(kept), schemas, topic, wallclock_ms)
    refused = refused | {rows[row]: reason for row, reason in done.refused.items()}
    return Transformed(done.batch, kept.take(done.rows), refused, done.dropped)


def _leading(constants: Sequence[object]) -> int:
    """How many are constant before the first that is not."""
    return next((at for at, constant in enumerate(constants) if constant is None), len(constants))


def _transformed(
    chain: Chain, batch: pa.RecordBatch, schemas: Mapping[str, Schemas], topic: str, wallclock_ms: int
) -> Transformed:
    constants = [link.constants(wallclock_ms) for link in chain.links]
    first = _leading(constants)
    last = max(first, len(constants) - _leading(constants[::-1]))
    batch = _with_constants(batch, constants[:first])
    links = chain.links[first:last]
    run = _Run(chain, links, schemas, topic, wallclock_ms, *parts(links))
    transformed = run(batch) if links else Transformed(batch, _numbers(batch.num_rows), {}, 0)
    if last == len(constants):
        return transformed
    ended = _with_constants(transformed.batch, constants[last:])
    return Transformed(ended, transformed.rows, transformed.refused, transformed.dropped)


@dataclass
class _Kept:
    """Columns of the records that are left, without their decoded values: thousands of those would cost time."""

    rows: list[int] = field(default_factory=list)
    keys: list[bytes | None] = field(default_factory=list)
    values: list[bytes | None] = field(default_factory=list)
    topics: list[str] = field(default_factory=list)
    headers: list[list[Header]] = field(default_factory=list)


@dataclass(frozen=True)
class _Run:
    """The links of a chain that have to see every record, on one batch."""

    chain: Chain
    links: tuple[Link, ...]
    schemas: Mapping[str, Schemas]
    topic: str
    wallclock_ms: int
    reads: frozenset[str]
    writes: frozenset[str]

    def __call__(self, batch: pa.RecordBatch) -> Transformed:
        kept, refused = _Kept(), dict[int, str]()
        key_read, value_read = "key" in self.reads, "value" in self.reads
        key_written, value_written = "key" in self.writes, "value" in self.writes
        steps = [(link.step, link.label) for link in self.links]
        record = Record(self.topic, self.wallclock_ms)
        key_marks, value_marks = (self._marks(side, batch.num_rows) for side in ("key", "value"))
        for row, raw_key, raw_value in self._records(batch, record):
            label = ""
            try:
                if key_read:
                    label = "the key"
                    record.key = decoded(raw_key, self.chain.key, key_marks[row])
                if value_read:
                    label = "the value"
                    record.value = decoded(raw_value, self.chain.value, value_marks[row])
                key, value = record.key, record.value
                for step, label in steps:  # noqa: B007 - an error is the last one's
                    if step(record):
                        break
                else:
                    new_key = _left(record.key, key, raw_key, self.chain.key) if key_written else None
                    if value_written:
                        kept.values.append(_left(record.value, value, raw_value, self.chain.value))
                    if key_written:
                        kept.keys.append(new_key)
                    kept.topics.append(record.topic)
                    kept.headers.append(record.headers)
                    kept.rows.append(row)
            except Refusal as refusal:
                refused[row] = f"{label}: {refusal}"
            except RecursionError:
                refused[row] = f"{label}: nested too deeply"
            except (ArithmeticError, ValueError) as error:
                refused[row] = f"{label}: {strip_values(str(error))}"
        rows = pa.array(kept.rows, pa.int64())
        left_over = batch if len(rows) == batch.num_rows else batch.take(rows)
        dropped = batch.num_rows - len(rows) - len(refused)
        return Transformed(self._replaced(left_over, kept), rows, refused, dropped)

    def _records(self, batch: pa.RecordBatch, record: Record) -> Iterator[tuple[int, bytes | None, bytes | None]]:
        """Each row with its key and value as Kafka has them, and with what else it is in `record`."""
        touched = self.reads | self.writes
        sides = (batch.column(side).to_pylist() if side in touched else repeat(None) for side in ("key", "value"))
        tombstones = batch.column("value").is_null().to_pylist() if "tombstone" in self.reads else repeat(False)
        existing = headers.read(batch.column("headers")) if "headers" in self.reads else None
        places = (batch.column(name).to_pylist() for name in ("partition", "offset"))
        times = batch.column("timestamp").cast(pa.int64()).to_pylist()
        columns = zip(times, *places, *sides, tombstones, strict=False)
        for row, (microseconds, partition, offset, key, value, tombstone) in enumerate(columns):
            record.topic, record.partition, record.offset = self.topic, partition, offset
            record.timestamp = None if microseconds is None or microseconds == _NO_TIMESTAMP else microseconds // 1000
            record.key, record.value = UNREAD, None if tombstone else UNREAD
            record.headers = [] if existing is None else existing[row]
            yield row, key, value

    def _marks(self, side: str, count: int) -> list[Marking | None]:
        """How the dates and times of each row are marked, None where its schema has none."""
        schemas = self.schemas.get(side)
        if schemas is None:
            return [None] * count
        marks = [*(marking(schema.type) for schema in schemas.distinct), None]  # rows without one have the code -1
        return [marks[code] for code in schemas.codes.tolist()]

    def _replaced(self, batch: pa.RecordBatch, kept: _Kept) -> pa.RecordBatch:
        for side, values in (("key", kept.keys), ("value", kept.values)):
            if side in self.writes:
                batch = _with(batch, side, pa.array(values, batch.schema.field(side).type))
        if "headers" in self.writes:
            column = batch.column("headers")
            if "headers" in self.reads:
                column = headers.written(kept.headers, column.type)
            else:
                column = headers.appended(column, kept.headers)
            batch = _with(batch, "headers", column)
        if "topic" in self.writes:
            batch = batch.append_column("topic", pa.array(kept.topics, pa.string()))
        return batch


def _left(after: Any, before: Any, raw: bytes | None, converter: str) -> bytes | None:
    """A key or value after the chain, as JSON; the same bytes where nothing changed it."""
    if after is before and converter == "json":
        return raw
    return encoded(decoded(raw, converter) if after is UNREAD else after)


def _with_constants(batch: pa.RecordBatch, constants: Sequence[list[Header] | None]) -> pa.RecordBatch:
    added = list(chain.from_iterable(one or () for one in constants))
    if not added or not batch.num_rows:
        return batch
    return _with(batch, "headers", headers.with_constants(batch.column("headers"), added))


def _with(batch: pa.RecordBatch, name: str, column: pa.Array) -> pa.RecordBatch:
    return batch.set_column(batch.schema.get_field_index(name), name, column)


def _numbers(count: int) -> pa.Int64Array:
    return pa.array(range(count), pa.int64())
