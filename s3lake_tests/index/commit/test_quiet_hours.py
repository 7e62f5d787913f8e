"""Hours without a record: which requests close one, and when it is left to the steps of every hour."""

from typing import Any

import pytest

from s3lake import hours
from s3lake.index.commit import open_and_close, protocol
from s3lake.index.commit.documents import TopicHead, Watermark
from s3lake.index.commit.operator_decisions import accept_present_log
from s3lake.index.commit.quiet_hours import QuietHour, close_quiet_hour, find_last_tile
from s3lake.index.commit.sealing import Sealing
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.index.plan.tile import UNKNOWN_END, Tile, TileRange
from s3lake_tests.index.commit.kafka import TOPIC, FakeKafka, hour, ms
from s3lake_tests.kit.stores import CountedStore

FIRST, SECOND, THIRD, FOURTH = (hour(number) for number in range(4))


class QuietTopic:
    """A topic with five records before the first hour, and its index, in which that hour is open."""

    def __init__(self, partitions: int = 1) -> None:
        self.kafka = FakeKafka(partitions)
        for partition in range(partitions):
            self.kafka.produce(partition, *[-30] * 5)
        self.store = CountedStore()
        self.index = TopicIndex(self.store, ".indexes/events", TOPIC)
        open_and_close.open_hour(self.index, self.offsets, FIRST)
        self.store.calls.clear()

    @property
    def offsets(self) -> Any:
        return self.kafka

    @property
    def head(self) -> TopicHead:
        stored = self.index.head()
        assert stored is not None
        return stored[0]

    def change_head(self, **changes: Any) -> None:
        stored = self.index.head()
        assert stored is not None
        assert self.index.swap(self.index.head_key, stored[0].revise(**changes), stored[1])

    def tile(self, hour: str) -> Tile:
        return self.index.existing_tile(hour)[0]

    def close(self) -> QuietHour | None:
        """Close the last hour, as a run does that finds it quiet."""
        stored = self.index.head()
        assert stored is not None
        kafka = self.kafka.snapshot(TOPIC, stored[0].hours[-1][1])
        return close_quiet_hour(self.index, *stored, kafka, start=FIRST)

    def plan(self, hour: str) -> protocol.Attempt | None:
        """Plan what is to be landed of an hour, as a landing does."""
        head = open_and_close.open_hour(self.index, self.offsets, hour)
        assert head is not None
        return protocol.begin_micro_batch(self.index, self.offsets, head, hour, limit=99, now_ms=ms(600))


@pytest.fixture
def topic() -> QuietTopic:
    return QuietTopic()


def test_an_hour_costs_one_read_and_two_writes(topic: QuietTopic) -> None:
    topic.close()
    topic.store.calls.clear()
    closed = topic.close()
    assert closed is not None
    assert topic.store.calls == [
        ("get", topic.index.head_key),
        ("put", topic.index.tile_key(SECOND)),
        ("put", topic.index.head_key),
    ]
    assert (closed.closed, closed.opened, closed.head) == (topic.tile(SECOND), topic.head.new, topic.head)


def test_the_next_hour_is_closed_without_reading_the_topic_again(topic: QuietTopic) -> None:
    first = topic.close()
    assert first is not None
    topic.store.calls.clear()
    kafka = topic.kafka.snapshot(TOPIC, SECOND)
    assert close_quiet_hour(topic.index, first.head, first.etag, kafka, start=FIRST) is not None
    assert [name for name, _ in topic.store.calls] == ["put", "put"]
    assert topic.head.hours == ((FIRST, THIRD),)


def test_an_hour_whose_tile_was_created_before_costs_three_requests_more(topic: QuietTopic) -> None:
    assert topic.close() is not None
    assert [name for name, _ in topic.store.calls] == ["get", "put", "get", "get", "put", "put"]


def test_hours_are_closed_where_the_log_ends_and_follow_each_other() -> None:
    topic = QuietTopic(partitions=2)
    for _ in range(3):
        assert topic.close() is not None
    spans = {partition: TileRange(5, 5, 5) for partition in range(2)}
    assert [topic.tile(hour).partitions for hour in (FIRST, SECOND, THIRD)] == [spans] * 3
    assert all(topic.tile(hour).complete for hour in (FIRST, SECOND, THIRD))
    assert topic.head.hours == ((FIRST, FOURTH),)
    assert topic.head.new == Tile(FOURTH, {partition: TileRange(5, 5) for partition in range(2)}, epochs={0: 0, 1: 0})


def test_an_hour_is_as_one_that_is_closed_by_the_steps_of_every_hour(topic: QuietTopic) -> None:
    other = QuietTopic()
    for following in (SECOND, THIRD):
        topic.close()
        open_and_close.open_hour(other.index, other.offsets, following)
    assert [topic.tile(each) for each in (FIRST, SECOND)] == [other.tile(each) for each in (FIRST, SECOND)]
    assert topic.head.new == other.head.new


def test_a_record_that_arrives_late_is_landed_in_the_hour_after_the_closed_one(topic: QuietTopic) -> None:
    topic.close()
    topic.close()
    topic.kafka.produce(0, 65, 70)  # of the second hour, which is closed
    assert topic.plan(SECOND) is None
    attempt = topic.plan(THIRD)
    assert attempt is not None
    assert attempt.batch.reads == {0: (5, 7)}
    assert topic.tile(SECOND).partitions == {0: TileRange(5, 5, 5)}


def test_the_next_hour_is_opened_by_the_steps_of_every_hour_after_a_quiet_one(topic: QuietTopic) -> None:
    topic.close()
    topic.kafka.produce(0, 65, 185)
    attempt = topic.plan(FOURTH)
    assert (topic.tile(SECOND).partitions, topic.head.hours[-1][1]) == ({0: TileRange(5, 5, 6)}, FOURTH)
    assert attempt is not None
    assert attempt.batch.reads == {0: (6, 7)}


def test_an_hour_is_quiet_again_after_the_one_in_which_a_leader_was_elected(topic: QuietTopic) -> None:
    topic.kafka.elect(0)
    assert topic.close() is None
    topic.plan(SECOND)
    assert topic.close() is not None
    assert (topic.head.hours, topic.head.new) == (((FIRST, THIRD),), Tile(THIRD, {0: TileRange(5, 5)}, epochs={0: 1}))


def test_names_of_unknown_ends_stay_burnt_after_the_first_hour_of_a_topic_that_was_created_again(
    topic: QuietTopic,
) -> None:
    tile, etag = topic.index.existing_tile(FIRST)
    topic.index.swap_tile(tile.revise(burnt={0: UNKNOWN_END}), etag)
    topic.kafka.create_topic()
    accept_present_log(topic.index, topic.offsets)
    open_and_close.open_hour(topic.index, topic.offsets, SECOND)
    closed = topic.close()
    assert closed is not None
    assert closed.opened == Tile(THIRD, {0: TileRange(0, 0)}, burnt={0: UNKNOWN_END}, epochs={0: 0})


def test_a_topic_partition_that_was_added_is_in_both_hours(topic: QuietTopic) -> None:
    topic.close()
    topic.kafka.logs.append(type(topic.kafka.logs[0])())
    closed = topic.close()
    assert closed is not None
    assert closed.closed.partitions[1] == TileRange(0, 0, 0)
    assert closed.opened.partitions[1] == TileRange(0, 0)


def test_a_log_that_was_truncated_after_a_quiet_hour_can_be_accepted_as_the_dry_run_shows(topic: QuietTopic) -> None:
    topic.close()
    topic.kafka.elect(0, 3)
    first = accept_present_log(topic.index, topic.offsets, dry_run=True)
    assert first == THIRD
    assert topic.index.tile(SECOND) is None, "a dry run writes nothing"
    assert accept_present_log(topic.index, topic.offsets) == first


class TestNotQuiet:
    """Nothing is written of an hour that may hold a record, or of which Kafka's answer is not as expected."""

    @staticmethod
    def assert_left(topic: QuietTopic) -> None:
        before = dict(topic.store.objects)
        assert topic.close() is None
        assert topic.store.objects == before

    def test_an_hour_with_a_record(self, topic: QuietTopic) -> None:
        topic.kafka.produce(0, 5)
        self.assert_left(topic)

    def test_an_hour_after_which_a_record_came(self, topic: QuietTopic) -> None:
        topic.kafka.produce(0, 65)
        self.assert_left(topic)

    def test_an_hour_with_a_record_in_a_topic_partition_that_was_added(self, topic: QuietTopic) -> None:
        topic.kafka.logs.append(type(topic.kafka.logs[0])())
        topic.kafka.produce(1, 5)
        self.assert_left(topic)

    def test_an_hour_of_a_log_with_a_record_that_is_stamped_ahead(self, topic: QuietTopic) -> None:
        topic.kafka.logs[0].stamps[3] = ms(900)
        self.assert_left(topic)

    def test_an_hour_in_which_a_leader_was_elected(self, topic: QuietTopic) -> None:
        topic.kafka.elect(0)
        self.assert_left(topic)

    def test_an_hour_of_a_topic_that_was_created_again(self, topic: QuietTopic) -> None:
        topic.kafka.create_topic()
        topic.kafka.produce(0, *[-30] * 5)
        self.assert_left(topic)

    def test_an_hour_of_which_a_broker_does_not_name_a_topic_partition(self) -> None:
        topic = QuietTopic(partitions=2)
        topic.kafka.unseen = {1}
        self.assert_left(topic)

    @pytest.mark.parametrize(
        "changes",
        [{"since": THIRD}, {"topic_id": "table"}, {"topic_id": ""}, {"hours": ((FIRST, THIRD),)}, {"new": None}],
        ids=["of a former topic", "of a table", "of an unknown topic", "that is not the last one", "never announced"],
    )
    def test_an_hour(self, changes: dict[str, Any], topic: QuietTopic) -> None:
        topic.change_head(**changes)
        assert find_last_tile(topic.head) is None
        self.assert_left(topic)


class TestOtherProcess:
    def test_a_tile_that_another_process_has_changed_stays(self, topic: QuietTopic) -> None:
        tile, etag = topic.index.existing_tile(FIRST)
        topic.index.swap_tile(changed := tile.revise(garbage=("c",)), etag)
        assert topic.close() is None
        assert (topic.tile(FIRST), topic.head.hours) == (changed, ((FIRST, FIRST),))

    def test_a_topic_goes_on_from_a_tile_that_another_process_has_closed_in_the_same_way(
        self, topic: QuietTopic
    ) -> None:
        open_and_close.close_hour(topic.index, topic.offsets, topic.head, FIRST, ms(90))
        assert topic.close() is not None
        assert topic.head.hours == ((FIRST, SECOND),)

    def test_the_hour_stays_closed_if_another_process_has_changed_the_topic(self, topic: QuietTopic) -> None:
        topic.close()
        behind = topic.index.head()
        assert behind is not None
        kafka = topic.kafka.snapshot(TOPIC, SECOND)
        topic.change_head(sealed=Watermark(FIRST, FIRST))
        assert close_quiet_hour(topic.index, *behind, kafka, start=FIRST) is None
        assert topic.tile(SECOND).complete
        assert topic.plan(THIRD) is None
        assert (topic.head.hours, topic.tile(THIRD).closed) == (((FIRST, THIRD),), True)


class TestWatermark:
    def test_the_watermark_moves_with_each_hour_that_follows_a_sealed_one(self, topic: QuietTopic) -> None:
        topic.close()
        topic.change_head(sealed=Watermark(FIRST, FIRST))
        closed = [topic.close(), topic.close()]
        assert [each.is_sealed for each in closed if each is not None] == [True, True]
        assert topic.head.sealed == Watermark(FIRST, THIRD)
        stored = topic.index.head()
        assert stored is not None
        assert Sealing(topic.index, *stored).upto(FIRST) == THIRD

    @pytest.mark.parametrize("noted", [None, Watermark(FIRST, FIRST), Watermark(SECOND, SECOND)])
    def test_the_watermark_stays_if_the_hour_before_is_not_sealed(
        self, noted: Watermark | None, topic: QuietTopic
    ) -> None:
        topic.close()
        topic.close()
        topic.change_head(sealed=noted)
        closed = topic.close()
        assert closed is not None
        assert not closed.is_sealed
        assert topic.head.sealed == noted

    def test_the_watermark_begins_with_the_first_hour(self) -> None:
        topic = QuietTopic()
        topic.store.delete(topic.index.tile_key(FIRST))  # it was announced, and its creator crashed
        topic.close()
        assert topic.head.sealed == Watermark(FIRST, FIRST)

    def test_an_hour_whose_tile_was_created_before_is_sealed_by_a_look_at_its_neighbours(
        self, topic: QuietTopic
    ) -> None:
        topic.change_head(sealed=Watermark(hours.shift(FIRST, -1), hours.shift(FIRST, -1)))
        closed = topic.close()
        assert closed is not None
        assert not closed.is_sealed
