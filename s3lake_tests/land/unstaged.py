"""A world in which landing plans and commits as ever, and stages nothing: no Spark, no Kafka, no S3."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from s3lake.index.commit.documents import File, Read
from s3lake.index.commit.protocol import Attempt, Staged
from s3lake.index.store import COMMIT
from s3lake.land.request.read_request import RunTasks
from s3lake.land.topic.topic_sink import TopicSink
from s3lake_tests.land import at_hand
from s3lake_tests.land.at_hand import FIRST, SECOND, THIRD

__all__ = ["FIRST", "SECOND", "THIRD"]


class Landed(TopicSink):
    """Stages no files; `before` may do something before a micro-batch is staged."""

    before: Callable[[Attempt], None] = staticmethod(lambda _: None)

    def stage(self, attempt: Attempt, _run: RunTasks) -> Staged:
        self.before(attempt)
        reads = {one: Read(s, e, read=e - s, landed=e - s) for one, (s, e) in attempt.batch.reads.items()}
        return Staged(files=(), reads=reads)


class Filed(Landed):
    """Stages one file for each topic-partition, with a byte for each record."""

    def stage(self, attempt: Attempt, run: RunTasks) -> Staged:
        staged = super().stage(attempt, run)
        files = tuple(self._file(attempt, partition, read) for partition, read in staged.reads.items())
        return replace(staged, files=files)

    def _key(self, attempt: Attempt, partition: int, read: Read) -> str:
        return f"{self.topic}/{partition}/{read.start}{attempt.suffix}.txt"

    def _file(self, attempt: Attempt, partition: int, read: Read) -> File:
        key = self._key(attempt, partition, read)
        upload = self.store.create_upload(key, {COMMIT: attempt.commit})
        part = self.store.upload_part(key, upload, 1, b"." * read.read)
        return File(key, upload, (part,), partition, read.start, read.end - 1, read.read, read.read)


class UnstagedTopic(at_hand.TopicInMemory):
    """A topic of ten records an hour, three hours long, and what lands it by a clock long after."""

    lands: type[TopicSink] = Landed

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for number in range(3):
            self.kafka.produce(0, *[60 * number + minute for minute in range(10)])

    def target(self, now_minute: float = 600, **others: Any) -> Landed:
        """What lands the topic; minutes are counted from the start of the first hour."""
        target = super().target(now_minute, **others)
        assert isinstance(target, Landed)
        return target
