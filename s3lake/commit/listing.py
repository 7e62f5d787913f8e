"""What an index lists now: tiles and the manifests of their commits, read side by side."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from s3lake import hours
from s3lake.commit.index import Manifest, TopicIndex
from s3lake.plan.tile import Tile

_AT_ONCE = 16


class Listed(NamedTuple):
    """An hour that has a tile, and the manifests of its commits, in order."""

    tile: Tile
    manifests: tuple[Manifest, ...]


def listed(index: TopicIndex, asked: Iterable[str] | None = None) -> list[Listed]:
    """Hours, of those that are asked for, of all without them; those without a tile are left out.

    Raises:
        MissingDocumentError: a tile lists a commit whose manifest is not there.
    """
    head = index.head()
    there = head[0].hours if head else ()

    def look(hour: str) -> Listed | None:
        stored = index.tile(hour)
        if stored is None:
            return None
        return Listed(stored[0], tuple(index.listed(hour, commit) for commit in stored[0].commits))

    wanted = hours.expand(there) if asked is None else [hour for hour in asked if hours.in_ranges(hour, there)]
    with ThreadPoolExecutor(_AT_ONCE, "s3lake-index") as pool:
        return [found for found in pool.map(look, wanted) if found is not None]
