"""A landing without SQL opens a context of Spark, and SQL a session in it."""

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from s3lake.land.spark.opened_spark import find_session, is_session, run_nothing
from s3lake.land.spark.starting import is_started
from s3lake_tests.land.spark.spark_server import client

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OPEN = """
from s3lake.land.spark.numbered_tasks import run_numbered_tasks
from s3lake.land.spark.opened_spark import is_session
given = Spark(master="local[1]", conf=json.loads(os.environ.get("CONF", "{}")))
made = spark.open_spark(given)
"""


def test_a_context_has_a_session_and_is_none(spark: "SparkSession") -> None:
    context = spark.sparkContext
    assert (is_session(spark), is_session(context)) == (True, False)
    assert find_session(spark) is spark
    assert find_session(context).range(3).count() == 3
    assert is_started()


def test_a_job_without_work_runs_in_a_context_in_its_session_and_in_one_without_it(spark: "SparkSession") -> None:
    asked: list[object] = []
    remote: Any = SimpleNamespace(range=lambda count: asked.append(count) or spark.range(count))
    for opened in (spark, spark.sparkContext, remote):
        run_nothing(opened)
    assert asked == [1]


@pytest.mark.usefixtures("jvm")
@pytest.mark.slow("starts sessions in processes of their own")
def test_a_jvm_loads_sql_with_the_session_that_is_asked_for_after_a_job(tmp_path: Path) -> None:
    program = f"""{_OPEN}
print(is_session(made), run_numbered_tasks(made, 2, lambda number: [b"done"]))
before = open(os.environ["LOADED"]).read()
asked = spark.get_session(given)
after = open(os.environ["LOADED"]).read()
print("org.apache.spark.sql.internal.SQLConf " in before, "org.apache.spark.sql.internal.SQLConf " in after)
print(asked.sparkContext is made, spark.open_spark(given) is made, asked.conf.get("spark.sql.session.timeZone"))
"""
    conf = f'{{"spark.driver.extraJavaOptions": "-Xlog:class+load:file={tmp_path / "loaded"}"}}'
    printed = client(program, "local[1]", LOADED=str(tmp_path / "loaded"), CONF=conf).splitlines()
    assert printed == ["False [b'done', b'done']", "False True", "True True UTC"]


@pytest.mark.usefixtures("jvm")
@pytest.mark.slow("starts sessions in processes of their own")
def test_an_archive_of_classes_is_written_by_a_session(tmp_path: Path) -> None:
    program = f"{_OPEN}print(is_session(made))"
    printed = [client(program, "local[1]", S3LAKE_CACHE=str(tmp_path)) for _ in range(2)]
    assert printed == ["True\n", "False\n"]


@pytest.mark.usefixtures("jvm")
@pytest.mark.slow("starts a session in a process of its own")
def test_a_context_of_the_user_is_landed_with_in_a_session_that_is_asked() -> None:
    program = """
from pyspark import SparkContext
from s3lake.land.spark.opened_spark import is_session
theirs = SparkContext("local[1]")
made = spark.open_spark(Spark(master="local[2]"))
print(is_session(made), made.sparkContext is theirs, theirs.defaultParallelism)
"""
    assert client(program, "local[1]").splitlines()[-1] == "True True 1"


@pytest.mark.usefixtures("jvm")
@pytest.mark.slow("starts a context in a process of its own")
def test_a_context_that_spark_has_stopped_by_itself_is_made_again() -> None:
    program = f"""{_OPEN}
made._jsc.sc().stop()
again = spark.open_spark(given)
print(again is not made, run_numbered_tasks(again, 1, lambda number: [b"done"]))
"""
    assert client(program, "local[1]").splitlines() == ["True [b'done']"]
