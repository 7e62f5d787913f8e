"""Staging: the open files of one task. Routes rows to output partitions, closes files by the flush rules, and stays
inside the memory budget by moving bytes to local disk, never by shedding small files.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from s3lake.commit.index import File
from s3lake.encode import encoder
from s3lake.errors import FencedError, S3LakeError
from s3lake.layout.key import KeyRule
from s3lake.store import COMMIT, Store
from s3lake.store.upload import Spill, Upload

if TYPE_CHECKING:
    from s3lake.sink import Sink


@dataclass(frozen=True)
class FileRule:
    """How a sink's files are written and when they are closed, as plain values; sizes are bytes."""

    format: str
    codec: str
    level: int | None
    count: int
    size: int
    budget: int
    exactly_once: bool

    @classmethod
    def of(cls, sink: Sink) -> FileRule:
        """The rule of `sink`."""
        return cls(
            format=sink.format.type,
            codec=sink.format.codec,
            level=sink.format.level,
            count=sink.flush.count,
            size=sink.flush.size,
            budget=sink.memory_budget,
            exactly_once=sink.exactly_once,
        )

    @property
    def exact(self) -> bool:
        """Whether encoded bytes are known before they are encoded."""
        return self.codec == "none" and self.format != "parquet"


class _OpenFile:
    def __init__(self, upload: Upload, spill: Spill, rule: FileRule, partition: int, first_offset: int) -> None:
        self.upload = upload
        self.encoder = encoder(rule.format, rule.codec, rule.level, upload.write, spill, chunk=rule.budget // 8)
        self.partition = partition
        self.first_offset = self.last_offset = first_offset
        self.records = 0

    @property
    def held(self) -> int:
        return self.encoder.memory + self.upload.held

    @property
    def size(self) -> int:
        return self.upload.size + self.encoder.pending


class Staging:
    """Every file that one task has open, and reports of those it has closed."""

    def __init__(self, store: Store, keys: KeyRule, rule: FileRule, commit: str) -> None:
        self.closed: list[File] = []
        self._store, self._keys, self._rule = store, keys, rule
        self._metadata = {COMMIT: commit}
        self._spill = Spill()
        self._open: dict[tuple[int, str], _OpenFile] = {}

    def add(self, partition: int, directory: str, offsets: pa.Int64Array, payload: Any) -> None:
        """Append rows of one topic-partition, in offset order, to the file of one output partition."""
        self._append(partition, directory, offsets, payload)
        self._relieve()

    def add_sorted(self, partition: int, directories: pa.StringArray, offsets: pa.Int64Array, payload: Any) -> None:
        """Append rows of one topic-partition, in offset order, each to the file of its own output partition."""
        codes = directories.dictionary_encode()
        order = pc.sort_indices(codes.indices)  # stable, so offsets stay in order within an output partition
        offsets, payload = offsets.take(order), payload.take(order)
        start = 0
        for run in pc.value_counts(codes.indices.take(order)).to_pylist():
            directory = codes.dictionary[run["values"]].as_py()
            rows = slice(start, start + run["counts"])
            self._append(partition, directory, offsets[rows], payload[rows])
            start = rows.stop
        self._relieve()

    def add_dead_letters(self, partition: int, letters: list[tuple[int, bytes]]) -> None:
        """Write one dead-letter object from refused records: their offsets and their lines."""
        letters = sorted(letters)
        first, last = letters[0][0], letters[-1][0]
        upload = Upload(self._store, self._keys.dead_letters_key(partition, first), self._metadata, self._spill)
        try:
            upload.write(b"".join(line + b"\n" for _, line in letters))
            self._report(upload, partition, first, last, len(letters), "dead_letters")
        except S3LakeError:
            with suppress(S3LakeError):
                upload.abort()
            raise

    def finish(self) -> list[File]:
        """Close every file: reports of all."""
        for where in list(self._open):
            self._close(where)
        self._spill.close()
        if not self._rule.exactly_once:
            for file in self.closed:
                self._publish(file)
        return self.closed

    def abort(self) -> None:
        """Drop every upload, closed files' included: nothing of this task will be visible.

        A store that is away keeps them, invisible, until the bucket's lifecycle rule ends them; that is no error.
        """
        with suppress(S3LakeError):
            for file in self._open.values():
                file.upload.abort()
            for closed in self.closed:
                self._store.abort_upload(closed.key, closed.upload)
        self._open.clear()
        self.closed.clear()
        self._spill.close()

    def _append(self, partition: int, directory: str, offsets: pa.Int64Array, payload: Any) -> None:
        start = 0
        while start < len(offsets):
            file = self._open.get((partition, directory))
            if file is None:
                file = self._begin(partition, directory, offsets[start].as_py())
            rows = self._room(file, payload, start)
            file.encoder.write(payload.slice(start, rows))
            start += rows
            file.records += rows
            file.last_offset = offsets[start - 1].as_py()
            if self._full(file):
                self._close((partition, directory))

    def _begin(self, partition: int, directory: str, offset: int) -> _OpenFile:
        upload = Upload(self._store, self._keys.key(directory, partition, offset), self._metadata, self._spill)
        file = self._open[partition, directory] = _OpenFile(upload, self._spill, self._rule, partition, offset)
        return file

    def _close(self, where: tuple[int, str]) -> None:
        file = self._open[where]  # it stays open until it is reported, so that `abort` finds it
        file.encoder.close()
        self._report(file.upload, file.partition, file.first_offset, file.last_offset, file.records, "data")
        del self._open[where]

    def _report(self, upload: Upload, partition: int, first: int, last: int, records: int, kind: str) -> None:
        identity, parts = upload.finish()
        self.closed.append(File(upload.key, identity, parts, partition, first, last, records, upload.size, kind))

    def _publish(self, file: File) -> None:
        """Make a file visible at once; never over another one, which a listed commit may consist of."""
        if self._store.complete_upload(file.key, file.upload, file.parts) == "completed":
            return
        head = self._store.head(file.key)
        if head is None or head.metadata.get(COMMIT) != self._metadata[COMMIT]:
            raise FencedError(f"key {file.key} is taken by another attempt's file; its name needs a suffix")

    def _full(self, file: _OpenFile) -> bool:
        if file.records >= self._rule.count:
            return True
        if file.size < self._rule.size:
            return False
        file.encoder.drain()  # what is pending was counted before compression
        # Creeping up to the limit would cut row groups and blocks ever smaller: within a twentieth is full.
        return file.size + (0 if self._rule.exact else self._rule.size // 20) >= self._rule.size

    def _room(self, file: _OpenFile, payload: Any, start: int) -> int:
        """How many rows from `start` the file takes; at least one, and the one that fills it is the last."""
        rows: int = min(len(payload) - start, self._rule.count - file.records)
        left = max(self._rule.size - file.size, 0 if self._rule.exact else self._rule.size // 20)
        part = payload.slice(start, rows)
        if part.nbytes + rows < left:
            return rows
        if isinstance(part, pa.RecordBatch):
            return max(1, min(rows, left * rows // max(1, int(part.nbytes))))
        ends = pc.cumulative_sum(pc.add(pc.binary_length(part).cast(pa.int64()), 1))
        return min(rows, int(pc.sum(pc.less(ends, left)).as_py()) + 1)

    def _relieve(self) -> None:
        """Keep all open files within the budget: the largest give their bytes to the disk."""
        if sum(file.held for file in self._open.values()) <= self._rule.budget // 2:
            return
        for file in sorted(self._open.values(), key=lambda file: file.held, reverse=True)[
            : max(1, len(self._open) // 2)
        ]:
            file.encoder.relieve()
            file.upload.spill()
