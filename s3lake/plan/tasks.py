"""Tasks: which of Spark's tasks reads which ranges of a micro-batch."""

from s3lake.plan.batch import Intervals
from s3lake.source.records import Range

TASK_RECORDS = 50_000
"""What is worth a task of its own where files have no number of records: every core works on a long range."""


def shared_out(reads: Intervals, tasks: int, least: int | None) -> list[tuple[Range, ...]]:
    """Ranges of `reads` as the work of at most `tasks` tasks of like size, each task's by topic-partition and offset.

    Args:
        reads: per topic-partition `[start, end)`, none of them empty.
        tasks: the most there shall be; fewer where there is less to share.
        least: offsets a task, below which a topic-partition is not split; None where it never may be.
    """
    total = sum(end - start for start, end in reads.values())
    step = total
    if least is not None and len(reads) < tasks and total >= tasks * least:
        step = -(-total // tasks)
    ranges = [
        Range(partition, first, min(first + step, end))
        for partition, (start, end) in reads.items()
        for first in range(start, end, step)
    ]
    loads: list[list[Range]] = [[] for _ in range(min(len(ranges), tasks))]
    for largest in sorted(ranges, key=_offsets, reverse=True):
        min(loads, key=lambda load: sum(map(_offsets, load))).append(largest)
    return [tuple(sorted(load)) for load in loads]


def _offsets(range: Range) -> int:
    return range.end - range.start
