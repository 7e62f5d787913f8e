"""A topic whose values a test writes, and what lands them for real, in this process: no Spark, no Kafka, no S3."""

from collections.abc import Container, Iterable
from typing import Any

import pyarrow as pa
import pytest

from s3lake.errors import TableUnavailableError
from s3lake.land.given import Batches, GivenEngine, Record, batch, within
from s3lake.land.landing import Landing
from s3lake.plan.batch import Intervals
from s3lake.sink import Sink
from s3lake.source.kafka.reader import KafkaReader
from s3lake.store.memory import MemoryStore
from s3lake_tests.commit.kafka import TOPIC, FakeKafka, hour, ms

FIRST, SECOND, THIRD = hour(0), hour(1), hour(2)


class Table:
    """Notes, each time that it follows, which hours it is brought to and which objects there are.

    Attributes:
        away: the times, counted from 1, at which it cannot.
    """

    def __init__(self, store: MemoryStore, away: Container[int] = ()) -> None:
        self.store, self.away = store, away
        self.followed: list[tuple[tuple[str, ...], set[str]]] = []

    def follow(self, hours: Iterable[str]) -> list[str]:
        objects = {key for key in self.store.objects if not key.startswith(".indexes/")}
        self.followed.append((tuple(hours), objects))
        if len(self.followed) in self.away:
            raise TableUnavailableError("the catalog is away")
        return [f"snapshot {len(self.followed)}"]


class World:
    """A topic, of one topic-partition unless more are asked for, and a sink called events.

    Attributes:
        batch_rows: how many records a task gets at once.
        table: that follows the index.
        lands: the class of its landings.
    """

    lands: type[Landing] = Landing

    def __init__(self, partitions: int = 1, **settings: Any) -> None:
        self.kafka = FakeKafka(partitions)
        self.store = MemoryStore("lake")
        self.records: list[Record] = []
        self.settings = settings
        self.batch_rows = 10_000
        self.table: Any = None

    @property
    def sink(self) -> Sink:
        """The sink, as it is configured now."""
        least = {"name": "events", "topics": [TOPIC], "bucket": "lake", "start": FIRST, "errors": {"retry_interval": 0}}
        return Sink.model_validate(least | self.settings)

    def produce(self, number: int, *values: bytes | None, partition: int = 0, key: bytes | None = None) -> None:
        """Records of the hour of that number."""
        minute = 60 * number + 1
        first = len(self.kafka.logs[partition].stamps)
        self.kafka.produce(partition, *[minute] * len(values))
        self.records += [
            Record(TOPIC, partition, first + at, ms(minute), key, value, ()) for at, value in enumerate(values)
        ]

    def landing(self, now_minute: float = 600) -> Landing:
        """What lands the topic; minutes are counted from the start of the first hour."""
        return self.lands(
            sink=self.sink,
            topic=TOPIC,
            spark=lambda: pytest.fail("no session is needed"),
            stores=lambda _: self.store,
            offsets=self.kafka,
            reader=KafkaReader("nowhere:1"),
            clock=lambda: ms(now_minute),
            table=self.table,
            engine=lambda _: GivenEngine(self._read, lambda: pytest.fail("no session is needed")),
        )

    def _read(self, reads: Intervals) -> Batches:
        def of(partition: int) -> Iterable[pa.RecordBatch]:
            rows = [one for one in self.records if one.partition == partition and within(one, reads)]
            return [batch(rows[at : at + self.batch_rows]) for at in range(0, len(rows), self.batch_rows)]

        return {partition: of(partition) for partition in reads}
