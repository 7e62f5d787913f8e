"""What a run shows while it works: its log, and a materialisation of each hour as soon as it is done."""

import dataclasses
import functools
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleStatus
from dagster._core.execution.plan.objects import ErrorSource
from dagster._core.loader import LoadingContextForTest

from s3lake.commit.protocol import Attempt
from s3lake.errors import KafkaUnavailableError, RecordError, StoreUnavailableError
from s3lake.land.spark import installation
from s3lake.orchestration.build import build_definitions
from s3lake.orchestration.progress import Announced
from s3lake.sink import Config
from s3lake_tests.commit.kafka import TOPIC
from s3lake_tests.land.unstaged import FIRST, SECOND, THIRD, Landed
from s3lake_tests.orchestration import unstaged_runs
from s3lake_tests.orchestration.unstaged_runs import STAND_INS, materialisations

KEY = dg.AssetKey(["s3", "events", TOPIC])


@functools.cache
def job_of(config: str) -> dg.JobDefinition:
    """Nobody changes it, and most runs have the same."""
    definitions = build_definitions(Config.model_validate_json(config), resources=STAND_INS)
    return definitions.resolve_job_def("land_events")


class Runs(unstaged_runs.Runs):
    """Runs of a sink of one topic."""

    def __init__(self, instance: dg.DagsterInstance, patch: pytest.MonkeyPatch, **settings: Any) -> None:
        super().__init__(instance, patch, TOPIC, **settings)
        self.world = self.worlds[TOPIC]
        self.job = job_of(self.config.model_dump_json(by_alias=True))

    def land(self, first: str = FIRST, last: str = THIRD) -> dg.ExecuteInProcessResult:
        tags = {"dagster/asset_partition_range_start": first, "dagster/asset_partition_range_end": last}
        return self.job.execute_in_process(tags=tags, instance=self.instance, raise_on_error=False)

    def again(self) -> Landed:
        """A new landing, as every run has one."""
        self.landings[TOPIC] = dataclasses.replace(self.landings[TOPIC])
        return self.landings[TOPIC]

    def materialisations(self) -> list[dg.AssetMaterialization]:
        return materialisations(self.instance, KEY)

    def lines(self) -> list[str]:
        """What the last run has said of the topic, and its events of outputs and hours."""
        (run,) = self.instance.get_runs(limit=1)
        entries = [record.event_log_entry for record in self.instance.get_records_for_run(run.run_id).records]
        events = {"ASSET_MATERIALIZATION", "STEP_OUTPUT", "HANDLED_OUTPUT"}
        told = [
            (one.dagster_event.event_type_value if one.dagster_event else one.user_message)
            for one in entries
            if one.step_key == "__".join(KEY.path)
        ]
        return [line for line in told if line in events or line.startswith(f"events {TOPIC}, ")]


@pytest.fixture
def runs(instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch) -> Runs:
    return Runs(instance, monkeypatch)


class TestLog:
    def test_says_the_plan_each_commit_and_each_hour_and_its_output_comes_last(
        self, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        runs = Runs(instance, monkeypatch, batch_records=4)
        runs.land(FIRST, FIRST)
        assert runs.lines() == [
            f"events orders, hour {FIRST}: planned 10 offsets in 3 micro-batches",
            f"events orders, hour {FIRST}: commit 1 of 3: 4 rows in 0 files, 0 dead letters",
            f"events orders, hour {FIRST}: commit 2 of 3: 4 rows in 0 files, 0 dead letters",
            f"events orders, hour {FIRST}: commit 3 of 3: 2 rows in 0 files, 0 dead letters",
            f"events orders, hour {FIRST}: done, 10 rows in 0 files; 1 of 1 hours, 100%",
            "ASSET_MATERIALIZATION",
            "STEP_OUTPUT",
            "HANDLED_OUTPUT",
        ]

    def test_says_the_share_of_the_hours_that_is_done(self, runs: Runs) -> None:
        runs.land()
        done = [line for line in runs.lines() if ": done" in line]
        assert [line.rpartition("; ")[2] for line in done] == [
            "1 of 3 hours, 33%",
            "2 of 3 hours, 66%",
            "3 of 3 hours, 100%",
        ]

    def test_says_of_hours_that_are_complete_that_there_is_nothing_new(self, runs: Runs) -> None:
        runs.land()
        runs.again()
        runs.land()
        assert [line.partition(": ")[2] for line in runs.lines() if "hour" in line] == [
            "done, 10 rows in 0 files; nothing new to land; 1 of 3 hours, 33%",
            "done, 10 rows in 0 files; nothing new to land; 2 of 3 hours, 66%",
            "done, 10 rows in 0 files; nothing new to land; 3 of 3 hours, 100%",
        ]

    def test_says_when_the_session_starts_and_when_it_is_ready_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(installation, "fit", lambda session, **_: session)
        session, said = object(), list[str]()
        spark = Announced(SimpleNamespace(spark_session=session), SimpleNamespace(info=said.append))
        assert spark.spark_session is session
        assert spark.spark_session is session
        assert said == ["Spark session: starting", "Spark session: ready after 0.0 s"]


class TestMaterialisations:
    def test_an_hour_is_materialised_while_the_run_goes_on(self, runs: Runs) -> None:
        seen: list[Any] = []

        def look(attempt: Attempt) -> None:
            if attempt.tile.hour == THIRD:
                seen.extend(runs.hours()[TOPIC])

        runs.landings[TOPIC].before = look
        runs.land()
        assert seen == [FIRST]  # the second one becomes visible while the third is read

    def test_there_is_one_for_each_hour(self, runs: Runs) -> None:
        result = runs.land()
        assert result.success
        assert runs.hours()[TOPIC] == [FIRST, SECOND, THIRD]
        assert [one.metadata["dagster/row_count"].value for one in runs.materialisations()] == [10, 10, 10]

    def test_a_run_of_one_hour_has_one_too(self, runs: Runs) -> None:
        tags = {"dagster/partition": FIRST}
        assert runs.job.execute_in_process(tags=tags, instance=runs.instance).success
        assert runs.hours()[TOPIC] == [FIRST]

    def test_a_cancelled_run_has_them_for_what_it_has_committed(
        self, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        runs = Runs(instance, monkeypatch, batch_records=4)

        def cancel(attempt: Attempt) -> None:
            if attempt.tile.hour == SECOND and attempt.tile.commits:
                raise KeyboardInterrupt

        runs.landings[TOPIC].before = cancel
        assert not runs.land().success
        assert runs.hours()[TOPIC] == [FIRST, SECOND]
        found = [
            (one.metadata["dagster/row_count"].value, one.metadata["complete"].value) for one in runs.materialisations()
        ]
        assert found == [(10, True), (4, False)]
        assert f"events orders, hour {SECOND}: not done, 1 commit of this run stay" in runs.lines()

    def test_a_cancelled_run_is_cancelled_though_the_index_cannot_be_read(
        self, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        runs = Runs(instance, monkeypatch, batch_records=4)

        def cancel(attempt: Attempt) -> None:
            if attempt.tile.commits:
                monkeypatch.setattr(runs.landings[TOPIC], "report", away)
                raise KeyboardInterrupt

        def away(*_: object) -> None:
            raise StoreUnavailableError("S3 is away")

        runs.landings[TOPIC].before = cancel
        result = runs.land()
        (failure,) = [event.step_failure_data for event in result.all_events if event.is_step_failure]
        assert failure.error_source is ErrorSource.INTERRUPT
        assert runs.hours()[TOPIC] == []

    def test_what_became_visible_after_the_run_was_cancelled_has_one_too(self, runs: Runs) -> None:
        def cancel(attempt: Attempt) -> None:
            if attempt.tile.hour == SECOND:
                raise KeyboardInterrupt

        runs.landings[TOPIC].before = cancel
        assert not runs.land().success
        assert runs.hours()[TOPIC] == [FIRST]

    def test_an_hour_that_failed_has_none_and_those_before_it_have(
        self, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        runs = Runs(instance, monkeypatch, batch_records=4)

        def refuse(attempt: Attempt) -> None:
            if attempt.tile.hour == SECOND and attempt.tile.commits:
                raise RecordError("refused")

        runs.landings[TOPIC].before = refuse
        assert not runs.land().success
        assert runs.hours()[TOPIC] == [FIRST]

    def test_a_second_attempt_does_not_repeat_those_of_the_first(self, runs: Runs) -> None:
        outages = [KafkaUnavailableError("away")]

        def fail(attempt: Attempt) -> None:
            if attempt.tile.hour == THIRD and outages:
                raise outages.pop()

        runs.landings[TOPIC].before = fail
        assert runs.land().success
        assert runs.hours()[TOPIC] == [FIRST, SECOND, THIRD]

    def test_the_open_hour_tells_its_lag(self, runs: Runs) -> None:
        runs.landings[TOPIC] = runs.world.landing(now_minute=130)
        runs.landings[TOPIC].before = lambda _: runs.world.kafka.produce(0, 128, 129)
        runs.land(THIRD, THIRD)
        (hour,) = runs.materialisations()
        assert (hour.metadata["lag_s"].value, hour.metadata["complete"].value) == (120.0, False)
        (row,) = hour.metadata["offsets"].value.records
        assert row.data == {"topic-partition": "orders-0", "start": 20, "landed": 30, "end": 32, "lag": 2}

    def test_the_open_hour_of_which_nothing_waits_lags_by_nothing(self, runs: Runs) -> None:
        runs.landings[TOPIC] = runs.world.landing(now_minute=130)
        runs.land(THIRD, THIRD)
        (hour,) = runs.materialisations()
        assert hour.metadata["lag_s"].value == 0.0

    def test_a_closed_hour_has_no_lag(self, runs: Runs) -> None:
        runs.land(FIRST, FIRST)
        (hour,) = runs.materialisations()
        assert "lag_s" not in hour.metadata

    def test_what_comes_after_the_asset_in_the_same_run_is_done(self, runs: Runs) -> None:
        assert len(runs.land().get_asset_check_evaluations()) > 0

    def test_the_output_says_what_the_hours_hold_together(self, runs: Runs) -> None:
        (found,) = [event for event in runs.land().all_events if event.event_type_value == "HANDLED_OUTPUT"][:1]
        metadata = {name: value.value for name, value in found.event_specific_data.metadata.items()}  # type: ignore[union-attr]
        assert metadata == {"hours": 3, "rows": 30, "size_bytes": 0, "files": 0, "dead_letters": 0, "new_commits": 3}


class TestVersions:
    def test_an_hour_has_a_version_of_its_own_that_changes_with_its_commits_alone(self, runs: Runs) -> None:
        runs.land()
        runs.again()
        runs.land()
        versions = [one.tags["dagster/data_version"] for one in runs.materialisations()]
        assert len(set(versions)) == 3
        assert versions[:3] == versions[3:]
        runs.again().rewrite(SECOND)
        runs.land()
        assert runs.materialisations()[-2].tags["dagster/data_version"] not in versions

    def test_an_hour_stays_fresh_when_its_topic_goes_on(self, runs: Runs) -> None:
        def observe(ends: str) -> None:
            observed = dg.AssetObservation(["kafka", TOPIC], tags={"dagster/data_version": ends})
            runs.instance.report_runless_asset_event(observed)

        observe("before")
        runs.land(FIRST, FIRST)
        observe("after")
        graph = runs.job.asset_layer.asset_graph
        resolver = CachingStaleStatusResolver(runs.instance, graph, LoadingContextForTest(runs.instance))
        assert resolver.get_status(KEY, FIRST) == StaleStatus.FRESH
