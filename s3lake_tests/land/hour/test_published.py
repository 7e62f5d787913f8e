"""What the consumer group `s3lake-<sink>` shows after landing, to everybody who looks at lag there."""

import logging
from concurrent.futures import Future
from dataclasses import replace

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from s3lake.land.hour.landing import land
from s3lake.source.kafka.consumer_group import ConsumerGroup
from s3lake_tests.kit.cost import PATIENCE_S
from s3lake_tests.kit.lake import Lake, at, values

EIGHT, NINE, TEN = "2026-01-05T08", "2026-01-05T09", "2026-01-05T10"


@pytest.fixture
def published(lake: Lake) -> ConsumerGroup:
    return ConsumerGroup(f"s3lake-{lake.bucket}", lake.kafka.bootstrap_servers)


def committed(lake: Lake, name: str, topic: str) -> dict[int, int]:
    admin = AdminClient({"bootstrap.servers": lake.kafka.bootstrap_servers, "log_level": 0})
    answer = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(name)])[name].result()
    return {one.partition: one.offset for one in answer.topic_partitions if one.topic == topic}


def test_landed_offsets_show_in_the_group_and_a_backfill_of_an_earlier_hour_does_not_put_them_back(
    lake: Lake, published: ConsumerGroup
) -> None:
    topic = lake.topic(2)
    for partition in (0, 1):
        lake.produce(topic, values(5), at(EIGHT, 10), partition)
        lake.produce(topic, values(10 + partition), at(TEN, 10), partition)
    target = replace(lake.target(topic, now_ms=at("2026-01-06T00")), group=published)
    land(target, [TEN])
    assert committed(lake, published.name, topic) == {0: 15, 1: 16}
    land(target, [EIGHT])
    assert target.report(EIGHT).sums.landed == 10
    assert committed(lake, published.name, topic) == {0: 15, 1: 16}


@pytest.mark.slow("a case more on a real broker")
def test_a_group_that_has_a_member_is_a_warning_with_the_remedy(
    lake: Lake, published: ConsumerGroup, caplog: pytest.LogCaptureFixture
) -> None:
    from confluent_kafka import Consumer

    topic = lake.filled(values(5), at(TEN, 10))
    settings = {"bootstrap.servers": lake.kafka.bootstrap_servers, "group.id": published.name}
    consumer = Consumer({**settings, "auto.offset.reset": "earliest"})
    try:
        consumer.subscribe([topic])
        assert consumer.consume(1, timeout=PATIENCE_S)
        with caplog.at_level(logging.WARNING):
            published.publish({topic: {0: 5}})
    finally:
        consumer.close()
    assert "a consumer is a member of that group; stop it, or give it another group" in caplog.text


def test_a_refusal_is_logged_once_with_the_remedy(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = ConsumerGroup("s3lake-refused", "127.0.0.1:1")

    def refuse(*_: object, **__: object) -> dict[str, Future[None]]:
        answer: Future[None] = Future()
        answer.set_exception(KafkaException(KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED)))
        return {refused.name: answer}

    monkeypatch.setattr(AdminClient, "alter_consumer_group_offsets", refuse)
    with caplog.at_level(logging.WARNING):
        refused.publish({"orders": {0: 5}})
        refused.publish({"orders": {0: 6}})
    (record,) = caplog.records
    assert "allow this user Read on group s3lake-refused and on topic orders" in record.getMessage()
