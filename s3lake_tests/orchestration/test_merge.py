"""s3lake merged into a project: all that the project had is there as it was, and works as it did."""

from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.remote_representation.external_data import RepositorySnap
from dagster._core.snap import JobSnap
from dagster._record import replace
from dagster._utils.warnings import disable_dagster_warnings

pytestmark = pytest.mark.filterwarnings("ignore::dagster.BetaWarning")  # Dagster's own, where jobs get resources

PROJECT = '''
"""A project that has what s3lake has too: names of resources, an executor, jobs, schedules, sensors."""

import dagster as dg


class Part(dg.ConfigurableResource):
    name: str


@dg.asset(group_name="shop", owners=["team:shop"], partitions_def=dg.DailyPartitionsDefinition("2026-01-05"))
def revenue(s3: Part, spark: Part) -> int:
    return len(s3.name + spark.name)


@dg.asset(key=["events", "orders"], automation_condition=dg.AutomationCondition.eager())
def orders(revenue: int) -> int:
    return revenue


@dg.asset_check(asset=orders)
def positive(context) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(passed=True)


@dg.op
def land(kafka: Part) -> str:
    return kafka.name


@dg.job
def clean() -> None:
    land()


everything = dg.define_asset_job("everything", selection=dg.AssetSelection.groups("shop"))


@dg.sensor(job=clean)
def watching(context, s3: Part) -> dg.SkipReason:
    return dg.SkipReason(s3.name)


shop = dg.Definitions(
    assets=[revenue, orders],
    asset_checks=[positive],
    jobs=[clean, everything],
    schedules=[
        dg.ScheduleDefinition(job=everything, cron_schedule="0 5 * * *"),
        dg.ScheduleDefinition(job=clean, cron_schedule="0 6 * * *"),
    ],
    sensors=[watching],
    resources={
        **{name: Part(name=name) for name in ("kafka", "s3", "spark", "sink")},
        "io_manager": dg.FilesystemIOManager(),
    },
    executor=dg.multiprocess_executor.configured({"max_concurrent": 3}),
    loggers={"console": dg.colored_console_logger},
)
'''
SINK = "{name: events, topics: [orders, clicks], bucket: lake, start: 2026-01-05T00, format: {type: parquet}}"
CONFIGURATION = f"""
kafka: {{bootstrap_servers: "127.0.0.1:1"}}
sinks: [{SINK}]
"""
MERGED = """
from pathlib import Path

import dagster as dg
import s3lake

import shop

HERE = Path(__file__).parent
ours = [
    s3lake.build_definitions(s3lake.load(HERE / "lake.yaml")),
    s3lake.build_definitions(s3lake.load(HERE / "archive.yaml"), translator=s3lake.SinkTranslator("archive")),
]
defs = dg.Definitions.merge(shop.shop, *ours)
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Its files, and two configurations whose sinks have one name."""
    (tmp_path / "shop.py").write_text(PROJECT)
    (tmp_path / "merged.py").write_text(MERGED)
    (tmp_path / "lake.yaml").write_text(CONFIGURATION)
    (tmp_path / "archive.yaml").write_text(CONFIGURATION.replace("127.0.0.1:1", "127.0.0.1:2"))
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def imported(project: Path, module: str) -> Any:
    """Import a module of the project again."""
    scope: dict[str, Any] = {"__name__": module, "__file__": str(project / f"{module}.py")}
    exec(compile((project / f"{module}.py").read_text(), scope["__file__"], "exec"), scope)
    return scope


UNUSED: dict[str, Any] = {f"{user}_using": [] for user in ("asset_keys", "job_ops", "schedules", "sensors")}
"""Who uses a resource is nothing of the resource: every check of an asset has the default IO manager."""


def shown(definitions: dg.Definitions) -> dict[str, dict[str, str]]:
    """All that Dagster knows of every definition, by sort and name, as it would be sent to the web server."""
    built = definitions.get_repository_def()
    with disable_dagster_warnings():
        snap = RepositorySnap.from_def(built)
    jobs = [job for job in built.get_all_jobs() if not job.name.startswith("__")]
    of_all = {
        "assets": {one.asset_key.to_user_string(): one for one in snap.asset_nodes},
        "checks": {str(one.key): one for one in snap.asset_check_nodes or ()},
        "schedules": {one.name: one for one in snap.schedules},
        "sensors": {one.name: one for one in snap.sensors},
        "resources": {one.name: replace(one, **UNUSED) for one in snap.resources or ()},
        "jobs": {one.name: JobSnap.from_job_def(one).node_defs_snapshot for one in jobs},
        "graphs": {one.name: JobSnap.from_job_def(one).dep_structure_snapshot for one in jobs},
    }
    return {
        sort: {name: dg.serialize_value(one) for name, one in of_sort.items()}  # type: ignore[attr-defined]
        for sort, of_sort in of_all.items()
    }


def test_nothing_of_a_project_changes_when_two_configurations_are_merged_into_it(project: Path) -> None:
    merged = imported(project, "merged")
    before, after = shown(merged["shop"].shop), shown(merged["defs"])
    assert {sort: len(names) for sort, names in before.items()} == {
        "assets": 2,
        "checks": 1,
        "schedules": 2,
        "sensors": 2,  # one is Dagster's, for automation conditions
        "resources": 5,
        "jobs": 2,
        "graphs": 2,
    }
    for sort, definitions in before.items():
        assert {name: after[sort][name] for name in definitions} == definitions
    for sort in ("assets", "jobs", "sensors", "schedules", "resources"):
        assert len(after[sort]) >= len(before[sort]) + 2 * 2


def test_a_project_keeps_its_executor_and_logger_and_ours_have_theirs(project: Path) -> None:
    merged = imported(project, "merged")
    built = merged["defs"].get_repository_def()
    for job in built.get_all_jobs():
        ours = job.name.startswith(("land_", "s3lake_", "archive_"))
        assert (job.executor_def is dg.in_process_executor) == ours
        assert "console" in job.loggers
    assert built.get_job("everything").executor_def is merged["shop"].shop.executor
    assert built.get_job("__ASSET_JOB").executor_def is merged["shop"].shop.executor


def test_a_project_s_assets_are_materialised_as_before(project: Path) -> None:
    merged = imported(project, "merged")
    with dg.instance_for_test() as instance:
        result = (
            merged["defs"]
            .resolve_job_def("everything")
            .execute_in_process(partition_key="2026-01-06", instance=instance)
        )
        assert result.output_for_node("revenue") == len("s3spark")
