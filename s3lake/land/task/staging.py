"""Staging: the open files of one task. Routes rows to output partitions, closes files by the flush rules, and stays
inside the memory budget by moving bytes to local disk, never by shedding small files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from s3lake.errors import S3LakeError, TooManyFilesError
from s3lake.index.commit.documents import DEAD_LETTERS, MOST_FILES, File
from s3lake.index.store import COMMIT, Store
from s3lake.index.store.upload import Spill, Upload
from s3lake.records.encode import FileFormat, open_encoder, prepare_rows
from s3lake.records.encode.csv_rows import list_headerless_columns
from s3lake.records.encode.formats import FORMATS
from s3lake.records.layout.object_keys import FileNumbers, KeyLayout

Streams = dict[str, Any]
"""Payloads of the same rows: `data`, and sidecars by name. Texts (`pa.BinaryArray`) or columns (`pa.RecordBatch`)."""

StreamSchemas = tuple[tuple[str, Any], ...]
"""What rows of one file have in common: their streams, and the schemas of those."""

_Where = tuple[int, str, StreamSchemas]


@dataclass(frozen=True)
class FileRule:
    """How a sink's files are written and when they are closed, as plain values; sizes are bytes.

    Attributes:
        formats: the file format of each stream.
        span_ms: the times of a file lie less than that apart; None for any.
        endings: the ends of the keys of each stream but `data`.
    """

    formats: Mapping[str, FileFormat]
    count: int
    size: int
    span_ms: int | None
    budget: int
    endings: Mapping[str, str] = field(default_factory=dict)

    @property
    def exact(self) -> bool:
        """True if the number of encoded bytes is known before encoding."""
        data = self.formats["data"]
        return data.codec == "none" and not FORMATS[data.type].packed


def key_of(keys: KeyLayout, rule: FileRule, group: str, span: FileNumbers, stream: str) -> str:
    """Return the key of a file, or of its sidecar `stream`."""
    return keys.key(group, span, None if stream == "data" else rule.endings[stream])


@dataclass(frozen=True)
class StagingRows:
    """Rows of one topic-partition, in offset order; times are epoch milliseconds.

    Attributes:
        clock: what a file's span counts by where that is not the records' timestamps.
    """

    offsets: pa.Int64Array
    timestamps: pa.Int64Array
    streams: Streams
    clock: pa.Int64Array | None = None

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def times(self) -> pa.Int64Array:
        """The times that count for a file's span."""
        return self.timestamps if self.clock is None else self.clock

    @property
    def nbytes(self) -> int:
        """Bytes of all streams."""
        return sum(payload.nbytes for payload in self.streams.values())

    @property
    def schemas(self) -> StreamSchemas:
        return tuple((name, getattr(payload, "schema", None)) for name, payload in self.streams.items())

    def prepare_streams(self, formats: Mapping[str, FileFormat]) -> StagingRows:
        """Return the rows as encoders take them fastest, before they are split among files."""
        return replace(self, streams={name: prepare_rows(formats[name], one) for name, one in self.streams.items()})

    def take(self, order: pa.Array) -> StagingRows:
        """Return the rows with these numbers, in this order."""
        return self._select(lambda column: column.take(order))

    def slice(self, start: int, count: int) -> StagingRows:
        """Return some rows, without a copy."""
        return self._select(lambda column: column.slice(start, count))

    def _select(self, select: Callable[[Any], Any]) -> StagingRows:
        streams = {name: select(payload) for name, payload in self.streams.items()}
        clock = None if self.clock is None else select(self.clock)
        return StagingRows(select(self.offsets), select(self.timestamps), streams, clock)

    @classmethod
    def concat(cls, parts: Sequence[StagingRows]) -> StagingRows:
        """Rows of several batches with the same schemas, one after the other."""
        if len(parts) == 1:
            return parts[0]
        streams = {name: _concat([part.streams[name] for part in parts]) for name in parts[0].streams}
        offsets, timestamps = [part.offsets for part in parts], [part.timestamps for part in parts]
        clocks = [part.clock for part in parts if part.clock is not None]
        clock = pa.concat_arrays(clocks) if clocks else None
        return cls(pa.concat_arrays(offsets), pa.concat_arrays(timestamps), streams, clock)


def _concat(payloads: Sequence[Any]) -> Any:
    if isinstance(payloads[0], pa.RecordBatch):
        return pa.Table.from_batches(payloads).combine_chunks().to_batches()[0]
    return pa.concat_arrays(payloads)


@dataclass
class _Stream:
    """One object of an open file."""

    upload: Upload
    encoder: Any

    @property
    def buffered(self) -> int:
        return int(self.encoder.memory) + self.upload.buffered


@dataclass
class _OpenFile:
    """A file that takes rows.

    Attributes:
        counted: how many bytes of it `Staging.buffered` counts.
    """

    group: str
    partition: int
    streams: dict[str, _Stream]
    span: FileNumbers
    earliest: int
    latest: int
    counted: int = 0

    @property
    def buffered(self) -> int:
        return sum(stream.buffered for stream in self.streams.values())

    @property
    def size(self) -> int:
        return sum(stream.upload.size + stream.encoder.pending for stream in self.streams.values())


def _widen(low: int, high: int, times: pa.Int64Array) -> tuple[int, int]:
    bounds = pc.min_max(times).as_py()
    return min(low, bounds["min"]), max(high, bounds["max"])


class Staging:
    """Every file that one task has open, and reports of those it has closed.

    Attributes:
        closed: the files that are written and not yet visible.
        keys: the layout of the objects' keys.
        buffered: the bytes of all open files that are in memory. Each change of a file is counted, because a sum over
            thousands of open files would cost more than a small batch does.
    """

    def __init__(self, store: Store, keys: KeyLayout, rule: FileRule, commit: str) -> None:
        self.closed: list[File] = []
        self._store, self.keys, self._rule = store, keys, rule
        self._metadata = {COMMIT: commit}
        self._spill = Spill()
        self._open: dict[_Where, _OpenFile] = {}
        self.buffered = 0
        self._last: dict[str, tuple[int, StagingRows]] = {}  # where a key has no offset: the last record of each group
        self._last_bytes = 0

    def add(self, partition: int, groups: str | pa.StringArray, rows: StagingRows) -> None:
        """Append rows of one topic-partition to the file of one output partition, or each row to that of its own."""
        rows = rows.prepare_streams(self._rule.formats)
        if isinstance(groups, str):
            self._append(partition, groups, rows, rows.schemas)
        else:
            codes = groups.dictionary_encode()
            order = pc.sort_indices(codes.indices)  # stable, so offsets stay in order within an output partition
            rows, start = rows.take(order), 0
            schemas = rows.schemas
            for run in pc.value_counts(codes.indices.take(order)).to_pylist():
                group = codes.dictionary[run["values"]].as_py()
                self._append(partition, group, rows.slice(start, run["counts"]), schemas)
                start += run["counts"]
        self._free_memory()

    def add_dead_letters(self, partition: int, dead_letters: list[tuple[int, bytes]]) -> None:
        """Write one dead-letter object from refused records: their offsets and their lines."""
        self._refuse_more()
        dead_letters = sorted(dead_letters)
        span = FileNumbers(dead_letters[0][0], dead_letters[-1][0], 0, 0, len(dead_letters))
        key = self.keys.dead_letters_key(partition, span.first)
        upload = Upload(self._store, key, self._metadata, self._spill)
        try:
            upload.write(b"".join(line + b"\n" for _, line in dead_letters))
            self._report(upload, key, partition, span, DEAD_LETTERS)
        except S3LakeError:
            with suppress(S3LakeError):
                upload.abort()
            raise

    def close_files(self, partition: int) -> None:
        """Close the open files of a topic-partition."""
        for where in [one for one in self._open if one[0] == partition]:
            self._close(where)

    def finish(self) -> list[File]:
        """Close every file: reports of all."""
        self._write_last()
        for where in list(self._open):
            self._close(where)
        self._spill.close()
        return self.closed

    def abort(self) -> None:
        """Drop every upload, closed files' included: nothing of this task will be visible.

        A store that is away keeps them, invisible, until the bucket's lifecycle rule ends them; that is not an error.
        """
        with suppress(S3LakeError):
            for file in self._open.values():
                for stream in file.streams.values():
                    stream.upload.abort()
            for closed in self.closed:
                self._store.abort_upload(closed.key, closed.upload)
        self._open.clear()
        self.buffered = 0
        self.closed.clear()
        self._spill.close()

    def _append(self, partition: int, group: str, rows: StagingRows, schemas: StreamSchemas) -> None:
        if self.keys.replaces:
            self._note_last(partition, group, rows)
            return
        where = (partition, group, schemas)
        start = 0
        while start < len(rows):
            file = self._open.get(where)
            if file is not None and self._exceeds_span(file, rows, start):
                self._close(where)
                file = None
            if file is None:
                file = self._begin(where, rows.slice(start, 1))
            taken = rows.slice(start, self._count_room(file, rows, start))
            self._write(file, taken)
            start += len(taken)
            if self._is_full(file):
                self._close(where)

    def _begin(self, where: _Where, first: StagingRows) -> _OpenFile:
        self._refuse_more()
        partition, group, _ = where
        offset, timestamp = first.offsets[0].as_py(), first.timestamps[0].as_py()
        span = FileNumbers(offset, offset, timestamp, timestamp, 0)
        streams = {}
        for name in first.streams:
            key = None if self.keys.deferred else key_of(self.keys, self._rule, group, span, name)
            upload = Upload(self._store, key, self._metadata, self._spill)
            form = self._rule.formats[name]
            streams[name] = _Stream(upload, open_encoder(form, upload.write, self._spill, chunk=self._rule.budget // 8))
        time = first.times[0].as_py()
        file = self._open[where] = _OpenFile(group, partition, streams, span, time, time)
        return file

    def _refuse_more(self) -> None:
        if len(self.closed) + len(self._open) >= MOST_FILES:
            raise TooManyFilesError(
                f"a micro-batch has more than {MOST_FILES:,} files in one task alone: raise flush.count or flush.size, "
                "or let the layout name fewer places"
            )

    def _write(self, file: _OpenFile, rows: StagingRows) -> None:
        for name, stream in file.streams.items():
            stream.encoder.write(rows.streams[name])
        low, high = file.span.min_timestamp, file.span.max_timestamp
        if self.keys.deferred:
            low, high = _widen(low, high, rows.timestamps)
        if self._rule.span_ms is not None:
            file.earliest, file.latest = _widen(file.earliest, file.latest, rows.times)
        file.span = FileNumbers(file.span.first, rows.offsets[-1].as_py(), low, high, file.span.records + len(rows))
        self._count(file)

    def _count(self, file: _OpenFile) -> None:
        """Count what the file has in memory now."""
        before, file.counted = file.counted, file.buffered
        self.buffered += file.counted - before

    def _close(self, where: _Where) -> None:
        file = self._open[where]  # it stays open until it is reported, so that `abort` finds it
        for name, schema in where[2]:
            stream = file.streams[name]
            stream.encoder.close()
            key = key_of(self.keys, self._rule, file.group, file.span, name)
            columns = list_headerless_columns(self._rule.formats[name], schema)
            self._report(stream.upload, key, file.partition, file.span, name, group=file.group, columns=columns)
        del self._open[where]
        self.buffered -= file.counted

    def _report(self, upload: Upload, key: str, partition: int, span: FileNumbers, stream: str, **more: Any) -> None:
        identity, parts = upload.finish(key)
        file = File(key, identity, parts, partition, span.first, span.last, span.records, upload.size, stream, **more)
        self.closed.append(file)

    def _note_last(self, partition: int, group: str, rows: StagingRows) -> None:
        last = rows.take(pa.array([len(rows) - 1]))  # a slice would keep all that it was cut from
        before = self._last.get(group)
        if before is not None and before[0] == partition and before[1].offsets[0].as_py() > last.offsets[0].as_py():
            return  # of another schema: the parts of a batch come one after the other
        self._last[group] = partition, last
        self._last_bytes += last.nbytes - (before[1].nbytes if before else 0)
        if self._last_bytes > self._rule.budget // 2:
            self._write_last()

    def _write_last(self) -> None:
        """Upload the last records so far; of two with one key the later one is reported later."""
        for group, (partition, rows) in self._last.items():
            where = (partition, group, rows.schemas)
            self._write(self._begin(where, rows), rows)
            self._close(where)
        self._last.clear()
        self._last_bytes = 0

    def _is_full(self, file: _OpenFile) -> bool:
        if file.span.records >= self._rule.count:
            return True
        if file.size < self._rule.size:
            return False
        for stream in file.streams.values():
            stream.encoder.drain()  # what is pending was counted before compression
        self._count(file)
        # Creeping up to the limit would cut row groups and blocks ever smaller: within a twentieth is full.
        return file.size + (0 if self._rule.exact else self._rule.size // 20) >= self._rule.size

    def _exceeds_span(self, file: _OpenFile, rows: StagingRows, start: int) -> bool:
        """Return whether adding the row at `start` would make the file cover more time than the sink allows."""
        if self._rule.span_ms is None:
            return False
        time = rows.times[start].as_py()
        return bool(max(time, file.latest) - min(time, file.earliest) >= self._rule.span_ms)

    def _count_room(self, file: _OpenFile, rows: StagingRows, start: int) -> int:
        """How many rows from `start` the file takes; at least one, and the one that fills it is the last."""
        count = min(len(rows) - start, self._rule.count - file.span.records)
        if self._rule.span_ms is not None:
            count = self._count_within_span(file, rows.times.slice(start, count))
        left = max(self._rule.size - file.size, 0 if self._rule.exact else self._rule.size // 20)
        part = rows.slice(start, count)
        if part.nbytes + count < left:
            return count
        if len(part.streams) > 1 or isinstance(part.streams["data"], pa.RecordBatch):
            return int(max(1, min(count, left * count // max(1, part.nbytes))))
        ends = pc.cumulative_sum(pc.add(pc.binary_length(part.streams["data"]).cast(pa.int64()), 1))
        return min(count, int(pc.sum(pc.less(ends, left)).as_py()) + 1)

    def _count_within_span(self, file: _OpenFile, times: pa.Int64Array) -> int:
        """How many rows keep the file's time span below its limit; the first one does, or it opened the file."""
        highest = pc.max_element_wise(pc.cumulative_max(times), file.latest)
        lowest = pc.min_element_wise(pc.cumulative_min(times), file.earliest)
        fitting = pc.less(pc.subtract(highest, lowest), self._rule.span_ms)
        return max(1, int(pc.sum(fitting).as_py()))

    def _free_memory(self) -> None:
        """Keep all open files within the budget: the largest give their bytes to the disk."""
        if self.buffered <= self._rule.budget // 2:
            return
        for file in sorted(self._open.values(), key=attrgetter("counted"), reverse=True)[
            : max(1, len(self._open) // 2)
        ]:
            for stream in file.streams.values():
                stream.encoder.relieve()
                stream.upload.spill()
            self._count(file)
