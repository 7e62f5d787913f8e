"""Readers that others wrote: what each shows of every type in files of CSV and of JSON lines."""

import csv
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from s3lake.land.spark import jars
from s3lake_tests.kit.oracles import run_jvm
from s3lake_tests.sample_files import write_record_file, write_sample_file
from s3lake_tests.sample_values import NESTED, SAMPLES, show_sample, table_cells

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow("reads each format of text with each reader")

FLAT = {text: sample for text, sample in SAMPLES.items() if not text.startswith(NESTED)}
CELLS = {**{text: str(sample) for text, sample in FLAT.items()}, "bool": "true", "double": "1e+300"}
"""The cells of CSV, as docs/formats.md has them."""
COMMONS_CSV = "org.apache.commons:commons-csv:1.14.1"


def write_file(format: str, directory: Path, samples: Mapping[str, Any]) -> Path:
    """Write a file with a column of each sample."""
    columns = {f"c{number}": text for number, text in enumerate(samples)} if format == "csv" else {}
    values = {f"c{number}": sample for number, sample in enumerate(samples.values())}
    return write_sample_file(directory, {"type": format, "codec": "none"}, columns, values)


@pytest.fixture(scope="module")
def csv_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_file("csv", tmp_path_factory.mktemp("csv"), FLAT)


@pytest.fixture(scope="module")
def json_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_file("json", tmp_path_factory.mktemp("json"), SAMPLES)


# What each reader knows of the types

DUCKDB = {
    "bool": "BOOLEAN",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "string": "VARCHAR",
    "binary": "VARCHAR",
    "time_us": "TIME",
    "timestamp": "TIMESTAMPTZ",
    "timestamp_us": "TIMESTAMPTZ",
    "timestamp_ns": "TIMESTAMP_NS",
}
SPARK = {
    "bool": "boolean",
    "int32": "int",
    "int64": "bigint",
    "binary": "string",
    "time": "string",
    "time_us": "string",
    "timestamp_us": "timestamp",
    "timestamp_ns": "string",
    "uuid": "string",
}
POLARS = {
    "bool": "Boolean",
    "int32": "Int32",
    "int64": "Int64",
    "float": "Float32",
    "double": "Float64",
}
"""The others are text to it: it parses them after it has read the file."""


def write_type(text: str, names: Mapping[str, str], *, list_of: str, map_of: str) -> str:
    """A type in the words of another reader."""
    if text in names:
        return names[text]
    if match := re.fullmatch(r"list<(.*)>", text):
        return list_of.format(write_type(match[1], names, list_of=list_of, map_of=map_of))
    if match := re.fullmatch(r"map<string, (.*)>", text):
        return map_of.format(write_type(match[1], names, list_of=list_of, map_of=map_of))
    if match := re.fullmatch(r"struct<(.*)>", text):
        fields = [part.split(": ", 1) for part in split_fields(match[1])]
        inner = [(name, write_type(kind, names, list_of=list_of, map_of=map_of)) for name, kind in fields]
        if names is DUCKDB:
            return f"STRUCT({', '.join(f'{name} {kind}' for name, kind in inner)})"
        return f"struct<{', '.join(f'{name}: {kind}' for name, kind in inner)}>"
    return text


def split_fields(text: str) -> list[str]:
    """The fields of a struct; a comma within angle brackets or parentheses separates none."""
    fields, depth = [""], 0
    for char in text:
        depth += (char in "<(") - (char in ">)")
        if char == "," and not depth:
            fields.append("")
        else:
            fields[-1] += char
    return [field.strip() for field in fields]


def types_of_duckdb(samples: Mapping[str, Any]) -> dict[str, str]:
    kinds = [write_type(text, DUCKDB, list_of="{}[]", map_of="MAP(VARCHAR, {})") for text in samples]
    return {**{f"c{number}": kind for number, kind in enumerate(kinds)}, "n": "BIGINT"}


def schema_of_spark(samples: Mapping[str, Any], *, n_last: bool) -> str:
    kinds = [write_type(text, SPARK, list_of="array<{}>", map_of="map<string, {}>") for text in samples]
    columns = [f"c{number} {kind}" for number, kind in enumerate(kinds)]
    return ", ".join([*columns, "n bigint"] if n_last else ["n bigint", *columns])


# Tables


def csv_by_duckdb(path: Path, _: Any) -> pa.Table:
    import duckdb

    with duckdb.connect() as connection:
        options = "allow_quoted_nulls=false, header=true, types=" + str(types_of_duckdb(FLAT))
        return connection.sql(f"SELECT * FROM read_csv('{path}', {options}) ORDER BY n").to_arrow_table()


def csv_by_polars(path: Path, _: Any) -> pa.Table:
    import polars

    names = path.read_text("utf-8").splitlines()[0].replace('"', "").split(",")
    kinds = dict(zip((f"c{number}" for number in range(len(FLAT))), FLAT, strict=True))
    schema = {name: getattr(polars, POLARS.get(kinds.get(name, "int64"), "String")) for name in names}
    return polars.read_csv(path, schema=schema).sort("n").to_arrow()


def csv_by_spark(path: Path, request: pytest.FixtureRequest) -> pa.Table:
    spark: SparkSession = request.getfixturevalue("spark")
    names = path.read_text("utf-8").splitlines()[0].replace('"', "").split(",")
    options = {"header": True, "escape": '"', "multiLine": True, "emptyValue": "", "nullValue": "\x01"}
    schema = schema_of_spark(FLAT, n_last=names[-1] == "n")
    return spark.read.schema(schema).options(**options).csv(str(path)).orderBy("n").toArrow()


def json_by_duckdb(path: Path, _: Any) -> pa.Table:
    import duckdb

    with duckdb.connect() as connection:
        columns = types_of_duckdb(SAMPLES)
        rows = connection.sql(f"SELECT * FROM read_json('{path}', format='newline_delimited', columns={columns})")
        return rows.order("n").to_arrow_table()


def json_by_polars(path: Path, _: Any) -> pa.Table:
    import polars

    return polars.read_ndjson(path).sort("n").to_arrow()


def json_by_spark(path: Path, request: pytest.FixtureRequest) -> pa.Table:
    spark: SparkSession = request.getfixturevalue("spark")
    schema = schema_of_spark(SAMPLES, n_last=True)
    return spark.read.schema(schema).json(str(path)).orderBy("n").toArrow()


TABLES: dict[str, tuple[Callable[[Path, Any], pa.Table], str]] = {
    "csv by duckdb": (csv_by_duckdb, "csv"),
    "csv by polars": (csv_by_polars, "csv"),
    "csv by spark": (csv_by_spark, "csv"),
    "json by duckdb": (json_by_duckdb, "json"),
    "json by polars": (json_by_polars, "json"),
    "json by spark": (json_by_spark, "json"),
}


@pytest.mark.parametrize("reader", TABLES)
def test_a_table_of_another_reader_has_equal_rows(
    reader: str, csv_file: Path, json_file: Path, request: pytest.FixtureRequest
) -> None:
    read, format = TABLES[reader]
    samples, path = (FLAT, csv_file) if format == "csv" else (SAMPLES, json_file)
    cells = table_cells(read(path, request))
    assert cells.pop("n") == [1, 2, 3]
    wrong = {}
    for number, (text, sample) in enumerate(samples.items()):
        found, *nulls = cells.pop(f"c{number}")
        assert nulls == [None, None], text
        if show_sample(found) != show_sample(sample):
            wrong[text] = found
    assert cells == {}
    assert wrong == {}


# Cells of text


def cells_of_commons_csv(path: Path) -> list[dict[str, str | None]]:
    """Java's own reader: with strict quotes it tells an empty text from a null."""
    with run_jvm(jars.resolve("commons-csv", [COMMONS_CSV])) as java:
        of_csv = java.org.apache.commons.csv
        strict = of_csv.QuoteMode.ALL_NON_NULL
        from_file = java.java.lang.reflect.Array.newInstance(java.java.lang.Class.forName("java.lang.String"), 0)
        builder = of_csv.CSVFormat.DEFAULT.builder().setHeader(from_file).setSkipHeaderRecord(True)
        format = builder.setNullString("").setQuoteMode(strict).get()
        parser = of_csv.CSVParser.parse(
            java.java.io.File(str(path)), java.java.nio.charset.StandardCharsets.UTF_8, format
        )
        rows = [dict(record.toMap()) for record in parser.getRecords()]
        parser.close()
        return rows


def cells_of_python(path: Path) -> list[dict[str, str | None]]:
    """Python's reader shows a null as an empty text."""
    with path.open(newline="", encoding="utf-8") as file:
        return [{name: cell or None for name, cell in row.items()} for row in csv.DictReader(file, strict=True)]


@pytest.mark.usefixtures("jvm")
@pytest.mark.parametrize("read", [cells_of_python, cells_of_commons_csv])
def test_csv_of_each_type_has_the_cells_of_the_documents(
    read: Callable[[Path], list[dict[str, str | None]]], csv_file: Path
) -> None:
    full, *nulls = read(csv_file)
    assert full == {"n": "1", **{f"c{number}": cell for number, cell in enumerate(CELLS.values())}}
    assert nulls == [{"n": n, **dict.fromkeys(full.keys() - {"n"})} for n in ("2", "3")]


def test_an_empty_text_is_no_null_to_javas_reader_of_csv(jvm: Path, tmp_path: Path) -> None:  # noqa: ARG001 (Java)
    texts = ["", '\n,"', "é", None]
    records = [{"n": 1, "text": text} for text in texts]
    path = write_record_file(tmp_path, {"type": "csv", "codec": "none"}, {}, records)
    assert [row["text"] for row in cells_of_commons_csv(path)] == texts


def test_json_lines_of_each_type_are_read_by_java_with_equal_rows(jvm: Path, json_file: Path) -> None:  # noqa: ARG001
    with run_jvm(jars.pyspark_jars_dir().glob("jackson-*.jar")) as java:
        mapper = java.com.fasterxml.jackson.databind.ObjectMapper()
        found = [mapper.readTree(line).toString() for line in json_file.read_text("utf-8").splitlines()]
    full = {f"c{number}": sample for number, sample in enumerate(SAMPLES.values())}
    assert list(map(json.loads, found)) == [{"n": 1, **full}, {"n": 2, **dict.fromkeys(full)}, {"n": 3}]
