"""Indexes written by hand, for those who read them."""

import msgspec

from s3lake import hours
from s3lake.commit.documents import TopicHead
from s3lake.commit.index import TopicIndex
from s3lake.plan.tile import Tile


def write(index: TopicIndex, *tiles: Tile, since: str | None = None) -> None:
    """Make these tiles of an index, beside those that it has."""
    head = index.head()
    every = [*hours.expand(head[0].hours if head else ()), *(tile.hour for tile in tiles)]
    index.store.put(index.head_key, msgspec.json.encode(TopicHead(hours=tuple(hours.ranges(every)), since=since)))
    for tile in tiles:
        index.store.put(index.tile_key(tile.hour), msgspec.json.encode(tile))
