"""Merging the commits of an hour that has landed."""

import pytest

from s3lake.commit.replace import MERGE, begin_replacement
from s3lake.errors import FencedError
from s3lake_tests.commit.kafka import hour
from s3lake_tests.commit.test_traces import completes, enters_pending
from s3lake_tests.commit.works import PACE, accepting, materialise, merging, reading, recovering, rewriting
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


def test_one_commit_takes_the_place_of_all(landed: World):
    before = landed.view()
    landed.do("merge", merging(0))

    after = landed.view()
    (commit,) = after.tiles[hour(0)].commits
    assert list(after.data) == [f"data/orders/0+0~{commit}"]
    assert after.manifests[commit].replaces == before.tiles[hour(0)].commits
    assert after.tiles[hour(0)].complete
    assert after.tiles[hour(0)].partitions == before.tiles[hour(0)].partitions


def test_an_hour_that_is_one_commit_is_left_alone(landed: World):
    landed.do("merge", merging(0))
    before = landed.view()
    landed.do("merge", merging(0))

    assert landed.view() == before


def test_some_of_the_commits_can_be_merged(landed: World):
    before = landed.view().tiles[hour(0)]
    landed.do("merge", merging(0, last=2))

    after = landed.view().tiles[hour(0)]
    assert after.commits[:2] == before.commits[:2]
    assert landed.view().manifests[after.commits[2]].replaces == before.commits[2:]


def test_commits_that_do_not_follow_each_other_are_left_alone(landed: World):
    first, _, third, _ = landed.view().listed(landed.view().tiles[hour(0)])

    assert begin_replacement(landed.index, hour(0), [first, third], MERGE, PACE) is None


def test_kafka_is_not_asked_and_may_have_lost_the_records(landed: World):
    landed.kafka.retain(0, 4)
    landed.do("merge", merging(0))

    assert landed.outcomes["merged"] == 1


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


def test_an_hour_of_a_topic_that_was_created_again_is_merged(landed: World):
    landed.kafka.create_topic(1)
    landed.do("accept", accepting())
    landed.do("merge", merging(0))

    assert landed.outcomes["merged"] == 1


def test_readers_of_the_index_switch_at_once(landed: World):
    merge = landed.do("merge", merging(0), until=lambda request: request.method == "delete")
    landed.do("reader", reading(0))
    landed.run(merge)
    landed.do("reader", reading(0))


@pytest.mark.parametrize("other", [merging(0), rewriting(0)], ids=["a merge", "a rewrite"])
def test_of_a_merge_and_another_at_once_one_is_fenced(landed: World, other):
    a, b = landed.start("A", merging(0)), landed.start("B", other)
    landed.run(a, until=enters_pending)
    landed.run(b)
    landed.run(a)

    assert landed.outcomes[FencedError.__name__] == 1
    assert len(landed.view().tiles[hour(0)].commits) == 1
    assert landed.bucket.uploads == {}


def test_a_merge_whose_objects_are_replaced_while_it_reads_leaves_nothing(landed: World):
    merge = landed.start("merge", merging(0))
    landed.run(merge, until=lambda request: request.method == "get" and request.key.startswith("data/"))
    landed.do("rewrite", rewriting(0))
    landed.run(merge)

    assert landed.outcomes["merged"] == 0
    assert landed.bucket.uploads == {}
    assert landed.view().tiles[hour(0)].complete


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


def test_a_merge_that_is_rolled_back_leaves_the_files_as_they_were(landed: World):
    before = landed.view()
    merge = landed.do("merge", merging(0), until=completes)
    landed.step(merge, "crash before")
    landed.lose_upload(min(landed.bucket.uploads))
    landed.do("B", recovering(0))

    assert landed.view().data == before.data
    assert landed.view().tiles[hour(0)].commits == before.tiles[hour(0)].commits
