"""Refused records on their way to the dead letter topic: through one task, and through a lake of real parts."""

import dataclasses
import json
from typing import Any

import pytest
from confluent_kafka import KafkaError

from s3lake.land.hour.landing import land
from s3lake.land.task.outcomes import Failed, Grown
from s3lake.land.task.pipeline import Work
from s3lake.source.kafka import dead_letter_topic
from s3lake.source.kafka.dead_letter_topic import DeadLetterTarget
from s3lake_tests.kit.lake import START, Lake, at
from s3lake_tests.kit.topics import read_topic
from s3lake_tests.land.task.task_runs import HOUR_MS, TaskBucket, TaskRecord, build_task, number_records, run_task
from s3lake_tests.source.kafka.dead_letter_topics import FakeProducer

TOLERANT: dict[str, Any] = {"errors": {"tolerance": "all"}}
BAD = TaskRecord(b"{", key=b"\xff", headers=[("region", b"eu")], ms=HOUR_MS + 5)


@pytest.fixture
def bucket() -> TaskBucket:
    return TaskBucket()


@pytest.fixture
def producer(monkeypatch: pytest.MonkeyPatch) -> FakeProducer:
    producer = FakeProducer()
    monkeypatch.setattr(dead_letter_topic, "make_producer", lambda *_: producer)
    return producer


def sending(of: Work) -> Work:
    """The same work for a sink with a dead letter topic."""
    to = DeadLetterTarget(name="dead", topic="t", connector="s", bootstrap_servers="broker:9092", context_headers=True)
    return dataclasses.replace(of, dead_letter_topic=to)


def context(message: dict[str, Any]) -> dict[str, str]:
    found = {name: value.decode() for name, value in message["headers"] if name.startswith("__connect.errors.")}
    return {name.removeprefix("__connect.errors."): value for name, value in found.items()}


# One task


def test_every_stage_sends_what_it_refuses_as_kafka_has_it(bucket: TaskBucket, producer: FakeProducer) -> None:
    cast = {"type": "Cast$Value", "options": {"spec": "n:int8"}}
    of = build_task(bucket, transforms=[cast], layout={"partition_by": ["_key"]}, **TOLERANT)
    records = [
        TaskRecord(b'{"n":"no"}', b"k"),
        TaskRecord(b'{"n":"7"}', None),
        TaskRecord(b"{", b"k"),
        TaskRecord(b'{"n":"8"}', b"k"),
    ]
    run_task(sending(of), records)
    assert {(context(one)["stage"], one["value"]) for one in producer.taken} >= {
        ("transform", b'{"n":"no"}'),
        ("layout", b'{"n":"7"}'),  # not what the transform made of it
    }
    assert sorted(context(one)["offset"] for one in producer.taken) == ["0", "1", "2"]


def test_nothing_is_sent_if_no_record_is_refused(bucket: TaskBucket, producer: FakeProducer) -> None:
    run_task(sending(build_task(bucket, **TOLERANT)), number_records(1, 2))
    assert (producer.taken, producer.flushes) == ([], 0)


@pytest.mark.parametrize("exactly_once", [True, False])
def test_brokers_that_do_not_take_it_fail_the_task_before_anything_is_visible(
    bucket: TaskBucket, producer: FakeProducer, exactly_once: bool
) -> None:
    producer.refusal = KafkaError(KafkaError._MSG_TIMED_OUT)
    failed = run_task(sending(build_task(bucket, exactly_once=exactly_once, **TOLERANT)), [*number_records(1), BAD])
    assert isinstance(failed, Failed)
    assert failed.error == "KafkaUnavailableError"
    assert "dead letter topic 'dead'" in failed.message
    assert (bucket.store.objects, bucket.store.uploads) == ({}, {})


def test_while_columns_grow_nothing_is_sent(bucket: TaskBucket, producer: FakeProducer) -> None:
    of = sending(build_task(bucket, {}, format={"type": "parquet"}, **TOLERANT))
    assert isinstance(run_task(of, [TaskRecord(b"{")], number_records(1), [TaskRecord(b"{")]), Grown)
    assert producer.taken == []


def test_many_are_sent_as_they_come_and_each_once(bucket: TaskBucket, producer: FakeProducer) -> None:
    of = sending(build_task(bucket, memory_budget="64MB", **TOLERANT))
    run_task(of, *([TaskRecord(b"{%d" % number + b"x" * 3_000_000)] for number in range(5)))
    assert [one["value"][:2] for one in producer.taken] == [b"{%d" % number for number in range(5)]
    assert producer.flushes == 2


# A lake of real parts


class TestLake:
    TEN, AFTER = "2026-01-05T10", at("2026-01-06T00")

    def land(self, lake: Lake, topic: str, name: str) -> None:
        dead_letters = f"{{name: '{name}', context_headers: true, replication_factor: 1}}"
        target = lake.target(topic, f"errors: {{tolerance: all, dead_letter_topic: {dead_letters}}}", self.AFTER)
        land(target, [START, self.TEN])
        assert lake.verify(target).differences == ()

    def test_refused_records_are_in_the_topic_with_their_context(self, lake: Lake) -> None:
        topic = lake.topic(partitions=2)
        lake.produce(topic, [b'{"n": 1}', b"{ broken", b'{"n": 2}'], at(self.TEN, 5), 0)
        lake.produce(topic, [b"\xff"], at(self.TEN, 6), 1)
        self.land(lake, topic, f"{topic}-dead")
        found = {one.value(): one for one in read_topic(lake.kafka.bootstrap_servers, f"{topic}-dead")}
        assert set(found) == {b"{ broken", b"\xff"}
        broken = dict(found[b"{ broken"].headers() or [])
        assert (found[b"{ broken"].key(), found[b"{ broken"].timestamp()[1]) == (b"k1", at(self.TEN, 5))
        assert broken["__connect.errors.topic"] == topic.encode()
        assert (broken["__connect.errors.partition"], broken["__connect.errors.offset"]) == (b"0", b"1")
        assert (broken["__connect.errors.connector.name"], broken["__connect.errors.stage"]) == (b"events", b"convert")
        dead_letters = [json.loads(lake.store.get(key).body) for key in lake.objects() if "_dead_letters/" in key]  # type: ignore[union-attr]
        assert broken["__connect.errors.exception.message"] == next(
            one["message"].encode() for one in dead_letters if one["partition"] == 0
        )
