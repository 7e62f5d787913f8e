"""Spark's own Kafka source over exactly the offsets that were planned."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from s3lake.plan.batch import Intervals


def read(
    spark: SparkSession,
    topic: str,
    reads: Intervals,
    columns: Sequence[str],
    options: Mapping[str, str],
    *,
    records_per_task: int | None = None,
) -> DataFrame:
    """The records of `reads` (per topic-partition `[start, end)`, none of them empty), as a lazy DataFrame.

    Args:
        spark: the session; its JVM has the Kafka connector.
        topic: the topic.
        reads: what to read.
        columns: columns of Spark's Kafka source; each one costs, so only those that are needed.
        options: `kafka.*` options: bootstrap servers, security.
        records_per_task: split a topic-partition's range into tasks of at most this many offsets.
    """
    reader = spark.read.format("kafka").options(**options)
    if records_per_task is not None:
        reader = reader.option("maxRecordsPerPartition", records_per_task)
    frame = (
        # `subscribe` fails when a topic-partition was added after the plan, and starts a task for every empty range.
        reader.option("assign", json.dumps({topic: sorted(reads)}))
        .option("startingOffsets", json.dumps({topic: {str(one): start for one, (start, _) in reads.items()}}))
        .option("endingOffsets", json.dumps({topic: {str(one): end for one, (_, end) in reads.items()}}))
        .option("includeHeaders", "headers" in columns)
        .option("failOnDataLoss", True)
        .option("kafka.isolation.level", "read_committed")
        .option("kafka.fetch.max.wait.ms", 10)  # else every task waits half a second at its end
        .option("kafkaConsumer.pollTimeoutMs", 30_000)
        .load()
    )
    return frame.select(*columns)
