"""The envelope of style `record`: a whole record in one row; `lake/verify/test_envelopes.py` has its text."""

from typing import Any

import pytest

from s3lake.records.convert.conversion import Conversion
from s3lake.records.convert.convert_batch import convert_batch
from s3lake.records.convert.read.keys_and_values import RecordEnvelope
from s3lake.records.schema.columns.arrow_types import to_arrow
from s3lake.records.schema.columns.types import from_document, to_document
from s3lake_tests.records.convert.batches import batch, table

ALL = ("key", "value", "headers", "metadata")


def conversion(
    format: str = "json",
    *fields: str,
    key: str = "string",
    value: str = "json",
    nulls: str = "write",
    given: dict[str, Any] | None = None,
) -> Conversion:
    envelope = RecordEnvelope("record", fields or ALL, "orders")
    return Conversion(key, value, format, nulls, envelope, from_document(given or {}))


def test_only_what_the_fields_need_is_read() -> None:
    assert conversion("json", "value", "metadata").needs == frozenset()
    assert conversion("json", "key", "headers").needs == {"key", "headers"}


def test_a_key_that_is_no_text_is_a_record_error() -> None:
    converted = convert_batch(
        conversion(key="string"), batch(b"1", b"2", keys=[b"\xff", b"k"], headers=[None, None]), {}
    )
    assert converted.refused == {0: "key: not UTF-8: byte 0 is 0xff"}
    converted = convert_batch(conversion(key="json"), batch(b"1", keys=[b"{"], headers=[None]), {})
    assert converted.refused[0].startswith("key: ")


@pytest.mark.parametrize("format", ["avro", "parquet"])
def test_a_row_has_a_column_for_each_part(format: str) -> None:
    records = batch(b'{"id":1}', keys=[b"k"], headers=[[("a-b", b"\xff"), ("a-b", None)]], timestamps=[1500])
    converted = convert_batch(conversion(format), records, {})
    assert table(converted) == [
        {
            "key": "k",
            "value": {"id": 1},
            "headers": [{"key": "a-b", "value": b"\xff"}, {"key": "a-b", "value": None}],
            "metadata": {"timestamp": 1500, "topic": "orders", "partition": 3, "offset": 100},
        }
    ]
    assert list(table(converted)[0]) == list(ALL)
    assert list(table(converted)[0]["metadata"]) == ["timestamp", "topic", "partition", "offset"]
    assert converted.parts[0].streams["data"].schema == to_arrow(converted.columns)


def test_columns_are_all_of_the_file_and_stay_when_they_are_known() -> None:
    by = conversion("parquet", "metadata", "key", "value", key="json")
    records = batch(b'{"id":1}', keys=[b'{"k":true}'])
    columns = convert_batch(by, records, {}).columns
    assert list(columns) == ["metadata", "key", "value"]
    assert (str(columns["key"]), str(columns["value"])) == ("struct<k: bool>", "struct<id: int64>")
    assert convert_batch(by, records, columns).columns == columns
    assert (by.has_columns, by.fixed_columns) == (True, None)


def test_columns_that_no_record_changes_are_fixed() -> None:
    by = conversion("avro", "key", "value", "headers", key="bytes", value="string")
    assert not by.has_columns
    assert to_document(by.fixed_columns) == {
        "key": "binary",
        "value": "string",
        "headers": {"list": {"struct": {"key": "string", "value": "binary"}}},
    }


def test_primitive_values_are_a_column_of_their_type() -> None:
    converted = convert_batch(conversion("parquet", "value"), batch(b"1", None, b"2.5"), {})
    assert (to_document(converted.columns), table(converted)) == (
        {"value": "double"},
        [{"value": 1.0}, {"value": None}, {"value": 2.5}],
    )


def test_a_tombstone_is_no_empty_object() -> None:
    converted = convert_batch(conversion("parquet", "value"), batch(None, b"{}", b'{"a":1}'), {})
    assert table(converted) == [{"value": None}, {"value": {"a": None}}, {"value": {"a": 1}}]


def test_an_empty_object_that_no_column_could_distinguish_from_a_tombstone_is_refused() -> None:
    converted = convert_batch(
        conversion("parquet", "key", "value"), batch(b"{}", None, b'{"a":null}', keys=[b"a", b"b", b"c"]), {}
    )
    assert converted.refused == dict.fromkeys(
        (0, 2), "the value holds nothing, and no column is known yet: declare columns, or use format json"
    )
    assert table(converted) == [{"key": "b"}]


def test_nothing_but_tombstones_without_any_other_column_is_refused() -> None:
    assert convert_batch(conversion("parquet", "value"), batch(None), {}).refused == {
        0: "the object holds nothing, and no column is known yet: declare columns, or use format json"
    }


def test_a_conflict_names_the_part_and_keeps_the_other_rows_together() -> None:
    records = batch(b'{"a":1}', b'{"a":"x"}', b'{"a":2}', keys=[b"k0", b"k1", b"k2"], headers=[None] * 3)
    converted = convert_batch(conversion("parquet"), records, {})
    remedy = "have the producer keep to one type, or use format json, which has no columns"
    assert converted.refused == {1: f"field 'value.a' is string, the sink's files have int64: {remedy}"}
    assert [(row["key"], row["value"]["a"], row["metadata"]["offset"]) for row in table(converted)] == [
        ("k0", 1, 100),
        ("k2", 2, 102),
    ]


def test_columns_of_the_user_are_those_of_the_value() -> None:
    converted = convert_batch(
        conversion("parquet", "value", given={"at": "date"}), batch(b'{"at":"1970-01-02"}', b'{"at":"x"}'), {}
    )
    assert to_document(converted.columns) == {"value": {"struct": {"at": "date"}}}
    assert "field 'value.at' does not fit date" in converted.refused[1]
