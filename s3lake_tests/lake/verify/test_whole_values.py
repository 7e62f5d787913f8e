"""Whole values that are null, or that are no structs: what lands of them, and that verifying agrees."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from s3lake_tests.lake.verify.staged_records import require_agreement, stage_records
from s3lake_tests.lake.verify.world import VerifiedTopic
from s3lake_tests.records.schema.registry.server import SchemaRegistry, framed

STRUCT = {"type": "struct", "optional": True, "fields": [{"type": "int32", "field": "a"}]}
INSERT = {"type": "InsertField$Value", "options": {"static.field": "s", "static.value": "x"}}
FORMS = ["json", "text", "parquet", "avro", "csv"]


def list_nulls(converter: str, registry: SchemaRegistry) -> list[bytes | None]:
    """Return a value, a record without one, and a null that comes with its schema."""
    if converter == "connect_json":
        payloads: list[Any] = [{"a": 1}, None]
        values = [json.dumps({"schema": STRUCT, "payload": payload}).encode() for payload in payloads]
    elif converter == "json_schema":
        number = registry.add({"oneOf": [{"type": "null"}, {"properties": {"a": {"type": "integer"}}}]}, "JSON")
        values = [framed(number, b'{"a":1}'), framed(number, b" null")]
    else:
        record = {"type": "record", "name": "x", "fields": [{"name": "a", "type": "int"}]}
        number = registry.add(["null", record], "AVRO")
        values = [framed(number, b"\x02\x02"), framed(number, b"\x00")]
    return [values[0], None, values[1]]


def build(registry: SchemaRegistry, name: str, form: str, **sink: Any) -> VerifiedTopic:
    named = {"value": name, "registry": {"url": registry.url}}
    return VerifiedTopic(
        **{"format": {"type": form}, "converter": named, "errors": {"tolerance": "all"}, "nulls": "skip", **sink}
    )


def count(world: VerifiedTopic, values: Sequence[bytes | None]) -> tuple[int, int, int]:
    """Return how many records landed, are dead letters and were skipped; verifying finds nothing."""
    stage_records(world, [(None, value, []) for value in values])
    report = world.verify()
    assert report.clean, report.differences
    return report.landed, report.dead_letters, report.skipped


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("converter", ["connect_json", "json_schema", "avro"])
@pytest.mark.parametrize("transforms", [[], [INSERT]], ids=len)
def test_a_null_with_its_schema_is_a_record_without_a_value(
    registry: SchemaRegistry, converter: str, form: str, transforms: list[Any]
) -> None:
    values = list_nulls(converter, registry)
    world = build(registry, converter, form, transforms=transforms)
    is_text = converter == "json_schema" and form in ("json", "text")
    assert count(world, values) == ((2, 0, 1) if is_text else (1, 0, 2))
    failing = build(registry, converter, form, nulls="fail", transforms=transforms)
    assert count(failing, values) == ((2, 1, 0) if is_text else (1, 2, 0))


@pytest.mark.parametrize("form", ["json", "parquet", "avro"])
@pytest.mark.parametrize("converter", ["connect_json", "json_schema", "avro"])
def test_a_null_with_its_schema_is_skipped_in_an_envelope_too(
    registry: SchemaRegistry, converter: str, form: str
) -> None:
    is_text = converter == "json_schema" and form == "json"
    world = build(registry, converter, form, envelope={})
    assert count(world, list_nulls(converter, registry)) == ((2, 0, 1) if is_text else (1, 0, 2))


@pytest.mark.parametrize("sides", [(), ("value",)])
def test_a_null_that_becomes_its_default_is_landed(registry: SchemaRegistry, sides: tuple[str, ...]) -> None:
    schema = {"type": "int32", "optional": True, "default": 7}
    named = {"value": "connect_json", "null_to_default": sides}
    world = build(registry, "connect_json", "parquet", converter=named)
    values = [json.dumps({"schema": schema, "payload": payload}).encode() for payload in (None, 1)]
    assert count(world, values) == ((2, 0, 0) if sides else (1, 0, 1))


@pytest.mark.parametrize(
    ("form", "nulls", "expected"),
    [
        # JSON's null is a value: lines keep it, a table has no row for it.
        *((form, "skip", (2, 0, 1)) for form in ("json", "text", "bytes")),
        *((form, "write", (3, 0, 0)) for form in ("json", "text", "bytes")),
        *((form, "fail", (2, 1, 0)) for form in ("json", "text", "bytes")),
        *((form, "skip", (1, 1, 1)) for form in ("parquet", "avro", "csv")),
        *((form, "write", (2, 1, 0)) for form in ("parquet", "avro", "csv")),
        *((form, "fail", (1, 2, 0)) for form in ("parquet", "avro", "csv")),
    ],
)
def test_a_null_of_json_without_a_schema_is_not_a_record_without_a_value(
    form: str, nulls: str, expected: tuple[int, int, int]
) -> None:
    world = VerifiedTopic(format={"type": form}, nulls=nulls, errors={"tolerance": "all"})
    assert count(world, [b'{"a":1}', None, b"null"]) == expected


WHOLE: dict[str, tuple[dict[str, Any], list[Any]]] = {
    "text": ({"type": "string"}, ["x", '"x"', "null"]),
    "integer": ({"type": "integer"}, [1, 2.0]),
    "number": ({"type": "number"}, [1.5, 2]),
    "boolean": ({"type": "boolean"}, [True, False]),
    "decimal": (
        {
            "type": "number",
            "title": "org.apache.kafka.connect.data.Decimal",
            "connect.type": "bytes",
            "connect.parameters": {"scale": "2"},
        },
        [1.25, "BNI="],
    ),
    "bytes": ({"type": "string", "connect.type": "bytes"}, ["AQ=="]),
    "list": ({"type": "array", "items": {"properties": {"a": {"type": "string"}}}}, [[{"a": '"x"'}], []]),
    "map": ({"type": "object", "additionalProperties": {"type": "integer"}}, [{"k": 1}, {}, {"value": 1}]),
    "struct": ({"properties": {"value": {"type": "integer"}}}, [{"value": 1}]),
}


@pytest.mark.parametrize("form", ["parquet", "avro", "csv"])
@pytest.mark.parametrize("name", WHOLE)
def test_a_value_of_json_schema_that_is_no_struct_is_compared(registry: SchemaRegistry, name: str, form: str) -> None:
    schema, values = WHOLE[name]
    number = registry.add(schema, "JSON")
    records = [(None, framed(number, json.dumps(value).encode()), []) for value in values]
    world = build(registry, "json_schema", form)
    stage_records(world, [(None, data, []) for _, data, _ in records])
    report = world.verify()
    assert report.clean, report.differences
    is_refused = form == "csv" and name in ("list", "map")
    assert (report.landed, report.dead_letters) == ((0, len(values)) if is_refused else (len(values), 0))
    require_agreement(build(registry, "json_schema", form), [(None, data, []) for _, data, _ in records], 0)


QUOTED = ["x", '"x"', '"\\"x\\""', '"', '"5"', "null", 5, {"a": '"x"'}, ['"x"'], None]


@pytest.mark.parametrize("form", ["parquet", "avro"])
@pytest.mark.parametrize("value", QUOTED, ids=json.dumps)
def test_a_text_in_quotes_is_compared_in_columns_of_any_json(registry: SchemaRegistry, form: str, value: Any) -> None:
    schema = {"properties": {"id": {"type": "integer"}, "any": {}, "map": {"additionalProperties": {}}}}
    number = registry.add({**schema, "type": "object"}, "JSON")
    values = [{"id": 1, "any": value}, {"id": 2, "map": {"k": value}}, {"id": 3}]
    records = [(None, framed(number, json.dumps(one).encode()), []) for one in values]
    require_agreement(build(registry, "json_schema", form), records, 0)
