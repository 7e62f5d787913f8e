"""Spark's session: the options of its JVM, and how it gets them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from s3lake_tests.kit.cost import PATIENCE_S
from s3lake_tests.land.spark.spark_server import client, opened

pytestmark = [pytest.mark.usefixtures("jvm"), pytest.mark.slow("starts sessions in processes of their own")]

_PROGRAM = r"""
import json, os, pathlib
from s3lake.config.model import Spark
from s3lake.land.spark import get_session

conf = json.loads(os.environ["ASKED"])
made = get_session(Spark(master="local[1]", driver_memory="512m", conf=conf))
lines = []
for one in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
    try:
        lines.append(one.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace"))
    except OSError:
        pass
print(json.dumps({
    "java": [line for line in lines if "SparkSubmit" in line and "s3lake-spark-conf-" in line],
    "secret": [line for line in lines if next(iter(conf.values()))[:7] in line],
    "held": {name: made.sparkContext.getConf().get(name) for name in conf},
    "heap": made._jvm.java.lang.Runtime.getRuntime().maxMemory(),
    "left": [str(one) for one in pathlib.Path(__import__("tempfile").gettempdir()).glob("s3lake-spark-conf-*")],
}))
made.stop()
"""


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="other systems show command lines elsewhere")
def test_no_setting_of_spark_is_on_a_command_line(tmp_path: Path) -> None:
    asked = {"spark.hadoop.fs.s3a.secret.key": "PLANTED: it's a # \\ secret=é", "spark.sql.shuffle.partitions": "3"}
    environment = {**os.environ, "ASKED": json.dumps(asked), "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _PROGRAM],
        env=environment,
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["java"]
    assert found["secret"] == []
    assert found["held"] == asked
    assert found["heap"] < 600 * 2**20
    assert found["left"] == []


def test_a_session_that_spark_has_stopped_by_itself_is_made_again() -> None:
    program = """
first = session()
first._jsc.sc().stop()
second = session()
print(second is not first, second.range(3).count())
"""
    assert client(program, "local[1]").split() == ["True", "3"]


def test_a_session_starts_with_no_word_of_spark_s_own() -> None:
    out, errors = opened("print(session().range(3).count())", "local[1]").communicate(timeout=2 * PATIENCE_S)
    assert out == "3\n", errors
    # The JVM's own, which no option takes away.
    assert [line for line in errors.splitlines() if "incubator modules" not in line] == []


@pytest.mark.parametrize("locale", ["POSIX", "C.UTF-8"])
def test_a_session_starts_with_directories_of_any_name(tmp_path: Path, locale: str) -> None:
    odd = tmp_path / 'Ünï cödé\'s (100%20) "dir" $x'
    for name in ("tmp", "home", "cache"):
        (odd / name).mkdir(parents=True)
    places = {"TMPDIR": str(odd / "tmp"), "HOME": str(odd / "home"), "S3LAKE_CACHE": str(odd / "cache")}
    program = """
opened = session()
print(opened.range(3).count(), opened._jvm.System.getProperty("user.dir"))
from s3lake.land.spark import class_archive
class_archive.keep()
"""
    for _ in ("writes the archive of classes", "reads it"):
        count, _, directory = client(program, "local[1]", LC_ALL=locale, **places).strip().partition(" ")
        assert (count, Path(directory).parent) == ("3", odd / "tmp")
        assert [file.suffix for file in (odd / "cache" / "classes").iterdir()] == [".jsa"]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 always puts the directory first")
def test_workers_import_modules_of_the_directory_and_python_s_own_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    program = """
from pathlib import Path
opened = session()
for name in ("json", "types", "random", "logging"):
    Path(f"{name}.py").write_text("raise SystemExit('this is not of Python')")
Path("of_a_user.py").write_text("def double(n): return 2 * n")
def work(number):
    import json, of_a_user
    return json.loads(str(of_a_user.double(number)))
print(opened.sparkContext.parallelize([1, 2]).map(work).collect())
"""
    assert client(program, "local[1]") == "[2, 4]\n"
