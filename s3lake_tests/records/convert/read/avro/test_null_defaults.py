"""Nulls of Avro that become the defaults of their fields, where a sink asks for Kafka Connect's way."""

import json
from decimal import Decimal
from typing import Any

import pytest

from s3lake.records.convert.conversion import Conversion
from s3lake.records.convert.convert_batch import convert_batch
from s3lake_tests.conftest import short_id
from s3lake_tests.lake.verify.staged_records import require_agreement
from s3lake_tests.lake.verify.world import build_registered_topic
from s3lake_tests.records.convert.batches import batch, table
from s3lake_tests.records.schema.registry.server import SchemaRegistry, datum, framed

PRICE = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
INNER = {"type": "record", "name": "In", "fields": [{"name": "a", "type": ["int", "null"], "default": 7}]}
MARKED = {"type": "int", "connect.default": 7}
ROW = {
    "type": "record",
    "name": "Row",
    "namespace": "db",
    "fields": [
        {"name": "id", "type": "int"},
        {"name": "text", "type": ["string", "null"], "default": "unnamed"},
        {"name": "level", "type": [MARKED, "null"], "default": 7},
        {"name": "none", "type": ["null", "int"], "default": None},
        {"name": "real", "type": ["float", "null"], "default": 0.5},
        {"name": "day", "type": [{"type": "int", "logicalType": "date"}, "null"], "default": 1},
        {"name": "blob", "type": ["bytes", "null"], "default": "\u00ff"},
        {"name": "price", "type": [PRICE, "null"], "default": "\u0004\u00d2"},
        {"name": "size", "type": [{"type": "enum", "name": "Size", "symbols": ["S", "L"]}, "null"], "default": "L"},
        {"name": "tags", "type": [{"type": "array", "items": "string"}, "null"], "default": []},
        {"name": "in", "type": INNER},
        {"name": "list", "type": {"type": "array", "items": "In"}},
        {"name": "map", "type": {"type": "map", "values": ["In", "null"]}},
        {"name": "wide", "type": ["null", "int", "In"]},
        {"name": "more", "type": ["In", "null"], "default": {"a": 1}},
        {"name": "full", "type": [{"type": "array", "items": "string"}, "null"], "default": ["x"]},
    ],
}
NULLS: dict[str, Any] = {
    "id": 1, "in": {"a": None}, "list": [{"a": None}, {"a": 0}], "map": {"k": {"a": None}, "n": None},
    "wide": {"a": None},
}  # fmt: skip
NULLS |= dict.fromkeys(("text", "level", "none", "real", "day", "blob", "price", "size", "tags", "more", "full"))
PRESENT: dict[str, Any] = {
    "id": 2, "text": "x", "level": 0, "none": 0, "real": 0.0, "day": 0, "blob": b"", "price": b"\0",
    "size": "S", "tags": ["y"], "in": {"a": 0}, "list": [], "map": {}, "wide": 3, "more": {"a": 0}, "full": [],
}  # fmt: skip
FILLED = {
    "id": 1, "text": "unnamed", "level": 7, "real": 0.5, "day": 1, "blob": "/w==", "price": 12.34, "size": "L",
    "tags": [], "in": {"a": 7}, "list": [{"a": 7}, {"a": 0}], "map": {"k": {"a": 7}, "n": None},
    "wide": {"In": {"a": 7}},
}  # fmt: skip


def raws(registry: SchemaRegistry) -> list[bytes]:
    number = registry.add(ROW)
    return [framed(number, datum(ROW, value)) for value in (NULLS, PRESENT)]


def known(line: Any) -> dict[str, Any]:
    """Return the fields of a line that are not null, without the branches that a union does not have."""
    value: dict[str, Any] = {name: one for name, one in json.loads(line).items() if one is not None}
    return value | {"wide": {name: one for name, one in value["wide"].items() if one is not None}}


@pytest.mark.parametrize(("sides", "first"), [((), None), (("value",), FILLED), (("key",), None)])
def test_a_null_becomes_the_default_of_its_field_where_the_sink_asks(
    registry: SchemaRegistry, sides: tuple[str, ...], first: Any
) -> None:
    by = Conversion("string", "avro", "json", "skip", registry=registry.connection, null_to_default=sides)
    nulls, present = map(known, table(convert_batch(by, batch(*raws(registry)), {})))
    assert nulls == (
        first or {name: value for name, value in NULLS.items() if value is not None} | {"wide": {"In": {"a": None}}}
    )
    assert (present["level"], present["text"], present["tags"], present["blob"]) == (0, "x", ["y"], "")


@pytest.mark.parametrize("format", ["parquet", "avro"])
def test_columns_have_the_defaults_of_lines(registry: SchemaRegistry, format: str) -> None:
    by = Conversion("string", "avro", format, "skip", registry=registry.connection, null_to_default=("value",))
    nulls, present = table(convert_batch(by, batch(*raws(registry)), {}))
    assert {name: nulls[name] for name in ("text", "level", "none", "price", "tags", "in", "more", "full")} == {
        "text": "unnamed", "level": 7, "none": None, "price": Decimal("12.34"), "tags": [], "in": {"a": 7},
        "more": None, "full": None,
    }  # fmt: skip
    assert (present["text"], present["level"], present["price"]) == ("x", 0, Decimal("0.00"))


def test_keys_have_a_rule_of_their_own(registry: SchemaRegistry) -> None:
    by = Conversion("avro", "json", "json", "skip", registry=registry.connection, keys="json", null_to_default=("key",))
    found = convert_batch(by, batch(b"{}", keys=raws(registry)[:1]), {})
    (key,) = found.parts[0].streams["keys"].to_pylist()
    assert known(key) == FILLED


@pytest.mark.parametrize("format", ["json", "parquet", "avro"])
@pytest.mark.parametrize("sides", [(), ("value",), ("key", "value")], ids=short_id)
def test_writer_and_verifier_agree_on_nulls_of_avro(
    registry: SchemaRegistry, format: str, sides: tuple[str, ...]
) -> None:
    some = build_registered_topic(
        registry, {"format": {"type": format}}, {"key": "avro", "value": "avro", "null_to_default": sides}
    )
    require_agreement(some, [(value, value, []) for value in raws(registry)], 1)


@pytest.mark.parametrize("type", ["int", ["null", "int"]], ids=short_id)
def test_a_schema_whose_nulls_have_no_default_keeps_the_producers_bytes(registry: SchemaRegistry, type: Any) -> None:
    default = {"default": None} if isinstance(type, list) else {"default": 7}
    schema = {"type": "record", "name": "db.Row", "pii": True, "fields": [{"name": "a", "type": type, **default}]}
    data = datum(schema, {"a": 5})
    convert = Conversion(*("string", "avro", "avro", "write"), registry=registry.connection, null_to_default=("value",))
    (part,) = convert_batch(convert, batch(framed(registry.add(schema), data)), {}).parts
    assert part.streams["data"].column(0).to_pylist() == [data]
