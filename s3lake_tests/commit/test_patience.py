"""How long a Complete that may be under way elsewhere is waited for before its commit is rolled back."""

from types import SimpleNamespace

import pytest

from s3lake.commit import recovery
from s3lake.plan.tile import Span
from s3lake_tests.commit.bucket import Circumstances
from s3lake_tests.commit.kafka import hour, ms
from s3lake_tests.commit.test_traces import completes
from s3lake_tests.commit.works import materialise
from s3lake_tests.commit.world import World


class Clock:
    """Time that passes by sleeping only; `then` happens at its moment."""

    def __init__(self, age_s: float) -> None:
        self.now = ms(5) / 1000 + age_s
        self.pauses: list[float] = []
        self.then = (10**9, lambda: None)

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds
        if sum(self.pauses) >= self.then[0]:
            self.then[1]()


@pytest.fixture
def under_way() -> World:
    """A's only Complete is under way: its upload is known no more, its object is not there yet."""
    with World(Circumstances(late=True), partitions=1) as world:
        world.kafka.produce(0, 1, 2)
        a = world.do("A", materialise(0), until=completes)
        world.step(a, twist="slow")
        yield world


def settled(world: World, clock: Clock, monkeypatch: pytest.MonkeyPatch):
    time = SimpleNamespace(time=lambda: clock.now, monotonic=lambda: clock.now, sleep=clock.sleep)
    monkeypatch.setattr(recovery, "time", time)
    return recovery.settle(world.index, hour(0))[0]


@pytest.mark.parametrize("age_s", [-300, 0, 60, 890])
def test_a_young_commit_is_rolled_back_only_after_45_s_of_looking(
    age_s: float, under_way: World, monkeypatch: pytest.MonkeyPatch
):
    clock = Clock(age_s)
    tile = settled(under_way, clock, monkeypatch)

    assert (tile.commits, tile.garbage) == ((), ("c1",))
    assert clock.pauses[:6] == [0.2, 0.4, 0.8, 1.6, 3.2, 5.0]
    assert 45 <= sum(clock.pauses) < 50


def test_a_complete_that_ends_meanwhile_is_landed_and_not_doubled(under_way: World, monkeypatch: pytest.MonkeyPatch):
    clock = Clock(2)
    (upload,) = under_way.bucket.working
    clock.then = (20, lambda: under_way.bucket.working and under_way.bucket.end(upload))
    tile = settled(under_way, clock, monkeypatch)

    assert tile.commits == ("c1",)
    assert tile.partitions[0] == Span(0, 2)
    assert not tile.burnt
    assert len(clock.pauses) < 10


def test_an_old_commit_is_looked_at_three_times(under_way: World, monkeypatch: pytest.MonkeyPatch):
    clock = Clock(901)
    tile = settled(under_way, clock, monkeypatch)

    assert tile.commits == ()
    assert clock.pauses == [0.2, 0.4]
