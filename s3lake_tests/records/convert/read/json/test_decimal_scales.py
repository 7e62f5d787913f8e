"""Connect's decimals of any scale: lines hold every value, columns the values that fit exactly."""

import base64
import json
from decimal import Decimal
from typing import Any

import pytest

from s3lake.records.convert.conversion import Conversion
from s3lake.records.convert.convert_batch import convert_batch
from s3lake_tests.lake.verify.staged_records import require_agreement
from s3lake_tests.lake.verify.world import build_registered_topic
from s3lake_tests.records.convert.batches import batch, table
from s3lake_tests.records.schema.registry.server import SchemaRegistry, framed

# Scale, unscaled number, the column's type, and whether the column holds the value.
SCALES = [
    (2, 12345, "decimal(38,2)", True),
    (-1, 12345, "decimal(38,0)", True),
    (-1, 5, "decimal(38,0)", True),
    (-37, 1, "decimal(38,0)", True),
    (-38, 1, "decimal(38,0)", False),
    (38, 12345, "decimal(38,38)", True),
    (39, 10, "decimal(38,38)", True),
    (39, 1, "decimal(38,38)", False),
    (127, 12345, "decimal(38,38)", False),
    (127, 0, "decimal(38,38)", True),
    (2, 10**60, "decimal(38,2)", False),
    (5000, 1, "decimal(38,38)", False),
]
IDS = [f"{unscaled:.1e} e{-scale}" for scale, unscaled, *_ in SCALES]


def to_base64(unscaled: int) -> str:
    return base64.b64encode(unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big", signed=True)).decode()


def decimal_of(scale: int, **more: Any) -> dict[str, Any]:
    return {
        "type": "bytes",
        "name": "org.apache.kafka.connect.data.Decimal",
        "parameters": {"scale": str(scale)},
        **more,
    }


def message(schema: Any, payload: Any) -> bytes:
    fields = [{"field": "id", "type": "int32"}, {**schema, "field": "d"}]
    return json.dumps({"schema": {"type": "struct", "fields": fields}, "payload": {"id": 1, "d": payload}}).encode()


def places(scale: int, unscaled: int) -> list[tuple[Any, Any, Any]]:
    """Schema, payload, and what JSON has, of a decimal in each place."""
    one, payload, number = decimal_of(scale), to_base64(unscaled), Decimal(f"{unscaled}E{-scale}")
    struct = {"type": "struct", "fields": [{**one, "field": "in"}]}
    pairs = {"type": "map", "keys": one, "values": {"type": "boolean"}}
    return [
        (one, payload, number),
        ({"type": "array", "items": one}, [payload], [number]),
        ({"type": "map", "keys": {"type": "string"}, "values": one}, {"k": payload}, {"k": number}),
        (pairs, [[payload, True]], [[number, True]]),
        (struct, {"in": payload}, {"in": number}),
        (decimal_of(scale, default=payload), None, number),
    ]


@pytest.mark.parametrize(("scale", "unscaled", "_", "__"), SCALES, ids=IDS)
@pytest.mark.parametrize("place", range(6))
def test_a_line_holds_a_decimal_of_any_scale(scale: int, unscaled: int, _: str, __: bool, place: int) -> None:
    schema, payload, right = places(scale, unscaled)[place]
    by = Conversion("string", "connect_json", "json", "skip")
    (line,) = table(convert_batch(by, batch(message(schema, payload)), {}))
    assert json.loads(line, parse_float=Decimal, parse_int=Decimal)["d"] == right


@pytest.mark.parametrize(("scale", "unscaled", "column", "fits"), SCALES, ids=IDS)
@pytest.mark.parametrize("format", ["parquet", "avro", "csv"])
def test_a_column_refuses_a_decimal_by_its_value(
    scale: int, unscaled: int, column: str, fits: bool, format: str
) -> None:
    found = convert_batch(
        Conversion("string", "connect_json", format, "skip"), batch(message(decimal_of(scale), to_base64(unscaled))), {}
    )
    if fits:
        assert str(found.seen["d"]) == column
        assert table(found) == [{"id": 1, "d": Decimal(f"{unscaled}E{-scale}")}]
    else:
        assert f"field 'd' does not fit {column}" in found.refused[0]


@pytest.mark.parametrize(("scale", "unscaled", "column", "fits"), SCALES, ids=IDS)
def test_a_decimal_of_a_json_schema_follows_the_same_rule(
    registry: SchemaRegistry, scale: int, unscaled: int, column: str, fits: bool
) -> None:
    decimal = {"type": "number", "title": "org.apache.kafka.connect.data.Decimal", "connect.type": "bytes"}
    schema = {"properties": {"d": {**decimal, "connect.parameters": {"scale": str(scale)}}}}
    raw = framed(registry.add(schema, "JSON"), json.dumps({"d": to_base64(unscaled)}).encode())
    found = convert_batch(
        Conversion("string", "json_schema", "parquet", "skip", registry=registry.connection), batch(raw), {}
    )
    assert str(found.seen.get("d", column)) == column
    assert (0 not in found.refused) is fits


@pytest.mark.parametrize(
    ("scale", "payload"),
    [(2, "???"), (2, True), (2, [1]), (10**30, "AQ=="), (-200_000, "AQ=="), (200_000, "AQ=="), ("2.5", "AQ==")],
)
@pytest.mark.parametrize("format", ["json", "parquet"])
def test_an_invalid_decimal_is_refused_with_its_place(scale: Any, payload: Any, format: str) -> None:
    found = convert_batch(
        Conversion("string", "connect_json", format, "skip"), batch(message(decimal_of(scale), payload)), {}
    )
    assert "schema.fields[1]" in found.refused[0]


@pytest.mark.parametrize("format", ["json", "parquet", "avro", "csv"])
def test_writer_and_verifier_agree_on_decimals_of_any_scale(registry: SchemaRegistry, format: str) -> None:
    some = build_registered_topic(registry, {"format": {"type": format}}, {"value": "connect_json"})
    values = [message(decimal_of(scale), to_base64(unscaled)) for scale, unscaled, *_ in SCALES]
    require_agreement(some, [(None, value, []) for value in values], 1)
