"""A run is killed with its code server, so that Dagster believes it works: the next commit comes by itself."""

import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import dagster as dg
import pytest

from s3lake.config.model import Config
from s3lake.demo.embedded_kafka import EmbeddedKafka
from s3lake.demo.embedded_s3 import EmbeddedS3
from s3lake.land.topic.topic_sink import TopicSink
from s3lake.orchestration import dagster_names, due_hours
from s3lake.orchestration.build import build_definitions
from s3lake_tests.kit.lake import START, Lake, at, values
from s3lake_tests.kit.processes import MARK, kill_all

pytestmark = [pytest.mark.timeout(600)]

RECORDS = 10_000
SETTINGS = "flush: {count: 50}, batch_records: 500, hours_per_run: 1"
RUN = """
import json, sys
import dagster as dg
from s3lake.definitions import defs

with dg.DagsterInstance.get() as instance:
    defs().resolve_job_def("land_events").execute_in_process(tags=json.loads(sys.argv[1]), instance=instance)
"""


class Stage:
    """A topic, its sensor, and runs in processes of their own, as a code server starts them."""

    def __init__(self, lake: Lake, home: Path) -> None:
        topic = lake.filled(values(RECORDS), at(START, 5))
        sink = f"name: events, topics: ['{topic}'], {SETTINGS}"
        (home / "s3lake.yaml").write_text(lake.config_text(sink))
        (home / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
        self.lake, self.home, self.mark = lake, home, str(uuid.uuid4())
        self._started: list[subprocess.Popen[bytes]] = []
        self.config: Config = lake.config(sink)
        self.target: TopicSink = lake.target(topic, SETTINGS)
        self.definitions = build_definitions(self.config)
        self.sensor = self.definitions.get_repository_def().get_sensor_def(dagster_names.identifier("kafka", topic))

    def start(self, tags: Mapping[str, str]) -> None:
        environment = {**os.environ, MARK: self.mark, "DAGSTER_HOME": str(self.home), "TMPDIR": str(self.home)}
        environment |= {"S3LAKE_CONFIG": str(self.home / "s3lake.yaml"), "SPARK_LOCAL_DIRS": str(self.home)}
        with (self.home / "runs.log").open("ab") as log:
            command = [sys.executable, "-c", RUN, json.dumps(dict(tags))]
            started = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
        self._started.append(started)

    def kill(self) -> None:
        """Whole trees: drivers, JVMs, Python workers."""
        kill_all(self.mark)
        for process in self._started:
            process.wait()

    def tick(self, instance: dg.DagsterInstance) -> list[dg.RunRequest]:
        with dg.build_sensor_context(instance=instance, definitions=self.definitions) as context:
            return list(self.sensor.evaluate_tick(context).run_requests or ())

    def commits(self) -> int:
        tile = self.target.index.tile(START)
        return len(tile[0].commits) if tile else 0

    def await_true(self, condition: Callable[[], bool], within_s: float) -> None:
        deadline = time.monotonic() + within_s
        while not condition():
            assert time.monotonic() < deadline, (self.home / "runs.log").read_text(errors="replace")[-4000:]
            time.sleep(0.1)


@pytest.fixture
def stage(kafka: EmbeddedKafka, s3_server: EmbeddedS3, tmp_path: Path) -> Iterator[Stage]:
    made = Stage(Lake(kafka, s3_server), tmp_path)
    try:
        yield made
    finally:
        made.kill()


def test_after_a_run_was_killed_with_its_code_server_the_next_commit_comes_within_two_minutes(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    with dg.DagsterInstance.from_config(str(stage.home)) as instance:
        (request,) = stage.tick(instance)
        stage.start(request.tags)
        stage.await_true(lambda: stage.commits() >= 2, 200)
        stage.kill()
        killed_s, left = time.monotonic(), stage.commits()
        (dead,) = instance.get_runs()
        assert dead.status == dg.DagsterRunStatus.STARTED
        while not (requests := stage.tick(instance)):
            assert time.monotonic() - killed_s < 120
            time.sleep(due_hours.INTERVAL_S)
        found = instance.get_run_by_id(dead.run_id)
        assert found is not None
        assert found.status == dg.DagsterRunStatus.FAILURE
        stage.start(requests[0].tags)
        stage.await_true(lambda: stage.commits() > left, 120)
        took = time.monotonic() - killed_s
        with capsys.disabled():
            print(f"\nkilled with {left} commits; the next one came after {took:.0f} s")
        assert took <= 120
        stage.await_true(lambda: instance.get_runs()[0].status == dg.DagsterRunStatus.SUCCESS, 400)
    report = stage.lake.verify(stage.target)
    assert (report.differences, report.landed) == ((), RECORDS)
