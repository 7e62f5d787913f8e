"""Stamps: timestamps that say something else than the hour a record is from, noted in tiles and described for people.

Hours are cut by timestamps. A producer that writes microseconds for milliseconds stamps far ahead, and Kafka then
answers every later hour with that one record: these hours stay empty, and their records are in the hour that is open
when they arrive. A producer that writes seconds stamps far back: its records lie before the sink's start.
"""

from collections.abc import Mapping
from datetime import datetime, timezone

from s3lake import hours
from s3lake.plan.tile import Tile
from s3lake.source.offsets import Snapshot

AHEAD_MS = hours.HOUR_MS
"""Clocks differ, and late closes wait: a stamp that is less ahead is not reported."""
_YEAR_MS = 31_556_952_000
_LAST_DATE_MS = 253_402_300_800_000  # the year 10000, which no datetime has


def find_stamps_ahead(kafka: Snapshot, now_ms: int) -> dict[int, tuple[int, int]]:
    """Return offset and timestamp of the first record after the snapshot's hour where it is stamped ahead of the clock.

    Args:
        kafka: offsets around an hour.
        now_ms: the writer's clock.
    """
    return {
        partition: (log.next, log.next_stamp_ms)
        for partition, log in sorted(kafka.partitions.items())
        if log.next_stamp_ms is not None and log.next_stamp_ms > now_ms + AHEAD_MS
    }


def describe_stamps_ahead(stamped_ahead: Mapping[int, tuple[int, int]]) -> list[str]:
    """Return a sentence for each topic-partition with a record that is stamped ahead."""
    return [
        f"offset {offset} of partition {partition} is stamped {format_stamp(stamp_ms)}: later hours cannot be told "
        "apart, so they may be empty and their records in another hour; correct the producer's clock or unit, and let "
        "the topic refuse such records (message.timestamp.after.max.ms)"
        for partition, (offset, stamp_ms) in sorted(stamped_ahead.items())
    ]


def describe_before_start(hour: str, before_start: Mapping[int, int]) -> list[str]:
    """Return a sentence if the log had offsets before the first tile; an empty list if it had none."""
    count = sum(before_start.values())
    if not count:
        return []
    partitions = ", ".join(f"{offsets:,} of partition {partition}" for partition, offsets in before_start.items())
    return [
        f"{count:,} offsets are before {hour}, where landing starts, and are not landed ({partitions}): their records "
        "are stamped earlier, or by a producer that writes another unit than milliseconds. A sink with an earlier "
        "start, or with from: earliest, lands them"
    ]


def find_notices(tile: Tile) -> list[str]:
    """Return what a tile notes about timestamps, as sentences."""
    return [*describe_before_start(tile.hour, tile.before_start), *describe_stamps_ahead(tile.stamped_ahead)]


def format_stamp(epoch_ms: int) -> str:
    """Return a timestamp as a date and time in UTC, or as its year if that has five digits or more."""
    if epoch_ms >= _LAST_DATE_MS:
        return f"in the year {1970 + epoch_ms // _YEAR_MS}"
    return datetime.fromtimestamp(epoch_ms // 1000, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
