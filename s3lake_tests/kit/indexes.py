"""Indexes written by hand, for those who read them."""

import msgspec

from s3lake import hours
from s3lake.index.commit.documents import Manifest, TopicHead
from s3lake.index.commit.sums import sum_commits
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.index.plan.tile import Sums, Tile


def write_tiles(index: TopicIndex, *tiles: Tile, since: str | None = None) -> None:
    """Add these tiles to an index."""
    head = index.head()
    every = [*hours.expand(head[0].hours if head else ()), *(tile.hour for tile in tiles)]
    index.store.put(index.head_key, msgspec.json.encode(TopicHead(hours=tuple(hours.ranges(every)), since=since)))
    for tile in tiles:
        _write_tile(index, tile)


def write_manifest(index: TopicIndex, manifest: Manifest) -> None:
    """Write a manifest, and its sums into the tile that lists it."""
    index.store.put(index.manifest_key(manifest.hour, manifest.id), msgspec.json.encode(manifest))
    stored = index.tile(manifest.hour)
    if stored is not None:
        _write_tile(index, msgspec.structs.replace(stored[0], sums=Sums()))


def _write_tile(index: TopicIndex, tile: Tile) -> None:
    manifests = [manifest for commit in tile.commits if (manifest := index.manifest(tile.hour, commit))]
    if manifests and tile.sums == Sums():
        tile = msgspec.structs.replace(tile, sums=sum_commits(manifests))
    index.store.put(index.tile_key(tile.hour), msgspec.json.encode(tile))
