"""A request of a landing, which is the records that tasks have to read, and the protocol of what runs the tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from s3lake.errors import RecordError
from s3lake.index.plan.batch import Intervals
from s3lake.land.spark.spark_jobs import SparkJobs
from s3lake.land.sql.sql_table import Tabulate
from s3lake.land.task.outcomes import Outcome, Refused
from s3lake.land.task.pipeline import Work

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from s3lake.config.model import Sink

_REFUSED = "Set errors.tolerance: all to land such records as dead letters"
_FORBIDDEN = "Write evolve there to take it in, drop to leave it out, or dead_letter to set its record aside"


@dataclass(frozen=True)
class ReadRequest:
    """Records that tasks have to read, and what they do with them.

    Attributes:
        shapes: the shapes of records that SQL has read before.
    """

    sink: Sink
    topic: str
    work: Work
    reads: Intervals
    shapes: Sequence[str] = ()

    @property
    def offsets(self) -> int:
        """The number of offsets to read."""
        return sum(end - start for start, end in self.reads.values())

    @property
    def needs_spark(self) -> bool:
        """True if Spark computes the sink's SQL."""
        return self.work.projection is not None and self.work.projection.query.needs_spark


RunTasks = Callable[[ReadRequest], list[Outcome]]
"""Runs the tasks of a request, and returns their results."""


class TaskRunner(Protocol):
    """Reads and runs requests: in Spark's tasks over a source, or in this process over records that it has."""

    @property
    def jobs(self) -> SparkJobs:
        """The runner of Spark's jobs."""
        ...

    def run_tasks(self, request: ReadRequest) -> list[Outcome]:
        """Run the tasks of a request. Return their results."""
        ...

    def read_rows(self, session: SparkSession, tabulate: Tabulate, reads: Intervals) -> DataFrame:
        """Read the records of `reads` as rows for SQL."""
        ...

    def run_on_rows(self, work: Work, frame: DataFrame) -> list[Outcome]:
        """Run the tasks of `work` over rows that come from SQL. Return their results."""
        ...


def refusal_error(sink: Sink, topic: str, refused: Refused) -> RecordError:
    """Return the error of a refused record that a sink does not tolerate."""
    return RecordError(
        f"sink {sink.name}: record refused in topic {topic!r}, partition {refused.partition}, offset "
        f"{refused.offset}, stage {refused.stage}: {refused.reason}; nothing of this micro-batch is visible. "
        f"{_FORBIDDEN if refused.forbidden else _REFUSED}",
        topic=topic,
        partition=refused.partition,
        offset=refused.offset,
        stage=refused.stage,
        reason=refused.reason,
    )
