"""The log of a topic as verify reads it: records of given offsets, and what Kafka may have changed since."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from s3lake.source.offsets import TopicOffsets
from s3lake.source.record_batches import OffsetRange
from s3lake.source.sources import RecordSource

Headers = Sequence[tuple[str, bytes | None]]
"""Headers of one record, in order; names may repeat."""

UNREADABLE: Headers = [("", None)]
"""The headers, this very list, of a record whose own ones the client cannot decode: a name is not UTF-8."""


class Records(NamedTuple):
    """Records of one topic-partition, in offset order: sequences of equal length, `keys` and `headers` if asked for."""

    partition: int
    offsets: Sequence[int]
    timestamps: Sequence[int]
    values: Sequence[bytes | None]
    keys: Sequence[bytes | None] = ()
    headers: Sequence[Headers] = ()

    def select(self, positions: Sequence[int]) -> "Records":
        def pick(column: Sequence[Any]) -> list[Any]:
            return [column[position] for position in positions] if column else []

        partition, *columns = self
        return Records(partition, *map(pick, columns))

    def select_range(self, start: int, end: int) -> "Records":
        """Return the records with offsets of `[start, end)`; the same object if that is all of them."""
        if start <= self.offsets[0] and self.offsets[-1] < end:
            return self
        return self.select([position for position, offset in enumerate(self.offsets) if start <= offset < end])


class LogStartMovedError(Exception):
    """The source expired offsets between asking for the log start and reading them."""


class Log(Protocol):
    """A topic's log, as verifying needs it."""

    def snapshot(self, topic: str, hour: str) -> TopicOffsets:
        """See `Offsets.snapshot`."""
        ...

    def find_offset_since(self, topic: str, epoch_ms: int) -> Mapping[int, int]:
        """See `Offsets.find_offset_since`."""
        ...

    def is_compacted(self, topic: str) -> bool:
        """Return whether records may vanish between others, because a later one has their key."""
        ...

    def read(self, topic: str, ranges: Mapping[int, tuple[int, int]], parts: Collection[str] = ()) -> Iterator[Records]:
        """Yield committed records of `[start, end)` per topic-partition, each in offset order, up to every end.

        `parts` names what else is needed of them, "key" or "headers": each costs.

        Raises:
            LogStartMovedError: a start is not there any more.
            SourceUnavailableError: nothing came for too long.
        """
        ...


class SourceLog:
    """The log of a source other than Kafka, read by the reader that its tasks use: it has only this one."""

    def __init__(self, source: RecordSource) -> None:
        self._source = source
        self.snapshot, self.find_offset_since = source.offsets.snapshot, source.offsets.find_offset_since

    def is_compacted(self, topic: str) -> bool:
        """See `Log.is_compacted`: no source knows it, so every missing record is reported."""
        del topic
        return False

    def read(self, topic: str, ranges: Mapping[int, tuple[int, int]], parts: Collection[str] = ()) -> Iterator[Records]:
        """See `Log.read`."""
        names = ["offset", "timestamp", "value", *sorted(parts)]
        for partition, (start, end) in ranges.items():
            if start < end:
                for batch in self._source.reader.batches(topic, [OffsetRange(partition, start, end)], names):
                    yield to_records(partition, batch)


def to_records(partition: int, batch: pa.RecordBatch) -> Records:
    """Return the records of a batch as a task reads them."""
    timestamps = batch.column("timestamp")
    stamps = pc.divide(timestamps.cast(pa.int64()), 1000 if timestamps.type.unit == "us" else 1).to_pylist()
    columns = batch.to_pydict()
    rows = columns.get("headers", ())
    headers: list[Headers] = [[(header["key"], header["value"]) for header in row or ()] for row in rows]
    return Records(partition, columns["offset"], stamps, columns["value"], columns.get("key", ()), headers)
