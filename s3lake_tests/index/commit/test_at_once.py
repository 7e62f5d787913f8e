"""`exactly_once: false`: objects become visible one by one, and the tile is changed once, at the end."""

from collections.abc import Iterator

import pytest

from s3lake.errors import FencedError
from s3lake.index.commit import open_and_close, protocol
from s3lake.index.commit.protocol import Staged
from s3lake.index.commit.replacing_attempts import begin_rewrite
from s3lake.index.plan.tile import Tile, TileRange
from s3lake_tests.index.commit import invariants
from s3lake_tests.index.commit.actors import completes
from s3lake_tests.index.commit.by_hand import begin, tile
from s3lake_tests.index.commit.kafka import hour
from s3lake_tests.index.commit.works import materialise, stage
from s3lake_tests.index.commit.world import World


@pytest.fixture
def world() -> Iterator[World]:
    """Four records in hour 0, one in hour 1; it is minute 5."""
    with World(partitions=1, mode="at once") as world:
        world.kafka.produce(0, 1, 2, 3, 4, 61)
        yield world


def staged_by(world: World, attempt: protocol.Attempt) -> Staged:
    """As the tasks do it, in both modes: nothing of it is visible."""
    staged: list[Staged] = []
    world.run(world.start("stage", lambda me: staged.append(stage(me, attempt, world.kafka.topic_id))))
    return staged[0]


def test_a_commit_is_one_change_of_the_tile(world: World):
    open_and_close.open_hour(world.index, world.kafka, hour(0))
    attempt = begin(world, 0)
    staged = staged_by(world, attempt)
    assert world.view().data == {}

    committed = protocol.commit_attempt_at_once(world.index, attempt, staged)

    sums, took_ms = tile(world, 0).sums, tile(world, 0).took_ms
    expected = Tile(hour(0), {0: TileRange(0, 5)}, rev=1, commits=("c1",), sums=sums, took_ms=took_ms, epochs={0: 0})
    assert tile(world, 0) == committed.tile == expected
    assert len(world.view().data) == len(committed.manifest.files) == 3
    assert committed.manifest.reason == ""


def test_an_answer_that_was_lost_is_found_in_the_tile(world: World, monkeypatch: pytest.MonkeyPatch):
    index = world.index
    open_and_close.open_hour(index, world.kafka, hour(0))
    attempt = begin(world, 0)
    staged, swap = staged_by(world, attempt), index.swap_tile
    monkeypatch.setattr(index, "swap_tile", lambda *change: swap(*change) and None)

    assert protocol.commit_attempt_at_once(index, attempt, staged).manifest.id == "c1"
    assert tile(world, 0).commits == ("c1",)


def test_a_rewrite_sweeps_what_it_replaced_and_returns_the_tile_that_is_left(world: World):
    world.minute = 65
    world.do("A", materialise(0))
    head, _ = world.index.head()
    attempt = begin_rewrite(world.index, world.kafka, head, hour(0))

    committed = protocol.commit_attempt_at_once(world.index, attempt, staged_by(world, attempt))

    assert committed.tile == tile(world, 0)
    assert (committed.tile.commits, committed.tile.garbage) == ((attempt.commit,), ())
    assert attempt.suffix
    assert all(key.endswith(attempt.suffix) for key in world.view().data)


def test_a_fenced_writers_objects_are_left_for_clean(world: World):
    open_and_close.open_hour(world.index, world.kafka, hour(0))
    attempt = begin(world, 0)
    staged = staged_by(world, attempt)
    world.index.swap_tile(attempt.tile.revise(), attempt.etag)

    with pytest.raises(
        FencedError, match="first; 3 of its objects are visible and not in the index, until `s3lake clean`"
    ):
        protocol.commit_attempt_at_once(world.index, attempt, staged)
    assert len(world.view().data) == 3


def test_a_name_that_a_dead_writer_took_gets_a_suffix(world: World):
    a = world.do("A", materialise(0), until=completes)
    world.step(a, "crash after")

    world.do("B", materialise(0))

    names = sorted(key.removeprefix("data/orders/") for key in world.view().data)
    assert names == ["0+0", "0+0~c3", "0+2~c3", "0+4~c3"]
    assert tile(world, 0).partitions == {0: TileRange(0, 5)}
    world.check(invariants.AT_EVERY_STEP, world.view())
    world.check([invariants.never_less_than_once], world.view())
