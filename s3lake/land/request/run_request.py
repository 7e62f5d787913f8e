"""Run the requests of a landing: in tasks, with SQL before them if Spark computes it.

Spark plans and runs the tasks, and projects; records are read inside the tasks and never pass its JVM.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from s3lake.index.plan.batch import TASK_RECORDS, Intervals, split_into_tasks
from s3lake.land.request.read_request import ReadRequest, TaskRunner
from s3lake.land.request.sql_job import SqlJob
from s3lake.land.spark import parallelism
from s3lake.land.spark.spark_jobs import SparkJobs
from s3lake.land.sql.sql_table import Tabulate
from s3lake.land.task.outcomes import OUTCOME, Outcome, outcome_of
from s3lake.land.task.pipeline import Work
from s3lake.source.record_batches import Reader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

Stage = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""Turns records into the rows that a task returns."""


def run_request(runner: TaskRunner, request: ReadRequest) -> list[Outcome]:
    """Run a request: all that its tasks need, the SQL before them included. Return their results."""
    if request.needs_spark:
        return runner.jobs.run(lambda session: SqlJob(request, runner, session).run())
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
        work = request.work
        # Where groups depend on the record, each task would have a file of its own for every value.
        least = None if work.keys.fixed_group(0) is None else request.sink.flush.count or TASK_RECORDS

        def run(session: SparkSession) -> list[Outcome]:
            return _collect(
                self._read(session, request.topic, work, work.record_columns, request.reads, OUTCOME, least)
            )

        return self.jobs.run(run)

    def read_rows(self, session: SparkSession, tabulate: Tabulate, reads: Intervals) -> DataFrame:
        from pyspark.sql.pandas.types import from_arrow_schema

        return self._read(
            session, tabulate.topic, tabulate, tabulate.carried, reads, from_arrow_schema(tabulate.schema)
        )

    def run_on_rows(self, work: Work, frame: DataFrame) -> list[Outcome]:
        return _collect(frame.mapInArrow(lambda batches: work(batches), OUTCOME))

    def _read(
        self,
        session: SparkSession,
        topic: str,
        stage: Stage,
        columns: Sequence[str],
        reads: Intervals,
        schema: StructType | str,
        least: int | None = None,
    ) -> DataFrame:
        """Run `stage` in tasks over the records of `reads`; a range below `least` records is not split."""
        reader, loads = self.reader, split_into_tasks(reads, 2 * parallelism(session), least)

        def read(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            ranges = [one for batch in numbers for number in batch.column("id").to_pylist() for one in loads[number]]
            yield from stage(reader.batches(topic, ranges, columns))

        return session.range(0, len(loads), 1, len(loads)).mapInArrow(read, schema)


def _collect(frame: DataFrame) -> list[Outcome]:
    return [outcome_of(bytes(row.outcome)) for row in frame.collect()]
