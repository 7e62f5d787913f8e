"""Sealed: that an hour is over for good. Pure rules over tiles; nothing but the index is asked.

An hour is sealed when it is complete, shares its edges with the hours beside it, and every record read of it is
accounted for. `orchestration.checks` shows the same rules, one by one.
"""

import hashlib
import json
from collections.abc import Sequence

from s3lake import hours
from s3lake.plan.tile import Sums, Tile


def content(commits: Sequence[str]) -> str:
    """A digest of the commits that are an hour's data: another one means other files."""
    return hashlib.sha256(json.dumps(list(commits)).encode()).hexdigest()[:32]


def between(earlier: Tile, following: Tile) -> dict[int, int]:
    """Offsets between two tiles, per topic-partition; negative where they overlap."""
    ends = {partition: span.end or 0 for partition, span in earlier.partitions.items()}
    starts = {partition: span.start for partition, span in following.partitions.items()}
    return {number: starts.get(number, 0) - ends.get(number, 0) for number in sorted({*ends, *starts})}


def meet(earlier: Tile, following: Tile) -> bool:
    """Whether no offset is in both of two tiles, and none between them where their hours are adjacent."""
    adjacent = hours.shift(earlier.hour, 1) == following.hour  # else nobody has asked for the hours between yet
    return not any(gap < 0 or (gap and adjacent) for gap in between(earlier, following).values())


def without_record(tile: Tile, sums: Sums) -> int:
    """Offsets that are landed and hold no record: markers, aborted and compacted ones."""
    expired = sum(end - start for _, start, end in tile.expired)
    return _covered(tile) - expired - sums.read


def explained(tile: Tile, sums: Sums) -> bool:
    """Return whether the counts explain every record read, and the commits cover the tile."""
    expired = sum(end - start for _, start, end in tile.expired)
    given_up = expired - sums.expired  # when the topic was created again
    return (
        sums.read == sums.landed + sums.skipped + sums.filtered + sums.dead + sums.erased
        and sums.records == sums.landed + sums.dead
        and _covered(tile) - given_up == sums.offsets
        and without_record(tile, sums) >= 0
    )


def _covered(tile: Tile) -> int:
    return sum(span.committed - span.start for span in tile.partitions.values())
