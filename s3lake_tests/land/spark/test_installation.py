"""A run is refused before it begins if Spark's workers have another s3lake or Python."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyspark
import pytest
from pyspark.errors import PySparkException

from s3lake.errors import ConfigurationError, SparkUnavailableError
from s3lake.land.spark.installation import agree, fit, here
from s3lake_tests.kit.cost import PATIENCE_S
from s3lake_tests.land.spark.spark_server import ROOT, SparkServer, opened

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OURS = here()


class AskedSession:
    """A session whose workers answer, or fail, as the test decides; it counts the requests."""

    def __init__(self, answer: "tuple[str, ...] | Exception") -> None:
        self.answer, self.asked, self.settings = answer, 0, dict[str, str]()
        self.conf = SimpleNamespace(get=lambda name, default: self.settings.get(name, default), set=self._set)

    def range(self, *_: int) -> "AskedSession":
        return self

    def mapInArrow(self, *_: Any) -> "AskedSession":
        return self

    def collect(self) -> list[tuple[str, ...]]:
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return [self.answer]

    def _set(self, name: str, value: str) -> None:
        self.settings[name] = value


def refuse_workers(answer: "tuple[str, ...] | Exception") -> str:
    session: Any = AskedSession(answer)
    with pytest.raises(SparkUnavailableError) as error:
        agree(session)
    assert str(error.value).count(str(OURS)) == 1
    return str(error.value)


def test_a_session_of_the_same_code_is_asked_once() -> None:
    session: Any = AskedSession(OURS)
    agree(session)
    agree(session)
    assert session.asked == 1


def test_workers_with_another_version_are_refused_with_both_versions() -> None:
    message = refuse_workers(("0.0.9", "abcdef0123456789", OURS.python))
    assert message.startswith(f"Spark's Python workers have s3lake 0.0.9 (code abcdef01) and Python {OURS.python}, and")
    assert "nothing was begun. Install the same where Spark runs" in message


def test_workers_without_s3lake_are_refused() -> None:
    assert "workers have no s3lake and Python" in refuse_workers(("", "", OURS.python))
    dead = "Error from python worker:\n  No module named 's3lake'\nPYTHONPATH was:"
    assert "workers have no s3lake and Python" in refuse_workers(PySparkException(dead))


def test_workers_with_another_python_are_refused() -> None:
    text = "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9 than that in driver: 3.11, PySpark"
    assert f"(code {OURS.digest[:8]}) and Python 3.9, and this process" in refuse_workers(PySparkException(text))


def test_another_failure_is_raised_as_it_is() -> None:
    session = AskedSession(PySparkException("[ODD] it is odd"))
    with pytest.raises(PySparkException, match="it is odd"):
        agree(session)  # type: ignore[arg-type]
    assert session.settings == {}


@pytest.mark.slow("starts a Spark Connect server")
@pytest.mark.usefixtures("jvm")
def test_a_run_at_a_server_with_other_code_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(ROOT / "s3lake", other / "s3lake", ignore=shutil.ignore_patterns("__pycache__"))
    with (other / "s3lake" / "hours.py").open("a") as changed:
        changed.write("# Of another version.\n")
    with SparkServer(tmp_path / "home", code=other) as server:
        run = opened("print(session().range(3).count())", server.ready()["serves"])
        out, errors = run.communicate(timeout=PATIENCE_S)
        assert (run.returncode, out) == (1, "")
        assert re.search(r"SparkUnavailableError: Spark's Python workers have s3lake \S+ \(code \w{8}\)", errors)


class Theirs(AskedSession):
    """A session that the user has made."""

    def __init__(self, answer: "tuple[str, ...] | Exception" = OURS, version: str = "4.1.0", zone: str = "UTC") -> None:
        super().__init__(answer)
        self.version, self.settings = version, {"spark.sql.session.timeZone": zone}


def refused(error: type[Exception], session: Any, **work: bool) -> str:
    with pytest.raises(error) as raised:
        fit(session, **work)
    return str(raised.value)


class TestASessionOfTheUser:
    def test_that_can_do_the_work_is_asked_once(self) -> None:
        session: Any = Theirs()
        assert fit(session, sql=True) is session
        fit(session)
        assert session.asked == 1

    def test_that_s3lake_has_made_here_is_not_asked(
        self, spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(spark, "range", None)  # by which workers are asked
        assert fit(spark) is spark

    def test_a_session_of_another_type_is_refused_with_the_types_it_may_have(self) -> None:
        assert refused(ConfigurationError, object()).startswith("spark: object is not a Spark session: give a resource")

    def test_a_session_of_an_older_spark_is_refused_with_the_version_to_have(self) -> None:
        message = refused(SparkUnavailableError, Theirs(version="3.5.4"))
        assert message.startswith("the session is of Spark 3.5.4, and s3lake needs Spark 4: nothing was begun.")
        assert message.endswith(f"of PySpark's own version, {pyspark.__version__}")

    def test_a_session_whose_workers_lack_s3lake_is_refused_with_what_to_install(self) -> None:
        message = refused(SparkUnavailableError, Theirs(PySparkException("No module named 's3lake'")))
        assert "have no s3lake" in message
        assert "Install the same where Spark runs" in message

    def test_that_cannot_run_python_is_refused_with_both_versions(self) -> None:
        message = refused(SparkUnavailableError, Theirs(PySparkException("unknown eval type 207"), version="4.0.0"))
        assert "unknown eval type 207; nothing was begun" in message
        assert f"It is of Spark 4.0.0, and this process has PySpark {pyspark.__version__}" in message

    def test_that_was_lost_is_reported_as_lost(self) -> None:
        lost = PySparkException("Cannot call methods on a stopped SparkContext")
        assert "Spark went away while asking the session's workers" in refused(SparkUnavailableError, Theirs(lost))

    def test_a_session_of_another_time_zone_is_refused_if_sql_would_read_times_in_it(self) -> None:
        fit(Theirs(zone="Europe/Rome"))  # type: ignore[arg-type]
        message = refused(ConfigurationError, Theirs(zone="Europe/Rome"), sql=True)
        assert message.startswith("the session's spark.sql.session.timeZone is Europe/Rome, and sql reads and writes")


_USERS_OWN = """
from pyspark.sql import SparkSession
from s3lake.land.spark.installation import fit, here

users = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
session = users.config("spark.sql.session.timeZone", "UTC").getOrCreate()
assert fit(session, sql=True) is session
print(session.conf.get("spark.s3lake.installation") == here().digest)
session.stop()
"""


@pytest.mark.slow("starts a session in a process of its own")
@pytest.mark.usefixtures("jvm")
def test_a_real_session_of_the_user_is_tried_before_it_is_used() -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _USERS_OWN],
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(Path(__file__).parents[3])},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (0, "True\n"), ran.stderr
