"""The Spark jobs of landings that run at the same time: one for the small requests of all, one for each large request.

A job costs Spark more than a task of a few records. So a landing waits with its request until all others wait too.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from s3lake.errors import TaskFailedError
from s3lake.land.hour.landing import AT_WORK
from s3lake.land.request.read_request import ReadRequest
from s3lake.land.request.run_request import SparkTaskRunner, run_request
from s3lake.land.spark import parallelism
from s3lake.land.spark.failures import translate_spark_error
from s3lake.land.spark.numbered_tasks import run_numbered_tasks
from s3lake.land.spark.spark_jobs import JobsCancelled, SparkJobs
from s3lake.land.task.outcomes import Failed, Outcome
from s3lake.land.task.pipeline import Work, run
from s3lake.source.record_batches import OffsetRange, Reader

if TYPE_CHECKING:
    from s3lake.land.spark.opened_spark import OpenedSpark

SMALL = 100_000
"""Offsets below which a request is part of the shared job; a larger one gets a job of its own."""
PATIENCE_S = 2.0
"""How long requests wait for landings that are slow, such as one that settles what a crashed writer left."""
_TOPIC = 2_000  # what a topic costs a task in addition to its records, in records
_results = msgspec.json.Decoder(tuple[int, Outcome])


@dataclass(eq=False)
class _WaitingRequest:
    """A request, and the results that its landing waits for; None if it is to run the request by itself."""

    reader: Reader
    request: ReadRequest
    outcomes: Future[list[Outcome] | None] = field(default_factory=Future)


class SharedJobs:
    """Runs the requests of several landings.

    Attributes:
        turns: a landing that works has one of these; it gives it back while it waits for a job.
    """

    def __init__(self, jobs: SparkJobs, landings: int) -> None:
        """Prepare to run the requests of so many landings at a time; each calls `end_landing` when it has no more."""
        self.turns = threading.Semaphore(AT_WORK)
        self._jobs = jobs
        self._landings, self._idle = landings, 0  # landings, and how many of them wait for the end of a job
        self._waiting: list[_WaitingRequest] = []
        self._is_cancelled = False
        self._changed = threading.Condition()  # guards all of these
        self._own_job = threading.Lock()

    def run(self, reader: Reader, request: ReadRequest) -> list[Outcome]:
        """Return the results of a landing's request. Other landings work meanwhile.

        Raises:
            JobsCancelled: `cancel` was called.
        """
        self.turns.release()
        try:
            if request.needs_spark or request.offsets >= SMALL:
                self._count_idle(1)
                return self._run_alone(reader, request)
            outcomes = self._share(_WaitingRequest(reader, request))
            return self._run_alone(reader, request) if outcomes is None else outcomes
        finally:
            self.turns.acquire()

    def end_landing(self) -> None:
        """Wait for one landing less: it has ended."""
        with self._changed:
            self._landings -= 1
            self._changed.notify_all()

    def cancel(self) -> None:
        """End each landing that waits for a shared job, or asks for one from now on."""
        with self._changed:
            self._is_cancelled = True
            waiting, self._waiting = self._waiting, []
            self._changed.notify_all()
        for each in waiting:
            each.outcomes.set_exception(JobsCancelled())

    def run_jobs(self) -> None:
        """Run shared jobs until all landings have ended, or `cancel` is called."""
        while requests := self._take_requests():
            self._run_shared(requests)

    def _share(self, waiting: _WaitingRequest) -> list[Outcome] | None:
        with self._changed:
            if self._is_cancelled:
                raise JobsCancelled
            self._idle += 1
            self._waiting.append(waiting)
            self._changed.notify_all()
        return waiting.outcomes.result()

    def _run_alone(self, reader: Reader, request: ReadRequest) -> list[Outcome]:
        try:
            with self._own_job:  # a large one does not hold back the shared jobs, but other large ones
                return run_request(SparkTaskRunner(reader, self._jobs), request)
        finally:
            self._count_idle(-1)

    def _count_idle(self, more: int) -> None:
        with self._changed:
            self._idle += more
            self._changed.notify_all()

    def _take_requests(self) -> list[_WaitingRequest]:
        """Wait until a shared job is due, and return its requests. Return an empty list if there will be none."""
        is_patient = True
        with self._changed:
            while self._landings and not self._is_cancelled:
                if self._waiting and (self._idle == self._landings or not is_patient):
                    requests, self._waiting = self._waiting, []
                    return requests
                is_patient = self._changed.wait(PATIENCE_S if self._waiting else None)
        return []

    def _run_shared(self, requests: Sequence[_WaitingRequest]) -> None:
        try:
            results = self._jobs.run(partial(_run_job, requests))
        except BaseException as error:
            self._fail(requests, error)
            return
        self._count_idle(-len(requests))
        for waiting, outcomes in zip(requests, results, strict=True):
            waiting.outcomes.set_result(outcomes)

    def _fail(self, requests: Sequence[_WaitingRequest], error: BaseException) -> None:
        """Let each landing run its request by itself, or fail if that cannot help."""
        if len(requests) > 1 and isinstance(error, Exception) and self._jobs.is_spark_alive():
            for waiting in requests:
                waiting.outcomes.set_result(None)
            return
        self._count_idle(-len(requests))
        for waiting in requests:
            failure = error
            if isinstance(error, Exception):
                failure = translate_spark_error(error, f"landing {len(requests)} topics in one job")
            waiting.outcomes.set_exception(failure)


def _run_job(requests: Sequence[_WaitingRequest], opened: OpenedSpark) -> list[list[Outcome]]:
    """Run the tasks of several requests in one job. Return the results of each."""
    tasks = assign_tasks([(waiting.reader, waiting.request) for waiting in requests], 2 * parallelism(opened))

    def run_task(number: int) -> Iterator[bytes]:
        for load in tasks[number]:
            yield from load()

    outcomes: list[list[Outcome]] = [[] for _ in requests]
    for number, outcome in map(_results.decode, run_numbered_tasks(opened, len(tasks), run_task)):
        outcomes[number].append(outcome)
    return outcomes


@dataclass(frozen=True)
class Load:
    """The work of a task for one topic, as plain values; `number` is the request's."""

    number: int
    work: Work
    reader: Reader
    topic: str
    ranges: tuple[OffsetRange, ...]

    def __call__(self) -> Iterator[bytes]:
        for outcome in self._run():
            yield msgspec.json.encode((self.number, outcome))

    def _run(self) -> Iterator[Outcome]:
        try:
            yield from run(self.work, self._read())
        except Exception as error:  # the other topics of this task have nothing to do with it
            yield Failed(TaskFailedError.__name__, f"landing topic {self.topic!r}: {type(error).__name__}: {error}")

    def _read(self) -> Iterator[pa.RecordBatch]:
        """Read the records. A reader that fails before it yields any fails where `run` sees it."""
        yield from self.reader.batches(self.topic, self.ranges, self.work.record_columns)


def assign_tasks(requests: Sequence[tuple[Reader, ReadRequest]], tasks: int) -> list[list[Load]]:
    """Assign each request to one of at most `tasks` tasks, so that these have as much to do."""
    loads: list[list[Load]] = [[] for _ in range(min(len(requests), tasks))]
    sizes = [0] * len(loads)
    by_size = sorted(enumerate(requests), key=lambda pair: pair[1][1].offsets, reverse=True)
    for number, (reader, request) in by_size:
        least = sizes.index(min(sizes))
        ranges = tuple(OffsetRange(partition, start, end) for partition, (start, end) in sorted(request.reads.items()))
        loads[least].append(Load(number, request.work, reader, request.topic, ranges))
        sizes[least] += request.offsets + _TOPIC
    return loads
