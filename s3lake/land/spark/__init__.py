"""The Spark session: settings that landing needs, and where the session, or the context, comes from."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from s3lake.land.spark import class_archive, jars, launch, private_pyspark, shared, spark_variables
from s3lake.land.spark.failures import translate_spark_error
from s3lake.land.spark.installation import OURS, agree, fit, is_ours
from s3lake.land.spark.opened_spark import find_session
from s3lake.scratch import scratch

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from s3lake.config import model
    from s3lake.land.spark.opened_spark import OpenedSpark

A = TypeVar("A")


def settings(spark: model.Spark) -> dict[str, str]:
    """Every setting of the session; those in `spark.conf` come last and win."""
    ours = {
        "spark.master": spark.master,
        "spark.app.name": "s3lake",
        "spark.driver.memory": spark.driver_memory,
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        # 256 MB, the default, is more direct memory than a small heap has when messages are large.
        "spark.sql.execution.arrow.maxBytesPerBatch": str(16 * 2**20),
        "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
        # Python workers give back what they no longer use: 25 MB less for each.
        "spark.executorEnv.MALLOC_ARENA_MAX": "2",
        "spark.executorEnv.ARROW_DEFAULT_MEMORY_POOL": "system",
        # A user's json.py where a run is started would take the place of Python's own (Python 3.11 and later).
        "spark.executorEnv.PYTHONSAFEPATH": "1",
    }
    if spark.master.startswith("local"):
        ours |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    if not spark.master.startswith("sc://"):
        # Tasks are shared out by the cores that there are: a cluster's come one after the other.
        ours["spark.scheduler.minRegisteredResourcesRatio"] = "0.8"
        ours["spark.python.daemon.module"] = "s3lake.land.task.worker_daemon"
        quiet = f"-Dlog4j2.configurationFile={(Path(__file__).parent / 'log4j2.properties').as_uri()}"
        ours["spark.driver.extraJavaOptions"] = " ".join([_memory(), _PATIENT, quiet, _homeless()])
    return ours | spark.conf


# The optimising compiler comes in ten times later than by default: where records never pass the JVM few methods are
# worth it, and for SQL over millions of rows it still comes.
_PATIENT = (
    "-XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000 "
    "-XX:Tier4CompileThreshold=150000 -XX:Tier4BackEdgeThreshold=400000"
)


def _memory() -> str:
    # G1, the default, holds more memory and starts more threads, for a heap that records never pass; and a heap begins
    # with a 64th of the machine's memory, touched or not.
    collector = "-XX:+UseSerialGC" if (os.cpu_count() or 1) <= 4 else "-XX:+UseParallelGC"
    return f"{collector} -Xms64m -XX:MinHeapFreeRatio=10 -XX:MaxHeapFreeRatio=20"


def _homeless() -> str:
    # Spark 4.0 makes an `artifacts` directory where it is started (SPARK-52396), in a user's checkout.
    with scratch(0):
        home = tempfile.mkdtemp(prefix="s3lake-spark-")
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    return jars.quote_option(f"-Duser.dir={home}")


def open_spark(spark: model.Spark) -> OpenedSpark:
    """Return what the jobs of this process run in: a context of s3lake's own without a cluster, else the session.

    Raises:
        ConfigurationError: there is no Java, or none that Spark runs on.
        SparkUnavailableError: there is no Spark Connect server at the address, or Spark's workers have another s3lake.
    """
    if not spark.master.startswith("local"):
        return get_session(spark)
    context = private_pyspark.find_running_context()
    if context is not None:
        return context if is_ours(context) else get_session(spark)
    context = _start(spark, settings(spark) | OURS, _open_context)
    # Who needs SQL maps its classes too, from the archive that this JVM writes.
    return find_session(context) if class_archive.is_written() else context


def get_session(spark: model.Spark) -> SparkSession:
    """The session of this process, made on first use; with `sc://host:port` the one that runs share there.

    Raises:
        ConfigurationError: there is no Java, or none that Spark runs on.
        SparkUnavailableError: there is no Spark Connect server at the address, or Spark's workers have another s3lake.
    """
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if spark.master.startswith("sc://"):
        try:
            # Other settings are fixed when the server starts.
            of_sql = {name: value for name, value in settings(spark).items() if name.startswith("spark.sql.")}
            return shared.open_shared_session(spark.master, of_sql, active)
        except Exception as error:
            raise translate_spark_error(error, f"asking for a session at {shared.endpoint(spark.master)}") from None
    if active is not None:
        return fit(active)
    if spark.master.startswith("local"):
        context = private_pyspark.find_running_context()
        if context is not None and is_ours(context):
            return find_session(context)
        return start_session(spark, settings(spark) | OURS)
    opened = start_session(spark, settings(spark))
    try:
        agree(opened)
    except Exception as error:
        opened.stop()
        raise translate_spark_error(error, f"asking the workers of {spark.master}") from None
    return opened


def start_session(spark: model.Spark, conf: dict[str, str]) -> SparkSession:
    """A session with a JVM of its own.

    Raises:
        ConfigurationError: there is no Java, or none that Spark runs on.
    """
    return _start(spark, conf, _open_session)


def _start(spark: model.Spark, conf: dict[str, str], opening: Callable[[dict[str, str]], A]) -> A:
    os.environ.pop("SPARK_CONNECT_MODE_ENABLED", None)  # set by PySpark in a client, and inherited by what that starts
    private_pyspark.keep_tests_out()
    java = jars.find_java()
    os.environ["JAVA_HOME"] = str(java.parent.parent)
    # PySpark reads the variable and not the setting; without either, workers are whatever `python3` is on PATH.
    python = spark.conf.get("spark.pyspark.python") or os.environ.get("PYSPARK_PYTHON") or sys.executable
    spark_variables.require_same_spark()
    if spark.master.startswith("local"):
        is_setting = "spark.pyspark.python" in spark.conf
        spark_variables.require_same_python(python, "spark.pyspark.python" if is_setting else "PYSPARK_PYTHON")
    os.environ["PYSPARK_PYTHON"] = python
    if spark.master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    if "spark.driver.extraJavaOptions" not in spark.conf:
        conf["spark.driver.extraJavaOptions"] += f" {class_archive.java_options(java)}"
    with launch.end_when_interrupted():
        try:
            launch.launch(conf)
            return opening(conf)
        except Exception as error:
            raise translate_spark_error(error, f"starting a session with spark.master {spark.master}") from None


def _open_session(conf: dict[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession

    if private_pyspark.find_running_context() is not None:
        return SparkSession.builder.config(map=dict(conf)).getOrCreate()
    # Settings that are the session's own make it load all of SQL, which a landing needs for a sink's `sql` only.
    return find_session(_open_context(conf))


def _open_context(conf: dict[str, str]) -> SparkContext:
    from pyspark import SparkConf, SparkContext

    return SparkContext.getOrCreate(SparkConf().setAll(list(conf.items())))


def parallelism(opened: OpenedSpark) -> int:
    """How many tasks run at once, now: executors come and go."""
    context = private_pyspark.find_context(opened)
    if context is not None:
        return int(context.defaultParallelism)
    # Spark Connect has no call for it, but a plan that leaves the number to the server shows it.
    shown = re.search(r"splits=(\d+)", private_pyspark.explain_plan(find_session(opened).range(1)))
    return int(shown[1]) if shown else os.cpu_count() or 1
