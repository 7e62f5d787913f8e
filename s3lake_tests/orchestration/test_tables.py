"""Assets of a project whose tables land in a sink: materialised, read back, replaced, in ranges, and refused."""

import re
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import s3lake
from s3lake import hours
from s3lake.cli import app
from s3lake.config import native
from s3lake.config.model import Config
from s3lake.demo.embedded_s3 import EmbeddedS3
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.index.store.s3_connection import S3Connection
from s3lake.index.store.s3_store import S3Store
from s3lake.orchestration import dagster_names
from s3lake.orchestration.build import build_definitions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START, SECOND, THIRD = "2026-01-05T08", "2026-01-05T09", "2026-01-05T10"
HOURS = dg.HourlyPartitionsDefinition(START, fmt=hours.FORMAT, timezone="UTC")
IO = "s3lake_tables_io_manager"
BACKFILL_POLICIES = pytest.mark.filterwarnings("ignore:Parameter `backfill_policy`:dagster.BetaWarning")


@pytest.fixture
def settings(s3_server: EmbeddedS3) -> str:
    """A sink without topics in a bucket of the test's own, without Kafka."""
    bucket = f"lake-{uuid.uuid4()}"
    s3_server.create_bucket(bucket)
    return f"""\
s3:
  endpoint_url: "{s3_server.endpoint_url}"
  region: "{s3_server.region}"
  credentials: {{access_key_id: {s3_server.access_key_id}, secret_access_key: {s3_server.secret_access_key}}}
sinks:
  - {{name: tables, bucket: {bucket}, start: {START}, format: {{type: parquet}}}}
"""


@pytest.fixture
def config(settings: str) -> Config:
    return native.load_text(settings, "s3lake.yaml")


def run(config: Config, *assets: dg.AssetsDefinition, raises: bool = True, **run: Any) -> dg.ExecuteInProcessResult:
    """Materialise assets of a project that is merged with the configuration's definitions."""
    definitions = dg.Definitions.merge(build_definitions(config), dg.Definitions(assets=assets))
    job = definitions.resolve_implicit_global_asset_job_def()
    keys = [key for one in assets for key in one.keys]
    with dg.DagsterInstance.ephemeral() as instance:
        return job.execute_in_process(asset_selection=keys, instance=instance, raise_on_error=raises, **run)


def returning(value: Callable[[], object], **asset: Any) -> dg.AssetsDefinition:
    """An asset called `daily` that returns a value."""

    named = {} if "key" in asset else {"name": "daily"}

    @dg.asset(io_manager_key=IO, **{"partitions_def": HOURS, **named, **asset})
    def daily() -> Any:
        return value()

    return daily


def failure(result: dg.ExecuteInProcessResult) -> str:
    (event,) = [event for event in result.all_events if event.event_type_value == "STEP_FAILURE"]
    return str(event.event_specific_data.error)  # type: ignore[union-attr]


def test_the_table_of_an_asset_is_landed_and_read_back_as_its_own_kind(config: Config) -> None:
    """`land/hour/test_table_landing.py` lands each kind of table, `lake/readback/test_arrow.py` gives each back."""
    seen: list[list[int]] = []
    asset = returning(lambda: pl.DataFrame({"n": [1, 2]}))

    @dg.asset(ins={"daily": dg.AssetIn("daily")}, partitions_def=HOURS)
    def downstream(daily: pl.DataFrame) -> None:
        seen.append(sorted(daily["n"].to_list()))

    result = run(config, asset, downstream, partition_key=SECOND)
    assert seen == [[1, 2]]
    (event,) = result.asset_materializations_for_node("daily")
    assert (event.partition, event.metadata["rows"].value, event.metadata["files"].value) == (SECOND, 2, 1)


def test_a_dataframe_of_spark_is_landed_and_read_back(config: Config, spark: "SparkSession") -> None:
    seen: list[list[int]] = []
    asset = returning(lambda: spark.range(3))

    @dg.asset(ins={"daily": dg.AssetIn("daily")}, partitions_def=HOURS)
    def downstream(daily: Any) -> None:
        seen.append(sorted(row["id"] for row in daily.collect()))

    run(config, asset, downstream, partition_key=SECOND)
    assert seen == [[0, 1, 2]]


@BACKFILL_POLICIES
def test_a_range_is_a_dict_with_a_table_for_each_partition(config: Config) -> None:
    seen: dict[str, list[int]] = {}

    @dg.asset(io_manager_key=IO, partitions_def=HOURS, backfill_policy=dg.BackfillPolicy.single_run())
    def daily(context: dg.AssetExecutionContext) -> dict[str, pl.DataFrame]:
        return {key: pl.DataFrame({"n": [number]}) for number, key in enumerate(context.partition_keys)}

    @dg.asset(partitions_def=HOURS, backfill_policy=dg.BackfillPolicy.single_run())
    def downstream(daily: dict[str, pl.DataFrame]) -> None:
        seen.update({key: frame["n"].to_list() for key, frame in daily.items()})

    result = run(config, daily, downstream, tags=dagster_names.range_tags(START, THIRD))
    assert seen == {START: [0], SECOND: [1], THIRD: [2]}
    landed = result.asset_materializations_for_node("daily")
    assert sorted(event.partition or "" for event in landed) == [START, SECOND, THIRD]


def test_a_day_is_its_first_hour(config: Config) -> None:
    seen: list[list[int]] = []
    days = dg.DailyPartitionsDefinition("2026-01-05", timezone="UTC")

    @dg.asset(partitions_def=days)
    def downstream(daily: pd.DataFrame) -> None:
        seen.append(daily["n"].tolist())

    run(
        config, returning(lambda: pd.DataFrame({"n": [1]}), partitions_def=days), downstream, partition_key="2026-01-06"
    )
    (sink,) = config.sinks
    index = TopicIndex(S3Store(S3Connection.from_settings(config.s3), sink.bucket), ".indexes/tables", "daily")
    assert (seen, [tile.hour for tile in index.tiles()]) == ([[1]], ["2026-01-06T00"])


NO_TIME = dg.StaticPartitionsDefinition(["a"])
QUARTERS = dg.TimeWindowPartitionsDefinition(
    start="2026-01-05T08:00", fmt="%Y-%m-%dT%H:%M", cron_schedule="*/15 * * * *", timezone="UTC"
)
KOLKATA = dg.DailyPartitionsDefinition("2026-01-05", timezone="Asia/Kolkata")
REFUSED: dict[str, tuple[Callable[[], object], Mapping[str, Any], str]] = {
    "a value that is not a table": (lambda: 3, {}, "a builtins.int is not a table"),
    "no partitions": (lambda: pa.table({"n": [1]}), {"partitions_def": None}, "has no time partitions"),
    "other partitions": (lambda: pa.table({"n": [1]}), {"partitions_def": NO_TIME}, "has no time partitions"),
    "quarters of an hour": (
        lambda: pa.table({"n": [1]}),
        {"partitions_def": QUARTERS},
        "whole hours of UTC",
    ),
    "half an hour off": (lambda: pa.table({"n": [1]}), {"partitions_def": KOLKATA}, "whole hours of UTC"),
    "another partition": (lambda: {THIRD: pa.table({"n": [1]})}, {}, f"returned tables for {THIRD}, and the run is of"),
}
PARTITIONS = {NO_TIME: "a", QUARTERS: "2026-01-05T08:15", KOLKATA: "2026-01-05", None: None}


@pytest.mark.parametrize(("value", "asset", "why"), REFUSED.values(), ids=REFUSED)
def test_a_value_that_cannot_land_is_refused_before_anything_is_written(
    config: Config, value: Callable[[], object], asset: Mapping[str, Any], why: str
) -> None:
    partition = PARTITIONS[asset["partitions_def"]] if asset else SECOND
    result = run(config, returning(value, **asset), raises=False, partition_key=partition)
    assert why in failure(result)
    (sink,) = config.sinks
    assert list(S3Store(S3Connection.from_settings(config.s3), sink.bucket).list("")) == []


@BACKFILL_POLICIES
def test_a_range_without_a_dict_is_refused(config: Config) -> None:
    asset = returning(lambda: pa.table({"n": [1]}), backfill_policy=dg.BackfillPolicy.single_run())
    result = run(config, asset, raises=False, tags=dagster_names.range_tags(START, SECOND))
    assert f"returned one table, and the run is of {START} to {SECOND}: return a dict" in failure(result)


def test_two_assets_of_one_name_are_refused_before_anything_is_written(config: Config) -> None:
    first = returning(lambda: pa.table({"n": [1]}), name="orders", key_prefix="daily")
    second = returning(lambda: pa.table({"n": [2]}), key="daily.orders")
    result = run(config, first, second, raises=False, partition_key=SECOND)
    (why, _) = [
        str(event.event_specific_data.error)  # type: ignore[union-attr]
        for event in result.all_events
        if event.event_type_value == "STEP_FAILURE"
    ]
    assert "the tables of both would be called 'daily.orders' in sink tables" in why
    (sink,) = config.sinks
    assert list(S3Store(S3Connection.from_settings(config.s3), sink.bucket).list("")) == []


def test_tables_of_an_asset_of_another_code_location_are_neither_replaced_nor_read(config: Config) -> None:
    owner = returning(lambda: pa.table({"n": [1]}), name="orders", key_prefix="daily")
    other = returning(lambda: pa.table({"n": [2]}), key="daily.orders")
    run(config, owner, partition_key=SECOND)
    assert "holds the tables of asset ['daily', 'orders']" in failure(
        run(config, other, raises=False, partition_key=SECOND)
    )

    @dg.asset(partitions_def=HOURS, ins={"table": dg.AssetIn("daily.orders", input_manager_key=IO)})
    def reader(table: pa.Table) -> None:
        raise AssertionError(f"it got {table}, the rows of another asset")

    source = dg.AssetSpec("daily.orders", partitions_def=HOURS).with_io_manager_key(IO)
    definitions = dg.Definitions.merge(build_definitions(config), dg.Definitions(assets=[reader, source]))
    job = definitions.resolve_implicit_global_asset_job_def()
    with dg.DagsterInstance.ephemeral() as instance:
        read = job.execute_in_process(
            asset_selection=[reader.key], instance=instance, raise_on_error=False, partition_key=SECOND
        )
    assert "holds the tables of asset ['daily', 'orders']" in failure(read)


def test_the_documented_example_lands_and_reads_its_tables(
    config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(s3lake.__file__).parent.parent / "docs" / "tables.md").read_text(encoding="utf-8")
    (settings,) = re.findall(r'```yaml title="sinks.yaml"\n(.*?)```', page, re.DOTALL)
    (module,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (tmp_path / "sinks.yaml").write_text(settings)
    monkeypatch.chdir(tmp_path)
    scope: dict[str, Any] = {"__name__": "shown"}
    exec(module, scope)
    assert scope["defs"]().resolve_asset_graph().get_all_asset_keys() == {scope["visits"].key, scope["busy_pages"].key}
    run(config, scope["visits"], scope["busy_pages"], partition_key="2026-11-20T05")
    (sink,) = config.sinks
    (file,) = s3lake.files(config, sink.name, "busy_pages", ["2026-11-20T05"])
    assert (file.rows, file.schema.names) == (1, ["hour", "page", "visits"])


def test_commands_find_and_change_tables_of_a_sink(config: Config, settings: str, tmp_path: Path) -> None:
    run(config, returning(lambda: pa.table({"n": list(range(5))})), partition_key=SECOND)
    path = tmp_path / "s3lake.yaml"
    path.write_text(settings)
    command = ["erase", "--where", "n = 3", "--yes", str(path)]  # which finds the table in the sink's index
    done = CliRunner().invoke(app, command, catch_exceptions=False)
    assert (done.exit_code, "daily 2026-01-05T09: 1 record;" in done.output) == (0, True), done.output
    (file,) = s3lake.files(config, "tables", "daily")
    assert file.rows == 4
    refused = CliRunner().invoke(app, ["compact", "--sink", "tables", "--topic", "other", str(path)])
    assert "--topic other: no such topic is landed" in str(refused.exception)
