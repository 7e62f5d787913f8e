"""Variables that choose another Spark or another Python than this process's are refused before a JVM starts."""

import sys
from pathlib import Path

import pyspark
import pytest

from s3lake.config.model import Spark
from s3lake.errors import ConfigurationError
from s3lake.land.spark import settings, start_session
from s3lake.land.spark.spark_variables import require_same_python, require_same_spark

OURS = f"{sys.version_info.major}.{sys.version_info.minor}"


def make_program(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def make_spark(home: Path, *versions: str) -> str:
    make_program(home / "bin" / "spark-submit", "exit 1")
    (home / "jars").mkdir()
    for version in versions:
        (home / "jars" / f"spark-core_2.13-{version}.jar").touch()
    return str(home)


def test_a_spark_home_without_spark_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    with pytest.raises(ConfigurationError, match=rf"^SPARK_HOME is {tmp_path}, but there is no program .* Unset it"):
        require_same_spark()


@pytest.mark.parametrize("version", ["3.5.1", "4.99.0", "3.5.0-amzn-1"])
def test_a_spark_home_of_another_version_is_refused(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_HOME", make_spark(tmp_path, version))
    has = ".".join(version.split(".")[:2])
    expected = rf"which has Spark {has}, and PySpark is {pyspark.__version__}\. Unset it"
    with pytest.raises(ConfigurationError, match=expected):
        require_same_spark()


@pytest.mark.parametrize("versions", [(), (pyspark.__version__,), (f"{pyspark.__version__}-amzn-0",)])
def test_a_spark_home_of_the_version_of_pyspark_is_used(
    versions: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_HOME", make_spark(tmp_path, *versions))
    require_same_spark()


def test_pyspark_without_a_spark_home_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", "")
    require_same_spark()


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("echo 3.9", rf"has Python 3\.9, and this process has {OURS}"),
        (f"echo {OURS} s3lake boto3", "lacks s3lake, boto3"),
        ("exit 1", "does not start"),
        ("echo no Python at all", "does not start"),
    ],
)
def test_a_python_that_cannot_run_tasks_is_refused(script: str, problem: str, tmp_path: Path) -> None:
    python = make_program(tmp_path / "python", script)
    with pytest.raises(ConfigurationError, match=rf"^PYSPARK_PYTHON is {python}, which {problem}\. .* unset it"):
        require_same_python(str(python), "PYSPARK_PYTHON")


def test_a_python_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"spark\.pyspark\.python is .*/none, which is not a program of this"):
        require_same_python(str(tmp_path / "none"), "spark.pyspark.python")


@pytest.mark.parametrize("script", [None, f"echo {OURS}"])
def test_a_python_with_s3lake_of_the_same_version_is_used(script: str | None, tmp_path: Path) -> None:
    python = sys.executable if script is None else str(make_program(tmp_path / "python", script))
    require_same_python(python, "PYSPARK_PYTHON")


@pytest.mark.parametrize(
    ("variable", "conf", "named"),
    [
        ("SPARK_HOME", {}, "SPARK_HOME is /missing"),
        ("PYSPARK_PYTHON", {}, "PYSPARK_PYTHON is /missing"),
        ("PATH_OF_NOTHING", {"spark.pyspark.python": "/missing"}, "spark.pyspark.python is /missing"),
    ],
)
def test_a_session_is_not_started_with_wrong_variables(
    variable: str, conf: dict[str, str], named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.setattr("s3lake.land.spark.jars.find_java", lambda: Path("/java/bin/java"))
    monkeypatch.setenv(variable, "/missing")
    asked = Spark(master="local[1]", conf=conf)
    with pytest.raises(ConfigurationError, match=named):
        start_session(asked, settings(asked))
