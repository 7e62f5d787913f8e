"""Twenty runs are killed, whole process trees, at random moments of the commit protocol and before it.

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

import pytest

from s3lake import hours
from s3lake.commit.clean import DAY_MS, clean
from s3lake.landing import Landing
from s3lake_tests.lake import Lake, at, values
from s3lake_tests.processes import MARK, kill_all
from s3lake_tests.proxy import Moment, Proxy, Step

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.s3, pytest.mark.timeout(1500)]

FIRST, LAST = "2026-01-05T08", "2026-01-05T15"
RECORDS = 2_500  # an hour and topic-partition
SETTINGS = "flush: {count: 50}, batch_records: 1000"  # 5 commits of 20 files an hour
KILLS = 20
SEED = 20260105

RUN = f"""
import dagster as dg
from s3lake.definitions import defs

tags = {{"dagster/asset_partition_range_start": "{FIRST}", "dagster/asset_partition_range_end": "{LAST}"}}
with dg.DagsterInstance.ephemeral() as instance:
    defs().resolve_job_def("land_events").execute_in_process(tags=tags, instance=instance)
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


class Killed:
    """A sink of a topic, and runs of it through the proxy."""

    def __init__(self, lake: Lake, topic: str, proxy: Proxy, home: Path) -> None:
        self.lake, self.proxy, self.home = lake, proxy, home
        self.landing: Landing = lake.landing(topic, SETTINGS)
        config = lake.config_text(f"name: events, topics: ['{topic}'], {SETTINGS}")
        lines = [line if not line.startswith("spark:") else SPARK for line in config.splitlines()]
        (home / "s3lake.yaml").write_text("\n".join(lines).replace(lake.s3.endpoint_url, proxy.url))

    def start(self, mark: str) -> "subprocess.Popen[bytes]":
        environment = {**os.environ, MARK: mark, "S3LAKE_CONFIG": str(self.home / "s3lake.yaml")}
        with (self.home / "run.log").open("wb") as log:
            return subprocess.Popen(
                [sys.executable, "-c", RUN], env=environment, stdout=log, stderr=log, start_new_session=True
            )

    def log(self) -> str:
        return (self.home / "run.log").read_text(errors="replace")[-4000:]

    def kill_at(self, moment: Moment | float) -> None:
        """Start a run and end it then."""
        mark = str(uuid.uuid4())
        self.proxy.arm(moment if isinstance(moment, Moment) else None)
        process = self.start(mark)
        try:
            if isinstance(moment, Moment):
                deadline = time.monotonic() + 180
                while not self.proxy.reached.wait(0.02):
                    assert process.poll() is None, f"the run ended before {moment}:\n{self.log()}"
                    assert time.monotonic() < deadline, f"{moment} never came:\n{self.log()}"
            else:
                time.sleep(moment)
                assert process.poll() is None, self.log()
        finally:
            kill_all(mark)
            process.wait()
            self.proxy.release()
            while not self.proxy.idle:
                time.sleep(0.01)

    def complete(self) -> None:
        """One run to its end."""
        self.proxy.arm(None)
        process = self.start(str(uuid.uuid4()))
        assert process.wait(300) == 0, self.log()

    def found(self) -> str:
        """What the dead run left, by the index and the bucket alone."""
        index, store = self.landing.index, self.lake.store
        tiles = list(index.tiles())
        for tile in tiles:
            if tile.pending:
                manifest = index.manifest(tile.hour, tile.pending)
                assert manifest is not None
                visible = sum(store.head(file.key) is not None for file in manifest.files)
                done = "no" if not visible else "all" if visible == len(manifest.files) else "some"
                return f"step 5: pending, {done} files visible"
        for tile in tiles:
            if set(index.manifest_ids(tile.hour)) - set(tile.commits):
                return "step 3: manifest written, tile untouched"
        if self.new_uploads():
            return "step 2: files staged"
        return "between commits, or before the first"

    def new_uploads(self) -> set[str]:
        """Uploads that appeared since this was asked last."""
        uploads = {one["UploadId"] for one in self._uploads()}
        new = uploads - getattr(self, "_known", set())
        self._known = uploads
        return new

    def _uploads(self) -> Iterator[dict[str, str]]:
        pages = self.lake.client.get_paginator("list_multipart_uploads").paginate(Bucket=self.lake.bucket)
        return (upload for page in pages for upload in page.get("Uploads", ()))

    def assert_exactly_once(self, records: int) -> None:
        report = self.lake.verify(self.landing)
        assert report.differences == ()
        assert (report.produced, report.landed) == (records, records)
        index, listed = self.landing.index, []
        for tile in index.tiles():
            assert tile.complete, tile
            for commit in tile.commits:
                manifest = index.manifest(tile.hour, commit)
                assert manifest is not None
                listed += [file.key for file in manifest.files]
        assert sorted(listed) == self.lake.objects()


def test_runs_killed_at_any_moment_leave_every_record_exactly_once(
    lake: Lake, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = lake.topic(partitions=2)
    wanted = list(hours.span(FIRST, LAST))
    for hour in wanted:
        for partition in (0, 1):
            lake.produce(topic, values(RECORDS), at(hour, 5), partition)
    began, interrupted = time.monotonic(), Counter[str]()
    with Proxy(lake.s3.endpoint_url) as proxy:
        runs = Killed(lake, topic, proxy, tmp_path)
        for moment in moments(random.Random(SEED)):
            runs.kill_at(moment)
            interrupted[runs.found()] += 1
        runs.complete()
    with capsys.disabled():
        print(f"\n{KILLS} runs killed in {time.monotonic() - began:.0f} s; found after them:")
        for state, times in sorted(interrupted.items()):
            print(f"  {times:2d} x {state}")

    assert sum(interrupted.values()) == KILLS
    assert sum(times for state, times in interrupted.items() if state.startswith("step")) >= 8
    assert interrupted["step 5: pending, some files visible"] >= 2
    runs.assert_exactly_once(len(wanted) * 2 * RECORDS)

    before = lake.objects()
    for later in (2, 30):  # days: what the dead left is swept, and at last forgotten
        clean(runs.landing.index, now_ms=int(time.time() * 1000) + later * DAY_MS)
    assert lake.objects() == before
    assert [len(tile.commits) for tile in runs.landing.index.tiles()] == [
        len(runs.landing.index.manifest_ids(hour)) for hour in wanted
    ]
    runs.assert_exactly_once(len(wanted) * 2 * RECORDS)
