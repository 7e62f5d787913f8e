"""Numbers without bounds: each lands with its value or is a dead letter, at once, and verifying agrees."""

import json
from typing import Any

import pytest

from s3lake_tests.conftest import short_id
from s3lake_tests.lake.verify.staged_records import stage_records
from s3lake_tests.lake.verify.world import VerifiedTopic
from s3lake_tests.records.schema.registry.server import SchemaRegistry, framed

LONG = b"9" * 100_000
NUMBERS = [
    *(b"1e999999999", b"-1e999999999", b"1e-999999999", b"0e999999999", b"1e99999999999999999999"),
    *(b"1e-99999999999999999999", b"1e400", b"1e-400", b"-0.0", b"1E+2", b"9223372036854775808"),
    *(LONG, b"0." + b"3" * 100_000, b"5" + b"0" * 100_000 + b"e-100000", b"123456789012345678901234567890.5"),
]
DECIMAL = {"name": "org.apache.kafka.connect.data.Decimal", "type": "bytes", "parameters": {"scale": "2"}}
FORMS = ["json", "text", "parquet", "avro", "csv"]


def require_order(world: VerifiedTopic, values: list[bytes]) -> int:
    """Land values and verify them. Return how many are dead letters."""
    stage_records(world, [(None, value, []) for value in values])
    report = world.verify()
    assert report.clean, report.differences
    assert report.landed + report.dead_letters == len(values)
    return report.dead_letters


def build(form: str, **sink: Any) -> VerifiedTopic:
    return VerifiedTopic(**{"format": {"type": form}, "errors": {"tolerance": "all"}, **sink})


@pytest.mark.parametrize("form", FORMS)
def test_json_lands_or_is_refused(form: str) -> None:
    refused = require_order(build(form), [b'{"a":%s}' % number for number in NUMBERS])
    assert (refused == 0) is (form in ("json", "text"))


@pytest.mark.parametrize("type", ["double", "float", "int32", "int64", "decimal(38,10)", "string", "timestamp", "date"])
@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_declared_columns_hold_the_value_or_refuse_it(form: str, type: str) -> None:
    assert require_order(build(form, columns={"a": type}), [b'{"a":%s}' % number for number in NUMBERS]) > 0


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "schema",
    [
        *({"type": type} for type in ("int8", "int32", "int64", "float", "double", "string", "boolean")),
        {"type": "int64", "name": "org.apache.kafka.connect.data.Timestamp"},
        DECIMAL,
        *({**DECIMAL, "parameters": {"scale": scale}} for scale in ("100", "100000", "999999999", "-999999999")),
    ],
    ids=short_id,
)
def test_json_with_its_schema_lands_or_is_refused(form: str, schema: dict[str, Any]) -> None:
    struct = json.dumps({"type": "struct", "fields": [{**schema, "field": "a"}]}).encode()
    payloads = [*NUMBERS, b'"AQ=="', *(b'"%s"' % number for number in NUMBERS)]
    values = [b'{"schema":%s,"payload":{"a":%s}}' % (struct, payload) for payload in payloads]
    require_order(build(form, converter={"value": "connect_json"}), values)


@pytest.mark.parametrize("form", ["json", "parquet", "csv"])
@pytest.mark.parametrize(
    "property",
    [{"type": "integer"}, {"type": "number"}, {"type": "string"}, {}, {"title": DECIMAL["name"], "type": "number"}],
    ids=short_id,
)
@pytest.mark.parametrize("default", [{}, {"b": {"type": "integer", "default": 1}}], ids=len)
def test_json_schema_lands_or_is_refused(
    registry: SchemaRegistry, form: str, property: dict[str, Any], default: dict[str, Any]
) -> None:
    number = registry.add({"properties": {"a": property, **default}}, "JSON")
    converter = {"value": "json_schema", "registry": {"url": registry.url}}
    require_order(build(form, converter=converter), [framed(number, b'{"a":%s}' % one) for one in NUMBERS])


CASTS = [{"spec": f"a:{type}"} for type in ("string", "int64", "int8", "float32", "float64", "boolean")]
HEADER = {"header.name": "h", "field": "a", "target.type": "unix"}
STEPS: list[tuple[str, dict[str, Any]]] = [
    *(("Cast$Value", spec) for spec in CASTS),
    ("InsertField$Value", {"offset.field": "o"}),
    ("TimestampConverter$Value", {"field": "a", "target.type": "unix"}),
    ("MaskField$Value", {"fields": "a"}),
    ("HeaderFrom$Value", {"fields": "a", "headers": "h", "operation": "copy"}),
    ("Flatten$Value", {}),
    ("io.confluent.connect.transforms.ExtractTopic$Value", {"field": "a"}),
    ("io.lenses.connect.smt.header.TimestampConverter", HEADER),
]


@pytest.mark.parametrize("form", ["json", "parquet"])
@pytest.mark.parametrize(("type", "options"), STEPS)
def test_transforms_change_the_value_or_refuse_it(form: str, type: str, options: dict[str, Any]) -> None:
    steps = [{"type": type, "options": options}]
    plain = [b'{"a":%s}' % number for number in NUMBERS] + [b'{"a":"%s"}' % number for number in NUMBERS]
    if type != "io.confluent.connect.transforms.ExtractTopic$Value":
        require_order(build(form, transforms=steps), plain)
    struct = json.dumps({"type": "struct", "fields": [{**DECIMAL, "field": "a"}]}).encode()
    values = [b'{"schema":%s,"payload":{"a":%s}}' % (struct, number) for number in NUMBERS]
    require_order(build(form, transforms=steps, converter={"value": "connect_json"}), values)


@pytest.mark.parametrize(
    "template", ["{topic}/{field:a}/{partition}-{offset}", "{topic}/{time:yyyy}/{partition}-{offset}"]
)
def test_layouts_take_the_value_or_refuse_it(template: str) -> None:
    layout = {"template": template, "time": {"source": "field", "field": "a"}}
    assert require_order(build("json", layout=layout), [b'{"a":%s}' % number for number in NUMBERS]) > 0


def test_rules_take_the_value_or_refuse_it() -> None:
    rules = {"rules": {"properties": {"a": {"minimum": 1, "multipleOf": 3}}}}
    assert require_order(build("json", schema=rules), [b'{"a":%s}' % number for number in NUMBERS]) > 0


@pytest.mark.parametrize("other", ["123456789012345678901234567890123456.2", "123456789012345678901234567890123457.1"])
def test_verify_compares_every_digit(other: str) -> None:
    number = "123456789012345678901234567890123456.1"
    struct = json.dumps({"type": "struct", "fields": [{"type": "double", "field": "a"}]})
    value = f'{{"schema":{struct},"payload":{{"a":{number}}}}}'
    world = build("json", converter={"value": "connect_json"})
    assert require_order(world, [value.encode()]) == 0
    stamp, _ = world.log.records[0][0]
    world.log.records[0][0] = (stamp, value.replace(number, other).encode())
    assert not world.verify().clean
