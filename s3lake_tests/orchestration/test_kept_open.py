"""Dagster's SQLite files, kept open while a run works."""

from pathlib import Path

import dagster as dg
import pytest

from s3lake.orchestration.kept_open import kept_open


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "dagster.yaml").write_text(
        f"telemetry: {{enabled: false}}\nstorage: {{sqlite: {{base_dir: '{tmp_path}/storage'}}}}\n"
    )
    return tmp_path


def _logs(home: Path) -> list[str]:
    """Write-ahead logs of events."""
    return sorted(path.name for path in home.rglob("*-wal") if path.parent.name == "runs")


def test_their_write_ahead_logs_last_from_event_to_event(home: Path) -> None:
    seen = []

    @dg.op
    def work(context: dg.OpExecutionContext) -> None:
        with kept_open(context.instance, context.run.run_id):
            context.log_event(dg.AssetMaterialization("a"))
            seen.append(_logs(home))
        context.log_event(dg.AssetMaterialization("a"))
        seen.append(_logs(home))

    @dg.job
    def job() -> None:
        work()

    with dg.DagsterInstance.from_config(str(home)) as instance:
        run_id = job.execute_in_process(instance=instance).run_id
        assert seen == [sorted([f"{run_id}.db-wal", "index.db-wal"]), []]
        assert len(instance.fetch_materializations(dg.AssetKey("a"), limit=5).records) == 2


def test_a_file_that_is_not_there_is_no_matter(home: Path) -> None:
    with dg.DagsterInstance.from_config(str(home)) as instance, kept_open(instance, "no such run"):
        assert not list(home.rglob("no such run*"))


def test_other_storages_are_left_alone() -> None:
    with dg.DagsterInstance.ephemeral() as instance, kept_open(instance, "a run"):
        pass
