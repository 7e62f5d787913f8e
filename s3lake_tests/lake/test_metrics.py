"""The metrics that Prometheus gets, read back with its own parser."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from s3lake import hours
from s3lake.config.model import Sink
from s3lake.errors import DataLossError, KafkaUnavailableError, StoreUnavailableError
from s3lake.index.commit.documents import TopicHead, Watermark
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.index.plan.tile import Sums, Tile, TileRange, Wait
from s3lake.lake import prometheus
from s3lake.lake.metrics import TopicProgress, read_waiting
from s3lake.lake.prometheus import METRICS, Scrape
from s3lake.land.topic.topic_sink import TopicSink
from s3lake.source.kafka.reader import KafkaReader
from s3lake.source.offsets import Lag
from s3lake_tests.kit import indexes
from s3lake_tests.kit.cost import PATIENCE_S
from s3lake_tests.kit.processes import until
from s3lake_tests.kit.stores import CountedStore
from s3lake_tests.kit.targets import refuse_session

NOW = hours.start_ms("2026-01-05T12") + 30 * 60_000


@dataclass
class LaggingKafka:
    ends: dict[int, int] = field(default_factory=lambda: {0: 100})
    down: bool = False
    asked: int = 0

    def lag(self, _: str, reached: Mapping[int, int], **__: int) -> Lag:
        self.asked += 1
        if self.down:
            raise KafkaUnavailableError("Kafka at nowhere did not answer")
        records = sum(end - reached.get(partition, 0) for partition, end in self.ends.items())
        return Lag(records, 42.0 if records else 0.0, dict(self.ends))


class AwayStore(CountedStore):
    """A bucket whose requests fail while it is away, or wait until it answers."""

    away = False

    def __init__(self) -> None:
        super().__init__()
        self.answers = threading.Event()
        self.answers.set()

    def get(self, key: str, span: tuple[int, int] | None = None) -> Any:
        self.answers.wait(PATIENCE_S)
        if self.away:
            raise StoreUnavailableError("S3 at nowhere did not answer")
        return super().get(key, span)


class MeasuredTopics:
    """A sink's topics, and a clock for what is fresh."""

    def __init__(self, *topics: str, deadline_s: float = PATIENCE_S) -> None:
        self.store, self.kafka, self.clock = AwayStore(), LaggingKafka(), 0.0
        sink = Sink(name="events", topics=topics, bucket="lake", start="2026-01-05T08")
        self.targets = [
            TopicSink(
                sink,
                topic,
                refuse_session,
                lambda _: self.store,
                self.kafka,
                lambda: KafkaReader("x:1"),
                clock=lambda: NOW,
            )
            for topic in topics
        ]
        self.registry = CollectorRegistry()
        self.registry.register(Scrape(lambda: self.targets, deadline_s=deadline_s, clock=lambda: self.clock))

    def seal(self, topic: str, upto: str) -> None:
        """Note that all hours up to this one are sealed."""
        index = self.index(topic)
        head, etag = index.head() or (TopicHead(), "")
        assert index.swap(index.head_key, head.revise(sealed=Watermark("2026-01-05T08", upto)), etag)

    def index(self, topic: str) -> TopicIndex:
        return next(target.index for target in self.targets if target.topic == topic)

    def write(self, topic: str, *tiles: Tile) -> None:
        indexes.write_tiles(self.index(topic), *tiles)

    def scrape(self) -> dict[str, float]:
        """Values by name and labels, as "up orders kafka", a while after the last scrape."""
        self.clock += 10
        self.store.requests.clear()
        return self.values()

    def values(self) -> dict[str, float]:
        text = generate_latest(self.registry).decode()
        samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
        assert {one.labels.get("sink", "events") for one in samples} == {"events"}
        return {
            " ".join([name, *(one.labels[label] for label in METRICS[name][1] if label != "sink")]): one.value
            for one in samples
            for name in [one.name.removeprefix("s3lake_")]
        }


def complete(hour: int, start: int, end: int, **sums: Any) -> Tile:
    return Tile(f"2026-01-05T{hour:02}", {0: TileRange(start, end, end)}, commits=("c",), sums=Sums(**sums))


@pytest.fixture
def world() -> MeasuredTopics:
    return MeasuredTopics("orders")


def test_metrics_have_how_far_a_topic_is(world: MeasuredTopics) -> None:
    eleven = complete(
        11, 0, 50, landed=45, bytes=900, files=3, dead=5, late=2, landed_ms=1_000, waits=(Wait(50, 0, 10_000),)
    )
    newest = Tile("2026-01-05T12", {0: TileRange(50, 70)}, commits=("d",), sums=Sums(landed=20, landed_ms=NOW - 60_000))
    world.write("orders", eleven, msgspec.structs.replace(newest, took_ms=1_500))
    before = world.scrape()
    assert "last_sealed_hour_timestamp_seconds orders" not in before
    world.seal("orders", "2026-01-05T10")
    samples = world.scrape()
    assert (before["hours_unsealed orders"], samples["hours_unsealed orders"]) == (4, 1)
    assert (
        samples.items()
        >= {
            "topics": 1,
            "up orders kafka": 1,
            "up orders s3": 1,
            "lag_records orders": 30,
            "lag_seconds orders": 42,
            "last_complete_hour_timestamp_seconds orders": hours.start_ms("2026-01-05T11") / 1000,
            "last_sealed_hour_timestamp_seconds orders": hours.start_ms("2026-01-05T10") / 1000,
            "last_commit_timestamp_seconds orders": NOW / 1000 - 60,
            "last_commit_seconds orders": 1.5,
            "hour_rows orders complete": 45,
            "hour_bytes orders complete": 900,
            "hour_files orders complete": 3,
            "hour_dead_letters orders complete": 5,
            "hour_late orders complete": 2,
            "hour_freshness_seconds orders complete 0.5": 5,
            "hour_freshness_seconds orders complete 1": 10,
            "hour_rows orders newest": 20,
        }.items()
    )


def test_hours_that_are_over_and_have_no_tile_or_are_not_landed_are_not_complete(world: MeasuredTopics) -> None:
    # 12:30 and a grace of 5 minutes: 08 to 11 are over.
    samples = world.scrape()
    assert (samples["hours_incomplete orders"], samples["hours_unsealed orders"]) == (4, 4)
    world.write("orders", complete(9, 0, 10), Tile("2026-01-05T10", {0: TileRange(10, 15, 30)}))
    assert world.scrape()["hours_incomplete orders"] == 2


def test_a_scrape_costs_four_requests_a_topic_and_one_question(world: MeasuredTopics) -> None:
    tiles = [Tile(f"2026-01-0{day}T{hour:02}", {0: TileRange(0, 0, 1)}) for day in (2, 3, 4) for hour in range(24)]
    world.write("orders", *tiles)
    samples = world.scrape()
    assert world.store.requests == {"get": 4}
    assert world.kafka.asked == 1
    assert samples["hours_incomplete orders"] == 3 + 12  # the newest, and those without a tile


def test_scrapes_within_seconds_get_the_same_answer(world: MeasuredTopics) -> None:
    world.scrape()
    world.clock += prometheus.FRESH_S / 2
    world.values()
    assert world.kafka.asked == 1


def test_an_unavailable_kafka_is_down_and_counted_and_the_index_is_still_reported(world: MeasuredTopics) -> None:
    world.write("orders", complete(11, 0, 50, landed=45))
    world.kafka.down = True
    world.scrape()
    samples = world.scrape()
    assert samples["up orders kafka"] == 0
    assert samples["up orders s3"] == 1
    assert samples["errors_total orders kafka"] == 2
    assert "lag_records orders" not in samples
    assert samples["hour_rows orders complete"] == 45


def test_an_unavailable_bucket_is_asked_once_a_scrape_and_not_for_every_topic() -> None:
    world = MeasuredTopics(*(f"t{number}" for number in range(200)))
    world.store.away = True
    samples = world.scrape()
    assert {samples[f"up t{number} s3"] for number in range(200)} == {0.0}
    assert {samples[f"up t{number} kafka"] for number in range(200)} == {1.0}
    assert world.store.requests.total() <= 16  # of topics that were looked at side by side


def test_a_bucket_that_is_slow_holds_no_scrape_up_and_its_answer_comes_with_a_later_one() -> None:
    world = MeasuredTopics("orders", deadline_s=0.1)
    world.write("orders", complete(11, 0, 100))
    world.store.answers.clear()
    assert world.scrape()["up orders s3"] == 0  # the bucket has not answered yet, and no scrape makes it
    assert not world.store.answers.is_set()
    world.store.answers.set()
    until(lambda: world.scrape()["up orders s3"] == 1)
    assert world.scrape()["errors_total orders s3"] >= 1


def test_every_metric_has_its_type_and_a_description(world: MeasuredTopics) -> None:
    landed = complete(11, 0, 50, landed_ms=1_000, waits=(Wait(50, 0, 10_000),))
    world.write("orders", msgspec.structs.replace(landed, took_ms=1_500))
    world.seal("orders", "2026-01-05T08")
    world.scrape()
    families = {one.name: one for one in text_string_to_metric_families(generate_latest(world.registry).decode())}
    samples = {name: families[f"s3lake_{name.removesuffix('_total')}"] for name in METRICS}
    assert {name: one.documentation for name, one in samples.items()} == {
        name: text for name, (text, _) in METRICS.items()
    }
    assert {name for name, one in samples.items() if one.type == "counter"} == {"errors_total", "requests_total"}
    assert all(one.samples for name, one in samples.items() if name != "requests_total")


def test_a_topic_that_was_deleted_or_is_not_waited_for_has_no_lag_but_an_error() -> None:
    sink = Sink.model_validate({"name": "events", "topics": ["orders"], "bucket": "lake", "start": "2026-01-05T08"})
    offsets = SimpleNamespace(lag=lambda *_, **__: Lag(0, 0.0))

    def target(missing_topic: str) -> Any:
        settled = sink.model_copy(update={"missing_topic": missing_topic})
        return SimpleNamespace(sink=settled, topic="orders", offsets=offsets, clock=lambda: 0)

    for setting, progress in (("wait", TopicProgress(reached={0: 5})), ("fail", TopicProgress())):
        with pytest.raises(DataLossError, match="topic 'orders' does not exist in Kafka"):
            read_waiting(target(setting), progress)
    assert read_waiting(target("wait"), TopicProgress()) == Lag(0, 0.0)
