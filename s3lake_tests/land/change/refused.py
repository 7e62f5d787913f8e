"""An hour in several commits of which some records were refused, in memory."""

from typing import Any

import pytest

from s3lake.config.model import Sink
from s3lake.index.commit.documents import Manifest
from s3lake.index.commit.sums import Commits
from s3lake.index.store import Store
from s3lake.land.change.committed_dead_letters import ReasonFilter, read_committed_dead_letters
from s3lake.land.change.replay import ReplayResult, replay
from s3lake.land.topic.topic_sink import TopicSink
from s3lake.source.kafka.reader import KafkaReader
from s3lake_tests.index.commit.kafka import FakeKafka
from s3lake_tests.lake.verify.world import HOUR, TOPIC
from s3lake_tests.land.change.parts import Parts

TEMPLATE = "{topic}/{time:yyyy-MM-dd}/{partition}-{offset:012}"
BY_FIELD = {"layout": {"template": TEMPLATE, "time": {"source": "field", "field": "at"}}}
"""A layout that places no record without a time."""
MENDED = {"layout": {"template": TEMPLATE}}
GOOD, ODD = b'{"at":1767600000000,"id":%d}', b'{"id":%d}'


class LakeWithRefusals(Parts):
    """An hour in several commits, some of whose records were refused."""

    def __init__(self, **sink: Any) -> None:
        super().__init__(**{**BY_FIELD, **sink})

    def landed(self, *counts: int) -> "LakeWithRefusals":  # type: ignore[override]
        """Commits of so many records, every third of which has no time, and the last is broken."""
        for count in counts:
            values = [(ODD if number % 3 == 2 else GOOD) % number for number in range(count - 1)]
            self.land(*values, b"{ broken")
        return self

    def mended(self, **changes: Any) -> None:
        """Change the sink's configuration."""
        self.sink = Sink.model_validate({**self.sink.model_dump(exclude_unset=True), **changes})

    def target(self, store: Store | None = None) -> TopicSink:
        """Of the sink as it is configured now."""
        return TopicSink(
            sink=self.sink,
            topic=TOPIC,
            spark=lambda: pytest.fail("no SQL"),
            stores=lambda _: store or self.store,
            offsets=FakeKafka(1),
            reader=lambda: KafkaReader("nowhere:1"),
        )

    def replay(self, reason: str | None = None, *, dry_run: bool = False) -> list[ReplayResult]:
        """Replay the hour."""
        return list(replay(self.target(), HOUR, ReasonFilter(reason), dry_run=dry_run))

    @property
    def commits(self) -> list[Manifest]:
        """As the tile lists them."""
        return [manifest for tile in self.index.tiles() for manifest in Commits(self.index, HOUR, tile.commits)]

    def dead_letters(self) -> dict[int, str]:
        """Why each offset that is a dead letter is one."""
        return {
            one.offset: one.message for each in self.commits for one in read_committed_dead_letters(self.store, each)
        }
