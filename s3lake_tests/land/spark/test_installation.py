"""A run whose s3lake or Python is not that of Spark's workers is told so before it begins."""

import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import PySparkException

from s3lake.errors import SparkUnavailableError
from s3lake.land.spark.installation import agree, here
from s3lake_tests.land.spark.spark_server import ROOT, SparkServer, opened

OURS = here()


class Asked:
    """A session whose workers answer, or fail, as they are told to; it counts how often they are asked."""

    def __init__(self, answer: "tuple[str, ...] | Exception") -> None:
        self.answer, self.asked, self.settings = answer, 0, dict[str, str]()
        self.conf = SimpleNamespace(get=lambda name, default: self.settings.get(name, default), set=self._set)

    def range(self, *_: int) -> "Asked":
        return self

    def mapInArrow(self, *_: Any) -> "Asked":
        return self

    def collect(self) -> list[tuple[str, ...]]:
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return [self.answer]

    def _set(self, name: str, value: str) -> None:
        self.settings[name] = value


def told(answer: "tuple[str, ...] | Exception") -> str:
    session: Any = Asked(answer)
    with pytest.raises(SparkUnavailableError) as error:
        agree(session)
    assert str(error.value).count(str(OURS)) == 1
    return str(error.value)


def test_a_session_of_the_same_code_is_asked_once() -> None:
    session: Any = Asked(OURS)
    agree(session)
    agree(session)
    assert session.asked == 1


def test_workers_with_another_version_are_told_with_both() -> None:
    message = told(("0.0.9", "abcdef0123456789", OURS.python))
    assert message.startswith(f"Spark's Python workers have s3lake 0.0.9 (code abcdef01) and Python {OURS.python}, and")
    assert "nothing was begun. Install the same where Spark runs" in message


def test_workers_without_s3lake_are_told() -> None:
    assert "workers have no s3lake and Python" in told(("", "", OURS.python))
    dead = "Error from python worker:\n  No module named 's3lake'\nPYTHONPATH was:"
    assert "workers have no s3lake and Python" in told(PySparkException(dead))


def test_workers_with_another_python_are_told() -> None:
    text = "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9 than that in driver: 3.11, PySpark"
    assert f"(code {OURS.digest[:8]}) and Python 3.9, and this process" in told(PySparkException(text))


def test_another_failure_is_its_own() -> None:
    session = Asked(PySparkException("[ODD] it is odd"))
    with pytest.raises(PySparkException, match="it is odd"):
        agree(session)  # type: ignore[arg-type]
    assert session.settings == {}


@pytest.mark.spark
def test_a_run_at_a_server_with_other_code_is(tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(ROOT / "s3lake", other / "s3lake", ignore=shutil.ignore_patterns("__pycache__"))
    with (other / "s3lake" / "hours.py").open("a") as changed:
        changed.write("# Of another version.\n")
    server = SparkServer(tmp_path / "home", code=other)
    try:
        run = opened("print(session().range(3).count())", server.ready()["serves"])
        out, errors = run.communicate(timeout=120)
        assert (run.returncode, out) == (1, "")
        assert re.search(r"SparkUnavailableError: Spark's Python workers have s3lake \S+ \(code \w{8}\)", errors)
    finally:
        server.kill()
