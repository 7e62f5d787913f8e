"""Run the requests of a landing: in Spark's tasks, with SQL before them, or in this process.

Spark plans and runs the tasks, and projects; records are read inside the tasks and never pass its JVM.
"""

from __future__ import annotations

import logging
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from s3lake.errors import ConfigurationError, RecordError
from s3lake.index.plan.batch import TASK_RECORDS, Intervals, split_into_tasks
from s3lake.land import binding
from s3lake.land.spark import parallelism
from s3lake.land.spark.failures import find_sql_refusal
from s3lake.land.spark.jobs import SparkJobs
from s3lake.land.spark.private_pyspark import find_context
from s3lake.land.sql.statement import Shape, bind, failure, find_failing, read_types, statement
from s3lake.land.sql.table import Excluded, Tabulate
from s3lake.land.task.outcomes import OUTCOME, Outcome, Refused, outcome_of
from s3lake.land.task.pipeline import Work
from s3lake.source.record_batches import Reader
from s3lake.text.masking import is_secret, strip_values

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from s3lake.config.model import Sink

_MOST_FAILING = 100
_MOST_SHAPES = 200
_REFUSED = "Set errors.tolerance: all to land such records as dead letters"
_FORBIDDEN = "Write evolve there to take it in, drop to leave it out, or dead_letter to set its record aside"

Stage = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""Turns records into the rows that a task returns."""


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


RunRequest = Callable[[ReadRequest], list[Outcome]]
"""Runs the tasks of a request, and returns their results."""


class Engine(Protocol):
    """The place where requests are read and run: Spark's tasks over a source, or this process over given records."""

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


def run_request(engine: Engine, request: ReadRequest) -> list[Outcome]:
    """Run a request with an engine: all that its tasks need, the SQL before them included. Return their results."""
    if request.needs_spark:
        return engine.jobs.run(lambda session: SqlJob(request, engine, session).run())
    return engine.run_tasks(request)


@dataclass(frozen=True)
class TaskEngine:
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


@dataclass(frozen=True)
class SqlJob:
    """The Spark jobs of a request whose SQL Spark computes."""

    request: ReadRequest
    engine: Engine
    session: SparkSession

    def run(self) -> list[Outcome]:
        """Return the tasks' results. Records on which SQL fails are left out, and refused by the tasks."""
        request = self.request
        work, reads = request.work, request.reads
        tabulate = binding.tabulate(request.sink, request.topic, work)
        while True:
            try:
                with self._open_projection(tabulate, reads) as (frame, shapes):
                    return self.engine.run_on_rows(self._with_shapes(shapes), frame)
            except Exception as error:
                if failure(error) is None:
                    raise
                records = self._find_failing(tabulate)
                if not records:
                    raise
                tabulate = replace(tabulate, excluded={**tabulate.excluded, **records})

    @contextmanager
    def _open_projection(self, tabulate: Tabulate, reads: Intervals) -> Iterator[tuple[DataFrame, dict[str, Shape]]]:
        """Yield rows as the pipeline's stage takes them, and how Spark takes the SQL for each known shape."""
        spark, view = self.session, f"s3lake_{uuid.uuid4().hex}"
        self.engine.read_rows(spark, tabulate, reads).createOrReplaceTempView(view)
        shapes: Sequence[str] = [""]
        if tabulate.leaves:
            shapes = [shape for shape in self.request.shapes if read_types(tabulate, shape) is not None]
        try:
            bound = {
                shape: bind(tabulate, view, shape, lambda text: spark.sql(text).schema)
                for shape in shapes[:_MOST_SHAPES]
            }
            yield spark.sql(statement(tabulate, view, bound)), bound
        except Exception as error:
            reason = find_sql_refusal(error)
            if reason is None:
                raise
            raise ConfigurationError(f"sink {self.request.sink.name}: sql: Spark refuses it: {reason}") from None
        finally:
            spark.catalog.dropTempView(view)

    def _with_shapes(self, shapes: Mapping[str, Shape]) -> Work:
        """Return the work with Spark's answer for these shapes, and with columns whose types SQL gives."""
        work, sink = self.request.work, self.request.sink
        assert work.projection is not None
        refusals = {name: shape.refusal for name, shape in shapes.items()}
        projection = replace(work.projection, shapes=refusals, is_full=len(shapes) >= _MOST_SHAPES)
        work = replace(work, projection=projection)
        typed = dict.fromkeys(chain.from_iterable(shape.types for shape in shapes.values()))  # in their order
        names = Counter(name for name, _ in typed)
        types = {name: text for name, text in typed if names[name] == 1}
        if not types or not work.conversion.has_columns:
            return work
        landed = sink.after_transforms.model_copy(update={"columns": {**types, **sink.columns}})
        conversion = binding.conversion(landed, self.request.topic, keyed=work.keys.needs("key"))
        return replace(work, conversion=replace(conversion, contract=work.conversion.contract))

    def _find_failing(self, tabulate: Tabulate) -> Excluded:
        """Find the records on which SQL fails. Raises for the first one if the sink tolerates no errors."""
        sink, topic, records = self.request.sink, self.request.topic, dict[tuple[int, int], str]()
        for partition, offset, reason in find_failing(self.request.reads, partial(self._fails, tabulate)):
            if not self.request.work.tolerant:
                raise refusal_error(sink, topic, Refused(partition, offset, "sql", reason))
            records[partition, offset] = reason
            if len(records) > _MOST_FAILING:
                raise RecordError(
                    f"sink {sink.name}: SQL fails on more than {_MOST_FAILING} records of a micro-batch of topic "
                    f"{topic!r}, last on partition {partition}, offset {offset}: {reason}. Use functions that "
                    "give null instead, for example try_cast or try_divide"
                )
        return records

    def _fails(self, tabulate: Tabulate, reads: Intervals) -> str | None:
        try:
            with _quietly(self.session), self._open_projection(tabulate, reads) as (frame, _):
                frame.write.format("noop").mode("overwrite").save()
        except Exception as error:
            reason = failure(error)
            if reason is None:
                raise
            # Spark quotes the value and not the field that it is of.
            named = any(is_secret(".".join(path)) for path in tabulate.leaves)
            return strip_values(reason) if named else reason
        return None


@contextmanager
def _quietly(spark: SparkSession) -> Iterator[None]:
    """Silence Spark's log while failing records are searched: each failure is expected, and is a page long."""
    logger = logging.getLogger("SQLQueryContextLogger")
    level, context = logger.level, find_context(spark)
    logger.setLevel(logging.CRITICAL)
    if context is not None:  # with Spark Connect the server has the log
        context.setLogLevel("OFF")
    try:
        yield
    finally:
        logger.setLevel(level)
        if context is not None:
            context.setLogLevel("ERROR")
