"""Micro-batches: which offsets one Spark job reads, decided before it starts and never asked again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from s3lake.errors import DataLossError
from s3lake.index.plan.tile import Tile, collect_epochs, require_log_range
from s3lake.source.offsets import LogRange, TopicOffsets

if TYPE_CHECKING:
    from s3lake.source.record_batches import OffsetRange

Intervals = Mapping[int, tuple[int, int]]
TASK_RECORDS = 50_000
"""What is worth a task of its own where files have no number of records: every core works on a long range."""


@dataclass(frozen=True)
class Batch:
    """The offsets of one micro-batch, all of one tile.

    Attributes:
        intervals: the offsets `[start, end)` of each topic-partition that its commit will cover.
        reads: the same without what Kafka has expired, and without empty ranges: what Spark reads.
        expired: [topic-partition, first, end) that Kafka no longer has.
        epochs: the epoch of the leader that returned the end, for each topic-partition of the tile.
        left: offsets of the tile that this run leaves to later micro-batches.
    """

    intervals: Intervals
    reads: Intervals
    expired: tuple[tuple[int, int, int], ...] = ()
    left: int = 0
    epochs: Mapping[int, int] = field(default_factory=dict)

    @property
    def offsets(self) -> int:
        """How many offsets the commit covers."""
        return sum(end - start for start, end in self.intervals.values())


def plan_next_batch(
    tile: Tile, kafka: TopicOffsets, limit: int, until: Mapping[int, int] | None = None, *, ended: bool = False
) -> Batch | None:
    """The next micro-batch of `tile`: at most `limit` offsets to read, or None when there is nothing to do.

    A closed tile is read to its end, an open one to the last stable offset. The limit is shared out in proportion, so
    all topic-partitions of a long backlog advance together and every task has a like share.

    Args:
        tile: what is to be landed.
        kafka: offsets around its hour.
        limit: most offsets to read.
        until: an open tile is not landed beyond these ends, which a run took when it began: where records keep arriving
            it would never come to an end. None for no such ends.
        ended: the hour is over, and its tile is open for late records: records of the next hour are not taken.

    Raises:
        DataLossError: Kafka's log ends below what is committed, or before the tile does.
        KafkaUnavailableError: a topic-partition of the tile is missing in Kafka's answer.
    """
    open_intervals: dict[int, tuple[int, int]] = {}
    for partition, span in sorted(tile.partitions.items()):
        end = span.end
        if end is None:
            _must_reach(kafka, partition, span.committed)
            end = _reach(require_log_range(kafka, partition), None if until is None else until.get(partition, 0), ended)
        if end > span.committed:
            open_intervals[partition] = (span.committed, end)
    if not open_intervals:
        return None
    batch = plan_offset_ranges(_shared_out(open_intervals, kafka, limit), kafka)
    left = sum(end - start for start, end in open_intervals.values()) - batch.offsets
    return replace(batch, left=left, epochs=collect_epochs(kafka, tile.partitions))


def plan_rewrite(tile: Tile, kafka: TopicOffsets) -> Batch:
    """Return the micro-batch that reads a landed tile again, for a rewrite."""
    spans = {partition: (span.start, span.committed) for partition, span in sorted(tile.partitions.items())}
    return plan_offset_ranges({partition: span for partition, span in spans.items() if span[1] > span[0]}, kafka)


def plan_offset_ranges(intervals: Intervals, kafka: TopicOffsets) -> Batch:
    """The micro-batch that covers `intervals`, with what Kafka has expired taken out of what is read.

    Raises:
        DataLossError: Kafka's log does not reach an interval's end.
        KafkaUnavailableError: a topic-partition is missing in Kafka's answer.
    """
    reads: dict[int, tuple[int, int]] = {}
    expired: list[tuple[int, int, int]] = []
    for partition, (start, end) in intervals.items():
        _must_reach(kafka, partition, end)
        low = min(require_log_range(kafka, partition).log_start, end)
        if low > start:
            expired.append((partition, start, low))
        if max(start, low) < end:
            reads[partition] = (max(start, low), end)
    return Batch(intervals, reads, tuple(expired))


def _reach(log: LogRange, until: int | None, ended: bool) -> int:
    """How far an open tile may be landed now."""
    end = log.hour_end if ended else log.log_end
    return end if until is None else min(end, until)


def _must_reach(kafka: TopicOffsets, partition: int, end: int) -> None:
    log = require_log_range(kafka, partition)
    if log.log_end < end:
        raise DataLossError(
            f"topic-partition {partition}: the index expects offsets up to {end}, Kafka has them up to {log.log_end}; "
            "the log was cut off, or the topic was created again (see `s3lake index accept`)"
        )


def _shared_out(open_intervals: Intervals, kafka: TopicOffsets, limit: int) -> Intervals:
    firsts = {
        partition: min(max(start, require_log_range(kafka, partition).log_start), end)
        for partition, (start, end) in open_intervals.items()
    }
    readable = {partition: end - firsts[partition] for partition, (_, end) in open_intervals.items()}
    total = sum(readable.values())
    if total <= limit:
        return open_intervals
    taken: dict[int, tuple[int, int]] = {}
    left = limit
    for partition, (start, _) in open_intervals.items():
        share = min(left, max(1, readable[partition] * limit // total)) if readable[partition] else 0
        left -= share
        stop = firsts[partition] + share
        if stop > start:
            taken[partition] = (start, stop)
    return taken


def split_into_tasks(reads: Intervals, tasks: int, least: int | None) -> list[tuple[OffsetRange, ...]]:
    """Ranges of `reads` as the work of at most `tasks` tasks of like size, each task's by topic-partition and offset.

    Args:
        reads: the offsets `[start, end)` of each topic-partition, none of them empty.
        tasks: the most there shall be; fewer where there is less to share.
        least: offsets a task, below which a topic-partition is not split; None if it never may be.
    """
    from s3lake.source.record_batches import OffsetRange  # pyarrow: a code location that plans nothing does not load it

    total = sum(end - start for start, end in reads.values())
    step = total
    if least is not None and len(reads) < tasks and total >= tasks * least:
        step = -(-total // tasks)
    ranges = [
        OffsetRange(partition, first, min(first + step, end))
        for partition, (start, end) in reads.items()
        for first in range(start, end, step)
    ]
    loads: list[list[OffsetRange]] = [[] for _ in range(min(len(ranges), tasks))]
    for largest in sorted(ranges, key=_offsets, reverse=True):
        min(loads, key=lambda load: sum(map(_offsets, load))).append(largest)
    return [tuple(sorted(load)) for load in loads]


def _offsets(range: OffsetRange) -> int:
    return range.end - range.start
