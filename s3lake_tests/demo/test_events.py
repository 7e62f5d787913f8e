"""The demo's events: counted exactly, in the order of time, with the flaws that real topics have."""

import json
import threading
import time
from collections import Counter
from datetime import datetime, timezone
from itertools import pairwise

import pytest
from confluent_kafka import Consumer, Message, TopicPartition

from s3lake.demo.embedded_kafka import EmbeddedKafka
from s3lake.demo.events import Fields, Produced, keep_producing, produce_demo
from s3lake.errors import KafkaUnavailableError
from s3lake_tests.kit.cost import PATIENCE_S
from s3lake_tests.kit.processes import until
from s3lake_tests.kit.topics import create_topic, read_topic

RECORDS = 20_000
HOUR_MS = 3_600_000
TOPICS = ("events-orders", "events-clicks")


def is_one_json_document(value: bytes) -> bool:
    try:
        json.loads(value.decode("utf-8"))
    except ValueError:
        return False
    return True


def hour(ms: int) -> int:
    return ms // HOUR_MS


@pytest.fixture(scope="module")
def now() -> datetime:
    return datetime.now(timezone.utc)


@pytest.fixture(scope="module")
def progress() -> list[int]:
    return []


@pytest.fixture(scope="module")
def produced(kafka: EmbeddedKafka, now: datetime, progress: list[int]) -> dict[str, Produced]:
    return produce_demo(kafka.bootstrap_servers, RECORDS, now, topics=TOPICS, partitions=2, progress=progress.append)


@pytest.fixture(scope="module")
def messages(kafka: EmbeddedKafka, produced: dict[str, Produced]) -> dict[str, list[Message]]:
    return {topic: read_topic(kafka.bootstrap_servers, topic) for topic in produced}


def every(messages: dict[str, list[Message]]) -> list[Message]:
    return [message for topic in messages.values() for message in topic]


def test_a_read_committed_consumer_reads_as_many_records_as_were_asked_for(
    produced: dict[str, Produced], messages: dict[str, list[Message]], progress: list[int]
) -> None:
    assert Produced.total(produced).committed == RECORDS
    assert (progress[0], progress[-1]) == (0, RECORDS)
    assert {topic: len(read) for topic, read in messages.items()} == {
        topic: counts.committed for topic, counts in produced.items()
    }
    assert produced["events-orders"].committed / RECORDS == pytest.approx(0.7, abs=0.02)


def test_aborted_records_take_offsets_but_are_not_read(kafka: EmbeddedKafka, produced: dict[str, Produced]) -> None:
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": "tests"})
    offsets = sum(consumer.get_watermark_offsets(TopicPartition(t, p))[1] for t in TOPICS for p in range(2))
    consumer.close()
    total = Produced.total(produced)
    assert total.aborted > 0
    # Each of the five transactions leaves one marker in every topic-partition that it wrote to.
    assert total.committed + total.aborted < offsets <= total.committed + total.aborted + 5 * 4


def test_malformed_values_are_counted_and_of_every_sort(
    produced: dict[str, Produced], messages: dict[str, list[Message]]
) -> None:
    malformed = [message for message in every(messages) if not is_one_json_document(message.value())]
    assert Counter(m.topic() for m in malformed) == {topic: counts.malformed for topic, counts in produced.items()}
    values = {message.value() for message in malformed}
    assert len(values) == 4
    assert b"" in values


def test_every_event_has_a_type_an_iso_time_a_key_and_headers(messages: dict[str, list[Message]]) -> None:
    for message in every(messages):
        assert message.value() is not None
        if is_one_json_document(message.value()):
            event = json.loads(message.value())
            assert event["type"]
            stamp = datetime.strptime(event["ts"], "%Y-%m-%dT%H:%M:%S.%f%z")
            assert round(stamp.timestamp() * 1000) == message.timestamp()[1]
    first = messages["events-orders"][0]
    assert first.key().startswith(b"c-")
    assert first.headers() == [("source", b"shop"), ("schema", b"order/1")]


def test_timestamps_fill_three_closed_hours_and_the_open_one(messages: dict[str, list[Message]], now: datetime) -> None:
    open_hour = hour(int(now.timestamp() * 1000))
    # The transactions carry the real time, which may be an hour later by now.
    hours = {hour(message.timestamp()[1]) for message in every(messages)} - {open_hour + 1}
    assert hours == {open_hour - 3, open_hour - 2, open_hour - 1, open_hour}


def test_a_few_per_mille_are_late_by_an_hour_and_some_out_of_order_within_half_a_minute(
    produced: dict[str, Produced], messages: dict[str, list[Message]]
) -> None:
    assert 0.001 < Produced.total(produced).late / RECORDS < 0.006
    stamps = [message.timestamp()[1] for message in messages["events-orders"] if message.partition() == 0]
    assert sum(0 < before - after <= 31_000 for before, after in pairwise(stamps)) > 50


def test_transactions_are_stamped_with_the_present(
    produced: dict[str, Produced], messages: dict[str, list[Message]], now: datetime
) -> None:
    recent = [m for m in every(messages) if m.timestamp()[1] >= int(now.timestamp() * 1000)]
    assert len(recent) == Produced.total(produced).transactional == 300


@pytest.mark.slow("produces events again for itself")
def test_each_run_of_the_demo_has_the_same_records(kafka: EmbeddedKafka, now: datetime) -> None:
    def values(topics: tuple[str, str]) -> list[list[bytes]]:
        # So few that there are no transactions, which carry the time of the run.
        produce_demo(kafka.bootstrap_servers, 9, now, topics=topics, partitions=1)
        return [[message.value() for message in read_topic(kafka.bootstrap_servers, topic)] for topic in topics]

    once = values(("once-orders", "once-clicks"))
    assert values(("twice-orders", "twice-clicks")) == once


@pytest.mark.slow("produces events again for itself")
def test_named_fields_are_in_every_event_and_have_few_values_or_its_time(kafka: EmbeddedKafka, now: datetime) -> None:
    fields: Fields = {("timestamp",): True, ("customer_id",): False, ("a", "b"): False, ("ts",): False}
    topics = ("named-orders", "named-clicks")
    produce_demo(kafka.bootstrap_servers, 60, now, topics=topics, partitions=1, fields=fields)
    read_back = [message for topic in topics for message in read_topic(kafka.bootstrap_servers, topic)]
    events = [(json.loads(m.value()), m.timestamp()[1]) for m in read_back if is_one_json_document(m.value())]
    assert all(event["timestamp"] == ms for event, ms in events)
    for values in (
        {event["customer_id"] for event, _ in events},
        {event["a"]["b"] for event, _ in events},
        {event["ts"] for event, _ in events},
    ):
        assert values == {0, 1, 2}


@pytest.mark.slow("produces events again for itself")
def test_refused_records_are_an_error(kafka: EmbeddedKafka, now: datetime) -> None:
    topics = ("narrow-orders", "narrow-clicks")
    for topic in topics:
        create_topic(kafka.bootstrap_servers, topic, partitions=1)
    with pytest.raises(KafkaUnavailableError, match="demo record"):
        produce_demo(kafka.bootstrap_servers, 50, now, topics=topics, partitions=4)


@pytest.mark.slow("produces events again for itself")
def test_trickle_produces_present_events_until_it_is_stopped(kafka: EmbeddedKafka) -> None:
    topics = ("keep_producing-orders", "keep_producing-clicks")
    for topic in topics:
        create_topic(kafka.bootstrap_servers, topic)
    stop, sent, began = threading.Event(), [], time.time()

    def run() -> None:
        sent.append(keep_producing(kafka.bootstrap_servers, stop, 100, topics=topics, partitions=1))

    thread = threading.Thread(target=run)
    thread.start()
    until(lambda: sum(len(read_topic(kafka.bootstrap_servers, topic)) for topic in topics) > 10)
    stop.set()
    thread.join(PATIENCE_S)
    messages = [message for topic in topics for message in read_topic(kafka.bootstrap_servers, topic)]
    assert len(messages) == sent[0]
    assert all(message.timestamp()[1] >= int(began * 1000) for message in messages)
