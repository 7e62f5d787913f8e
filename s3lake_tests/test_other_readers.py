"""Readers that others wrote: what each shows of every type that a column can have."""

import base64
import json
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException

from s3lake.demo.embedded_s3 import EmbeddedS3
from s3lake.errors import TableConflictError
from s3lake.index.commit.documents import File
from s3lake.land.spark import jars
from s3lake_tests.kit.oracles import run_jvm
from s3lake_tests.lake.table.iceberg.shelf import FIVE, Shelf, loaded
from s3lake_tests.sample_files import write_record_file, write_sample_file
from s3lake_tests.sample_values import SAMPLES, show_sample, table_cells

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow("reads each format with each reader")

AVRO = "org.apache.avro:avro:1.12.1"
PARQUET = "org.apache.parquet:parquet-avro:1.17.1"


@pytest.fixture(scope="module")
def parquet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_file("parquet", tmp_path_factory.mktemp("parquet"))


@pytest.fixture(scope="module")
def avro(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_file("avro", tmp_path_factory.mktemp("avro"))


def write_file(format: str, directory: Path, left_out: Sequence[str] = ()) -> Path:
    """Write a file with a column of each type, except the types that are left out."""
    columns = {f"c{number}": text for number, text in enumerate(SAMPLES) if text not in left_out}
    codec = {"avro": "deflate", "parquet": "zstd"}[format]  # Java's Avro needs a jar more for any other
    values = {name: SAMPLES[text] for name, text in columns.items()}
    return write_sample_file(directory, {"type": format, "codec": codec}, columns, values)


def read_by_duckdb(path: Path, _: Any) -> pa.Table:
    import duckdb

    with duckdb.connect() as connection:
        rows = connection.sql(f"SELECT * FROM '{path}' ORDER BY n")
        assert rows is not None
        return rows.to_arrow_table()


def read_by_polars(path: Path, _: Any) -> pa.Table:
    import polars

    return polars.read_parquet(path).sort("n").to_arrow()


def read_by_pyarrow(path: Path, _: Any) -> pa.Table:
    import pyarrow.parquet as pq

    return pq.read_table(path).sort_by("n")


READERS: dict[str, Callable[[Path, Any], pa.Table]] = {
    "duckdb": read_by_duckdb,
    "polars": read_by_polars,
    "pyarrow": read_by_pyarrow,
}
NANOS_OF_SAMPLE = 1_795_162_500_123_456_789
BYTES_OF_UUID = base64.b64encode(uuid.UUID(SAMPLES["uuid"]).bytes).decode()
OTHERWISE: dict[str, dict[str, Any]] = {
    "parquet-java": {"timestamp_ns": NANOS_OF_SAMPLE, "list<timestamp_ns>": [NANOS_OF_SAMPLE]},
    "polars": {"uuid": BYTES_OF_UUID},
    "pyiceberg": {"uuid": BYTES_OF_UUID},  # a column of fixed[16] in the table
}
"""What a reader shows otherwise, by the type."""
NULLS_OTHERWISE = {
    ("pyiceberg", "map<string, struct<x: int64>>"): [{}, {}],
    ("pyiceberg", "list<struct<a: int64, m: map<string, double>>>"): [[], []],
}
"""What a reader shows where the file has nulls: pyiceberg makes these of their parts again, and forgets their nulls."""

NOT_OF_SPARK = ("time", "time_us", "timestamp_ns", "list<timestamp_ns>", "uuid")
"""Spark 4.0 opens no Parquet file that has one of these, unless it is given a schema."""

NOT_OF_ICEBERG = ("time", "timestamp_ns", "list<timestamp_ns>")


def test_avro_of_each_type_is_read_by_java_with_equal_rows(jvm: Path, avro: Path) -> None:  # noqa: ARG001 (Java)
    assert_equal_records(read_by_java(avro), "java")


def test_parquet_of_each_type_is_read_by_java_with_equal_rows(jvm: Path, parquet: Path) -> None:  # noqa: ARG001 (Java)
    assert_equal_records(read_by_parquet_java(parquet), "parquet-java")


def assert_equal_records(rows: Sequence[dict[str, Any]], reader: str) -> None:
    full, *nulls = rows
    assert [row.pop("n") for row in (full, *nulls)] == [1, 2, 3]
    assert [set(row.values()) for row in nulls] == [{None}, {None}]
    wrong = {}
    for number, (text, sample) in enumerate(SAMPLES.items()):
        found = full.pop(f"c{number}")
        if text == "binary":
            found = base64.b64encode(found.encode("latin-1")).decode()
        if show_sample(found) != show_sample(sample):
            wrong[text] = found
    assert full == {}
    assert wrong == OTHERWISE.get(reader, {})


def read_by_java(path: Path) -> list[dict[str, Any]]:
    """Read with Avro's own library."""
    with run_jvm(jars.resolve("avro", [AVRO])) as java:
        model = logical_model(java)
        reader = java.org.apache.avro.generic.GenericDatumReader(None, None, model)
        file = java.org.apache.avro.file.DataFileReader(java.java.io.File(str(path)), reader)
        rows = []
        while file.hasNext():
            rows.append(json.loads(model.toString(file.next()), parse_float=read_number))
        file.close()
        return rows


def read_by_parquet_java(path: Path) -> list[dict[str, Any]]:
    """Read with Parquet's own library, which makes records of Avro; Hadoop's classes, that it names, are Spark's."""
    of_hadoop = jars.pyspark_jars_dir().glob("hadoop-client-*.jar")
    with run_jvm([*jars.resolve("parquet", [PARQUET, AVRO]), *of_hadoop]) as java:
        parquet, model = java.org.apache.parquet, logical_model(java)
        settings = parquet.conf.PlainParquetConfiguration()
        settings.set("parquet.avro.add-list-element-records", "false")
        file = parquet.io.LocalInputFile(java.java.io.File(str(path)).toPath())
        reader = parquet.avro.AvroParquetReader.builder(file, settings).withDataModel(model).build()
        rows = []
        while (row := reader.read()) is not None:
            rows.append(json.loads(model.toString(row), parse_float=read_number))
        reader.close()
        return rows


def logical_model(java: Any) -> Any:
    """Avro's model of data with all conversions of its logical types; the text of a record is JSON."""
    avro = java.org.apache.avro
    model, times = avro.generic.GenericData(), avro.data.TimeConversions
    for conversion in (
        *(times.DateConversion, times.TimeMillisConversion, times.TimeMicrosConversion),
        *(times.TimestampMillisConversion, times.TimestampMicrosConversion, times.TimestampNanosConversion),
        *(avro.Conversions.DecimalConversion, avro.Conversions.UUIDConversion),
    ):
        model.addLogicalTypeConversion(conversion())
    return model


def read_number(text: str) -> float | str:
    """Samples of decimals are text, with as many digits as their scale."""
    return text if text in ("12.34", "1.5") else float(text)


@pytest.mark.parametrize("reader", READERS)
def test_parquet_of_each_type_is_read_with_equal_rows(
    reader: str, parquet: Path, request: pytest.FixtureRequest
) -> None:
    assert_equal_rows(READERS[reader](parquet, request), reader)


def test_parquet_of_the_types_of_spark_is_read_by_it_with_equal_rows(spark: "SparkSession", tmp_path: Path) -> None:
    path = write_file("parquet", tmp_path, left_out=NOT_OF_SPARK)
    assert_equal_rows(spark.read.parquet(str(path)).orderBy("n").toArrow(), "spark", left_out=NOT_OF_SPARK)


IN_TWO_CASES: dict[str, Callable[[Path], list[dict[str, Any]]]] = {
    "duckdb": lambda path: read_by_duckdb(path, None).select(["Id", "id_1"]).to_pylist(),
    "polars": lambda path: read_by_polars(path, None).select(["Id", "id"]).to_pylist(),
    "pyarrow": lambda path: read_by_pyarrow(path, None).select(["Id", "id"]).to_pylist(),
}


def write_two_cases(directory: Path) -> Path:
    """Write a file with two columns whose names differ in case only."""
    records = [{"n": 1, "Id": 1, "id": "a"}, {"n": 2, "Id": 2, "id": "b"}]
    return write_record_file(directory, {"type": "parquet"}, {}, records)


@pytest.mark.parametrize("reader", IN_TWO_CASES)
def test_names_that_differ_in_case_only_are_read_as_two_columns(reader: str, tmp_path: Path) -> None:
    rows = [tuple(row.values()) for row in IN_TWO_CASES[reader](write_two_cases(tmp_path))]
    assert rows == [(1, "a"), (2, "b")]


def test_names_that_differ_in_case_only_need_a_setting_of_spark(spark: "SparkSession", tmp_path: Path) -> None:
    path = str(write_two_cases(tmp_path))
    with pytest.raises(AnalysisException, match="COLUMN_ALREADY_EXISTS"):
        spark.read.parquet(path)
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        rows = spark.read.parquet(path).orderBy("n").select("Id", "id").collect()
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
    assert [tuple(row) for row in rows] == [(1, "a"), (2, "b")]


@pytest.mark.parametrize("text", NOT_OF_SPARK)
def test_parquet_of_another_type_is_refused_by_spark(spark: "SparkSession", tmp_path: Path, text: str) -> None:
    path = write_file("parquet", tmp_path, left_out=[one for one in SAMPLES if one != text])
    with pytest.raises(AnalysisException, match="PARQUET_TYPE_ILLEGAL"):
        spark.read.parquet(str(path))
    rows = spark.read.schema("n long").parquet(str(path)).orderBy("n").collect()
    assert [row.n for row in rows] == [1, 2, 3]


@dataclass
class FileOfTypes(Shelf):
    """An hour whose files are one that the writer has made."""

    file: Path = Path()

    def _put(self, hour: str, commit: str, table: pa.Table) -> File:
        key, body = f"orders/{hour}/{commit}.parquet", self.file.read_bytes()
        self.index.store.put(key, body, metadata={"s3lake-commit": commit})
        return File(key, "", (), 0, self.offset, self.offset, table.num_rows, len(body))


def test_a_table_of_iceberg_is_read_by_pyiceberg_with_equal_rows(s3_server: EmbeddedS3, tmp_path: Path) -> None:
    file = write_file("parquet", tmp_path, left_out=NOT_OF_ICEBERG)
    shelf = FileOfTypes(s3_server, tmp_path, file=file)
    shelf.commit(FIVE, rows=3)
    shelf.table().sync()
    table = loaded(shelf).scan().to_arrow().sort_by("n").drop_columns("landed_hour")
    assert_equal_rows(table, "pyiceberg", left_out=NOT_OF_ICEBERG)


@pytest.mark.parametrize("text", NOT_OF_ICEBERG)
def test_a_table_of_iceberg_refuses_a_type_that_it_does_not_have(
    s3_server: EmbeddedS3, tmp_path: Path, text: str
) -> None:
    file = write_file("parquet", tmp_path, left_out=[one for one in SAMPLES if one != text])
    shelf = FileOfTypes(s3_server, tmp_path, file=file)
    shelf.commit(FIVE, rows=3)
    with pytest.raises(TableConflictError, match="which Iceberg's tables do not have: give it as t"):
        shelf.table().sync()


def assert_equal_rows(table: pa.Table, reader: str, left_out: Sequence[str] = ()) -> None:
    cells = table_cells(table)
    assert cells.pop("n") == [1, 2, 3]
    wrong = {}
    for number, (text, sample) in enumerate(SAMPLES.items()):
        if text in left_out:
            continue
        found, *nulls = cells.pop(f"c{number}")
        assert nulls == NULLS_OTHERWISE.get((reader, text), [None, None]), text
        if found != show_sample(sample):
            wrong[text] = found
    assert cells == {}
    assert wrong == OTHERWISE.get(reader, {})
