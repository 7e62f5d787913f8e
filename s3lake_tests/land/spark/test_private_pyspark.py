"""What s3lake uses of PySpark and PySpark does not document is there, in the version that is installed."""

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pyspark
import pytest
from pyspark import SparkContext, java_gateway
from pyspark.sql import SparkSession
from pyspark.sql.types import NumpyArrayConverter, NumpyScalarConverter

from s3lake.land.spark import private_pyspark

USED = [
    (SparkContext, "_gateway"),
    (SparkContext, "_jvm"),
    (SparkContext, "_active_spark_context"),
    (SparkContext, "_ensure_initialized"),
    (SparkSession, "_instantiatedSession"),
    (java_gateway, "Popen"),
    (NumpyScalarConverter, "can_convert"),
    (NumpyArrayConverter, "can_convert"),
]


@pytest.mark.parametrize(("owner", "name"), USED, ids=[f"{owner.__name__}.{name}" for owner, name in USED])
def test_pyspark_has_what_s3lake_uses(owner: Any, name: str) -> None:
    assert hasattr(owner, name), (
        f"PySpark {pyspark.__version__} has no {owner.__name__}.{name}: change s3lake/land/spark/private_pyspark.py"
    )


def test_values_of_numpy_are_converted_for_the_jvm_as_pyspark_does() -> None:
    import numpy as np

    values = [np.int64(1), np.array([1]), np.zeros((1, 1)), [1], {"a": 1}, 1, "a"]
    found = [[one.can_convert(value) for value in values] for one in (NumpyScalarConverter(), NumpyArrayConverter())]
    private_pyspark.keep_tests_out()
    kept = [[one.can_convert(value) for value in values] for one in (NumpyScalarConverter(), NumpyArrayConverter())]
    assert kept == found
    assert [row.index(True) for row in kept] == [0, 1]


def test_a_frame_of_spark_connect_explains_its_plan() -> None:
    from pyspark.sql.connect.dataframe import DataFrame

    assert callable(getattr(DataFrame, "_explain_string", None)), (
        f"PySpark {pyspark.__version__} has no DataFrame._explain_string: change s3lake/land/spark/private_pyspark.py"
    )


def test_pyspark_starts_its_jvm_by_the_given_function(monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []

    def refuse(command: list[str], **_: Any) -> None:
        commands.append(command)
        raise OSError("not started")

    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.setattr(SparkContext, "_jvm", None)
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    with pytest.raises(OSError, match="not started"):
        private_pyspark.start_gateway(refuse)

    assert len(commands) == 1
    assert "spark-submit" in commands[0][0]
    assert java_gateway.Popen is subprocess.Popen


def test_the_process_of_the_jvm_is_found_until_it_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=process))
        monkeypatch.setattr(SparkContext, "_jvm", object())
        assert private_pyspark.has_gateway()
        assert private_pyspark.find_gateway_process() is process

        private_pyspark.forget_gateway()
        assert not private_pyspark.has_gateway()
        assert private_pyspark.find_gateway_process() is None


def test_a_session_of_this_process_has_a_context(spark: SparkSession) -> None:
    context = private_pyspark.find_context(spark)

    assert context is spark.sparkContext
    assert private_pyspark.find_active_context() is context
    assert hasattr(context, "_accumulatorServer"), "change silence_accumulator_server in private_pyspark.py"
    assert private_pyspark.find_gateway_process() is not None


def test_a_session_whose_spark_has_stopped_by_itself_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    stops: list[bool] = []
    spark_context = SimpleNamespace(isStopped=lambda: True)
    lost = SimpleNamespace(_jsc=SimpleNamespace(sc=lambda: spark_context), stop=lambda: stops.append(True))
    monkeypatch.setattr(SparkSession, "_instantiatedSession", lost)
    private_pyspark.find_running_context()

    assert stops == [True]
