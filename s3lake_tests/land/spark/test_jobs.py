"""Spark jobs, and an interruption that cancels them: neither a job, a task nor a thread continues."""

import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from s3lake.land.spark.numbered_tasks import run_numbered_tasks
from s3lake.land.spark.spark_jobs import JobsCancelled, SparkJobs
from s3lake_tests.kit.cost import PATIENCE_S
from s3lake_tests.kit.processes import until
from s3lake_tests.land.in_process import TwoCoreSession

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Interrupted(BaseException):
    """Dagster's error of a run that is terminated is not an `Exception` either."""


@pytest.fixture
def interrupt() -> Iterator[Callable[[], None]]:
    """Send the main thread a signal, which raises `Interrupted` there."""

    def handle(*_: object) -> None:
        raise Interrupted

    handler = signal.signal(signal.SIGINT, handle)
    yield lambda: signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    signal.signal(signal.SIGINT, handler)


def job_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith(("s3lake-job", "s3lake-cancel"))]


def test_work_gets_the_session_that_was_opened_once_and_its_result_is_returned() -> None:
    session, opened = TwoCoreSession(), list[Any]()

    def open_session() -> Any:
        opened.append(session)
        return session

    jobs = SparkJobs(open_session)
    assert [jobs.run(lambda session: id(session)) for _ in range(2)] == [id(session)] * 2
    assert opened == [session]


def test_an_error_of_work_names_the_caller_and_the_work() -> None:
    def work(_: Any) -> None:
        raise ZeroDivisionError("of the test")

    def caller() -> None:
        SparkJobs(TwoCoreSession).run(work)  # type: ignore[arg-type]

    with pytest.raises(ZeroDivisionError) as raised:
        caller()
    names = [frame.name for frame in traceback.extract_tb(raised.value.__traceback__)]
    assert [name for name in names if name in ("caller", "run", "work")] == ["caller", "run", "work"]


def test_an_interruption_cancels_the_job_and_waits_for_its_thread(interrupt: Callable[[], None]) -> None:
    session: Any = TwoCoreSession()

    def work(_: Any) -> None:
        interrupt()
        until(lambda: bool(session.interrupted))

    jobs = SparkJobs(lambda: session)
    with pytest.raises(Interrupted):
        jobs.run(work)
    assert len(session.interrupted) == 1
    until(lambda: not job_threads())
    with pytest.raises(JobsCancelled):
        jobs.run(lambda _: None)


@pytest.mark.usefixtures("interrupt")
def test_a_signal_that_wakes_no_wait_cancels_the_job_too() -> None:
    session: Any = TwoCoreSession()

    def work(_: Any) -> None:
        time.sleep(0.2)  # the main thread waits now
        # This thread takes it, so that wait goes on, as it does where a signal arrives just before it.
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        until(lambda: bool(session.interrupted))

    with pytest.raises(Interrupted):
        SparkJobs(lambda: session).run(work)
    until(lambda: not job_threads())


def test_an_interruption_that_arrives_while_the_session_opens_begins_no_job(interrupt: Callable[[], None]) -> None:
    begun = list[Any]()

    def open_session() -> Any:
        interrupt()
        threading.Event().wait(PATIENCE_S)

    jobs = SparkJobs(open_session)
    with pytest.raises(Interrupted):
        jobs.run(begun.append)
    assert (begun, job_threads()) == ([], [])


def test_jobs_of_several_threads_are_cancelled_together() -> None:
    session: Any = TwoCoreSession()
    begun, errors = threading.Barrier(4), list[BaseException]()

    def work(_: Any) -> None:
        begun.wait(PATIENCE_S)
        until(lambda: bool(session.interrupted))

    def run() -> None:
        try:
            jobs.run(work)
            jobs.run(work)
        except BaseException as error:
            errors.append(error)

    jobs = SparkJobs(lambda: session)
    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    begun.wait(PATIENCE_S)
    jobs.cancel()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert [type(error) for error in errors] == [JobsCancelled] * 3
    until(lambda: not job_threads())


@pytest.mark.parametrize("by_sql", [False, True])
def test_an_interruption_ends_the_job_and_its_tasks_on_real_spark(
    spark: "SparkSession", interrupt: Callable[[], None], tmp_path: Path, by_sql: bool
) -> None:
    directory = str(tmp_path)

    def work_long(_: Any) -> Iterator[Any]:
        (Path(directory) / str(os.getpid())).touch()
        time.sleep(1000)
        yield from ()

    def run_job(session: "SparkSession") -> object:
        if by_sql:
            return session.range(0, 2, 1, 2).mapInArrow(work_long, "id long").collect()
        return run_numbered_tasks(session, 2, work_long)

    def interrupt_tasks() -> None:
        until(lambda: any(tmp_path.iterdir()))
        interrupt()

    interrupting = threading.Thread(target=interrupt_tasks)
    interrupting.start()
    with pytest.raises(Interrupted):
        SparkJobs(lambda: spark).run(run_job)
    interrupting.join()
    until(lambda: not job_threads())
    until(lambda: not any(psutil.pid_exists(int(path.name)) for path in tmp_path.iterdir()))
    # The thread that was interrupted has not read the answer of another call.
    assert SparkJobs(lambda: spark).run(lambda session: session.range(3).count()) == 3
    assert spark.range(4).count() == 4
