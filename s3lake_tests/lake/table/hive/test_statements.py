"""Committed objects as tables of Hive's kind: the statements for each engine, and that it understands them."""

import io
import json
import re
from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlglot

from s3lake.errors import ConfigurationError, TableConflictError
from s3lake.lake.table.hive import ENGINES, HiveTable, build_table, cover_bucket, find_alike, glue
from s3lake.land.spark import jars
from s3lake.records.encode import FileFormat, csv_rows
from s3lake.records.encode.text_file import TextEncoder
from s3lake.records.schema.columns.arrow_types import to_arrow
from s3lake.records.schema.columns.types import Decimal, List, Map, Primitive, Struct, Type
from s3lake_tests.conftest import short_id
from s3lake_tests.kit import oracles

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS: dict[str, Type] = {
    "id": Primitive.INT64,
    "type": Primitive.STRING,
    "price": Decimal(10, 2),
    "deep": Struct({"tags": List(Primitive.STRING), "counts": Map(Primitive.INT32)}),
}
DAYS = ["orders/date=2026-11-20/hour=05/0-0.parquet", "orders/date=2026-11-21/hour=06/0-9.parquet"]
TYPES = ["raw/orders/type=a/0-0.parquet", "raw/orders/type=it's/0-9.parquet"]


def table(keys: list[str], form: str = "parquet", columns: dict[str, Type] = COLUMNS) -> HiveTable:
    return build_table("orders", "lake", keys, columns, form)


def test_directories_are_partitions_and_no_columns_beside() -> None:
    made = table(TYPES)
    assert (made.location, made.partitions, made.values) == ("s3://lake/raw/orders/", ("type",), (("a",), ("it's",)))
    assert list(made.columns) == ["id", "price", "deep"]
    assert made.hidden == ("type",)


# What the bucket has in addition to what the index lists: years of an adopted connector, records that came late


def steps_of(keys: Sequence[str]) -> tuple[Callable[[str], list[str]], list[str]]:
    """A listing of these keys by steps, and the prefixes that were listed."""
    listed: list[str] = []

    def list_steps(prefix: str) -> list[str]:
        listed.append(prefix)
        below = [key.removeprefix(prefix) for key in keys if key.startswith(prefix)]
        return list(dict.fromkeys(rest.split("/")[0] for rest in below if "/" in rest))

    return list_steps, listed


def test_the_range_of_days_begins_with_the_first_directory_of_the_bucket() -> None:
    old = ["orders/date=2019-03-01/hour=00/x.parquet", "orders/other/x", "orders/date=of-nothing/hour=00/x.parquet"]
    list_steps, listed = steps_of([*DAYS, *old])
    projection = cover_bucket(table(DAYS), list_steps).projection
    assert projection is not None
    assert projection["projection.date.range"] == "2019-03-01,NOW"
    assert listed == ["orders/"], "hours are counted, so they are not listed"


def test_days_below_another_directory_are_found_in_each() -> None:
    keys = ["r/hour=05/date=2026-11-20/0-0.parquet", "r/hour=06/date=2020-01-01/x.parquet"]
    projection = cover_bucket(table(keys[:1]), steps_of(keys)[0]).projection
    assert projection is not None
    assert projection["projection.date.range"] == "2020-01-01,NOW"


def test_partitions_that_nothing_counts_are_those_of_the_bucket() -> None:
    keys = [*TYPES, "raw/orders/type=old/x.parquet", "raw/orders/kind=b/x.parquet"]
    assert cover_bucket(table(TYPES), steps_of(keys)[0]).values == (("a",), ("it's",), ("old",))


@pytest.mark.parametrize(
    ("columns", "named"),
    [
        (["id", "type", "price"], ["id", "type_value", "price"]),
        (["type", "type_value"], ["type_value_value", "type_value"]),
        (["id"], ["id"]),
        (["Type", "id"], ["Type_value", "id"]),
        (["Id", "id", "ID", "id_value"], ["Id", "id_value_value", "ID_value_value_value", "id_value"]),
    ],
)
def test_a_column_of_csv_keeps_its_position_under_another_name(columns: list[str], named: list[str]) -> None:
    """Readers of CSV go by position: without it every later column would be read from the one before."""
    made = table(TYPES, "csv", dict.fromkeys(columns, Primitive.INT64))
    assert dict(made.columns) == dict.fromkeys(named, Primitive.STRING)


def test_days_and_hours_are_computed_by_the_engine() -> None:
    (made,) = ENGINES["athena"](table(DAYS), "lake")
    assert (
        made
        == """\
CREATE EXTERNAL TABLE IF NOT EXISTS `lake`.`orders` (
  `id` bigint,
  `type` string,
  `price` decimal(10,2),
  `deep` struct<`tags`:array<string>,`counts`:map<string,int>>
)
PARTITIONED BY (`date` string, `hour` string)
STORED AS PARQUET
LOCATION 's3://lake/orders/'
TBLPROPERTIES (
  'projection.enabled' = 'true',
  'projection.date.type' = 'date',
  'projection.date.format' = 'yyyy-MM-dd',
  'projection.date.range' = '2026-11-20,NOW',
  'projection.hour.type' = 'integer',
  'projection.hour.range' = '0,23',
  'projection.hour.digits' = '2',
  'storage.location.template' = 's3://lake/orders/date=${date}/hour=${hour}/'
)"""
    )


def test_other_values_are_listed() -> None:
    _, added = ENGINES["athena"](table(TYPES), "lake")
    assert (
        added
        == """\
ALTER TABLE `lake`.`orders` ADD IF NOT EXISTS
  PARTITION (`type` = 'a') LOCATION 's3://lake/raw/orders/type=a/'
  PARTITION (`type` = 'it\\'s') LOCATION 's3://lake/raw/orders/type=it\\'s/'"""
    )


@pytest.mark.parametrize("form", ["parquet", "csv", "delimited", "json", "avro"])
@pytest.mark.parametrize(("engine", "dialect"), [("athena", "hive"), ("trino", "trino"), ("spark", "spark")])
@pytest.mark.parametrize("keys", [DAYS, TYPES, ["orders/0/0.parquet"]], ids=["days", "types", "none"])
def test_statements_are_sql_of_the_engine(engine: str, dialect: str, form: str, keys: list[str]) -> None:
    for text in ENGINES[engine](table(keys, form), "lake"):
        assert sqlglot.parse_one(text, dialect=dialect).sql()


def test_trino_finds_the_partitions_itself() -> None:
    made, found = ENGINES["trino"](table(TYPES), "lake")
    assert '"deep" row("tags" array(varchar),"counts" map(varchar, integer))' in made
    assert "partitioned_by = ARRAY['type']" in made
    assert found == "CALL hive.system.sync_partition_metadata('lake', 'orders', 'ADD')"


def in_duckdb(made: HiveTable, home: Path, query: str) -> list[tuple[Any, ...]]:
    """What a query returns of a table whose bucket is a directory."""
    import duckdb  # a tenth of a second, in all that collect

    with duckdb.connect() as connection:
        for text in ENGINES["duckdb"](made, "lake"):
            connection.execute(text.replace("s3://lake", str(home)))
        return connection.execute(query).fetchall()


def in_spark(spark: "SparkSession", answer: Sequence[str], home: Path) -> list[dict[str, Any]]:
    """The rows of the table that statements make, whose bucket is a directory."""
    spark.sql("CREATE DATABASE lake")
    try:
        for text in answer:
            spark.sql(re.sub("s3a?://lake", f"file://{home}", text))
        return [row.asDict(recursive=True) for row in spark.sql("SELECT * FROM lake.orders").collect()]
    finally:
        spark.sql("DROP DATABASE lake CASCADE")


def test_duckdb_reads_partitions(tmp_path: Path) -> None:
    for key in DAYS:
        (tmp_path / key).parent.mkdir(parents=True)
        pq.write_table(pa.table({"id": [1, 2]}), tmp_path / key)
        (tmp_path / key).with_name("_SUCCESS").touch()
    rows = in_duckdb(table(DAYS), tmp_path, "SELECT date, hour, count(*) FROM lake.orders GROUP BY ALL ORDER BY ALL")
    assert rows == [("2026-11-20", "05", 2), ("2026-11-21", "06", 2)]


@pytest.mark.parametrize(
    ("names", "ending"),
    [(["0.parquet", "1.parquet"], ".parquet"), (["0.json", "1.json.gz"], ""), (["a.b-0-7"], ""), (["a.0007"], "")],
    ids=short_id,
)
def test_a_common_ending_distinguishes_files_from_markers(names: list[str], ending: str) -> None:
    assert table([f"raw/{name}" for name in names]).ending == ending


@pytest.mark.parametrize("header", [True, False])
def test_duckdb_finds_the_columns_of_csv(tmp_path: Path, header: bool) -> None:
    keys = [key.replace("parquet", "csv").replace("'", "_") for key in TYPES]
    lines = [("id,type,price", '1,"a",1.5'), ("id,type,price,note", '2,"b;c",,""')]
    for key, (names, row) in zip(keys, lines, strict=True):
        (tmp_path / key).parent.mkdir(parents=True)
        (tmp_path / key).write_text(f"{names}\n{row}\n" if header else f"{row}\n")
    columns = dict.fromkeys(("id", "type", "price", "note"), Primitive.STRING)
    found = in_duckdb(
        build_table("orders", "lake", keys, columns, "csv", header=header),
        tmp_path,
        "SELECT id, type, price, note FROM lake.orders ORDER BY id",
    )
    assert found == [(1, "a", 1.5, None), (2, "it_s", None, "")]


TEXTS = ["plain", 'a "quoted" one', "back\\slash", "end\\", "a, comma", '\\"', "é"]


def written(tmp_path: Path, texts: list[str]) -> HiveTable:
    """A table of one CSV file, below a directory that names its second column."""
    key = "raw/orders/type=a/0-0.csv"
    (tmp_path / key).parent.mkdir(parents=True)
    columns = pa.table({"text": texts, "type": ["a"] * len(texts), "n": range(len(texts))})
    file = io.BytesIO()
    encoder = TextEncoder(FileFormat("csv", "none", framing=("", "\n", "\n")), file.write)
    encoder.write(csv_rows.encode_lines(columns.to_batches()[0]))
    encoder.close()
    (tmp_path / key).write_bytes(file.getvalue())
    return build_table("orders", "lake", [key], dict.fromkeys(columns.column_names, Primitive.STRING), "csv")


LENSES = ["raw/orders/0/000.json", "raw/orders/1/000.json", "raw/orders/10/2/000.json"]


@pytest.fixture
def deep(tmp_path: Path) -> HiveTable:
    """Objects in directories without names, as Lenses' default keys are."""
    for number, key in enumerate(LENSES):
        (tmp_path / key).parent.mkdir(parents=True)
        (tmp_path / key).write_text(f'{{"id":{number}}}\n')
    made = table(LENSES, "json", {"value": Primitive.STRING})
    assert (made.location, made.partitions, made.deep) == ("s3://lake/raw/orders/", (), True)
    return made


def test_duckdb_finds_what_is_further_down(tmp_path: Path, deep: HiveTable) -> None:
    assert in_duckdb(deep, tmp_path, "SELECT id FROM lake.orders ORDER BY id") == [(0,), (1,), (2,)]


@pytest.mark.slow("a case more of reading by Spark or Hive")
def test_spark_finds_what_is_further_down(tmp_path: Path, deep: HiveTable, spark: "SparkSession") -> None:
    found = in_spark(spark, ENGINES["spark"](deep, "lake"), tmp_path)
    assert sorted(row["value"] for row in found) == ['{"id":0}', '{"id":1}', '{"id":2}']


@pytest.fixture
def delimited(tmp_path: Path) -> HiveTable:
    """Rows of Aiven's CSV: nothing in them is quoted."""
    key = "raw/orders/0.csv"
    (tmp_path / key).parent.mkdir(parents=True)
    (tmp_path / key).write_text('k,"b\\64",5\n,,6\n')
    return build_table(
        "orders", "lake", [key], dict.fromkeys(("key", "value", "offset"), Primitive.STRING), "delimited"
    )


DELIMITED = [("k", '"b\\64"', "5"), (None, None, "6")]


def test_duckdb_reads_rows_that_nothing_quotes(tmp_path: Path, delimited: HiveTable) -> None:
    found = in_duckdb(delimited, tmp_path, 'SELECT key, value, "offset"::VARCHAR FROM lake.orders ORDER BY ALL')
    assert found == DELIMITED


def test_duckdb_reads_an_array_of_json(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw/0.json").write_text('[\n{"id":1},\n{"id":2,"x":"y"}\n]')
    made = table(["raw/0.json"], "json_array", {"value": Primitive.STRING})
    assert in_duckdb(made, tmp_path, "SELECT id, x FROM lake.orders ORDER BY id") == [(1, None), (2, "y")]


def test_spark_reads_the_values_of_csv(tmp_path: Path, spark: "SparkSession") -> None:
    texts = [*TEXTS, "two\nlines"]
    expected = [{"text": text, "type_value": "a", "n": str(n), "type": "a"} for n, text in enumerate(texts)]
    assert in_spark(spark, ENGINES["spark"](written(tmp_path, texts), "lake"), tmp_path) == expected


@pytest.mark.slow("a case more of reading by Spark or Hive")
def test_spark_reads_rows_that_nothing_quotes(tmp_path: Path, delimited: HiveTable, spark: "SparkSession") -> None:
    assert [tuple(row.values()) for row in in_spark(spark, ENGINES["spark"](delimited, "lake"), tmp_path)] == DELIMITED


@pytest.mark.slow("a case more of reading by Spark or Hive")
def test_partitions_are_added_whatever_their_values(tmp_path: Path, spark: "SparkSession") -> None:
    values = ["it's", "back\\slash", "a b", "50%", "é"]
    keys = [f"raw/orders/type={value}/0.parquet" for value in values]
    for number, key in enumerate(keys):
        (tmp_path / key).parent.mkdir(parents=True)
        pq.write_table(pa.table({"id": [number]}), tmp_path / key)
    made = table(keys, columns={"id": Primitive.INT64})
    (created, *_), (_, added) = ENGINES["spark"](made, "lake"), ENGINES["athena"](made, "lake")
    found = sorted(in_spark(spark, [created, added], tmp_path), key=itemgetter("id"))
    assert found == [{"id": number, "type": value} for number, value in enumerate(values)]


@pytest.mark.slow("a case more of reading by Spark or Hive")
def test_spark_finds_fields_whatever_their_names(tmp_path: Path, spark: "SparkSession") -> None:
    columns: dict[str, Type] = {
        "a `b`": Primitive.INT64,
        "deep": Struct({"content-type": Primitive.STRING, "order": Primitive.INT64, "e f": Primitive.DATE}),
    }
    rows = [{"a `b`": 1, "deep": {"content-type": "x", "order": 2, "e f": None}}]
    (tmp_path / "raw").mkdir()
    pq.write_table(pa.Table.from_pylist(rows, to_arrow(columns)), tmp_path / "raw/0.parquet")
    assert in_spark(spark, ENGINES["spark"](table(["raw/0.parquet"], columns=columns), "lake"), tmp_path) == rows


@pytest.mark.slow("a case more of reading by Spark or Hive")
def test_spark_reads_a_directory_in_place_of_a_field_that_differs_in_case(
    tmp_path: Path, spark: "SparkSession"
) -> None:
    (tmp_path / "raw/day=2026-11-20").mkdir(parents=True)
    key = "raw/day=2026-11-20/0.parquet"
    pq.write_table(pa.table({"id": [1], "Day": ["Friday"]}), tmp_path / key)
    made = table([key], columns={"id": Primitive.INT64, "Day": Primitive.STRING})
    assert in_spark(spark, ENGINES["spark"](made, "lake"), tmp_path) == [{"id": 1, "day": "2026-11-20"}]


@pytest.mark.parametrize(
    ("columns", "alike"),
    [
        ({"Id": Primitive.INT64, "id": Primitive.INT64}, ("Id", "id")),
        ({"a": Struct({"Id": Primitive.INT64, "b": Primitive.INT64, "ID": Primitive.DATE})}, ("Id", "ID")),
        ({"a": List(Struct({"id": Primitive.INT64, "Id": Primitive.INT64}))}, ("id", "Id")),
        ({"a": Map(Struct({"id": Primitive.INT64, "Id": Primitive.INT64}))}, ("id", "Id")),
        ({"id": Primitive.INT64, "a": Struct({"Id": Primitive.INT64})}, None),
    ],
)
def test_fields_that_differ_in_case_only_are_found_at_each_level(
    columns: dict[str, Type], alike: tuple[str, str] | None
) -> None:
    assert find_alike(columns) == alike


def test_glue_gets_the_names_of_fields_as_they_are() -> None:
    columns: dict[str, Type] = {"deep": Struct({"content-type": Primitive.STRING, "order": Primitive.INT64})}
    (document,) = map(json.loads, glue.format_documents(table(["raw/0.parquet"], columns=columns), "lake"))
    (column,) = document["TableInput"]["StorageDescriptor"]["Columns"]
    assert column == {"Name": "deep", "Type": "struct<content-type:string,order:bigint>"}


@pytest.mark.usefixtures("jvm")
@pytest.mark.slow("a case more of reading by Spark or Hive")
def test_hives_reader_reads_the_values_of_csv(tmp_path: Path) -> None:
    """The class that Athena and Glue read with, and its settings."""
    made = written(tmp_path, TEXTS)
    (document,) = map(json.loads, glue.format_documents(made, "lake"))
    reader = document["TableInput"]["StorageDescriptor"]["SerdeInfo"]
    (file,) = tmp_path.rglob("*.csv")
    opened = ["--add-opens=java.base/java.net=ALL-UNNAMED"]
    with oracles.run_jvm(jars.pyspark_jars_dir().glob("*.jar"), opened) as java:
        answer = java.java.util.Properties()
        columns = {"columns": ",".join(made.columns), "columns.types": ",".join(["string"] * len(made.columns))}
        for name, text in {**columns, **reader["Parameters"]}.items():
            answer.setProperty(name, text)
        serde = getattr(java, reader["SerializationLibrary"])()
        serde.initialize(java.org.apache.hadoop.conf.Configuration(), answer)
        _, *lines = file.read_text().splitlines()
        found = [list(serde.deserialize(java.org.apache.hadoop.io.Text(line))) for line in lines]
    assert found == [[text, "a", str(n)] for n, text in enumerate(TEXTS)]
    (statement, _) = ENGINES["athena"](made, "lake")
    assert f"ROW FORMAT SERDE '{reader['SerializationLibrary']}'" in statement
    assert "WITH SERDEPROPERTIES ('escapeChar' = '\\001')" in statement


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ([], "nothing of it is landed yet"),
        ([DAYS[0], "orders/day=1/0.parquet"], "2 layouts (orders/date=…/hour=…/, orders/day=…/): rewrite"),
        (["orders/date=1/x/0.parquet"], "a directory that is not name=value follows"),
    ],
)
def test_keys_that_make_no_table_are_refused(keys: list[str], message: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        table(keys)
    assert message in str(refused.value)


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    from moto import mock_aws  # a tenth of a second, in all that collect

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "y")
    with mock_aws():
        yield boto3.client("glue", region_name="us-east-1")


def test_glue_gets_the_table_and_the_partitions_that_it_lacks(client: Any) -> None:
    assert glue.apply(client, table(TYPES[:1]), "lake") == 1
    assert glue.apply(client, table(TYPES), "lake") == 1
    assert glue.apply(client, table(TYPES), "lake") == 0
    parts = client.get_partitions(DatabaseName="lake", TableName="orders")["Partitions"]
    assert {part["StorageDescriptor"]["Location"] for part in parts} == {
        "s3://lake/raw/orders/type=a/",
        "s3://lake/raw/orders/type=it's/",
    }


def test_glue_gets_new_columns_and_the_projection(client: Any) -> None:
    glue.apply(client, table(DAYS, columns={"id": Primitive.INT64}), "lake")
    glue.apply(client, table(DAYS), "lake")
    made = client.get_table(DatabaseName="lake", Name="orders")["Table"]
    assert [column["Name"] for column in made["StorageDescriptor"]["Columns"]] == list(COLUMNS)
    assert made["Parameters"]["projection.date.range"] == "2026-11-20,NOW"
    assert client.get_partitions(DatabaseName="lake", TableName="orders")["Partitions"] == []


@pytest.mark.parametrize("change", [{"Parameters": {}}, {"StorageDescriptor": {"Location": "s3://lake/other/"}}, {}])
def test_glue_keeps_a_table_of_another_program_or_location(client: Any, change: dict[str, Any]) -> None:
    glue.apply(client, table(TYPES), "lake")
    sent = json.loads(ENGINES["glue"](table(TYPES), "lake")[0])["TableInput"]
    client.update_table(DatabaseName="lake", TableInput={**sent, **change})
    if change:
        with pytest.raises(TableConflictError, match=r"lake.orders exists, at .*: give another --database"):
            glue.apply(client, table(TYPES), "lake")
    else:
        assert glue.apply(client, table(TYPES), "lake") == 0


def test_printed_documents_are_what_glue_gets(client: Any) -> None:
    glue.apply(client, table(TYPES), "lake")
    (text,) = ENGINES["glue"](table(TYPES), "lake")
    sent, made = json.loads(text), client.get_table(DatabaseName="lake", Name="orders")["Table"]
    assert sent["TableInput"]["StorageDescriptor"]["Columns"] == made["StorageDescriptor"]["Columns"]
    assert [part["Values"] for part in sent["PartitionInputList"]] == [["a"], ["it's"]]
