"""The hourly schedule after runs that failed, and the pruning of old runs."""

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone

import dagster as dg
import pytest
from dagster._core.test_utils import create_run_for_test

from s3lake.config import native
from s3lake.config.model import Config
from s3lake.errors import ConfigurationError
from s3lake.orchestration import dagster_names
from s3lake.orchestration.build import build_definitions
from s3lake.orchestration.catalog import Catalog
from s3lake.orchestration.jobs import prune_runs
from s3lake.orchestration.translator import sink_key
from s3lake_tests.orchestration import instances

KEY = sink_key("events", "orders")
SUCCESS, FAILURE = dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE


def config(history: str = "") -> Config:
    sinks = "sinks: [{name: events, topics: [orders], bucket: lake, start: 2026-01-05T00}]"
    return native.load_text(f"kafka: {{bootstrap_servers: '127.0.0.1:1'}}\n{history}\n{sinks}", "test.yaml")


class TestHourlySchedule:
    @pytest.mark.parametrize(
        ("status", "span", "first"),
        [
            (SUCCESS, "2026-01-07T12..2026-01-07T13", "2026-01-07T14"),
            (FAILURE, "2026-01-07T12..2026-01-07T13", "2026-01-07T12"),
            (FAILURE, "2026-01-05T00..2026-01-07T13", "2026-01-06T13"),
        ],
    )
    def test_begins_with_the_hours_that_its_last_run_failed_to_land(
        self, status: dg.DagsterRunStatus, span: str, first: str
    ) -> None:
        tags = {"dagster/schedule_name": "hourly_events", "dagster/run_key": span}
        schedule = build_definitions(config()).get_repository_def().get_schedule_def("hourly_events")
        now = datetime(2026, 1, 7, 15, 6, tzinfo=timezone.utc)
        with (
            instances.in_files() as instance,
            dg.build_schedule_context(instance, scheduled_execution_time=now) as context,
        ):
            create_run_for_test(instance, tags=tags, status=status)
            (request,) = schedule.evaluate_tick(context).run_requests or ()
        assert dagster_names.find_range(request.tags) == (first, "2026-01-07T15")


class TestRunHistory:
    """`run_history`: old runs go whose every materialisation was followed by a later one."""

    HOURS = ("2026-01-05T00", "2026-01-05T01")

    def run(self, instance: dg.DagsterInstance, hours: Sequence[str], *, fails: bool = False) -> str:
        """Run an op that materialises hours."""

        @dg.op
        def land(context: dg.OpExecutionContext) -> None:
            for hour in hours:
                context.log_event(dg.AssetMaterialization(KEY, partition=hour))
            if fails:
                raise dg.Failure("refused")

        @dg.job
        def land_events() -> None:
            land()

        return land_events.execute_in_process(instance=instance, raise_on_error=False).run_id

    def prune(self, instance: dg.DagsterInstance, later: timedelta = timedelta(minutes=1)) -> list[str]:
        """Prune runs from before now, or from before a later time; the runs that are left."""
        prune_runs(instance, Catalog(config()), {"land_events"}, datetime.now(timezone.utc) + later)
        return [run.run_id for run in instance.get_runs()]

    def test_a_run_is_deleted_if_all_its_hours_were_materialised_later(self, instance: dg.DagsterInstance) -> None:
        self.run(instance, self.HOURS)
        others = [self.run(instance, [hour]) for hour in self.HOURS]
        assert self.prune(instance) == others[::-1]
        assert instance.get_materialized_partitions(KEY) == set(self.HOURS)

    def test_a_run_with_the_last_materialisation_of_an_hour_is_kept(self, instance: dg.DagsterInstance) -> None:
        first = self.run(instance, self.HOURS)
        second = self.run(instance, self.HOURS[:1])
        assert self.prune(instance) == [second, first]

    def test_a_failed_run_is_deleted_if_it_materialised_nothing_that_is_the_last(
        self, instance: dg.DagsterInstance
    ) -> None:
        self.run(instance, [], fails=True)
        kept = self.run(instance, self.HOURS, fails=True)
        assert self.prune(instance) == [kept]

    def test_a_younger_run_is_kept(self, instance: dg.DagsterInstance) -> None:
        runs = [self.run(instance, self.HOURS) for _ in range(2)]
        assert self.prune(instance, later=-timedelta(hours=1)) == runs[::-1]

    def test_a_run_that_has_not_ended_and_one_of_another_job_are_kept(self, instance: dg.DagsterInstance) -> None:
        create_run_for_test(instance, job_name="land_events", status=dg.DagsterRunStatus.STARTED)
        create_run_for_test(instance, job_name="land_other", status=SUCCESS)
        assert len(self.prune(instance)) == 2

    def test_a_backfill_of_our_assets_is_deleted_like_our_jobs(self, instance: dg.DagsterInstance) -> None:
        create_run_for_test(instance, job_name="__ASSET_JOB", asset_selection=frozenset({KEY}), status=SUCCESS)
        both = frozenset({KEY, dg.AssetKey("daily")})
        kept = create_run_for_test(instance, job_name="__ASSET_JOB", asset_selection=both, status=SUCCESS)
        assert self.prune(instance) == [kept.run_id]

    def test_many_runs_are_pruned_page_by_page(
        self, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("s3lake.orchestration.jobs.RUNS_A_PAGE", 2)
        for _ in range(5):
            create_run_for_test(instance, job_name="land_events", status=SUCCESS)
        assert self.prune(instance) == []

    def test_the_setting_makes_a_nightly_job(self, instance: dg.DagsterInstance) -> None:
        definitions = build_definitions(config("run_history: 14d"))
        (schedule,) = [one for one in definitions.schedules or () if one.name == "s3lake_daily_prune_runs"]
        assert schedule.cron_schedule == "30 3 * * *"
        self.run(instance, self.HOURS)
        assert definitions.resolve_job_def("s3lake_prune_runs").execute_in_process(instance=instance).success
        assert len(instance.get_runs()) == 2
        assert "s3lake_prune_runs" not in [job.name for job in build_definitions(config()).resolve_all_job_defs()]

    def test_less_than_an_hour_is_refused(self) -> None:
        with pytest.raises(ConfigurationError, match="run_history: 10m is out of range: at least 1h"):
            config("run_history: 10m")
