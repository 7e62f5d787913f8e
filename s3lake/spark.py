"""The Spark session: settings that landing needs, and where the session comes from."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from s3lake import jars

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from s3lake import sink


def settings(spark: sink.Spark) -> dict[str, str]:
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
        # Without kafka, whose first API turns every record into objects and back: a seventh of the JVM's time.
        "spark.sql.sources.useV1SourceList": "avro,csv,json,orc,parquet,text",
    }
    if spark.master.startswith("local"):
        ours |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        ours["spark.driver.extraJavaOptions"] = f"{_collector()} {_quiet()} {_homeless()}"
    if "spark.jars.packages" not in spark.conf and "spark.jars" not in spark.conf:
        ours["spark.jars"] = ",".join(map(str, jars.spark_kafka_jars()))
    return ours | spark.conf


def _collector() -> str:
    # G1, the default, holds 300 MB more: what it collects is short-lived, but Kafka's buffers are humongous to it.
    return "-XX:+UseSerialGC" if (os.cpu_count() or 1) <= 4 else "-XX:+UseParallelGC"


def _quiet() -> str:
    return f"-Dlog4j2.configurationFile={(Path(__file__).parent / 'log4j2.properties').as_uri()}"


def _homeless() -> str:
    # Spark 4.0 makes an `artifacts` directory where it is started (SPARK-52396), in somebody's checkout.
    home = tempfile.mkdtemp(prefix="s3lake-spark-")
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    return f"-Duser.dir={home}"


def session(spark: sink.Spark) -> SparkSession:
    """The session of this process, made on first use.

    Raises:
        ConfigurationError: there is no Java, or none that Spark runs on.
    """
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    if spark.master.startswith("sc://"):
        return SparkSession.builder.remote(spark.master).getOrCreate()
    os.environ["JAVA_HOME"] = str(jars.find_java().parent.parent)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else workers are whatever `python3` is on PATH
    if spark.master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder
    for name, value in settings(spark).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
