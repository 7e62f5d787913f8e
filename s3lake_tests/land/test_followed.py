"""The table of a sink beside its landing: when it follows, and what becomes of a landing where it cannot."""

from collections.abc import Iterable

import pytest

from s3lake.errors import TableUnavailableError
from s3lake.land.observer import Run
from s3lake_tests.land.at_hand import FIRST, SECOND, World
from s3lake_tests.land.test_observed import Told


class Table:
    """Notes which hours it was brought to, and how many files there were then."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.asked: list[tuple[str, ...]] = []
        self.files: list[int] = []
        self.away = False

    def follow(self, hours: Iterable[str]) -> list[str]:
        if self.away:
            raise TableUnavailableError("the catalog is away")
        self.asked.append(tuple(hours))
        self.files.append(sum(not key.startswith(".indexes/") for key in self.world.store.objects))
        return [f"snapshot {len(self.asked)}"]


@pytest.fixture
def world() -> World:
    made = World(batch_records=2)
    made.produce(0, b"1", b"2", b"3")
    made.produce(1, b"4")
    made.table = Table(made)
    return made


def test_it_is_brought_to_all_hours_of_a_run_first_and_then_to_each_whose_commits_changed(world: World) -> None:
    world.landing().land([FIRST, SECOND])
    assert world.table.asked == [(FIRST, SECOND), (FIRST,), (FIRST,), (FIRST,), (SECOND,)]


def test_it_follows_a_merge_before_the_files_go_that_were_merged(world: World) -> None:
    world.landing().land([FIRST])
    assert world.table.files == [0, 1, 2, 3]
    assert sum(not key.startswith(".indexes/") for key in world.store.objects) == 1


def test_what_became_of_it_is_told_after_the_commit_that_it_follows(world: World) -> None:
    landing = world.landing()
    told = Told()
    landing.land([FIRST], Run(told))
    assert [line for line in told.lines if line[0] != "planned"] == [
        ("committed", FIRST, 2),
        ("followed", "snapshot 1", False),
        ("followed", "snapshot 2", False),
        ("committed", FIRST, 1),
        ("followed", "snapshot 3", False),
        ("merged", FIRST, "2 commits of 2 files became one of 1"),
        ("followed", "snapshot 4", False),
        ("done", FIRST, 3),
    ]


def test_it_follows_a_rewrite_and_that_is_told(world: World) -> None:
    world.landing().land([FIRST])
    landing = world.landing()
    told = Told()
    landing.rewrite(FIRST, Run(told))
    assert ("followed", "snapshot 5", False) in told.lines
    assert world.table.files[-1] == 2


def test_where_it_cannot_follow_that_is_told_and_all_is_landed(world: World) -> None:
    world.table.away = True
    landing = world.landing()
    told = Told()
    (landed,) = landing.land([FIRST], Run(told))
    assert landed.tile.complete
    assert set(told.lines) >= {("followed", "the catalog is away", True)}
    assert "followed" in [line[0] for line in told.lines][-3:]
