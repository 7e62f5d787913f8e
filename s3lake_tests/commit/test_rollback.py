"""Give up, by hand, a pending commit that no process can finish."""

import pytest

from s3lake.commit.accept import RolledBack, roll_back
from s3lake.errors import ConfigurationError, DataLossError
from s3lake_tests.commit.kafka import hour
from s3lake_tests.commit.test_traces import completes
from s3lake_tests.commit.works import materialise, rewriting
from s3lake_tests.commit.world import World


@pytest.fixture
def stuck(world: World) -> World:
    """A commit of two files is pending, and one of them is visible."""
    a = world.do("A", materialise(0), chunk=3, until=completes)
    world.step(a, "crash after")
    return world


def run(world: World, **how: bool) -> RolledBack:
    return roll_back(world.index, world.kafka, hour(0), **how)


def test_a_pending_commit_is_given_up_with_all_that_it_had_completed(stuck: World):
    assert run(stuck) == RolledBack("c1", 5, 0)

    tile = stuck.view().tiles[hour(0)]
    assert (tile.pending, tile.garbage, tile.commits) == (None, (), ())
    assert stuck.view().data == {}
    assert stuck.bucket.uploads == {}


def test_a_pending_commit_whose_manifest_is_deleted_is_given_up_without_asking_kafka(stuck: World):
    del stuck.bucket.objects[stuck.index.manifest_key(hour(0), "c1")]
    stuck.kafka.retain(0, 2)

    assert run(stuck) == RolledBack("c1", 0, 0)
    assert stuck.view().tiles[hour(0)].pending is None


def test_records_that_kafka_has_no_longer_are_given_up_only_knowingly(stuck: World):
    stuck.kafka.retain(0, 2)

    with pytest.raises(DataLossError, match=r"Kafka has expired 2 offsets that commit c1 holds; .*--give-up-expired"):
        run(stuck)
    assert stuck.view().tiles[hour(0)].pending == "c1"

    assert run(stuck, give_up_expired=True) == RolledBack("c1", 5, 2)
    stuck.do("B", materialise(0))
    assert stuck.view().tiles[hour(0)].expired == ((0, 0, 2),)


def test_a_rewrite_that_is_given_up_loses_nothing(world: World):
    world.minute = 65
    world.do("A", materialise(0))
    world.do("rewrite", rewriting(0), until=completes).crash()
    world.kafka.retain(0, 3)
    before = world.view().data

    assert run(world).commit == "c2"
    assert world.view().data == before
    assert world.view().tiles[hour(0)].commits == ("c1",)


def test_offsets_that_had_expired_before_the_commit_are_not_given_up_with_it(world: World):
    world.do("A", materialise(0, rounds=1), limit=2)
    world.kafka.retain(0, 3)
    world.do("B", materialise(0), until=completes).crash()
    world.kafka.retain(0, 4)

    assert run(world, give_up_expired=True) == RolledBack("c2", 3, 1)


def test_records_of_a_topic_partition_that_kafka_leaves_out_are_given_up_only_knowingly(stuck: World):
    stuck.kafka.unseen = {0}

    with pytest.raises(DataLossError, match="Kafka has expired 5 offsets that commit c1 holds"):
        run(stuck)


def test_there_is_nothing_to_roll_back_where_nothing_is_pending(world: World):
    with pytest.raises(ConfigurationError, match="orders 2026-11-20T00 has no tile: there is nothing to roll back"):
        run(world)
    world.do("A", materialise(0))
    with pytest.raises(ConfigurationError, match="orders 2026-11-20T00 has no pending commit: there is nothing to"):
        run(world)
