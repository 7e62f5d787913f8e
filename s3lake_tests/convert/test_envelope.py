"""The envelope of style `record`: a whole record in one row, and back again."""

from typing import Any

import pytest

from s3lake.convert.column import Envelope
from s3lake.convert.values import Conversion
from s3lake.schema.arrow import to_arrow
from s3lake.schema.types import from_document, to_document
from s3lake_tests.convert.records import batch, lines, table

ALL = ("key", "value", "headers", "metadata")


def conversion(
    format: str = "json",
    *fields: str,
    key: str = "string",
    value: str = "json",
    nulls: str = "write",
    given: dict[str, Any] | None = None,
) -> Conversion:
    envelope = Envelope("record", fields or ALL, "orders")
    return Conversion(key, value, format, nulls, envelope, from_document(given or {}))


# JSON


def test_a_record_is_one_object_with_its_parts_in_order() -> None:
    records = batch(b'{"id": 1}', keys=[b"k\n1"], headers=[[("trace", b"a1")]], timestamps=[1500])
    assert lines(conversion(), records) == [
        '{"key":"k\\n1","value":{"id": 1},"headers":{"trace":"a1"},'
        '"metadata":{"topic":"orders","partition":3,"offset":100,"timestamp":1500}}'
    ]


def test_fields_are_chosen_and_ordered_by_the_sink() -> None:
    assert lines(conversion("json", "metadata", "value"), batch(b"1")) == [
        '{"metadata":{"topic":"orders","partition":3,"offset":100,"timestamp":0},"value":1}'
    ]


def test_only_what_the_fields_need_is_read() -> None:
    assert conversion("json", "value", "metadata").needs == frozenset()
    assert conversion("json", "key", "headers").needs == {"key", "headers"}


def test_a_tombstone_a_null_key_and_no_headers_are_null_and_an_empty_object() -> None:
    records = batch(None, b"1", keys=[b"k", None], headers=[None, []])
    assert lines(conversion("json", "key", "value", "headers"), records) == [
        '{"key":"k","value":null,"headers":{}}',
        '{"key":null,"value":1,"headers":{}}',
    ]


def test_bytes_are_base64_with_a_flag_where_there_are_any() -> None:
    records = batch(b"\x00\xff", None, keys=[None, b"k"])
    assert lines(conversion("json", "value", "key", key="bytes", value="bytes"), records) == [
        '{"value":"AP8=","key":null,"valueIsArray":true}',
        '{"value":null,"key":"aw==","keyIsArray":true}',
    ]


def test_a_json_key_is_embedded() -> None:
    assert lines(conversion("json", "key", "value", key="json"), batch(b"1", keys=[b'{"a":\n1}'])) == [
        '{"key":{"a": 1},"value":1}'
    ]


@pytest.mark.parametrize(
    ("headers", "written"),
    [
        ([("a", b"1"), ("b", b"2")], '{"a":"1","b":"2"}'),
        ([("a", b"1"), ("a", b"2"), ("b", b"3")], '{"a":["1","2"],"b":"3"}'),
        ([("a", b"1"), ("b", b"2"), ("a", b"3")], '{"a":["1","3"],"b":"2"},"headersOrder":["a","b","a"]'),
        ([("a", None), ("a", b"")], '{"a":[null,""]}'),
        (
            [("reason-for-dlq", b'say "hi"'), ("größe", b"\xff")],
            '{"reason-for-dlq":"say \\"hi\\"","größe":{"base64":"/w=="}}',
        ),
        ([("", b"x"), ('"', b"y")], '{"":"x","\\"":"y"}'),
    ],
)
def test_headers_are_a_map_of_texts(headers: Any, written: str) -> None:
    records = batch(b"1", b"2", headers=[headers, None])
    assert lines(conversion("json", "headers"), records) == ['{"headers":' + written + "}", '{"headers":{}}']


def test_a_key_that_is_no_text_is_a_record_error() -> None:
    converted = conversion(key="string")(batch(b"1", b"2", keys=[b"\xff", b"k"], headers=[None, None]), {})
    assert converted.refused == {0: "key: not UTF-8: byte 0 is 0xff"}
    converted = conversion(key="json")(batch(b"1", keys=[b"{"], headers=[None]), {})
    assert converted.refused[0].startswith("key: ")


# Tables


@pytest.mark.parametrize("format", ["avro", "parquet"])
def test_a_row_has_a_column_for_each_part(format: str) -> None:
    records = batch(b'{"id":1}', keys=[b"k"], headers=[[("a-b", b"\xff"), ("a-b", None)]], timestamps=[1500])
    converted = conversion(format)(records, {})
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
    columns = by(records, {}).columns
    assert list(columns) == ["metadata", "key", "value"]
    assert (str(columns["key"]), str(columns["value"])) == ("struct<k: bool>", "struct<id: int64>")
    assert by(records, columns).columns == columns
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
    converted = conversion("parquet", "value")(batch(b"1", None, b"2.5"), {})
    assert (to_document(converted.columns), table(converted)) == (
        {"value": "double"},
        [{"value": 1.0}, {"value": None}, {"value": 2.5}],
    )


def test_a_tombstone_is_no_empty_object() -> None:
    converted = conversion("parquet", "value")(batch(None, b"{}", b'{"a":1}'), {})
    assert table(converted) == [{"value": None}, {"value": {"a": None}}, {"value": {"a": 1}}]


def test_an_empty_object_that_no_column_could_tell_from_a_tombstone_is_refused() -> None:
    converted = conversion("parquet", "key", "value")(batch(b"{}", None, b'{"a":null}', keys=[b"a", b"b", b"c"]), {})
    assert converted.refused == dict.fromkeys((0, 2), "the value holds nothing, and no column is known yet")
    assert table(converted) == [{"key": "b"}]


def test_nothing_but_tombstones_without_any_other_column_is_refused() -> None:
    assert conversion("parquet", "value")(batch(None), {}).refused == {
        0: "the object holds nothing, and no column is known yet"
    }


def test_a_conflict_names_the_part_and_keeps_the_other_rows_together() -> None:
    records = batch(b'{"a":1}', b'{"a":"x"}', b'{"a":2}', keys=[b"k0", b"k1", b"k2"], headers=[None] * 3)
    converted = conversion("parquet")(records, {})
    assert converted.refused == {1: "field 'value.a' is string, the sink's files have int64"}
    assert [(row["key"], row["value"]["a"], row["metadata"]["offset"]) for row in table(converted)] == [
        ("k0", 1, 100),
        ("k2", 2, 102),
    ]


def test_columns_of_the_user_are_those_of_the_value() -> None:
    converted = conversion("parquet", "value", given={"at": "date"})(batch(b'{"at":"1970-01-02"}', b'{"at":"x"}'), {})
    assert to_document(converted.columns) == {"value": {"struct": {"at": "date"}}}
    assert "field 'value.at' does not fit date" in converted.refused[1]
