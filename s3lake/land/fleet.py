"""Many topics landed at once: one session, and one Spark job for the small ranges of all.

Each topic is landed by its own `Landing` in a thread of its own, with its own plan, commits and errors. Only the Spark
jobs are shared: one thread waits until all landings have something to read, or have ended, and runs what they wait for.
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
from s3lake.land.task.outcomes import Failed, Outcome, outcome_of
from s3lake.land.task.pipeline import Work, run
from s3lake.plan.batch import Intervals
from s3lake.source.records import OffsetRange, Reader
from s3lake.spark import parallelism, translate_error

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
_TOPIC = 2_000  # what a topic costs a task in addition to its records, in records
_ROWS = "number int, outcome binary"

A = TypeVar("A")


class Fleet(Generic[A]):
    """Topics that are being landed, each with its outcome to come: in a thread of its own, `MOST` at once.

    Args:
        works: each lands one topic with the run that it gets, which has the shared jobs.
        session: gives the Spark session; called when there is something to read.
    """

    def __init__(self, works: Sequence[Callable[[Run], A]], session: Callable[[], SparkSession]) -> None:
        self.outcomes: list[Future[A]] = [Future() for _ in works]
        self._jobs = jobs = _Jobs(session, len(works))
        self._run = Run(session=jobs.session, engine=jobs.engine, committing=threading.BoundedSemaphore(AT_WORK))
        self._waiting = iter(zip(works, self.outcomes, strict=True))
        self._taking = threading.Lock()
        # Daemons: a run that is cancelled does not wait for a Spark job of minutes.
        threading.Thread(target=jobs.run_all, name="s3lake-fleet-jobs", daemon=True).start()
        self._threads = [
            threading.Thread(target=self._land, name=f"s3lake-fleet-{number}", daemon=True)
            for number in range(min(MOST, len(works)))
        ]
        for thread in self._threads:
            thread.start()

    def cancel(self, within_s: float) -> None:
        """Begin nothing new; what is being committed has `within_s` seconds to arrive."""
        self._jobs.cancelled = True
        deadline = time.monotonic() + within_s
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _land(self) -> None:
        while not self._jobs.cancelled:
            with self._taking:
                work, outcome = next(self._waiting, (None, None))
            if work is None or outcome is None:
                return
            with self._jobs.count_landing():
                try:
                    outcome.set_result(work(self._run))
                except BaseException as error:
                    outcome.set_exception(error)


@dataclass
class _Request:
    """A part of the shared job, or a job of its own, which one landing waits for.

    Attributes:
        job: runs a job for this request alone.
        reads: offset ranges, if it can be a part of the shared job; else empty.
    """

    engine: TaskEngine
    work: Work
    job: Callable[[], list[Outcome]]
    reads: Intervals = field(default_factory=dict)
    outcomes: Future[list[Outcome]] = field(default_factory=Future)

    @property
    def size(self) -> int:
        """Offsets to read, and what the topic costs besides."""
        return _TOPIC + sum(end - start for start, end in self.reads.values())

    def run_alone(self) -> None:
        try:
            self.outcomes.set_result(self.job())
        except BaseException as error:
            self.outcomes.set_exception(error)


class _Jobs:
    """The Spark jobs of all landings, and where these wait for one another."""

    def __init__(self, spark: Callable[[], SparkSession], landings: int) -> None:
        self.cancelled = False
        self._make = spark
        self._made: SparkSession | None = None
        self._making = threading.Lock()
        self._turns = threading.BoundedSemaphore(AT_WORK)
        self._changed = threading.Condition()
        self._unended = landings
        self._requests: list[_Request] = []
        self._came_s = 0.0

    @contextmanager
    def count_landing(self) -> Iterator[None]:
        """Count a landing, from its begin to its end."""
        self._turns.acquire()
        try:
            yield
        finally:
            self._turns.release()
            with self._changed:
                self._unended -= 1
                self._changed.notify_all()

    def engine(self, own: TaskEngine) -> Engine:
        """Return the engine of one micro-batch, whose jobs are run here."""
        return _SharedEngine(own.topic, own.spark, own.reader, own.task_records, self)

    def wait_for(self, request: _Request) -> list[Outcome]:
        """Return what the tasks of a request report, once its job was run."""
        with self._changed:
            if self.cancelled:
                raise TransientError("the run was cancelled")
            self._requests.append(request)
            self._came_s = time.monotonic()
            self._changed.notify_all()
        self._turns.release()  # while Spark works the thread needs no turn
        try:
            return request.outcomes.result()
        finally:
            self._turns.acquire()

    def run_all(self) -> None:
        """Run what landings wait for, until the last one has ended, or the run is cancelled."""
        while requests := self._take_requests():
            small = [request for request in requests if request.reads]
            if small:
                self._run_shared(small)
            for request in requests:
                if not request.reads:
                    request.run_alone()

    def _take_requests(self) -> list[_Request]:
        with self._changed:
            while self._unended and not self.cancelled and not (self._requests and self._are_all_here()):
                self._changed.wait(PATIENCE_S)
            requests, self._requests = self._requests, []
            return requests

    def _are_all_here(self) -> bool:
        return len(self._requests) >= min(self._unended, MOST) or time.monotonic() - self._came_s >= PATIENCE_S

    def _run_shared(self, requests: Sequence[_Request]) -> None:
        try:
            found = self._run_job(requests)
        except Exception as error:
            failure = translate_error(error, f"landing {len(requests)} topics in one job")
            each_alone = len(requests) > 1 and self._is_session_alive()
            for request in requests:
                if each_alone:
                    request.run_alone()
                else:
                    request.outcomes.set_exception(failure)
        else:
            for request, outcomes in zip(requests, found, strict=True):
                request.outcomes.set_result(outcomes)

    def _run_job(self, requests: Sequence[_Request]) -> list[list[Outcome]]:
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
        """Return the session, made once: Spark itself knows for each thread apart which one is active."""
        with self._making:
            if self._made is None:
                self._made = self._make()
            return self._made

    def _is_session_alive(self) -> bool:
        try:
            self.session().range(1).collect()
        except Exception:
            return False
        return True


@dataclass(frozen=True)
class _SharedEngine(TaskEngine):
    """The engine of one landing among others, whose jobs it shares."""

    jobs: _Jobs

    def outcomes(self, work: Work, reads: Intervals) -> list[Outcome]:
        is_small = sum(end - start for start, end in reads.values()) < SMALL
        job = partial(super().outcomes, work, reads)
        return self.jobs.wait_for(_Request(self, work, job, reads if is_small else {}))

    def projected(self, work: Work, frame: DataFrame) -> list[Outcome]:
        return self.jobs.wait_for(_Request(self, work, partial(super().projected, work, frame)))


@dataclass(frozen=True)
class _Load:
    """The work of a task for one topic, as plain values."""

    number: int
    work: Work
    reader: Reader
    topic: str
    ranges: tuple[OffsetRange, ...]

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
        ranges = tuple(OffsetRange(partition, start, end) for partition, (start, end) in sorted(request.reads.items()))
        loads[least].append(_Load(number, request.work, request.engine.reader, request.engine.topic, ranges))
        sizes[least] += request.size
    return loads
