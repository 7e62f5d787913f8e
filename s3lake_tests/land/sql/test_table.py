"""Records as rows for SQL, without Spark."""

from typing import Any

import msgspec
import pyarrow as pa
import pytest

from s3lake.land.request import sql_job
from s3lake.land.sql.sql_table import Tabulate
from s3lake.records.transform.sql import parser
from s3lake.source.record_batches import KAFKA_SCHEMA, SCHEMA

ROUNDED = "an integer that SQL would round to a double: BIGINT has 64 bits, and a double 53"


def table(tabulate: Tabulate, *rows: dict[str, Any]) -> pa.RecordBatch:
    places = [{"partition": 0, "offset": offset, **row} for offset, row in enumerate(rows)]
    (built,) = tabulate([pa.RecordBatch.from_pylist(places, SCHEMA)])
    return built


def test_a_record_s_shape_and_cells_depend_on_the_record_alone() -> None:
    tabulate = Tabulate("t", "bytes", "json", parser.parse_sql("id + 1 AS n, size(o.xs)", None))
    values = [b'{"id":1,"o":{"xs":[1,2.5,null]}}', b'{"id":"x"}', b'{"id":1e3,"o":{"xs":{"a b":[]}}}', b"true"]
    built = table(tabulate, *({"value": value} for value in values))
    assert list(map(msgspec.json.decode, built.column("__shape").to_pylist())) == [
        {"id": "BIGINT", "o.xs": "ARRAY<DOUBLE>"},
        {"id": "STRING", "o.xs": "VOID"},
        {"id": "DOUBLE", "o.xs": "STRUCT<`a b`: ARRAY<STRING>>"},
        {"id": "VOID", "o.xs": "VOID"},
    ]
    cells = {name: built.column(name).to_pylist() for name in ("__0i", "__0d", "__0s", "__1j")}
    assert cells == {
        "__0i": [1, None, None, None],
        "__0d": [None, None, 1000.0, None],
        "__0s": [None, "x", None, None],
        "__1j": ["[1,2.5,null]", None, '{"a b":[]}', None],
    }
    assert built.column("__value").to_pylist() == values


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b'{"id":[1,"a"]}', "a list has items of different types, BIGINT and STRING"),
        (b'{"ID":1,"Id":2}', "'id' fits the fields 'ID', 'Id', which differ in case only"),
        (b'{"id":1' + b"0" * 400 + b"}", "a number too large, or nested too deeply"),
        (b"{", "Input data was truncated"),
        (b'{"id":9223372036854775809}', ROUNDED),
        (b'{"id":[9007199254740993,0.5]}', ROUNDED),
        (b'{"id":{"x":[null,-9223372036854775809]}}', ROUNDED),
        (b'{"id":1e999999999}', "Number out of range"),
        (b'{"id":%s}' % (b"9" * 100_000), "Integer value out of range"),
    ],
)
def test_a_record_that_has_no_shape_is_refused(value: bytes, reason: str) -> None:
    built = table(Tabulate("t", "bytes", "json", parser.parse_sql("id + 1", None)), {"value": value})
    assert built.column("__refused").to_pylist() == [reason]


IN_NANOSECONDS = 1_795_342_500_000_000_000


def stamped(select: str, *stamps: int) -> pa.RecordBatch:
    rows = [{"partition": 0, "offset": 0, "value": b"{}", "timestamp": stamp} for stamp in stamps]
    tabulate = Tabulate("t", "bytes", "json", parser.parse_sql(select, None))
    (built,) = tabulate([pa.RecordBatch.from_pylist(rows, KAFKA_SCHEMA)])
    return built


def test_a_record_keeps_a_timestamp_that_spark_cannot_hold() -> None:
    built = stamped("id + 1 AS n", 1_500, IN_NANOSECONDS, -1)
    assert built.column("__timestamp").to_pylist() == [1_500, IN_NANOSECONDS, -1]
    assert built.column("__refused").to_pylist() == [None, None, None]


def test_a_record_is_refused_if_sql_takes_its_timestamp_and_spark_cannot_hold_it() -> None:
    built = stamped("_timestamp AS at", 1_500, IN_NANOSECONDS, -1)
    assert built.column("__refused").to_pylist() == [
        None,
        f"_timestamp is {IN_NANOSECONDS}: Spark's timestamps are at most 9223372036854775 milliseconds; correct the "
        "unit of the producer's timestamps, or leave _timestamp out of the SQL",
        None,
    ]


@pytest.mark.parametrize(("field", "shown"), [("password", "…"), ("other", "'hunter2'")])
def test_values_in_sparks_error_are_left_out_if_the_query_names_a_secret(
    monkeypatch: pytest.MonkeyPatch, field: str, shown: str
) -> None:
    monkeypatch.setattr(sql_job, "failure", lambda _: "The value 'hunter2' cannot be cast to BIGINT")
    tabulate = Tabulate("t", "bytes", "json", parser.parse_sql(f"cast({field} AS BIGINT) AS n", None))
    assert sql_job.describe_failure(ArithmeticError(), tabulate) == f"The value {shown} cannot be cast to BIGINT"
