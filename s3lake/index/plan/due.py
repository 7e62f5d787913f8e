"""Due: which hours a sensor should ask for. Pure rules over the state of the index and of Kafka.

Completeness comes from the index, never from Dagster's green: whatever has a tile and is not complete is asked for
again. The hour that is under way is asked for when enough waits in it, or has waited long enough.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from s3lake import hours
from s3lake.index.plan.tile import NOTHING, Tile, TileRange


class DueReason(NamedTuple):
    """Why hours are landed now: in a word, as the tag of a run has it, and in a sentence."""

    word: str
    sentence: str


WAITED = DueReason("interval", "the oldest record has waited for flush.interval")
INCOMPLETE = DueReason("incomplete", "hours that the index calls incomplete")
HOUR_OVER = DueReason("hour_over", "an hour is over, or has no tile yet")
TOGETHER = DueReason("together", "others of the sink are due")


@dataclass(frozen=True)
class Policy:
    """The settings of a sink that decide when it is landed; sizes in bytes, times in milliseconds."""

    start: str
    grace_ms: int
    flush_count: int | None
    flush_bytes: int


@dataclass(frozen=True)
class Waiting:
    """The records that wait in the open tile.

    Attributes:
        records: offsets beyond what is committed.
        bytes: their likely size as stored; 0 while nothing is known.
        partitions: topic-partitions that have any.
        overdue: whether a record has waited for the flush interval.
    """

    records: int
    bytes: int
    partitions: int
    overdue: bool


@dataclass(frozen=True)
class Age:
    """Times, in milliseconds.

    Attributes:
        interval_ms: `flush.interval`.
        landed_ms: when the open tile was landed last; 0 if it never was.
        seen_ms: when it was first seen that something waits.
    """

    now_ms: int
    interval_ms: int
    landed_ms: int
    seen_ms: int


def list_incomplete_hours(tiles: Iterable[Tile], now_ms: int, grace_ms: int) -> list[str]:
    """List the hours that have a tile and need another run, except for the current hour."""
    return [
        tile.hour
        for tile in tiles
        if not tile.complete
        and (tile.closed or tile.pending or tile.garbage or is_hour_over(tile.hour, now_ms, grace_ms))
    ]


def is_hour_over(hour: str, now_ms: int, grace_ms: int) -> bool:
    """Return whether the hour and its grace are over."""
    return now_ms >= hours.end_ms(hour) + grace_ms


def list_unopened_hours(last: str | None, policy: Policy, now_ms: int, most: int | None = None) -> list[str]:
    """Hours up to the present that have no tile yet, with the hour before the first of them: one range to ask for.

    Args:
        last: the latest hour that has a tile; None if none has, and everything from the sink's start is due.
        policy: the policy of the sink.
        most: how many of them, the oldest; None for all.
    """
    now = hours.key_of_ms(now_ms)
    if last is not None and not is_hour_over(last, now_ms, policy.grace_ms):
        return []
    first = last or policy.start
    return hours.earliest([(first, now)], most)


def find_flush_reason(waiting: Waiting, policy: Policy) -> DueReason | None:
    """Return why the open tile should be landed now. Return None if it should not."""
    if not waiting.records:
        return None
    if policy.flush_count is not None and waiting.records >= policy.flush_count * waiting.partitions:
        wait = "1 record waits" if waiting.records == 1 else f"{waiting.records:,} records wait"
        sentence = f"{wait}, flush.count is {policy.flush_count} a topic-partition"
        return DueReason("count", sentence)
    if waiting.bytes >= policy.flush_bytes * waiting.partitions:
        sentence = f"about {waiting.bytes} bytes wait, flush.size is {policy.flush_bytes} a topic-partition"
        return DueReason("size", sentence)
    return WAITED if waiting.overdue else None


def count_backlog(tile: Tile, ends: Mapping[int, int]) -> dict[int, int]:
    """Count the offsets that are not landed, of the topic-partitions that have any.

    Args:
        tile: a tile; up to its edges, or while it is open up to `ends`.
        ends: last stable offset per topic-partition.
    """
    spans = tile.partitions if tile.closed else {partition: TileRange(0, 0) for partition in ends} | tile.partitions
    behind = {}
    for partition, span in sorted(spans.items()):
        end = ends.get(partition, span.committed) if span.end is None else span.end
        if end > span.committed:
            behind[partition] = end - span.committed
    return behind


def is_overdue(tile: Tile, since: Mapping[int, int], age: Age) -> bool:
    """Return whether a record of the open tile has waited for the flush interval.

    A tile is landed at most once an interval on these grounds, however old the records that arrive. Where a record from
    the future makes every later offset look young, the time since the backlog was first seen decides.

    Args:
        tile: the open tile; something of it waits.
        since: first offset stamped within the flush interval, per topic-partition.
        age: what is known of times.
    """
    if clock_decides(age):
        return age.now_ms - age.landed_ms >= age.interval_ms
    return any(first > tile.partitions.get(partition, NOTHING).committed for partition, first in since.items())


def clock_decides(age: Age) -> bool:
    """Return whether the times of landing and of seeing decide alone, without the records' timestamps."""
    return age.now_ms - age.landed_ms < age.interval_ms or age.now_ms - age.seen_ms >= age.interval_ms


def split_into_runs(due_hours: Iterable[str], hours_per_run: int | None) -> list[tuple[str, str]]:
    """Hours as inclusive ranges of at most `hours_per_run`, oldest first."""
    ranges: list[tuple[str, str]] = []
    for first, last in hours.ranges(due_hours):
        todo = list(hours.span(first, last))
        step = hours_per_run or len(todo)
        ranges += [(todo[at], todo[min(at + step, len(todo)) - 1]) for at in range(0, len(todo), step)]
    return ranges
