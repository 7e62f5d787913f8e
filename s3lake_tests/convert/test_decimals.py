"""Decimals in files of JSON: numbers, or base64 of the unscaled number as Kafka Connect writes them by default."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from s3lake.convert.envelope import Envelope
from s3lake.convert.values import Conversion
from s3lake.sink.format import Format
from s3lake_tests.convert.records import batch
from s3lake_tests.convert.test_avro_values import datum, logical, record
from s3lake_tests.convert.test_json_schema import DECIMAL
from s3lake_tests.schema.registry.server import SchemaRegistry, framed
from s3lake_tests.verify.test_writer_agrees import staged
from s3lake_tests.verify.world import World

NAME = "org.apache.kafka.connect.data.Decimal"
CONNECT = {"type": "bytes", "name": NAME, "parameters": {"scale": "2"}, "optional": True}
SPELT = [("12.34", "BNI="), ("-0.01", "/w=="), ("0.00", "AA=="), ("1.28", "AIA="), ("-1.28", "gA==")]
"""A number, and what Java's BigInteger.toByteArray makes of it, in base64."""


def connect(payload: str, schema: Any = CONNECT) -> bytes:
    return b'{"schema": %s, "payload": %s}' % (json.dumps(schema).encode(), payload.encode())


def lines(converter: str, *values: bytes, registry: SchemaRegistry | None = None, **more: Any) -> list[bytes]:
    connection = registry.connection if registry else None
    conversion = Conversion("string", converter, "json", "skip", registry=connection, **more)
    converted = conversion(batch(*values), {})
    assert converted.refused == {}
    return [line for part in converted.parts for line in part.streams["data"].to_pylist()]


@pytest.mark.parametrize(("number", "base64"), SPELT)
def test_both_spellings_are_read_and_either_is_written(number: str, base64: str) -> None:
    values = connect(number), connect(f'"{base64}"')
    assert lines("connect_json", *values) == [number.encode()] * 2
    assert lines("connect_json", *values, base64_decimals=True) == [f'"{base64}"'.encode()] * 2


def test_in_structs_lists_and_maps_and_nothing_else_is_touched() -> None:
    fields = [
        {"field": "plain", **CONNECT},
        {"field": "list", "type": "array", "items": CONNECT},
        {"field": "map", "type": "map", "keys": {"type": "string"}, "values": CONNECT},
        {"field": "pairs", "type": "map", "keys": {"type": "int32"}, "values": CONNECT},
        {"field": "note", "type": "double"},
    ]
    payload = '{"plain": null, "list": [1.28, null], "map": {"a": 12.34}, "pairs": [[7, 12.34]], "note": 0.1}'
    (line,) = lines("connect_json", connect(payload, {"type": "struct", "fields": fields}), base64_decimals=True)
    expected = {"plain": None, "list": ["AIA=", None], "map": {"a": "BNI="}, "pairs": [[7, "BNI="]], "note": 0.1}
    assert json.loads(line) == expected


@pytest.mark.parametrize("part", ["value", "key"])
def test_one_that_is_none_refuses_its_record_and_no_other(part: str) -> None:
    envelope = Envelope("flat", ("key", "value"), "t")
    conversion = Conversion("connect_json", "connect_json", "json", "skip", envelope, base64_decimals=True)
    sound, broken = connect("12.34"), connect('"abc"')
    sides = ([broken, sound], [sound, sound]) if part == "value" else ([sound, sound], [broken, sound])
    converted = conversion(batch(*sides[0], keys=sides[1]), {})
    assert list(converted.refused) == [0]
    assert converted.parts[0].streams["data"].to_pylist() == [b'{"key":"BNI=","value":"BNI="}']


def test_of_avro(registry: SchemaRegistry) -> None:
    avro = record(("a", ["null", logical("bytes", "decimal", precision=9, scale=2)]))
    value = framed(registry.add(avro), datum(avro, {"a": b"\x04\xd2"}))
    assert lines("avro", value, registry=registry, base64_decimals=True) == [b'{"a":"BNI="}']


@pytest.mark.parametrize("envelope", [None, {"style": "record"}])
def test_what_landed_is_verified(envelope: Any) -> None:
    fields = [{"field": "a", **CONNECT}]
    value = connect('{"a": "BNI="}', {"type": "struct", "fields": fields})
    more = {"envelope": envelope} if envelope else {}
    for decimals in ("number", "base64"):
        world = World(format={"type": "json", "decimals": decimals}, converter={"value": "connect_json"}, **more)
        staged(world, [(None, value, [])])
        report = world.verify()
        assert (report.differences, report.landed) == ((), 1)


def test_lines_of_json_schema_are_what_the_producer_wrote(registry: SchemaRegistry) -> None:
    value = framed(registry.add({"type": "object", "properties": {"a": DECIMAL}}, "JSON"), b'{"a": 12.34}')
    converter = {"value": "json_schema", "registry": {"url": registry.url}}
    world = World(format={"type": "json", "decimals": "base64"}, converter=converter)
    staged(world, [(None, value, [])])
    assert world.verify().differences == ()


def test_other_formats_have_decimals_of_their_own() -> None:
    with pytest.raises(ValidationError, match="format parquet has decimals of its own: take it out"):
        Format.model_validate({"type": "parquet", "decimals": "base64"})
