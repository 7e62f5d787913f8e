"""What a day is made of: the clock that all processes go by, and the S3 server's log of requests."""

import subprocess
import sys
import time
from pathlib import Path

from trials.clock.shared_clock import SharedClock
from trials.landed import visible
from trials.requests_log import requests

CLOCK = Path(__file__).with_name("clock")


class TestClock:
    def test_it_goes_on_from_where_it_is_at_another_speed_for_all_that_share_it(self, tmp_path: Path) -> None:
        one = SharedClock.create(tmp_path / "clock", 1000.0)
        other = SharedClock(tmp_path / "clock")
        one.run(1000.0)
        time.sleep(0.05)
        one.run(1.0)
        shown = one.time()
        assert shown >= 1050.0
        assert shown <= other.time() <= shown + 5

    def test_processes_with_it_in_their_path_go_by_it_and_others_do_not(self, tmp_path: Path) -> None:
        SharedClock.create(tmp_path / "clock", 5_000_000_000.0)
        program = (
            "import time; from dagster._time import get_current_datetime; print(time.time(), get_current_datetime())"
        )
        environment = {"PYTHONPATH": str(CLOCK), "S3LAKE_BENCHMARK_CLOCK": str(tmp_path / "clock")}
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
        found = requests(self.log(tmp_path / "log", ("PutObject", "a/b=1/c"), ("ListObjectsV2", "-")))
        assert [(one.operation, one.key) for one in found] == [("PutObject", "a/b=1/c"), ("ListObjectsV2", "-")]
        assert found[1].at - found[0].at == 1

    def test_a_commit_is_visible_when_its_tile_is_written_for_the_second_time(self, tmp_path: Path) -> None:
        tile, manifest = ".indexes/events/t/2026-11-22T08.json", ".indexes/events/t/2026-11-22T08/c1.json"
        asked = [("PutObject", tile), ("PutObject", manifest), ("PutObject", tile), ("GetObject", tile)]
        found = requests(self.log(tmp_path / "log", *asked, ("PutObject", tile), ("PutObject", tile)))
        assert visible(found) == {manifest: found[4].at + 1}
