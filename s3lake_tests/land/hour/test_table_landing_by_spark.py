"""Tables of assets on real parts: staged by Spark's tasks, and followed by an Iceberg table."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest

from s3lake.demo.embedded_s3 import EmbeddedS3
from s3lake.errors import ConfigurationError
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.index.store.s3_store import S3Store
from s3lake.lake.table.iceberg import LakeTable
from s3lake.land.hour.table_landing import land_table
from s3lake.land.topic.table_follower import TableFollower
from s3lake.land.topic.topic_sink import TopicSink
from s3lake_tests.kit import targets
from s3lake_tests.kit.object_rows import read_rows
from s3lake_tests.lake.table.iceberg.shelf import FIVE, SIX, Shelf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def target_of(server: EmbeddedS3, home: Path, **sink: Any) -> tuple[TopicSink, LakeTable]:
    """A sink without topics, a table `daily` of it, and the Iceberg table that follows."""
    shelf = Shelf(server, home, {"topics": (), **sink})
    store = S3Store(shelf.connection, shelf.bucket)
    index = TopicIndex(store, ".indexes/events", "daily", shelf.sink.root)
    assert shelf.sink.table is not None
    table = LakeTable(shelf.sink, shelf.sink.table, index, shelf.connection)
    index.follower = TableFollower(table)
    return targets.target_of(shelf.sink, index), table


def rows(target: TopicSink, hour: str) -> list[Any]:
    found = []
    for manifest in target.manifests(hour) or []:
        for file in sorted(manifest.files, key=lambda one: one.first_offset):
            document = target.store.get(file.key)
            assert document is not None
            found += read_rows(file.key, document.body)
    return found


def scanned(table: LakeTable) -> list[int]:
    """What a scan of the Iceberg table gives."""
    loaded = table.load()
    assert loaded is not None
    return sorted(loaded.scan().to_arrow()["n"].to_pylist())


def test_the_iceberg_table_has_the_rows_of_the_last_table_of_each_hour(s3_server: EmbeddedS3, tmp_path: Path) -> None:
    target, table = target_of(s3_server, tmp_path)
    land_table(target, FIVE, pa.table({"n": [1, 2, 3]}))
    land_table(target, SIX, pa.table({"n": [7]}))
    land_table(target, FIVE, duckdb.sql("select 4::bigint n"))
    assert scanned(table) == [4, 7]
    assert len([key for key in target.store.list("") if key.endswith(".parquet")]) == 2


def test_the_tasks_of_spark_stage_a_dataframe(s3_server: EmbeddedS3, tmp_path: Path, spark: "SparkSession") -> None:
    target, table = target_of(s3_server, tmp_path)
    frame = spark.range(0, 10, 1, 3).selectExpr("id as n", "cast(id as string) as s")
    manifest = land_table(target, FIVE, frame)
    assert sorted(row["n"] for row in rows(target, FIVE)) == list(range(10))
    assert (len(manifest.files), manifest.partitions[0].landed) == (3, 10)
    land_table(target, FIVE, frame.where("id < 2"))
    assert rows(target, FIVE) == [{"n": 0, "s": "0"}, {"n": 1, "s": "1"}]
    assert scanned(table) == [0, 1]
    with pytest.raises(ConfigurationError, match="column 'n' is string, and int64 in the hours that are landed"):
        land_table(target, FIVE, frame.selectExpr("cast(n as string) as n"))


def test_a_task_of_spark_whose_value_does_not_fit_leaves_the_hour_as_it_is(
    s3_server: EmbeddedS3, tmp_path: Path, spark: "SparkSession"
) -> None:
    target, _ = target_of(s3_server, tmp_path, layout={"partition_by": ["n"]})
    land_table(target, FIVE, pa.table({"n": ["a"]}))
    with pytest.raises(ConfigurationError, match="a record has no place in the present layout"):
        land_table(target, FIVE, spark.range(2).selectExpr("repeat('x', 2000) as n"))
    assert rows(target, FIVE) == [{"n": "a"}]
