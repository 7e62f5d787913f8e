"""Sealed: that an hour is over for good; and how fresh its records were. Pure rules over tiles.

An hour is sealed when it is complete, shares its edges with the adjacent hours, and every record read of it is
accounted for. `orchestration.checks` shows the same rules, one by one.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence

from s3lake import hours
from s3lake.index.plan.tile import Sums, Tile, Wait


def digest_commits(commits: Sequence[str]) -> str:
    """A digest of the commits that are an hour's data: another one means other files."""
    return hashlib.sha256(json.dumps(list(commits)).encode()).hexdigest()[:32]


def count_gaps(earlier: Tile, following: Tile) -> dict[int, int]:
    """Count the offsets between two tiles per topic-partition; negative if they overlap."""
    ends = {partition: span.end or 0 for partition, span in earlier.partitions.items()}
    starts = {partition: span.start for partition, span in following.partitions.items()}
    return {number: starts.get(number, 0) - ends.get(number, 0) for number in sorted({*ends, *starts})}


def is_seamless(earlier: Tile, following: Tile) -> bool:
    """Return whether no offset is in both of two tiles, or between them if their hours are adjacent."""
    adjacent = hours.shift(earlier.hour, 1) == following.hour  # else the hours between were not requested yet
    return not any(gap < 0 or (gap and adjacent) for gap in count_gaps(earlier, following).values())


def count_without_record(tile: Tile, sums: Sums) -> int:
    """Count the landed offsets without a record: markers, aborted and compacted records."""
    expired = sum(end - start for _, start, end in tile.expired)
    return _count_covered(tile) - expired - sums.read


def is_explained(tile: Tile, sums: Sums) -> bool:
    """Return whether the counts explain every record read, and the commits cover the tile."""
    expired = sum(end - start for _, start, end in tile.expired)
    given_up = expired - sums.expired  # when the topic was created again
    return (
        sums.unexplained == 0
        and sums.records == sums.landed + sums.dead
        and _count_covered(tile) - given_up == sums.offsets
        and count_without_record(tile, sums) >= 0
    )


def _count_covered(tile: Tile) -> int:
    return sum(span.committed - span.start for span in tile.partitions.values())


def compute_wait_quantile_s(waits: Iterable[Wait], share: float) -> float | None:
    """Seconds within which `share` of the records were committed; None without records.

    Of a commit only the ends are known: its records count as evenly spread in between, which is how they arrive.
    """
    waits_of_records = [wait for wait in waits if wait.records]
    enough = share * sum(wait.records for wait in waits_of_records)
    if not waits_of_records:
        return None
    low, high = min(wait.least_ms for wait in waits_of_records) - 1, max(wait.most_ms for wait in waits_of_records)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (
            (low, middle) if sum(_within(wait, middle) for wait in waits_of_records) >= enough else (middle, high)
        )
    return high / 1000


def _within(wait: Wait, ms: int) -> float:
    """Return how many of a commit's records had waited `ms` or less."""
    if ms >= wait.most_ms:
        return wait.records
    return wait.records * (ms - wait.least_ms) / (wait.most_ms - wait.least_ms) if ms > wait.least_ms else 0
