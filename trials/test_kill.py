"""Runs are killed, twenty or `--kills`, whole process trees, at random moments of the commit protocol and before it.

Afterwards one run ends what they began, and every record of Kafka is in the bucket exactly once.
"""

import os
import random
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from s3lake import hours
from s3lake.commit.clean import DAY_MS, clean
from s3lake.demo.kafka import EmbeddedKafka
from s3lake.demo.s3 import EmbeddedS3
from s3lake.land.target import TopicSink
from s3lake_tests.kit.lake import Lake, at, values
from s3lake_tests.kit.processes import MARK, kill_all
from trials.commit_proxy import Moment, Proxy, Step

pytestmark = [pytest.mark.timeout(1500)]

FIRST = "2026-01-05T08"
RECORDS = 2_500  # an hour and topic-partition
SETTINGS = "flush: {count: 50}, batch_records: 1000"  # 5 commits of 20 files an hour
KILLS = 20
SEED = 20260105

RUN = f"""
import os, sys
from pathlib import Path
from typing import NoReturn
import dagster as dg
from s3lake.definitions import defs
from s3lake.config.load import load
from s3lake.spark import session

job = defs().resolve_job_def("land_events")
session(load().spark)
if not sys.stdin.readline():
    sys.exit("nobody waits for this run any more")
tags = {{"dagster/asset_partition_range_start": "{FIRST}", "dagster/asset_partition_range_end": sys.argv[1]}}
with dg.DagsterInstance.ephemeral() as instance:
    job.execute_in_process(tags=tags, instance=instance)
"""

# Client compilation and one collector thread: these JVMs live for seconds.
SPARK = (
    "spark: {master: 'local[2]', driver_memory: 512m, conf: "
    "{spark.driver.extraJavaOptions: '-XX:TieredStopAtLevel=1 -XX:+UseSerialGC'}}"
)


def moments(chance: random.Random) -> list[Moment | float]:
    """When to kill: at a request of the protocol, or after some seconds, before anything was read."""
    kinds: dict[Step, tuple[int, int]] = {  # how often, and the last number to choose from
        "create": (1, 30),
        "part": (1, 30),
        "manifest": (3, 2),
        "pending": (3, 2),
        "complete": (5, 35),
        "settle": (3, 2),
    }
    chosen: list[Moment | float] = [
        Moment(step, chance.randint(1, last), chance.random() < 0.5)
        for step, (times, last) in kinds.items()
        for _ in range(times)
    ]
    # Hours are opened once, by the first runs.
    opening: list[Moment | float] = [Moment("head", chance.randint(1, 3), True), Moment("tile", 1, False)]
    chosen += [chance.uniform(0.5, 6.0) for _ in range(KILLS - len(chosen) - len(opening))]
    chance.shuffle(chosen)
    return [*opening, *chosen]


class Run:
    """One run, from a process of its own. It loads its code and starts its JVM, and then waits to be told to go on."""

    def __init__(self, config: Path, log: Path, last: str) -> None:
        self.mark, self._log = str(uuid.uuid4()), log
        environment = {**os.environ, MARK: self.mark, "S3LAKE_CONFIG": str(config)}
        # What is killed tidies up nothing: Python's, Spark's and the JVM's temporary files.
        home = str(config.parent)
        environment |= {"TMPDIR": home, "SPARK_LOCAL_DIRS": home, "JAVA_TOOL_OPTIONS": f"-Djava.io.tmpdir={home}"}
        with log.open("wb") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-c", RUN, last],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )

    def go(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        """The whole tree: driver, JVM, Python workers."""
        kill_all(self.mark)
        self.process.communicate()

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")[-4000:]


class Killed:
    """A sink of a topic, and runs of it through the proxy."""

    def __init__(self, lake: Lake, topic: str, hours: list[str], proxy: Proxy, home: Path) -> None:
        self.lake, self.hours, self.proxy, self.home = lake, hours, proxy, home
        self.target: TopicSink = lake.target(topic, SETTINGS)
        self._known: set[str] = set()
        config = lake.config_text(f"name: events, topics: ['{topic}'], {SETTINGS}")
        lines = [line if not line.startswith("spark:") else SPARK for line in config.splitlines()]
        self.config = home / "s3lake.yaml"
        self.config.write_text("\n".join(lines).replace(lake.s3.endpoint_url, proxy.url))

    def run(self) -> Run:
        return Run(self.config, self.home / f"{uuid.uuid4()}.log", self.hours[-1])

    def kill_at(self, moment: Moment, run: Run) -> None:
        """Let the run go on, and end it then."""
        self.proxy.arm(moment)
        run.go()
        deadline = time.monotonic() + 240
        while not self.proxy.reached.wait(0.02):
            assert run.process.poll() is None, f"the run ended before {moment}:\n{run.log}"
            assert time.monotonic() < deadline, f"{moment} never came:\n{run.log}"
        run.kill()
        self.proxy.release()
        while not self.proxy.idle:
            time.sleep(0.01)

    def kill_after(self, seconds: float) -> None:
        """End a run that has hardly begun."""
        run = self.run()
        try:
            run.go()
            time.sleep(seconds)
            assert run.process.poll() is None, run.log
        finally:
            run.kill()

    def complete(self, run: Run) -> None:
        """One run to its end."""
        self.proxy.arm(None)
        run.go()
        assert run.process.wait(400) == 0, run.log

    def found(self) -> str:
        """What the dead run left, by the index and the bucket alone."""
        index, store = self.target.index, self.lake.store
        tiles = list(index.tiles())
        for tile in tiles:
            if tile.pending:
                manifest = index.manifest(tile.hour, tile.pending)
                assert manifest is not None
                visible = sum(store.head(file.key) is not None for file in manifest.files)
                done = "no" if not visible else "all" if visible == len(manifest.files) else "some"
                return f"step 5: pending, {done} files visible"
        manifests = {one for tile in tiles for one in set(index.manifest_ids(tile.hour)) - set(tile.commits)}
        uploads = {upload["UploadId"] for upload in self.uploads()}
        new, self._known = (manifests | uploads) - self._known, self._known | manifests | uploads
        if new & manifests:
            return "step 3: manifest written, tile untouched"
        return "step 2: files staged" if new else "between commits, or before the first"

    def uploads(self) -> Iterator[dict[str, str]]:
        pages = self.lake.client.get_paginator("list_multipart_uploads").paginate(Bucket=self.lake.bucket)
        return (upload for page in pages for upload in page.get("Uploads", ()))

    def assert_exactly_once(self, records: int) -> None:
        report = self.lake.verify(self.target)
        assert report.differences == ()
        assert (report.compared, report.landed) == (records, records)
        index, listed = self.target.index, []
        for tile in index.tiles():
            assert tile.complete, tile
            for commit in tile.commits:
                manifest = index.manifest(tile.hour, commit)
                assert manifest is not None
                listed += [file.key for file in manifest.files]
        assert sorted(listed) == self.lake.objects()


@pytest.fixture
def killed(
    kafka: EmbeddedKafka, s3_server: EmbeddedS3, tmp_path: Path, pytestconfig: pytest.Config
) -> Iterator[Killed]:
    """Hours of two topic-partitions, eight for twenty kills, and a proxy that lets nothing happen unseen."""
    lake = Lake(kafka, s3_server, _no_session)
    topic = lake.topic(partitions=2)
    wanted = list(hours.span(FIRST, hours.shift(FIRST, max(1, 7 * pytestconfig.getoption("--kills") // 20))))
    for hour in wanted:
        for partition in (0, 1):
            lake.produce(topic, values(RECORDS), at(hour, 5), partition)
    with Proxy(s3_server.endpoint_url) as proxy:
        yield Killed(lake, topic, wanted, proxy, tmp_path)


def _no_session() -> NoReturn:
    raise AssertionError("runs have their own sessions")


def test_runs_killed_at_any_moment_leave_every_record_exactly_once(
    killed: Killed, capsys: pytest.CaptureFixture[str], pytestconfig: pytest.Config
) -> None:
    kills = pytestconfig.getoption("--kills")
    wanted = killed.hours
    began, interrupted, requests = time.monotonic(), Counter[str](), Counter[str]()
    run = killed.run()
    try:
        for moment in moments(random.Random(SEED))[-kills:]:
            if isinstance(moment, float):
                killed.kill_after(moment)
                requests["none: hardly begun"] += 1
            else:
                current, run = run, killed.run()  # the next one's JVM starts meanwhile
                try:
                    killed.kill_at(moment, current)
                finally:
                    current.kill()
                requests[f"{moment.step}, {'its answer' if moment.answered else 'request'} lost"] += 1
            interrupted[killed.found()] += 1
        killed.complete(run)
    finally:
        run.kill()
    with capsys.disabled():
        print(f"\n{kills} runs killed in {time.monotonic() - began:.0f} s at", dict(sorted(requests.items())))
        for state, times in sorted(interrupted.items()):
            print(f"  {times:2d} left {state}")

    assert sum(interrupted.values()) == kills
    assert sum(times for state, times in interrupted.items() if state.startswith("step")) >= kills * 2 // 5
    # Which of a commit's files were visible depends on what else was on its way; that it was pending does not.
    assert sum(times for state, times in interrupted.items() if state.startswith("step 5")) >= kills // 5
    killed.assert_exactly_once(len(wanted) * 2 * RECORDS)

    before, index = killed.lake.objects(), killed.target.index
    for later in (2, 30):  # days: what the dead left is swept, and at last forgotten
        clean(index, now_ms=int(time.time() * 1000) + later * DAY_MS)
    assert killed.lake.objects() == before
    assert {hour: set(index.manifest_ids(hour)) for hour in wanted} == {
        tile.hour: set(tile.commits) for tile in index.tiles()
    }
    killed.assert_exactly_once(len(wanted) * 2 * RECORDS)
