"""Rewriting an hour that has landed."""

import pytest

from s3lake.commit import protocol
from s3lake.commit.replace import begin_rewrite
from s3lake.errors import DataLossError, FencedError, IncompleteError
from s3lake.source.offsets import Snapshot
from s3lake_tests.commit.kafka import hour
from s3lake_tests.commit.test_traces import completes, enters_pending
from s3lake_tests.commit.works import PACE, accepting, materialise, reading, recovering, rewriting, stage
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
        begin_rewrite(world.index, world.kafka, head, hour(number), PACE)
    return str(caught.value)


def test_a_rewrite_takes_the_place_of_all_commits_under_new_names(landed: World):
    landed.do("rewrite", rewriting(0), chunk=4)

    tile = landed.view().tiles[hour(0)]
    assert tile.commits == ("c2",)
    assert list(landed.view().data) == ["data/orders/0+0~c2"]
    assert landed.view().manifests["c2"].replaces == ("c1",)


def test_what_was_replaced_is_swept_at_once(landed: World):
    landed.do("rewrite", rewriting(0))

    assert landed.view().tiles[hour(0)].garbage == ()
    assert landed.bucket.uploads == {}


def test_an_hour_can_be_rewritten_again_and_again(landed: World):
    for commit in ("c2", "c3", "c4"):
        landed.do("rewrite", rewriting(0), chunk=9)
        assert list(landed.view().data) == [f"data/orders/0+0~{commit}"]


def test_until_the_switch_readers_of_the_index_see_the_old_files(landed: World):
    again = landed.do("rewrite", rewriting(0), chunk=1, until=completes)
    landed.step(again)

    assert landed.view().tiles[hour(0)].commits == ("c1",)
    landed.do("reader", reading(0))


def test_a_reader_between_switch_and_sweep_sees_the_new_files(landed: World):
    landed.do("rewrite", rewriting(0), until=lambda request: request.method == "delete")

    assert landed.view().tiles[hour(0)].commits == ("c2",)
    assert landed.view().tiles[hour(0)].garbage == ("c1",)
    landed.do("reader", reading(0))


def test_a_rewrite_that_stops_half_way_is_finished_by_whoever_comes_next(landed: World):
    again = landed.do("rewrite", rewriting(0), chunk=1, until=completes)
    landed.step(again, "crash after")

    landed.do("B", recovering(0))

    assert landed.view().tiles[hour(0)].commits == ("c2",)
    assert len(landed.view().data) == 4


def test_a_rewrite_that_is_rolled_back_leaves_the_old_files_as_they_were(landed: World):
    before = landed.view().data
    again = landed.do("rewrite", rewriting(0), chunk=1, until=completes)
    landed.step(again, "crash after")
    landed.lose_upload(min(landed.bucket.uploads))

    landed.do("B", recovering(0))

    assert landed.view().tiles[hour(0)].commits == ("c1",)
    assert landed.view().data == before


def test_of_two_rewrites_at_once_one_is_fenced(landed: World):
    a, b = landed.start("A", rewriting(0)), landed.start("B", rewriting(0))
    landed.run(a, until=enters_pending)
    landed.run(b)
    landed.run(a)

    assert landed.outcomes["rewritten"] == 1
    assert landed.outcomes[FencedError.__name__] == 1
    assert landed.view().tiles[hour(0)].commits == ("c3",)


def test_an_hour_that_is_not_landed_is_not_rewritten(world: World):
    world.do("A", materialise(0))

    assert refused(world, 0) == "orders 2026-11-20T00 is not landed as a whole: materialise it before rewriting it"


def test_an_hour_that_was_never_opened_is_not_rewritten(landed: World):
    assert refused(landed, 7) == "orders 2026-11-20T07 is not landed as a whole: materialise it before rewriting it"


def test_an_hour_that_kafka_has_no_longer_is_not_rewritten(landed: World):
    landed.kafka.retain(0, 1)

    assert "Kafka has expired some of these records; a rewrite would lose them" in refused(landed, 0)


def test_an_hour_that_was_never_complete_in_kafka_is_not_rewritten(world: World):
    world.do("A", materialise(0, rounds=0))
    world.kafka.retain(0, 1)
    world.minute = 65
    world.do("A", materialise(0))
    assert world.view().tiles[hour(0)].landed

    assert "Kafka has expired some of these records" in refused(world, 0)


def test_an_hour_that_compaction_took_records_from_is_not_rewritten(landed: World):
    landed.kafka.compact(0, 1, 3)
    before = landed.view()
    head, _ = landed.index.head()
    attempt = begin_rewrite(landed.index, landed.kafka, head, hour(0), PACE)
    actor = landed.start("rewrite", lambda me: setattr(me, "staged", stage(me, attempt, landed.kafka.topic_id)))
    landed.run(actor)

    with pytest.raises(
        DataLossError,
        match=r"orders 2026-11-20T00: Kafka has fewer records now than were landed \(topic-partition 0: 2 of 4\), .*"
        "the landed files stay",
    ):
        protocol.commit(landed.index, attempt, actor.staged, PACE)
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


def test_an_empty_hour_can_be_rewritten(world: World):
    world.minute = 300
    world.do("A", materialise(3))

    world.do("rewrite", rewriting(3))

    assert world.view().data == {}
    assert world.view().tiles[hour(3)].complete


def test_kafka_is_told_that_the_topic_was_there_before(landed: World, monkeypatch: pytest.MonkeyPatch):
    told: list[bool] = []
    snapshot = landed.kafka.snapshot

    def asked(topic: str, hour: str, *, known: bool = False) -> Snapshot:
        told.append(known)
        return snapshot(topic, hour)

    monkeypatch.setattr(landed.kafka, "snapshot", asked)
    head, _ = landed.index.head()
    begin_rewrite(landed.index, landed.kafka, head, hour(0), PACE)

    assert told == [True]


def test_the_first_hour_of_a_topic_created_again_is_rewritten_for_the_reason_that_is_said(landed: World):
    landed.kafka.create_topic(1)
    landed.kafka.produce(0, 66, 67)
    landed.do("operator", accepting())
    landed.minute = 125
    landed.do("A", materialise(1))
    head, _ = landed.index.head()
    assert head.since == hour(1)

    attempt = begin_rewrite(landed.index, landed.kafka, head, hour(1), PACE, reason="mend")
    assert attempt.reason == "mend"
    assert attempt.batch.reads == {0: (0, 2)}
