"""Tiles: for one sink, topic and hour the half-open offset interval of every topic-partition.

Pure rules over offsets (docs/design/commit.md, open and close). Only `accept` changes a start or an end that
was written. A topic-partition that a tile does not name is the empty interval at 0.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from s3lake import hours
from s3lake.errors import DataLossError, KafkaUnavailableError
from s3lake.index.plan.counts import Counts
from s3lake.source.offsets import LogRange, TopicOffsets

VERSION = 1
"""The version of all documents of the index."""


class TileRange(msgspec.Struct, frozen=True):
    """One topic-partition's part of a tile: `[start, end)`, landed up to `committed`; `end` is None while open."""

    start: int
    committed: int
    end: int | None = None


Interval = tuple[int, int, int]
"""Topic-partition, first offset, end: half-open."""


class Wait(msgspec.Struct, frozen=True, array_like=True):
    """How long the records of one commit had waited, in milliseconds: that many, at least and at most."""

    records: int
    least_ms: int
    most_ms: int


class Sums(Counts, frozen=True, kw_only=True):
    """The sums of a tile's commits: of their counts, offsets and objects.

    Attributes:
        offsets: the number of offsets that their intervals cover.
        expired: offsets that they recorded as expired.
        files: objects but for dead letters, which are `dead_files`: data files and their sidecars.
        records: records in those files, sidecars apart.
        bytes: the stored size of all objects, in bytes.
        landed_ms: when the last of them was made, epoch milliseconds.
        waits: how long their records had waited.
        taken: dead letters that replays have landed.
    """

    offsets: int = 0
    expired: int = 0
    files: int = 0
    dead_files: int = 0
    records: int = 0
    bytes: int = 0
    landed_ms: int = 0
    waits: tuple[Wait, ...] = ()
    taken: int = 0


NOTHING = TileRange(0, 0, 0)
UNKNOWN_END = 2**62
"""In `Tile.burnt`: the manifest of a commit that was rolled back is deleted, so its end is not known."""


class Tile(msgspec.Struct, frozen=True):
    """The document of one hour.

    Attributes:
        rev: +1 with every change, so no ETag comes twice.
        partitions: the offset range of each topic-partition.
        commits: ids of the commits whose files are this tile's data.
        pending: id of the commit that is being made visible; anyone may finish it.
        garbage: ids of commits whose objects must go.
        burnt: the end, for each topic-partition, of the offsets that rolled back commits had read: keys below it may
            have been used before, and names need a suffix.
        expired: [topic-partition, first, end) that Kafka had expired before they were landed.
        foreign: keys taken by objects that s3lake did not write; nothing is written until they are deleted.
        took_ms: how long the last of `commits` took, from its plan to the tile that lists it.
        epochs: the epoch of the leader under which the log was seen to reach `committed`, for each topic-partition.
        sums: the sums of `commits`.
        stamped_ahead: the offset and timestamp, for each topic-partition, of the first record stamped after this hour,
            if its timestamp was more than an hour ahead of the writer's clock: later hours cannot be told apart
            (`stamps.py`).
        before_start: the number of offsets, for each topic-partition, that the log had below `start` when the tile was
            opened; only in a tile that was opened with no other before it, and not at the log start.
    """

    hour: str
    partitions: dict[int, TileRange]
    version: int = VERSION
    rev: int = 0
    commits: tuple[str, ...] = ()
    pending: str | None = None
    garbage: tuple[str, ...] = ()
    burnt: dict[int, int] = {}
    expired: tuple[Interval, ...] = ()
    foreign: tuple[str, ...] = ()
    sums: Sums = Sums()
    took_ms: int = 0
    epochs: dict[int, int] = {}
    stamped_ahead: dict[int, tuple[int, int]] = {}
    before_start: dict[int, int] = {}

    @property
    def closed(self) -> bool:
        """True if every edge is written."""
        return bool(self.partitions) and all(span.end is not None for span in self.partitions.values())

    @property
    def landed(self) -> bool:
        """True if the tile is closed and everything up to its end is committed."""
        return self.closed and all(span.committed == span.end for span in self.partitions.values())

    @property
    def complete(self) -> bool:
        """True if the tile is finished: all is landed, no commit is pending, no garbage is left."""
        return self.landed and self.pending is None and not self.garbage

    def revise(self, **changes: Any) -> "Tile":
        """Return the next revision with these changes."""
        return msgspec.structs.replace(self, rev=self.rev + 1, **changes)


def open_tile(
    hour: str,
    kafka: TopicOffsets,
    before: Tile | None,
    after: Tile | None,
    *,
    earliest: bool,
    former: Tile | None = None,
    recreated: bool = False,
    begins: Mapping[int, int] = {},
    stamped_ahead: Mapping[int, tuple[int, int]] = {},
) -> Tile:
    """Return the tile of `hour` as it is first written.

    Args:
        hour: the hour to open.
        kafka: offsets around `hour`.
        before: the tile of the greatest earlier hour, closed; None if there is none.
        after: the tile of the smallest later hour; None if there is none.
        earliest: True to begin at the log start instead of at the hour's first record, if there is no `before`.
        former: the last tile of an earlier topic of this name, whose keys this one may repeat; without `before`.
        begins: the offsets to begin at instead of the log start, if there is no `before`, and with `earliest`.
        recreated: the log may be shorter than an earlier topic of this name was.
        stamped_ahead: see `Tile`.

    Raises:
        KafkaUnavailableError: a topic-partition of an adjacent tile is missing in Kafka's answer.
    """
    partitions: dict[int, TileRange] = {}
    partitions_of_all = (
        set(kafka.partitions) | set(before.partitions if before else ()) | set(after.partitions if after else ())
    )
    for partition in sorted(partitions_of_all):
        log = require_log_range(kafka, partition)
        start = max(_start(hour, partition, log, before, earliest=earliest), 0 if before else begins.get(partition, 0))
        end = None
        if after is not None:
            ceiling = after.partitions.get(partition, NOTHING).start
            start = min(start, ceiling)
            adjacent = hours.shift(hour, 1) == after.hour
            end = ceiling if adjacent else min(max(log.hour_end, start), ceiling)
        partitions[partition] = TileRange(start, start, end)
    if former is not None:
        burnt = extend_burnt(former.burnt, {number: _until(span) for number, span in former.partitions.items()})
    else:
        burnt = before.burnt if before else {}
        if not recreated:  # whatever was rolled back had read no more than there is now
            ends = {number: log.log_end for number, log in kafka.partitions.items()}
            burnt = {n: ends.get(n, end) if end == UNKNOWN_END else end for n, end in burnt.items()}
    return Tile(
        hour,
        partitions,
        burnt=_keep_burnt(burnt, partitions),
        epochs=collect_epochs(kafka, partitions),
        stamped_ahead=dict(stamped_ahead),
        before_start={} if before or earliest else _count_before_start(partitions, kafka),
    )


def _count_before_start(partitions: Mapping[int, TileRange], kafka: TopicOffsets) -> dict[int, int]:
    counts = {number: span.start - require_log_range(kafka, number).log_start for number, span in partitions.items()}
    return {number: count for number, count in counts.items() if count > 0}


def collect_epochs(kafka: TopicOffsets, partitions: Iterable[int]) -> dict[int, int]:
    """Return the leaders' epochs that brokers report."""
    logs = {partition: kafka.partitions[partition] for partition in partitions if partition in kafka.partitions}
    return {partition: log.epoch for partition, log in logs.items() if log.epoch is not None}


def extend_burnt(burnt: Mapping[int, int], ends: Mapping[int, int]) -> dict[int, int]:
    """Return `burnt` after the roll back of a commit that had read up to `ends`."""
    return {number: max(burnt.get(number, 0), ends.get(number, 0)) for number in sorted({*burnt, *ends})}


def is_burnt(burnt: Mapping[int, int], intervals: Mapping[int, tuple[int, int]]) -> bool:
    """Return whether names of these offsets may have been used before."""
    return any(start < burnt.get(number, 0) for number, (start, _) in intervals.items())


def _keep_burnt(burnt: Mapping[int, int], partitions: Mapping[int, TileRange]) -> dict[int, int]:
    """Return the part of `burnt` that counts in a tile with these topic-partitions."""
    return {number: end for number, end in burnt.items() if number not in partitions or end > partitions[number].start}


def _until(span: TileRange) -> int:
    return span.committed if span.end is None else max(span.committed, span.end)


def _start(hour: str, partition: int, log: LogRange, before: Tile | None, *, earliest: bool) -> int:
    """Return where a tile begins: without a gap after the hour before, else at its own first record."""
    if before is None:
        return log.log_start if earliest else log.hour_start
    floor = _end(before.partitions.get(partition, NOTHING))
    return floor if hours.shift(before.hour, 1) == hour else max(floor, log.hour_start)


def close_tile(tile: Tile, kafka: TopicOffsets, stamped_ahead: Mapping[int, tuple[int, int]] = {}) -> Tile:
    """Return the tile with its edges written: at the next hour's first record, never below what is committed.

    Args:
        tile: the open tile.
        kafka: offsets around its hour.
        stamped_ahead: see `Tile`.

    Raises:
        KafkaUnavailableError: a topic-partition of the tile is missing in Kafka's answer.
    """
    spans = add_partitions(tile, kafka).partitions
    return tile.revise(
        partitions={
            partition: msgspec.structs.replace(
                span, end=max(span.committed, require_log_range(kafka, partition).hour_end)
            )
            for partition, span in spans.items()
        },
        stamped_ahead={**tile.stamped_ahead, **stamped_ahead},
    )


def require_log_range(kafka: TopicOffsets, partition: int) -> LogRange:
    """The offsets of a topic-partition that a tile names. A topic never loses one, but a broker's metadata may be old.

    Raises:
        KafkaUnavailableError: Kafka did not name it; an edge written now would cut off records that it has.
    """
    log = kafka.partitions.get(partition)
    if log is None:
        raise KafkaUnavailableError(
            f"topic-partition {partition} is in the index, and missing in what the brokers report of its topic now: "
            "their metadata is out of date. The next run asks again"
        )
    return log


def add_partitions(tile: Tile, kafka: TopicOffsets, stamped_ahead: Mapping[int, tuple[int, int]] = {}) -> Tile:
    """Return the open tile with new topic-partitions, from offset 0, and with the records that are stamped ahead.

    It is the same object if nothing is new.
    """
    new = sorted(set(kafka.partitions) - set(tile.partitions))
    noted = {**tile.stamped_ahead, **stamped_ahead}
    if not new and noted == tile.stamped_ahead:
        return tile
    partitions = {**tile.partitions, **{partition: TileRange(0, 0) for partition in new}}
    return tile.revise(partitions=partitions, stamped_ahead=noted)


def advance_committed(tile: Tile, ends: Mapping[int, int]) -> dict[int, TileRange]:
    """Return the tile's topic-partitions with `committed` advanced to `ends`; it never goes back."""
    return {
        partition: msgspec.structs.replace(span, committed=max(span.committed, ends.get(partition, 0)))
        for partition, span in tile.partitions.items()
    }


def join_offset_ranges(intervals: Iterable[Interval]) -> tuple[Interval, ...]:
    """Sort offset ranges, and merge ranges that touch or overlap."""
    whole: list[Interval] = []
    for partition, start, end in sorted(intervals):
        if whole and whole[-1][0] == partition and start <= whole[-1][2]:
            whole[-1] = (partition, whole[-1][1], max(end, whole[-1][2]))
        else:
            whole.append((partition, start, end))
    return tuple(whole)


def find_landed_offsets(newest_first: Iterable[Tile]) -> dict[int, int]:
    """Return how far a topic is landed, as consumers count: one offset per topic-partition.

    It is the end of the furthest interval that is landed. Hours are landed in order, so everything below is landed as
    well, down to the sink's start, but for hours that were passed over: landing one of them later does not move it.
    If nothing is landed it is where the oldest tile begins.

    Args:
        newest_first: the topic's tiles; no more of them are read than it takes.
    """
    reached_offsets: dict[int, int] = {}
    starts: dict[int, int] = {}
    for tile in newest_first:
        for partition, span in tile.partitions.items():
            starts[partition] = span.start
            if partition not in reached_offsets and (tile.landed or span.committed > span.start):
                reached_offsets[partition] = span.committed
        if tile.landed or starts.keys() <= reached_offsets.keys():
            break
    return dict(sorted({**starts, **reached_offsets}.items()))


def _end(span: TileRange) -> int:
    if span.end is None:
        raise DataLossError("a tile with a successor is open: the index was changed by hand or by another program")
    return span.end
