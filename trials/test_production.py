"""Production as `day` and `kills` have it, small."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.timeout(1200)
def test_a_day_lands_every_record_once_and_tells_what_it_cost() -> None:
    command = [sys.executable, "-m", "trials", "day", "--zero", "5"]
    command += ["--topics", "2", "--hours", "1", "--records", "2000", "--speed", "120"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
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


@pytest.mark.timeout(1200)
def test_after_kills_of_a_run_and_the_connect_server_every_topic_commits_and_no_record_is_lost_or_doubled() -> None:
    command = [sys.executable, "-m", "trials", "kills", "--times", "1", "--kills", "run,connect", "--topics", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-4000:]
    told = json.loads(done.stdout)
    assert [(row["kill"], row["times"]) for row in told["table"]] == [("run", 1), ("connect", 1)]
    assert all(row["p95_s"] < 400 for row in told["table"])
    assert (told["lost"], told["doubled"]) == (0, 0)
