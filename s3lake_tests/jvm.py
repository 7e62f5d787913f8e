"""Classes of Java in a JVM of their own, which ends with this process."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from s3lake.spark import jars


@contextmanager
def running(classpath: Iterable[Path], options: Sequence[str] = ()) -> Iterator[Any]:
    """What py4j, which pyspark ships, calls `jvm`: packages and classes as attributes."""
    from py4j import java_gateway, protocol
    from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

    py4j = next(jars.pyspark_jars_dir().glob("py4j-*.jar"))
    port, process = launch_gateway(
        jarpath=str(py4j),
        classpath=os.pathsep.join(map(str, classpath)),
        javaopts=["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *options],
        java_path=str(jars.find_java()),
        die_on_exit=True,
        return_proc=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auto_convert=True))
    try:
        # PySpark replaces this in a process that has a session of its own, and asks Spark's JVM what was thrown in any.
        with mock.patch.object(java_gateway, "get_return_value", protocol.get_return_value):
            yield gateway.jvm
    finally:
        gateway.shutdown()
        process.stdin.close()
        process.wait(timeout=30)
