"""Ctrl-C and SIGTERM end a command at any moment, also while Spark starts, and leave no process."""

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from s3lake_tests.kit.cost import PATIENCE_S
from s3lake_tests.kit.processes import MARK, kill_all, marked, until

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
    command = [sys.executable, "-W", "ignore", "-m", "s3lake", "preview", "s3lake.yaml", "--records", "records.jsonl"]
    environment = {**os.environ, MARK: mark, "TMPDIR": str(temporary), "S3LAKE_CACHE": str(directory / "cache")}
    path = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    running = subprocess.Popen(
        command,
        cwd=directory,
        env={**environment, "PYTHONPATH": path},
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
def test_a_command_that_is_told_to_end_while_spark_starts_leaves_no_process(
    number: signal.Signals, tmp_path: Path
) -> None:
    _end_while_starting(tmp_path, number, 1.0)


@pytest.mark.slow("ten moments of Spark's start; one of each signal is always run")
@pytest.mark.usefixtures("jvm")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("tenths", range(0, 50, 5))
def test_a_command_that_is_told_to_end_at_any_moment_leaves_no_process(
    number: signal.Signals, tenths: int, tmp_path: Path
) -> None:
    _end_while_starting(tmp_path, number, tenths / 10)


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


@pytest.mark.usefixtures("jvm")
@pytest.mark.slow("a landing that a signal ends; other moments are always run")
def test_a_command_says_that_spark_starts_before_it_has_imported_it(tmp_path: Path) -> None:
    mark = str(uuid.uuid4())
    with preview(tmp_path, mark) as running:
        assert running.stderr is not None
        assert running.stderr.readline() == _STARTING
        assert not [one for one in marked(mark) if "java" in one.name()]
        until(lambda: any("java" in one.name() for one in marked(mark)))
        _, errors = running.communicate(timeout=PATIENCE_S)
        assert running.returncode == 0, errors
        assert errors.splitlines()[-1].startswith("Spark session: ready after ")
