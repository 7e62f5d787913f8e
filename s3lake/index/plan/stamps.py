"""Stamps: timestamps outside of the hour that a record is from, noted in tiles and described for people.

Hours are cut by timestamps. A producer that writes microseconds for milliseconds stamps far ahead, and Kafka then
answers every later hour with that one record: these hours stay empty, and their records are in the hour that is open
when they arrive. A producer that writes seconds stamps far back: its records lie before the sink's start.
"""

import time
from collections.abc import Mapping

from s3lake import hours
from s3lake.index.plan.tile import Tile
from s3lake.source.offsets import TopicOffsets
from s3lake.text.quantities import format_count

AHEAD_MS = hours.HOUR_MS
"""Clocks differ, and late closes wait: a stamp that is less ahead is not reported."""


def find_stamps_ahead(kafka: TopicOffsets, now_ms: int) -> dict[int, tuple[int, int]]:
    """Return offset and timestamp of the first record after the snapshot's hour where it is stamped ahead of the clock.

    Args:
        kafka: offsets around an hour.
        now_ms: the writer's clock.
    """
    return {
        partition: (log.hour_end, log.next_stamp_ms)
        for partition, log in sorted(kafka.partitions.items())
        if log.next_stamp_ms is not None and log.next_stamp_ms > now_ms + AHEAD_MS
    }


def describe_stamps_ahead(stamped_ahead: Mapping[int, tuple[int, int]]) -> list[str]:
    """Return a sentence for each topic-partition with a record that is stamped ahead."""
    return [
        f"offset {offset} of partition {partition} is stamped {format_stamp(stamp_ms)}: later hours cannot be "
        "told apart, so they may be empty and their records in another hour; correct the producer's clock or unit, and "
        "let the topic refuse such records (message.timestamp.after.max.ms)"
        for partition, (offset, stamp_ms) in sorted(stamped_ahead.items())
    ]


def describe_before_start(hour: str, before_start: Mapping[int, int]) -> list[str]:
    """Return a sentence if the log had offsets before the first tile; an empty list if it had none."""
    count = sum(before_start.values())
    if not count:
        return []
    offsets, verb = format_count(count, "offsets"), "is" if count == 1 else "are"
    partitions = ", ".join(f"{number:,} of partition {partition}" for partition, number in before_start.items())
    return [
        f"{offsets} {verb} before {hour}, where landing starts, and {verb} not landed ({partitions}): their records "
        "are stamped earlier, or by a producer that writes another unit than milliseconds, or Kafka has no records "
        "there, because it compacted them or a transaction was aborted. A sink with an earlier start, or with from: "
        "earliest, lands the records that there are"
    ]


def find_notices(tile: Tile) -> list[str]:
    """Return what a tile notes about timestamps, as sentences."""
    return [*describe_before_start(tile.hour, tile.before_start), *describe_stamps_ahead(tile.stamped_ahead)]


def format_stamp(epoch_ms: int) -> str:
    """Return a timestamp as a date and time in UTC; its year may have more than four digits."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch_ms / 1000))
