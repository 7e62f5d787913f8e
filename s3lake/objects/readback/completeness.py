"""Whether hours hold every record that Kafka had for them: what is missing of each that does not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

from s3lake import hours
from s3lake.commit.index import TopicIndex
from s3lake.errors import IncompleteError
from s3lake.plan.tile import Tile

_NEVER = "never landed"
_NAMED = 20
_AT_ONCE = 16


def tiles(index: TopicIndex, hours_asked: Iterable[str] | None) -> dict[str, Tile | None]:
    """The tile of each of these hours, in order; None: of every hour that the index has."""
    head = index.head()
    landed = head[0].hours if head else ()
    asked = hours.expand(landed) if hours_asked is None else sorted(set(hours_asked))

    def look(hour: str) -> Tile | None:
        stored = index.tile(hour) if hours.in_ranges(hour, landed) else None
        return stored[0] if stored else None

    with ThreadPoolExecutor(_AT_ONCE, "s3lake-index") as pool:
        return dict(zip(asked, pool.map(look, asked), strict=True))


def refuse(by_hour: Mapping[str, Tile | None], what: str) -> None:
    """Refuse hours of which records are missing; one that is being rewritten or cleaned up has all of them.

    Args:
        by_hour: the hours, with their tiles.
        what: what they are hours of.

    Raises:
        IncompleteError: some are not landed, or only in part.
    """
    missing = {hour: _missing(tile) for hour, tile in by_hour.items() if tile is None or not tile.landed}
    if by_hour and not missing:
        return
    never = [hour for hour, reason in missing.items() if reason == _NEVER]
    reasons = {first: f"{_range(first, last)} {_NEVER}" for first, last in hours.ranges(never)}
    reasons |= {hour: f"{hour} {reason}" for hour, reason in missing.items() if reason != _NEVER}
    reports = [reasons[hour] for hour in sorted(reasons)]
    if len(reports) > _NAMED:
        reports[_NAMED:] = [f"and {len(reports) - _NAMED} more"]
    reports = reports or ["no hour was ever landed"]
    raise IncompleteError(
        f"{what}: {len(missing)} of {len(by_hour)} hours are not complete, so that what would be read is not all that "
        f"Kafka had: {'; '.join(reports)}. Materialise these hours first; to read what there is "
        'all the same, give the input (AssetIn) metadata={"allow_incomplete": True}'
    )


def _range(first: str, last: str) -> str:
    return first if first == last else f"{first} to {last}"


def _missing(tile: Tile | None) -> str:
    if tile is None:
        return _NEVER
    landed = sum(span.committed - span.start for span in tile.partitions.values())
    if not tile.closed:
        return f"is still open, {landed:,} offsets landed so far"
    total = sum((span.end or 0) - span.start for span in tile.partitions.values())
    return f"lacks {total - landed:,} of {total:,} offsets"
