"""Many topics landed at once: one session, and one Spark job for the small ranges of all.

Each topic is landed by its own `Landing` in a thread of its own, with its own plan, commits and errors. Only the Spark
job is shared: landings that have little to read meet here, and the first one to come starts the job for all of them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec
import pyarrow as pa

from s3lake.errors import TaskFailedError, TransientError
from s3lake.land.job import Engine, TaskEngine
from s3lake.land.observer import Run
from s3lake.land.sql.table import Tabulate
from s3lake.land.task.outcomes import Failed, Outcome, outcome_of
from s3lake.land.task.pipeline import Work, run
from s3lake.plan.batch import Intervals
from s3lake.source.records import Range, Reader
from s3lake.spark import meaning, parallelism

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MOST = 256
"""Topics that are landed at once; the next one begins when one of them is done."""
AT_WORK = 12
"""Threads that ask Kafka and S3 at once: more only take turns in one Python process."""
SMALL = 100_000
"""Offsets below which a micro-batch is part of the shared job; a larger one gets a job, and all cores, of its own."""
PATIENCE_S = 2.0
"""How long those who wait for a job wait for others that are slow: who settles what a dead writer left, say."""
_TOPIC = 2_000  # what a topic costs a task beside its records, in records
_ROWS = "number int, outcome binary"

A = TypeVar("A")


class Fleet(Generic[A]):
    """Topics that are being landed, each with its outcome to come: in a thread of its own, `MOST` at once.

    Args:
        works: each lands one topic with the run that it gets, which has the shared job.
        session: gives the Spark session; called when there is something to read.
    """

    def __init__(self, works: Sequence[Callable[[Run], A]], session: Callable[[], SparkSession]) -> None:
        self.outcomes: list[Future[A]] = [Future() for _ in works]
        self._shared_job = job = _SharedJob(session, len(works))
        self._run = Run(session=job.session, engine=job.engine, committing=threading.BoundedSemaphore(AT_WORK))
        self._waiting = iter(zip(works, self.outcomes, strict=True))
        self._taking = threading.Lock()
        # Daemons: a run that is cancelled does not wait for a Spark job of minutes.
        self._threads = [
            threading.Thread(target=self._land, name=f"s3lake-fleet-{number}", daemon=True)
            for number in range(min(MOST, len(works)))
        ]
        for thread in self._threads:
            thread.start()

    def cancel(self, within_s: float) -> None:
        """Begin nothing new; what is being committed has `within_s` seconds to arrive."""
        self._shared_job.cancelled = True
        deadline = time.monotonic() + within_s
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _land(self) -> None:
        while not self._shared_job.cancelled:
            with self._taking:
                work, outcome = next(self._waiting, (None, None))
            if work is None or outcome is None:
                return
            with self._shared_job.attended():
                try:
                    outcome.set_result(work(self._run))
                except BaseException as error:
                    outcome.set_exception(error)


@dataclass
class _Request:
    """What one landing wants to be read; `alone` where the shared job failed, so that each needs its own."""

    engine: TaskEngine
    work: Work
    reads: Intervals
    granted: Future[list[Outcome] | None] = field(default_factory=Future)

    @property
    def size(self) -> int:
        return _TOPIC + sum(end - start for start, end in self.reads.values())


class _SharedJob:
    """The Spark job that landings share: where they wait for one another."""

    def __init__(self, spark: Callable[[], SparkSession], landings: int) -> None:
        self.cancelled = False
        self._make = spark
        self._made: SparkSession | None = None
        self._making = threading.Lock()
        self._turns = threading.BoundedSemaphore(AT_WORK)
        self._alone = threading.Lock()
        self._changed = threading.Condition()
        self._unended = landings
        self._away = 0
        self._requests: list[_Request] = []
        self._came_s = 0.0
        self._running = False

    @contextmanager
    def attended(self) -> Iterator[None]:
        """A landing, from its begin to its end."""
        self._turns.acquire()
        try:
            yield
        finally:
            self._turns.release()
            with self._changed:
                self._unended -= 1
                self._changed.notify_all()

    def engine(self, own: TaskEngine) -> Engine:
        """The engine of one micro-batch: its own, or everybody's."""
        return _Shared(own, self)

    def outcomes(self, engine: TaskEngine, work: Work, reads: Intervals) -> list[Outcome]:
        """What the tasks have to say of `reads`, as part of the next job."""
        request = _Request(engine, work, reads)
        with self._gone():
            if self._is_first(request):
                self._grant(self._gathered())
            outcomes = request.granted.result()
        return self.alone(partial(engine.outcomes, work, reads)) if outcomes is None else outcomes

    def alone(self, job: Callable[[], list[Outcome]]) -> list[Outcome]:
        """What the tasks of a job of its own have to say; one at a time, so each has all cores."""
        with self._gone(), self._absent(), self._alone:
            return job()

    @contextmanager
    def _gone(self) -> Iterator[None]:
        """While Spark works the thread needs no turn."""
        if self.cancelled:
            raise TransientError("the run was cancelled")
        self._turns.release()
        try:
            yield
        finally:
            self._turns.acquire()

    @contextmanager
    def _absent(self) -> Iterator[None]:
        """Nobody waits for a landing that has a job of its own."""
        with self._changed:
            self._away += 1
            self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._away -= 1

    def _is_first(self, request: _Request) -> bool:
        """Whether `request` is the first of its job: its thread alone waits for the others, and starts it."""
        with self._changed:
            self._requests.append(request)
            self._came_s = time.monotonic()
            self._changed.notify_all()
            return len(self._requests) == 1

    def _gathered(self) -> list[_Request]:
        """All requests, once all are here and no job runs."""
        with self._changed:
            while self._running or not self._are_all_here():
                self._changed.wait(PATIENCE_S)
            gathered, self._requests, self._running = self._requests, [], True
            return gathered

    def _are_all_here(self) -> bool:
        expected = min(self._unended, MOST) - self._away
        return len(self._requests) >= expected or time.monotonic() - self._came_s >= PATIENCE_S

    def _grant(self, requests: list[_Request]) -> None:
        try:
            for request, outcomes in zip(requests, self._run(requests), strict=True):
                request.granted.set_result(outcomes)
        except Exception as error:
            failure = meaning(error, f"landing {len(requests)} topics in one job")
            each_alone = len(requests) > 1 and self._lives()
            for request in requests:
                if each_alone:
                    request.granted.set_result(None)
                else:
                    request.granted.set_exception(failure)
        finally:
            with self._changed:
                self._running = False
                self._changed.notify_all()

    def _run(self, requests: Sequence[_Request]) -> list[list[Outcome]]:
        session = self.session()
        loads = _shared_out(requests, 2 * parallelism(session))

        def read(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in numbers:
                for number in batch.column("id").to_pylist():
                    for load in loads[number]:
                        yield from load()

        outcomes: list[list[Outcome]] = [[] for _ in requests]
        for row in session.range(0, len(loads), 1, len(loads)).mapInArrow(read, _ROWS).collect():
            outcomes[row.number].append(outcome_of(bytes(row.outcome)))
        return outcomes

    def session(self) -> SparkSession:
        """Made once: Spark itself knows for each thread apart which one is active."""
        with self._making:
            if self._made is None:
                self._made = self._make()
            return self._made

    def _lives(self) -> bool:
        try:
            self.session().range(1).collect()
        except Exception:
            return False
        return True


@dataclass(frozen=True)
class _Shared:
    """The engine of one landing among others."""

    own: TaskEngine
    shared_job: _SharedJob

    def outcomes(self, work: Work, reads: Intervals) -> list[Outcome]:
        """See `Engine.outcomes`."""
        if sum(end - start for start, end in reads.values()) < SMALL:
            return self.shared_job.outcomes(self.own, work, reads)
        return self.shared_job.alone(partial(self.own.outcomes, work, reads))

    def table(self, tabulate: Tabulate, reads: Intervals) -> DataFrame:
        """See `Engine.table`."""
        return self.own.table(tabulate, reads)

    def projected(self, work: Work, frame: DataFrame) -> list[Outcome]:
        """See `Engine.projected`."""
        return self.shared_job.alone(partial(self.own.projected, work, frame))


@dataclass(frozen=True)
class _Load:
    """What a task does for one topic, as plain values."""

    number: int
    work: Work
    reader: Reader
    topic: str
    ranges: tuple[Range, ...]

    def __call__(self) -> Iterator[pa.RecordBatch]:
        for outcome in self._outcomes():
            arrays: list[Any] = [pa.array([self.number], pa.int32()), pa.array([msgspec.json.encode(outcome)])]
            yield pa.record_batch(arrays, names=["number", "outcome"])

    def _outcomes(self) -> Iterator[Outcome]:
        try:
            yield from run(self.work, self._records())
        except Exception as error:  # the other topics of this task have nothing to do with it
            yield Failed(TaskFailedError.__name__, f"landing topic {self.topic!r}: {type(error).__name__}: {error}")

    def _records(self) -> Iterator[pa.RecordBatch]:
        """A reader that fails before it gives any fails where `run` sees it."""
        yield from self.reader.batches(self.topic, self.ranges, self.work.record_columns)


def _shared_out(requests: Sequence[_Request], tasks: int) -> list[list[_Load]]:
    """The requests as the work of at most `tasks` tasks of like size, a topic whole."""
    loads: list[list[_Load]] = [[] for _ in range(min(len(requests), tasks))]
    sizes = [0] * len(loads)
    for number, request in sorted(enumerate(requests), key=lambda pair: pair[1].size, reverse=True):
        least = sizes.index(min(sizes))
        ranges = tuple(Range(partition, start, end) for partition, (start, end) in sorted(request.reads.items()))
        loads[least].append(_Load(number, request.work, request.engine.reader, request.engine.topic, ranges))
        sizes[least] += request.size
    return loads
