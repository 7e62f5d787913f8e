"""One Spark task: convert, lay out, encode, stage. The only file that knows the order.

Everything that it needs travels in a `Work` of plain values, so a Python worker imports neither Dagster nor pydantic.
The results come back as rows, one encoded outcome each: exceptions would lose their type under Spark Connect.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from s3lake.errors import S3LakeError
from s3lake.index.commit.documents import Read
from s3lake.index.store import Stores
from s3lake.land.task.outcomes import Done, Failed, Grown, Outcome, Refused, with_seen
from s3lake.land.task.refused_records import Letters, Witness, log
from s3lake.land.task.staging import FileRule, Staging, StagingRows, Streams, StreamSchemas
from s3lake.land.task.transformed_batch import Prepared, milliseconds, project_batch, read_computed
from s3lake.records.convert.conversion import Conversion
from s3lake.records.convert.read.value_checks import Refusals
from s3lake.records.convert.rows.parts_by_schema import Part
from s3lake.records.layout.elements import RecordColumns
from s3lake.records.layout.object_keys import KeyLayout
from s3lake.records.layout.pieces import NoObjectKeyError
from s3lake.records.schema.columns.limits import HAS_LARGE, IN_TABLE
from s3lake.records.schema.columns.types import Columns, Primitive, leaf_paths, to_document
from s3lake.records.schema.columns.union import merge_columns
from s3lake.records.transform.chain.apply import apply_chain
from s3lake.source.kafka.dead_letter_topic import DeadLetterTarget

if TYPE_CHECKING:
    from s3lake.records.transform.chain.chain import Chain
    from s3lake.records.transform.sql.query import Projection

_INTEGERS = (Primitive.INT32, Primitive.INT64)


@dataclass(frozen=True)
class Work:
    """The work of a task, as plain values.

    Attributes:
        hour_start_ms: records stamped earlier are counted as late.
        columns: the columns of the sink's files; None if the format has no columns that grow.
        wallclock_ms: the micro-batch's time, epoch milliseconds.
        chain: the sink's transforms; if Spark computes, they run before it, in `land.sql.table`.
        projection: the sink's SQL.
        needs: Kafka columns that transforms or SQL ask for.
        look_only: read only to see the columns; stage nothing.
        dead_letter_topic: gets refused records too, before the task says that it is done.
        log: what is logged of a refused record: `none`, its offset, stage and `reason`, or the rest of its `place` too.
        witness: a function that is called with each refused record; only in the driver's process.
    """

    stores: Stores
    bucket: str
    commit: str
    hour_start_ms: int
    conversion: Conversion
    keys: KeyLayout
    files: FileRule
    tolerant: bool
    wallclock_ms: int
    chain: Chain | None = None
    projection: Projection | None = None
    needs: frozenset[str] = frozenset()
    columns: Columns = field(default_factory=dict)
    look_only: bool = False
    dead_letter_topic: DeadLetterTarget | None = None
    log: str = "none"
    witness: Witness | None = None

    @property
    def by_columns(self) -> bool:
        """True if recorded columns matter: columns of files grow, or the contract compares records with them."""
        return self.conversion.has_columns or self.conversion.contract.compares_fields

    def with_contract(self, columns: Columns) -> Work:
        """Return the work with the columns recorded when it began: the contract compares records with them."""
        conversion = self.conversion
        if conversion.table:
            conversion = replace(conversion, integers_of_table=tuple(leaf_paths(columns, _INTEGERS)))
        if conversion.contract.compares_fields:
            contract = replace(conversion.contract, columns=conversion.of_values(columns))
            conversion = replace(conversion, contract=contract)
        return replace(self, conversion=conversion)

    def with_columns(self, columns: Columns, exact: Collection[str] = ()) -> Work:
        """Return the work for files with these columns; columns at the paths `exact` stay integers."""
        of_table = dict.fromkeys(self.conversion.integers_of_table, IN_TABLE)
        conversion = replace(self.conversion, integral={**of_table, **dict.fromkeys(exact, HAS_LARGE)})
        return replace(self, look_only=False, columns=columns, conversion=conversion)

    def has_settled_columns(self, outcomes: Sequence[Outcome]) -> bool:
        """Return whether all tasks are done, and have judged records by all columns that files of the commit share.

        Records without a schema, and all of CSV, share the columns of other records' schemas: an empty list has no
        place in a column of integers.
        """
        done = [one for one in outcomes if isinstance(one, Done)]
        if len(done) < len(outcomes):
            return False
        shared = set().union(*(one.shared for one in done))
        of_parts = self.conversion.of_parts
        columns = with_seen(self.columns, done, self.conversion.integral)
        return of_parts(shared, columns) == of_parts(shared, self.columns)

    @property
    def file_columns(self) -> Columns | None:
        """Columns of the files, None if the format has none."""
        if self.conversion.has_columns:
            return self.columns
        return self.conversion.fixed_columns

    @property
    def record_columns(self) -> tuple[str, ...]:
        """Columns of `source.records.SCHEMA` that this work needs; each costs, so no others are made."""
        names = ["partition", "offset", "timestamp", "value"]
        needed = self.conversion.needs | self.needs
        if self.tolerant or self.keys.needs("key") or "key" in needed:
            names.append("key")
        if self.tolerant or self.keys.needs("header") or "headers" in needed:
            names.append("headers")
        return tuple(names)

    def prepare_batch(self, batch: pa.RecordBatch) -> Prepared:
        """Return a batch as conversion takes it: after transforms and SQL."""
        projection = self.projection
        if projection is not None and projection.query.needs_spark:
            return read_computed(batch, projection)
        ready = Prepared(batch, batch)
        if self.chain is not None:
            done = apply_chain(self.chain, batch, self.keys.topic, self.wallclock_ms)
            ready = Prepared(
                batch, done.batch, done.rows, {"transform": done.refused}, done.dropped, columns=done.columns
            )
        return ready if projection is None or projection.query.keeps_values else project_batch(ready, projection)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the encoded results of a task; `mapInArrow` calls this."""
        for outcome in run(self, batches):
            yield pa.record_batch([pa.array([msgspec.json.encode(outcome)], pa.binary())], names=["outcome"])


def run(work: Work, batches: Iterable[pa.RecordBatch]) -> Iterator[Outcome]:
    """Convert, lay out, encode and stage the records of one task."""
    task = _Task(work)
    try:
        for batch in batches:
            if batch.num_rows:
                task.take(batch)
                if task.refused is not None:
                    break
        outcome = task.outcome()
    except S3LakeError as error:
        task.staging.abort()
        outcome = Failed(type(error).__name__, str(error))
    except BaseException:
        task.staging.abort()
        raise
    if outcome is not None:
        yield outcome


@dataclass(frozen=True)
class _PlacedRows:
    """Converted rows that are laid out; `values` are JSON texts, or the values as Kafka has them.

    Attributes:
        names, times: see `convert.parts.Part`.
    """

    records: pa.RecordBatch
    original: pa.RecordBatch
    streams: Streams
    values: pa.BinaryArray
    names: pa.StringArray | None
    keys: pa.BinaryArray | None
    times: pa.StringArray | None = None

    @classmethod
    def from_part(cls, batch: pa.RecordBatch, original: pa.RecordBatch, part: Part, *, placed: bool) -> _PlacedRows:
        if placed and part.values is not None:  # nothing else of the records says where they go
            batch = original = batch.select(["offset", "timestamp"])
        records = _take_rows(batch, part.rows)
        values = records.column("value") if part.values is None else part.values
        rows = records if original is batch else _take_rows(original, part.rows)
        return cls(records, rows, part.streams, values, part.names, part.keys, part.times)

    def where(self, mask: pa.BooleanArray) -> _PlacedRows:
        streams = {name: payload.filter(mask) for name, payload in self.streams.items()}
        records, original = self.records.filter(mask), self.original.filter(mask)
        keys = None if self.keys is None else self.keys.filter(mask)
        names = None if self.names is None else self.names.filter(mask)
        times = None if self.times is None else self.times.filter(mask)
        return _PlacedRows(records, original, streams, self.values.filter(mask), names, keys, times)

    def without_data(self) -> _PlacedRows:
        return replace(self, streams={name: payload for name, payload in self.streams.items() if name != "data"})

    def fields(self, keys: KeyLayout) -> RecordColumns:
        records, names = self.records, self.names
        schemas: Sequence[str | None] = ()
        if keys.needs("schema"):
            schemas = [None] * records.num_rows if names is None else names.to_pylist()
        return RecordColumns(
            values=self.values.to_pylist() if keys.needs("value") else (),
            keys=(records.column("key") if self.keys is None else self.keys).to_pylist() if keys.needs("key") else (),
            headers=records.column("headers").to_pylist() if keys.needs("header") else (),
            timestamps=milliseconds(records).to_pylist() if keys.needs("timestamp") else (),
            schemas=schemas,
            topics=records.column("topic").to_pylist() if keys.needs("topic") else (),
            times=() if self.times is None else self.times.to_pylist(),
        )


@dataclass
class _Waiting:
    """Rows of one topic-partition and one kind that wait to be sorted into output partitions together."""

    groups: list[str] = field(default_factory=list)
    rows: list[StagingRows] = field(default_factory=list)
    size: int = 0


class _Task:
    def __init__(self, work: Work) -> None:
        self.work = work
        self.store = work.stores(work.bucket)
        self.staging = Staging(self.store, work.keys, work.files, work.commit)
        self.refused: Refused | None = None
        self._columns = work.columns
        self._grown = work.look_only
        self._done = Done([], {}, {})
        self._shapes: set[str] = set()
        self._seen: Columns = {}
        self._shared: set[str] = set()
        self._large: set[str] = set()
        self._projector = work.conversion.projector
        self._waiting: dict[tuple[int, StreamSchemas], _Waiting] = {}
        self._letters = Letters(self.staging, work.dead_letter_topic, work.witness, work.files.budget // 8)

    def take(self, batch: pa.RecordBatch) -> None:
        """Take one batch of records; records that come through SQL may be of several topic-partitions."""
        for partition in pc.unique(batch.column("partition")).to_pylist():
            same = pc.equal(batch.column("partition"), partition)
            self._take(partition, batch if pc.all(same).as_py() else batch.filter(same))

    def outcome(self) -> Outcome | None:
        """Return what the driver has to know. Return None if the task read nothing."""
        done = self._done
        if self.refused is not None:
            self.staging.abort()
            return self.refused
        if self._grown:
            self.staging.abort()
            first = min(((partition, read.start) for partition, read in done.reads.items()), default=None)
            shapes, large = tuple(sorted(self._shapes)), tuple(sorted(self._large))
            return Grown(*first, to_document(self._columns), shapes, large) if first else None
        for where in list(self._waiting):
            self._sort(where)
        self._letters.finish()  # before staging does, which makes files visible where the sink is not exactly once
        done.files = self.staging.finish()
        done.requests, done.retries = dict(getattr(self.store, "requests", {})), getattr(self.store, "retries", 0)
        done.seen, done.letters = to_document(self._seen), self._letters.tally.reasons
        done.shared, done.large = tuple(sorted(self._shared)), tuple(sorted(self._large))
        return done

    def _take(self, partition: int, batch: pa.RecordBatch) -> None:
        ready = self.work.prepare_batch(batch)
        for stage, refused in ready.refused.items():
            if refused and not self._refuse(partition, ready.original, stage, refused):
                return
        if ready.unknown:
            self._shapes |= ready.unknown
            self._read_again()
        original = _take_rows(ready.original, ready.rows)  # row by row what `ready.batch` was made of
        converted = self.work.conversion(ready.batch, self._columns, self._projector, ready.columns)
        if converted.columns != self._columns and self.work.conversion.has_columns:
            self._columns = converted.columns
            self._read_again()
        self._seen = merge_columns(self._seen, converted.seen)
        self._shared |= converted.shared
        self._large |= converted.large
        if converted.forbidden and not self._grown:
            row = min(converted.forbidden)
            offset = original.column("offset")[row].as_py()
            self.refused = Refused(partition, offset, "schema", converted.forbidden[row], forbidden=True)
            return
        if converted.refused and not self._refuse(partition, original, "convert", converted.refused):
            return
        self._done.broken += converted.broken
        landed, dead = 0, sum(map(len, ready.refused.values())) + len(converted.refused)
        placed = not self.work.keys.has_tombstones and self.work.keys.fixed_group(partition) is not None
        for part in () if self._grown else converted.parts:
            self._done.words.update(part.words)
            rows = _PlacedRows.from_part(ready.batch, original, part, placed=placed)
            if self.work.keys.has_tombstones and rows.records.column("value").null_count:
                nulls = rows.records.column("value").is_null()
                landed += self._place_rows(partition, rows.where(nulls).without_data(), tombstones=True)
                dead += nulls.true_count
                rows = rows.where(pc.invert(nulls))
            landed += self._place_rows(partition, rows, tombstones=False)
            dead += rows.records.num_rows
        dead -= landed  # rows that the layout has no place for
        offsets, timestamps = batch.column("offset"), milliseconds(batch)
        read = Read(
            offsets[0].as_py(),
            offsets[-1].as_py() + 1,
            *_find_time_range(timestamps),
            read=batch.num_rows,
            landed=landed,
            dead=dead,
            skipped=converted.skipped,
            filtered=ready.filtered,
            late=pc.sum(pc.less(timestamps, self.work.hour_start_ms)).as_py() or 0,
            fields_left_out=dict(converted.dropped),
            fields_filled=dict(converted.filled),
        )
        reads = self._done.reads
        reads[partition] = reads[partition] + read if partition in reads else read

    def _read_again(self) -> None:
        """Drop what is staged: all of it will be read again, with the columns and shapes that are seen now."""
        self._grown = True
        self.staging.abort()
        self._waiting.clear()

    def _place_rows(self, partition: int, laid: _PlacedRows, *, tombstones: bool) -> int:
        """Route converted rows; how many found their place."""
        keys = self.work.keys
        rows = StagingRows(laid.records.column("offset"), milliseconds(laid.records), laid.streams)
        fixed = None if tombstones else keys.fixed_group(partition)
        if fixed is not None:
            if len(rows):
                self.staging.add(partition, fixed, rows)
            return len(rows)
        fields = laid.fields(keys)
        groups = keys.groups(partition, fields, len(rows), tombstones=tombstones)
        if self.work.files.span_ms is not None and not tombstones and (times := keys.times(fields)) is not None:
            rows = replace(rows, clock=pa.array(times, pa.int64()))
        lost = {row: str(one) for row, one in enumerate(groups) if isinstance(one, NoObjectKeyError)}
        if lost:
            if not self._refuse(partition, laid.original, "layout", lost):
                return 0
            rows = rows.take(pa.array([row for row in range(len(rows)) if row not in lost], pa.int64()))
        if not len(rows):
            return 0
        where = (partition, rows.schemas)
        waiting = self._waiting.setdefault(where, _Waiting())
        waiting.groups.extend(one for one in groups if isinstance(one, str))
        waiting.rows.append(rows)
        waiting.size += rows.nbytes
        # Sorting much at once makes long runs per output partition, whatever their number.
        if waiting.size >= self.work.files.budget // 8:
            self._sort(where)
        return len(rows)

    def _sort(self, where: tuple[int, StreamSchemas]) -> None:
        waiting = self._waiting.pop(where)
        self.staging.add(where[0], pa.array(waiting.groups, pa.string()), StagingRows.concat(waiting.rows))

    def _refuse(self, partition: int, rows: pa.RecordBatch, stage: str, refusals: Refusals) -> bool:
        """Note refused rows as dead letters; False when the sink tolerates none and the task must stop."""
        if self._grown:
            return True  # all of it will be read once more, and judged by all columns
        if self.work.log != "none":
            log(self.work.keys, partition, rows, stage, refusals, place=self.work.log == "place")
        if not self.work.tolerant:
            first = min(refusals)
            self.refused = Refused(partition, rows.column("offset")[first].as_py(), stage, refusals[first])
            return False
        self._letters.add(self.work.keys.topic, partition, rows, stage, refusals)
        return True


def _find_time_range(timestamps: pa.Int64Array) -> tuple[int, int]:
    """Return the earliest and the latest timestamp. One that is not above 0 says nothing; without any it is (0, 0)."""
    ends = pc.min_max(timestamps).as_py()
    if ends["min"] is not None and ends["min"] <= 0:
        ends = pc.min_max(timestamps.filter(pc.greater(timestamps, 0))).as_py()
    return ends["min"] or 0, ends["max"] or 0


def _take_rows(records: pa.RecordBatch, rows: pa.Int64Array | None) -> pa.RecordBatch:
    return records if rows is None else records.take(rows)
