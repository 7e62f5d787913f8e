"""s3lake merged into a project: all that the project had is there as it was, and works as it did."""

from typing import Any

import dagster as dg
import pytest
from dagster._core.remote_representation.external_data import RepositorySnap
from dagster._core.snap import JobSnap
from dagster._record import replace
from dagster._utils.warnings import disable_dagster_warnings

import s3lake
from s3lake_tests.kit.sinks import make_config, make_sink

pytestmark = pytest.mark.filterwarnings("ignore::dagster.BetaWarning")  # Dagster's own, where jobs get resources


class Part(dg.ConfigurableResource):  # type: ignore[type-arg]
    name: str


def shop() -> dg.Definitions:
    """A project that has what s3lake has too: names of resources, an executor, jobs, schedules, sensors."""

    @dg.asset(group_name="shop", partitions_def=dg.DailyPartitionsDefinition("2026-01-05"))
    def revenue(s3: Part, spark: Part) -> int:
        return len(s3.name + spark.name)

    @dg.asset(key=["events", "orders"], automation_condition=dg.AutomationCondition.eager())
    def orders(revenue: int) -> int:
        return revenue

    @dg.asset_check(asset=orders)
    def positive() -> dg.AssetCheckResult:
        return dg.AssetCheckResult(passed=True)

    @dg.op
    def land(kafka: Part) -> str:
        return kafka.name

    @dg.job
    def clean() -> None:
        land()

    @dg.sensor(job=clean)
    def watching(s3: Part) -> dg.SkipReason:
        return dg.SkipReason(s3.name)

    everything = dg.define_asset_job("everything", selection=dg.AssetSelection.groups("shop"))
    return dg.Definitions(
        assets=[revenue, orders],
        asset_checks=[positive],
        jobs=[clean, everything],
        schedules=[dg.ScheduleDefinition(job=everything, cron_schedule="0 5 * * *")],
        sensors=[watching],
        resources={
            **{name: Part(name=name) for name in ("kafka", "s3", "spark", "sink")},
            "io_manager": dg.FilesystemIOManager(),
        },
        executor=dg.multiprocess_executor.configured({"max_concurrent": 3}),
        loggers={"console": dg.colored_console_logger},
    )


def merged(project: dg.Definitions) -> dg.Definitions:
    """The project with two configurations whose sinks have one name."""
    config = make_config(make_sink(topics=["orders", "clicks"], format={"type": "parquet"}))
    archive = s3lake.SinkTranslator("archive")
    ours = s3lake.build_definitions(config), s3lake.build_definitions(config, translator=archive)
    return dg.Definitions.merge(project, *ours)


UNUSED: dict[str, Any] = {f"{user}_using": [] for user in ("asset_keys", "job_ops", "schedules", "sensors")}
"""Who uses a resource is nothing of the resource: every check of an asset has the default IO manager."""


def shown(definitions: dg.Definitions) -> dict[tuple[str, str], str]:
    """All that Dagster knows of every definition, by sort and name, as it would be sent to the web server."""
    built = definitions.get_repository_def()
    with disable_dagster_warnings():
        snap = RepositorySnap.from_def(built)
    jobs = [job for job in built.get_all_jobs() if not job.name.startswith("__")]
    selected = {one.name: one.asset_selection for one in snap.sensors if one.asset_selection is not None}
    conditioned = {one.asset_key for one in snap.asset_nodes if one.automation_condition is not None}
    found: dict[tuple[str, str], Any] = {
        **{("asset", one.asset_key.to_user_string()): one for one in snap.asset_nodes},
        **{("check", str(one.key)): one for one in snap.asset_check_nodes or ()},
        **{("schedule", one.name): one for one in snap.schedules},
        **{("sensor", one.name): replace(one, asset_selection=None) for one in snap.sensors},
        # Dagster writes its own sensor's selection as all assets without those with another sensor: its assets count.
        **{
            ("selection", name): sorted(conditioned & keys.resolve(built.asset_graph))
            for name, keys in selected.items()
        },
        **{("resource", one.name): replace(one, **UNUSED) for one in snap.resources or ()},
        **{("job", one.name): JobSnap.from_job_def(one).node_defs_snapshot for one in jobs},
        **{("graph", one.name): JobSnap.from_job_def(one).dep_structure_snapshot for one in jobs},
    }
    return {name: dg.serialize_value(one) for name, one in found.items()}


def test_nothing_of_a_project_changes_when_two_configurations_are_merged_into_it() -> None:
    project = shop()
    before, after = shown(project), shown(merged(project))
    assert len(before) == 2 + 1 + 1 + 2 + 1 + 5 + 2 + 2  # one of the sensors is Dagster's, for automation conditions
    assert {name: after[name] for name in before} == before
    for sort in ("asset", "job", "sensor", "schedule", "resource"):
        assert sum(name[0] == sort for name in after.keys() - before.keys()) >= 2 * 2


def test_a_project_keeps_its_executor_and_logger_and_ours_have_theirs() -> None:
    project = shop()
    built = merged(project).get_repository_def()
    for job in built.get_all_jobs():
        ours = job.name.startswith(("land_", "s3lake_", "archive_"))
        assert (job.executor_def is dg.in_process_executor) == ours
        assert "console" in job.loggers
    assert built.get_job("everything").executor_def is project.executor
    assert built.get_job("__ASSET_JOB").executor_def is project.executor


def test_a_project_s_assets_are_materialised_as_before() -> None:
    job = merged(shop()).resolve_job_def("everything")
    with dg.instance_for_test() as instance:
        result = job.execute_in_process(partition_key="2026-01-06", instance=instance)
        assert result.output_for_node("revenue") == len("s3spark")
