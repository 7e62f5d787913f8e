"""`s3lake metrics` on real parts: printed once, and served."""

import functools
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from s3lake.land.hour.landing import land
from s3lake.source import sources
from s3lake_tests.kit.console import Run
from s3lake_tests.kit.cost import PATIENCE_S
from s3lake_tests.kit.lake import Lake, at, values

EIGHT, TEN = "2026-01-05T08", "2026-01-05T10"


def samples(text: str) -> dict[tuple[str, ...], float]:
    found = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return {(one.name, *(value for _, value in sorted(one.labels.items()))): one.value for one in found}


def test_the_command_ends_with_an_error_without_secrets_if_kafka_and_s3_are_missing(
    run: Run, offline: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fast = functools.partial(sources.open_source, timeout_s=0.3)
    monkeypatch.setattr(sources, "open_source", lambda config, _: fast(config))
    outcome = run("metrics", offline)
    assert outcome.code == 0
    metrics = samples(outcome.out)
    assert metrics["s3lake_up", "kafka", "events", "orders"] == metrics["s3lake_up", "s3", "events", "orders"] == 0
    assert metrics["s3lake_errors_total", "s3", "events", "orders"] == 1
    assert "hunter2" not in outcome.out + outcome.err


@pytest.fixture
def served(lake: Lake, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """A topic of which one hour is landed and another waits, and the address of its metrics."""
    topic = lake.filled(values(10), at(EIGHT, 10))
    land(lake.target(topic, now_ms=at(TEN)), [EIGHT])
    lake.produce(topic, values(7), int(time.time() * 1000) - 1_000_000)
    config = tmp_path / "sinks.yaml"
    config.write_text(lake.config_text(f"name: events, topics: ['{topic}']"))
    command = [sys.executable, "-m", "s3lake", "metrics", str(config), "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            line = process.stderr.readline()
            assert "metrics: http://127.0.0.1:" in line, line
            yield topic, line.split()[1]
        finally:
            process.terminate()
        assert process.wait(PATIENCE_S) == 0


def test_the_served_metrics_are_the_progress_of_the_topic(served: tuple[str, str]) -> None:
    topic, url = served
    with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
        metrics = samples(answer.read().decode())
    assert metrics["s3lake_up", "kafka", "events", topic] == metrics["s3lake_up", "s3", "events", topic] == 1
    assert metrics["s3lake_lag_records", "events", topic] == 7
    # Looked for in eighths between 10 minutes and an hour, and never reported as older than it is.
    assert 600 <= metrics["s3lake_lag_seconds", "events", topic] <= 1_100
    assert metrics["s3lake_requests_total", "GetObject"] <= 4
