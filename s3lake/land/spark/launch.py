"""Starts the JVM of a session, and ends it when this process is asked to end: also while the JVM starts.

PySpark does not report which process it starts until that process answers. A command that was ended before left a
JVM, which went on starting, and then wrote its archive of classes.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from s3lake.land.spark import class_archive, jars, private_pyspark
from s3lake.scratch import scratch

_SILENCE_S = 1.0
"""How long a JVM has to stop logging, before it is ended."""
_GRACE_S = 3.0
"""For the shutdown hooks of a JVM that serves, which delete its temporary files."""

_starting = threading.Lock()
_processes: list[subprocess.Popen[bytes]] = []
_is_ending = False


def launch(settings: Mapping[str, str]) -> None:
    """Start the JVM with settings from a file: PySpark puts each on its command line, which every user can read."""
    if private_pyspark.has_gateway() or "PYSPARK_GATEWAY_PORT" in os.environ:
        return
    arguments_before = os.environ.get("PYSPARK_SUBMIT_ARGS")
    text = "".join(f"{_escape(name)}={_escape(value)}\n" for name, value in settings.items())
    with ExitStack() as stack:
        with scratch(len(text)):
            path = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="s3lake-spark-conf-"))) / "spark.conf"
            path.touch(0o600)
            path.write_text(text, "utf-8")
        arguments = f"--load-spark-defaults --properties-file {shlex.quote(str(path))}"
        os.environ["PYSPARK_SUBMIT_ARGS"] = f"{arguments} {arguments_before or 'pyspark-shell'}"
        try:
            private_pyspark.start_gateway(_start)
        finally:
            if arguments_before is None:
                del os.environ["PYSPARK_SUBMIT_ARGS"]
            else:
                os.environ["PYSPARK_SUBMIT_ARGS"] = arguments_before


@contextmanager
def end_when_interrupted() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end a JVM that is started in here, and only then do what they did before.

    The handler that PySpark sets for Ctrl-C calls the JVM within the call that was interrupted, which fails: it would
    be an error of Spark, and landing would continue with the next topic.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    interrupts: list[int] = []

    def interrupt(number: int, _: object) -> None:
        interrupts.append(number)
        _ask_to_end()

    for number, handler in handlers.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if interrupts:
            end()
            signal.raise_signal(interrupts[0])


def end() -> None:
    """End the JVMs that this process has started, and wait for that. Their interrupted tasks print nothing."""
    global _is_ending
    if not _processes and not _is_ending:
        return
    with _starting:
        _silence()
        _ask_to_end()
        deadline = time.monotonic() + _GRACE_S
        for process in _processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0, deadline - time.monotonic()))
            _signal(process, signal.SIGKILL)
            process.wait()
        _processes.clear()
        class_archive.discard()
        private_pyspark.forget_gateway()
        _is_ending = False


def _silence() -> None:
    """Keep the traces of tasks that end with the JVM out of the user's terminal: Spark's log, and PySpark's server."""
    context = private_pyspark.find_active_context()
    if context is None or _is_ending:
        return
    private_pyspark.silence_accumulator_server(context)

    def stop_logging() -> None:
        with contextlib.suppress(Exception):  # it has ended, or answers no more
            context.setLogLevel("OFF")

    silencing = threading.Thread(target=stop_logging, name="s3lake-silence", daemon=True)
    silencing.start()
    silencing.join(_SILENCE_S)


def _ask_to_end() -> None:
    global _is_ending
    _is_ending = True
    for process in _processes:
        # One that does not serve yet has nothing to delete, and may wait for long until it looks at a signal.
        _signal(process, signal.SIGTERM if private_pyspark.has_gateway() else signal.SIGKILL)


def _start(command: list[str], env: Mapping[str, str], **options: Any) -> subprocess.Popen[bytes]:
    """Start what PySpark starts, in a group of its own: a script, which becomes the JVM, with a JVM of its own."""
    env = jars.make_java_environment(env)
    with _starting:
        process = subprocess.Popen(command, env=env, **options, start_new_session=True)
        _processes.append(process)
    if _is_ending:  # asked while it was started
        _signal(process, signal.SIGKILL)
    return process


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)


def _escape(text: str) -> str:
    """A key or a value of a Java properties file."""
    return "".join(f"\\u{ord(char):04x}" if char in "\\:=#! \t\r\n\f" else char for char in text)
