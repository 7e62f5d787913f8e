"""Open what a sink lands a topic with: its source, its bucket, its table."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from s3lake.index.store.s3_connection import S3Connection
from s3lake.index.store.s3_store import S3Store
from s3lake.lake.readback.committed import open_index
from s3lake.land.topic.topic_sink import TopicSink
from s3lake.source import sources
from s3lake.source.kafka.consumer_group import ConsumerGroup
from s3lake.source.kafka.dead_letter_topic import DeadLetterTarget

if TYPE_CHECKING:
    from s3lake.config.model import Config, Sink
    from s3lake.index.store import Stores
    from s3lake.land.spark.opened_spark import OpenedSpark


def open_topic_sink(
    config: Config,
    sink: Sink,
    topic: str,
    s3: S3Connection | None = None,
    spark: Callable[[], OpenedSpark] | None = None,
    *,
    fail_fast: bool = False,
    timeout_s: float = 5.0,
) -> TopicSink:
    """Open what lands `topic` into `sink`. Asks neither the source nor S3 anything.

    Args:
        config: the configuration of the sink: it names the source.
        s3: how S3 is reached by a sink without `s3` settings of its own; without it as configured.
        spark: returns what Spark's jobs run in, when there is something to read; None to read the index only.
        fail_fast: give up within seconds if S3 does not answer, as a sensor must: it looks again soon.
        timeout_s: the time within which the source answers, or a question to it fails, in seconds.
    """
    connection = s3_connection(config, sink, s3)
    stores, source, table = open_stores(connection, fail_fast=fail_fast), sources.open_source(config, timeout_s), None
    if sink.table is not None:
        from s3lake.lake.table.iceberg import LakeTable

        table = LakeTable(sink, sink.table, open_index(sink, topic, stores(sink.bucket)), connection)
    dead_letter_topic = group = None
    if config.kafka is not None:
        servers, properties = config.kafka.bootstrap_servers, config.kafka.properties
        dead_letter_topic = DeadLetterTarget.from_sink(sink, topic, servers, properties)
        if sink.publish_offsets and spark is not None:
            group = ConsumerGroup(f"s3lake-{sink.name}", servers, properties)
    return TopicSink(
        sink=sink,
        topic=topic,
        spark=spark or _refuse_spark,
        stores=stores,
        table=table,
        offsets=source.offsets,
        reader=lambda: source.reader,
        dead_letter_topic=dead_letter_topic,
        group=group,
    )


def s3_connection(config: Config, sink: Sink, s3: S3Connection | None = None) -> S3Connection:
    """Return how the bucket of `sink` is reached: by its own settings, else by `s3`, else by the configuration's."""
    return S3Connection.from_settings(sink.s3) if sink.s3 is not None else s3 or S3Connection.from_settings(config.s3)


def open_stores(connection: S3Connection, *, fail_fast: bool = False) -> Stores:
    """Return a function that opens a bucket, here and in Spark's workers. See `open_topic_sink` for `fail_fast`."""
    if fail_fast:
        connection = replace(connection, max_attempts=2, connect_timeout_s=3.0, read_timeout_s=10.0, patience_s=0)
    return functools.partial(S3Store, connection)


def _refuse_spark() -> OpenedSpark:
    raise AssertionError("a sink that was opened without Spark was asked to read records")
