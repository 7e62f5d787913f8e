"""A lake of real parts: topics of a real broker, a bucket behind a real S3 API, a Spark session."""

import functools
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import boto3
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic  # type: ignore[attr-defined]

from s3lake import hours
from s3lake.config import native
from s3lake.config.model import Config, Sink
from s3lake.demo.embedded_kafka import EmbeddedKafka
from s3lake.demo.embedded_s3 import EmbeddedS3
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.index.plan.hour_grid import Grid
from s3lake.index.store.s3_connection import S3Connection
from s3lake.index.store.s3_store import S3Store
from s3lake.lake.table.iceberg import LakeTable
from s3lake.lake.verify import VerifyReport, verify_against
from s3lake.lake.verify.kafka_log import KafkaLog
from s3lake.land.topic.topic_sink import TopicSink
from s3lake.source.kafka.dead_letter_topic import DeadLetterTarget
from s3lake.source.kafka.offsets import KafkaOffsets
from s3lake.source.kafka.reader import KafkaReader
from s3lake_tests.kit.cost import PATIENCE_S
from s3lake_tests.kit.s3 import connection_to
from s3lake_tests.kit.targets import refuse_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START = "2026-01-05T08"
MINUTE_MS = 60_000
NOBODY = """\
kafka:
  bootstrap_servers: "127.0.0.1:1"
  properties:
    {security.protocol: SASL_PLAINTEXT, sasl.mechanism: PLAIN, sasl.username: me, sasl.password: hunter2-kafka}
s3:
  endpoint_url: "http://127.0.0.1:1"
  credentials: {access_key_id: AKIA, secret_access_key: hunter2-s3}
  retries: {max_attempts: 1}
sinks:
  - {name: events, topics: [orders], bucket: lake, start: 2026-01-05T00}
"""
"""A configuration with secrets in it, of a Kafka and an S3 that do not answer."""


def at(hour: str, minutes: float = 0) -> int:
    """Epoch milliseconds of a moment in an hour."""
    return hours.start_ms(hour) + int(minutes * MINUTE_MS)


AFTER = at("2026-01-06T00")
"""A moment at which every hour of the tests is over."""


def values(count: int, first: int = 0) -> list[bytes]:
    """JSON objects, each of its own."""
    return [b'{"id": %d, "type": "t%d"}' % (number, number % 3) for number in range(first, first + count)]


@dataclass
class Topics:
    """Topics of a real broker, made when first asked for; their names are in no other test."""

    kafka: EmbeddedKafka

    @functools.cached_property
    def admin(self) -> AdminClient:
        """Changes topics."""
        return AdminClient({"bootstrap.servers": self.kafka.bootstrap_servers, "log_level": 0})

    @functools.cached_property
    def producer(self) -> Producer:
        """Plain, not transactional."""
        return Producer({"bootstrap.servers": self.kafka.bootstrap_servers, "log_level": 0, "linger.ms": 5})

    def topic(self, partitions: int = 1, name: str | None = None, **settings: str) -> str:
        """A new topic; settings with underscores for dots."""
        topic = name or f"t-{uuid.uuid4()}"
        dotted = {key.replace("_", "."): value for key, value in settings.items()}
        self.admin.create_topics([NewTopic(topic, partitions, 1, config=dotted)])[topic].result()
        self.await_partitions(topic, partitions)
        return topic

    def filled(self, records: Sequence[bytes | None], stamp_ms: int | Sequence[int], partitions: int = 1) -> str:
        """A new topic with these records in each of its topic-partitions."""
        topic = self.topic(partitions)
        for partition in range(partitions):
            self.produce(topic, records, stamp_ms, partition)
        return topic

    def delete(self, topic: str) -> None:
        """Delete the topic."""
        self.admin.delete_topics([topic])[topic].result()
        self.await_partitions(topic, 0)

    def add_partitions(self, topic: str, total: int) -> None:
        """Let the topic have `total` topic-partitions."""
        self.admin.create_partitions([NewPartitions(topic, total)])[topic].result()
        self.await_partitions(topic, total)
        self.__dict__.pop("producer", None)  # it would not know them for minutes

    def await_partitions(self, topic: str, count: int) -> None:
        """Wait until the broker has them all."""
        while len(self.offsets.log_ranges(topic)) != count:
            time.sleep(0.02)

    def expire(self, topic: str, before: int, partition: int = 0) -> None:
        """Drop the records before an offset, as retention does."""
        wanted = TopicPartition(topic, partition, before)
        self.admin.delete_records([wanted])[wanted].result()

    def produce(
        self, topic: str, records: Iterable[bytes | None], stamp_ms: int | Sequence[int] = 0, partition: int = 0
    ) -> None:
        """Records at one time, or each at its own."""
        fill(self.producer, topic, records, stamp_ms, partition)

    def transaction(
        self, topic: str, records: Iterable[bytes | None], stamp_ms: int | Sequence[int], partition: int = 0
    ) -> Producer:
        """Records in a transaction that is still open."""
        settings = {"transactional.id": str(uuid.uuid4()), "log_level": 0, "linger.ms": 0}
        producer = Producer({"bootstrap.servers": self.kafka.bootstrap_servers, **settings})
        producer.init_transactions()
        producer.begin_transaction()
        fill(producer, topic, records, stamp_ms, partition)
        return producer

    @property
    def offsets(self) -> KafkaOffsets:
        """What planning asks."""
        return KafkaOffsets(self.kafka.bootstrap_servers, timeout_s=PATIENCE_S)


@dataclass
class Lake(Topics):
    """Topics, and a bucket whose name is in no other test."""

    s3: EmbeddedS3
    session: "Callable[[], SparkSession]" = refuse_session
    bucket: str = field(default_factory=lambda: f"lake-{uuid.uuid4()}")

    def __post_init__(self) -> None:
        self.s3.create_bucket(self.bucket)

    @functools.cached_property
    def client(self) -> Any:
        """A boto3 client that knows nothing of s3lake."""
        return boto3.client(
            "s3",
            endpoint_url=self.s3.endpoint_url,
            region_name=self.s3.region,
            aws_access_key_id=self.s3.access_key_id,
            aws_secret_access_key=self.s3.secret_access_key,
        )

    @property
    def connection(self) -> S3Connection:
        """To the S3 server."""
        return connection_to(self.s3)

    @property
    def store(self) -> S3Store:
        """The bucket."""
        return S3Store(self.connection, self.bucket)

    def objects(self, prefix: str = "") -> list[str]:
        """Every object's key, the index's left out unless it is asked for."""
        return [key for key in self.store.list(prefix) if prefix or not key.startswith(".indexes/")]

    def body(self, key: str) -> bytes:
        """What an object holds."""
        found = self.store.get(key)
        assert found is not None, key
        return found.body

    def uploads(self) -> list[str]:
        """Keys of the multipart uploads that are neither completed nor aborted."""
        return [one["Key"] for one in self.client.list_multipart_uploads(Bucket=self.bucket).get("Uploads", ())]

    def config_text(self, *sinks: str) -> str:
        """A native configuration; of a sink only what matters to the test has to be given."""
        server, bucket = self.s3, self.bucket
        keys = f"access_key_id: {server.access_key_id}, secret_access_key: {server.secret_access_key}"
        started = [sink if "start:" in sink else f"{sink}, start: {START}" for sink in sinks]
        return "\n".join(
            [
                f"kafka: {{bootstrap_servers: '{self.kafka.bootstrap_servers}'}}",
                f"s3: {{endpoint_url: '{server.endpoint_url}', credentials: {{{keys}}}}}",
                "spark: {master: 'local[2]', driver_memory: 512m}",
                "sinks:",
                *(f"  - {{{sink}, bucket: {bucket}}}" for sink in started),
                "",
            ]
        )

    def config(self, *sinks: str) -> Config:
        """The same, read."""
        return native.load_text(self.config_text(*sinks), "test.yaml")

    def sink(self, topic: str, settings: str = "", name: str = "events") -> Sink:
        """A sink called events unless it has another name."""
        more = f", {settings}" if settings else ""
        return self.config(f"name: {name}, topics: ['{topic}']{more}").sink(name)

    def target(self, topic: str, settings: str = "", now_ms: int | None = None, name: str = "events") -> TopicSink:
        """Return the target of `topic` in a sink called events, by a stopped clock unless `now_ms` is None."""
        sink = self.sink(topic, settings, name)
        prefix = sink.index_root
        index = TopicIndex(self.store, prefix, topic)
        return TopicSink(
            sink=sink,
            table=LakeTable(sink, sink.table, index, self.connection) if sink.table else None,
            topic=topic,
            spark=self.session,
            stores=functools.partial(S3Store, self.connection),
            offsets=self.offsets,
            reader=lambda: KafkaReader(self.kafka.bootstrap_servers),
            dead_letter_topic=DeadLetterTarget.from_sink(sink, topic, self.kafka.bootstrap_servers, {}),
            clock=hours.now_ms if now_ms is None else lambda: now_ms,
        )

    def verify(self, target: TopicSink) -> VerifyReport:
        """Kafka and the bucket compared record by record, without the writer's code."""
        tiles = [tile.hour for tile in target.index.tiles()]
        grid = Grid.from_sink(target.sink, target.clock(), min(tiles, default=None), max(tiles, default=None))
        with KafkaLog(self.kafka.bootstrap_servers, {}) as log:
            return verify_against(target.sink, target.index, log, grid)


def fill(
    producer: Producer, topic: str, records: Iterable[bytes | None], stamp_ms: int | Sequence[int], partition: int
) -> None:
    """Produce, and wait until all of it is there."""
    for number, value in enumerate(records):
        stamp = stamp_ms if isinstance(stamp_ms, int) else stamp_ms[number]
        producer.produce(topic, value, key=b"k%d" % number, partition=partition, timestamp=stamp)
        if number % 10_000 == 0:
            producer.poll(0)
    assert producer.flush(PATIENCE_S) == 0


def assert_all_landed(lake: Lake, target: TopicSink, records: int) -> None:
    """Kafka and the bucket agree, every object is in the index, and nothing is left to do or lying about."""
    report = lake.verify(target)
    assert report.differences == ()
    assert (report.compared, report.landed + report.skipped + report.dead_letters) == (records, records)
    tiles = list(target.index.tiles())
    listed = [
        file.key
        for tile in tiles
        for commit in tile.commits
        for file in getattr(target.index.manifest(tile.hour, commit), "files", ())
    ]
    assert sorted(listed) == lake.objects()
    assert [tile for tile in tiles if tile.pending or tile.garbage] == []
    assert lake.uploads() == []
