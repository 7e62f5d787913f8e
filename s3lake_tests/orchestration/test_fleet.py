"""What a run of many topics does about errors of some of them, without Spark, Kafka and S3."""

import threading
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleStatus
from dagster._core.errors import DagsterExecutionInterruptedError
from dagster._core.loader import LoadingContextForTest

from s3lake.errors import KafkaUnavailableError, RecordError
from s3lake.orchestration import fleet, fleet_runs
from s3lake.orchestration.build import build_definitions
from s3lake_tests.land.unstaged import FIRST, SECOND, THIRD
from s3lake_tests.orchestration import unstaged_runs
from s3lake_tests.orchestration.catalogues import catalogue, parts
from s3lake_tests.orchestration.unstaged_runs import ALL

TOPICS = ("one", "two", "three")


class Runs(unstaged_runs.Runs):
    """Runs of a fleet."""

    def __init__(self, instance: dg.DagsterInstance, patch: pytest.MonkeyPatch) -> None:
        super().__init__(instance, patch, *TOPICS, errors={"retry_interval": 0, "max_retries": 2})
        self.catalogue = catalogue(self.sink)
        self.job = fleet.fleet_job(self.catalogue, self.sink)

    def land(self) -> dg.ExecuteInProcessResult:
        config = fleet_runs.run_config(self.catalogue, self.sink, {f"{FIRST}..{THIRD}": TOPICS})
        return self.job.execute_in_process(
            run_config=config,
            instance=self.instance,
            resources=parts(),
            raise_on_error=False,
        )

    def lines(self, result: dg.ExecuteInProcessResult) -> str:
        return "\n".join(one.user_message for one in self.instance.all_logs(result.run_id))


@pytest.fixture
def made(instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch) -> Runs:
    return Runs(instance, monkeypatch)


def test_what_may_pass_is_tried_again_within_the_run_for_that_topic_alone(made: Runs) -> None:
    staged: list[str] = []
    away = [KafkaUnavailableError("away")]

    def before(attempt: Any) -> None:
        staged.append(attempt.tile.hour)
        if attempt.tile.hour == SECOND and away:
            raise away.pop()

    made.landings["two"].before = before
    result = made.land()
    assert result.success
    assert staged == [FIRST, SECOND, SECOND, THIRD]
    assert made.hours() == dict.fromkeys(TOPICS, ALL)
    assert "1 topics met something that may pass; they are tried again" in made.lines(result)


def test_after_its_tries_a_topic_has_failed_and_the_others_are_landed(made: Runs) -> None:
    def before(attempt: Any) -> None:
        if attempt.tile.hour == SECOND:
            raise KafkaUnavailableError("away")

    made.landings["two"].before = before
    result = made.land()
    assert not result.success
    assert made.hours() == {"one": ALL, "two": [FIRST], "three": ALL}


def test_what_cannot_pass_is_tried_once(made: Runs) -> None:
    tries: list[str] = []

    def before(attempt: Any) -> None:
        tries.append(attempt.tile.hour)
        raise RecordError("refused")

    made.landings["two"].before = before
    assert not made.land().success
    assert tries == [FIRST]
    assert made.hours() == {"one": ALL, "two": [], "three": ALL}


def test_a_mistake_in_the_code_that_one_topic_meets_is_told_with_its_trace(made: Runs) -> None:
    def before(_: Any) -> None:
        raise ZeroDivisionError("of the test")

    made.landings["two"].before = before
    result = made.land()
    assert not result.success
    assert made.hours() == {"one": ALL, "two": [], "three": ALL}
    assert "in before" in made.lines(result)


def test_a_run_that_is_canceled_shows_what_it_has_committed(made: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    canceled = threading.Event()

    def before(attempt: Any) -> None:
        if attempt.tile.hour == SECOND:
            canceled.wait(20)

    made.landings["two"].before = before

    def interrupted(_: Any, outcomes: Any) -> None:
        for outcome in outcomes[:2]:  # of "one" and "three"
            outcome.result(20)
        threading.Timer(0.2, canceled.set).start()
        raise DagsterExecutionInterruptedError

    monkeypatch.setattr(fleet._Fleet, "_store", interrupted)
    result = made.land()
    assert not result.success
    assert made.hours()["one"] == ALL
    assert made.hours()["two"][0] == FIRST


def test_hours_stay_fresh_when_their_topic_goes_on(made: Runs, instance: dg.DagsterInstance) -> None:
    key, graph = made.catalogue.key(made.sink, "one"), build_definitions(made.config).resolve_asset_graph()
    observed = made.catalogue.topic("one").key
    instance.report_runless_asset_event(dg.AssetObservation(observed, tags={"dagster/data_version": "before"}))
    made.land()
    instance.report_runless_asset_event(dg.AssetObservation(observed, tags={"dagster/data_version": "after"}))
    resolver = CachingStaleStatusResolver(instance, graph, LoadingContextForTest(instance))
    assert resolver.get_status(key, FIRST) == StaleStatus.FRESH
