"""Avro that takes no bytes, and decimals of many digits: valid schemas, which land with every fact that they have."""

import json
from decimal import Context, Decimal
from typing import Any

import pytest

from s3lake.lake.objects import ObjectShape, read_batches, spark_columns
from s3lake.records.convert.conversion import Conversion
from s3lake.records.convert.convert_batch import convert_batch
from s3lake.records.convert.read.avro.datums import MOST_WEIGHTLESS
from s3lake.records.schema.columns.types import PLACEHOLDER
from s3lake_tests.kit.avro_messages import logical, record
from s3lake_tests.lake.verify.staged_records import stage_records
from s3lake_tests.lake.verify.world import VerifiedTopic
from s3lake_tests.records.convert.batches import batch
from s3lake_tests.records.convert.read.avro.avro_files import read_avro_schema
from s3lake_tests.records.convert.read.avro.one_by_one import convert_both_ways
from s3lake_tests.records.schema.registry.server import SchemaRegistry, datum, framed

EMPTY = {"type": "record", "name": "com.acme.Empty", "fields": []}
HOLLOW = {"type": "record", "name": "com.acme.Hollow", "fields": [{"name": "n", "type": "null"}]}
STAND_IN = {PLACEHOLDER: None}
NOTHING: dict[str, tuple[Any, Any, Any, Any, str]] = {
    # the type, the value of Avro, the JSON, the cell, the column
    "an empty record": (EMPTY, {}, {}, STAND_IN, f"struct<{PLACEHOLDER}: string>"),
    "an empty record or null": (["null", EMPTY], {}, {}, STAND_IN, f"struct<{PLACEHOLDER}: string>"),
    "null for an empty record": (["null", EMPTY], None, None, None, f"struct<{PLACEHOLDER}: string>"),
    "a record of nulls": (HOLLOW, {"n": None}, {}, STAND_IN, f"struct<{PLACEHOLDER}: string>"),
    "empty records in a list": (
        *({"type": "array", "items": EMPTY}, [{}, {}]),
        *([{}, {}], [STAND_IN, STAND_IN], f"list<struct<{PLACEHOLDER}: string>>"),
    ),
    "empty records in a map": (
        *({"type": "map", "values": EMPTY}, {"k": {}}),
        *({"k": {}}, [("k", STAND_IN)], f"map<string, struct<{PLACEHOLDER}: string>>"),
    ),
    "an empty record in a union": (
        *(["int", EMPTY], {}),
        *({"int": None, "Empty": {}}, {"int": None, "Empty": STAND_IN}),
        f"struct<int: int32, Empty: struct<{PLACEHOLDER}: string>>",
    ),
    "nulls in a list": ({"type": "array", "items": "null"}, [None] * 3, [None] * 3, [None] * 3, "list<string>"),
    "unions of null in a list": (
        *({"type": "array", "items": ["null"]}, [None, None]),
        *([None, None], [None, None], "list<string>"),
    ),
    "no nulls in a list": ({"type": "array", "items": "null"}, [], [], [], "list<string>"),
    "lists of nulls in a list": (
        *({"type": "array", "items": {"type": "array", "items": "null"}}, [[None], []]),
        *([[None], []], [[None], []], "list<list<string>>"),
    ),
    "nulls in a map": (
        *({"type": "map", "values": "null"}, {"k": None}),
        *({"k": None}, [("k", None)], "map<string, string>"),
    ),
    "a fixed of no bytes": ({"type": "fixed", "name": "F", "size": 0}, b"", "", b"", "binary"),
}


def land(registry: SchemaRegistry, format: str, message: bytes) -> tuple[VerifiedTopic, Any]:
    converter = {"value": "avro", "registry": {"url": registry.url}}
    world = VerifiedTopic(format={"type": format}, converter=converter, errors={"tolerance": "all"})
    stage_records(world, [(None, message, [])])
    report = world.verify()
    assert (report.differences, report.landed, report.dead_letters) == ((), 1, 0)
    (manifest,) = world.manifests.values()
    return world, manifest


@pytest.mark.parametrize("format", ["parquet", "avro", "json"])
@pytest.mark.parametrize("what", NOTHING)
def test_a_value_of_no_bytes_lands(registry: SchemaRegistry, what: str, format: str) -> None:
    kind, value, text, cell, column = NOTHING[what]
    schema = record(("id", "int"), ("a", kind))
    world, manifest = land(registry, format, framed(registry.add(schema), datum(schema, {"id": 1, "a": value})))
    body = world.store.objects[manifest.files[0].key][0]
    if format == "json":
        assert json.loads(body) == {"id": 1, "a": text}
        return
    shape = ObjectShape.from_manifest(manifest)
    assert str(shape.columns) == f"struct<id: int32, a: {column}>"
    read = read_batches(shape, body, manifest.files[0].key, spark_columns.build_read_schema(shape))
    assert [row for part in read for row in part.to_pylist()] == [{"id": 1, "a": cell}]


@pytest.mark.parametrize("format", ["parquet", "avro", "json"])
def test_a_record_without_fields_is_a_row(registry: SchemaRegistry, format: str) -> None:
    world, manifest = land(registry, format, framed(registry.add(EMPTY), b""))
    if format == "json":
        assert world.store.objects[manifest.files[0].key][0] == b"{}\n"
    else:
        assert manifest.columns == {PLACEHOLDER: "string"}


def test_an_avro_file_keeps_the_empty_record_of_its_producer(registry: SchemaRegistry) -> None:
    kind = {"type": "array", "items": ["null", "com.acme.Empty"]}
    schema = record(("a", EMPTY), ("b", kind), ("c", {"type": "array", "items": "com.acme.Empty"}))
    value = {"a": {}, "b": [{}, None], "c": [{}, {}]}
    message = framed(registry.add(schema), datum(schema, value))
    convert = Conversion("string", "avro", "avro", "write", registry=registry.connection)
    (part,) = convert_batch(convert, batch(message), {}).parts
    found = read_avro_schema(part.streams["data"])
    assert found["fields"][0]["type"] == EMPTY
    assert found["fields"][2]["type"] == {"type": "array", "items": "com.acme.Empty"}


def test_few_bytes_cannot_ask_for_more_items_than_memory_holds(registry: SchemaRegistry) -> None:
    nested = {"type": "array", "items": {"type": "array", "items": "null"}}
    number = registry.add(record(("a", nested)))
    many, one = datum("long", MOST_WEIGHTLESS), datum("long", 1)
    endless = b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f"
    datums = [one + many + b"\0\0", datum("long", 2) + many + b"\0" + one + b"\0\0", one + endless + b"\0\0"]
    found = convert_both_ways(registry, batch(*(framed(number, data) for data in datums)))
    assert found.refused == dict.fromkeys(
        (1, 2), f"the data does not fit schema id {number}: more than 1000 items that take no bytes"
    )


# Decimals


WIDE = [
    (64, 40, "1.5", "decimal(38,14)"),
    (64, 40, "-0.0000000000000000000000000000000000000001", None),
    (64, 40, "123456789012345678901234.0000000000000000000000000000000000000001", None),
    (64, 10, "1234567890123456789012345678.0123456789", "decimal(38,10)"),
    (64, 10, "123456789012345678901234567890123456789012345678901234.0123456789", None),
    (40, 0, "50", "decimal(38,0)"),
    (60, 60, "0.000001", "decimal(38,38)"),
    (100, 90, "0.5", "decimal(38,28)"),
]


@pytest.mark.parametrize(("precision", "scale", "number", "column"), WIDE)
@pytest.mark.parametrize("physical", ["bytes", "fixed"])
def test_a_decimal_of_many_digits_is_a_text_and_in_a_table_if_its_value_fits(
    registry: SchemaRegistry, physical: str, precision: int, scale: int, number: str, column: str | None
) -> None:
    size = {"name": "F", "size": 45} if physical == "fixed" else {}
    unscaled = int(Decimal(number).scaleb(scale, Context(prec=200)))
    data = unscaled.to_bytes(45, "big", signed=True)
    schema = record(("a", {**logical(physical, "decimal", precision=precision, scale=scale), **size}))
    message = framed(registry.add(schema), (b"" if size else datum("long", 45)) + data)
    world, manifest = land(registry, "json", message)
    text = world.store.objects[manifest.files[0].key][0]
    assert Decimal(json.loads(text, parse_float=Decimal, parse_int=Decimal)["a"]) == Decimal(number)
    for format in ("parquet", "avro"):
        converter = {"value": "avro", "registry": {"url": registry.url}}
        world = VerifiedTopic(format={"type": format}, converter=converter, errors={"tolerance": "all"})
        stage_records(world, [(None, message, [])])
        report = world.verify()
        assert (report.differences, report.landed) == ((), int(column is not None))
        (manifest,) = world.manifests.values()
        if column is not None:
            assert manifest.columns == {"a": column}
