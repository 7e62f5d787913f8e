"""Hours without a record of many topics: closed together, by one question and three requests for each topic."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import pytest

from s3lake.errors import KafkaUnavailableError, StoreUnavailableError
from s3lake.land.hour.landing import land
from s3lake.land.many_topics import quiet_topics
from s3lake.land.many_topics.quiet_topics import QuietTopic, close_quiet_hours
from s3lake.land.topic.topic_sink import TopicSink
from s3lake.source.offsets import TopicOffsets
from s3lake_tests.index.commit.kafka import TOPIC, FakeKafka, hour
from s3lake_tests.kit.stores import CountedStore
from s3lake_tests.land.unstaged import UnstagedTopic

FIRST, SECOND, THIRD, FOURTH = (hour(number) for number in range(4))


class Kafka:
    """A broker with topics, each of which is a Kafka of its own; `asked` counts the questions about many topics."""

    def __init__(self) -> None:
        self.topics: dict[str, FakeKafka] = {}
        self.asked: Counter[str] = Counter()
        self.is_away = False

    def snapshots(self, topics: Collection[str], hour: str) -> Mapping[str, TopicOffsets]:
        self.asked[hour] += 1
        if self.is_away:
            raise KafkaUnavailableError("Kafka did not answer")
        return {topic: self.topics[topic].snapshot(topic, hour) for topic in topics}

    def __getattr__(self, method: str) -> Any:
        return lambda topic, *rest, **more: getattr(self.topics[topic], method)(topic, *rest, **more)


class QuietTopics:
    """Topics of a sink with five records before the first hour, which is open; the clock is in the second hour."""

    def __init__(self, count: int = 3, **settings: Any) -> None:
        self.kafka, self.store = Kafka(), CountedStore()
        self.world = UnstagedTopic(**settings)
        self.names = [f"{TOPIC}-{number}" for number in range(count)]
        self.table: Any = None
        for name in self.names:
            self.kafka.topics[name] = FakeKafka(1)
            self.kafka.topics[name].name = name
            self.kafka.topics[name].produce(0, *[-30] * 5)
            land(self.target(name, 30), [FIRST])

    def target(self, name: str, minute: float = 70) -> TopicSink:
        stores: Any = lambda _: self.store  # noqa: E731
        offsets: Any = self.kafka
        return replace(self.world.target(minute), topic=name, stores=stores, offsets=offsets, table=self.table)

    def produce(self, name: str, *minutes: float) -> None:
        self.kafka.topics[name].produce(0, *minutes)

    def close(self, *requested: str, minute: float = 70) -> dict[str, QuietTopic]:
        """Close the requested hours of all topics. Return the quiet topics by their names."""
        targets = {self.target(name, minute): requested for name in self.names}
        self.store.calls.clear()
        return {topic.target.topic: topic for some in close_quiet_hours(targets) for topic in some}

    def last_hours(self) -> list[str]:
        heads = [self.target(name).index.head() for name in self.names]
        return [head[0].hours[-1][1] for head in heads if head is not None]


def test_a_topic_costs_three_requests_an_hour_and_all_of_them_one_question() -> None:
    topics = QuietTopics(count=5)
    topics.close(FIRST, SECOND)
    topics.kafka.asked.clear()
    assert topics.close(SECOND, THIRD, minute=130).keys() == {*topics.names}
    assert Counter(topics.store.calls) == {
        **{("get", topics.target(name).index.head_key): 1 for name in topics.names},
        **{("put", topics.target(name).index.tile_key(SECOND)): 1 for name in topics.names},
        **{("put", topics.target(name).index.head_key): 1 for name in topics.names},
    }
    assert topics.kafka.asked == {SECOND: 1}


def test_a_topic_with_a_record_is_left_to_its_landing() -> None:
    topics = QuietTopics()
    topics.produce(topics.names[1], 5)
    assert topics.close(FIRST, SECOND).keys() == {topics.names[0], topics.names[2]}
    assert topics.last_hours() == [SECOND, FIRST, SECOND]
    landed = land(topics.target(topics.names[1]), [FIRST, SECOND])
    assert [one.sums.landed for one in landed] == [1, 0]


def test_a_record_that_arrives_late_is_landed_in_the_open_hour() -> None:
    topics = QuietTopics(count=1)
    topics.close(FIRST, SECOND)
    topics.produce(topics.names[0], 5)
    landed = land(topics.target(topics.names[0]), [FIRST, SECOND])
    assert [(one.tile.hour, one.sums.landed) for one in landed] == [(FIRST, 0), (SECOND, 1)]
    assert landed[0].tile.complete


def test_hours_that_passed_meanwhile_are_closed_one_after_the_other() -> None:
    topics = QuietTopics()
    closed = topics.close(FIRST, SECOND, THIRD, FOURTH, minute=190)
    for topic in closed.values():
        assert [one.tile.hour for one in topic.closed] == [FIRST, SECOND, THIRD]
        assert all(one.tile.complete and not one.sums.landed for one in topic.closed)
        assert topic.landed_offsets == {0: 5}
    assert topics.last_hours() == [FOURTH] * 3
    assert topics.kafka.asked == {FIRST: 1, SECOND: 1, THIRD: 1}


def test_sealed_hours_are_known_without_a_request() -> None:
    topics = QuietTopics(count=1)
    topics.close(FIRST, SECOND)
    (topic,) = topics.close(SECOND, THIRD, minute=130).values()
    topic.sealing.move(topic.target.sink.start)
    (topic,) = topics.close(THIRD, FOURTH, minute=190).values()
    requests = topics.store.requests.copy()
    assert topic.sealing.flaw(THIRD) is None
    assert topic.sealing.move(topic.target.sink.start) == THIRD
    assert topics.store.requests == requests


def test_topics_are_closed_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quiet_topics, "AT_ONCE", 2)
    topics = QuietTopics(count=5)
    targets = {topics.target(name): [FIRST, SECOND] for name in topics.names}
    assert [len(some) for some in close_quiet_hours(targets)] == [2, 2, 1]


@pytest.mark.parametrize(
    ("requested", "minute"),
    [([FIRST], 70), ([FIRST, THIRD], 130), ([SECOND, THIRD], 130), ([FIRST, SECOND], 130)],
    ids=["one hour", "hours with a gap", "hours after the last one", "hours that are all over"],
)
def test_other_hours_are_left_to_their_landing(requested: list[str], minute: float) -> None:
    topics = QuietTopics(close_grace="5m")
    assert topics.close(*requested, minute=minute) == {}
    assert topics.last_hours() == [FIRST] * 3


def test_topics_of_a_sink_with_a_table_are_left_to_their_landing() -> None:
    topics = QuietTopics()
    topics.table = object()
    assert topics.close(FIRST, SECOND) == {}
    assert topics.store.calls == []


def test_all_topics_are_left_to_their_landing_if_kafka_does_not_answer() -> None:
    topics = QuietTopics()
    topics.kafka.is_away = True
    assert topics.close(FIRST, SECOND) == {}
    assert topics.last_hours() == [FIRST] * 3


def test_a_topic_whose_index_does_not_answer_is_left_to_its_landing(monkeypatch: pytest.MonkeyPatch) -> None:
    topics = QuietTopics()
    lost, put = topics.target(topics.names[1]).index.head_key, topics.store.put

    def fail(key: str, *rest: Any, **more: Any) -> Any:
        if key == lost:
            raise StoreUnavailableError("the store did not answer")
        return put(key, *rest, **more)

    monkeypatch.setattr(topics.store, "put", fail)
    assert topics.close(FIRST, SECOND).keys() == {topics.names[0], topics.names[2]}
