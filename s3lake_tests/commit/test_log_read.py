"""Step 2, once all is read: whether what was read is what the log holds."""

import pytest

from s3lake.commit.protocol import Attempt, must_be_the_log
from s3lake.commit.replace import begin_rewrite
from s3lake.errors import DataLossError, KafkaUnavailableError
from s3lake_tests.commit.kafka import hour
from s3lake_tests.commit.test_protocol import begin
from s3lake_tests.commit.works import PACE, materialise
from s3lake_tests.commit.world import World


@pytest.fixture
def world(ten_landed: World) -> World:
    """And three of each topic-partition are not."""
    ten_landed.kafka.produce(0, 3, 4, 5)
    ten_landed.kafka.produce(1, 3, 4, 5)
    return ten_landed


def check(world: World, attempt: Attempt | None) -> None:
    head, _ = world.index.head()
    must_be_the_log(world.index, world.kafka, head, attempt)


def test_it_is_after_an_election_that_was_over_when_it_was_planned(world: World):
    world.kafka.elect(0, end=11)
    world.kafka.produce(0, 6, 7)
    attempt = begin(world, 0)
    assert attempt is not None
    assert (attempt.tile.epochs[0], attempt.batch.epochs[0]) == (0, 1)
    check(world, attempt)


def test_it_is_where_another_leader_lacks_nothing_of_it(world: World):
    attempt = begin(world, 0)
    world.kafka.elect(0)
    world.kafka.produce(0, 6)
    check(world, attempt)


def test_it_is_not_where_another_leader_lacked_some_of_it(world: World):
    attempt = begin(world, 0)
    world.kafka.elect(0, end=11)
    world.kafka.elect(1, end=3)
    with pytest.raises(
        KafkaUnavailableError,
        match=r"topic 'orders': .* \(topic-partition 0 was cut off at offset 11, "
        r"topic-partition 1 was cut off at offset 3\); nothing",
    ):
        check(world, attempt)


def test_records_that_wait_where_others_are_landed_are_told_first(world: World):
    attempt = begin(world, 0)
    world.kafka.elect(0, end=4)
    world.kafka.elect(1, end=3)
    with pytest.raises(DataLossError, match=r"'orders'.*\(topic-partition 0: offsets 4 to 9\)"):
        check(world, attempt)


def test_a_rewrite_of_a_log_that_was_cut_meanwhile_is_refused(world: World):
    world.minute = 65
    world.do("B", materialise(0))
    head, _ = world.index.head()
    attempt = begin_rewrite(world.index, world.kafka, head, hour(0), PACE)
    world.kafka.elect(0, end=4)
    with pytest.raises(DataLossError, match=r"\(topic-partition 0: offsets 4 to 12\)"):
        check(world, attempt)


def test_what_was_read_of_a_topic_that_was_created_again_is_refused(world: World):
    attempt = begin(world, 0)
    world.kafka.create_topic(2)
    with pytest.raises(DataLossError, match="topic 'orders' was created again"):
        check(world, attempt)


def test_kafka_is_asked_about_the_hour_that_was_read(world: World, monkeypatch: pytest.MonkeyPatch):
    attempt = begin(world, 0)
    asked = []
    snapshot = world.kafka.snapshot
    monkeypatch.setattr(world.kafka, "snapshot", lambda *of, known: asked.append((*of, known)) or snapshot(*of))
    check(world, attempt)
    assert asked == [("orders", hour(0), True)]
