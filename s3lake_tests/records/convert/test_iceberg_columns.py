"""With a table, columns become only what Iceberg's tables can follow; without one they widen as before."""

import json
from typing import Any

import pytest

from s3lake.config.model import Sink
from s3lake.land.request import stage_values
from s3lake.records.convert.convert_batch import ConvertedBatch, convert_batch
from s3lake.records.schema.columns.types import from_document, to_document
from s3lake_tests.kit.connect_messages import connect_message, field, struct
from s3lake_tests.records.convert.batches import batch

TABLE = {"name": "lake.{topic}", "catalog": {"type": "sql", "uri": "sqlite://"}}


def convert(*values: Any, columns: Any = None, converter: str = "json", table: Any = TABLE) -> ConvertedBatch:
    sink = Sink(
        name="events",
        topics=("orders",),
        bucket="lake",
        start="2026-11-20T05",
        format={"type": "parquet"},
        converter={"value": converter},
        table=table,
    )
    known = from_document(columns or {})
    work = stage_values.build_work(sink, "orders", None, sink.start, commit="c")
    work = work.with_contract(known).with_columns(known)
    texts = [value if isinstance(value, bytes) else json.dumps(value).encode() for value in values]
    return convert_batch(work.conversion, batch(*texts), known)


@pytest.mark.parametrize("number", [0.5, 2**63])
def test_a_column_of_integers_that_a_table_has_does_not_widen(number: float) -> None:
    found = convert({"n": 1}, {"n": number}, columns={"n": "int64"})
    assert found.refused == {
        1: "field 'n' is double, and its column stays one of integers: the sink's Iceberg table has it, and makes no "
        "doubles of integers"
    }
    assert to_document(found.columns) == {"n": "int64"}
    assert to_document(convert({"n": 1}, {"n": number}, columns={"n": "int64"}, table=None).columns) == {"n": "double"}


def test_a_column_that_is_new_to_a_table_holds_integers_and_fractions() -> None:
    found = convert({"n": 1}, {"n": 0.5})
    assert (found.refused, to_document(found.columns)) == ({}, {"n": "double"})


def test_a_name_with_a_dot_that_is_a_nested_field_too_is_refused_with_a_table() -> None:
    found = convert({"a": {"b": 1}}, {"a": {"b": 1}, "a.b": 2})
    assert list(found.refused) == [1]
    assert "field 'a.b' is two fields to the sink's table" in found.refused[1]
    assert convert({"a": {"b": 1}, "a.b": 2}, table=None).refused == {}


def test_a_field_with_the_name_of_the_tables_partition_is_refused() -> None:
    found = convert({"a": 1}, {"landed_hour": 1})
    assert found.refused == {1: "field 'landed_hour' is a column that the sink's table has of its own: rename it"}
    assert convert({"landed_hour": 1}, table=None).refused == {}


def test_a_schema_whose_type_the_table_cannot_hold_refuses_its_records() -> None:
    value = connect_message(struct(field("n", "double")), {"n": 0.5})
    found = convert(value, columns={"n": "int64"}, converter="connect_json")
    assert found.refused == {0: "field 'n' is double, and int64 in the sink's table, which cannot hold both"}
    assert convert(value, columns={"n": "float"}, converter="connect_json").refused == {}
    assert convert(value, columns={"n": "int64"}, converter="connect_json", table=None).refused == {}
