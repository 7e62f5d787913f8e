"""Ctrl-C and SIGTERM end a command at any moment, also while Spark starts, and leave no process."""

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from s3lake.demo.embedded_kafka import EmbeddedKafka
from s3lake.demo.embedded_s3 import EmbeddedS3
from s3lake.land.spark.jars import cache_dir
from s3lake_tests.kit.cost import PATIENCE_S
from s3lake_tests.kit.lake import START, Lake, at, values
from s3lake_tests.kit.processes import MARK, catches, kill_all, marked, until

_CONFIG = """\
kafka: {bootstrap_servers: 127.0.0.1:1}
sinks: [{name: events, topics: [orders], bucket: lake, start: 2026-11-20T00, sql: {where: "n > 0"}}]
"""
_RECORD = '{"topic": "orders", "value": {"type": "click", "n": 1}, "timestamp": "2026-11-20T10:00:00Z"}\n'
_STARTING = "Spark session: starting\n"


@contextmanager
def preview(directory: Path, mark: str) -> Iterator["subprocess.Popen[str]"]:
    """A preview of SQL: it starts Spark, and needs neither Kafka nor S3."""
    (directory / "s3lake.yaml").write_text(_CONFIG)
    (directory / "records.jsonl").write_text(_RECORD)
    temporary = directory / "tmp"
    temporary.mkdir(exist_ok=True)
    words = ["preview", "s3lake.yaml", "--records", "records.jsonl"]
    with run_command(directory, mark, words, TMPDIR=str(temporary), S3LAKE_CACHE=str(directory / "cache")) as running:
        yield running


@contextmanager
def run_command(directory: Path, mark: str, words: list[str], **environment: str) -> Iterator["subprocess.Popen[str]"]:
    """A command of s3lake, whose processes all have the mark; all are killed at the end."""
    path = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    running = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "s3lake", *words],
        cwd=directory,
        env={**os.environ, MARK: mark, "PYTHONPATH": path, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield running
    finally:
        kill_all(mark)
        running.communicate()


@pytest.mark.usefixtures("jvm")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_command_that_is_interrupted_while_spark_starts_leaves_no_process(
    number: signal.Signals, tmp_path: Path
) -> None:
    _end_while_starting(tmp_path, number, 1.0)


@pytest.mark.slow("ten moments of Spark's start; one of each signal is always run")
@pytest.mark.usefixtures("jvm")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("tenths", range(0, 50, 5))
def test_a_command_that_is_interrupted_at_any_moment_leaves_no_process(
    number: signal.Signals, tenths: int, tmp_path: Path
) -> None:
    _end_while_starting(tmp_path, number, tenths / 10)


@pytest.mark.slow("the demo and a landing, ended at three moments each")
@pytest.mark.usefixtures("jvm")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("after_s", [0.5, 7, 25])
@pytest.mark.parametrize("options", ["", "--services", "--serve"])
def test_a_demo_that_is_interrupted_at_any_moment_leaves_no_process(
    options: str, after_s: float, number: signal.Signals, tmp_path: Path
) -> None:
    _end_after(tmp_path, ["demo", "--records", "2000", *options.split()], number, after_s)


@pytest.mark.slow("stages of the demo, each in a process whose Spark writes an archive of classes when it ends")
@pytest.mark.usefixtures("jvm")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize(("line", "code"), [("backfilling ", 130), ("Ctrl-C ends", 0)], ids=["it lands", "it serves"])
def test_the_first_demo_of_a_machine_leaves_no_process_when_it_is_interrupted(
    line: str, code: int, number: signal.Signals, tmp_path: Path
) -> None:
    mark, temporary, cache = str(uuid.uuid4()), tmp_path / "tmp", tmp_path / "cache"
    temporary.mkdir()
    cache.mkdir()
    (cache / "jars").symlink_to(cache_dir() / "jars")
    words = ["demo", "--records", "2000", "--serve"]
    with run_command(tmp_path, mark, words, TMPDIR=str(temporary), S3LAKE_CACHE=str(cache)) as running:
        assert running.stdout is not None
        assert any(printed.startswith(line) for printed in running.stdout)
        time.sleep(2)
        assert _end(running, number, mark, temporary) == code
    assert {path.suffix for path in (cache / "classes").iterdir()} <= {".jsa"}, "half an archive is left"


@pytest.mark.slow("the demo and a landing, ended at three moments each")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("after_s", [0.5, 7, 12])
def test_a_landing_of_topics_that_is_interrupted_at_any_moment_leaves_no_process(
    after_s: float, number: signal.Signals, kafka: EmbeddedKafka, s3_server: EmbeddedS3, tmp_path: Path
) -> None:
    lake = Lake(kafka, s3_server)
    topics = [lake.topic() for _ in range(4)]
    for topic in topics:
        lake.produce(topic, values(20_000), at(START, 5))
    config = tmp_path / "s3lake.yaml"
    config.write_text(lake.config_text(f"name: events, topics: [{', '.join(topics)}], batch_records: 2000"))
    _end_after(tmp_path, ["land", str(config)], number, after_s)


def _end_after(directory: Path, words: list[str], number: signal.Signals, after_s: float) -> None:
    mark, temporary = str(uuid.uuid4()), directory / "tmp"
    temporary.mkdir()
    with run_command(directory, mark, words, TMPDIR=str(temporary)) as running:
        until(lambda: catches(running, signal.SIGTERM))  # before, the signal ends Python itself, which began nothing
        with suppress(subprocess.TimeoutExpired):
            running.wait(after_s)
        code = _end(running, number, mark, temporary)
    assert code in (0, 130), "0: it served, or was done before the signal arrived"


def _end(running: "subprocess.Popen[str]", number: signal.Signals, mark: str, temporary: Path) -> int:
    """End a command, which leaves no process, no file and no trace. Return its exit code."""
    running.send_signal(number)
    output, errors = running.communicate(timeout=PATIENCE_S)
    assert [" ".join(one.cmdline()) for one in marked(mark)] == []
    assert "Traceback" not in output + errors, errors
    assert list(temporary.iterdir()) == []
    return running.returncode


def _end_while_starting(directory: Path, number: signal.Signals, after_s: float) -> None:
    mark = str(uuid.uuid4())
    with preview(directory, mark) as running:
        assert running.stderr is not None
        assert running.stderr.readline() == _STARTING
        time.sleep(after_s)
        running.send_signal(number)
        code = running.wait(PATIENCE_S)
        left = marked(mark)  # at once: nothing is to end by itself later
        assert [" ".join(one.cmdline()) for one in left] == []
        assert "Traceback" not in running.stderr.read()
        assert code in (0, 130), "0: it was done before the signal arrived"
        assert [file.name for file in (directory / "cache").rglob("classes/*") if file.suffix != ".jsa"] == []


@pytest.mark.usefixtures("jvm")
@pytest.mark.slow("a landing that a signal ends; other moments are always run")
def test_a_command_reports_that_spark_starts_before_it_imports_spark(tmp_path: Path) -> None:
    mark = str(uuid.uuid4())
    with preview(tmp_path, mark) as running:
        assert running.stderr is not None
        assert running.stderr.readline() == _STARTING
        assert not [one for one in marked(mark) if "java" in one.name()]
        until(lambda: any("java" in one.name() for one in marked(mark)))
        _, errors = running.communicate(timeout=PATIENCE_S)
        assert running.returncode == 0, errors
        assert errors.splitlines()[-1].startswith("Spark session: ready after ")
