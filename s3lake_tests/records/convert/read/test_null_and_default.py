"""Null, missing and default are three things: what each place of a value with a schema has, in columns and in lines."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from s3lake.records.convert.conversion import Conversion
from s3lake.records.convert.convert_batch import convert_batch
from s3lake.records.convert.read.keys_and_values import RecordEnvelope
from s3lake_tests.conftest import short_id
from s3lake_tests.records.convert.batches import batch, table
from s3lake_tests.records.schema.registry.server import SchemaRegistry, framed

SEVEN = {"type": "int32", "optional": True, "default": 7}
NINE = {"type": "int32", "default": 9}
LIST = {"type": "array", "items": SEVEN}
MAP = {"type": "map", "keys": {"type": "string"}, "values": SEVEN}
PAIRS = {"type": "map", "keys": {"type": "int32"}, "values": SEVEN}
INNER = {"type": "struct", "fields": [{**SEVEN, "field": "a"}]}
DATE = {"type": "int32", "name": "org.apache.kafka.connect.data.Date", "optional": True, "default": 7}

# Schema of a field, its payload (MISSING: it is not there), and what it is if nulls stay, and if they become defaults.
MISSING = object()
PLACES: list[tuple[str, Any, Any, Any, Any]] = [
    ("null", SEVEN, None, None, 7),
    ("missing", SEVEN, MISSING, 7, 7),
    ("present", SEVEN, 0, 0, 0),
    ("null that is required", NINE, None, 9, 9),
    ("missing that is required", NINE, MISSING, 9, 9),
    ("in a list", LIST, [None, 1], [None, 1], [7, 1]),
    ("in a map", MAP, {"k": None}, {"k": None}, {"k": 7}),
    ("null in a struct", INNER, {"a": None}, {"a": None}, {"a": 7}),
    ("missing in a struct", INNER, {}, {"a": 7}, {"a": 7}),
    (
        "in a list of structs",
        {"type": "array", "items": INNER},
        [{"a": None}, {}],
        [{"a": None}, {"a": 7}],
        [{"a": 7}] * 2,
    ),
    ("null list", {**LIST, "optional": True, "default": [1, None]}, None, None, [1, 7]),
    ("missing list", {**LIST, "optional": True, "default": [1, None]}, MISSING, [1, None], [1, 7]),
]


def message(schema: Any, payload: Any) -> bytes:
    fields = [{"field": "id", "type": "int32"}, {**schema, "field": "v"}]
    value = {"id": 1} | ({} if payload is MISSING else {"v": payload})
    return json.dumps({"schema": {"type": "struct", "fields": fields}, "payload": value}).encode()


def conversion(format: str, sides: Sequence[str], **more: Any) -> Conversion:
    return Conversion("connect_json", "connect_json", format, "skip", null_to_default=tuple(sides), **more)


def line(by: Conversion, raw: bytes) -> Any:
    (row,) = table(convert_batch(by, batch(raw), {}))
    return json.loads(row)


def cell(value: Any) -> Any:
    """A cell of a table, with maps as dictionaries."""
    return dict(value) if isinstance(value, list) and value and isinstance(value[0], tuple) else value


@pytest.mark.parametrize(
    ("format", "_", "schema", "payload", "kept", "replaced"),
    [
        pytest.param(format, *place, id=f"{format}-{place[0]}")
        for place in PLACES
        for format in ("parquet", "avro", "json", "csv")
        if format != "csv" or place[1]["type"] == "int32"  # CSV has no lists, maps and structs
    ],
)
@pytest.mark.parametrize("sides", [(), ("value",), ("key",)], ids=short_id)
def test_a_null_stays_null_unless_the_sink_wants_its_default(
    format: str, _: str, schema: Any, payload: Any, kept: Any, replaced: Any, sides: tuple[str, ...]
) -> None:
    by, right = conversion(format, sides), replaced if "value" in sides else kept
    if format == "json":
        assert line(by, message(schema, payload)) == {"id": 1, "v": right}
    else:
        (row,) = table(convert_batch(by, batch(message(schema, payload)), {}))
        assert cell(row["v"]) == right


@pytest.mark.parametrize("format", ["parquet", "json"])
@pytest.mark.parametrize(("sides", "right"), [((), None), (("value",), "2026-11-20")])
def test_a_whole_value_that_is_null_is_a_tombstone_or_its_default(
    format: str, sides: tuple[str, ...], right: Any
) -> None:
    raw = json.dumps(
        {"schema": {"type": "string", "optional": True, "default": "2026-11-20"}, "payload": None}
    ).encode()
    found = convert_batch(conversion(format, sides), batch(raw), {})
    assert (found.skipped, found.refused) == (int(right is None), {})
    if right is not None:
        assert table(found) == ([{"value": right}] if format == "parquet" else [b'"2026-11-20"'])


def test_maps_whose_keys_are_no_texts_keep_their_nulls_too() -> None:
    raw = message(PAIRS, [[1, None], [2, 0]])
    assert line(conversion("json", ()), raw)["v"] == [[1, None], [2, 0]]
    assert line(conversion("json", ("value",)), raw)["v"] == [[1, 7], [2, 0]]
    (row,) = table(convert_batch(conversion("parquet", ()), batch(raw), {}))
    assert row["v"] == [{"key": 1, "value": None}, {"key": 2, "value": 0}]


def test_a_missing_field_without_a_default_is_null_or_refuses_its_record() -> None:
    assert line(conversion("json", ()), message({"type": "int32", "optional": True}, MISSING)) == {"id": 1}
    found = convert_batch(conversion("parquet", ()), batch(message({"type": "int32"}, MISSING)), {})
    assert found.refused == {0: "the payload does not fit its schema: Object missing required field `v`"}


@pytest.mark.parametrize(("sides", "right"), [((), None), (("value",), 7), (("key",), None)])
def test_logical_types_follow_the_same_rule(sides: tuple[str, ...], right: Any) -> None:
    assert line(conversion("json", sides), message(DATE, None))["v"] == right
    assert line(conversion("json", sides), message(DATE, MISSING))["v"] == 7


@pytest.mark.parametrize("format", ["parquet", "avro", "json"])
@pytest.mark.parametrize(("sides", "key", "value"), [((), None, None), (("key",), 7, None), (("value",), None, 7)])
def test_an_envelope_has_keys_and_values_by_the_rule_of_their_side(
    format: str, sides: tuple[str, ...], key: Any, value: Any
) -> None:
    envelope = RecordEnvelope("flat", ("key", "value"), "orders")
    raw = message(SEVEN, None)
    (row,) = table(convert_batch(conversion(format, sides, envelope=envelope), batch(raw, keys=[raw]), {}))
    row = json.loads(row) if format == "json" else row
    assert (row["key"]["v"], row["value"]["v"]) == (key, value)


@pytest.mark.parametrize(("sides", "right"), [((), None), (("key",), 7)])
def test_a_sidecar_of_keys_follows_the_rule_of_keys(sides: tuple[str, ...], right: Any) -> None:
    raw = message(SEVEN, None)
    found = convert_batch(conversion("parquet", sides, keys="json"), batch(raw, keys=[raw]), {})
    (key,) = found.parts[0].streams["keys"].to_pylist()
    assert json.loads(key)["v"] == right


# JSON Schema

OPTIONAL = {"type": ["integer", "null"], "default": 7}
JSON_PLACES: list[tuple[str, Any, Any, Any, Any]] = [
    ("null", OPTIONAL, None, None, 7),
    ("missing", OPTIONAL, MISSING, 7, 7),
    ("present", OPTIONAL, 0, 0, 0),
    ("null of a type without null", {"type": "integer", "default": 7}, None, None, 7),
    ("in a list", {"type": "array", "items": OPTIONAL}, [None, 1], [None, 1], [7, 1]),
    (
        "in a list of a type without null",
        {"type": "array", "items": {"type": "integer", "default": 9}},
        [None],
        [9],
        [9],
    ),
    ("in a map", {"type": "object", "additionalProperties": OPTIONAL}, {"k": None}, {"k": None}, {"k": 7}),
    ("null in an object", {"properties": {"a": OPTIONAL}}, {"a": None}, {"a": None}, {"a": 7}),
    ("missing in an object", {"properties": {"a": OPTIONAL}}, {}, {"a": 7}, {"a": 7}),
    ("in a reference", {"$ref": "#/definitions/seven"}, MISSING, 7, 7),
    ("in one of several", {"oneOf": [{"type": "null"}, {"type": "integer"}], "default": 7}, None, None, 7),
]
JSON_IDS = [place for place, *_ in JSON_PLACES]


@pytest.mark.parametrize(("_", "schema", "value", "kept", "replaced"), JSON_PLACES, ids=JSON_IDS)
@pytest.mark.parametrize("format", ["parquet", "avro", "json"])
@pytest.mark.parametrize("sides", [(), ("value",)], ids=short_id)
def test_a_value_with_a_json_schema_is_the_same_in_columns_and_in_lines(
    registry: SchemaRegistry,
    _: str,
    schema: Any,
    value: Any,
    kept: Any,
    replaced: Any,
    format: str,
    sides: tuple[str, ...],
) -> None:
    whole = {"properties": {"id": {"type": "integer"}, "v": schema}, "definitions": {"seven": OPTIONAL}}
    raw = json.dumps({"id": 1} | ({} if value is MISSING else {"v": value})).encode()
    by = Conversion("string", "json_schema", format, "skip", registry=registry.connection, null_to_default=sides)
    (row,) = table(convert_batch(by, batch(framed(registry.add(whole, "JSON"), raw)), {}))
    row = json.loads(row) if format == "json" else row
    assert cell(row.get("v")) == (replaced if sides else kept)


def test_a_line_keeps_what_the_schema_does_not_name_next_to_an_added_default(registry: SchemaRegistry) -> None:
    number = registry.add({"properties": {"level": {"type": "integer", "default": 7}}}, "JSON")
    by = Conversion("string", "json_schema", "json", "skip", registry=registry.connection)
    (row,) = table(convert_batch(by, batch(framed(number, b'{"ts": 1745495247914, "price": 1.10}')), {}))
    assert row == b'{"ts":1745495247914,"price":1.10,"level":7}'


@pytest.mark.parametrize("raw", [b'{"a": 1.10, "b": null, "level": 1}', b'{"level": null}', b"[ 1 ]", b"7"])
def test_a_line_that_lacks_nothing_is_what_the_producer_wrote(registry: SchemaRegistry, raw: bytes) -> None:
    number = registry.add({"properties": {"level": {"type": ["integer", "null"], "default": 7}}}, "JSON")
    by = Conversion("string", "json_schema", "json", "skip", registry=registry.connection)
    assert table(convert_batch(by, batch(framed(number, raw)), {})) == [raw]


@pytest.mark.parametrize("format", ["json", "parquet"])
def test_null_in_an_envelope_is_no_value(format: str) -> None:
    found = convert_batch(conversion(format, ()), batch(b'{"schema": null, "payload": null}'), {})
    assert (found.parts, found.skipped, found.refused) == ((), 1, {})


def test_null_without_an_envelope_is_json_which_no_table_holds() -> None:
    assert table(convert_batch(conversion("json", ()), batch(b"null"), {})) == [b"null"]
    refused = convert_batch(conversion("parquet", ()), batch(b"null"), {}).refused
    assert refused == {
        0: "the value is not a JSON object, which a table needs: use format json, or wrap it by HoistField$Value"
    }
