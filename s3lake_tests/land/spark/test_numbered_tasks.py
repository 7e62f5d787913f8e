"""Tasks of Spark that run a Python function each get their number."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from s3lake.land.spark.numbered_tasks import run_numbered_tasks
from s3lake_tests.land.spark.spark_server import client

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def repeat(number: int) -> Iterator[bytes]:
    for _ in range(number):
        yield b"%d" % number


def test_results_of_tasks_are_in_the_order_of_their_numbers(spark: "SparkSession") -> None:
    assert run_numbered_tasks(spark, 4, repeat) == [b"1", b"2", b"2", b"3", b"3", b"3"]


def test_a_session_without_a_context_runs_the_same_tasks_by_sql(spark: "SparkSession") -> None:
    server: Any = SimpleNamespace(range=spark.range)  # as a client of Spark Connect
    assert run_numbered_tasks(server, 4, repeat) == [b"1", b"2", b"2", b"3", b"3", b"3"]


@pytest.mark.usefixtures("jvm")
@pytest.mark.slow("starts a session in a process of its own")
def test_a_session_and_its_tasks_import_neither_pandas_nor_pyspark_s_tests() -> None:
    program = """
import sys
from s3lake.land.spark.numbered_tasks import run_numbered_tasks
run_numbered_tasks(session(), 2, lambda number: [b"done"])
print(sorted({"pandas", "grpc", "pyspark.testing"} & sys.modules.keys()))
"""
    assert client(program, "local[1]") == "[]\n"


@pytest.mark.usefixtures("jvm")
@pytest.mark.slow("starts a session in a process of its own")
def test_tasks_let_a_jvm_load_neither_planner_nor_compiler_of_sql(tmp_path: Path) -> None:
    program = """
from s3lake.land.spark.numbered_tasks import run_numbered_tasks
made = session(**{"spark.driver.extraJavaOptions": "-Xlog:class+load:file=" + os.environ["LOADED"]})
run_numbered_tasks(made, 2, lambda number: [b"done"])
before = open(os.environ["LOADED"]).read()
made.range(1).collect()
after = open(os.environ["LOADED"]).read()
for name in ("catalyst.optimizer.Optimizer ", "catalyst.expressions.codegen.CodeGenerator "):
    print(f"org.apache.spark.sql.{name}" in before, f"org.apache.spark.sql.{name}" in after)
print(made.conf.get("spark.sql.session.timeZone"))
"""
    printed = client(program, "local[1]", LOADED=str(tmp_path / "loaded")).splitlines()
    assert printed == ["False True", "False True", "UTC"]
