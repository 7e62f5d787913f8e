"""`s3lake status`: one line for each sink and topic."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from typer.testing import CliRunner, Result

from s3lake import hours
from s3lake.cli import app
from s3lake.cli.request import Request
from s3lake.errors import KafkaUnavailableError, StoreUnavailableError
from s3lake.index.plan.counts import counts_to_json
from s3lake.index.plan.tile import Sums
from s3lake.orchestration import dagster_names
from s3lake.source.offsets import Lag
from s3lake_tests.lake.verify.world import HOUR, TOPIC
from s3lake_tests.land.change.refused import LakeWithRefusals

LATER = hours.end_ms(HOUR) + 20 * 60_000


class LaggingTopic:
    """Kafka has five records that are not landed, the oldest of them for an hour and nine minutes."""

    def lag(self, *_: Any, **__: Any) -> Lag:
        return Lag(5, 4140.0, {0: 16})


class UnavailableKafka:
    def lag(self, *_: Any, **__: Any) -> Mapping[int, int]:
        raise KafkaUnavailableError("kafka:9092 did not answer")


@pytest.fixture
def lake() -> LakeWithRefusals:
    """Two commits of an hour in which five records were refused."""
    lake = LakeWithRefusals().landed(7, 4)
    stored = lake.index.tile(HOUR)
    assert stored is not None
    assert lake.index.swap_tile(
        stored[0].revise(sums=Sums(landed=6, dead=5, late=2, fields_filled={"a": 1, "b": 3})), stored[1]
    )
    return lake


def run_status(lake: LakeWithRefusals, monkeypatch: pytest.MonkeyPatch, *words: str, log: Any = None) -> Result:
    target = replace(lake.target(), offsets=log or LaggingTopic(), clock=lambda: LATER)
    monkeypatch.setattr(Request, "targets", lambda *_, **__: iter([target]))
    return CliRunner().invoke(app, ["status", *words], catch_exceptions=False)


def row(result: Result) -> dict[str, Any]:
    (line,) = result.stdout.splitlines()
    return json.loads(line)  # type: ignore[no-any-return]


def test_status_has_one_line_for_each_sink_and_topic(lake: LakeWithRefusals, monkeypatch: pytest.MonkeyPatch) -> None:
    result = run_status(lake, monkeypatch)
    assert result.exit_code == 0
    title, line = result.stdout.splitlines()
    counts = "2 late, 4 fields filled with a default"
    assert title.split("  ")[0] == "sink"
    assert line.split() == ["events", TOPIC, HOUR, "5,", "1h9m", "none", "5", *counts.split(), "none"]


def test_status_as_json_has_figures(lake: LakeWithRefusals, monkeypatch: pytest.MonkeyPatch) -> None:
    assert row(run_status(lake, monkeypatch, "--json")) == {
        "sink": "events",
        "topic": TOPIC,
        "landed_up_to": HOUR,
        "lag_records": 5,
        "lag_seconds": 4140,
        "sealed_up_to": None,
        "dead_letters": 5,
        "counts": counts_to_json(Sums(landed=6, dead=5, late=2, fields_filled={"a": 1, "b": 3})),
        "last_error": None,
    }


def test_dead_letters_older_than_a_day_are_not_counted(lake: LakeWithRefusals, monkeypatch: pytest.MonkeyPatch) -> None:
    target = replace(lake.target(), offsets=LaggingTopic(), clock=lambda: LATER + 24 * hours.HOUR_MS)
    monkeypatch.setattr(Request, "targets", lambda *_, **__: iter([target]))
    assert row(CliRunner().invoke(app, ["status", "--json"]))["dead_letters"] == 0


def test_status_ends_with_3_and_shows_the_rest_if_kafka_does_not_answer(
    lake: LakeWithRefusals, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = run_status(lake, monkeypatch, "--json", log=UnavailableKafka())
    assert result.exit_code == 3
    status = row(result)
    assert (status["landed_up_to"], status["lag_records"]) == (HOUR, None)
    assert status["last_error"] == "kafka: kafka:9092 did not answer"


def test_status_ends_with_3_if_s3_does_not_answer(lake: LakeWithRefusals, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Any:
        raise StoreUnavailableError("the bucket does not answer")

    monkeypatch.setattr(lake.store, "get", fail)
    result = run_status(lake, monkeypatch)
    assert result.exit_code == 3
    assert result.stdout.splitlines()[1].split("  ")[-1] == "s3: the bucket does not answer"
    assert " ?" in result.stdout


@pytest.mark.parametrize(("after_ms", "is_shown"), [(0, True), (2**42, False)])
def test_the_last_error_is_the_failed_run_after_the_last_commit(
    after_ms: int, is_shown: bool, lake: LakeWithRefusals, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    monkeypatch.setattr("s3lake.lake.metrics.TopicProgress.last_commit", (after_ms, 0))
    with dg.DagsterInstance.get() as instance:
        run = instance.create_run_for_job(_job(), tags={dagster_names.SINK: "events", dagster_names.TOPIC: TOPIC})
        instance.report_run_failed(run)
    status = row(run_status(lake, monkeypatch, "--json"))
    assert str(status["last_error"]).startswith(f"run {run.run_id[:8]}") == is_shown
    assert (status["last_error"] is None) != is_shown


def test_status_is_shown_if_the_instance_of_dagster_cannot_be_read(
    lake: LakeWithRefusals, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "missing"))
    status = row(run_status(lake, monkeypatch, "--json"))
    assert status["landed_up_to"] == HOUR
    assert "DAGSTER_HOME cannot be read" in str(status["last_error"])


def _job() -> dg.JobDefinition:
    @dg.job
    def land_events() -> None:
        pass

    return land_events
