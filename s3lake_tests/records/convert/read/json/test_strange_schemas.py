"""Schemas of Connect and JSON Schemas that strangers wrote: each lands or refuses its own records, and ends no run."""

import json
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from s3lake.records.convert.conversion import Conversion
from s3lake.records.convert.convert_batch import ConvertedBatch, convert_batch
from s3lake_tests.records.convert.batches import batch, table
from s3lake_tests.records.schema.registry.server import SchemaRegistry, framed, serving

HALF = "\ud800"


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    with serving() as found:
        yield found


def convert(registry: SchemaRegistry, format: str, number: int, *values: Any) -> ConvertedBatch:
    by = Conversion("string", "json_schema", format, "skip", registry=registry.connection)
    return convert_batch(by, batch(*[framed(number, json.dumps(value).encode()) for value in values]), {})


@pytest.mark.parametrize("format", ["parquet", "avro", "json"])
def test_half_a_character_in_a_description_is_replaced(registry: SchemaRegistry, format: str) -> None:
    schema = {"description": HALF, "properties": {"a": {"type": "integer", "description": f"{HALF} \U0001f600"}}}
    found = convert(registry, format, registry.add(json.dumps(schema), "JSON"), {"a": 7})
    assert found.refused == {}
    assert table(found) == ([b'{"a": 7}'] if format == "json" else [{"a": 7}])


CYCLES: dict[str, Any] = {
    "itself": {"$ref": "#"},
    "a property": {"properties": {"a": {"type": "integer"}, "b": {"$ref": "#"}}},
    "items": {"type": "array", "items": {"$ref": "#"}},
    "two": {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
    "allOf": {"allOf": [{"$ref": "#"}]},
    "allOf of two": {"$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}},
                     "allOf": [{"$ref": "#/$defs/a"}]},
    "oneOf": {"oneOf": [{"$ref": "#"}, {"type": "null"}]},
    "a map": {"additionalProperties": {"$ref": "#"}},
    "doubling": {
        "$defs": {f"d{n}": {"properties": {side: {"$ref": f"#/$defs/d{n + 1}"} for side in "lr"}} for n in range(40)},
        "$ref": "#/$defs/d0",
    },
}  # fmt: skip
VALUE = {"a": 7, "b": {"a": 8, "b": None}}


@pytest.mark.parametrize("format", ["parquet", "json"])
@pytest.mark.parametrize("cycle", CYCLES)
def test_a_reference_in_a_circle_ends(registry: SchemaRegistry, format: str, cycle: str) -> None:
    number = registry.add(CYCLES[cycle], "JSON")
    found = convert(registry, format, number, VALUE)
    assert len(found.refused) + sum(len(part.streams["data"]) for part in found.parts) == 1
    assert all(f"schema id {number}: " in reason for reason in found.refused.values())


@pytest.mark.parametrize("format", ["parquet", "json"])
def test_registered_schemas_that_refer_to_each_other_are_refused(registry: SchemaRegistry, format: str) -> None:
    registry.add({"$ref": "b.json"}, "JSON", subject="a", refers=[("b.json", "b")])
    registry.add({"$ref": "a.json"}, "JSON", subject="b", refers=[("a.json", "a")])
    number = registry.add({"$ref": "a.json"}, "JSON", refers=[("a.json", "a")])
    found = convert(registry, format, number, VALUE)
    assert found.refused == {0: f"schema id {number}: its reference 'a.json' refers to itself"}


@pytest.mark.parametrize("format", ["parquet", "json"])
def test_a_chain_of_1200_references_refuses_its_records_alone(registry: SchemaRegistry, format: str) -> None:
    definitions = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(1_200)}
    long = registry.add({"$ref": "#/$defs/d0", "$defs": {**definitions, "d1200": {"type": "integer"}}}, "JSON")
    good = registry.add({"properties": {"a": {"type": "integer"}}}, "JSON")
    by = Conversion("string", "json_schema", format, "skip", registry=registry.connection)
    found = convert_batch(by, batch(framed(good, b'{"a":7}'), framed(long, b"7"), framed(good, b'{"a":7}')), {})
    assert 0 not in found.refused
    assert 2 not in found.refused
    assert sum(len(part.streams["data"]) for part in found.parts) + len(found.refused) == 3


# Schemas with one wrong part

CONNECT = {
    "type": "struct",
    "name": "shop.Order",
    "version": 1,
    "optional": False,
    "fields": [
        {"field": "a", "type": "int32", "optional": True, "default": 7, "doc": "d"},
        {"field": "d", "type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "2"}},
        {"field": "l", "type": "array", "items": {"type": "string", "optional": True}},
        {"field": "m", "type": "map", "keys": {"type": "int32"}, "values": {"type": "float", "default": 0.5}},
    ],
}
PAYLOAD = {"a": 1, "d": "BNI=", "l": ["x", None], "m": [[1, 0.5]]}
JSON_SCHEMA = {
    "$id": "https://example.com/order",
    "title": "shop.Order",
    "required": ["a"],
    "properties": {
        "a": {"type": ["integer", "null"], "default": 7, "connect.type": "int32", "connect.index": 1},
        "d": {"type": "number", "title": "org.apache.kafka.connect.data.Decimal", "connect.type": "bytes",
              "connect.parameters": {"scale": "2"}},
        "l": {"type": "array", "items": {"$ref": "#/definitions/x"}},
        "m": {"type": "object", "additionalProperties": {"oneOf": [{"type": "null"}, {"enum": [1, 2]}]}},
        "o": {"allOf": [{"properties": {"p": {"const": "x"}}}], "anyOf": [{"type": "string"}]},
    },
    "definitions": {"x": {"type": "string", "$anchor": "x"}},
}  # fmt: skip
STRANGE: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    2**70,
    0.5,
    "",
    "struct",
    "#",
    "//[",
    HALF,
    [],
    {},
    [[]],
    {"": {}},
    {"$ref": 5},
    "9" * 5_000,
)
"""What replaces a part."""


def change_one(random: Random, schema: Any) -> Any:
    """Return a schema with one part that is another one, or missing."""
    changed = json.loads(json.dumps(schema))
    places: list[tuple[Any, Any]] = []
    waiting = [changed]
    while waiting:
        holder = waiting.pop()
        for at in range(len(holder)) if isinstance(holder, list) else holder:
            places.append((holder, at))
            if isinstance(holder[at], dict | list):
                waiting.append(holder[at])
    holder, at = random.choice(places)
    if random.random() < 0.2:
        del holder[at]
    else:
        holder[at] = random.choice((*STRANGE, schema))
    return changed


@pytest.mark.parametrize("format", ["parquet", "json"])
def test_a_schema_of_connect_with_a_wrong_part_refuses_its_record_or_lands(format: str) -> None:
    random, by = Random(42), Conversion("string", "connect_json", format, "write")
    outcomes = set()
    for _ in range(500):
        schema = change_one(random, CONNECT)
        found = convert_batch(by, batch(json.dumps({"schema": schema, "payload": PAYLOAD}).encode()), {})
        assert len(found.refused) + sum(len(part.streams["data"]) for part in found.parts) == 1, schema
        outcomes.add(bool(found.refused))
    assert outcomes == {True, False}


@pytest.mark.parametrize("format", ["parquet", "json"])
def test_a_json_schema_with_a_wrong_part_refuses_its_record_or_lands(registry: SchemaRegistry, format: str) -> None:
    random, outcomes = Random(42), set()
    for _ in range(400):
        schema = change_one(random, JSON_SCHEMA)
        number = registry.add(json.dumps(schema), "JSON")
        found = convert(registry, format, number, {"a": 1, "d": 1.5, "l": ["x"], "m": {"k": 1}, "o": {"p": "x"}})
        assert len(found.refused) + sum(len(part.streams["data"]) for part in found.parts) == 1, schema
        outcomes.add(bool(found.refused))
    assert outcomes == {True, False}
