"""The records that a statement fails on, found by halves: Spark says that it fails, and not on which."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from s3lake.plan.batch import Intervals


def failing(reads: Intervals, reason_of: Callable[[Intervals], str | None]) -> Iterator[tuple[int, int, str]]:
    """Topic-partition, offset and reason of each record that fails, in their order.

    Args:
        reads: where to look.
        reason_of: why some record of these ranges fails; None where none does.
    """
    waiting = [reads]
    while waiting:
        part = waiting.pop()
        reason = reason_of(part)
        if reason is None:
            continue
        if sum(end - start for start, end in part.values()) > 1:
            first, second = _halves(part)
            waiting += [second, first]
        else:
            ((partition, (offset, _)),) = part.items()
            yield partition, offset, reason


def _halves(reads: Intervals) -> tuple[Intervals, Intervals]:
    """Two parts of about as many topic-partitions, or of as many offsets where there is one."""
    partitions = sorted(reads)
    if len(partitions) > 1:
        middle = len(partitions) // 2
        return {one: reads[one] for one in partitions[:middle]}, {one: reads[one] for one in partitions[middle:]}
    (partition,) = partitions
    start, end = reads[partition]
    middle = (start + end) // 2
    return {partition: (start, middle)}, {partition: (middle, end)}
