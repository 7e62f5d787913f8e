"""Many topics landed at once: each in a thread of its own, with its own plan, commits and errors.

They share one Spark session, and one Spark job for the small requests of all (`shared_jobs`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

from s3lake.land.many_topics.shared_jobs import SharedJobs
from s3lake.land.request.read_request import RunTasks
from s3lake.land.spark.spark_jobs import LOOK_S, JobsCancelled, SparkJobs
from s3lake.land.topic.topic_sink import TopicSink

if TYPE_CHECKING:
    from s3lake.land.spark.opened_spark import OpenedSpark

MOST = 256
"""Topics that are landed at once; the next one begins when one of them is done."""
CANCEL_S = 10.0
"""How long a fleet that is cancelled waits for commits to become visible."""

A = TypeVar("A")
Land = Callable[[RunTasks], A]
"""Lands a topic; it gets what runs the tasks of its requests."""


def land_together(
    landings: Mapping[TopicSink, Land[A]], open_spark: Callable[[], OpenedSpark]
) -> dict[TopicSink, A | BaseException]:
    """Land topics side by side. Return the result of each, or the error that ended it.

    If this is interrupted nothing new begins, Spark's jobs are cancelled, and what is being committed has `CANCEL_S`
    seconds to become visible.

    Args:
        landings: what lands each topic.
        open_spark: called in this thread, when there is something to read.
    """
    fleet = _Fleet(landings, open_spark)
    try:
        fleet.land()
    except BaseException:
        fleet.cancel()
        raise
    return fleet.results


class _Fleet(Generic[A]):
    """The topics, and the threads that land one after the other of them."""

    def __init__(self, landings: Mapping[TopicSink, Land[A]], open_spark: Callable[[], OpenedSpark]) -> None:
        self.results: dict[TopicSink, A | BaseException] = {}
        self._left = list(landings.items())[::-1]
        self._landing = min(MOST, len(self._left))  # threads that land a topic
        self._needs_spark = False
        self._changed = threading.Condition()  # guards all of these
        self._open_spark = open_spark
        self._opened: Future[OpenedSpark] = Future()
        self._jobs = SparkJobs(self._wait_for_spark)
        self._shared = SharedJobs(self._jobs, self._landing)
        self._threads = [
            threading.Thread(target=self._shared.run_jobs, name="s3lake-shared-jobs", daemon=True),
            *(
                threading.Thread(target=self._land_topics, name="s3lake-landing", daemon=True)
                for _ in range(self._landing)
            ),
        ]

    def land(self) -> None:
        """Land all topics."""
        for thread in self._threads:
            thread.start()
        with self._changed:
            while not self._changed.wait_for(lambda: self._needs_spark or not self._landing, LOOK_S):
                pass  # a signal is looked for
        if self._needs_spark:
            try:
                # In this thread: an interruption that arrives while a JVM starts ends the JVM only in the main thread.
                self._opened.set_result(self._open_spark())
            except Exception as error:
                self._opened.set_exception(error)
        for thread in self._threads:
            while thread.is_alive():
                thread.join(LOOK_S)

    def cancel(self) -> None:
        """Begin no other topic, end each landing at its request, or at the next one, and cancel Spark's jobs."""
        deadline = time.monotonic() + CANCEL_S
        with self._changed:
            self._left.clear()
        self._shared.cancel()
        if not self._opened.done():
            self._opened.set_exception(JobsCancelled())
        self._jobs.cancel()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(max(0, deadline - time.monotonic()))

    def _wait_for_spark(self) -> OpenedSpark:
        with self._changed:
            self._needs_spark = True
            self._changed.notify_all()
        return self._opened.result()

    def _land_topics(self) -> None:
        while (topic := self._take_topic()) is not None:
            target, land = topic
            result: A | BaseException
            try:
                with self._shared.turns:
                    result = land(partial(self._shared.run, target.reader()))
            except BaseException as error:
                result = error
            with self._changed:
                self.results[target] = result
        self._shared.end_landing()
        with self._changed:
            self._landing -= 1
            self._changed.notify_all()

    def _take_topic(self) -> tuple[TopicSink, Land[A]] | None:
        with self._changed:
            return self._left.pop() if self._left else None
