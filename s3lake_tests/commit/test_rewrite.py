"""Rewriting an hour that has landed."""

import pytest

from s3lake.commit import protocol
from s3lake.commit.replace import begin_rewrite
from s3lake.errors import DataLossError, IncompleteError
from s3lake_tests.commit.kafka import hour
from s3lake_tests.commit.works import accepting, materialise, rewriting, stage
from s3lake_tests.commit.world import World


@pytest.fixture
def landed(world: World) -> World:
    """Hour 0 is landed, in two files; it is minute 65."""
    world.minute = 65
    world.do("A", materialise(0), chunk=2)
    assert list(world.view().data) == ["data/orders/0+0", "data/orders/0+2"]
    return world


def refused(world: World, number: int) -> str:
    head, _ = world.index.head()
    with pytest.raises((DataLossError, IncompleteError)) as caught:
        begin_rewrite(world.index, world.kafka, head, hour(number))
    return str(caught.value)


def test_an_hour_that_is_not_landed_is_not_rewritten(world: World):
    world.do("A", materialise(0))

    assert refused(world, 0) == "orders 2026-11-20T00 is not landed as a whole: materialise it before rewriting it"


def test_an_hour_that_was_never_opened_is_not_rewritten(landed: World):
    assert refused(landed, 7) == "orders 2026-11-20T07 is not landed as a whole: materialise it before rewriting it"


def test_an_hour_that_kafka_has_no_longer_is_not_rewritten(landed: World):
    landed.kafka.retain(0, 1)

    assert "Kafka has expired some of these records; a rewrite would lose them" in refused(landed, 0)


def test_an_hour_that_compaction_took_records_from_is_not_rewritten(landed: World):
    landed.kafka.compact(0, 1, 3)
    before = landed.view()
    head, _ = landed.index.head()
    attempt = begin_rewrite(landed.index, landed.kafka, head, hour(0))
    actor = landed.start("rewrite", lambda me: setattr(me, "staged", stage(me, attempt, landed.kafka.topic_id)))
    landed.run(actor)

    with pytest.raises(
        DataLossError,
        match=r"orders 2026-11-20T00: Kafka has fewer records now than were landed \(topic-partition 0: 2 of 4\), .*"
        "the landed files stay",
    ):
        protocol.commit(landed.index, attempt, actor.staged)
    assert landed.view() == before
    assert landed.bucket.uploads == {}


def test_records_that_were_compacted_before_they_were_landed_are_no_loss(world: World):
    world.kafka.compact(0, 1)
    world.minute = 65
    world.do("A", materialise(0))
    world.do("rewrite", rewriting(0))

    assert world.outcomes["rewritten"] == 1


def test_an_hour_of_a_topic_created_again_is_not_rewritten(landed: World):
    landed.kafka.create_topic(1)

    assert "the topic was deleted since; the files are all there is" in refused(landed, 0)


def test_not_even_after_the_new_topic_was_accepted_and_has_offsets_enough(landed: World):
    landed.kafka.create_topic(1)
    landed.kafka.produce(0, 70, 71, 72, 73, 74)
    landed.do("accept", accepting())

    assert "its topic was deleted since, or a connector landed it; the files are all there is" in refused(landed, 0)


def test_the_first_hour_of_a_topic_created_again_is_rewritten(landed: World):
    landed.kafka.create_topic(1)
    landed.kafka.produce(0, 66, 67)
    landed.do("operator", accepting())
    landed.minute = 125
    landed.do("A", materialise(1))
    head, _ = landed.index.head()
    assert head.since == hour(1)

    attempt = begin_rewrite(landed.index, landed.kafka, head, hour(1))
    assert attempt.batch.reads == {0: (0, 2)}
