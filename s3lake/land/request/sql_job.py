"""The Spark jobs of a request whose SQL Spark computes: SQL over the records, then the tasks over what it makes.

A record on which SQL fails is searched for, and left out.
"""

from __future__ import annotations

import logging
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from s3lake.errors import ConfigurationError, RecordError
from s3lake.index.plan.batch import Intervals
from s3lake.land.request import stage_values
from s3lake.land.request.read_request import ReadRequest, TaskRunner, refusal_error
from s3lake.land.spark.failures import find_sql_refusal
from s3lake.land.spark.private_pyspark import find_context
from s3lake.land.sql.sql_table import Excluded, Tabulate
from s3lake.land.sql.statement import Shape, bind, failure, find_failing, read_types, statement
from s3lake.land.task.outcomes import Outcome, Refused
from s3lake.land.task.pipeline import Work
from s3lake.text.masking import is_secret, strip_values

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MOST_FAILING = 100
_MOST_SHAPES = 200


@dataclass(frozen=True)
class SqlJob:
    """The Spark jobs of a request whose SQL Spark computes."""

    request: ReadRequest
    runner: TaskRunner
    session: SparkSession

    def run(self) -> list[Outcome]:
        """Return the tasks' results. Records on which SQL fails are left out, and refused by the tasks."""
        request = self.request
        work, reads = request.work, request.reads
        tabulate = stage_values.build_tabulate(request.sink, request.topic, work)
        while True:
            try:
                with self._open_projection(tabulate, reads) as (frame, shapes):
                    return self.runner.run_on_rows(self._with_shapes(shapes), frame)
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
        self.runner.read_rows(spark, tabulate, reads).createOrReplaceTempView(view)
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
        conversion = stage_values.build_conversion(landed, self.request.topic, keyed=work.keys.needs("key"))
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
            reason = describe_failure(error, tabulate)
            if reason is None:
                raise
            return reason
        return None


def describe_failure(error: Exception, tabulate: Tabulate) -> str | None:
    """Return why SQL failed on a record; None if the record is not the reason.

    Spark quotes the value and not the field that it is of, so a query that names a secret shows no value.
    """
    reason = failure(error)
    names_secret = any(is_secret(".".join(path)) for path in tabulate.leaves)
    return strip_values(reason) if reason is not None and names_secret else reason


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
