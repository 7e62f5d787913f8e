"""What the process of a run spends on itself, and need not."""

import gc
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.storage.event_log.sqlite import sqlite_event_log
from sqlalchemy import Engine, create_engine

from s3lake.orchestration.run_process import spared


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "dagster.yaml").write_text(
        f"telemetry: {{enabled: false}}\nstorage: {{sqlite: {{base_dir: '{tmp_path}/storage'}}}}\n"
    )
    return tmp_path


def _logs(home: Path) -> list[str]:
    """Write-ahead logs of events."""
    return sorted(path.name for path in home.rglob("*-wal") if path.parent.name == "runs")


def test_write_ahead_logs_of_dagster_s_sqlite_files_last_from_event_to_event(home: Path) -> None:
    seen = []

    @dg.op
    def work(context: dg.OpExecutionContext) -> None:
        with spared(context.instance, context.run.run_id):
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


def test_an_event_log_in_sqlite_has_one_engine_however_many_events_come(home: Path) -> None:
    engines: dict[str, int] = {}

    def counted(address: str, **options: Any) -> Engine:
        engines[address.rpartition("/")[2]] = engines.get(address.rpartition("/")[2], 0) + 1
        return create_engine(address, **options)

    @dg.op
    def work(context: dg.OpExecutionContext) -> None:
        with pytest.MonkeyPatch.context() as dagsters:
            dagsters.setattr(sqlite_event_log, "create_engine", counted)
            with spared(context.instance, context.run.run_id):
                for number in range(3):
                    context.log_event(dg.AssetMaterialization("a", metadata={"number": number}))
            assert sqlite_event_log.create_engine is counted

    @dg.job
    def job() -> None:
        work()

    with dg.DagsterInstance.from_config(str(home)) as instance:
        run_id = job.execute_in_process(instance=instance).run_id
        assert engines == {f"{run_id}.db": 1, "index.db": 1}
        records = instance.fetch_materializations(dg.AssetKey("a"), limit=5).records
        stored = [record.asset_materialization for record in records]
        assert [event.metadata["number"].value for event in stored if event] == [2, 1, 0]


def test_a_file_that_is_not_there_is_not_made(home: Path) -> None:
    with dg.DagsterInstance.from_config(str(home)) as instance, spared(instance, "no such run"):
        assert not list(home.rglob("no such run*"))


@pytest.fixture
def usual() -> Iterator[tuple[int, int, int]]:
    """Python's own thresholds: loading a code location, as other tests do, sets higher ones for good."""
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield gc.get_threshold()
    gc.set_threshold(*before)


def test_cycles_are_looked_for_seldom_while_it_works(usual: tuple[int, int, int]) -> None:
    with dg.DagsterInstance.ephemeral() as instance, spared(instance, "a run"):
        assert gc.get_threshold()[0] > 10 * usual[0]
    assert gc.get_threshold() == usual


@pytest.mark.slow("starts runs as processes")
@pytest.mark.long
@pytest.mark.parametrize(("package", "spared"), [("json", "True"), ("duckdb", "False")])
def test_cycles_are_not_looked_for_when_it_ends_but_where_duckdb_would_tell_of_each(package: str, spared: str) -> None:
    script = f"""
import atexit, gc, {package}, dagster as dg
from s3lake.orchestration.run_process import spared
atexit.register(lambda: print(gc.get_freeze_count() > 100_000))
with dg.DagsterInstance.ephemeral() as instance, spared(instance, "a run"):
    pass
"""
    # What is registered last is called first.
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert (run.stdout, run.stderr) == (f"{spared}\n", "")
