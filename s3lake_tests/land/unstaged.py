"""A world in which landing plans and commits as ever, and stages nothing: no Spark, no Kafka, no S3."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from s3lake.commit.documents import File, Read
from s3lake.commit.protocol import Attempt, Staged
from s3lake.land.landing import Landing
from s3lake.land.observer import Run
from s3lake.sink import Sink
from s3lake.source.kafka.reader import KafkaReader
from s3lake.store import COMMIT
from s3lake.store.memory import MemoryStore
from s3lake_tests.commit.kafka import TOPIC, FakeKafka, hour, ms

FIRST, SECOND, THIRD = hour(0), hour(1), hour(2)


class Landed(Landing):
    """Stages no files; `before` may do something before a micro-batch is staged."""

    before: Callable[[Attempt], None] = staticmethod(lambda _: None)

    def _stage(self, attempt: Attempt, run: Run) -> Staged:  # noqa: ARG002
        self.before(attempt)
        reads = {one: Read(s, e, e - s, e - s) for one, (s, e) in attempt.batch.reads.items()}
        return Staged(files=(), reads=reads)


class Filed(Landed):
    """Stages one file for each topic-partition, with a byte for each record."""

    def _stage(self, attempt: Attempt, run: Run) -> Staged:
        staged = super()._stage(attempt, run)
        files = tuple(self._file(attempt, partition, read) for partition, read in staged.reads.items())
        return replace(staged, files=files)

    def _key(self, attempt: Attempt, partition: int, read: Read) -> str:
        return f"{self.topic}/{partition}/{read.start}{attempt.suffix}.txt"

    def _file(self, attempt: Attempt, partition: int, read: Read) -> File:
        key = self._key(attempt, partition, read)
        upload = self.store.create_upload(key, {COMMIT: attempt.commit})
        part = self.store.upload_part(key, upload, 1, b"." * read.read)
        return File(key, upload, (part,), partition, read.start, read.end - 1, read.read, read.read)


class World:
    """A topic of ten records an hour, three hours long, and what lands it by a clock long after."""

    lands: type[Landed] = Landed

    def __init__(self, **settings: Any) -> None:
        self.kafka = FakeKafka(1)
        for number in range(3):
            self.kafka.produce(0, *[60 * number + minute for minute in range(10)])
        self.store = MemoryStore("lake")
        self.settings = settings

    @property
    def sink(self) -> Sink:
        """A sink called events."""
        least = {"name": "events", "topics": [TOPIC], "bucket": "lake", "start": FIRST, "errors": {"retry_interval": 0}}
        return Sink.model_validate(least | self.settings)

    def landing(self, now_minute: float = 600) -> Landed:
        """What lands the topic; minutes are counted from the start of the first hour."""
        return self.lands(
            sink=self.sink,
            topic=TOPIC,
            spark=lambda: pytest.fail("nothing is read"),
            stores=lambda _: self.store,
            offsets=self.kafka,
            reader=KafkaReader("nowhere:1"),
            clock=lambda: ms(now_minute),
        )
