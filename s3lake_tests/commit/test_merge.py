"""Merging the commits of an hour that has landed."""

import pytest

from s3lake.commit.replace import MERGE, begin_replacement
from s3lake_tests.commit.kafka import hour
from s3lake_tests.commit.works import PACE, materialise, merging, reading, recovering
from s3lake_tests.commit.world import World


@pytest.fixture
def landed(world: World) -> World:
    """Hour 0 is landed in three commits of four records; it is minute 65."""
    world.do("A", materialise(0), limit=1, chunk=1)
    world.minute = 65
    world.do("A", materialise(0), chunk=1)
    assert world.view().tiles[hour(0)].complete
    assert len(world.view().tiles[hour(0)].commits) == 4
    return world


def test_some_of_the_commits_can_be_merged(landed: World):
    before = landed.view().tiles[hour(0)]
    landed.do("merge", merging(0, last=2))

    after = landed.view().tiles[hour(0)]
    assert after.commits[:2] == before.commits[:2]
    assert landed.view().manifests[after.commits[2]].replaces == before.commits[2:]


def test_commits_that_do_not_follow_each_other_are_left_alone(landed: World):
    first, _, third, _ = landed.view().listed(landed.view().tiles[hour(0)])

    assert begin_replacement(landed.index, hour(0), [first, third], MERGE, PACE) is None


def test_records_that_had_expired_before_they_were_landed_stay_noted(world: World):
    world.do("A", materialise(0, rounds=0))
    world.kafka.retain(0, 1)
    world.minute = 65
    world.do("A", materialise(0, rounds=9), limit=1)
    before = world.view().tiles[hour(0)]
    world.do("merge", merging(0))

    tile = world.view().tiles[hour(0)]
    assert len(before.commits) > len(tile.commits) == 1
    assert tile.expired == before.expired == ((0, 0, 1),)
    assert world.view().manifests[tile.commits[0]].expired == ((0, 0, 1),)


@pytest.mark.parametrize("fault", ["crash before", "crash after", "timeout, done", "timeout, not done", "answer lost"])
def test_whatever_happens_to_any_request_the_hour_is_as_it_was_or_replaced_as_a_whole(fault: str):
    """Invariants are checked after each request, readers see all records, and whoever comes next finishes."""
    number = 0
    while True:
        with World(partitions=2) as world:
            world.kafka.produce(0, 1, 2, 3, 61)
            world.kafka.produce(1, 1, 62)
            world.do("A", materialise(0), limit=1, chunk=1)
            world.minute = 65
            world.do("A", materialise(0), chunk=1)
            before = world.view().tiles[hour(0)]
            merge = world.start("merge", merging(0))
            for _ in range(number):
                if merge.alive:
                    world.step(merge)
            if not merge.alive:
                break
            world.step(merge, fault)
            world.do("reader", reading(0))
            world.run(merge)
            world.do("B", recovering(0))
            world.do("B", merging(0))
            tile = world.view().tiles[hour(0)]
            assert tile.complete
            assert len(before.commits) > len(tile.commits) == 1
        number += 1
    assert number > 20
