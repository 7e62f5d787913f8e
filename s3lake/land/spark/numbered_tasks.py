"""Runs a Python function in tasks of Spark, each of which gets its number."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from s3lake.land.spark.opened_spark import find_session
from s3lake.land.spark.private_pyspark import find_context

if TYPE_CHECKING:
    from s3lake.land.spark.opened_spark import OpenedSpark


def run_numbered_tasks(opened: OpenedSpark, tasks: int, work: Callable[[int], Iterable[bytes]]) -> list[bytes]:
    """Call `work` in so many tasks, with 0 in the first one. Return what they yield, in the order of the tasks."""
    context = find_context(opened)
    if context is not None:
        # An RDD needs no SQL: a JVM that has just started would load, plan and compile for seconds of CPU.
        return context.parallelize(range(tasks), tasks).flatMap(work).collect()

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column("id").to_pylist():
                for result in work(number):
                    yield pa.record_batch([pa.array([result], pa.binary())], names=["result"])

    frame = find_session(opened).range(0, tasks, 1, tasks).mapInArrow(run, "result binary")
    return [bytes(row.result) for row in frame.collect()]
