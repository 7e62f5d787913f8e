"""Sealed hours: their asset is materialised once for every content of an hour.

The index has the sealed hours, Dagster's event log the announced ones. A run announces what it has
landed and checked; if it crashed before, the topic's sensor does.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import dagster as dg

from s3lake import hours
from s3lake.config.model.marker import build_marker_key
from s3lake.index.commit.replacing_attempts import REWRITE
from s3lake.index.commit.sealed_marker import build_marker_body, renew_marker
from s3lake.index.commit.sealing import Sealing
from s3lake.index.commit.sums import Commits
from s3lake.index.plan.sealed import digest_commits
from s3lake.index.plan.tile import Tile
from s3lake.orchestration import dagster_names
from s3lake.orchestration.catalog import Catalog
from s3lake.orchestration.due_hours import TopicView
from s3lake.orchestration.hour_metadata import counts, offset_tables

if TYPE_CHECKING:
    from s3lake.land.topic.topic_sink import TopicSink

FIRST = "landed"
HOURS_PER_TICK = 24
_AGAIN_MS = hours.DAY_MS


def seal_events(
    catalog: Catalog,
    target: "TopicSink",
    sealing: Sealing,
    requested: Iterable[str],
    announced: Mapping[str, str],
    now_ms: int,
) -> list[dg.AssetMaterialization]:
    """Return the events of the hours that are sealed, and were not announced with their present content.

    Args:
        catalog: the catalog, which has the key of the asset.
        target: the topic of a sink.
        sealing: its sealed hours.
        requested: the hours to look at.
        announced: the contents that were announced, by the hour.
        now_ms: the present time, in epoch milliseconds.
    """
    tiles = [tile for hour in requested if (tile := sealing.tile(hour)) is not None and tile.complete]
    new = [
        tile
        for tile in tiles
        if announced.get(tile.hour) != digest_commits(tile.commits) and not sealing.flaw(tile.hour)
    ]
    key = catalog.specs(target.sink, target.topic).sealed.key
    markers = [_write_marker(target, tile) for tile in new]  # before the event: who follows it finds the marker
    watermark = sealing.move(target.sink.start) if new else None
    events = []
    for tile, marker in zip(new, markers, strict=True):
        again, sums = tile.hour in announced, tile.sums
        metadata: dict[str, Any] = {
            **counts(sums),
            "sealed_after_s": (now_ms - hours.end_ms(tile.hour)) // 1000,
            "reason": target.index.read_listed(tile.hour, tile.commits[-1]).reason or REWRITE if again else FIRST,
            **offset_tables(tile, sums, target.index),
            **({"marker": dg.MetadataValue.path(f"s3://{target.sink.bucket}/{marker}")} if marker else {}),
            **({"sealed_up_to": watermark} if watermark else {}),
        }
        tags = {dagster_names.DATA_VERSION: digest_commits(tile.commits)}
        events.append(dg.AssetMaterialization(key, partition=tile.hour, metadata=metadata, tags=tags))
    return events


def announced_contents(instance: dg.DagsterInstance, key: dg.AssetKey, requested: Sequence[str]) -> Mapping[str, str]:
    """Return the hours that were announced, with the digest of their content at that time."""
    if not requested:
        return {}
    tags = instance.event_log_storage.get_latest_tags_by_partition(
        key,
        dg.DagsterEventType.ASSET_MATERIALIZATION,
        tag_keys=[dagster_names.DATA_VERSION],
        asset_partitions=list(requested),
    )
    return {
        hour: of_hour[dagster_names.DATA_VERSION]
        for hour, of_hour in tags.items()
        if dagster_names.DATA_VERSION in of_hour
    }


def unannounced_hours(
    instance: dg.DagsterInstance, catalog: Catalog, view: TopicView, is_running: Callable[[], bool]
) -> list[dg.AssetMaterialization]:
    """Return the events of complete hours that no run announces; `is_running` returns whether one lands the topic.

    Remembers which hours are announced. An hour that was rewritten of late is looked at again.
    """
    target, memory = view.target, view.memory
    assert view.head is not None
    sealing = Sealing(target.index, view.head, view.etag).with_tiles(view.tiles)
    since_ms = view.now_ms - max(_AGAIN_MS, 60_000 * hours.count(memory.complete))  # a round of second looks, and more
    waiting = hours.latest(hours.without(memory.complete, memory.announced), HOURS_PER_TICK)
    again = [tile.hour for tile in view.tiles if tile.complete and _written_since(tile, since_ms)]
    chosen = sorted({*waiting, *again})
    if not chosen:
        return []
    key = catalog.specs(target.sink, target.topic).sealed.key
    contents = announced_contents(instance, key, chosen)
    # A tile may have been deleted with the objects of its time: its hour is not announced.
    left = [
        hour for hour in chosen if (tile := sealing.tile(hour)) and contents.get(hour) != digest_commits(tile.commits)
    ]
    memory.announced = hours.without(hours.merge_ranges([*memory.announced, *hours.ranges(chosen)]), hours.ranges(left))
    if not left or is_running():
        return []
    # A run that has ended meanwhile may have announced them.
    return seal_events(catalog, target, sealing, left, announced_contents(instance, key, left), view.now_ms)


def _written_since(tile: Tile, since_ms: int) -> bool:
    """Return whether a second look may find what a crashed run has rewritten."""
    return bool(tile.commits) and tile.sums.landed_ms >= since_ms


def _write_marker(target: "TopicSink", tile: Tile) -> str | None:
    """Write the marker of a sealed hour and return its key, if the sink has one."""
    key = build_marker_key(target.sink, target.topic, tile.hour)
    if key is not None:
        manifests = Commits(target.index, tile.hour, tile.commits)
        renew_marker(
            target.store, key, tile, build_marker_body(target.sink.sealed.marker, target.topic, tile, manifests)
        )
    return key
