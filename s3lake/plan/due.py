"""Due: which hours a sensor should ask for. Pure rules over what the index and Kafka say.

Completeness comes from the index, never from Dagster's green: whatever has a tile and is not complete is asked for
again. The hour that is under way is asked for when enough waits in it, or has waited long enough.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from s3lake import hours
from s3lake.plan.tile import Tile


@dataclass(frozen=True)
class Policy:
    """What of a sink decides when it is landed; sizes are bytes, times milliseconds."""

    start: str
    grace_ms: int
    flush_count: int
    flush_bytes: int


@dataclass(frozen=True)
class Waiting:
    """What waits in the tile that is open.

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


def incomplete(tiles: Iterable[Tile], now_ms: int, grace_ms: int) -> list[str]:
    """Hours that have a tile and need somebody to come back, the one under way excepted."""
    return [
        tile.hour
        for tile in tiles
        if not tile.complete and (tile.closed or tile.pending or tile.garbage or past(tile.hour, now_ms, grace_ms))
    ]


def past(hour: str, now_ms: int, grace_ms: int) -> bool:
    """Whether the hour and its grace are over."""
    return now_ms >= hours.end_ms(hour) + grace_ms


def unopened(last: str | None, policy: Policy, now_ms: int) -> list[str]:
    """Hours up to the present that have no tile yet, with the hour before the first of them: one range to ask for.

    Args:
        last: the latest hour that has a tile; None where none has, and everything from the sink's start is due.
        policy: of the sink.
        now_ms: the clock.
    """
    now = hours.key_of_ms(now_ms)
    if last is None:
        return list(hours.span(policy.start, now))
    if last >= now or not past(last, now_ms, policy.grace_ms):
        return []
    return list(hours.span(last, now))


def flush_due(waiting: Waiting, policy: Policy) -> str | None:
    """Why the open tile should be landed now, or None."""
    if not waiting.records:
        return None
    if waiting.records >= policy.flush_count * waiting.partitions:
        return f"{waiting.records} records wait, flush.count is {policy.flush_count} a topic-partition"
    if waiting.bytes >= policy.flush_bytes:
        return f"about {waiting.bytes} bytes wait, flush.size is {policy.flush_bytes}"
    return "the oldest record has waited for flush.interval" if waiting.overdue else None


def waiting(tile: Tile, ends: Mapping[int, int], since: Mapping[int, int], bytes_per_record: float) -> Waiting:
    """What waits in `tile`.

    Args:
        tile: the open tile.
        ends: last stable offset per topic-partition.
        since: first offset stamped within the flush interval, per topic-partition.
        bytes_per_record: as stored so far; 0 while nothing is.
    """
    committed = {
        partition: tile.partitions[partition].committed if partition in tile.partitions else 0 for partition in ends
    }
    counts = [end - committed[partition] for partition, end in ends.items() if end > committed[partition]]
    overdue = any(since.get(partition, 0) > committed[partition] for partition in ends)
    return Waiting(sum(counts), int(sum(counts) * bytes_per_record), len(counts), overdue)


def chunks(wanted: Iterable[str], hours_per_run: int | None) -> list[tuple[str, str]]:
    """Hours as inclusive ranges of at most `hours_per_run`, oldest first."""
    found: list[tuple[str, str]] = []
    for first, last in hours.ranges(wanted):
        todo = list(hours.span(first, last))
        step = hours_per_run or len(todo)
        found += [(todo[at], todo[min(at + step, len(todo)) - 1]) for at in range(0, len(todo), step)]
    return found
