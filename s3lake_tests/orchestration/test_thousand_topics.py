"""A thousand topics of a real broker, their index behind a real S3 API: what a tick of their sensor costs."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NoReturn

import dagster as dg
import msgspec
import pytest
from confluent_kafka.admin import NewTopic

from s3lake import hours
from s3lake.commit.documents import TopicHead
from s3lake.commit.index import TopicIndex
from s3lake.demo.kafka import EmbeddedKafka
from s3lake.demo.s3 import EmbeddedS3
from s3lake.orchestration import sensor, sensor_memory, tick
from s3lake.orchestration.catalog import Catalog
from s3lake.orchestration.jobs import group_job
from s3lake.plan.tile import Span, Tile
from s3lake_tests.fastest import slowness
from s3lake_tests.lake import START, Lake

pytestmark = [pytest.mark.slow("creates a thousand topics"), pytest.mark.timeout(600)]

TOPICS = 1_000


def _no_session() -> NoReturn:
    raise AssertionError("a sensor needs none")


@pytest.fixture
def lake(s3_server: EmbeddedS3, tmp_path: Path) -> Iterator[Lake]:
    """A broker of its own: a thousand topics would slow the others' tests down."""
    with EmbeddedKafka.start(tmp_path / "kafka") as broker:
        yield Lake(broker, s3_server, _no_session)


def test_a_tick_over_a_thousand_topics_takes_at_most_ten_seconds_and_two_of_cpu(
    lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    topics = [f"t{number:04}" for number in range(TOPICS)]
    for first in range(0, TOPICS, 100):
        for made in lake.admin.create_topics([NewTopic(one, 1, 1) for one in topics[first : first + 100]]).values():
            made.result()
    now = int(time.time() * 1000)
    _write(lake, topics, Tile(hours.key_of_ms(now), {0: Span(0, 0)}))
    config = lake.config(f"name: events, topics_regex: 't.*', close_grace: 2h, start: {START}")
    sink = config.sink("events")
    all_of_them = Catalog(config, topics={"events": topics})
    jobs = [group_job(all_of_them, sink)]
    sense = sensor.group_sensor(all_of_them, sink, jobs, (), dg.DefaultSensorStatus.STOPPED)
    definitions = dg.Definitions(
        sensors=[sense],
        jobs=jobs,
    )
    told, cursor = [], None
    with dg.DagsterInstance.ephemeral() as instance:
        for _ in range(1 + TOPICS // tick.LOOKS_PER_TICK + 2):
            with dg.build_sensor_context(instance=instance, definitions=definitions, cursor=cursor) as context:
                began = time.monotonic(), time.process_time()
                result = sense.evaluate_tick(context)
                told.append((time.monotonic() - began[0], time.process_time() - began[1]))
            cursor = result.cursor
            assert not result.run_requests
        looked = [one for one in sensor_memory.decode(cursor).routes.values() if one.landed >= 0]
        assert len(looked) == TOPICS
    with capsys.disabled():
        print("\n1,000 topics, ticks of a lost cursor and then steady ones:")
        print("; ".join(f"{wall:.2f} s, {cpu:.2f} CPU s" for wall, cpu in told))
    assert max(wall for wall, _ in told) <= 10
    slower = slowness()
    assert max(cpu for _, cpu in told) <= 2 * slower
    assert min(cpu for _, cpu in told[-2:]) <= 0.3 * slower


def _write(lake: Lake, topics: list[str], tile: Tile) -> None:
    """Make an index in which this hour of every topic is landed."""

    def write(topic: str) -> None:
        index = TopicIndex(lake.store, ".indexes/events", topic)
        lake.store.put(index.head_key, msgspec.json.encode(TopicHead(hours=((tile.hour, tile.hour),))))
        lake.store.put(index.tile_key(tile.hour), msgspec.json.encode(tile))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, topics))
