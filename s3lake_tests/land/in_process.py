"""Spark's tasks without Spark: a session whose jobs run in this process, one task after the other."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from s3lake.land.task.outcomes import Outcome, encode_outcome

Stage = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


TYPES = {"int": pa.int32(), "binary": pa.binary()}


@dataclass
class Frame:
    """Numbers, one for each task, and what is made of them."""

    session: "TwoCoreSession"
    numbers: range
    stage: Stage = iter
    schema: str = ""

    def mapInArrow(self, stage: Stage, schema: str) -> "Frame":
        return Frame(self.session, self.numbers, stage, schema)

    def collect(self) -> list[Any]:
        """Runs the tasks, one after the other."""
        self.session.begin_job(len(self.numbers))
        ids = ([pa.record_batch([pa.array([number])], names=["id"])] for number in self.numbers)
        rows = [SimpleNamespace(**row) for one in ids for made in self.stage(iter(one)) for row in self._rows(made)]
        self.session.before_results()
        return rows

    def _rows(self, made: pa.RecordBatch) -> list[Any]:
        """Spark takes nothing but what was announced."""
        if self.schema:
            columns = [column.split(" ") for column in self.schema.split(", ")]
            assert made.schema == pa.schema([(name, TYPES[type]) for name, type in columns])
        rows: list[Any] = made.to_pylist()
        return rows


@dataclass
class Rdd:
    """Numbers, one for each task, and what each task yields."""

    session: "TwoCoreSession"
    numbers: range
    work: Callable[[int], Iterable[Any]] = lambda number: [number]

    def flatMap(self, work: Callable[[int], Iterable[Any]]) -> "Rdd":
        return Rdd(self.session, self.numbers, work)

    def collect(self) -> list[Any]:
        """Runs the tasks, one after the other."""
        self.session.begin_job(len(self.numbers))
        if self.session.outcomes:
            return [encode_outcome(outcome) for outcome in self.session.outcomes]
        results = [result for number in self.numbers for result in self.work(number)]
        self.session.before_results()
        return results


@dataclass
class TwoCoreSession:
    """A session of two cores.

    Attributes:
        jobs: how many tasks each job had.
        failures: of the jobs to come.
        outcomes: results of every job, whose tasks are not run then.
        interrupted: tags whose jobs were cancelled.
        before_results: called when the tasks of a job have run, and its results have not arrived.
    """

    jobs: list[int] = field(default_factory=list)
    failures: list[Exception] = field(default_factory=list)
    outcomes: Sequence[Outcome] = ()
    interrupted: set[str] = field(default_factory=set)
    before_results: Callable[[], None] = lambda: None

    defaultParallelism = 2

    @property
    def _sc(self) -> "TwoCoreSession":
        return self

    def begin_job(self, tasks: int) -> None:
        self.jobs.append(tasks)
        if self.failures:
            raise self.failures.pop(0)

    def addJobTag(self, tag: str) -> None:
        """Take the tag of the jobs to come."""

    def cancelJobsWithTag(self, tag: str) -> None:
        self.interrupted.add(tag)

    def parallelize(self, numbers: range, tasks: int) -> "Rdd":
        assert len(numbers) == tasks
        return Rdd(self, numbers)

    def range(self, start: int, end: int | None = None, step: int = 1, tasks: int = 1) -> Frame:
        numbers = range(start) if end is None else range(start, end, step)
        assert len(numbers) == tasks
        return Frame(self, numbers)
