"""A member of JSON whose name is repeated: lines keep both, and everything that would keep one refuses the record."""

import json
from itertools import product
from typing import Any

import pytest

from s3lake_tests.lake.verify.staged_records import Record, require_agreement, stage_records
from s3lake_tests.lake.verify.world import VerifiedTopic, build_registered_topic
from s3lake_tests.records.schema.registry.server import SchemaRegistry, framed

REPEATED = b'{"a":1,"a":2}'
GOOD = b'{"a":3}'
SCHEMA = {"type": "struct", "fields": [{"type": "int32", "field": "a"}]}
INSERT = {"type": "InsertField$Value", "options": {"static.field": "s", "static.value": "x"}}


def envelope(payload: str, schema: Any = SCHEMA) -> bytes:
    return f'{{"schema":{json.dumps(schema)},"payload":{payload}}}'.encode()


def count(records: list[Record], **sink: Any) -> tuple[int, int]:
    """Return how many records have landed and how many are dead letters; verifying finds nothing."""
    world = VerifiedTopic(**{"errors": {"tolerance": "all"}, **sink})
    require_agreement(world, records, 0)
    world = VerifiedTopic(**{"errors": {"tolerance": "all"}, **sink})
    stage_records(world, records)
    report = world.verify()
    return report.landed, report.dead_letters


def values(*given: bytes) -> list[Record]:
    return [(None, value, []) for value in given]


@pytest.mark.parametrize("form", ["json", "text", "bytes"])
def test_lines_of_json_keep_both(form: str) -> None:
    assert count(values(REPEATED, GOOD), format={"type": form}) == (2, 0)


@pytest.mark.parametrize(
    ("form", "nested"),
    [("csv", b"%s"), *product(["parquet", "avro"], [b"%s", b'{"o":%s}', b'{"o":[%s]}'])],
)
def test_tables_refuse_the_record(form: str, nested: bytes) -> None:
    assert count(values(nested % REPEATED, nested % GOOD), format={"type": form}) == (1, 1)


def test_declared_columns_refuse_the_record() -> None:
    columns = {"a": "int64", "at": "timestamp"}
    assert count(values(REPEATED, GOOD), format={"type": "parquet"}, columns=columns) == (1, 1)


def test_a_transform_refuses_the_record_that_it_would_change() -> None:
    assert count(values(REPEATED, GOOD), transforms=[INSERT]) == (1, 1)


def test_a_transform_leaves_the_record_that_it_does_not_change() -> None:
    mask = {"type": "Flatten$Value", "predicate": {"type": "HasHeaderKey", "options": {"name": "h"}}}
    assert count(values(REPEATED, GOOD), transforms=[mask]) == (2, 0)


@pytest.mark.parametrize("form", ["json", "parquet"])
@pytest.mark.parametrize(
    "value",
    [
        envelope('{"a":1,"a":2}'),
        b'{"schema":%s,"payload":{"a":1},"payload":{"a":2}}' % json.dumps(SCHEMA).encode(),
        b'{"schema":null,"schema":%s,"payload":{"a":1}}' % json.dumps(SCHEMA).encode(),
        envelope(
            '{"k":1,"k":2}', {"type": "map", "keys": {"type": "string"}, "values": {"type": "int32"}, "optional": True}
        ),
    ],
)
def test_json_with_its_schema_is_refused(form: str, value: bytes) -> None:
    sink = {"format": {"type": form}, "converter": {"value": "connect_json"}}
    assert count(values(value, envelope('{"a":3}')), **sink) == (1, 1)


def test_json_without_its_schema_keeps_both_among_json_with_schemas() -> None:
    assert count(values(REPEATED, envelope('{"a":3}')), converter={"value": "connect_json"}) == (2, 0)


@pytest.mark.parametrize("transforms", [[], [INSERT]])
def test_a_transform_refuses_json_without_its_schema_among_json_with_schemas(transforms: list[Any]) -> None:
    sink = {"converter": {"value": "connect_json"}, "transforms": transforms}
    assert count(values(REPEATED, envelope('{"a":3}')), **sink) == ((1, 1) if transforms else (2, 0))


def test_a_key_in_an_envelope_of_a_table_is_refused() -> None:
    sink = {"format": {"type": "parquet"}, "converter": {"key": "json"}, "envelope": {}}
    assert count([(REPEATED, GOOD, []), (GOOD, GOOD, [])], **sink) == (1, 1)


def test_a_select_of_sql_refuses_the_record() -> None:
    world = VerifiedTopic(sql={"select": "a"}, errors={"tolerance": "all"})
    stage_records(world, values(REPEATED, GOOD))
    assert (world.verify().landed, world.verify().dead_letters) == (1, 1)


@pytest.mark.parametrize(
    ("form", "schema", "expected"),
    [
        ("parquet", {"properties": {"a": {"type": "integer"}}}, (1, 1)),
        ("json", {"properties": {"a": {"type": "integer"}}}, (2, 0)),
        ("json", {"properties": {"a": {"type": "integer"}, "b": {"type": "integer", "default": 7}}}, (1, 1)),
    ],
)
def test_json_schema_refuses_the_record_whose_text_it_does_not_keep(
    registry: SchemaRegistry, form: str, schema: dict[str, Any], expected: tuple[int, int]
) -> None:
    number = registry.add(schema, "JSON")
    sink = {"format": {"type": form}}
    world = build_registered_topic(registry, sink, {"value": "json_schema"})
    require_agreement(world, values(framed(number, REPEATED), framed(number, GOOD)), 0)
    world = build_registered_topic(registry, sink, {"value": "json_schema"})
    stage_records(world, values(framed(number, REPEATED), framed(number, GOOD)))
    assert (world.verify().landed, world.verify().dead_letters) == expected
