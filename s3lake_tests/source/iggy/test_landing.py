"""Iggy's topics landed in every way in which Kafka's are, and compared by code of verifying's own."""

import json
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from s3lake.config.model import Config
from s3lake.demo.embedded_s3 import EmbeddedS3
from s3lake.errors import DataLossError
from s3lake.index.commit.operator_decisions import accept_present_log
from s3lake.index.store.memory import MemoryStore
from s3lake.land.hour.landing import land
from s3lake.land.many_topics.landing_threads import land_together
from s3lake.land.request.read_request import RunTasks
from s3lake.land.topic.observer import LandedHour
from s3lake.land.topic.open_topic_sink import open_topic_sink
from s3lake.land.topic.topic_sink import TopicSink
from s3lake_tests.kit.lake import START, at
from s3lake_tests.source.iggy.iggy_settings import build_config
from s3lake_tests.source.iggy.server import IggyServer, header, serving
from s3lake_tests.source.inline import body, inline, verified

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NEXT = "2026-01-05T09"


@pytest.fixture
def server() -> Iterator[IggyServer]:
    """Two partitions with three messages in the first hour, the last at its last microsecond, and two in the next."""
    with serving() as server:
        server.topic("shop", "orders", 2)
        for partition in (0, 1):
            stamps = [at(START, 59) * 1000] * 2 + [at(NEXT) * 1000 - 1] + [at(NEXT) * 1000] * 2
            values = [b'{"id": %d}' % (10 * partition + number) for number in range(5)]
            headers = [header("tier", "uint8", b"\x07")]
            server.append("shop", "orders", values, stamps, partition, headers, first_id=2**127)
        yield server


def here(config: Config) -> TopicSink:
    """What lands without Spark, into memory."""
    return inline(config, config.sinks[0].topics[0], MemoryStore("lake"), lambda: at(NEXT, 90))


def test_hours_are_cut_by_the_servers_microseconds(server: IggyServer) -> None:
    config = build_config(server)
    target = here(config)
    first, second = land(target, [START, NEXT])
    assert [(span.start, span.committed) for span in first.tile.partitions.values()] == [(0, 3), (0, 3)]
    assert [(span.start, span.committed) for span in second.tile.partitions.values()] == [(3, 5), (3, 5)]
    report = verified(config, target)
    assert report.clean
    assert sum(one.landed for one in report.checked) == 10


def test_ids_and_headers_land_in_the_envelope(server: IggyServer) -> None:
    config = build_config(server, "format: {type: json}, envelope: {fields: [key, headers, value, metadata]}")
    target = here(config)
    land(target, [START])
    line = json.loads(body(target, START).splitlines()[0])
    assert line["value"] == {"id": 0}
    assert line["key"] == str(2**127)
    assert line["headers"] == {"tier": "7"}
    assert verified(config, target).clean


@pytest.mark.parametrize("new", [2, 9])
def test_a_topic_that_was_purged_is_refused_until_that_is_accepted(new: int, server: IggyServer) -> None:
    config = build_config(server)
    target = here(config)
    land(target, [START])
    server.purge("shop", "orders")
    for partition in (0, 1):
        server.append("shop", "orders", [b'{"id": 1}'] * new, at(NEXT, 5) * 1000, partition)
    with pytest.raises(DataLossError, match="what it has at their offsets was written since"):
        land(target, [NEXT])
    assert accept_present_log(target.index, target.offsets) == NEXT
    (landed,) = land(target, [NEXT])
    assert [span.committed for span in landed.tile.partitions.values()] == [new, new]
    assert verified(config, target).clean


def test_a_message_that_is_another_one_now_is_a_difference(server: IggyServer) -> None:
    config = build_config(server)
    target = here(config)
    land(target, [START])
    server.streams["shop"]["orders"].partitions[0].messages[1].payload = b'{"id": 99}'
    assert not verified(config, target).clean


def land_start(target: TopicSink, run: RunTasks) -> list[LandedHour]:
    """Land the first hour, next to other topics."""
    return land(target, [START], run=run)


def test_spark_lands_topics_of_several_streams_in_one_job(
    server: IggyServer, s3_server: EmbeddedS3, spark: "SparkSession"
) -> None:
    server.topic("web", "clicks")
    server.append("web", "clicks", [b'{"id": 1}'] * 3, at(START, 1) * 1000)
    configs = {topic: build_config(server, "", topic, s3_server) for topic in ("shop.orders", "web.clicks")}
    targets = {topic: open_topic_sink(config, config.sinks[0], topic) for topic, config in configs.items()}
    results: Any = land_together({target: partial(land_start, target) for target in targets.values()}, lambda: spark)
    assert [one.tile.complete for (one,) in results.values()] == [True, True]
    assert [verified(configs[topic], target).clean for topic, target in targets.items()] == [True, True]
