"""What sensors and checks look at, without servers: a broker that is asked, an index in memory, a clock, ticks."""

import math
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest
from dagster._core.remote_origin import RegisteredCodeLocationOrigin, RemoteJobOrigin, RemoteRepositoryOrigin
from dagster._core.test_utils import create_run_for_test

from s3lake import hours
from s3lake.config import native
from s3lake.config.model import Config, Sink
from s3lake.errors import KafkaUnavailableError
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.index.plan.tile import Tile
from s3lake.index.store.s3_connection import S3Connection
from s3lake.land.topic import open_topic_sink
from s3lake.orchestration.catalog import Catalog
from s3lake.source import sources as sources
from s3lake.source.kafka.reader import KafkaReader
from s3lake.source.offsets import LogRange, TopicOffsets
from s3lake_tests.kit import indexes
from s3lake_tests.kit.sinks import make_config
from s3lake_tests.kit.stores import CountedStore

START, HOUR = "2026-01-05T08", "2026-01-05T10"
MINUTE_MS = 60_000
TICK_MS = 30_000
FOR_EVER = math.inf
STAND_INS = {"s3": SimpleNamespace(connection=S3Connection()), "spark": object()}
"""Resources of a project for tests that ask neither S3 nor Spark anything."""


def at(hour: str, minutes: float = 0) -> int:
    return hours.start_ms(hour) + int(minutes * MINUTE_MS)


@dataclass
class KafkaEnds:
    """The ends of topics.

    Attributes:
        logs: topic -> topic-partition -> where it ends; all begin at 0.
        since: the first offset since a time, whichever.
        starts: where an hour begins in topic-partition 0; at its end unless given.
        outages: how many questions it does not answer.
        asked: how often for what.
    """

    logs: dict[str, dict[int, int]] = field(default_factory=lambda: {"orders": {0: 100}})
    since: dict[int, int] = field(default_factory=dict)
    starts: dict[str, int] = field(default_factory=dict)
    outages: float = 0
    asked: Counter[str] = field(default_factory=Counter)
    reader: KafkaReader = field(default_factory=lambda: KafkaReader("nowhere:9092"))

    @property
    def offsets(self) -> "KafkaEnds":
        return self

    def _ask(self, question: str) -> None:
        self.asked[question] += 1
        if self.outages:
            self.outages -= 1
            raise KafkaUnavailableError("Kafka at nowhere did not answer")

    def log_ranges(self, topic: str) -> Mapping[int, tuple[int, int]]:
        self._ask("ranges")
        return {partition: (0, end) for partition, end in self.logs[topic].items()}

    def log_ends(self, topics: Collection[str]) -> Mapping[str, Mapping[int, int]]:
        self._ask("ends")
        return {topic: self.logs[topic] for topic in topics if topic in self.logs}

    def topics(self) -> list[str]:
        self._ask("topics")
        return sorted(self.logs)

    def find_offset_since(self, *_: object) -> Mapping[int, int]:
        self._ask("find_offset_since")
        return self.since

    def snapshot(self, topic: str, hour: str, *, existed: bool = False) -> TopicOffsets:
        del existed
        if not self.logs.get(topic):
            return TopicOffsets("", {})
        end = self.logs[topic][0]
        return TopicOffsets("id", {0: LogRange(0, end, self.starts.get(hour, end), end)})


def add_run(instance: dg.DagsterInstance, job: str, status: dg.DagsterRunStatus, **more: Any) -> dg.DagsterRun:
    """Add a run of a job, which need not exist."""
    origin = RemoteJobOrigin(RemoteRepositoryOrigin(RegisteredCodeLocationOrigin("s3lake"), "r"), job)
    return create_run_for_test(instance, job_name=job, status=status, remote_job_origin=origin, **more)


def config(*sinks: str) -> Config:
    """Sinks as `{name: events}`, of which each has its bucket and its start."""
    lines = [
        "kafka: {bootstrap_servers: '127.0.0.1:1'}",
        "s3: {endpoint_url: 'http://127.0.0.1:1', retries: {max_attempts: 1}}",
        "sinks:",
        *(f"  - {sink[:-1]}, bucket: lake, start: {START}}}" for sink in sinks),
    ]
    return native.load_text("\n".join(lines), "test.yaml")


def catalog(sink: Sink, *topics: str, resources: Mapping[str, object] | None = None) -> Catalog:
    """Return the catalog of a sink, by default with the sink's own topics."""
    return Catalog(make_config(sink), topics={sink.name: topics or sink.topics}, resources=resources)


class Ticks:
    """A bucket, a broker, a clock and an instance for one sensor, and its last result."""

    definitions: dg.Definitions
    sensor: dg.SensorDefinition

    def __init__(self, patch: pytest.MonkeyPatch, config: Config, kafka: KafkaEnds) -> None:
        self.config = config
        self.kafka: Any = kafka
        self.store: Any = CountedStore()
        patch.setattr(open_topic_sink, "open_stores", lambda *_, **__: lambda _: self.store)
        self.now = at(HOUR, 30)
        patch.setattr(hours, "now_ms", lambda: self.now)
        patch.setattr(sources, "open_source", lambda *_: self.kafka)
        self.instance = dg.DagsterInstance.ephemeral()
        self.cursor: str | None = None

    def index(self, sink: str = "events", topic: str = "orders") -> TopicIndex:
        return TopicIndex(self.store, f".indexes/{sink}", topic)

    def write(self, *tiles: Tile, sink: str = "events", topic: str = "orders") -> None:
        """Make these tiles of the index."""
        indexes.write_tiles(self.index(sink, topic), *tiles)

    def tick(self, later_ms: int = 0) -> Any:
        self.now += later_ms
        with dg.build_sensor_context(
            instance=self.instance,
            definitions=self.definitions,
            cursor=self.cursor,
        ) as context:
            result = self.sensor.evaluate_tick(context)
        self.cursor = result.cursor
        return result
