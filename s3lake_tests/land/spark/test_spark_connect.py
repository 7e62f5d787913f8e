"""Warm sessions: a Spark Connect server, the one session that runs share there, and all of landing through it."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from s3lake.config.model import Spark
from s3lake.demo.embedded_kafka import EmbeddedKafka
from s3lake.demo.embedded_s3 import EmbeddedS3
from s3lake.demo.process import free_ports
from s3lake.errors import SparkUnavailableError
from s3lake.land.spark import get_session, shared
from s3lake.land.spark.installation import Installation
from s3lake_tests.kit.cost import PATIENCE_S
from s3lake_tests.kit.lake import Lake, at, values
from s3lake_tests.kit.processes import marked
from s3lake_tests.land.spark.spark_server import ROOT, SparkServer, client, opened

TEN = "2026-01-05T10"
SETTINGS = {"spark.sql.session.timeZone": "UTC"}
SUITES = [
    "s3lake_tests/land/spark/test_failures.py",
    "s3lake_tests/source/kafka/test_dead_letters_landed.py",
    "s3lake_tests/land/sql/test_projection.py",
    "s3lake_tests/orchestration/test_io_manager.py",
    "s3lake_tests/land/hour/test_landing.py",
]
"""The tests that run again through a server. Of landing what Spark has a part in, and not what plans or commits."""
LANDING = "not test_landing or TestRefusedRecords or TestRewrite or TestFormats or TestSql"

WORKERS = """
import pyarrow as pa

def workers(batches):
    list(batches)
    columns = {"pid": pa.array([os.getpid()]), "warm": pa.array(["s3lake.land.task.pipeline" in sys.modules])}
    yield pa.RecordBatch.from_pydict(columns)

import sys
rows = session().range(0, 8, 1, 8).mapInArrow(workers, "pid long, warm boolean").collect()
print(json.dumps({"pids": sorted({row.pid for row in rows}), "warm": all(row.warm for row in rows)}))
"""

LAND = """
import logging
from s3lake.cli.request import Request
from s3lake.errors import S3LakeError
from s3lake.land.hour.landing import land
logging.basicConfig(level=logging.INFO, format="%(message)s")
[target] = Request(os.environ["CONFIG"]).targets()
try:
    print([one.new for one in land(target, [os.environ["HOUR"]])])
except S3LakeError as error:
    print(type(error).__name__, error)
"""


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that all tests may use, with more cores than this machine has."""
    with SparkServer(tmp_path_factory.mktemp("spark") / "home", master="local[3]") as running:
        yield running.ready()["serves"]


class TestAddresses:
    @pytest.mark.parametrize(
        ("given", "address"),
        [
            ("sc://spark:15002", "sc://spark:15002/;user_id=s3lake;session_id=1"),
            ("sc://spark:15002/", "sc://spark:15002/;user_id=s3lake;session_id=1"),
            ("sc://spark/;use_ssl=true;user_id=anna;", "sc://spark/;use_ssl=true;user_id=anna;session_id=1"),
            ("sc://spark/;session_id=2", "sc://spark/;session_id=2;user_id=s3lake"),
        ],
    )
    def test_name_user_and_session_and_keep_their_own_options(self, given: str, address: str) -> None:
        assert shared.address(given, "1") == address

    @pytest.mark.long
    def test_are_the_same_for_every_process_of_the_same_code(self) -> None:
        program = (
            "from s3lake.land.spark import shared; print(shared.session_id({'spark.sql.session.timeZone': 'UTC'}))"
        )
        assert client(program, "").strip() == shared.session_id(SETTINGS)

    def test_differ_with_the_settings_of_the_session_and_after_it_was_closed(self) -> None:
        found = {shared.session_id(SETTINGS, 0), shared.session_id(SETTINGS, 1), shared.session_id({})}
        assert len(found) == 3

    def test_differ_with_the_code(self, monkeypatch: pytest.MonkeyPatch) -> None:
        before = shared.session_id({})
        monkeypatch.setattr(shared, "here", lambda: Installation("0.1.0", "other", "3.11"))
        assert shared.session_id({}) != before

    def test_are_refused_at_once_without_their_secrets_if_no_server_listens(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)  # that of another test stays
        (port,) = free_ports(1)
        with pytest.raises(
            SparkUnavailableError, match=f"no Spark Connect server answers at 127.0.0.1:{port}"
        ) as raised:
            get_session(Spark(master=f"sc://127.0.0.1:{port}/;token=PLANTED"))
        assert "PLANTED" not in str(raised.value)


@pytest.mark.slow("starts a Spark Connect server of its own")
@pytest.mark.usefixtures("jvm")
class TestServer:
    def test_answers_a_check_and_a_missing_server_fails_it(self, server: str) -> None:
        (port,) = free_ports(1)
        assert (_check(server).returncode, _check(f"sc://127.0.0.1:{port}").returncode) == (0, 3)

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_that_is_interrupted_leaves_nothing_behind(self, number: signal.Signals, tmp_path: Path) -> None:
        with SparkServer(tmp_path / "home") as running:
            client(WORKERS, running.ready()["serves"])
            assert any("s3lake.land.task.worker_daemon" in " ".join(one.cmdline()) for one in marked(running.mark))
            assert running.stop(number) == 0
            assert running.left() == []

    def test_a_killed_server_leaves_no_process_behind(self, tmp_path: Path) -> None:
        with SparkServer(tmp_path / "home") as running:
            client(WORKERS, running.ready()["serves"])
            others = [one for one in marked(running.mark) if one.pid != running.process.pid]
            running.process.kill()
            _, alive = psutil.wait_procs(others, timeout=PATIENCE_S)
            assert alive == []

    def test_that_has_nothing_to_do_ends_by_itself(self, tmp_path: Path) -> None:
        with SparkServer(tmp_path / "home", "--idle", "2s") as running:
            running.ready()
            assert running.process.wait(PATIENCE_S) == 0
            assert running.left() == []

    def test_refuses_a_port_that_is_taken(self, server: str, tmp_path: Path) -> None:
        port = int(server.rpartition(":")[2])
        with SparkServer(tmp_path / "home", port=port) as running:
            assert running.process.wait(PATIENCE_S) == 2
            assert f"--host 127.0.0.1 --port {port}: cannot listen there: Address already" in running.log.read_text()

    def test_has_no_setting_on_a_command_line(
        self, tmp_path: Path, kafka: EmbeddedKafka, s3_server: EmbeddedS3
    ) -> None:
        text = Lake(kafka, s3_server).config_text("name: events, topics: [t]")
        config = tmp_path / "s3lake.yaml"
        config.write_text(text.replace("512m}", "512m, conf: {spark.hadoop.fs.s3a.planted: PLANTED}}"))
        with SparkServer(tmp_path / "home", str(config)) as running:
            address = running.ready()["serves"]
            lines = [" ".join(one.cmdline()) for one in marked(running.mark)]
            assert any("SparkSubmit" in line for line in lines)
            assert [line for line in lines if "PLANTED" in line] == []
            program = "print(session().conf.get('spark.hadoop.fs.s3a.planted'))"
            assert client(program, address).strip() == "PLANTED"


@pytest.mark.slow("starts a Spark Connect server of its own")
@pytest.mark.usefixtures("jvm")
class TestRuns:
    def test_have_the_same_warm_workers_although_each_stops_its_session(self, server: str) -> None:
        first = client(WORKERS + "session().stop()", server)
        assert json.loads(first)["warm"]
        assert client(WORKERS, server) == first
        assert client("print(spark.parallelism(session()))", server).strip() == "3"

    def test_find_nothing_of_those_before(
        self, server: str, kafka: EmbeddedKafka, s3_server: EmbeddedS3, tmp_path: Path
    ) -> None:
        program = """
made = session(**{"spark.sql.shuffle.partitions": "3"})
seen = made._session_id, made.catalog.listTables(), sorted(map(tuple, made.sql("SET").collect()))
print([*seen, made.conf.get("spark.sql.shuffle.partitions")])
"""
        before = client(program, server)
        lake = Lake(kafka, s3_server)
        topic, config = lake.topic(), tmp_path / "s3lake.yaml"
        lake.produce(topic, [*values(10), b"no JSON"], at(TEN, 5))
        text = lake.config_text(
            f"name: events, topics: ['{topic}'], sql: {{select: 'id + 1 as next'}}, errors: {{tolerance: all}}"
        )
        spark = f"{server}', conf: {{spark.sql.shuffle.partitions: '3'}}"
        config.write_text(text.replace("local[2]'", spark))
        assert client(LAND, server, CONFIG=str(config), HOUR=TEN) == "[1]\n"
        assert client(program, server) == before

    def test_make_a_session_again_that_the_server_has_closed(self, server: str) -> None:
        program = """
conf = {"spark.sql.shuffle.partitions": "7"}
first = session(**conf)
before = first._session_id
first.client.release_session()
made = session(**conf)
print(made._session_id != before, made.range(3).count(), session(**conf) is made)
"""
        assert client(program, server).strip() == "True 3 True"

    def test_make_a_session_again_at_a_server_that_was_started_again(self, tmp_path: Path) -> None:
        (port,) = free_ports(1)
        program = """
import sys
print(session().range(3).count(), flush=True)
print(sys.stdin.readline().strip())
print(session().range(4).count())
"""
        with SparkServer(tmp_path / "home", port=port) as first:
            running = opened(program, first.ready()["serves"])
            assert running.stdout is not None
            assert running.stdout.readline() == "3\n"
        with SparkServer(tmp_path / "home", port=port) as second:
            second.ready()
            out, errors = running.communicate("again\n", timeout=PATIENCE_S)
            assert out == "again\n4\n", errors


@pytest.mark.slow("starts a Spark Connect server of its own")
@pytest.mark.usefixtures("jvm")
def test_a_run_whose_server_is_killed_may_pass_later_and_then_lands_everything_once(
    kafka: EmbeddedKafka, s3_server: EmbeddedS3, tmp_path: Path
) -> None:
    lake = Lake(kafka, s3_server)
    topic, settings = lake.topic(partitions=2), "batch_records: 200, flush: {count: 50}"
    for partition in (0, 1):
        lake.produce(topic, values(4_000), at(TEN, 5), partition)
    (port,) = free_ports(1)
    config = tmp_path / "s3lake.yaml"
    text = lake.config_text(f"name: events, topics: ['{topic}'], {settings}")
    config.write_text(text.replace("local[2]", f"sc://127.0.0.1:{port}"))
    with SparkServer(tmp_path / "home", port=port) as first:
        run = opened(LAND, first.ready()["serves"], CONFIG=str(config), HOUR=TEN)
        assert run.stderr is not None
        while "landed" not in run.stderr.readline():
            assert run.poll() is None
    killed_s = time.monotonic()
    error, _ = run.communicate(timeout=2 * PATIENCE_S)
    # Killed while a job ran, or between two micro-batches, when the next one finds no server.
    lost = "the session at the Spark Connect server was lost while landing|no Spark Connect server answers"
    assert re.match(f"SparkUnavailableError ({lost})", error)
    with SparkServer(tmp_path / "home", port=port) as second:
        again = opened(LAND, second.ready()["serves"], CONFIG=str(config), HOUR=TEN)
        assert again.stderr is not None
        while "landed" not in again.stderr.readline():
            assert again.poll() is None
        assert time.monotonic() - killed_s < PATIENCE_S, "a timeout: no commit yet"
        output, _ = again.communicate(timeout=2 * PATIENCE_S)
    commits = json.loads(output)[0]
    assert 0 < commits < 40
    report = lake.verify(lake.target(topic, settings))
    assert report.differences == ()
    assert (report.compared, report.landed) == (8_000, 8_000)


@pytest.mark.slow("starts a Spark Connect server of its own")
@pytest.mark.usefixtures("jvm")
@pytest.mark.skipif("NIGHTLY" not in os.environ, reason="it lands for minutes: .ci/nightly runs it")
@pytest.mark.timeout(13 * PATIENCE_S)
def test_the_suites_of_landing_pass_through_a_spark_connect_server(server: str) -> None:
    environment = {**os.environ, "SPARK_MASTER_OF_TESTS": server}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "spark", "-k", LANDING, *SUITES]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=12 * PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stdout[-8000:]
    program = "print(session(**{'spark.sql.shuffle.partitions': '1'}).catalog.listTables())"
    assert client(program, server).strip() == "[]", "the suites' temporary views"


def _check(address: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "s3lake", "spark", "--check", address]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
