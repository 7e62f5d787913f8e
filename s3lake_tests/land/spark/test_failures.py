"""What Spark's failures mean: transient or terminal, reported in a line, with the trace kept out of the way."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from s3lake.config.model import Spark
from s3lake.errors import (
    KafkaUnavailableError,
    RecordError,
    SparkUnavailableError,
    TaskFailedError,
    TerminalError,
    TransientError,
)
from s3lake.land.spark import settings, start_session
from s3lake.land.spark.failures import translate_spark_error
from s3lake.land.spark.numbered_tasks import run_numbered_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Run = Callable[["SparkSession", Any], None]


def crash(_: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from ()
    os._exit(9)


def errs(_: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    raise ZeroDivisionError("by nothing")


def tells(_: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    raise KafkaUnavailableError("Kafka at k:1 did not answer; Connection refused")


def modules(_: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    found = sorted({"s3lake.land.task.pipeline", "boto3", "confluent_kafka", "pandas", "dagster"} & sys.modules.keys())
    yield pa.record_batch([pa.array(found)], names=["module"])


def run_by_sql(session: "SparkSession", task: Any) -> None:
    session.range(0, 1, 1, 1).mapInArrow(task, "id long").collect()


def run_by_number(session: "SparkSession", task: Any) -> None:
    run_numbered_tasks(session, 1, task)


BOTH = pytest.mark.parametrize("run", [run_by_sql, run_by_number])


def meaning_of(session: "SparkSession", run: Run, task: object) -> Exception:
    with pytest.raises(Exception) as failed:  # noqa: PT011 - whatever Spark raises
        run(session, task)
    return translate_spark_error(failed.value, "landing topic 'orders' into sink events")


class TestTasks:
    def test_find_what_landing_needs_imported_by_the_process_that_forked_theirs(self, spark: "SparkSession") -> None:
        rows = spark.range(0, 1, 1, 1).mapInArrow(modules, "module string").collect()
        assert [row.module for row in rows] == ["boto3", "confluent_kafka", "pandas", "s3lake.land.task.pipeline"]

    @BOTH
    def test_a_task_whose_process_crashes_may_succeed_on_retry(self, spark: "SparkSession", run: Run) -> None:
        error = meaning_of(spark, run, crash)
        assert isinstance(error, SparkUnavailableError)
        assert str(error).startswith("Spark went away while landing topic 'orders' into sink events: ")

    @BOTH
    def test_that_fail_with_an_error_of_python_are_terminal_and_reported_in_a_line(
        self, spark: "SparkSession", run: Run
    ) -> None:
        error = meaning_of(spark, run, errs)
        assert isinstance(error, TaskFailedError)
        assert "ZeroDivisionError: by nothing. Nothing of this micro-batch is visible" in str(error)
        assert "Traceback" not in str(error)
        assert len(str(error)) < 1000

    @BOTH
    def test_that_raise_an_error_of_ours_keep_its_type_and_text(self, spark: "SparkSession", run: Run) -> None:
        error = meaning_of(spark, run, tells)
        assert type(error) is KafkaUnavailableError
        assert str(error) == "Kafka at k:1 did not answer; Connection refused"


class TestTexts:
    @pytest.mark.parametrize(
        "text",
        [
            "An error occurred while calling o1.x: org.apache.spark.SparkException: Job aborted due to stage failure: "
            "ExecutorLostFailure (executor 3 exited caused by one of the running tasks)",
            "org.apache.spark.SparkException: Job 0 cancelled because SparkContext was shut down",
            '<_InactiveRpcError of RPC that terminated with: status = StatusCode.UNAVAILABLE details = "x">',
            "[INVALID_HANDLE.SESSION_NOT_FOUND] The handle 1 is invalid. Session not found.",
            "[RESPONSE_ALREADY_RECEIVED] OPERATION_NOT_FOUND on the server but responses were already received.",
            "Received incorrect server side session identifier for request. Please create a new Spark Session.",
            "[INTERNAL_ERROR] No active or default Spark session found SQLSTATE: XX000",
            "java.lang.OutOfMemoryError: Java heap space",
        ],
    )
    def test_texts_of_lost_connections_are_transient(self, text: str) -> None:
        assert isinstance(translate_spark_error(PySparkException(text), "reading"), TransientError)

    def test_other_texts_are_terminal(self) -> None:
        error = translate_spark_error(PySparkException("[SOMETHING_ODD] it is odd\n\tat java.lang.X"), "reading")
        assert isinstance(error, TerminalError)
        assert str(error).startswith("Spark failed while reading: [SOMETHING_ODD] it is odd. ")

    def test_name_the_exception_of_java(self) -> None:
        text = "An error occurred while calling o59.x.\n: java.lang.IllegalStateException: no master\n\tat java.lang.X"
        error = translate_spark_error(PySparkException(text), "starting")
        assert str(error).startswith("Spark failed while starting: java.lang.IllegalStateException: no master. ")

    def test_an_error_of_ours_is_what_it_is(self) -> None:
        ours = RecordError("no")
        assert translate_spark_error(ours, "reading") is ours

    def test_an_error_that_is_none_of_sparks_is_left_alone(self) -> None:
        mistake = KeyError("x")
        assert translate_spark_error(mistake, "reading") is mistake


def test_ctrl_c_takes_effect_when_the_start_of_a_session_is_left_and_not_by_pysparks_handler(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[bool] = []

    def launch(_: object) -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)  # people press it twice
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # as PySpark sets one of its own
        started.append(True)
        raise ValueError("no session")

    monkeypatch.setattr("pyspark.SparkContext._gateway", None)
    monkeypatch.setattr("s3lake.land.spark.launch.launch", launch)
    monkeypatch.setattr("s3lake.land.spark.jars.find_java", lambda: Path("/java/bin/java"))
    monkeypatch.setenv("JAVA_HOME", "/java")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a run in the background ignores it
    asked = Spark(master="local[1]", conf={"spark.driver.extraJavaOptions": ""})
    try:
        with pytest.raises(KeyboardInterrupt):
            start_session(asked, settings(asked))
        assert (started, signal.getsignal(signal.SIGINT)) == ([True], signal.default_int_handler)
    finally:
        signal.signal(signal.SIGINT, before)
