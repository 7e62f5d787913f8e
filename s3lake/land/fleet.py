"""Many topics landed at once: one session, and one Spark job for the small requests of all.

The steps of each topic's landing are done by a few threads, with its own plan, commits and errors. Only the Spark jobs
are shared: a job begins when every landing has a request, or has ended.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from functools import partial
from itertools import islice
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec
import pyarrow as pa

from s3lake.errors import TaskFailedError
from s3lake.land.engine import ReadRequest, Steps, TaskEngine, answer_request
from s3lake.land.landing import AT_WORK
from s3lake.land.spark import parallelism
from s3lake.land.spark.failures import translate_spark_error
from s3lake.land.target import TopicSink
from s3lake.land.task.outcomes import Failed, Outcome, outcome_of
from s3lake.land.task.pipeline import Work, run
from s3lake.source.record_batches import OffsetRange, Reader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST = 256
"""Topics that are landed at once; the next one begins when one of them is done."""
SMALL = 100_000
"""Offsets below which a request is part of the shared job; a larger one gets a job of its own."""
PATIENCE_S = 2.0
"""How long requests wait for landings that are slow: who settles what a crashed writer left, say."""
CANCEL_S = 10.0
"""How long a fleet that is cancelled waits for commits to become visible."""
_TOPIC = 2_000  # what a topic costs a task in addition to its records, in records
_ROWS = "number int, outcome binary"

A = TypeVar("A")


def land_together(
    landings: Mapping[TopicSink, Steps[A]], session: Callable[[], SparkSession]
) -> dict[TopicSink, A | BaseException]:
    """Land topics side by side. Return the result of each, or the error that ended it.

    If this is interrupted nothing new begins, and what is being committed has `CANCEL_S` seconds to become visible.

    Args:
        landings: the steps of each topic.
        session: gives the Spark session; called when there is something to read.
    """
    fleet = _Fleet(landings, session)
    try:
        fleet.landed.result()
    except BaseException:
        fleet.cancel()
        raise
    finally:
        fleet.stop_threads()
    return fleet.results


@dataclass(eq=False)
class _Landing(Generic[A]):
    """A topic that is being landed, and the request whose results it waits for; None while its steps are done."""

    target: TopicSink
    steps: Steps[A]
    request: ReadRequest | None = None


class _Fleet(Generic[A]):
    """The landings, the threads that do their steps, and the two that run their Spark jobs.

    One more thread takes the events, and alone changes what is known of the landings: neither an answer nor an
    interruption, which comes to the main thread, meets another.
    """

    def __init__(self, landings: Mapping[TopicSink, Steps[A]], spark: Callable[[], SparkSession]) -> None:
        self.results: dict[TopicSink, A | BaseException] = {}
        self._unbegun = iter([_Landing(target, steps) for target, steps in landings.items()])
        self._running = set[_Landing[A]]()
        self._small: list[_Landing[A]] = []
        self._events = SimpleQueue[Callable[[], None]]()
        self._cancelled = self._is_sharing = False
        self._spark, self._starting = spark, threading.Lock()
        self._session: SparkSession | None = None
        self._steps, self._shared_jobs, self._own_jobs = _Threads("steps", AT_WORK), _Threads("jobs"), _Threads("job")
        self._taking = _Threads("events")
        self.landed = Future[None]()
        self._taking.put(self._run)

    def cancel(self) -> None:
        """End each landing at its request, or at the next one."""
        self._events.put(self._close_waiting)
        wait([self.landed], CANCEL_S)

    def stop_threads(self) -> None:
        for threads in (self._steps, self._shared_jobs, self._own_jobs, self._taking):
            threads.stop()

    def _run(self) -> None:
        try:
            self._take_events()
        except BaseException as error:
            self.landed.set_exception(error)
        else:
            self.landed.set_result(None)

    def _take_events(self) -> None:
        self._begin(MOST)
        while self._running:
            try:
                event = self._events.get(timeout=PATIENCE_S if self._small and not self._is_sharing else None)
            except Empty:
                is_ready = True
            else:
                event()
                is_ready = all(one.request for one in self._running)
            if self._small and is_ready and not self._is_sharing:
                self._is_sharing = True
                self._shared_jobs.put(partial(self._run_shared, self._small))
                self._small = []

    def _begin(self, count: int) -> None:
        for landing in islice(self._unbegun, count):
            self._running.add(landing)
            self._go_on(landing, partial(next, landing.steps))

    def _go_on(self, landing: _Landing[A], answer: Callable[[], ReadRequest | None]) -> None:
        landing.request = None
        self._steps.put(partial(self._advance, landing, answer))

    def _take_request(self, landing: _Landing[A], request: ReadRequest) -> None:
        landing.request = request
        if self._cancelled:
            self._go_on(landing, landing.steps.close)
        elif request.offsets < SMALL and not request.needs_spark:
            self._small.append(landing)
        else:
            self._own_jobs.put(partial(self._run_alone, landing))

    def _take_answer(self, landing: _Landing[A], answer: Callable[[], ReadRequest]) -> None:
        if landing.request is not None:  # else it was closed meanwhile
            self._go_on(landing, answer)

    def _take_end(self, landing: _Landing[A]) -> None:
        self._running.discard(landing)
        if not self._cancelled:
            self._begin(1)

    def _end_sharing(self) -> None:
        self._is_sharing = False

    def _close_waiting(self) -> None:
        self._cancelled, self._small = True, []
        for landing in self._running:
            if landing.request is not None:
                self._go_on(landing, landing.steps.close)

    def _advance(self, landing: _Landing[A], answer: Callable[[], ReadRequest | None]) -> None:
        """Do the steps of a landing up to its next request."""
        request = None
        try:
            request = answer()
        except StopIteration as end:
            self.results[landing.target] = end.value
        except BaseException as error:
            self.results[landing.target] = error
        if request is None:
            self._events.put(partial(self._take_end, landing))
        else:
            self._events.put(partial(self._take_request, landing, request))

    def _answer(self, landing: _Landing[A], answer: Callable[[], ReadRequest]) -> None:
        self._events.put(partial(self._take_answer, landing, answer))

    def _run_alone(self, landing: _Landing[A]) -> None:
        request = landing.request
        if request is not None:
            engine = TaskEngine(landing.target.reader, self._open_session)
            self._answer(landing, answer_request(landing.steps, request, engine))

    def _run_shared(self, landings: Sequence[_Landing[A]]) -> None:
        requests = {one: request for one in landings if (request := one.request)}
        try:
            results = self._run_job([(one.target.reader, request) for one, request in requests.items()])
        except Exception as error:
            failure = translate_spark_error(error, f"landing {len(requests)} topics in one job")
            each_alone = len(requests) > 1 and self._is_session_alive()
            for landing in requests:
                if each_alone:
                    self._run_alone(landing)
                else:
                    self._answer(landing, partial(landing.steps.throw, failure))
        else:
            for landing, outcomes in zip(requests, results, strict=True):
                self._answer(landing, partial(landing.steps.send, outcomes))
        self._events.put(self._end_sharing)

    def _run_job(self, requests: Sequence[tuple[Reader, ReadRequest]]) -> list[list[Outcome]]:
        session = self._open_session()
        tasks = _assign_tasks(requests, 2 * parallelism(session))

        def read(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in numbers:
                for number in batch.column("id").to_pylist():
                    for load in tasks[number]:
                        yield from load()

        outcomes: list[list[Outcome]] = [[] for _ in requests]
        for row in session.range(0, len(tasks), 1, len(tasks)).mapInArrow(read, _ROWS).collect():
            outcomes[row.number].append(outcome_of(bytes(row.outcome)))
        return outcomes

    def _open_session(self) -> SparkSession:
        """Return the session, made once: Spark itself knows for each thread apart which one is active."""
        with self._starting:
            if self._session is None:
                self._session = self._spark()
            return self._session

    def _is_session_alive(self) -> bool:
        try:
            self._open_session().range(1).collect()
        except Exception:
            return False
        return True


class _Threads:
    """Threads that do what is put in, in order. A run that is cancelled does not wait for them."""

    def __init__(self, name: str, count: int = 1) -> None:
        self._works = SimpleQueue[Callable[[], None] | None]()
        self._count = count
        for _ in range(count):
            threading.Thread(target=self._do_works, name=f"s3lake-fleet-{name}", daemon=True).start()

    def put(self, work: Callable[[], None]) -> None:
        self._works.put(work)

    def stop(self) -> None:
        """End each thread when it has done what is put in."""
        for _ in range(self._count):
            self._works.put(None)

    def _do_works(self) -> None:
        while (work := self._works.get()) is not None:
            work()


@dataclass(frozen=True)
class _Load:
    """The work of a task for one topic, as plain values; `number` is the request's."""

    number: int
    work: Work
    reader: Reader
    topic: str
    ranges: tuple[OffsetRange, ...]

    def __call__(self) -> Iterator[pa.RecordBatch]:
        for outcome in self._run():
            arrays: list[Any] = [pa.array([self.number], pa.int32()), pa.array([msgspec.json.encode(outcome)])]
            yield pa.record_batch(arrays, names=["number", "outcome"])

    def _run(self) -> Iterator[Outcome]:
        try:
            yield from run(self.work, self._read())
        except Exception as error:  # the other topics of this task have nothing to do with it
            yield Failed(TaskFailedError.__name__, f"landing topic {self.topic!r}: {type(error).__name__}: {error}")

    def _read(self) -> Iterator[pa.RecordBatch]:
        """Read the records. A reader that fails before it yields any fails where `run` sees it."""
        yield from self.reader.batches(self.topic, self.ranges, self.work.record_columns)


def _assign_tasks(requests: Sequence[tuple[Reader, ReadRequest]], tasks: int) -> list[list[_Load]]:
    """Assign each request to one of at most `tasks` tasks, so that these have as much to do."""
    loads: list[list[_Load]] = [[] for _ in range(min(len(requests), tasks))]
    sizes = [0] * len(loads)
    by_size = sorted(enumerate(requests), key=lambda pair: pair[1][1].offsets, reverse=True)
    for number, (reader, request) in by_size:
        least = sizes.index(min(sizes))
        ranges = tuple(OffsetRange(partition, start, end) for partition, (start, end) in sorted(request.reads.items()))
        loads[least].append(_Load(number, request.work, reader, request.topic, ranges))
        sizes[least] += request.offsets + _TOPIC
    return loads
