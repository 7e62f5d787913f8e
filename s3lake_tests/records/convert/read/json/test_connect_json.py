"""Connect's JSON with its schema: the schema's columns, the payload's text, and payloads that do not fit."""

import base64
import datetime
import json
from decimal import Decimal
from typing import Any

import pytest

from s3lake.records.convert.conversion import Conversion
from s3lake.records.convert.convert_batch import convert_batch
from s3lake.records.convert.read.keys_and_values import RecordEnvelope
from s3lake.records.schema import connect_schema
from s3lake.records.schema.columns.types import Columns, from_document, to_document
from s3lake_tests.kit.connect_messages import connect_message, field, struct
from s3lake_tests.records.convert.batches import batch, parts

UTC = datetime.timezone.utc
LOGICAL = "org.apache.kafka.connect.data."


def conversion(format: str = "parquet", nulls: str = "skip", *, given: dict[str, Any] | None = None) -> Conversion:
    return Conversion("string", "connect_json", format, nulls, declared=from_document(given or {}))


def one(schema: Any, payload: Any, format: str = "parquet") -> Any:
    converted = convert_batch(conversion(format), batch(connect_message(schema, payload)), {})
    assert converted.refused == {}
    (part,) = converted.parts
    (row,) = part.streams["data"].to_pylist()
    return row


def refusal(schema: Any, payload: Any, format: str = "parquet") -> str:
    converted = convert_batch(conversion(format), batch(connect_message(schema, payload)), {})
    assert converted.parts == ()
    return converted.refused[0]


# Types that test_golden_types.py does not have


@pytest.mark.parametrize("payload", [base64.b64encode(b"\x00\xd2").decode(), 2.1, b"2.10"])
def test_a_decimal_is_base64_of_its_bytes_or_a_number(payload: Any) -> None:
    schema = struct(field("a", "bytes", name=f"{LOGICAL}Decimal", parameters={"scale": "2"}))
    text = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    assert one(schema, b'{"a":%s}' % text) == {"a": Decimal("2.10")}
    line = one(schema, b'{"a":%s}' % text, "json")
    assert json.loads(line, parse_float=Decimal) == {"a": Decimal("2.10")}


@pytest.mark.parametrize(
    ("schema", "payload", "found"),
    [({"type": "int32"}, 7, 7), ({"type": "array", "items": {"type": "string"}}, ["x"], ["x"])],
)
def test_a_payload_that_is_no_struct_is_one_column(schema: Any, payload: Any, found: Any) -> None:
    assert one(schema, payload) == {"value": found}


@pytest.mark.parametrize("format", ["parquet", "json"])
@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        ({"a": "x"}, "Expected `int | null`, got `str` - at `$.a`"),
        ({"a": 2**31}, "2147483647"),
        ({}, "Object missing required field `b`"),
        ({"b": "x", "c": 1}, "Object contains unknown field `c`"),
        ({"b": None}, "Expected `str`, got `null` - at `$.b`"),
        (7, "Expected `object`, got `int`"),
        (None, "Expected `object`, got `null`"),
    ],
)
def test_a_payload_that_does_not_fit_is_a_record_error(payload: Any, expected: str, format: str) -> None:
    reason = refusal(struct(field("a", "int32"), field("b", "string", optional=False)), payload, format)
    assert reason.startswith("the payload does not fit its schema: ")
    assert expected in reason


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ("v1", "schema is not a Connect schema: expected an object with a type; or use converter json"),
        ({"type": "int"}, "schema.type 'int' is not known: there are boolean, int8"),
        (struct({"type": "int32"}), "schema.fields[0].field is None"),
        (struct(field("a", "int32"), field("a", "int32")), "schema.fields[1].field is 'a'"),
        (struct(field("a", "array")), "schema.fields[0].items is not a Connect schema"),
        (struct(field("a", "bytes", name=f"{LOGICAL}Decimal")), "a decimal needs its scale"),
        (struct(field("a", "int8", default=300)), "schema.fields[0].default does not fit its schema"),
        ({"type": "struct"}, "schema.fields: a list"),
        (struct(field("a", "bytes", default="x")), "schema.fields[0].default is 'x': base64 is expected"),
        (struct(field("a", "int8", parameters=[1])), "schema.fields[0].parameters: an object is expected"),
        (struct(field('a"b', "string")), "a name without quotes, backslashes, control characters"),
    ],
)
def test_a_schema_that_connect_does_not_have_is_a_record_error(schema: Any, expected: str) -> None:
    assert expected in refusal(schema, {})


def test_a_decimal_that_is_none_is_a_record_error() -> None:
    schema = struct(field("a", "bytes", name=f"{LOGICAL}Decimal", parameters={"scale": "2"}))
    assert "no decimal: base64 of its bytes, or a number" in refusal(schema, {"a": "?"})
    assert "does not fit decimal(38,2)" in refusal(schema, b'{"a":0.001}')
    assert "an exponent beyond all bounds" in refusal(schema, b'{"a":1e%s}' % (b"9" * 20))


def test_a_schema_that_is_too_deep_for_columns_is_a_record_error() -> None:
    schema: Any = {"type": "string"}
    for _ in range(33):
        schema = {"type": "array", "items": schema}
    assert refusal(schema, []).endswith("nests deeper than 32 levels, which Parquet's readers refuse; use bytes")


def test_a_schema_that_no_stack_holds_is_a_record_error() -> None:
    deep = b'{"type":"array","items":' * 3000 + b'{"type":"string"}' + b"}" * 3000
    assert connect_schema.compile_schema(deep, tabular=True) == "the schema is nested too deeply"


def test_a_line_is_the_payload_and_layout_reads_it_and_the_name_of_the_schema() -> None:
    payload = b'{"b": "AA==", "a":1}'
    (part,) = convert_batch(
        conversion("json"), batch(connect_message(struct(field("a", "int32"), field("b", "bytes")), payload)), {}
    ).parts
    assert part.streams["data"].to_pylist() == part.values.to_pylist() == [payload]
    assert part.names.to_pylist() == ["com.acme.Order"]


def test_lines_keep_the_order_of_their_records_whatever_their_schemas() -> None:
    orders, users = struct(field("a", "int32")), struct(field("b", "int32"), name="com.acme.User")
    values = [
        connect_message(orders, {"a": 0}),
        connect_message(users, {"b": 1}),
        b'{"c": 2}',
        b'{"c": 3}',
        connect_message(orders, {"a": 4}),
    ]
    (part,) = convert_batch(conversion("json"), batch(*values), {}).parts
    assert part.streams["data"].to_pylist() == [b'{"a": 0}', b'{"b": 1}', b'{"c": 2}', b'{"c": 3}', b'{"a": 4}']
    assert part.rows is None
    assert part.names.to_pylist() == ["com.acme.Order", "com.acme.User", None, None, "com.acme.Order"]


def test_a_table_has_a_part_for_each_schema_and_one_for_plain_json() -> None:
    orders, users = struct(field("a", "int32")), struct(field("b", "string"), name="com.acme.User")
    values = [
        connect_message(orders, {"a": 0}),
        connect_message(users, {"b": "x"}),
        b'{"c": 2.5}',
        connect_message(orders, {"a": 3}),
        b"{",
    ]
    converted = convert_batch(conversion(), batch(*values), {})
    assert parts(converted) == [([0, 3], [{"a": 0}, {"a": 3}]), ([1], [{"b": "x"}]), ([2], [{"c": 2.5}])]
    assert [part.names.to_pylist() for part in converted.parts] == [["com.acme.Order"] * 2, ["com.acme.User"], [None]]
    assert [part.streams["data"].schema.metadata for part in converted.parts] == [
        {b"s3lake.name": b"com.acme.Order"},
        {b"s3lake.name": b"com.acme.User"},
        None,
    ]
    assert to_document(converted.columns) == {"c": "double"}
    assert to_document(converted.seen) == {"a": "int32", "b": "string"}
    assert list(converted.refused) == [4]


@pytest.mark.parametrize("format", ["parquet", "avro"])
def test_schemas_that_differ_only_in_version_share_their_files(format: str) -> None:
    values = batch(*(connect_message(struct(field("a", "int32"), version=at % 2), {"a": at}) for at in range(4)))
    assert parts(convert_batch(conversion(format), values, {})) == [
        ([0, 1, 2, 3], [{"a": 0}, {"a": 1}, {"a": 2}, {"a": 3}])
    ]


def test_rows_with_the_same_columns_stay_in_order_though_only_some_have_a_schema() -> None:
    values = [connect_message(struct(field("a", "int64"), name=None), {"a": 0}), b'{"a":1}'] * 2
    assert parts(convert_batch(conversion(), batch(*values), {})) == [
        ([0, 1, 2, 3], [{"a": 0}, {"a": 1}, {"a": 0}, {"a": 1}])
    ]


@pytest.mark.parametrize(
    "value",
    [b'{"schema":null,"payload":{"a":1}}', b'{"schema":{"type":"int32"}}', b'{"schema":1,"payload":2,"more":3}'],
)
def test_a_null_schema_or_an_object_of_other_members_is_plain_json(value: bytes) -> None:
    (part,) = convert_batch(conversion("json"), batch(value), {}).parts
    assert part.streams["data"].to_pylist() == [b'{"a":1}' if b"null" in value else value]


def test_a_null_payload_is_a_null_value() -> None:
    value = connect_message(struct(field("a", "int32"), optional=True), None)
    assert convert_batch(conversion(nulls="skip"), batch(value), {}).skipped == 1
    assert list(convert_batch(conversion(nulls="fail"), batch(value), {}).refused) == [0]
    assert parts(convert_batch(conversion(nulls="write"), batch(value), {})) == [(None, [{"a": None}])]


def test_columns_of_the_user_are_for_values_without_a_schema() -> None:
    values = [connect_message(struct(field("a", "int32")), {"a": 0}), b'{"a":"1970-01-02"}']
    converted = convert_batch(conversion(given={"a": "date"}), batch(*values), {})
    assert parts(converted) == [([0], [{"a": 0}]), ([1], [{"a": datetime.date(1970, 1, 2)}])]


@pytest.mark.parametrize(
    ("format", "schema", "expected"),
    [
        (
            "csv",
            struct(field("a", "array", items={"type": "int32"})),
            "field 'a' is list<int32>, which a row of CSV",
        ),
        (
            "avro",
            struct(field("a", "int32"), name="my-topic.Value"),
            "the schema's name 'my-topic.Value' is not one that",
        ),
        (
            "avro",
            struct(field("a", "array", items=struct(field("b", "int32"), name="an.In-ner"))),
            "the schema's name 'an.In-ner' is not one that",
        ),
        ("avro", struct(field("a-b", "int32")), "field 'a-b' has a name that Avro forbids"),
    ],
)
def test_a_schema_that_the_format_cannot_hold_is_a_record_error(format: str, schema: Any, expected: str) -> None:
    assert expected in refusal(schema, {}, format)


def test_an_envelope_has_key_and_value_in_the_types_of_their_schemas() -> None:
    by = Conversion("connect_json", "connect_json", "parquet", "write", RecordEnvelope("record", ("key", "value"), "t"))
    keys = [connect_message({"type": "int32"}, 1), b'"plain"', None]
    values = [
        connect_message(struct(field("a", "int64", name=f"{LOGICAL}Timestamp")), {"a": 0}),
        b'{"b":1}',
        b'{"b":2}',
    ]
    converted = convert_batch(by, batch(*values, keys=keys), {})
    assert parts(converted) == [
        ([0], [{"key": 1, "value": {"a": datetime.datetime(1970, 1, 1, tzinfo=UTC)}}]),
        ([1, 2], [{"key": "plain", "value": {"b": 1}}, {"key": None, "value": {"b": 2}}]),
    ]
    assert to_document(converted.columns) == {"key": "string", "value": {"struct": {"b": "int64"}}}
    assert to_document(converted.seen) == {"key": "int32", "value": {"struct": {"a": "timestamp"}}}


def test_the_first_value_decides_its_column_though_values_are_read_by_the_schemas_of_their_keys() -> None:
    by = Conversion("connect_json", "json", "parquet", "write", RecordEnvelope("record", ("key", "value"), "t"))
    small, large = connect_message({"type": "int32"}, 1), connect_message({"type": "int64"}, 1)
    values, keys = [b'{"b":1}', b'{"a":5}', b'{"a":"x","c":1}', b'{"c":"y"}'], [small, large, small, large]
    whole = convert_batch(by, batch(*values, keys=keys), {}).columns
    assert to_document(whole) == {"value": {"struct": {"b": "int64", "a": "int64", "c": "string"}}}
    columns: Columns = {}
    for value, key in zip(values, keys, strict=True):
        columns = convert_batch(by, batch(value, keys=[key]), columns).columns
    assert columns == whole


@pytest.mark.parametrize("optional", [{}, {"optional": False}])
def test_a_null_payload_of_a_struct_is_null_in_an_envelope(optional: dict[str, Any]) -> None:
    by = Conversion("connect_json", "connect_json", "avro", "write", RecordEnvelope("record", ("key", "value"), "t"))
    schema = struct(field("a", "int32", **optional), optional=True)
    sent = connect_message(schema, {"a": 1}), connect_message(schema, None)
    assert parts(convert_batch(by, batch(*sent, keys=list(sent)), {})) == [
        (None, [{"key": {"a": 1}, "value": {"a": 1}}, {"key": None, "value": None}])
    ]


@pytest.mark.parametrize(("style", "is_refused"), [("flat", True), ("record", False)])
def test_an_envelope_takes_the_name_of_a_records_schema(style: Any, is_refused: bool) -> None:
    by = Conversion("string", "connect_json", "avro", "write", RecordEnvelope(style, ("value",), "t"))
    converted = convert_batch(
        by, batch(connect_message(struct(field("a", "int32"), name="my-topic.Value"), {"a": 1})), {}
    )
    assert bool(converted.refused) == is_refused
