"""The dead letter topic: what a record looks like there, and what happens when the brokers do not take it.

In addition to a scripted producer there is librdkafka's own broker in this process: real enough to read from.
"""

import pickle
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from msgspec import structs

from s3lake.errors import ConfigurationError, KafkaUnavailableError
from s3lake.records.encode.dead_letter_lines import DeadLetter
from s3lake.source.kafka import dead_letter_topic
from s3lake.source.kafka.client_properties import ErrorLog
from s3lake.source.kafka.dead_letter_topic import DeadLetterProducer, DeadLetterTarget, create, make_producer
from s3lake_tests.kit.topics import read_topic
from s3lake_tests.source.kafka import mock_broker
from s3lake_tests.source.kafka.dead_letter_topics import DEAD_LETTER_TARGET, FakeProducer

STAMP = 1_767_600_000_000
REFUSED = DeadLetter(
    topic="orders",
    partition=2,
    offset=7,
    timestamp_ms=STAMP,
    key=b"k",
    value=b"{ broken",
    headers=[{"key": "trace", "value": b"\xff"}, {"key": "none", "value": None}],
    stage="convert",
    message="not JSON: é",
)
CONTEXT = [
    ("__connect.errors.topic", b"orders"),
    ("__connect.errors.partition", b"2"),
    ("__connect.errors.offset", b"7"),
    ("__connect.errors.connector.name", b"events"),
    ("__connect.errors.task.id", b"0"),
    ("__connect.errors.stage", b"convert"),
    ("__connect.errors.class.name", b"s3lake.convert"),
    ("__connect.errors.exception.class.name", b"s3lake.errors.RecordError"),
    ("__connect.errors.exception.message", "not JSON: é".encode()),
]


def outbox_to(producer: Any, to: DeadLetterTarget = DEAD_LETTER_TARGET) -> DeadLetterProducer:
    return DeadLetterProducer(to, producer)


def sent(producer: FakeProducer, to: DeadLetterTarget = DEAD_LETTER_TARGET, **changes: Any) -> dict[str, Any]:
    outbox = outbox_to(producer, to)
    outbox.add(structs.replace(REFUSED, **changes))
    outbox.send()
    return producer.taken[-1]


# What a record looks like


def test_a_record_without_a_time_gets_that_of_its_sending() -> None:
    assert sent(FakeProducer(), timestamp_ms=-1)["timestamp"] == 0


def test_a_record_that_was_refused_before_keeps_its_first_context() -> None:
    before = {"key": "__connect.errors.topic", "value": b"first"}
    found = sent(FakeProducer(), replace(DEAD_LETTER_TARGET, context_headers=True), headers=[before])
    assert found["headers"] == [("__connect.errors.topic", b"first"), *CONTEXT[1:]]


# When it goes


def test_each_record_is_sent_once_over_one_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    producer, made = FakeProducer(), []
    monkeypatch.setattr(dead_letter_topic, "make_producer", lambda *_: made.append(1) or producer)
    outbox = DeadLetterProducer(DEAD_LETTER_TARGET)
    outbox.send()
    assert made == []
    for offset in (1, 2):
        outbox.add(structs.replace(REFUSED, value=b"%d" % offset))
        outbox.send()
    outbox.send()
    assert [one["value"] for one in producer.taken] == [b"1", b"2"]
    assert made == [1]


def test_a_full_queue_is_waited_for() -> None:
    producer = FakeProducer(room=3)
    outbox = outbox_to(producer)
    for offset in range(10):
        outbox.add(structs.replace(REFUSED, value=b"%d" % offset))
    outbox.send()
    assert [one["value"] for one in producer.taken] == [b"%d" % offset for offset in range(10)]


# When the brokers do not take it


@pytest.mark.parametrize(
    ("producer", "why"),
    [
        (FakeProducer(refusal=KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)), "TOPIC_AUTHORIZATION_FAILED"),
        (FakeProducer(refusal=KafkaError(KafkaError._MSG_TIMED_OUT)), "_MSG_TIMED_OUT"),
        (FakeProducer(raises=KafkaException(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE))), "MSG_SIZE_TOO_LARGE"),
        (FakeProducer(silent=True), "1 record got no answer"),
        (FakeProducer(silent=True, room=0), "the queue stayed full"),
    ],
    ids=["unauthorised", "timed out", "too large", "no answer", "queue full"],
)
def test_the_task_fails_for_now_with_the_reason(producer: FakeProducer, why: str) -> None:
    with pytest.raises(KafkaUnavailableError) as failed:
        sent(producer, replace(DEAD_LETTER_TARGET, timeout_s=0.05))
    message = str(failed.value)
    for part in ("dead letter topic 'dead'", "broker:9092", "topic 'orders'", why, "Nothing of this micro-batch"):
        assert part in message


def test_the_first_reason_is_reported_and_no_more_is_produced() -> None:
    producer = FakeProducer(refusal=KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED), room=1)
    outbox = outbox_to(producer)
    for _ in range(5):
        outbox.add(REFUSED)
    with pytest.raises(KafkaUnavailableError):
        outbox.send()
    assert len(producer.taken) == 1


def test_a_target_travels_to_workers_and_shows_no_secret() -> None:
    topic = replace(DEAD_LETTER_TARGET, properties={"sasl.password": "hush"})
    assert pickle.loads(pickle.dumps(topic)) == topic
    assert "hush" not in repr(topic)


def test_properties_that_librdkafka_refuses_are_reported_without_their_secrets() -> None:
    made = replace(DEAD_LETTER_TARGET, properties={"sasl.password": "hush", "no.such.hush": "1"})
    with pytest.raises(ConfigurationError) as refused:
        make_producer(made, ErrorLog({}))
    assert "kafka.properties: librdkafka, which writes dead letters, refuses them" in str(refused.value)
    assert "hush" not in str(refused.value)


# Making it


@dataclass
class FakeAdmin:
    """Answers a request to create a topic, with `error` if it is set."""

    error: int | None = None
    asked: list[tuple[str, int, int]] = field(default_factory=list)

    def create_topics(
        self,
        topics: list[Any],
        operation_timeout: float,  # noqa: ARG002
        validate_only: bool,  # noqa: ARG002
    ) -> dict[str, "Future[None]"]:
        answers: dict[str, Future[None]] = {}
        for one in topics:
            self.asked.append((one.topic, one.num_partitions, one.replication_factor))
            answers[one.topic] = Future()
            if self.error is None:
                answers[one.topic].set_result(None)
            else:
                answers[one.topic].set_exception(KafkaException(KafkaError(self.error, "refused by policy")))
        return answers


@pytest.mark.parametrize("error", [None, KafkaError.TOPIC_ALREADY_EXISTS], ids=["created", "by another process"])
def test_the_topic_has_one_topic_partition_and_the_configured_replicas(error: int | None) -> None:
    admin = FakeAdmin(error)
    create(admin, "dead", 3)
    assert admin.asked == [("dead", 1, 3)]


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        (KafkaError.INVALID_REPLICATION_FACTOR, "replication_factor to at most the number of brokers"),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, "allow this user to Create it"),
        (KafkaError.CLUSTER_AUTHORIZATION_FAILED, "allow this user to Create it"),
        (KafkaError.POLICY_VIOLATION, "create the topic yourself"),
        (KafkaError.TOPIC_EXCEPTION, "name another topic"),
    ],
)
def test_a_refusal_of_the_brokers_to_create_it_has_a_remedy(code: int, remedy: str) -> None:
    with pytest.raises(
        ConfigurationError, match="dead letter topic 'dead' cannot be created: refused by policy"
    ) as refused:
        create(FakeAdmin(code), "dead", 3)
    assert remedy in str(refused.value)


def test_brokers_that_do_not_answer_may_answer_later() -> None:
    with pytest.raises(KafkaUnavailableError, match="could not be created"):
        create(FakeAdmin(KafkaError.REQUEST_TIMED_OUT), "dead", 3)


# Over the wire


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    with mock_broker.start() as writer:
        yield writer.servers


def test_a_record_can_be_read_back_as_it_was_also_a_tombstone_and_a_large_one(broker: str) -> None:
    outbox = DeadLetterProducer(
        replace(DEAD_LETTER_TARGET, name="read-back", bootstrap_servers=broker, context_headers=True)
    )
    values = [b"{ broken", None, b"x" * 2_000_000]  # more than a producer sends by default
    for value in values:
        outbox.add(structs.replace(REFUSED, value=value))
    outbox.send()
    messages = read_topic(broker, "read-back")
    assert [message.value() for message in messages] == values
    for message in messages:
        assert (message.key(), message.timestamp()[1]) == (b"k", STAMP)
        assert message.headers() == [("trace", b"\xff"), ("none", None), *CONTEXT]


def test_unavailable_brokers_are_an_error_with_the_reason_of_the_connection() -> None:
    outbox = DeadLetterProducer(replace(DEAD_LETTER_TARGET, bootstrap_servers="127.0.0.1:1", timeout_s=0.3))
    outbox.add(REFUSED)
    with pytest.raises(KafkaUnavailableError, match=r"127\.0\.0\.1:1 did not take.*Connection refused"):
        outbox.send()
