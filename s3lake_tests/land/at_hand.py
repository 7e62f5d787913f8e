"""A topic whose values a test writes, and what lands them for real, in this process: no Spark, no Kafka, no S3."""

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pyarrow as pa

from s3lake.config.model import Sink
from s3lake.errors import TableUnavailableError
from s3lake.index.store.memory import MemoryStore
from s3lake.land.request.in_process_tasks import KafkaRecord, is_in_ranges, to_record_batch
from s3lake.land.topic.topic_sink import TopicSink
from s3lake.source.record_batches import OffsetRange
from s3lake_tests.index.commit.kafka import TOPIC, FakeKafka, hour, ms
from s3lake_tests.land.in_process import TwoCoreSession

FIRST, SECOND, THIRD = hour(0), hour(1), hour(2)
W = TypeVar("W", bound="TopicInMemory")


class RecordingTable:
    """Notes, each time that it follows, which hours it is brought to and which objects there are.

    Attributes:
        away: the times, counted from 1, at which it cannot.
    """

    def __init__(self, store: MemoryStore, away: Container[int] = ()) -> None:
        self.store, self.away = store, away
        self.followed: list[tuple[tuple[str, ...], set[str]]] = []

    def sync(self, hours: Iterable[str]) -> list[str]:
        objects = {key for key in self.store.objects if not key.startswith(".indexes/")}
        self.followed.append((tuple(hours), objects))
        if len(self.followed) in self.away:
            raise TableUnavailableError("the catalog is away")
        return [f"snapshot {len(self.followed)}"]


class TopicInMemory:
    """A topic, of one topic-partition unless more are asked for, and a sink called events.

    Attributes:
        batch_rows: how many records a task gets at once.
        table: that follows the index.
        lands: the class of its sinks and topics.
        session: in which its tasks run.
    """

    lands: type[TopicSink] = TopicSink

    def __init__(self, partitions: int = 1, **settings: Any) -> None:
        self.kafka = FakeKafka(partitions)
        self.store = MemoryStore("lake")
        self.records: list[KafkaRecord] = []
        self.settings = settings
        self.batch_rows = 10_000
        self.table: Any = None
        self.session: Any = TwoCoreSession()

    @property
    def sink(self) -> Sink:
        """The sink, as it is configured now."""
        least = {"name": "events", "topics": [TOPIC], "bucket": "lake", "start": FIRST, "errors": {"retry_interval": 0}}
        return Sink.model_validate(least | self.settings)

    def produce(self: W, number: int, *values: bytes | None, partition: int = 0, key: bytes | None = None) -> W:
        """Records of the hour of that number."""
        minute = 60 * number + 1
        first = len(self.kafka.logs[partition].stamps)
        self.kafka.produce(partition, *[minute] * len(values))
        self.records += [
            KafkaRecord(TOPIC, partition, first + at, ms(minute), key, value, ()) for at, value in enumerate(values)
        ]
        return self

    def target(self, now_minute: float = 600, **others: Any) -> TopicSink:
        """What lands the topic, with `others` of its parts; minutes are counted from the start of the first hour."""
        reader = others.pop("reader", None) or Given(self)
        return self.lands(
            sink=self.sink,
            topic=TOPIC,
            stores=lambda _: self.store,
            offsets=self.kafka,
            table=self.table,
            clock=lambda: ms(now_minute),
            **{"spark": lambda: self.session, "reader": lambda: reader, **others},
        )

    def read(self, ranges: Iterable[OffsetRange]) -> Iterator[pa.RecordBatch]:
        """The records of these ranges, as a task gets them."""
        for one in ranges:
            span = {one.partition: (one.start, one.end)}
            rows = [record for record in self.records if is_in_ranges(record, span)]
            for at in range(0, len(rows), self.batch_rows):
                yield to_record_batch(rows[at : at + self.batch_rows])


@dataclass(frozen=True)
class Given:
    """Reads a world's records.

    Attributes:
        tasks: of each task the topic and the ranges that it read.
    """

    world: TopicInMemory
    tasks: list[tuple[Any, ...]] = field(default_factory=list)

    def batches(self, topic: str, ranges: Iterable[OffsetRange], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        ranges = list(ranges)
        self.tasks.append((topic, *ranges))
        for records in self.world.read(ranges):
            yield records.select(list(columns))
