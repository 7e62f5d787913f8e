"""Brokers and producers of several versions: every codec, transactions, and the time of either kind."""

import json
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer

from s3lake import hours
from s3lake.demo.embedded_kafka import EmbeddedKafka
from s3lake.demo.embedded_s3 import EmbeddedS3
from s3lake.land.hour.landing import land
from s3lake.land.spark import jars
from s3lake_tests.kit.cost import PATIENCE_S
from s3lake_tests.kit.lake import Lake, at
from s3lake_tests.kit.oracles import run_jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow("starts a broker of each version, and a JVM with its producer")

VERSIONS = ("3.9.1", jars.KAFKA_VERSION, "4.3.1")
"""One of 3.x, the demo's, and the newest whose jars could be had when this was written."""
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
"""By their number in a batch."""
LONG_AGO, DAY_MS = at("2026-01-05T10"), 86_400_000
RECORDS = 10
TRANSACTIONAL, CONTROL, APPEND_TIME = 0x10, 0x20, 0x08


class JavaProducer:
    """Kafka's own producer, of the broker's version."""

    def __init__(self, java: Any, kafka: EmbeddedKafka) -> None:
        self._java, self._kafka = java, kafka

    def produce(self, topic: str, numbers: range, codec: str, stamp_ms: int | None, ending: str = "") -> None:
        """Produce plainly, or in a transaction that is committed or aborted."""
        bytes_ = "org.apache.kafka.common.serialization.ByteArraySerializer"
        settings = {"key.serializer": bytes_, "value.serializer": bytes_, "compression.type": codec}
        settings |= {"bootstrap.servers": self._kafka.bootstrap_servers, "linger.ms": "50"}
        settings |= {"transactional.id": str(uuid.uuid4())} if ending else {}
        properties = self._java.java.util.Properties()
        for name, setting in settings.items():
            properties.setProperty(name, setting)
        clients = self._java.org.apache.kafka.clients.producer
        producer = clients.KafkaProducer(properties)
        if ending:
            producer.initTransactions()
            producer.beginTransaction()
        for number in numbers:
            producer.send(clients.ProducerRecord(topic, 0, stamp_ms, b"k", encode(number)))
        producer.flush()
        if ending:
            getattr(producer, f"{ending}Transaction")()
        producer.close()


class Librdkafka:
    """The producer of confluent-kafka."""

    def __init__(self, kafka: EmbeddedKafka) -> None:
        self._kafka = kafka

    def produce(self, topic: str, numbers: range, codec: str, stamp_ms: int | None, ending: str = "") -> None:
        """Produce plainly, or in a transaction that is committed or aborted."""
        settings: dict[str, Any] = {"bootstrap.servers": self._kafka.bootstrap_servers, "log_level": 0}
        settings |= {"compression.type": codec, "linger.ms": 50}
        settings |= {"transactional.id": str(uuid.uuid4())} if ending else {}
        producer = Producer(settings)
        if ending:
            producer.init_transactions()
            producer.begin_transaction()
        for number in numbers:
            producer.produce(topic, encode(number), key=b"k", partition=0, timestamp=stamp_ms or 0)  # 0 is now
        assert producer.flush(PATIENCE_S) == 0
        if ending:
            getattr(producer, f"{ending}_transaction")()


def encode(number: int) -> bytes:
    # Long enough, and alike enough, that a producer keeps what it has compressed.
    return json.dumps({"id": number, "note": "the same again " * 20}).encode()


def read_attributes(kafka: EmbeddedKafka, topic: str) -> Iterator[int]:
    """The headers of the batches of the log (Kafka's protocol, record batch of magic 2)."""
    # A batch whose time is weeks from that of the one before begins a new file.
    log = b"".join(one.read_bytes() for one in sorted((kafka.directory / "data" / f"{topic}-0").glob("*.log")))
    place = 0
    while place + 23 <= len(log):
        yield int.from_bytes(log[place + 21 : place + 23], "big")
        place += 12 + int.from_bytes(log[place + 8 : place + 12], "big")


@pytest.fixture(scope="module", params=VERSIONS)
def broker(request: pytest.FixtureRequest, jvm: Path) -> Iterator[EmbeddedKafka]:  # noqa: ARG001 (it needs Java)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jars, "KAFKA_VERSION", request.param)
        with EmbeddedKafka.start() as started:
            yield started


@pytest.fixture(scope="module")
def producers(broker: EmbeddedKafka) -> Iterator[Sequence[JavaProducer | Librdkafka]]:
    with run_jvm(jars.kafka_broker_jars()) as java:
        yield [JavaProducer(java, broker), Librdkafka(broker)]


@pytest.fixture
def world(broker: EmbeddedKafka, s3_server: EmbeddedS3, spark: "SparkSession") -> Lake:
    return Lake(broker, s3_server, lambda: spark)


def landed_ids(lake: Lake) -> list[int]:
    return [json.loads(line)["id"] for key in sorted(lake.objects()) for line in lake.body(key).splitlines()]


def test_each_codec_and_transaction_of_both_producers_is_landed(
    world: Lake, broker: EmbeddedKafka, producers: Sequence[JavaProducer | Librdkafka]
) -> None:
    topic, expected, first, began = world.topic(), list[int](), 0, hours.now_ms()
    for producer in producers:
        for codec in CODECS:
            for ending in ("", "commit", "abort"):
                numbers = range(first, first + RECORDS)
                producer.produce(topic, numbers, codec, None, ending)
                expected += [] if ending == "abort" else numbers
                first += RECORDS
    data = [each for each in read_attributes(broker, topic) if not each & CONTROL]
    used = Counter((CODECS[each & 7], bool(each & TRANSACTIONAL)) for each in data)
    assert used.keys() == {(codec, is_transactional) for codec in CODECS for is_transactional in (False, True)}
    assert_landed(world, topic, began, 200)
    assert landed_ids(world) == expected


def test_the_time_of_the_append_decides_the_hour_when_the_topic_is_set_to_it(
    world: Lake, broker: EmbeddedKafka, producers: Sequence[JavaProducer | Librdkafka]
) -> None:
    topic, began = world.topic(message_timestamp_type="LogAppendTime"), hours.now_ms()
    for number, producer in enumerate(producers):
        producer.produce(topic, range(number * RECORDS, (number + 1) * RECORDS), "zstd", LONG_AGO)
    assert all(each & APPEND_TIME for each in read_attributes(broker, topic))
    assert_landed(world, topic, began, 20)
    assert landed_ids(world) == list(range(20))


def assert_landed(lake: Lake, topic: str, began: int, records: int) -> None:
    """Land what was produced since, and compare it with Kafka. Producers' times are now: markers' always are."""
    ended = hours.now_ms()
    first, last = (hours.key_of_ms(moment) for moment in (began, ended))
    target = lake.target(topic, f"start: {first}", now_ms=ended + DAY_MS)
    land(target, list(hours.span(first, last)))
    report = lake.verify(target)
    assert report.differences == ()
    assert (report.compared, report.landed) == (records, records)
