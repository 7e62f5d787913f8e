"""Sealed hours: their asset is materialised once for every content of an hour.

The index says which hours are sealed, Dagster's event log which of them were announced. A run announces what it has
landed and checked; if it crashed before, the topic's sensor does.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import dagster as dg
import msgspec

from s3lake import hours
from s3lake.commit.marker import body_of, renew
from s3lake.commit.replace import REWRITE
from s3lake.commit.sealing import Sealing
from s3lake.commit.sums import Commits
from s3lake.orchestration import metadata, names
from s3lake.orchestration.catalogue import Catalogue
from s3lake.orchestration.heartbeat import silence_of
from s3lake.orchestration.runs import started, topics_of
from s3lake.plan.sealed import content
from s3lake.plan.tile import Tile
from s3lake.sink import Sink
from s3lake.sink.marker import key as marker_key

if TYPE_CHECKING:
    from s3lake.land.landing import Landing

FIRST = "landed"
A_TICK = 24
_AGAIN_MS = 86_400_000
_ANY = ("", "9999")  # of hours


def seal_events(
    instance: dg.DagsterInstance,
    catalogue: Catalogue,
    lander: "Landing",
    sealing: Sealing,
    hours_wanted: Iterable[str],
    now_ms: int,
) -> list[dg.AssetMaterialization]:
    """Return the events of the hours that are sealed, and were not announced with their present content."""
    tiles = [tile for hour in hours_wanted if (tile := sealing.tile(hour)) is not None and tile.complete]
    key = catalogue.sealed_key(lander.sink, lander.topic)
    before = announced_contents(instance, key, [tile.hour for tile in tiles])
    new = [tile for tile in tiles if before.get(tile.hour) != content(tile.commits) and not sealing.flaw(tile.hour)]
    for tile in new:
        _write_marker(lander, tile)  # before the event: who follows it finds the marker
    upto = sealing.move(lander.sink.start) if new else None
    return [_seal_event(key, lander, sealing, tile, upto, now_ms, again=tile.hour in before) for tile in new]


def announced_contents(
    instance: dg.DagsterInstance, key: dg.AssetKey, hours_wanted: Sequence[str]
) -> Mapping[str, str]:
    """Return the hours that were announced, with the digest of their content at that time."""
    if not hours_wanted:
        return {}
    tags = instance.event_log_storage.get_latest_tags_by_partition(
        key,
        dg.DagsterEventType.ASSET_MATERIALIZATION,
        tag_keys=[names.DATA_VERSION],
        asset_partitions=list(hours_wanted),
    )
    return {hour: found[names.DATA_VERSION] for hour, found in tags.items() if names.DATA_VERSION in found}


def unannounced_hours(
    instance: dg.DagsterInstance,
    catalogue: Catalogue,
    lander: "Landing",
    sealing: Sealing,
    looked: Iterable[Tile],
    announced_before: Sequence[hours.Range],
    complete: Sequence[hours.Range],
    now_ms: int,
) -> tuple[list[dg.AssetMaterialization], list[hours.Range]]:
    """Return the events of hours that no running run announces.

    Args:
        instance: its event log says what was announced.
        catalogue: what the asset is called.
        lander: the sink and the topic.
        sealing: of its index.
        looked: tiles that this tick has read.
        announced_before: hours that were announced as an earlier tick saw; advice, as all of a cursor.
        complete: hours that the index is known to call complete.

    Returns:
        The announcements, and what of `announced_before` is right now.
    """
    since_ms = now_ms - max(_AGAIN_MS, 60_000 * hours.count(complete))  # a round of second looks, and more
    waiting = hours.latest(hours.without(complete, announced_before), A_TICK)
    again = [tile.hour for tile in looked if tile.complete and _written_since(tile, since_ms)]
    chosen = sorted({*waiting, *again})
    if not chosen:
        return [], list(announced_before)
    tiles = {hour: sealing.tile(hour) for hour in chosen}
    versions = announced_contents(instance, catalogue.sealed_key(lander.sink, lander.topic), chosen)
    # A tile may be gone with the objects of its time: nobody's to announce.
    left = [hour for hour, tile in tiles.items() if tile and versions.get(hour) != content(tile.commits)]
    announced_before = hours.without(hours.united([*announced_before, *hours.ranges(chosen)]), hours.ranges(left))
    busy = _hours_of_runs(instance, catalogue, lander.sink, lander.topic, now_ms) if left else []
    hours_wanted = [hour for hour in left if not any(first <= hour <= last for first, last in busy)]
    return seal_events(instance, catalogue, lander, sealing, hours_wanted, now_ms), announced_before


def _written_since(tile: Tile, since_ms: int) -> bool:
    """Return whether a second look may find what a crashed run has rewritten."""
    return bool(tile.commits) and (tile.sums is msgspec.UNSET or tile.sums.landed_ms >= since_ms)


def _hours_of_runs(
    instance: dg.DagsterInstance, catalogue: Catalogue, sink: Sink, topic: str, now_ms: int
) -> list[hours.Range]:
    """Return the hours of runs that may land this topic and work: they announce what they have checked."""
    found, key = [], catalogue.key(sink, topic)
    for record in started(instance):
        run = record.dagster_run
        if names.GROUP in run.tags:
            if topic in topics_of(catalogue, sink, run) and not silence_of(record, now_ms):
                found.append(_ANY)
            continue
        first = run.tags.get(names.RANGE_START) or run.tags.get(names.PARTITION)
        if first and key in (run.asset_selection or {key}) and not silence_of(record, now_ms):
            found.append((first, run.tags.get(names.RANGE_END) or first))
    return found


def _write_marker(lander: "Landing", tile: Tile) -> None:
    sink = lander.sink
    key = marker_key(sink, lander.topic, tile.hour)
    if key is not None:
        manifests = Commits(lander.index, tile.hour, tile.commits)
        renew(lander.store, key, tile, body_of(sink.sealed.marker, lander.topic, tile, manifests))


def _seal_event(
    asset: dg.AssetKey,
    lander: "Landing",
    sealing: Sealing,
    tile: Tile,
    upto: str | None,
    now_ms: int,
    *,
    again: bool,
) -> dg.AssetMaterialization:
    sums, sink = sealing.sums(tile), lander.sink
    event_metadata: dict[str, Any] = {
        **metadata.numbers(sums),
        "sealed_after_s": (now_ms - hours.end_ms(tile.hour)) // 1000,
        "reason": _reason(lander, tile) if again else FIRST,
        **metadata.tables(tile, sums, lander.index),
    }
    key = marker_key(sink, lander.topic, tile.hour)
    if key is not None:
        event_metadata["marker"] = dg.MetadataValue.path(f"s3://{sink.bucket}/{key}")
    return dg.AssetMaterialization(
        asset,
        partition=tile.hour,
        metadata=event_metadata if upto is None else {**event_metadata, "sealed_up_to": upto},
        tags={names.DATA_VERSION: content(tile.commits)},
    )


def _reason(lander: "Landing", tile: Tile) -> str:
    """Why a sealed hour has other commits than it had."""
    return lander.index.listed(tile.hour, tile.commits[-1]).reason or REWRITE
