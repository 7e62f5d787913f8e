"""SQL of a sink on real Spark, over given records."""

import io
import json
from typing import TYPE_CHECKING, Any

import fastavro
import pyarrow.parquet as pq
import pytest

from s3lake.land.given import Record
from s3lake.land.preview import preview
from s3lake.sink import Sink
from s3lake.transform import functions
from s3lake_tests.conftest import slow_after

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("spark")

VALUES = [
    {"id": 0, "Secret": "ssn-0", "o": {"secret": "ssn-1", "a": 1}, "xs": [{"secret": "ssn-2", "b": 1}, None]},
    {"id": 1, "o": None, "a b": "x", "xs": [{"c": 2, "secret": "ssn-3"}]},
    {"id": 2, "secrets": {"secret": "ssn-4"}},
]
SELECT = "* EXCEPT (secret, o.secret, xs.secret, secrets.secret)"


def landed(select: str, **settings: Any) -> bytes:
    sink = Sink(name="s", topics=("t",), bucket="lake", start="2026-11-20T00", sql={"select": select}, **settings)
    records = [Record("t", 0, n, 0, b"k%d" % n, json.dumps(one).encode(), ()) for n, one in enumerate(VALUES)]
    found = preview(sink, "t", records)
    assert found.refusals == ()
    return b"".join(one.body for one in found.objects)


def lines(select: str, **settings: Any) -> list[Any]:
    return [json.loads(line) for line in landed(select, **settings).splitlines()]


@pytest.mark.parametrize(
    "form",
    slow_after(2, "another format", ["json", "parquet", "json_array", "text", "bytes", "csv", "avro"]),
)
def test_what_is_left_out_is_landed_in_no_format(form: str) -> None:
    codec = {"codec": "none"} if form in ("avro", "parquet") else {}
    select = {"csv": "* EXCEPT (secret, o, xs, secrets)", "avro": SELECT.replace("(", "(`a b`, ")}.get(form, SELECT)
    body = landed(select, format={"type": form, **codec})
    assert b"ssn" not in body
    assert body


@pytest.mark.slow("a case more of a projection")
@pytest.mark.parametrize("form", ["json", "parquet"])
def test_what_is_left_out_is_landed_in_no_envelope(form: str) -> None:
    codec = {"codec": "none"} if form == "parquet" else {}
    body = landed(SELECT, envelope={}, format={"type": form, **codec})
    assert b"ssn" not in body
    assert b"k1" in body


def test_everything_else_is_landed() -> None:
    assert lines(SELECT) == [
        {"id": 0, "o": {"a": 1}, "xs": [{"b": 1, "c": None}, None], "a b": None, "secrets": None},
        {"id": 1, "o": None, "xs": [{"b": None, "c": 2}], "a b": "x", "secrets": None},
        {"id": 2, "o": None, "xs": None, "a b": None, "secrets": {}},
    ]


@pytest.mark.slow("a case more of a projection")
def test_tables_have_no_column_of_what_is_left_out() -> None:
    table = pq.read_table(io.BytesIO(landed("* EXCEPT (secret, xs.secret, o)", format={"type": "parquet"})))
    assert [str(field.type) for field in table.schema if field.name == "xs"] == [
        "list<element: struct<b: int64, c: int64>>"
    ]
    assert sorted(table.schema.names) == ["a b", "id", "secrets", "xs"]
    rows = list(
        fastavro.reader(io.BytesIO(landed("* EXCEPT (`a b`, o, xs, secret, secrets)", format={"type": "avro"})))
    )
    assert rows == [{"id": 0}, {"id": 1}, {"id": 2}]


@pytest.mark.slow("a case more of a projection")
def test_what_replaces_a_field_is_landed_in_its_place() -> None:
    found = lines("* EXCEPT (xs, secrets, o) REPLACE ('***' AS secret, upper(_key) AS `a b`, id * 2 AS twice)")
    assert found[:2] == [
        {"id": 0, "secret": "***", "a b": "K0", "twice": 0},
        {"id": 1, "secret": "***", "a b": "K1", "twice": 2},
    ]


@pytest.mark.slow("a case more of a projection")
def test_all_but_everything_is_an_empty_object() -> None:
    assert lines("* EXCEPT (id, secret, o, xs, `a b`, secrets)") == [{}, {}, {}]


@pytest.mark.slow("a case more of a projection")
def test_the_fields_of_an_object_can_be_landed_without_some() -> None:
    assert lines("id, o.* EXCEPT (secret)") == [{"id": 0, "a": 1}, {"id": 1, "a": None}, {"id": 2, "a": None}]


@pytest.mark.slow("a case more of a projection")
def test_every_function_of_spark_is_either_allowed_or_refused_with_a_reason(spark: "SparkSession") -> None:
    names = {row.function for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()}
    words = {name for name in names if name.replace("_", "a").isalnum()}
    assert words - functions.ALLOWED - functions.REFUSED.keys() - {"and", "case", "not", "or", "when"} == set()
