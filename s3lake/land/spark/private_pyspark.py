"""Everything that s3lake uses of PySpark and that PySpark does not document, each with its reason.

PySpark may change it with any version: `s3lake_tests/land/spark/test_private_pyspark.py` fails then.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame, SparkSession


def has_gateway() -> bool:
    """Return whether this process has a JVM that answers. PySpark starts one with a session, without a report."""
    from pyspark import SparkContext

    return SparkContext._gateway is not None


def start_gateway(popen: Callable[..., Any]) -> None:
    """Start the JVM by `popen`, before there is a session. PySpark reports its process only once the JVM answers."""
    from pyspark import SparkContext, java_gateway

    java_gateway.Popen = popen  # type: ignore[assignment, attr-defined]
    try:
        SparkContext._ensure_initialized()
    finally:
        java_gateway.Popen = subprocess.Popen  # type: ignore[attr-defined]


def keep_tests_out() -> None:
    """Let PySpark see whether an argument for the JVM is numpy's without an import.

    For each list and dict it imports `pyspark.testing` to see whether numpy is installed, and so pandas and gRPC. A
    value of numpy exists only where numpy was imported.
    """
    from pyspark.sql import types

    for converter, can_convert in (
        (getattr(types, "NumpyScalarConverter", None), _is_numpy_scalar),
        (getattr(types, "NumpyArrayConverter", None), _is_numpy_array),
    ):
        if converter is not None:
            converter.can_convert = can_convert


def _is_numpy_scalar(_: object, value: object) -> bool:
    return isinstance(value, _find_numpy_type("generic"))


def _is_numpy_array(_: object, value: Any) -> bool:
    return isinstance(value, _find_numpy_type("ndarray")) and bool(value.ndim == 1)


def _find_numpy_type(name: str) -> Any:
    """Return a type of numpy, or what no value is of: it is not imported, or another thread has not done it yet."""
    return getattr(sys.modules.get("numpy"), name, ())


def find_gateway_process() -> subprocess.Popen[bytes] | None:
    """Return the process of the JVM, None if there is none: it is waited for, and PySpark only starts it."""
    from pyspark import SparkContext

    return getattr(SparkContext._gateway, "proc", None)


def forget_gateway() -> None:
    """Forget a JVM that has ended. Otherwise the next session would ask it."""
    from pyspark import SparkContext

    SparkContext._gateway = SparkContext._jvm = None


def find_active_context() -> SparkContext | None:
    """Return the context of this process, None if there is none. `SparkContext.getOrCreate` would start one."""
    from pyspark import SparkContext

    return SparkContext._active_spark_context


def silence_accumulator_server(context: SparkContext) -> None:
    """Let PySpark's server of accumulators write no trace to the terminal when its JVM ends during a request."""
    server = getattr(context, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda *_: None


def find_running_context() -> SparkContext | None:
    """Return the context of this process, None if there is none, or none that runs.

    A context that Spark stopped by itself, as when its cluster is lost, is forgotten: PySpark would go on with it.
    """
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    last = SparkSession._instantiatedSession
    opened = SparkContext._active_spark_context if last is None else last
    if opened is not None and opened._jsc.sc().isStopped():
        opened.stop()
    return find_active_context()


def find_context(opened: SparkContext | SparkSession) -> SparkContext | None:
    """Return a context, or that of a session; None of Spark Connect: there `session.sparkContext` raises."""
    from pyspark import SparkContext

    return opened if isinstance(opened, SparkContext) else getattr(opened, "_sc", None)


def explain_plan(frame: DataFrame) -> str:
    """Return the plan of a frame of Spark Connect as text. `DataFrame.explain` prints it."""
    return frame._explain_string()  # type: ignore[operator, no-any-return]


def find_connect_service(session: SparkSession) -> Any:
    """Return Scala's object of the Spark Connect server, whose methods return what runs. Python has no call for it."""
    return getattr(getattr(session._jvm, "org.apache.spark.sql.connect.service.SparkConnectService$"), "MODULE$")
