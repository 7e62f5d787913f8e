"""Production as `benchmarks/day.py` and `benchmarks/kills.py` have it, small, and what that is made of."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture(autouse=True)
def _benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.syspath_prepend(str(BENCHMARKS / "clock"))


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.s3
@pytest.mark.timeout(1200)
def test_a_day_lands_every_record_once_and_tells_what_it_cost() -> None:
    command = [sys.executable, str(BENCHMARKS / "day.py"), "--zero", "5"]
    command += ["--topics", "2", "--hours", "1", "--records", "2000", "--speed", "120"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    assert '"not_landed": 0, "missing": 0, "duplicated": 0' in done.stderr
    told = json.loads(done.stdout)
    assert {name: told[name] for name in ("topics", "hours", "records", "master", "speed")} == {
        "topics": 2,
        "hours": 1,
        "records": 2000,
        "master": "connect",
        "speed": 120.0,
    }
    figures = [
        "cpu_s_per_hour",
        "cpu_s_per_topic_hour",
        "cpu_s_per_million_records",
        "freshness_p50_s",
        "freshness_p95_s",
        "sealed_after_p95_s",
        "requests_per_gb",
        "median_file_bytes",
        "peak_rss_bytes",
    ]
    assert all(told[name] > 0 for name in figures if told[name] is not None), told
    assert told["freshness_p50_s"] <= told["freshness_p95_s"]


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.s3
@pytest.mark.timeout(1200)
def test_after_a_kill_of_the_connect_server_every_topic_has_a_commit_and_no_record_is_lost_or_doubled() -> None:
    command = [sys.executable, str(BENCHMARKS / "kills.py"), "--times", "1", "--kills", "connect", "--topics", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    told = json.loads(done.stdout)
    assert [(row["kill"], row["times"]) for row in told["table"]] == [("connect", 1)]
    assert told["table"][0]["p95_s"] < 400
    assert (told["lost"], told["doubled"]) == (0, 0)


class TestClock:
    def test_it_goes_on_from_where_it_is_at_another_speed_for_all_that_share_it(self, tmp_path: Path) -> None:
        from shared_clock import SharedClock

        one = SharedClock.create(tmp_path / "clock", 1000.0)
        other = SharedClock(tmp_path / "clock")
        one.run(1000.0)
        time.sleep(0.05)
        one.run(1.0)
        shown = one.time()
        assert shown >= 1050.0
        assert shown <= other.time() <= shown + 5

    @pytest.mark.long
    def test_processes_with_it_in_their_path_go_by_it_and_others_do_not(self, tmp_path: Path) -> None:
        from shared_clock import SharedClock

        SharedClock.create(tmp_path / "clock", 5_000_000_000.0)
        program = (
            "import time; from dagster._time import get_current_datetime; print(time.time(), get_current_datetime())"
        )
        environment = {"PYTHONPATH": str(BENCHMARKS / "clock"), "S3LAKE_BENCHMARK_CLOCK": str(tmp_path / "clock")}
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
        )
        assert done.stdout.startswith("50000000")
        assert " 2128-06-11 " in done.stdout
        assert time.time() < 5_000_000_000


class TestRequests:
    LINE = (
        "s3lake-demo lake [22/November/2026:03:17:{second} +0000] 127.0.0.1 s3lake-demo KVHQ s3_{operation} "
        "{key} /lake/x 200 - 0 100 3 3 - Boto3/1.44.5\n"
    )

    def log(self, path: Path, *requests: tuple[str, str]) -> Path:
        lines = [
            self.LINE.format(second=f"{second:02d}", operation=operation, key=key)
            for second, (operation, key) in enumerate(requests)
        ]
        path.write_text("log starts 2026-11-22 03:17:54 +0000 UTC m=+0.01\n" + "".join(lines))
        return path

    def test_each_has_its_second_its_operation_and_its_key(self, tmp_path: Path) -> None:
        from requests_log import requests

        found = requests(self.log(tmp_path / "log", ("PutObject", "a/b=1/c"), ("ListObjectsV2", "-")))
        assert [(one.operation, one.key) for one in found] == [("PutObject", "a/b=1/c"), ("ListObjectsV2", "-")]
        assert found[1].at - found[0].at == 1

    def test_a_commit_is_visible_when_its_tile_is_written_for_the_second_time(self, tmp_path: Path) -> None:
        from landed import visible
        from requests_log import requests

        tile, manifest = ".indexes/events/t/2026-11-22T08.json", ".indexes/events/t/2026-11-22T08/c1.json"
        asked = [("PutObject", tile), ("PutObject", manifest), ("PutObject", tile), ("GetObject", tile)]
        found = requests(self.log(tmp_path / "log", *asked, ("PutObject", tile), ("PutObject", tile)))
        assert visible(found) == {manifest: found[4].at + 1}
