"""A log that a new leader has cut, asked of a real broker: a stopped one gets an older copy of a topic's directory."""

import shutil
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from s3lake.demo.embedded_kafka import EmbeddedKafka
from s3lake.errors import KafkaUnavailableError
from s3lake.source.kafka import epochs
from s3lake.source.kafka.offsets import KafkaOffsets
from s3lake_tests.kit.cost import PATIENCE_S

HOUR = "2026-01-05T10"


def produce(servers: str, *counts: int) -> None:
    producer = Producer({"bootstrap.servers": servers, "log_level": 0})
    for partition, count in enumerate(counts):
        for _ in range(count):
            producer.produce("orders", b"x", partition=partition)
    assert producer.flush(PATIENCE_S) == 0


@pytest.mark.slow("starts three brokers of its own")
@pytest.mark.usefixtures("jvm")
def test_the_offset_at_which_a_log_was_cut_is_found_after_it_grew_again(tmp_path: Path) -> None:
    home, copy = tmp_path / "kafka", tmp_path / "copy"
    with EmbeddedKafka.start(home) as kafka:
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
        admin.create_topics([NewTopic("orders", 2, 1)])["orders"].result()
        produce(kafka.bootstrap_servers, 4, 3)
    shutil.copytree(home / "data" / "orders-0", copy)
    with EmbeddedKafka.start(home) as kafka:
        produce(kafka.bootstrap_servers, 6)
        logs = KafkaOffsets(kafka.bootstrap_servers, timeout_s=PATIENCE_S).snapshot("orders", HOUR).partitions
        reached = {one: (log.log_end, log.epoch) for one, log in logs.items() if log.epoch is not None}
    assert {one: end for one, (end, _) in reached.items()} == {0: 10, 1: 3}
    shutil.rmtree(home / "data" / "orders-0")
    shutil.copytree(copy, home / "data" / "orders-0")
    with EmbeddedKafka.start(home) as kafka:
        produce(kafka.bootstrap_servers, 8)
        offsets = KafkaOffsets(kafka.bootstrap_servers, timeout_s=PATIENCE_S)
        logs = offsets.snapshot("orders", HOUR).partitions
        assert {one: log.log_end for one, log in logs.items()} == {0: 12, 1: 3}
        assert all(log.epoch != reached[one][1] for one, log in logs.items())
        assert offsets.find_truncations("orders", reached) == {0: 4}
        assert offsets.find_truncations("orders", {0: (4, reached[0][1]), 1: reached[1]}) == {}


def test_a_cut_log_in_words_that_are_not_known_is_not_taken_for_an_empty_one(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = Mock(**{"partition.return_value": 0})
    answer.error.return_value.code.return_value = KafkaError._AUTO_OFFSET_RESET
    answer.error.return_value.str.return_value = "partition log truncation detected, somewhere"

    class Other(Consumer):
        def poll(self, timeout: float = -1) -> Any:  # noqa: ARG002
            return answer

    monkeypatch.setattr(epochs, "Consumer", Other)
    with pytest.raises(KafkaUnavailableError, match="was cut, and not where: partition log truncation detected"):
        epochs.find_truncations({"bootstrap.servers": "127.0.0.1:1", "log_level": "0"}, "orders", {0: (4, 1)}, 1)


def test_unavailable_brokers_end_the_question_in_time() -> None:
    with pytest.raises(KafkaUnavailableError, match=r"did not tell within 0.2 s whether topic 'orders' still has"):
        KafkaOffsets("127.0.0.1:1", timeout_s=0.2).find_truncations("orders", {0: (4, 1)})
