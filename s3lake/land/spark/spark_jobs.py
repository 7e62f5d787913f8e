"""Runs Spark jobs, and cancels them when the process is asked to end."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TYPE_CHECKING, TypeVar

from s3lake.land.spark.opened_spark import find_session, run_nothing
from s3lake.land.spark.private_pyspark import find_context

if TYPE_CHECKING:
    from s3lake.land.spark.opened_spark import OpenedSpark

CANCEL_S = 10.0
"""How long a process that is asked to end waits for its jobs."""
LOOK_S = 0.5
"""How long a thread waits before it looks for a signal. One that arrives as a wait begins does not end that wait:
Python has looked already, and the system does not know yet of a wait to interrupt."""
_ASK_AGAIN_S = 0.5
A = TypeVar("A")


class JobsCancelled(BaseException):
    """Jobs were cancelled. It is not an `Exception`, because it ends a landing as Ctrl-C does."""


def await_result(future: Future[A]) -> A:
    """Return the result of a future. A signal to this thread ends the wait, whenever it arrives."""
    while not wait([future], LOOK_S).done:
        pass
    return future.result()


class SparkJobs:
    """Runs the Spark jobs of a landing, or of many, in one session or context.

    A signal that interrupts a call of Py4J leaves the answer on the connection, and the next call of the same thread
    reads it. So each job has a thread of its own: the caller only waits, and can cancel the job when it is interrupted.
    """

    def __init__(self, open_spark: Callable[[], OpenedSpark]) -> None:
        """Prepare to run jobs; `open_spark` is called once, when there is a job."""
        self._open_spark, self._opening = open_spark, threading.Lock()
        self._opened: OpenedSpark | None = None
        self._tag = f"s3lake-{uuid.uuid4().hex}"  # Spark gives it to each job, and cancels jobs by it
        self._running, self._is_cancelled = 0, False
        self._ended = threading.Condition()  # guards these two

    def run(self, work: Callable[[OpenedSpark], A]) -> A:
        """Call `work`, which runs jobs in what it gets, and return its result.

        Raises:
            JobsCancelled: `cancel` was called.
        """
        opened = self._open()  # by the caller: only the main thread may handle signals while a JVM starts
        with self._ended:
            if self._is_cancelled:
                raise JobsCancelled
            self._running += 1
        result = Future[A]()
        try:
            threading.Thread(target=self._run, args=(opened, work, result), name="s3lake-job", daemon=True).start()
            return await_result(result)
        except BaseException:
            if not result.done():
                self.cancel()
            raise

    def cancel(self) -> None:
        """Cancel all jobs, and begin no other. Wait until they have ended, for `CANCEL_S` seconds at most."""
        deadline = time.monotonic() + CANCEL_S
        with self._ended:
            self._is_cancelled = True
            # One request is not always enough: a thread may have been about to begin a job.
            while self._running and (left := deadline - time.monotonic()) > 0:
                threading.Thread(target=self._interrupt, name="s3lake-cancel", daemon=True).start()
                self._ended.wait_for(lambda: not self._running, min(left, _ASK_AGAIN_S))

    def is_spark_alive(self) -> bool:
        """Return whether Spark still runs jobs."""
        try:
            self.run(run_nothing)
        except Exception:
            return False
        return True

    def _open(self) -> OpenedSpark:
        with self._opening:
            if self._opened is None:
                self._opened = self._open_spark()
            return self._opened

    def _run(self, opened: OpenedSpark, work: Callable[[OpenedSpark], A], result: Future[A]) -> None:
        try:
            _add_tag(opened, self._tag)
            if self._is_cancelled:
                raise JobsCancelled
            result.set_result(work(opened))
        except BaseException as error:
            result.set_exception(JobsCancelled() if self._is_cancelled else error)
        finally:
            self._count_end()

    def _count_end(self) -> None:
        with self._ended:
            self._running -= 1
            self._ended.notify_all()

    def _interrupt(self) -> None:
        opened = self._opened
        if opened is not None:
            _cancel_jobs(opened, self._tag)


def _add_tag(opened: OpenedSpark, tag: str) -> None:
    """Give a tag to each job that this thread starts."""
    context = find_context(opened)
    if context is None:
        find_session(opened).addTag(tag)
    else:
        context.addJobTag(tag)


def _cancel_jobs(opened: OpenedSpark, tag: str) -> None:
    context = find_context(opened)
    if context is None:
        find_session(opened).interruptTag(tag)
    else:
        # `interruptTag` of a session with a JVM finds only tags of the same thread.
        context.cancelJobsWithTag(tag)
