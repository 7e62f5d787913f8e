"""Run the requests of a landing: in tasks, with SQL before them if Spark computes it.

Spark plans and runs the tasks, and projects; records are read inside the tasks and never pass its JVM.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from s3lake.index.plan.batch import TASK_RECORDS, Intervals, split_into_tasks
from s3lake.land.request.read_request import ReadRequest, TaskRunner
from s3lake.land.request.sql_job import SqlJob
from s3lake.land.spark import parallelism
from s3lake.land.spark.numbered_tasks import run_numbered_tasks
from s3lake.land.spark.opened_spark import find_session
from s3lake.land.spark.spark_jobs import SparkJobs
from s3lake.land.sql.sql_table import Tabulate
from s3lake.land.task.outcomes import OUTCOME, Outcome, encode_outcome, outcome_of
from s3lake.land.task.pipeline import Work, run
from s3lake.source.record_batches import OffsetRange, Reader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from s3lake.land.spark.opened_spark import OpenedSpark


def run_request(runner: TaskRunner, request: ReadRequest) -> list[Outcome]:
    """Run a request: all that its tasks need, the SQL before them included. Return their results."""
    if request.needs_spark:
        return runner.jobs.run(lambda opened: SqlJob(request, runner, find_session(opened)).run())
    return runner.run_tasks(request)


@dataclass(frozen=True)
class SparkTaskRunner:
    """Spark's tasks, each of which reads its ranges by itself.

    Attributes:
        reader: the source, as tasks reach it.
        jobs: the runner of Spark's jobs.
    """

    reader: Reader
    jobs: SparkJobs

    def run_tasks(self, request: ReadRequest) -> list[Outcome]:
        reader, work, topic, columns = self.reader, request.work, request.topic, request.work.record_columns
        # Where groups depend on the record, each task would have a file of its own for every value.
        least = None if work.keys.fixed_group(0) is None else request.sink.flush.count or TASK_RECORDS

        def run_job(opened: OpenedSpark) -> list[Outcome]:
            loads = _split(opened, request.reads, least)

            def run_task(number: int) -> Iterator[bytes]:
                yield from map(encode_outcome, run(work, reader.batches(topic, loads[number], columns)))

            return list(map(outcome_of, run_numbered_tasks(opened, len(loads), run_task)))

        return self.jobs.run(run_job)

    def read_rows(self, session: SparkSession, tabulate: Tabulate, reads: Intervals) -> DataFrame:
        from pyspark.sql.pandas.types import from_arrow_schema

        reader, loads = self.reader, _split(session, reads)

        def read(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            ranges = [one for batch in numbers for number in batch.column("id").to_pylist() for one in loads[number]]
            yield from tabulate(reader.batches(tabulate.topic, ranges, tabulate.carried))

        frame = session.range(0, len(loads), 1, len(loads))
        return frame.mapInArrow(read, from_arrow_schema(tabulate.schema))

    def run_on_rows(self, work: Work, frame: DataFrame) -> list[Outcome]:
        rows = frame.mapInArrow(lambda batches: work(batches), OUTCOME).collect()
        return [outcome_of(bytes(row.outcome)) for row in rows]


def _split(opened: OpenedSpark, reads: Intervals, least: int | None = None) -> list[tuple[OffsetRange, ...]]:
    """Share ranges out to tasks; a range below `least` records is not split."""
    return split_into_tasks(reads, 2 * parallelism(opened), least)
