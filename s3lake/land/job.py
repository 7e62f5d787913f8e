"""The Spark job of one micro-batch: read the source, project with SQL where the sink has it, run the pipeline's stage.

Spark plans and runs the tasks, and projects; records are read inside the tasks and never pass its JVM.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from s3lake.commit.files import files_of
from s3lake.commit.recorded import Recorded
from s3lake.commit.recovery import abort
from s3lake.errors import ConfigurationError, RecordError, S3LakeError
from s3lake.land import binding
from s3lake.land.spark import meaning, parallelism
from s3lake.land.sql.search import failing
from s3lake.land.sql.statement import failure, projected, statement, table_types
from s3lake.land.sql.table import Tabulate
from s3lake.land.task.outcomes import OUTCOME, Done, Failed, Outcome, Refused, outcome_of
from s3lake.land.task.pipeline import Work
from s3lake.plan.batch import Intervals
from s3lake.plan.tasks import shared_out
from s3lake.schema.types import from_document
from s3lake.source.records import Reader
from s3lake.text.masking import is_secret, strip_values
from s3lake.transform import sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from s3lake.sink import Sink

_MOST_FAILING = 100
_SAMPLE = 10_000
_REFUSED = "Set errors.tolerance: all to land such records as dead letters"
_FORBIDDEN = "Write evolve there to take it in, drop to leave it out, or dead_letter to set its record aside"

Failing = dict[int, dict[int, str]]
"""Topic-partition -> offset -> why SQL fails on this record."""


Stage = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""What a task makes of records."""


class Engine(Protocol):
    """Where a job reads and runs: Spark's tasks over a source, or, for previews, this process over given records."""

    def outcomes(self, work: Work, reads: Intervals) -> list[Outcome]:
        """What the tasks of `work` have to say of the records of `reads`."""
        ...

    def table(self, tabulate: Tabulate, reads: Intervals) -> DataFrame:
        """The records of `reads` as rows for SQL."""
        ...

    def projected(self, work: Work, frame: DataFrame) -> list[Outcome]:
        """What the tasks of `work` have to say of rows that come from SQL."""
        ...


@dataclass(frozen=True)
class TaskEngine:
    """Spark's tasks, each of which reads its ranges by itself.

    Attributes:
        spark: gives the session; called only when there is something to read.
        reader: the source, as tasks reach it.
        task_records: of a file, or what else is worth a task: below it a range is not split.
    """

    topic: str
    spark: Callable[[], SparkSession]
    reader: Reader
    task_records: int

    def outcomes(self, work: Work, reads: Intervals) -> list[Outcome]:
        # Where groups depend on the record, each task would have a file of its own for every value.
        least = None if work.keys.fixed_group(0) is None else self.task_records
        return _collected(self._read(work, work.record_columns, reads, OUTCOME, least))

    def table(self, tabulate: Tabulate, reads: Intervals) -> DataFrame:
        from pyspark.sql.pandas.types import from_arrow_schema

        return self._read(tabulate, tabulate.carried, reads, from_arrow_schema(tabulate.schema), None)

    def projected(self, work: Work, frame: DataFrame) -> list[Outcome]:
        return _collected(frame.mapInArrow(lambda batches: work(batches), OUTCOME))

    def _read(
        self, stage: Stage, columns: Sequence[str], reads: Intervals, schema: StructType | str, least: int | None
    ) -> DataFrame:
        session = self.spark()
        reader, topic = self.reader, self.topic
        loads = shared_out(reads, 2 * parallelism(session), least)

        def read(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            ranges = [one for batch in numbers for number in batch.column("id").to_pylist() for one in loads[number]]
            yield from stage(reader.batches(topic, ranges, columns))

        return session.range(0, len(loads), 1, len(loads)).mapInArrow(read, schema)


def _collected(frame: DataFrame) -> list[Outcome]:
    return [outcome_of(bytes(row.outcome)) for row in frame.collect()]


@dataclass(frozen=True)
class Job:
    """What a micro-batch's jobs have in common; a micro-batch may need several, to see its columns.

    Attributes:
        sink: as configured.
        spark: gives the session; called only for a sink with SQL.
    """

    sink: Sink
    topic: str
    engine: Engine
    spark: Callable[[], SparkSession]

    def staged(
        self, work: Work, reads: Intervals, known: Recorded | None, record: Callable[[Sequence[Outcome]], Recorded]
    ) -> tuple[list[Done], Work]:
        """Stage the records of `reads`, with columns that fit all of them.

        Args:
            work: what a task does.
            reads: what to read, per topic-partition.
            known: the columns that are recorded; None for a sink's first micro-batch.
            record: unites what tasks saw with what is recorded, and gives the result.

        Returns:
            What the tasks staged, and the work with the columns of its files.

        Raises:
            ConfigurationError: Spark does not accept the sink's SQL.
            RecordError: a record was refused that the sink does not tolerate.
            TransientError: Kafka or Spark did not answer, or Kafka expired what was being read.
            TaskFailedError: a task failed in a way that s3lake does not know.
        """
        try:
            return self._staged(work, reads, known, record)
        except S3LakeError:
            raise
        except Exception as error:
            raise meaning(error, f"landing topic {self.topic!r} into sink {self.sink.name}") from None

    def _staged(
        self, work: Work, reads: Intervals, known: Recorded | None, record: Callable[[Sequence[Outcome]], Recorded]
    ) -> tuple[list[Done], Work]:
        columns = known or Recorded({})
        work = work.held_to(from_document(columns.columns))
        if known is None:  # a first look spares reading everything twice
            heads = {one: (start, min(end, start + _SAMPLE)) for one, (start, end) in reads.items()}
            if self.sink.sql is not None:
                columns = record(self._look(work, heads))
            if work.conversion.has_columns:
                columns = record(self._run(work.looking(), heads, columns))
        while True:
            work = work.with_columns(from_document(columns.columns), columns.exact)
            outcomes = self._run(work, reads, columns)
            done = [one for one in outcomes if isinstance(one, Done)]
            if work.settled(outcomes):
                break
            self._drop(work, done)
            columns = record(outcomes)
        # Readers know all columns, whichever schema a file has; and which columns later commits must not round.
        if any(one.seen or {*one.large} - {*columns.exact} for one in done):
            record(done)
        return done, work

    def _look(self, work: Work, reads: Intervals) -> list[Outcome]:
        """The columns that SQL reads."""
        if not reads:
            return []
        tabulate = replace(self._tabulate(work, Recorded({})), looking=True)
        marks = self.engine.table(tabulate, reads).where("__grown is not null").select("__grown").collect()
        return [outcome_of(bytes(row["__grown"])) for row in marks]

    def _run(self, work: Work, reads: Intervals, known: Recorded) -> list[Outcome]:
        """What the tasks have to say, none of it an error; `known` says what SQL reads, as far as it was seen."""
        if not reads:
            return []
        if self.sink.sql is None:
            return self._sound(work, self.engine.outcomes(work, reads))
        tabulate = self._tabulate(work, known)
        while True:
            try:
                with self._projected(tabulate, reads) as (frame, types):
                    return self._sound(work, self.engine.projected(self._typed(work, types), frame))
            except Exception as error:
                if failure(error) is None:
                    raise
                records = self._failing(work, tabulate, reads)
                if not records:
                    raise
                tabulate = replace(tabulate, excluded=_merged(tabulate.excluded, records))

    def _sound(self, work: Work, outcomes: list[Outcome]) -> list[Outcome]:
        bad = [one for one in outcomes if isinstance(one, Refused | Failed)]
        if not bad:
            return outcomes
        self._drop(work, [one for one in outcomes if isinstance(one, Done)])
        first = min(bad, key=_place)
        if isinstance(first, Failed):
            raise first.exception
        raise self._refused(first)

    def _refused(self, refused: Refused) -> RecordError:
        return RecordError(
            f"sink {self.sink.name}: record refused in topic {self.topic!r}, partition {refused.partition}, offset "
            f"{refused.offset}, stage {refused.stage}: {refused.reason}; nothing of this micro-batch is visible. "
            f"{_FORBIDDEN if refused.forbidden else _REFUSED}",
            topic=self.topic,
            partition=refused.partition,
            offset=refused.offset,
            stage=refused.stage,
            reason=refused.reason,
        )

    def _drop(self, work: Work, done: Sequence[Done]) -> None:
        abort(work.stores(work.bucket), files_of(done))

    def _tabulate(self, work: Work, known: Recorded) -> Tabulate:
        assert self.sink.sql is not None
        query = sql.parse(self.sink.sql.select, self.sink.sql.where)
        return binding.tabulate(self.sink, self.topic, query, known, work)

    @contextmanager
    def _projected(self, tabulate: Tabulate, reads: Intervals) -> Iterator[tuple[DataFrame, dict[str, str]]]:
        """Rows as the pipeline's stage takes them, and the columns whose types JSON does not show."""
        spark, view = self.spark(), f"s3lake_{uuid.uuid4().hex}"
        self.engine.table(tabulate, reads).createOrReplaceTempView(view)
        try:
            row = spark.sql(projected(tabulate, view)).schema["value"].dataType
            yield spark.sql(statement(tabulate, view)), table_types(row)
        except Exception as error:
            if type(error).__name__ in ("AnalysisException", "ParseException"):
                raise ConfigurationError(
                    f"sink {self.sink.name}: sql: Spark refuses it: {_first_line(error)}"
                ) from None
            raise
        finally:
            spark.catalog.dropTempView(view)

    def _typed(self, work: Work, types: Mapping[str, str]) -> Work:
        """The same work with columns whose types SQL has given."""
        if not types or not work.conversion.has_columns:
            return work
        landed = self.sink.after_transforms.model_copy(update={"columns": {**types, **self.sink.columns}})
        conversion = binding.conversion(landed, self.topic, keyed=work.keys.needs("key"))
        return replace(work, conversion=replace(conversion, contract=work.conversion.contract))

    def _failing(self, work: Work, tabulate: Tabulate, reads: Intervals) -> Failing:
        """The records that SQL fails on; an intolerant sink has to know only the first."""
        records: Failing = {}
        for partition, offset, reason in failing(reads, partial(self._fails, tabulate)):
            if not work.tolerant:
                raise self._refused(Refused(partition, offset, "sql", reason))
            records.setdefault(partition, {})[offset] = reason
            if sum(map(len, records.values())) > _MOST_FAILING:
                raise RecordError(
                    f"sink {self.sink.name}: SQL fails on more than {_MOST_FAILING} records of a micro-batch of topic "
                    f"{self.topic!r}, last on partition {partition}, offset {offset}: {reason}. Use functions that "
                    "give null instead, for example try_cast or try_divide"
                )
        return records

    def _fails(self, tabulate: Tabulate, reads: Intervals) -> str | None:
        try:
            with _quietly(self.spark()), self._projected(tabulate, reads) as (frame, _):
                frame.write.format("noop").mode("overwrite").save()
        except Exception as error:
            reason = failure(error)
            if reason is None:
                raise
            # Spark quotes the value and not the field that it is of.
            named = any(is_secret(".".join(path)) for path in tabulate.query.paths)
            return strip_values(reason) if named else reason
        return None


@contextmanager
def _quietly(spark: SparkSession) -> Iterator[None]:
    """While records are searched that SQL fails on, each failure is expected, and Spark prints a page of each."""
    logger = logging.getLogger("SQLQueryContextLogger")
    level, context = logger.level, getattr(spark, "_sc", None)
    logger.setLevel(logging.CRITICAL)
    if context is not None:  # with Spark Connect the server has the log
        context.setLogLevel("OFF")
    try:
        yield
    finally:
        logger.setLevel(level)
        if context is not None:
            context.setLogLevel("ERROR")


def _merged(one: Mapping[int, Mapping[int, str]], other: Failing) -> Failing:
    return {
        partition: {**one.get(partition, {}), **other.get(partition, {})} for partition in one.keys() | other.keys()
    }


def _place(outcome: Refused | Failed) -> tuple[int, int, int]:
    """The record that is named is the same one whenever the micro-batch is tried again."""
    return (0, outcome.partition, outcome.offset) if isinstance(outcome, Refused) else (1, 0, 0)


def _first_line(error: Exception) -> Any:
    return str(error).strip().splitlines()[0]
