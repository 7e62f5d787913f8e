"""A Spark Connect server: a session of this process that others may use, until it is stopped.

It runs as Spark's plugin inside of the driver, so its JVM is started, configured and ended like any other of
s3lake's, and ends with this process, however that ends.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from s3lake.errors import ConfigurationError, SparkUnavailableError
from s3lake.land.spark import parallelism, settings, start_session
from s3lake.land.spark.class_archive import WRITING_S
from s3lake.land.spark.private_pyspark import find_connect_service, find_gateway_process

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from s3lake.config import model

_PLUGIN = "org.apache.spark.sql.connect.SparkConnectPlugin"
_POLL_S = 1.0


def serve(spark: model.Spark, host: str, port: int, idle_s: float | None, tell: Callable[[str, int], None]) -> None:
    """Serve until SIGTERM or SIGINT arrives, or nothing has been run for `idle_s` seconds.

    Args:
        spark: the master behind it, memory and settings.
        port: the port; 0 for any that is free.
        idle_s: None to go on for ever.
        tell: called with the address and the number of cores when clients can come.

    Raises:
        ConfigurationError: the port is taken, or there is no Java that Spark runs on.
        SparkUnavailableError: the JVM ended by itself.
        KeyboardInterrupt: the signal arrived before it served.
    """
    ending = threading.Event()
    _handle_signals(ending)
    try:
        session = _start(spark, host, port)
    except SparkUnavailableError:
        if ending.is_set():  # its JVM was ended
            raise KeyboardInterrupt from None
        raise
    try:
        service = find_connect_service(session)
        tell(f"sc://{host}:{service.localPort()}", parallelism(session))
        _wait(ending, service, idle_s)
    finally:
        _end(session)


def _handle_signals(ending: threading.Event) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ending.set())


def _start(spark: model.Spark, host: str, port: int) -> SparkSession:
    conf = settings(spark) | {
        "spark.app.name": "s3lake spark",
        "spark.plugins": ",".join(filter(None, [spark.conf.get("spark.plugins"), _PLUGIN])),
        "spark.connect.grpc.binding.address": host,
        "spark.connect.grpc.binding.port": str(port),
        # There is one session for each version of the code, and its warm workers are what the server is for.
        "spark.connect.session.manager.defaultSessionTimeout": "-1",
        # From Spark 4.1 on each server makes a directory for models, which its end leaves behind.
        "spark.connect.session.connectML.mlCache.memoryControl.enabled": "false",
    }
    for name, value in conf.items():  # without a cluster, workers inherit the JVM's environment and nothing else
        if name.startswith("spark.executorEnv."):
            os.environ.setdefault(name.removeprefix("spark.executorEnv."), value)
    _claim(host, port)
    return start_session(spark, conf)


def _claim(host: str, port: int) -> None:
    """Raise if a port is taken: Spark would only report that a constructor failed."""
    try:
        socket.create_server((host, port)).close()
    except OSError as error:
        raise ConfigurationError(f"--host {host} --port {port}: cannot listen there: {error.strerror}") from None


def _wait(ending: threading.Event, service: Any, idle_s: float | None) -> None:
    ended, since = None, time.monotonic()
    while not ending.wait(_POLL_S):
        if _process().poll() is not None:
            raise SparkUnavailableError(f"Spark's JVM ended by itself, with exit code {_process().returncode}")
        if idle_s is not None:
            running = service.listActiveExecutions()  # or else when the last one ended, by some clock
            last = running.left().get() if running.isLeft() else None
            if last is None or last != ended:
                ended, since = last, time.monotonic()
            if time.monotonic() - since >= idle_s:
                return


def _process() -> subprocess.Popen[bytes]:
    process = find_gateway_process()
    assert process is not None  # the session of this process has started it
    return process


def _end(session: SparkSession) -> None:
    """Workers and temporary files go with the session, then the JVM, which ends with its standard input."""
    process = _process()
    if process.poll() is None:
        session.stop()
    assert process.stdin is not None
    with contextlib.suppress(OSError):
        process.stdin.close()
    try:
        process.wait(WRITING_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
