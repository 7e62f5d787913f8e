"""Committed objects without a JVM: what `files` lists, and what an input is annotated as."""

import uuid
from collections.abc import Callable
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest

import s3lake
from s3lake import hours
from s3lake.demo.embedded_s3 import EmbeddedS3
from s3lake.errors import IncompleteError
from s3lake.index.commit.documents import Recorded
from s3lake.index.store.s3_connection import S3Connection
from s3lake.lake.readback.arrow_dataset import open_dataset
from s3lake_tests.conftest import slow_after
from s3lake_tests.lake.table.iceberg.shelf import FIVE, SEVEN, SIX, Shelf


@pytest.fixture
def shelf(s3_server: EmbeddedS3, tmp_path: Path) -> Shelf:
    """Three rows in two hours; a column came with the second, and the first had narrow integers."""
    made = Shelf(s3_server, tmp_path, {})
    made.index.create(made.index.columns_key, Recorded({"id": "int64", "type": "string", "late": "double"}))
    made.commit(FIVE, pa.table({"id": pa.array([1, 2], pa.int32()), "type": ["a", "b"]}))
    made.commit(SIX, pa.table({"id": [2**40], "type": ["a"], "late": [0.5]}))
    return made


ROWS = [
    {"id": 1, "type": "a", "late": None},
    {"id": 2, "type": "b", "late": None},
    {"id": 2**40, "type": "a", "late": 0.5},
]


def downstream(shelf: Shelf, annotation: Any, wanted: list[str] = [FIVE, SIX], **metadata: Any) -> Any:  # noqa: B006
    """What an asset gets that asks for these hours."""
    seen: list[Any] = []

    def body(records: Any) -> dg.MaterializeResult[None]:
        seen.append(records)
        return dg.MaterializeResult()

    body.__annotations__ = {"records": annotation, "return": dg.MaterializeResult}
    asset = dg.asset(
        name="downstream",
        ins={
            "records": dg.AssetIn(
                ["s3", "events", "orders"], input_manager_key="s3lake_events_io_manager", metadata=metadata
            )
        },
        partitions_def=dg.HourlyPartitionsDefinition(FIVE, fmt=hours.FORMAT),
        backfill_policy=dg.BackfillPolicy.single_run(),
    )(body)
    definitions = dg.Definitions.merge(
        s3lake.build_definitions(s3lake.load(shelf.configuration())), dg.Definitions(assets=[asset])
    )
    first, last = "dagster/asset_partition_range_start", "dagster/asset_partition_range_end"
    with dg.DagsterInstance.ephemeral() as instance:
        definitions.resolve_implicit_global_asset_job_def().execute_in_process(
            asset_selection=[asset.key], tags={first: wanted[0], last: wanted[-1]}, instance=instance
        )
    return seen[0]


def rows(found: Any) -> list[dict[str, Any]]:
    return sorted(found.to_pylist(), key=lambda row: row["id"])


class TestFiles:
    def test_are_what_the_index_lists_of_the_hours(self, shelf: Shelf) -> None:
        assert [one.hour for one in s3lake.files(shelf.configuration(), "events", "orders")] == [FIVE, SIX]
        shelf.commit(SEVEN)
        listed = s3lake.files(shelf.configuration(), "events", "orders", [FIVE, SIX])
        assert [(one.hour, one.rows, one.partition, one.format) for one in listed] == [
            (FIVE, 2, 0, "parquet"),
            (SIX, 1, 0, "parquet"),
        ]
        for one in listed:
            head = shelf.index.store.head(one.key)
            assert head is not None
            assert (head.size, head.metadata["s3lake-commit"]) == (one.bytes, one.commit)
        assert listed[0].address == f"s3://{shelf.bucket}/{listed[0].key}"
        assert listed[0].schema.names == ["id", "type", "late"]

    def test_files_of_hours_that_are_not_landed_are_refused(self, shelf: Shelf) -> None:
        config = s3lake.load(shelf.configuration())
        with pytest.raises(IncompleteError, match=f"{SEVEN} never landed"):
            s3lake.files(config, "events", "orders", [SIX, SEVEN])
        assert len(s3lake.files(config, "events", "orders", [SIX, SEVEN], allow_incomplete=True)) == 1


@pytest.mark.filterwarnings("ignore:Parameter `backfill_policy`:dagster.BetaWarning")
class TestAnInput:
    @pytest.mark.parametrize(
        ("name", "read"),
        slow_after(
            3,
            "another library",
            [
                pytest.param("pyarrow:Table", rows),
                pytest.param("pandas:DataFrame", lambda found: rows(pa.Table.from_pandas(found, preserve_index=False))),
                pytest.param("polars:LazyFrame", lambda found: found.collect().sort("id").to_dicts()),
                pytest.param("pyarrow.dataset:Dataset", lambda found: rows(found.to_table())),
                pytest.param("polars:DataFrame", lambda found: found.sort("id").to_dicts()),
                pytest.param("duckdb:DuckDBPyRelation", lambda found: rows(found.order("id").to_arrow_table())),
            ],
        ),
    )
    def test_is_what_it_is_annotated_as(
        self, shelf: Shelf, name: str, read: Callable[[Any], list[dict[str, Any]]]
    ) -> None:
        annotation = resolve_name(name)  # imported here, and not by all that collect
        found = downstream(shelf, annotation)
        assert isinstance(found, annotation)
        assert read(found) == ROWS

    @pytest.mark.parametrize("setting", ["profile", "role_token_file", "role_endpoint_url", "customer_key", "role_arn"])
    def test_is_read_without_arrows_file_system_if_that_lacks_a_setting(self, shelf: Shelf, setting: str) -> None:
        connection = S3Connection(access_key_id="x", secret_access_key="x", **{setting: "x"})
        (sink,) = s3lake.load(shelf.configuration()).sinks
        found = open_dataset(sink, "orders", lambda _: shelf.index.store, connection, [FIVE, SIX])
        assert rows(found.to_table()) == ROWS

    def test_annotated_as_a_dict_is_one_an_hour(self, shelf: Shelf) -> None:
        found = downstream(shelf, dict[str, pa.Table])
        assert {hour: rows(table) for hour, table in found.items()} == {FIVE: ROWS[:2], SIX: ROWS[2:]}

    def test_has_uuids_wherever_they_are(self, s3_server: EmbeddedS3, tmp_path: Path) -> None:
        one, made = uuid.UUID(int=7), Shelf(s3_server, tmp_path, {})
        in_struct = {"struct": {"a": "uuid", "b": "string"}}
        types = {"in_list": {"list": "uuid"}, "in_map": {"map": "uuid"}, "in_struct": in_struct}
        made.index.create(made.index.columns_key, Recorded({"id": "int64", **types}))
        ids = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([one.bytes], pa.binary(16)))
        stored = pa.table(
            {
                "id": [3],
                "in_list": pa.ListArray.from_arrays([0, 1], ids),
                "in_map": pa.MapArray.from_arrays([0, 1], ["k"], ids),
                "in_struct": pa.StructArray.from_arrays([ids, pa.array(["x"])], ["a", "b"]),
            }
        )
        made.commit(FIVE, stored)
        found = downstream(made, pa.Table, [FIVE]).select(["in_list", "in_map", "in_struct"]).to_pylist()
        assert found == [{"in_list": [one], "in_map": [("k", one)], "in_struct": {"a": one, "b": "x"}}]

    def test_has_the_columns_that_were_asked_for(self, shelf: Shelf) -> None:
        assert downstream(shelf, pa.Table, columns=["late", "id"]).schema.names == ["late", "id"]
        with pytest.raises(dg.Failure, match="has no column 'lat'; it has id, type, late"):
            downstream(shelf, pa.Table, columns=["lat"])

    def test_an_hour_that_is_not_landed_is_refused(self, shelf: Shelf) -> None:
        for annotation in (pa.Table, dict[str, pa.Table]):
            with pytest.raises(dg.Failure, match=f"{SEVEN} never landed"):
                downstream(shelf, annotation, [SIX, SEVEN])
