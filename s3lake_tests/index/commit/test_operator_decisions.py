"""By hand: accept a topic that was created again under its name, roll back what no process can finish."""

import pytest

from s3lake.errors import ConfigurationError, DataLossError
from s3lake.index.commit import open_and_close
from s3lake.index.commit.documents import TABLE, TopicHead
from s3lake.index.commit.operator_decisions import RolledBack, accept_present_log, roll_back_by_hand
from s3lake.index.plan.tile import Tile, TileRange
from s3lake_tests.index.commit.actors import completes
from s3lake_tests.index.commit.kafka import hour
from s3lake_tests.index.commit.works import accepting, materialise, rewriting
from s3lake_tests.index.commit.world import World


@pytest.fixture
def again(world: World) -> World:
    """Hour 0 is open with 2 of 4 records landed; the topic was created again, with 6 records from offset 0."""
    world.do("A", materialise(0, rounds=1), limit=2)
    world.kafka.create_topic(1)
    world.kafka.produce(0, 10, 11, 12, 13, 14, 15)
    return world


def refused(world: World, number: int) -> str:
    actor = world.do("B", materialise(number))
    assert isinstance(actor.error, DataLossError)
    return str(actor.error)


CREATED_AGAIN = (
    "topic 'orders' was created again: the index was cut from topic id topic-1, Kafka has topic-2; to go on with the "
    "present topic run `s3lake index accept --topic orders`"
)


def test_a_topic_created_again_is_refused_with_the_remedy(again: World):
    assert refused(again, 0) == CREATED_AGAIN


def test_a_deleted_topic_is_refused_with_the_remedy(world: World):
    world.do("A", materialise(0))
    world.kafka.delete_topic()

    assert refused(world, 0) == (
        "topic 'orders' was deleted: the index was cut from topic id topic-1, Kafka has none; "
        "create it again, or take it out of topics"
    )


def test_accepting_records_what_a_closed_hour_had_not_landed(world: World):
    world.do("A", materialise(0, rounds=1), limit=2)
    world.do("A", materialise(1, rounds=0))
    assert world.view().tiles[hour(0)].partitions == {0: TileRange(0, 2, 4)}
    world.kafka.create_topic(1)

    accept_present_log(world.index, world.kafka)

    assert world.view().tiles[hour(0)].partitions == {0: TileRange(0, 4, 4)}
    assert world.view().tiles[hour(0)].expired == ((0, 2, 4),)


def test_after_accepting_the_present_topic_is_landed_from_its_log_start_under_suffixed_names(again: World):
    again.kafka.retain(0, 1)
    again.do("accept", accepting())
    again.minute = 70

    again.do("B", materialise(1), chunk=9)

    tile = again.view().tiles[hour(1)]
    assert tile.partitions == {0: TileRange(1, 6)}
    assert tile.burnt == {0: 2}
    assert list(again.view().data) == ["data/orders/0+0", "data/orders/0+1~c2"]


def test_hours_of_the_former_topic_cannot_be_opened_any_more(again: World):
    again.do("accept", accepting())
    again.do("C", materialise(3))

    assert "2026-11-20T00" in again.view().tiles
    earlier = hour(-1)
    with pytest.raises(
        DataLossError, match=f"orders {earlier} was landed by a connector before its bucket was adopted, or belongs"
    ):
        open_and_close.open_hour(again.index, again.kafka, earlier)


def test_a_writer_of_the_former_topic_is_fenced(world: World):
    a = world.do("A", materialise(0), until=lambda request: request.enters_pending)
    world.kafka.create_topic(1)
    world.do("accept", accepting())

    world.run(a)

    assert world.outcomes["FencedError"] == 1
    assert world.view().data == {}


@pytest.mark.parametrize(
    ("head", "leads_on"),
    [
        (TopicHead(), True),
        (TopicHead(since=hour(1)), False),
        (TopicHead(since=hour(2), earlier=(hour(0),)), True),
        (TopicHead(since=hour(3), earlier=(hour(1),)), False),
        (TopicHead(topic_id=TABLE), False),
    ],
)
def test_offsets_lead_on_between_hours_unless_a_topic_began_again_between_them(head: TopicHead, leads_on: bool):
    first, recreated = Tile(hour(0), {0: TileRange(0, 4, 4)}), Tile(hour(1), {0: TileRange(0, 6, 6)}, burnt={0: 4})

    assert head.leads_on(first, recreated) == leads_on


def test_there_is_nothing_to_accept_without_an_index_or_while_the_topic_is_the_one_of_the_index_or_deleted(
    world: World,
):
    def refuse(why: str) -> None:
        with pytest.raises(ConfigurationError, match=f"topic 'orders' {why}"):
            accept_present_log(world.index, world.kafka)

    refuse("has no index yet")
    world.do("A", materialise(0))
    refuse("is the one that the index was cut from")
    world.kafka.delete_topic()
    refuse("does not exist in Kafka")


def test_accepting_twice_is_accepting_once(again: World):
    again.do("accept", accepting())
    before = dict(again.bucket.objects)

    again.do("accept", accepting())

    assert again.bucket.objects == before


def test_a_dry_run_returns_the_new_hour_and_changes_nothing(world: World):
    a = world.do("A", materialise(0), until=completes)
    world.step(a, "crash after")
    world.kafka.create_topic(1)
    before = dict(world.bucket.objects)

    assert accept_present_log(world.index, world.kafka, dry_run=True) == hour(1)
    assert world.bucket.objects == before


def test_a_topic_created_again_twice_has_two_earlier_beginnings(again: World):
    accept_present_log(again.index, again.kafka)
    again.minute = 70
    again.do("B", materialise(1))
    again.kafka.create_topic(1)

    assert accept_present_log(again.index, again.kafka) == hour(2)
    head, _ = again.index.head()
    assert (head.since, head.earlier, head.new, head.rev) == (hour(2), (hour(1),), None, 4)


def test_accepting_writes_the_tile_that_was_announced_last(again: World):
    again.minute = 65
    again.kafka.create_topic(1)
    announced = Tile(hour(1), {0: TileRange(4, 4)})
    head, etag = again.index.head()
    head = head.revise(hours=((hour(0), hour(1)),), new=announced)
    again.index.swap(again.index.head_key, head, etag)

    assert accept_present_log(again.index, again.kafka) == hour(2)
    assert again.view().tiles[hour(1)].partitions == {0: TileRange(4, 4, 4)}


def test_accepting_leaves_landed_hours_and_those_without_a_tile_as_they_are(world: World):
    world.minute = 65
    world.do("A", materialise(0))
    world.do("A", materialise(1))
    before = world.index.tile(hour(0))
    head, etag = world.index.head()
    world.index.swap(world.index.head_key, head.revise(new=None), etag)
    del world.bucket.objects[world.index.tile_key(hour(1))]
    world.kafka.create_topic(1)
    world.kafka.produce(0, 66)

    assert accept_present_log(world.index, world.kafka) == hour(2)
    assert world.index.tile(hour(0)) == before
    assert world.index.tile(hour(1)) is None


# Give up, by hand, a pending commit that no process can finish


@pytest.fixture
def stuck(world: World) -> World:
    """A commit of two files is pending, and one of them is visible."""
    a = world.do("A", materialise(0), chunk=3, until=completes)
    world.step(a, "crash after")
    return world


def run(world: World, **how: bool) -> RolledBack:
    return roll_back_by_hand(world.index, world.kafka, hour(0), **how)


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
