"""No refusal quotes the value of a field whose name is a secret's: its reason goes to logs and dead letters."""

import json
from typing import Any

import pytest
from google.protobuf import message_factory

from s3lake.config.model import Sink
from s3lake.land.preview import preview
from s3lake.land.request.in_process_tasks import KafkaRecord
from s3lake.records.schema.protobuf import compiler
from s3lake_tests.conftest import short_id
from s3lake_tests.records.schema.registry.server import SchemaRegistry, framed

PLANT = "hunter2plant"
NUMBER = 18446744073709550011
TOLERANT = {"errors": {"tolerance": "all"}}


def refusals(value: Any, key: bytes | None = None, headers: Any = (), **settings: Any) -> str:
    """All reports of a refused record."""
    sink = Sink(**{"name": "s", "topics": ("t",), "bucket": "lake", "start": "2026-11-20T00", **TOLERANT, **settings})
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    found = preview(sink, "t", [KafkaRecord("t", 0, 0, 0, key, body, headers)])
    assert found.refusals, "the record is to be refused"
    return "; ".join(one.message for one in found.refusals)


def columns(type: str, form: str = "parquet") -> dict[str, Any]:
    return {"format": {"type": form}, "columns": {"password": type}}


@pytest.mark.parametrize("form", ["parquet", "avro"])
@pytest.mark.parametrize(
    "type", ["timestamp", "int64", "double", "bool", "date", "time", "uuid", "binary", "decimal(10,2)", "list<date>"]
)
def test_refusals_of_declared_columns_contain_no_value(type: str, form: str) -> None:
    text = refusals({"password": f"{PLANT}?"}, **columns(type, form))
    assert PLANT not in text
    assert "field 'password'" in text


@pytest.mark.parametrize(
    "value",
    [
        {"password": [PLANT]},
        {"password": {"a": PLANT}},
    ],
    ids=short_id,
)
def test_refusals_of_nested_values_contain_no_value(value: Any) -> None:
    assert PLANT not in refusals(value, **columns("struct<a: timestamp>"))
    nested = {"columns": {"users": "list<struct<api_key: timestamp>>"}, "format": {"type": "parquet"}}
    text = refusals({"users": [{"api_key": PLANT}]}, **nested)
    assert PLANT not in text
    assert "api_key" in text


def test_refusals_by_a_schema_in_the_record_contain_no_value() -> None:
    decimal = {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "2"}}
    schema = {"type": "struct", "fields": [{"field": "password", **decimal}]}
    envelope = {"schema": schema, "payload": {"password": f"{PLANT}?"}}
    assert PLANT not in refusals(envelope, converter={"value": "connect_json"}, format={"type": "parquet"})
    replaced = {"type": "ReplaceField$Value", "options": {"renames": "password:p"}}
    assert PLANT not in refusals(envelope, converter={"value": "connect_json"}, transforms=[replaced])


def test_refusals_by_a_schema_of_a_registry_contain_no_value(registry: SchemaRegistry) -> None:
    proto = 'syntax = "proto3"; message A { uint64 secret_pin = 1; }'
    number = registry.add(proto, "PROTOBUF")
    message = message_factory.GetMessageClass(compiler.compile_message(proto, {}, (0,)))(secret_pin=NUMBER)
    value = framed(number, b"\0" + message.SerializeToString())
    there = {"converter": {"value": "protobuf", "registry": {"url": registry.url}}, "format": {"type": "parquet"}}
    assert str(NUMBER) not in refusals(value, **there)


@pytest.mark.parametrize("value", [f"{PLANT}\t", f"../{PLANT}", f"{PLANT}//", f".indexes/{PLANT}", PLANT * 100])
@pytest.mark.parametrize("element", ["field:user.password", "header:token", "key:api_key"])
def test_refusals_of_object_keys_contain_no_value(element: str, value: str) -> None:
    text = refusals(
        {"user": {"password": value}},
        json.dumps({"api_key": value}).encode(),
        (("token", value.encode()),),
        layout={"template": f"{{{element}}}/{{partition}}-{{offset}}"},
        converter={"key": "json"},
    )
    assert PLANT not in text


@pytest.mark.parametrize("value", [f"2026-{PLANT}", "hunter2plant"])
def test_refusals_of_times_in_object_keys_contain_no_value(value: str) -> None:
    layout = {"template": "{time:yyyy}/{partition}-{offset}", "time": {"source": "field", "field": "user.password"}}
    assert PLANT not in refusals({"user": {"password": value}}, layout=layout)


def step(type: str, **options: Any) -> dict[str, Any]:
    return {"type": type, "options": {name.replace("_", "."): value for name, value in options.items()}}


@pytest.mark.parametrize(
    "transform",
    [
        step("Cast$Value", spec="password:int32"),
        step("Cast$Value", spec="password:float64"),
        step("TimestampConverter$Value", field="password", target_type="Timestamp", format="yyyy-MM-dd"),
        step("TimestampConverter$Value", field="password", target_type="Timestamp"),
    ],
    ids=short_id,
)
def test_refusals_of_transforms_contain_no_value(transform: dict[str, Any]) -> None:
    assert PLANT not in refusals({"password": PLANT}, transforms=[transform])


def test_refusals_of_a_masked_field_contain_no_value_whatever_its_name() -> None:
    mask = step("MaskField$Value", fields="ssn", replacement="x")
    assert "123456789012" not in refusals({"ssn": 123456789012}, transforms=[mask])
