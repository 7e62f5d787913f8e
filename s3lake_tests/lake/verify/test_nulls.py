"""Null, missing and default in landed files: verify tells the three apart, by the rule that the files have."""

import dataclasses
import json
from typing import Any

import pyarrow as pa
import pytest

from s3lake.records.convert.read import keys_and_values
from s3lake.records.convert.read.converters import CONVERTERS, ConverterRequest
from s3lake.records.convert.read.value_checks import Refusals
from s3lake_tests.conftest import short_id
from s3lake_tests.lake.verify.staged_records import require_agreement, stage_records
from s3lake_tests.lake.verify.world import build_registered_topic
from s3lake_tests.records.schema.registry.server import SchemaRegistry, framed

INNER = {"type": "struct", "fields": [{"field": "a", "type": "string", "optional": True, "default": "x"}]}
CONNECT = {
    "type": "struct",
    "fields": [
        {"field": "id", "type": "int32"},
        {"field": "n", "type": "int32", "optional": True, "default": 7},
        {"field": "must", "type": "int32", "default": 9},
        {"field": "in", "optional": True, **INNER},
        {"field": "list", "type": "array", "items": INNER, "optional": True},
        {
            "field": "map",
            "type": "map",
            "keys": {"type": "int32"},
            "values": {"type": "int32", "default": 1},
            "optional": True,
        },
    ],
}
NULLABLE = {"type": ["integer", "null"], "default": 7}
JSON_SCHEMA = {
    "required": ["id", "must"],
    "properties": {
        "id": {"type": "integer"},
        "n": NULLABLE,
        "must": {"type": "integer", "default": 9},
        "in": {"oneOf": [{"type": "null"}, {"$ref": "#/$defs/in"}]},
        "list": {"type": "array", "items": {"$ref": "#/$defs/in"}},
        "more": {"allOf": [{"$ref": "#/$defs/in"}, {"properties": {"b": NULLABLE}}]},
    },
    "$defs": {"in": {"type": "object", "properties": {"a": {"type": "string", "default": "x"}}}},
}
VALUES: list[dict[str, Any]] = [
    {"id": 1, "n": None, "must": None, "in": None},
    {"id": 2, "n": 0, "must": 0, "in": {"a": None}, "list": [{}, {"a": None}, {"a": "y"}]},
    {"id": 3, "must": 1, "in": {}, "list": []},
]
SIDES = [(), ("value",), ("key", "value")]


def raws(converter: str, registry: SchemaRegistry) -> list[bytes]:
    if converter == "json_schema":
        number = registry.add(JSON_SCHEMA, "JSON")
        return [framed(number, json.dumps({**value, "more": {"b": None}}).encode()) for value in VALUES]
    return [
        json.dumps({"schema": CONNECT, "payload": {**value, "map": [[1, None], [2, 0]]}}).encode() for value in VALUES
    ]


@pytest.mark.parametrize("converter", ["connect_json", "json_schema"])
@pytest.mark.parametrize("format", ["json", "parquet", "avro"])
@pytest.mark.parametrize("sides", SIDES, ids=short_id)
def test_writer_and_verifier_agree_on_nulls_and_defaults(
    registry: SchemaRegistry, converter: str, format: str, sides: tuple[str, ...]
) -> None:
    some = build_registered_topic(
        registry, {"format": {"type": format}}, {"key": converter, "value": converter, "null_to_default": sides}
    )
    values = raws(converter, registry)
    require_agreement(some, [(value, value, []) for value in values], 1)


@pytest.mark.parametrize("converter", ["connect_json", "json_schema"])
@pytest.mark.parametrize("format", ["json", "parquet", "avro"])
@pytest.mark.parametrize("sides", [(), ("value",)], ids=short_id)
def test_verify_finds_a_default_in_place_of_a_null_and_the_reverse(
    registry: SchemaRegistry, monkeypatch: pytest.MonkeyPatch, converter: str, format: str, sides: tuple[str, ...]
) -> None:
    read = CONVERTERS[converter].read

    def read_otherwise(raw: pa.BinaryArray, wanted: ConverterRequest) -> tuple[keys_and_values.Column, Refusals]:
        return read(raw, dataclasses.replace(wanted, null_to_default=not wanted.null_to_default))

    monkeypatch.setitem(CONVERTERS, converter, dataclasses.replace(CONVERTERS[converter], read=read_otherwise))
    some = build_registered_topic(
        registry, {"format": {"type": format}}, {"value": converter, "null_to_default": sides}
    )
    stage_records(some, [(None, value, []) for value in raws(converter, registry)])
    report = some.verify()
    assert report.missing == report.duplicated > 0
