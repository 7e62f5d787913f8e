"""JSON Schema with a registry: the columns that Confluent's converter gives, and what it has none for."""

import json
from typing import Any

import pytest

from s3lake.records.convert.conversion import Conversion
from s3lake.records.convert.convert_batch import ConvertedBatch, convert_batch
from s3lake.records.schema.columns.types import fields_of
from s3lake_tests.conftest import short_id
from s3lake_tests.records.convert.batches import batch, table
from s3lake_tests.records.schema.registry.server import SchemaRegistry, framed

DRAFT = {
    4: "http://json-schema.org/draft-04/schema#",
    7: "http://json-schema.org/draft-07/schema#",
    2020: "https://json-schema.org/draft/2020-12/schema",
}
OBJECT = {"type": "object", "properties": {"n": {"type": "integer"}}}
DECIMAL = {
    "type": "number",
    "title": "org.apache.kafka.connect.data.Decimal",
    "connect.type": "bytes",
    "connect.parameters": {"scale": "2"},
}


def logical(name: str, bits: int) -> dict[str, Any]:
    return {"type": "integer", "title": f"org.apache.kafka.connect.data.{name}", "connect.type": f"int{bits}"}


def converted(
    registry: SchemaRegistry, schema: Any, *values: Any, format: str = "parquet", **more: Any
) -> ConvertedBatch:
    number = registry.add(schema, "JSON", **more)
    conversion = Conversion("string", "json_schema", format, "skip", registry=registry.connection)
    return convert_batch(conversion, batch(*[framed(number, json.dumps(value).encode()) for value in values]), {})


def column(registry: SchemaRegistry, schema: Any, *values: Any, **top: Any) -> tuple[str, list[Any]]:
    """The type of a property `c` of that schema, and its values."""
    found = converted(
        registry, {"type": "object", "properties": {"c": schema}, **top}, *({"c": value} for value in values)
    )
    assert found.refused == {}
    (part,) = found.parts
    return str(found.seen["c"]), [row["c"] for row in part.streams["data"].to_pylist()]


TYPES = [
    ({"type": "integer", "connect.type": "int8"}, 7, "int32", 7),
    ({"type": "integer", "connect.type": "int16"}, 7, "int32", 7),
    ({"type": "integer"}, 5.0, "int64", 5),
    ({"type": "integer", "connect.type": "int8"}, -1e2, "int32", -100),
    ({"type": ["integer", "null"]}, 0.0, "int64", 0),
    ({"type": "array", "items": {"type": "integer"}}, [1.0, 2], "list<int64>", [1, 2]),
    ({"type": "object", "additionalProperties": {"type": "integer"}}, {"a": 1.0}, "map<string, int64>", [("a", 1)]),
    ({"type": "number"}, 5, "double", 5.0),
    ({"type": "number", "connect.type": "float64"}, 0.5, "double", 0.5),
    ({"type": "string", "format": "date-time"}, "2026-11-20T08:15:00Z", "string", "2026-11-20T08:15:00Z"),
    ({"type": "string", "format": "date"}, "2026-11-20", "string", "2026-11-20"),
    ({"type": "string", "enum": ["a", None]}, "a", "string", "a"),
    ({"enum": [1, 2]}, 2, "int64", 2),
    ({"const": "x"}, "x", "string", "x"),
    (DECIMAL, "BNI=", "decimal(38,2)", "12.34"),
    (logical("Time", 32), 1000, "time", "00:00:01"),
    (
        {
            "type": "array",
            "connect.type": "map",
            "items": {"properties": {"key": {"type": "integer"}, "value": {"type": "string"}}},
        },
        [{"key": 1, "value": "a"}],
        "list<struct<key: int64, value: string>>",
        [{"key": 1, "value": "a"}],
    ),
    ({"anyOf": [{"type": "string"}, {"type": "null"}]}, None, "string", None),
    ({"type": ["null", "string"]}, None, "string", None),
    ({"oneOf": [{"type": "null"}, {"type": "array", "items": {"type": "string"}}]}, ["a"], "list<string>", ["a"]),
    ({"oneOf": [{"type": "null", "title": "Not included"}, {"type": "string"}]}, "a", "string", "a"),
    ({"oneOf": [{"type": "null", "description": "none"}, OBJECT]}, {"n": 1}, "struct<n: int64>", {"n": 1}),
    ({"anyOf": [{"type": "integer"}, {"type": ["null"], "default": None}]}, 5, "int64", 5),
    ({"anyOf": [{"type": "integer"}, {"const": None}]}, 5, "int64", 5),
    ({"anyOf": [{"enum": [None]}, {"type": "integer"}]}, None, "int64", None),
    ({"anyOf": [{"$ref": "#/properties/c/no"}, {"type": "integer"}], "no": {"type": "null"}}, 5, "int64", 5),
    ({"allOf": [{"type": "string"}, {"maxLength": 5}]}, "a", "string", "a"),
    ({}, {"a": [1, 0.5]}, "string", '{"a":[1,0.5]}'),
    (True, "x", "string", '"x"'),
    ({"type": "object"}, {"a": 1}, "string", '{"a":1}'),
    ({"oneOf": [{"type": "string"}, OBJECT]}, "x", "string", '"x"'),
    ({"oneOf": [{"type": "string"}, OBJECT]}, {"n": 1}, "string", '{"n":1}'),
    ({"type": "array", "prefixItems": [{"type": "string"}]}, ["a", 1], "string", '["a",1]'),
    ({"type": "array", "items": [{"type": "string"}]}, ["a", 1], "string", '["a",1]'),
]


@pytest.mark.parametrize(("schema", "value", "type", "cell"), TYPES, ids=lambda value: short_id(value, 30))
def test_a_type_has_the_column_that_confluent_gives_it(
    registry: SchemaRegistry, schema: Any, value: Any, type: str, cell: Any
) -> None:
    found, (written,) = column(registry, schema, value)
    assert (found, written if isinstance(cell, type_of_plain) else str(written)) == (type, cell)


type_of_plain = (bool, int, float, bytes, list, dict, type(None))


def test_properties_are_in_the_order_of_their_index(registry: SchemaRegistry) -> None:
    properties = {"b": {"type": "string", "connect.index": 1}, "a": {"type": "string", "connect.index": 0}}
    found = converted(registry, {"type": "object", "properties": properties}, {"a": "x", "b": "y"})
    assert list(found.seen) == ["a", "b"]


def test_an_optional_property_may_be_null_or_gets_its_default(registry: SchemaRegistry) -> None:
    schema = {
        "type": "object",
        "title": "com.acme.Order",
        "properties": {"id": {"type": "integer"}, "note": {"type": "string"}, "n": {"type": "integer", "default": 7}},
        "required": ["id"],
    }
    found = converted(registry, schema, {"id": 1}, {"id": 2, "note": None, "n": 3}, {"note": "x"}, {"id": None})
    (part,) = found.parts
    assert part.streams["data"].to_pylist() == [{"id": 1, "note": None, "n": 7}, {"id": 2, "note": None, "n": 3}]
    assert [field.nullable for field in part.streams["data"].schema] == [False, True, True]
    assert part.names.to_pylist() == ["com.acme.Order"] * 2
    assert "missing required field `id`" in found.refused[2]
    assert "Expected `int`, got `null` - at `$.id`" in found.refused[3]


def test_a_property_that_the_schema_does_not_name_is_left_out_and_counted(registry: SchemaRegistry) -> None:
    inner = {"type": "object", "properties": {"x": {"type": "integer"}}}
    schema = {"type": "object", "properties": {"to": inner, "l": {"type": "array", "items": inner}}}
    value = {"to": {"x": 1, "y": 2}, "l": [{"x": 1, "z": 0}, {"z": 1}], "more": 1.10, "null": None}
    found = converted(registry, schema, value, {"to": {"x": 5}})
    (part,) = found.parts
    assert part.streams["data"].to_pylist()[0] == {"to": {"x": 1}, "l": [{"x": 1}, {"x": None}]}
    assert (found.refused, found.fields_left_out) == ({}, {"to.y": 1, "l[].z": 1, "more": 1})


@pytest.mark.parametrize("value", [1.5, 1e30, "1.0"])
def test_a_value_that_is_not_an_integer_is_refused_for_an_integer_property(
    registry: SchemaRegistry, value: Any
) -> None:
    found = converted(registry, {"properties": {"n": {"type": "integer"}}}, {"n": value}, {"n": 1})
    assert list(found.refused) == [0]
    assert "`int" in found.refused[0]


def test_an_exponent_without_end_is_refused_for_an_integer(registry: SchemaRegistry) -> None:
    number = registry.add({"properties": {"n": {"type": "integer"}}}, "JSON")
    conversion = Conversion("string", "json_schema", "parquet", "skip", registry=registry.connection)
    found = convert_batch(conversion, batch(framed(number, b'{"n":1e999999999}'), framed(number, b'{"n":1e2}')), {})
    assert list(found.refused) == [0]
    assert [row["n"] for row in found.parts[0].streams["data"].to_pylist()] == [100]


def test_a_property_that_the_schema_forbids_refuses_its_record(registry: SchemaRegistry) -> None:
    schema = {"type": "object", "properties": {"x": {"type": "integer"}}, "additionalProperties": False}
    found = converted(registry, schema, {"x": 1, "y": 2})
    assert "Object contains unknown field `y`" in found.refused[0]


@pytest.mark.parametrize("draft", DRAFT)
def test_references_lead_within_the_schema_and_to_others(registry: SchemaRegistry, draft: int) -> None:
    word, definitions = ("id", "definitions") if draft == 4 else ("$id", "$defs" if draft == 2020 else "definitions")
    registry.add(
        {word: "http://acme.com/money.json", definitions: {"cents": {"type": "integer"}}, "type": "number"},
        "JSON",
        "money-value",
    )
    schema = {
        "$schema": DRAFT[draft],
        word: "http://acme.com/order.json",
        "type": "object",
        definitions: {"a b": {"type": "object", "properties": {"zip": {"type": "string"}}}},
        "properties": {
            "to": {"$ref": f"#/{definitions}/a%20b"},
            "price": {"$ref": "money.json"},
            "cents": {"$ref": f"http://acme.com/money.json#/{definitions}/cents"},
        },
    }
    found = converted(
        registry, schema, {"to": {"zip": "z"}, "price": 1, "cents": 5}, refers=[("money.json", "money-value")]
    )
    assert found.refused == {}
    assert {name: str(type) for name, type in found.seen.items()} == {
        "to": "struct<zip: string>",
        "price": "double",
        "cents": "int64",
    }


def test_an_anchor_and_what_all_of_adds(registry: SchemaRegistry) -> None:
    schema = {
        "$schema": DRAFT[2020],
        "$defs": {"base": {"$anchor": "base", "properties": {"id": {"type": "integer"}}, "required": ["id"]}},
        "allOf": [{"$ref": "#base"}, {"properties": {"n": {"type": "string"}}}],
        "type": "object",
    }
    found = converted(registry, schema, {"id": 1, "n": "x"}, {"n": "x"})
    assert [str(type) for type in found.seen.values()] == ["int64", "string"]
    assert list(found.refused) == [1]


BASE = {
    "type": "object",
    "properties": {"id": {"$ref": "#/definitions/id"}, "to": {"$ref": "#/definitions/to"}},
    "definitions": {
        "id": {"type": "integer"},
        "to": {"type": "object", "properties": {"zip": {"$ref": "#/definitions/id"}}},
    },
}
"""A document whose references are relative to itself."""


def foreign_columns(registry: SchemaRegistry, schema: Any, value: Any, base: Any = BASE) -> dict[str, str]:
    """The types of the columns of a schema that may refer to `base.json`; the value lands in them."""
    registry.add(base, "JSON", "base-value")
    found = converted(registry, schema, value, refers=[("base.json", "base-value")])
    assert (found.refused, found.fields_left_out) == ({}, {})
    return {name: str(type) for name, type in found.seen.items()}


OWN_ID = {"id": {"type": "string"}}


@pytest.mark.parametrize(
    "schema",
    [
        {"allOf": [{"$ref": "base.json"}]},
        {"allOf": [{"$ref": "base.json"}], "definitions": OWN_ID},
        {"allOf": [{"allOf": [{"$ref": "base.json#"}]}], "definitions": OWN_ID},
        {"anyOf": [{"$ref": "base.json"}], "definitions": OWN_ID},
        {"$schema": DRAFT[2020], "$ref": "base.json", "required": ["id"], "definitions": OWN_ID},
    ],
)
def test_a_reference_in_another_document_leads_within_that_document(registry: SchemaRegistry, schema: Any) -> None:
    columns = foreign_columns(registry, schema, {"id": 1, "to": {"zip": 2}})
    assert columns == {"id": "int64", "to": "struct<zip: int64>"}


def test_a_reference_after_one_to_another_document_leads_within_its_own(registry: SchemaRegistry) -> None:
    own = {"properties": {"name": {"$ref": "#/definitions/id"}}}
    schema = {"allOf": [{"$ref": "base.json"}, {"$ref": "#/definitions/own"}], "definitions": {**OWN_ID, "own": own}}
    assert foreign_columns(registry, schema, {"id": 1, "name": "x"})["name"] == "string"


def test_a_pointer_leads_into_a_list(registry: SchemaRegistry) -> None:
    schema = {"properties": {"a": {"$ref": "#/oneOf/1"}}, "oneOf": [{"type": "string"}, {"type": "integer"}]}
    assert foreign_columns(registry, schema, {"a": 1}) == {"a": "int64"}


@pytest.mark.parametrize(
    ("first", "second", "value", "type"),
    [
        ({"type": "integer"}, {"minimum": 3}, 3, "int64"),
        ({"type": "integer"}, {"description": "a number"}, 3, "int64"),
        ({"$ref": "#/definitions/n"}, {"maximum": 9}, 3, "int64"),
        ({"type": "number"}, {"type": "integer"}, 3, "int64"),
        ({"type": "integer"}, {"type": "number"}, 3, "int64"),
        ({"type": ["null", "integer"]}, {"type": ["integer", "string", "null"]}, None, "int64"),
        ({"type": "string"}, {"const": "x"}, "x", "string"),
        (
            {"type": "object", "properties": {"x": {"type": "integer"}}},
            {"required": ["x"]},
            {"x": 1},
            "struct<x: int64>",
        ),
        (
            {"type": "object", "properties": {"x": {"type": "integer"}}},
            {"type": "object", "properties": {"y": {"type": "string"}}},
            {"x": 1, "y": "z"},
            "struct<x: int64, y: string>",
        ),
        ({"type": "array", "items": {"type": "integer"}}, {"minItems": 1}, [1], "list<int64>"),
        (
            {"type": "array", "items": {"properties": {"x": {"type": "integer"}}}},
            {"type": "array", "items": {"properties": {"y": {"type": "integer"}}}},
            [{"x": 1, "y": 2}],
            "list<struct<x: int64, y: int64>>",
        ),
        (
            {"type": "object", "additionalProperties": {"type": "integer"}},
            {"minProperties": 1},
            {"k": 1},
            "map<string, int64>",
        ),
    ],
)
def test_two_parts_of_all_of_that_describe_a_property_count_together(
    registry: SchemaRegistry, first: Any, second: Any, value: Any, type: str
) -> None:
    parts = [{"properties": {"a": first}}, {"properties": {"a": second}}]
    schema = {"allOf": parts, "definitions": {"n": {"type": "integer"}}}
    for order in (schema, {**schema, "allOf": parts[::-1]}, {**schema, **parts[1], "allOf": parts[:1]}):
        found = converted(registry, order, {"a": value})
        assert (found.refused, found.fields_left_out) == ({}, {})
        assert sorted(str(found.seen["a"])) == sorted(type)  # fields are in the order of the parts


def test_a_property_of_two_parts_that_nests_in_itself_is_the_text_of_its_json(registry: SchemaRegistry) -> None:
    node = {"allOf": [{"properties": {"next": {"$ref": "#"}}}, {"properties": {"next": {"description": "the next"}}}]}
    found = converted(registry, node, {"next": {"next": None}})
    assert found.parts[0].streams["data"].to_pylist() == [{"next": '{"next":null}'}]


@pytest.mark.parametrize(("draft", "left_out"), [(7, {"b": 1}), (2020, {})])
def test_words_next_to_a_reference_count_since_2019(
    registry: SchemaRegistry, draft: int, left_out: dict[str, int]
) -> None:
    definitions = {"base": {"type": "object", "properties": {"a": {"type": "integer"}}}}
    schema = {
        "$schema": DRAFT[draft],
        "$ref": "#/definitions/base",
        "properties": {"b": {"type": "string"}},
        "definitions": definitions,
    }
    assert converted(registry, schema, {"a": 1, "b": "x"}).fields_left_out == left_out


MISFITS = [
    ({"type": "integer"}, "x"),
    ({"type": "integer"}, 1.5),
    ({"type": "integer", "connect.type": "int32"}, 2**31),
    ({"type": "integer"}, True),
    ({"type": "number"}, ""),
    ({"type": "boolean"}, "true"),
    ({"type": "string"}, False),
    ({"type": "array", "items": {"type": "integer"}}, ""),
    ({"type": "array", "items": {"type": "integer"}}, ["x"]),
    ({"type": "object", "properties": {"x": {"type": "integer"}}}, []),
    ({"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}, {}),
    ({"type": "object", "additionalProperties": {"type": "integer"}}, {"k": "x"}),
    ({"type": "string", "connect.type": "bytes"}, "?"),
]


@pytest.mark.parametrize(("described", "default"), MISFITS)
def test_a_default_that_no_value_of_its_schema_can_be_is_none(
    registry: SchemaRegistry, described: dict[str, Any], default: Any
) -> None:
    schema = {"properties": {"id": {"type": "integer"}, "a": {**described, "default": default}}}
    in_columns, in_lines = (converted(registry, schema, {"id": 1}, format=format) for format in ("parquet", "json"))
    assert in_columns.refused == in_lines.refused == {}
    assert in_columns.parts[0].streams["data"].to_pylist() == [{"id": 1, "a": None}]
    assert in_lines.parts[0].streams["data"].to_pylist() == [b'{"id": 1}']


@pytest.mark.parametrize(("described", "default"), MISFITS)
def test_only_records_that_lack_a_required_property_are_refused_for_its_misfit_of_a_default(
    registry: SchemaRegistry, described: dict[str, Any], default: Any
) -> None:
    schema = {"properties": {"id": {"type": "integer"}, "a": {**described, "default": default}}, "required": ["a"]}
    found = converted(registry, schema, {"id": 1})
    assert "missing required field `a`" in found.refused[0]


@pytest.mark.parametrize(
    ("described", "default", "cell"),
    [
        ({"type": "integer"}, 7.0, 7),
        ({"type": "array", "items": {"type": "integer"}}, [1.0], [1]),
        ({"properties": {"x": {}}}, {"x": [1]}, {"x": "[1]"}),
        ({"type": "number"}, 0.1, 0.1),
        ({}, 5, "5"),
        ({"type": ["string", "integer"]}, "x", '"x"'),
        ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, 1, "1"),
        ({"type": "object"}, {"k": 1}, '{"k":1}'),
        ({"type": "array"}, [1, "x"], '[1,"x"]'),
        ({"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "integer"}}, ["x", 1], '["x",1]'),
    ],
)
def test_a_default_is_read_as_a_value_is(registry: SchemaRegistry, described: Any, default: Any, cell: Any) -> None:
    schema = {"properties": {"id": {"type": "integer"}, "a": {**described, "default": default}}}
    found = converted(registry, schema, {"id": 1})
    assert [row["a"] for row in found.parts[0].streams["data"].to_pylist()] == [cell]


def test_a_recursive_property_becomes_the_text_of_its_json(registry: SchemaRegistry) -> None:
    schema = {
        "type": "object",
        "properties": {"id": {"type": "integer"}, "children": {"type": "array", "items": {"$ref": "#"}}},
    }
    found = converted(registry, schema, {"id": 1, "children": [{"id": 2, "children": []}]})
    (part,) = found.parts
    assert part.streams["data"].to_pylist() == [{"id": 1, "children": ['{"id":2,"children":[]}']}]


@pytest.mark.parametrize(
    ("schema", "kind", "reason"),
    [
        ({"properties": {"a": {"$ref": "other.json"}}}, "JSON", "refers to 'other.json', which neither the schema"),
        ({"properties": {"a": {"$ref": "#/nowhere"}}}, "JSON", "refers to '#/nowhere'"),
        ("{", "JSON", "the schema is not JSON"),
        ("5", "JSON", "the schema is not a JSON Schema"),
        ('{"type":"string","enum":1}', "JSON", "a keyword of it holds what it cannot hold"),
        ('{"allOf":[{"$ref":"#"}]}', "JSON", "it is nested too deeply, or refers to itself without end"),
        ({"type": "record", "name": "R", "fields": []}, "", "it is a schema of AVRO, not of JSON: set the converter"),
    ],
)
def test_a_schema_that_is_none_refuses_its_records(
    registry: SchemaRegistry, schema: Any, kind: str, reason: str
) -> None:
    number = registry.add(schema, kind)
    conversion = Conversion("string", "json_schema", "parquet", "skip", registry=registry.connection)
    found = convert_batch(conversion, batch(framed(number, b"{}")), {})
    assert reason in found.refused[0]
    assert found.refused[0].startswith(f"schema id {number}: ")


def test_a_property_that_a_pattern_may_allow_is_left_out_and_counted(registry: SchemaRegistry) -> None:
    patterns = {"patternProperties": {"^x_": {"type": "string"}}, "additionalProperties": False}
    found = converted(
        registry, {"type": "object", "properties": {"a": {"type": "integer"}}, **patterns}, {"a": 1, "x_b": "s"}
    )
    assert [part.streams["data"].to_pylist() for part in found.parts] == [[{"a": 1}]]
    assert (found.refused, found.fields_left_out) == ({}, {"x_b": 1})


def test_an_empty_schema_leaves_columns_to_be_found(registry: SchemaRegistry) -> None:
    found = converted(registry, {"type": "object"}, {"a": 1}, {"a": 0.5})
    assert (list(found.columns), fields_of(found.seen.get("a"))) == (["a"], {})


def test_a_value_that_is_no_object_is_a_column_of_its_own(registry: SchemaRegistry) -> None:
    found = converted(registry, {"type": "integer"}, 5)
    assert found.parts[0].streams["data"].to_pylist() == [{"value": 5}]


def test_null_is_no_value(registry: SchemaRegistry) -> None:
    found = converted(registry, {"oneOf": [{"type": "null"}, {"properties": {"a": {"type": "string"}}}]}, None)
    assert (found.parts, found.skipped, found.refused) == ((), 1, {})


@pytest.mark.parametrize("has_registry", [True, False])
def test_lines_are_what_the_producer_wrote(registry: SchemaRegistry, has_registry: bool) -> None:
    number = registry.add({"properties": {"a": {"type": "integer"}}}, "JSON")
    connection = registry.connection if has_registry else None
    conversion = Conversion("string", "json_schema", "json", "skip", registry=connection)
    found = convert_batch(conversion, batch(framed(number, b'{"a": 1.10, "b": null}')), {})
    assert found.parts[0].streams["data"].to_pylist() == [b'{"a": 1.10, "b": null}']


def test_lines_without_a_registry_ask_no_server(registry: SchemaRegistry) -> None:
    registry.asked.clear()
    found = convert_batch(Conversion("string", "json_schema", "json", "skip"), batch(framed(99, b'{"a": 1}')), {})
    assert (table(found), registry.asked) == ([b'{"a": 1}'], [])


def test_columns_are_found_in_the_data_when_there_is_no_registry() -> None:
    found = convert_batch(Conversion("string", "json_schema", "parquet", "skip"), batch(framed(1, b'{"a":1}')), {})
    assert found.parts[0].streams["data"].to_pylist() == [{"a": 1}]
