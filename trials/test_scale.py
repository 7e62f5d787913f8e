"""Landing on a Spark cluster, direct and behind Spark Connect: what dies there costs no record."""

import dataclasses
import json
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from s3lake import hours
from s3lake.demo.embedded_kafka import EmbeddedKafka
from s3lake.demo.embedded_s3 import EmbeddedS3
from s3lake.hours import DAY_MS
from s3lake.index.store import PendingUpload
from s3lake.index.store.s3_store import S3Store
from s3lake.land.topic.topic_sink import TopicSink
from s3lake_tests.kit.cost import PATIENCE_S
from s3lake_tests.kit.lake import Lake, at, values
from s3lake_tests.kit.processes import marked, until
from s3lake_tests.land.spark.spark_server import SparkServer, client, opened
from trials.spark_cluster import CORES, Cluster

pytestmark = [
    pytest.mark.timeout(400),
    pytest.mark.skipif(sys.platform != "linux", reason="elsewhere 127.0.0.2 is not this machine's"),
]

TEN = "2026-01-05T10"
RECORDS, FILE = 4_000, 10  # of each of two topic-partitions: 800 files, which moto takes seconds for
CONF = {
    "spark.cores.max": str(2 * CORES),
    "spark.executor.cores": str(CORES),
    "spark.executor.memory": "512m",
    "spark.executorEnv.TOLD_EXECUTORS": "yes",
    "spark.hadoop.planted": "PLANTED",
}
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "200ms",
    "spark.speculation.quantile": "0.25",
    "spark.speculation.minTaskRuntime": "1s",
}
SINKS = {
    "json": "",
    "parquet": "format: {type: parquet, codec: snappy}",
    "sql": "sql: {select: 'id * 2 as twice, type'}, format: {type: parquet}",
}

LAND = """
from s3lake.cli.request import Request
from s3lake.land.hour.landing import land

for target in Request(os.environ["CONFIG"]).targets():
    print(target.sink.name, sum(one.new for one in land(target, [os.environ["HOUR"]])), flush=True)
"""

TASKS = """
import sys, time
import pyarrow as pa

def task(batches):
    list(batches)
    time.sleep(1)  # so that every core has one
    row = {"told": os.environ.get("TOLD_EXECUTORS"), "arena": os.environ["MALLOC_ARENA_MAX"], "home": os.getcwd()}
    row |= {"python": os.environ.get("PACKED"), "warm": "boto3" in sys.modules}
    yield pa.RecordBatch.from_pylist([row])

made = session(**json.loads(os.environ["CONF"]))
cores = spark.parallelism(made)
rows = made.range(0, 4, 1, 4).mapInArrow(task, "told string, arena string, home string, python string, warm boolean")
print(json.dumps({"cores": cores, "rows": [row.asDict() for row in rows.collect()]}))
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("SPARK_LOCAL_IP", "127.0.0.1")  # for drivers too
        made = Cluster(tmp_path_factory.mktemp("cluster"))
        try:
            yield made
        finally:
            made.stop()
    assert marked(made.mark) == []


@dataclass
class Scaled:
    """A lake that is landed on a cluster, by processes of their own."""

    lake: Lake
    cluster: Cluster
    home: Path
    direct: bool
    stack: ExitStack

    def topic(self, records: int) -> str:
        topic = self.lake.topic(partitions=2)
        for partition in (0, 1):
            self.lake.produce(topic, values(records, first=partition * records), at(TEN, 5), partition)
        return topic

    def run(self, *sinks: str, **conf: str) -> "subprocess.Popen[str]":
        """A run that lands sinks, under way."""
        config = self.home / "s3lake.yaml"
        text = self.lake.config_text(*sinks)
        settings = ", ".join(f"{name}: '{value}'" for name, value in (CONF | conf).items())
        spark = f"spark: {{master: '%s', driver_memory: 512m, conf: {{{settings}}}}}"
        (line,) = [line for line in text.splitlines() if line.startswith("spark:")]
        config.write_text(text.replace(line, spark % self.cluster.master))
        address = self.cluster.master
        if not self.direct:
            self.stack.close()  # the one before has all the cores
            server = SparkServer(self.home / "server", str(config), master=self.cluster.master)
            address = self.stack.enter_context(server).ready()["serves"]
            config.write_text(text.replace(line, spark % address))
        return opened(LAND, address, CONFIG=str(config), HOUR=TEN)

    def landed(self, target: TopicSink, records: int) -> None:
        """Each record once, and no upload left that `clean` does not end."""
        report = self.lake.verify(target)
        assert report.differences == ()
        assert (report.compared, report.landed) == (records, records)
        dataclasses.replace(target, clock=lambda: hours.now_ms() + 2 * DAY_MS).clean()
        assert self.lake.uploads() == []
        assert self.lake.verify(target).differences == ()


@pytest.fixture(params=["standalone", "connect"])
def scaled(
    request: pytest.FixtureRequest,
    cluster: Cluster,
    kafka: EmbeddedKafka,
    s3_server: EmbeddedS3,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Scaled]:
    def begun(store: S3Store, prefix: str) -> Iterator[PendingUpload]:
        return (replace(one, begun_ms=hours.now_ms()) for one in listed(store, prefix))

    listed = S3Store.list_uploads
    monkeypatch.setattr(S3Store, "list_uploads", begun)  # moto says 2010 of every upload
    cluster.complete()
    with ExitStack() as stack:
        lake = Lake(kafka, s3_server)
        yield Scaled(lake, cluster, tmp_path, request.param == "standalone", stack)
    until(lambda: cluster.executors() == [])


def _ended(run: "subprocess.Popen[str]") -> str:
    out, errors = run.communicate(timeout=2 * PATIENCE_S)
    assert run.returncode == 0, errors[-4000:]
    return out


def test_every_way_of_landing_lands_there_and_no_command_line_has_a_setting(scaled: Scaled) -> None:
    topic = scaled.topic(1_000)
    sinks = {name: f"name: {name}, topics: ['{topic}'], prefix: {name}, {more}" for name, more in SINKS.items()}
    run = scaled.run(*(sink.rstrip(", ") for sink in sinks.values()))
    assert run.stdout is not None
    assert run.stdout.readline() == "json 1\n"
    lines = [" ".join(one.cmdline()) for one in marked(scaled.cluster.mark)]
    assert [line for line in lines if "PLANTED" in line or scaled.lake.s3.secret_access_key in line] == []
    assert _ended(run).split() == ["parquet", "1", "sql", "1"]
    for name, more in SINKS.items():
        scaled.landed(scaled.lake.target(topic, f"prefix: {name}, {more}".rstrip(", "), name=name), 2_000)


def test_an_executor_and_a_worker_killed_in_mid_stage_cost_no_record(scaled: Scaled) -> None:
    topic, settings = scaled.topic(RECORDS), f"flush: {{count: {FILE}}}"
    run = scaled.run(f"name: events, topics: ['{topic}'], {settings}")
    until(lambda: len(scaled.lake.uploads()) > 20)
    scaled.cluster.executors()[0].kill()
    staged = len(scaled.lake.uploads())
    until(lambda: len(scaled.lake.uploads()) > staged + 40)
    scaled.cluster.kill_worker()
    assert _ended(run) == "events 1\n"
    scaled.landed(scaled.lake.target(topic, settings), 2 * RECORDS)


def test_a_task_that_stands_still_is_run_elsewhere_and_may_wake_up_after_the_commit(scaled: Scaled) -> None:
    topic, settings = scaled.topic(RECORDS), f"flush: {{count: {FILE}}}"
    run = scaled.run(f"name: events, topics: ['{topic}'], {settings}", **SPECULATION)
    until(lambda: len(scaled.lake.uploads()) > 20)
    asleep = max(scaled.cluster.tasks(), key=lambda one: one.cpu_times().user)
    asleep.send_signal(signal.SIGSTOP)
    try:
        assert _ended(run) == "events 1\n"
    finally:
        if asleep.is_running():
            asleep.send_signal(signal.SIGCONT)
    scaled.landed(scaled.lake.target(topic, settings), 2 * RECORDS)


@pytest.mark.parametrize("scaled", ["standalone"], indirect=True)
def test_a_stage_that_is_lost_whole_may_pass_later_and_then_lands_everything_once(scaled: Scaled) -> None:
    topic, settings = scaled.topic(RECORDS), f"flush: {{count: {FILE}}}"
    sink = f"name: events, topics: ['{topic}'], {settings}"
    run = scaled.run(sink, **{"spark.task.maxFailures": "1"})
    until(lambda: len(scaled.lake.uploads()) > 20)
    for executor in scaled.cluster.executors():
        executor.kill()
    _, errors = run.communicate(timeout=2 * PATIENCE_S)
    assert "SparkUnavailableError: Spark went away while landing topic" in errors
    assert _ended(scaled.run(sink)) == "events 1\n"
    scaled.landed(scaled.lake.target(topic, settings), 2 * RECORDS)


def test_tasks_have_the_environment_that_settings_give_and_a_python_that_is_sent_to_them(
    cluster: Cluster, tmp_path: Path
) -> None:
    program = tmp_path / "python"
    program.write_text(f'#!/bin/sh\nPACKED=yes exec {sys.executable} "$@"\n')
    program.chmod(0o755)
    with tarfile.open(tmp_path / "environment.tar.gz", "w:gz") as packed:
        packed.add(program, "bin/python")
    sent = {
        "spark.archives": f"{tmp_path}/environment.tar.gz#environment",
        "spark.pyspark.python": "./environment/bin/python",
    }
    cluster.complete()
    found = json.loads(client(TASKS, cluster.master, CONF=json.dumps(CONF | sent)))
    assert found["cores"] == 2 * CORES
    assert len({row.pop("home") for row in found["rows"]}) == 2, "both executors"
    assert found["rows"] == [{"told": "yes", "arena": "2", "python": "yes", "warm": True}] * 4
