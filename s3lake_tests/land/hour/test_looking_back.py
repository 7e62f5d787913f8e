"""What a landing reports of what is landed, and removes of what crashed writers left."""

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from s3lake.index.commit.clean import Cleaned
from s3lake.index.plan.tile import Tile, TileRange
from s3lake.land.hour.landing import land, rewrite
from s3lake_tests.index.commit.kafka import TOPIC, ms
from s3lake_tests.land.unstaged import FIRST, SECOND, Filed, UnstagedTopic

THREE_DAYS = 3 * 24 * 60
LEFT = f"{TOPIC}/date=2026-11-20/hour=01/0-000000000010.json"
TRIALS = [f".indexes/events/.probe/{ms(70) // 1000}-a", f".probe/{ms(70) // 1000}-b"]
"""Named as a trial of the store that was killed, or as data that a user put there."""


@pytest.fixture
def world() -> UnstagedTopic:
    """A landing into files, in commits of four records that no run merges."""
    made = UnstagedTopic(batch_records=4, flush={"merge": False})
    made.lands = Filed
    return made


def test_after_each_commit_the_landed_offsets_are_published(world: UnstagedTopic) -> None:
    published = list[Any]()
    target = world.target(group=SimpleNamespace(publish=published.append))
    land(target, [FIRST])
    assert published == [{TOPIC: {0: 4}}, {TOPIC: {0: 8}}, {TOPIC: {0: 10}}]


def test_landed_offsets_are_those_of_the_newest_tile_with_a_landed_record(world: UnstagedTopic) -> None:
    land(world.target(), [FIRST])
    newer = Tile(SECOND, {0: TileRange(10, 13)})
    assert world.target().find_landed_offsets([newer]) == {0: 13}
    assert world.target().find_landed_offsets([msgspec.structs.replace(newer, partitions={0: TileRange(10, 10)})]) == {
        0: 10
    }


def test_an_hour_that_was_not_landed_is_empty_and_nothing_of_it_is_new(world: UnstagedTopic) -> None:
    landed = world.target().report(FIRST)
    assert (landed.tile, list(landed.manifests), landed.new) == (Tile(FIRST, {}), [], 0)


def test_a_rewritten_hour_is_reported_with_its_own_commits_after_the_replaced_ones_are_deleted(
    world: UnstagedTopic,
) -> None:
    target = world.target()
    land(target, [FIRST])
    landed = rewrite(target, FIRST)
    assert landed.tile.complete
    assert [manifest.id for manifest in landed.manifests] == list(landed.tile.commits)


def leave(world: UnstagedTopic) -> None:
    """What writers that crashed left: an upload without a manifest, one of another sink, and trials of the store."""
    for key in [LEFT, "clicks/date=2026-11-20/hour=01/0-000000000010.json"]:
        world.store.uploads[world.store.create_upload(key, {})].begun_ms = ms(70)
    for key in TRIALS:
        world.store.put(key, b"")


def left(world: UnstagedTopic) -> bool:
    """Whether the upload is still there."""
    return LEFT in [upload.key for upload in world.store.uploads.values()]


@pytest.mark.parametrize("how", [{}, {"dry_run": False}, {"dry_run": True}])
def test_uploads_of_dead_writers_go_unless_they_are_only_looked_for(world: UnstagedTopic, how: dict[str, bool]) -> None:
    land(world.target(), [FIRST])
    leave(world)
    assert world.target(THREE_DAYS).clean(**how) == [Cleaned("", "", 1, "end uploads")]
    assert left(world) == how.get("dry_run", False)
    assert [upload.key for upload in world.store.uploads.values()][-1].startswith("clicks")  # another sink's


def test_nothing_is_deleted_because_of_its_name(world: UnstagedTopic) -> None:
    land(world.target(), [FIRST])
    leave(world)
    before = dict(world.store.objects)
    world.target(100 * THREE_DAYS).clean()
    assert {key: world.store.objects.get(key) for key in before} == before
