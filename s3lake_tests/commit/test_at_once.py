"""`exactly_once: false`: objects become visible one by one, and the tile is changed once, at the end."""

import random
from collections.abc import Callable, Iterator

import pytest

from s3lake.commit import clean as clean_module
from s3lake.commit import opening, protocol, recovery
from s3lake.commit.protocol import Staged
from s3lake.errors import FencedError
from s3lake.plan.tile import Span, Tile
from s3lake_tests.commit import invariants
from s3lake_tests.commit.actors import Request
from s3lake_tests.commit.invariants import Violation
from s3lake_tests.commit.kafka import hour
from s3lake_tests.commit.test_protocol import begin, tile
from s3lake_tests.commit.test_traces import completes
from s3lake_tests.commit.works import cleaning, materialise, stage
from s3lake_tests.commit.world import Mode, World


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
    opening.open_hour(world.index, world.kafka, hour(0))
    attempt = begin(world, 0)
    staged = staged_by(world, attempt)
    assert world.view().data == {}

    protocol.commit_at_once(world.index, attempt, staged)

    sums, took_ms = tile(world, 0).sums, tile(world, 0).took_ms
    expected = Tile(hour(0), {0: Span(0, 5)}, rev=1, commits=("c1",), sums=sums, took_ms=took_ms, epochs={0: 0})
    assert tile(world, 0) == expected
    assert len(world.view().data) == 3


def test_a_fenced_writers_objects_are_left_for_clean(world: World):
    opening.open_hour(world.index, world.kafka, hour(0))
    attempt = begin(world, 0)
    staged = staged_by(world, attempt)
    world.index.swap_tile(attempt.tile.revise(), attempt.etag)

    with pytest.raises(FencedError, match="3 of its objects are visible and not in the index, until `s3lake clean`"):
        protocol.commit_at_once(world.index, attempt, staged)
    assert len(world.view().data) == 3


def test_a_name_that_a_dead_writer_took_gets_a_suffix(world: World):
    a = world.do("A", materialise(0), until=completes)
    world.step(a, "crash after")

    world.do("B", materialise(0))

    names = sorted(key.removeprefix("data/orders/") for key in world.view().data)
    assert names == ["0+0", "0+0~c3", "0+2~c3", "0+4~c3"]
    assert tile(world, 0).partitions == {0: Span(0, 5)}
    world.check(invariants.AT_EVERY_STEP, world.view())
    world.check([invariants.never_less_than_once], world.view())


# ------------------------------------------------------------------------------------- traces that break without a rule


def deletes_data(request: Request) -> bool:
    return request.method == "delete" and request.key.startswith("data/")


def two_cleans(world: World) -> None:
    """A writer crashes when its objects are visible; a clean that looked at one waits while its name becomes free."""
    a = world.start("A", materialise(0), chunk=9)
    world.run(a, until=lambda request: request.puts_tile is not None and bool(request.puts_tile.commits))
    a.crash()
    world.minute = 66
    z = world.start("Z", cleaning(later_days=2))
    if world.run(z, until=deletes_data):
        world.do("Y", cleaning(later_days=2))
        world.do("B", materialise(0), chunk=9)
        world.run(z)


def two_writers_of_a_key(world: World) -> None:
    """Two land the same offsets; the fenced one has written over the winner's object, and a clean follows."""
    a = world.do("A", materialise(0), until=completes)
    world.do("B", materialise(0))
    world.run(a)
    world.do("Z", cleaning(later_days=2))


def without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clean_module, "_is_landed_by_others", lambda *_: True)


def without_sparing_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    replacing = recovery.replacing
    remove = recovery.remove

    def removing(store, manifest, file):
        monkeypatch.setattr(recovery, "replacing", lambda *_: False)
        remove(store, manifest, file)
        monkeypatch.setattr(recovery, "replacing", replacing)

    monkeypatch.setattr(recovery, "remove", removing)


TRACES = [
    (two_cleans, "at once", without_waiting, "listed"),
    (two_writers_of_a_key, "replacing", without_sparing_keys, "listed"),
]


def play(trace: Callable[[World], None], mode: Mode) -> World:
    with World(partitions=1, mode=mode, mute=("I2",)) as world:
        world.kafka.produce(0, 1, 2, 3, 4)
        trace(world)
        world.come_to_rest(random.Random(0))
    return world


@pytest.mark.parametrize(("trace", "mode", "rule", "violated"), TRACES)
def test_trace_holds_and_breaks_without_its_rule(
    trace: Callable[[World], None], mode: Mode, rule: Callable, violated: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    play(trace, mode)
    rule(monkeypatch)
    with pytest.raises(Violation) as caught:
        play(trace, mode)
    assert caught.value.invariant == violated, str(caught.value)
