"""The archive of Spark's classes: written once, at a process's end, and used from then on."""

import atexit
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from s3lake.land.spark import class_archive, jars

SESSION = """
from s3lake.land import spark
from s3lake.config import model
session = spark.get_session(model.Spark(master="local[1]", driver_memory="512m"))
print(session.range(3).count(), session.conf.get("spark.driver.extraJavaOptions"))
"""


def session(cache: Path) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "S3LAKE_CACHE": str(cache)}
    return subprocess.run([sys.executable, "-c", SESSION], env=environment, capture_output=True, text=True, check=True)


@pytest.mark.slow("starts sessions in processes of their own")
@pytest.mark.usefixtures("jvm")
def test_is_the_same_whatever_options_the_environment_gives_java(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("S3LAKE_CACHE", str(tmp_path))
    java = jars.find_java()
    archive = class_archive.find_archive(java)
    archive.parent.mkdir()
    archive.touch()
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"-Djava.io.tmpdir={tmp_path}")
    assert class_archive.java_options(java).startswith(f"-XX:SharedArchiveFile={archive} ")


@pytest.mark.slow("starts sessions in processes of their own")
@pytest.mark.usefixtures("jvm")
def test_is_written_by_the_first_session_and_used_by_the_next(tmp_path: Path) -> None:
    first = session(tmp_path)
    (archive,) = (tmp_path / "classes").iterdir()
    assert archive.suffix == ".jsa"
    assert f"-XX:ArchiveClassesAtExit={archive.with_suffix('')}." in first.stdout
    assert "Traceback" not in first.stderr
    second = session(tmp_path)
    assert f"-XX:SharedArchiveFile={archive} " in second.stdout
    assert second.stdout.splitlines()[-1].startswith("3 ")
    assert list((tmp_path / "classes").iterdir()) == [archive]


@pytest.mark.slow("starts sessions in processes of their own")
@pytest.mark.usefixtures("jvm")
def test_is_kept_by_a_command_that_ends(tmp_path: Path) -> None:
    (tmp_path / "s3lake.yaml").write_text(
        "kafka: {bootstrap_servers: 127.0.0.1:1}\n"
        'sinks: [{name: events, topics: [orders], bucket: lake, start: 2026-11-20T00, sql: {where: "n > 0"}}]\n'
    )
    (tmp_path / "records.jsonl").write_text('{"topic": "orders", "value": {"n": 1}}\n')
    (tmp_path / "classes").mkdir()
    (tmp_path / "classes" / f"{class_archive.find_archive(jars.find_java()).stem}.1").write_text("of a killed process")
    command = [sys.executable, "-m", "s3lake", "preview", "s3lake.yaml", "--records", "records.jsonl"]
    path = os.pathsep.join([str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "S3LAKE_CACHE": str(tmp_path), "PYTHONPATH": path}
    subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=True)
    assert [file.suffix for file in (tmp_path / "classes").iterdir()] == [".jsa"]


@pytest.mark.slow("starts sessions in processes of their own")
@pytest.mark.usefixtures("jvm")
def test_an_archive_that_does_not_fit_is_left_out_without_a_warning(tmp_path: Path) -> None:
    java = jars.find_java()
    (tmp_path / "classes").mkdir()
    (tmp_path / "classes" / class_archive.find_archive(java).name).write_bytes(b"no archive")
    found = session(tmp_path)
    assert found.stdout.startswith("3 ")
    assert "cds" not in found.stderr


class TestWithoutSpark:
    @pytest.fixture
    def java(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.setenv("S3LAKE_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(atexit, "register", lambda *_: None)
        program = tmp_path / "java"
        program.write_text("#!/bin/sh\necho 'openjdk version \"17.0.1\"' >&2\n")
        program.chmod(0o700)
        return program

    def test_another_java_has_another_archive(self, java: Path) -> None:
        before = class_archive.find_archive(java)
        java.write_text("#!/bin/sh\necho 'openjdk version \"17.0.2\"' >&2\n")
        assert class_archive.find_archive(java) != before

    def test_a_layer_of_an_image_that_keeps_whole_seconds_has_the_same_archive(
        self, java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        jar = tmp_path / "spark.jar"
        jar.touch()
        monkeypatch.setattr(jars, "pyspark_jars_dir", lambda: tmp_path)
        os.utime(jar, ns=(0, 1_700_000_000_987_654_321))
        before = class_archive.find_archive(java)
        os.utime(jar, (0, 1_700_000_000))
        assert class_archive.find_archive(java) == before
        os.utime(jar, (0, 1_700_000_001))
        assert class_archive.find_archive(java) != before

    def test_archives_that_were_not_used_for_a_month_are_deleted(self, java: Path) -> None:
        used = class_archive.find_archive(java)
        used.parent.mkdir(parents=True)
        month, day = time.time() - class_archive.UNUSED_S, 86_400
        ages = {  # of the last read and the last write
            used.name: (month - day, month - day),
            "0123456789abcdef.jsa": (month - day, month - day),
            "0123456789abcdef.77": (month - day, month - day),
            "fedcba9876543210.jsa": (month + day, month - day),
            "fedcba9876543210.78": (month - day, month + day),
        }
        for name, times in ages.items():
            (used.parent / name).touch()
            os.utime(used.parent / name, times)
        assert class_archive.java_options(java).startswith(f"-XX:SharedArchiveFile={used} ")
        left = {file.name for file in used.parent.iterdir()}
        assert left == {used.name, "fedcba9876543210.jsa", "fedcba9876543210.78"}

    def test_a_cache_that_cannot_be_written_is_done_without(self, java: Path, tmp_path: Path) -> None:
        (tmp_path / "cache").write_text("a file where the directory should be")
        assert class_archive.java_options(java) == ""
