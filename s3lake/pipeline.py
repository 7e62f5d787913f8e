"""The way of the data inside one Spark task: convert, lay out, encode, stage. The only file that knows the order.

`run` is what `mapInArrow` calls; everything it needs travels in a `Work` of plain values, so a Python worker imports
neither Dagster nor pydantic. What a task has to say comes back as rows, one encoded outcome each: exceptions would lose
their type under Spark Connect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from s3lake.commit.index import File, Read
from s3lake.convert import columns as kinds
from s3lake.convert.columns import Columns
from s3lake.convert.gate import Refusals
from s3lake.convert.values import Conversion, Converted
from s3lake.encode import dead_letters
from s3lake.errors import S3LakeError
from s3lake.layout.key import Fields, KeyRule
from s3lake.layout.partitioners import Unplaceable
from s3lake.staging import FileRule, Staging
from s3lake.store import Store

if TYPE_CHECKING:
    from s3lake.sink import Sink

OUTCOME = "outcome binary"
"""Spark schema of what `run` returns."""


Stores = Callable[[str], Store]
"""Opens a bucket; picklable, and the same in the driver and in the workers."""


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """The first refused record of a task whose sink tolerates none; the task has dropped its uploads."""

    partition: int
    offset: int
    stage: str
    reason: str


class Grown(msgspec.Struct, frozen=True, tag="grown"):
    """The task saw columns that it was not given; it has dropped its uploads, and read on to see them all."""

    partition: int
    offset: int
    columns: dict[str, Any]


class Done(msgspec.Struct, frozen=True, tag="done"):
    """Everything of one task is staged."""

    files: list[File]
    reads: dict[int, Read]
    requests: dict[str, int]


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """The task met an error of `errors.py`; it has dropped its uploads."""

    error: str
    message: str


Outcome = Refused | Grown | Done | Failed
_decoder: msgspec.json.Decoder[Outcome] = msgspec.json.Decoder(Outcome)


@dataclass(frozen=True)
class Work:
    """What a task does, as plain values.

    Attributes:
        hour_start_ms: records stamped earlier are counted as late.
        columns: what the sink's files have; None where the format has no columns that grow.
        look_only: read only to see the columns; stage nothing.
    """

    stores: Stores
    bucket: str
    commit: str
    hour_start_ms: int
    conversion: Conversion
    keys: KeyRule
    files: FileRule
    tolerant: bool
    columns: Columns = field(default_factory=dict)
    look_only: bool = False

    @classmethod
    def of(
        cls, sink: Sink, topic: str, stores: Stores, *, commit: str, renamed: str, hour_start_ms: int, columns: Columns
    ) -> Work:
        """The work of one micro-batch of `sink`."""
        return cls(
            stores=stores,
            bucket=sink.bucket,
            commit=commit,
            hour_start_ms=hour_start_ms,
            conversion=Conversion.of(sink),
            keys=KeyRule.of(sink, topic, renamed),
            files=FileRule.of(sink),
            tolerant=sink.errors.tolerance == "all",
            columns=columns,
        )

    def looking(self) -> Work:
        """The same work, only to see the columns."""
        return replace(self, look_only=True)

    def with_columns(self, columns: Columns) -> Work:
        """The same work for files with these columns."""
        return replace(self, look_only=False, columns=columns)

    @property
    def file_columns(self) -> Columns | None:
        """Columns of the files, None where the format has none."""
        if self.conversion.has_columns:
            return self.columns
        return self.conversion.fixed_columns

    @property
    def kafka_columns(self) -> tuple[str, ...]:
        """Columns of Spark's Kafka source that this work needs; each costs, so no others are read."""
        wanted = ["partition", "offset", "timestamp", "value"]
        if self.tolerant or self.keys.needs("key"):
            wanted.append("key")
        if self.tolerant or self.keys.needs("header"):
            wanted.append("headers")
        return tuple(wanted)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """What `mapInArrow` runs."""
        for outcome in run(self, batches):
            yield pa.record_batch([pa.array([msgspec.json.encode(outcome)], pa.binary())], names=["outcome"])


def outcome_of(encoded: bytes) -> Outcome:
    """An outcome as the driver gets it."""
    return _decoder.decode(encoded)


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


@dataclass
class _Counts:
    """Records of one topic-partition, as `index.Read` has them."""

    first: int
    last: int
    read: int = 0
    landed: int = 0
    skipped: int = 0
    dead: int = 0
    late: int = 0


@dataclass
class _Waiting:
    """Converted rows of one topic-partition that wait to be sorted into output partitions together."""

    directories: list[str] = field(default_factory=list)
    offsets: list[pa.Array] = field(default_factory=list)
    payloads: list[Any] = field(default_factory=list)
    size: int = 0


class _Task:
    def __init__(self, work: Work) -> None:
        self.work = work
        self.store = work.stores(work.bucket)
        self.staging = Staging(self.store, work.keys, work.files, work.commit)
        self.refused: Refused | None = None
        self._columns = work.columns
        self._grown = work.look_only
        self._counts: dict[int, _Counts] = {}
        self._waiting: dict[int, _Waiting] = {}
        self._dead: dict[int, list[tuple[int, bytes]]] = {}

    def take(self, batch: pa.RecordBatch) -> None:
        """One batch of records; Spark's source reads one topic-partition a task."""
        for partition in pc.unique(batch.column("partition")).to_pylist():
            same = pc.equal(batch.column("partition"), partition)
            self._take(partition, batch if pc.all(same).as_py() else batch.filter(same))

    def outcome(self) -> Outcome | None:
        """What the task has to say; None when it read nothing."""
        if self.refused is not None:
            self.staging.abort()
            return self.refused
        if self._grown:
            self.staging.abort()
            first = min(((partition, counts.first) for partition, counts in self._counts.items()), default=None)
            return Grown(*first, self._columns) if first else None
        for partition in list(self._waiting):
            self._sort(partition)
        for partition, letters in self._dead.items():
            self.staging.add_dead_letters(partition, letters)
        files = self.staging.finish()
        reads = {
            partition: Read(c.first, c.last + 1, c.read, c.landed, c.skipped, c.dead, c.late)
            for partition, c in self._counts.items()
        }
        return Done(files, reads, dict(getattr(self.store, "requests", {})))

    def _take(self, partition: int, batch: pa.RecordBatch) -> None:
        offsets = batch.column("offset")
        counts = self._counts.setdefault(partition, _Counts(offsets[0].as_py(), 0))
        converted = self.work.conversion(batch.column("value"), self._columns)
        if converted.columns != self._columns and self.work.conversion.has_columns:
            self._columns, self._grown = converted.columns, True
            self.staging.abort()  # all of it will be read once more, with these columns
            self._waiting.clear()
        if converted.refused and not self._refuse(partition, batch, "convert", converted.refused):
            return
        counts.last = offsets[-1].as_py()
        counts.read += batch.num_rows
        counts.skipped += converted.skipped
        counts.dead += len(converted.refused)
        counts.late += pc.sum(pc.less(_milliseconds(batch), self.work.hour_start_ms)).as_py() or 0
        if converted.payload is not None and not self._grown:
            counts.landed += self._lay_out(partition, batch, converted)

    def _lay_out(self, partition: int, batch: pa.RecordBatch, converted: Converted) -> int:
        """Route the converted rows; how many found their place."""
        kept, payload = converted.kept, converted.payload
        directory = self.work.keys.fixed_directory(partition)
        if directory is not None:
            offsets = batch.column("offset")
            self.staging.add(partition, directory, offsets if kept is None else offsets.take(kept), payload)
            return len(payload)
        rows = batch if kept is None else batch.take(kept)
        directories = self.work.keys.directories(partition, self._fields(rows), rows.num_rows)
        lost = {row: str(one) for row, one in enumerate(directories) if isinstance(one, Unplaceable)}
        offsets = rows.column("offset")
        if lost:
            if not self._refuse(partition, rows, "layout", lost):
                return 0
            self._counts[partition].dead += len(lost)
            rest = pa.array([row for row in range(rows.num_rows) if row not in lost], pa.int64())
            offsets, payload = offsets.take(rest), payload.take(rest)
        waiting = self._waiting.setdefault(partition, _Waiting())
        waiting.directories.extend(one for one in directories if isinstance(one, str))
        waiting.offsets.append(offsets)
        waiting.payloads.append(payload)
        waiting.size += payload.nbytes
        # Sorting much at once makes long runs per output partition, whatever their number.
        if waiting.size >= self.work.files.budget // 8:
            self._sort(partition)
        return len(offsets)

    def _fields(self, rows: pa.RecordBatch) -> Fields:
        keys = self.work.keys
        return Fields(
            values=rows.column("value").to_pylist() if keys.needs("value") else (),
            keys=rows.column("key").to_pylist() if keys.needs("key") else (),
            headers=rows.column("headers").to_pylist() if keys.needs("header") else (),
            timestamps=_milliseconds(rows).to_pylist() if keys.needs("date") else (),
        )

    def _sort(self, partition: int) -> None:
        waiting = self._waiting.pop(partition)
        if not waiting.directories:
            return
        if isinstance(waiting.payloads[0], pa.RecordBatch):
            payload = pa.Table.from_batches(waiting.payloads).combine_chunks().to_batches()[0]
        else:
            payload = pa.concat_arrays(waiting.payloads)
        directories = pa.array(waiting.directories, pa.string())
        self.staging.add_sorted(partition, directories, pa.concat_arrays(waiting.offsets), payload)

    def _refuse(self, partition: int, rows: pa.RecordBatch, stage: str, refusals: Refusals) -> bool:
        """Note refused rows as dead letters; False when the sink tolerates none and the task must stop."""
        if self._grown:
            return True  # all of it will be read once more, and judged by all columns
        offsets = rows.column("offset")
        first = min(refusals)
        if not self.work.tolerant:
            self.refused = Refused(partition, offsets[first].as_py(), stage, refusals[first])
            return False
        letters = self._dead.setdefault(partition, [])
        milliseconds = _milliseconds(rows)
        for row, reason in refusals.items():
            offset = offsets[row].as_py()
            line = dead_letters.line(
                topic=self.work.keys.topic,
                partition=partition,
                offset=offset,
                timestamp_ms=milliseconds[row].as_py(),
                key=rows.column("key")[row].as_py(),
                value=rows.column("value")[row].as_py(),
                headers=rows.column("headers")[row].as_py(),
                stage=stage,
                error="RecordError",
                message=reason,
            )
            letters.append((offset, line))
        if sum(len(line) for _, line in letters) >= self.work.files.budget // 8:
            self.staging.add_dead_letters(partition, self._dead.pop(partition))
        return True


def _milliseconds(rows: pa.RecordBatch) -> pa.Array:
    """Record timestamps; Spark hands them over in microseconds."""
    return pc.divide(rows.column("timestamp").cast(pa.int64()), 1000)


def united(columns: Columns, grown: Iterable[Grown]) -> Columns:
    """Columns of all tasks; where two disagree the earlier topic-partition and offset decides."""
    for one in sorted(grown, key=lambda one: (one.partition, one.offset)):
        columns = kinds.agree(columns, one.columns)
    return columns


def merged(reads: Iterable[Mapping[int, Read]]) -> dict[int, Read]:
    """Counts of all tasks per topic-partition; a long range is read by several."""
    total: dict[int, Read] = {}
    for counts in reads:
        for partition, read in counts.items():
            have = total.get(partition)
            total[partition] = read if have is None else _sum(have, read)
    return total


def _sum(one: Read, other: Read) -> Read:
    return Read(
        min(one.start, other.start),
        max(one.end, other.end),
        one.read + other.read,
        one.landed + other.landed,
        one.skipped + other.skipped,
        one.dead + other.dead,
        one.late + other.late,
    )
