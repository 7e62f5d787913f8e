"""Tasks that run in this process, over records that it has, through the stages that land them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from s3lake.index.plan.batch import Intervals
from s3lake.land.request.read_request import ReadRequest
from s3lake.land.spark.spark_jobs import SparkJobs
from s3lake.land.sql.sql_table import Tabulate
from s3lake.land.task.outcomes import Outcome
from s3lake.land.task.pipeline import Work, run
from s3lake.source.record_batches import HEADERS, KAFKA_SCHEMA

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BATCH_RECORDS = 10_000


@dataclass(frozen=True)
class KafkaRecord:
    """One record as Kafka would have it; `timestamp` in epoch milliseconds, -1 for none."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True)
class Refusal:
    """A record that some stage refused."""

    topic: str
    partition: int
    offset: int
    stage: str
    message: str


Batches = dict[int, Iterable[pa.RecordBatch]]
"""By topic-partition, in the order of offsets."""


@dataclass
class InProcessTaskRunner:
    """A `TaskRunner` over records that this process has. It opens a session if Spark computes SQL over them.

    Attributes:
        read: the records of these ranges.
        jobs: the runner of Spark's jobs.
        refusals: what the last job refused, in its order.
    """

    read: Callable[[Intervals], Batches]
    jobs: SparkJobs
    refusals: list[Refusal] = field(default_factory=list)

    def run_tasks(self, request: ReadRequest) -> list[Outcome]:
        return self._run(request.work, self.read(request.reads))

    def read_rows(self, session: SparkSession, tabulate: Tabulate, reads: Intervals) -> DataFrame:
        records = chain.from_iterable(self.read(reads).values())
        table = pa.Table.from_batches(list(tabulate(records)), tabulate.schema)
        return session.createDataFrame(table)

    def run_on_rows(self, work: Work, frame: DataFrame) -> list[Outcome]:
        return self._run(work, _by_partition(frame.toArrow()))

    def _run(self, work: Work, parts: Batches) -> list[Outcome]:
        self.refusals.clear()
        watched = replace(work, witness=lambda *place: self.refusals.append(Refusal(work.keys.topic, *place)))
        return list(chain.from_iterable(run(watched, parts[partition]) for partition in sorted(parts)))


def _by_partition(table: pa.Table) -> Batches:
    table = table.sort_by([("partition", "ascending"), ("offset", "ascending")])
    return {
        partition: table.filter(pc.field("partition") == partition).to_batches(max_chunksize=BATCH_RECORDS)
        for partition in pc.unique(table.column("partition")).to_pylist()
    }


def is_in_ranges(record: KafkaRecord, reads: Intervals) -> bool:
    """Return whether a record is in these offset ranges."""
    start, end = reads.get(record.partition, (0, 0))
    return start <= record.offset < end


def to_record_batch(rows: Sequence[KafkaRecord]) -> pa.RecordBatch:
    """Records of one topic-partition as a task reads them from Kafka."""
    return pa.record_batch(
        [
            pa.array([row.partition for row in rows], pa.int32()),
            pa.array([row.offset for row in rows], pa.int64()),
            pa.array([row.timestamp for row in rows], KAFKA_SCHEMA.field("timestamp").type),
            pa.array([row.value for row in rows], pa.binary()),
            pa.array([row.key for row in rows], pa.binary()),
            pa.array(
                [[{"key": name, "value": value} for name, value in row.headers] or None for row in rows],
                HEADERS,
            ),
        ],
        schema=KAFKA_SCHEMA,
    )
