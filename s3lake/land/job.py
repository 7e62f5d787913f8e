"""The Spark job of one micro-batch: read the source, project with SQL where the sink has it, run the pipeline's stage.

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
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from s3lake import hours
from s3lake.commit import letters
from s3lake.commit.documents import MOST_FILES, File, Recorded, files_of
from s3lake.commit.protocol import Staged
from s3lake.commit.recovery import abort
from s3lake.errors import ConfigurationError, RecordError, S3LakeError, TooManyFilesError
from s3lake.land import binding
from s3lake.land.sql.statement import Shape, bind, failure, find_failing, read_types, statement, type_name
from s3lake.land.sql.table import Tabulate
from s3lake.land.task import outcomes
from s3lake.land.task.outcomes import OUTCOME, Done, Failed, Outcome, Refused, outcome_of
from s3lake.land.task.pipeline import Work
from s3lake.plan.batch import Intervals, split_into_tasks
from s3lake.schema.types import from_document, to_document
from s3lake.source.records import Reader
from s3lake.spark import parallelism, translate_error
from s3lake.text.masking import is_secret, strip_values

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from s3lake.sink import Sink

_MOST_FAILING = 100
_MOST_SHAPES = 200
_SAMPLE = 10_000
_REFUSED = "Set errors.tolerance: all to land such records as dead letters"
_FORBIDDEN = "Write evolve there to take it in, drop to leave it out, or dead_letter to set its record aside"

Failing = dict[int, dict[int, str]]
"""Topic-partition -> offset -> why SQL fails on this record."""


Stage = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""Turns records into the rows that a task returns."""

Record = Callable[[Sequence[Outcome]], Recorded]
"""Unites the columns that tasks saw with the recorded ones, and returns the result."""


class Engine(Protocol):
    """The place where a job reads and runs: Spark's tasks over a source, or this process over given records."""

    def outcomes(self, work: Work, reads: Intervals) -> list[Outcome]:
        """Run the tasks of `work` over the records of `reads`. Return their results."""
        ...

    def table(self, tabulate: Tabulate, reads: Intervals) -> DataFrame:
        """Read the records of `reads` as rows for SQL."""
        ...

    def projected(self, work: Work, frame: DataFrame) -> list[Outcome]:
        """Run the tasks of `work` over rows that come from SQL. Return their results."""
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
        return _collect(self._read(work, work.record_columns, reads, OUTCOME, least))

    def table(self, tabulate: Tabulate, reads: Intervals) -> DataFrame:
        from pyspark.sql.pandas.types import from_arrow_schema

        return self._read(tabulate, tabulate.carried, reads, from_arrow_schema(tabulate.schema), None)

    def projected(self, work: Work, frame: DataFrame) -> list[Outcome]:
        return _collect(frame.mapInArrow(lambda batches: work(batches), OUTCOME))

    def _read(
        self, stage: Stage, columns: Sequence[str], reads: Intervals, schema: StructType | str, least: int | None
    ) -> DataFrame:
        session = self.spark()
        reader, topic = self.reader, self.topic
        loads = split_into_tasks(reads, 2 * parallelism(session), least)

        def read(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            ranges = [one for batch in numbers for number in batch.column("id").to_pylist() for one in loads[number]]
            yield from stage(reader.batches(topic, ranges, columns))

        return session.range(0, len(loads), 1, len(loads)).mapInArrow(read, schema)


def _collect(frame: DataFrame) -> list[Outcome]:
    return [outcome_of(bytes(row.outcome)) for row in frame.collect()]


@dataclass(frozen=True)
class Job:
    """The Spark jobs of one micro-batch, which may need several to see its columns.

    Attributes:
        sink: as configured.
        spark: gives the session; called only for a sink with SQL.
    """

    sink: Sink
    topic: str
    engine: Engine
    spark: Callable[[], SparkSession]

    def stage(
        self,
        work: Work,
        reads: Intervals,
        known: Recorded | None,
        record: Record,
        check: Callable[[Sequence[Done]], None] = lambda _: None,
    ) -> Staged:
        """Stage the records of `reads` as one commit, with columns that fit all of them.

        Args:
            work: what a task does.
            reads: what to read, per topic-partition.
            known: the columns that are recorded; None for a sink's first micro-batch.
            record: unites what tasks saw with what is recorded, and returns the result.
            check: raises if what the tasks staged may not be committed.

        Raises:
            ConfigurationError: Spark does not accept the sink's SQL.
            RecordError: a record was refused that the sink does not tolerate.
            TooManyFilesError: one commit cannot list the files.
            TransientError: Kafka or Spark did not answer, or Kafka expired what was being read.
            TaskFailedError: a task failed in a way that s3lake does not know.
        """
        try:
            done, work = self._run_until_settled(work, reads, known, record)
        except S3LakeError:
            raise
        except Exception as error:
            raise translate_error(error, f"landing topic {self.topic!r} into sink {self.sink.name}") from None
        try:
            check(done)
        except S3LakeError:
            self._drop(work, files_of(done))
            raise
        return self._combine(work, done)

    def _run_until_settled(
        self, work: Work, reads: Intervals, known: Recorded | None, record: Record
    ) -> tuple[list[Done], Work]:
        """Return what the tasks staged, and the work with the columns of its files."""
        columns = known or Recorded({})
        work = work.held_to(from_document(columns.columns))
        if known is None:  # a first look spares reading everything twice
            heads = {one: (start, min(end, start + _SAMPLE)) for one, (start, end) in reads.items()}
            for needed in (_is_computed(work), work.conversion.has_columns):
                if needed:
                    columns = record(self._run(replace(work, look_only=True), heads, columns))
        while True:
            work = work.with_columns(from_document(columns.columns), columns.exact)
            outcomes = self._run(work, reads, columns)
            done = [one for one in outcomes if isinstance(one, Done)]
            if work.settled(outcomes):
                break
            self._drop(work, files_of(done))
            columns = record(outcomes)
        # Readers know all columns, whichever schema a file has; and which columns later commits must not round.
        if any(one.seen or {*one.large} - {*columns.exact} for one in done):
            record(done)
        return done, work

    def _run(self, work: Work, reads: Intervals, known: Recorded) -> list[Outcome]:
        """Run the tasks. Return their results if none is an error; `known` has the shapes of records seen so far."""
        if not reads:
            return []
        if not _is_computed(work):
            return self._require_sound(work, self.engine.outcomes(work, reads))
        tabulate = binding.tabulate(self.sink, self.topic, work)
        while True:
            try:
                with self._open_projection(tabulate, reads, known.shapes) as (frame, shapes):
                    return self._require_sound(work, self.engine.projected(self._with_shapes(work, shapes), frame))
            except Exception as error:
                if failure(error) is None:
                    raise
                records = self._failing(work, tabulate, reads, known.shapes)
                if not records:
                    raise
                tabulate = replace(tabulate, excluded=_merge_failing(tabulate.excluded, records))

    def _require_sound(self, work: Work, outcomes: list[Outcome]) -> list[Outcome]:
        bad = [one for one in outcomes if isinstance(one, Refused | Failed)]
        if not bad:
            return outcomes
        self._drop(work, files_of(one for one in outcomes if isinstance(one, Done)))
        first = min(bad, key=_place)
        if isinstance(first, Failed):
            raise first.exception
        raise self._to_error(first)

    def _to_error(self, refused: Refused) -> RecordError:
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

    def _drop(self, work: Work, files: Sequence[File]) -> None:
        if files:
            abort(work.stores(work.bucket), files)

    def _combine(self, work: Work, done: Sequence[Done]) -> Staged:
        landed, files = self.sink.after_transforms, files_of(done)
        if work.keys.replaces:  # of several files with one key the last one stays
            last = {file.key: file for file in files}
            self._drop(work, [file for file in files if last[file.key] is not file])
            files = list(last.values())
        if len(files) > MOST_FILES:
            self._drop(work, files)
            hour = hours.key_of_ms(work.hour_start_ms)
            raise TooManyFilesError(
                f"a micro-batch of {self.topic} {hour} has {len(files):,} files, one commit may have {MOST_FILES:,}: "
                "raise flush.count or flush.size, or let the layout name fewer places"
            )
        reads, columns = outcomes.merge_reads(one.reads for one in done), work.file_columns
        if columns is not None:
            columns = outcomes.with_seen(columns, done, work.conversion.integral)
        clocks = tuple((partition, read.end, work.wallclock_ms) for partition, read in sorted(reads.items()))
        return Staged(
            files=tuple(sorted(files, key=attrgetter("key"))),
            reads=reads,
            clocks=clocks if work.chain else (),
            form=binding.form_of(landed),
            nulls=landed.nulls,
            columns=None if columns is None else to_document(columns),
            replacing=work.keys.replaces,
            letters=letters.merge_reasons(one.letters for one in done),
            dropped=sum((Counter(one.dropped) for one in done), Counter()),
            filled=sum((Counter(one.filled) for one in done), Counter()),
        )

    @contextmanager
    def _open_projection(
        self, tabulate: Tabulate, reads: Intervals, known: Sequence[str]
    ) -> Iterator[tuple[DataFrame, dict[str, Shape]]]:
        """Yield rows as the pipeline's stage takes them, and how Spark takes the SQL for each known shape."""
        spark, view = self.spark(), f"s3lake_{uuid.uuid4().hex}"
        self.engine.table(tabulate, reads).createOrReplaceTempView(view)
        shapes = [shape for shape in known if read_types(tabulate, shape) is not None] if tabulate.leaves else [""]
        try:
            bound = {
                shape: bind(tabulate, view, shape, lambda text: spark.sql(text).schema)
                for shape in shapes[:_MOST_SHAPES]
            }
            yield spark.sql(statement(tabulate, view, bound)), bound
        except Exception as error:
            if type_name(error) in ("AnalysisException", "ParseException"):
                raise ConfigurationError(
                    f"sink {self.sink.name}: sql: Spark refuses it: {_first_line(error)}"
                ) from None
            raise
        finally:
            spark.catalog.dropTempView(view)

    def _with_shapes(self, work: Work, shapes: Mapping[str, Shape]) -> Work:
        """Return the work with what Spark says of these shapes, and with columns whose types SQL gives."""
        assert work.projection is not None
        refusals = {name: shape.refusal for name, shape in shapes.items()}
        projection = replace(work.projection, shapes=refusals, is_full=len(shapes) >= _MOST_SHAPES)
        work = replace(work, projection=projection)
        given = dict.fromkeys(chain.from_iterable(shape.types for shape in shapes.values()))  # in their order
        names = Counter(name for name, _ in given)
        types = {name: text for name, text in given if names[name] == 1}
        if not types or not work.conversion.has_columns:
            return work
        landed = self.sink.after_transforms.model_copy(update={"columns": {**types, **self.sink.columns}})
        conversion = binding.conversion(landed, self.topic, keyed=work.keys.needs("key"))
        return replace(work, conversion=replace(conversion, contract=work.conversion.contract))

    def _failing(self, work: Work, tabulate: Tabulate, reads: Intervals, known: Sequence[str]) -> Failing:
        """Find the records on which SQL fails. Raises for the first one if the sink tolerates no errors."""
        records: Failing = {}
        for partition, offset, reason in find_failing(reads, partial(self._fails, tabulate, known)):
            if not work.tolerant:
                raise self._to_error(Refused(partition, offset, "sql", reason))
            records.setdefault(partition, {})[offset] = reason
            if sum(map(len, records.values())) > _MOST_FAILING:
                raise RecordError(
                    f"sink {self.sink.name}: SQL fails on more than {_MOST_FAILING} records of a micro-batch of topic "
                    f"{self.topic!r}, last on partition {partition}, offset {offset}: {reason}. Use functions that "
                    "give null instead, for example try_cast or try_divide"
                )
        return records

    def _fails(self, tabulate: Tabulate, known: Sequence[str], reads: Intervals) -> str | None:
        try:
            with _quietly(self.spark()), self._open_projection(tabulate, reads, known) as (frame, _):
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


def _merge_failing(one: Mapping[int, Mapping[int, str]], other: Failing) -> Failing:
    return {
        partition: {**one.get(partition, {}), **other.get(partition, {})} for partition in one.keys() | other.keys()
    }


def _is_computed(work: Work) -> bool:
    return work.projection is not None and work.projection.needs_spark


def _place(outcome: Refused | Failed) -> tuple[int, int, int]:
    """The record that is named is the same one whenever the micro-batch is tried again."""
    return (0, outcome.partition, outcome.offset) if isinstance(outcome, Refused) else (1, 0, 0)


def _first_line(error: Exception) -> Any:
    return str(error).strip().splitlines()[0]
