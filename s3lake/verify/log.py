"""What verifying needs of where records come from: those of given offsets, once more, and who may have changed them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from s3lake.source.offsets import Snapshot

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

    def only(self, positions: Sequence[int]) -> "Records":
        """Some of the records."""

        def some(of: Sequence[Any]) -> list[Any]:
            return [of[position] for position in positions] if of else []

        partition, *columns = self
        return Records(partition, *map(some, columns))

    def within(self, start: int, end: int) -> "Records":
        """Records with offsets of `[start, end)`; the same object where that is all of them."""
        if start <= self.offsets[0] and self.offsets[-1] < end:
            return self
        return self.only([position for position, offset in enumerate(self.offsets) if start <= offset < end])


class LogStartMoved(Exception):
    """The source expired offsets between asking for the log start and reading them."""


class Log(Protocol):
    """A topic's log, as verifying needs it."""

    def snapshot(self, topic: str, hour: str) -> Snapshot:
        """See `Offsets.snapshot`."""
        ...

    def first_since(self, topic: str, epoch_ms: int) -> Mapping[int, int]:
        """See `Offsets.first_since`."""
        ...

    def compacted(self, topic: str) -> bool:
        """Whether records may vanish between others, because a later one has their key."""
        ...

    def read(self, topic: str, ranges: Mapping[int, tuple[int, int]], parts: Collection[str] = ()) -> Iterator[Records]:
        """Committed records of `[start, end)` per topic-partition, each in offset order, until every end is reached.

        `parts` says what else is needed of them, "key" or "headers": each costs.

        Raises:
            LogStartMoved: a start is not there any more.
            SourceUnavailableError: nothing came for too long.
        """
        ...
