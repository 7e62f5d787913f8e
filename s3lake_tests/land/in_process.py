"""Spark's tasks without Spark: what a session is asked for where there is no SQL, and a source of records at hand."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from s3lake.land.given import batch, within
from s3lake.land.landing import Landing
from s3lake.source.records import OffsetRange
from s3lake_tests.land.at_hand import World

Stage = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


TYPES = {"int": pa.int32(), "binary": pa.binary()}


@dataclass
class Frame:
    """Numbers, one for each task, and what is made of them."""

    session: "Session"
    numbers: range
    stage: Stage = iter
    schema: str = ""

    def mapInArrow(self, stage: Stage, schema: str) -> "Frame":
        return Frame(self.session, self.numbers, stage, schema)

    def collect(self) -> list[Any]:
        """Runs the tasks, one after the other."""
        self.session.jobs.append(len(self.numbers))
        if self.session.failures:
            raise self.session.failures.pop(0)
        ids = ([pa.record_batch([pa.array([number])], names=["id"])] for number in self.numbers)
        return [SimpleNamespace(**row) for one in ids for made in self.stage(iter(one)) for row in self._rows(made)]

    def _rows(self, made: pa.RecordBatch) -> list[Any]:
        """Spark takes nothing but what was announced."""
        if self.schema:
            columns = [column.split(" ") for column in self.schema.split(", ")]
            assert made.schema == pa.schema([(name, TYPES[type]) for name, type in columns])
        rows: list[Any] = made.to_pylist()
        return rows


@dataclass
class Session:
    """A session of two cores.

    Attributes:
        jobs: how many tasks each job had.
        failures: of the jobs to come.
    """

    jobs: list[int] = field(default_factory=list)
    failures: list[Exception] = field(default_factory=list)
    _sc: Any = field(default_factory=lambda: SimpleNamespace(defaultParallelism=2))

    def range(self, start: int, end: int | None = None, step: int = 1, tasks: int = 1) -> Frame:
        numbers = range(start) if end is None else range(start, end, step)
        assert len(numbers) == tasks
        return Frame(self, numbers)


@dataclass(frozen=True)
class Given:
    """Reads a world's records.

    Attributes:
        tasks: of each task the topic and the ranges that it read.
    """

    world: World
    tasks: list[tuple[Any, ...]] = field(default_factory=list)

    def batches(self, topic: str, ranges: Sequence[OffsetRange], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        self.tasks.append((topic, *ranges))
        for one in ranges:
            rows = [record for record in self.world.records if within(record, {one.partition: (one.start, one.end)})]
            if rows:
                yield batch(rows).select(list(columns))


def landing(world: World, session: Session) -> tuple[Landing, Given]:
    """What lands a world by tasks, and what these read."""
    made, given = world.landing(), Given(world)
    made.spark, made.reader, made.engine = lambda: session, given, lambda own: own  # type: ignore[assignment,return-value]
    return made, given
