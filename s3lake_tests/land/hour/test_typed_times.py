"""A layout's time in a field that is a time by its schema: the schema has the unit, whatever the converter."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from s3lake_tests.kit.avro_messages import datum, record
from s3lake_tests.lake.verify.staged_records import stage_records
from s3lake_tests.lake.verify.world import VerifiedTopic
from s3lake_tests.records.schema.registry.server import SchemaRegistry, framed, serving

MS = 1_705_314_600_000
"""2024-01-15T10:30Z."""
DAY = 19_737
MORNING, MIDNIGHT = "2024-01-15T10", "2024-01-15T00"
OF_DAY = 37_800_000
CONNECT, DEBEZIUM = "org.apache.kafka.connect.data", "io.debezium.time"
NAMED = [
    ("int32", f"{CONNECT}.Date", DAY, MIDNIGHT),
    ("int64", f"{CONNECT}.Timestamp", MS, MORNING),
    ("int32", f"{CONNECT}.Time", OF_DAY, None),
    ("int32", f"{DEBEZIUM}.Date", DAY, MIDNIGHT),
    ("int64", f"{DEBEZIUM}.Timestamp", MS, MORNING),
    ("int64", f"{DEBEZIUM}.MicroTimestamp", MS * 1000, MORNING),
    ("int64", f"{DEBEZIUM}.NanoTimestamp", MS * 1_000_000, MORNING),
    ("int32", f"{DEBEZIUM}.Time", OF_DAY, None),
    ("int64", f"{DEBEZIUM}.MicroTime", OF_DAY * 1000, None),
    ("string", f"{DEBEZIUM}.ZonedTimestamp", "2024-01-15T05:30:00.000000-05:00", MORNING),
    ("int64", None, MS, MORNING),
    ("double", None, float(MS), MORNING),
]
"""Connect's type, the schema's name, a value, and the hour of its directory; None for a dead letter."""
LOGICAL = [
    ("int", "date", DAY, MIDNIGHT),
    ("long", "timestamp-millis", MS, MORNING),
    ("long", "timestamp-micros", MS * 1000, MORNING),
    ("long", "timestamp-nanos", MS * 1_000_000, MORNING),
    ("long", "local-timestamp-millis", MS, MORNING),
    ("long", "local-timestamp-micros", MS * 1000, MORNING),
    ("long", "local-timestamp-nanos", MS * 1_000_000, MORNING),
    ("int", "time-millis", OF_DAY, None),
    ("long", "time-micros", OF_DAY * 1000, None),
]
"""The same by Avro's logical types."""


@pytest.fixture(scope="module")
def registry() -> Iterator[SchemaRegistry]:
    with serving() as server:
        yield server


def hours_of(converter: str, value: bytes, *, times: str, format: str, url: str, field: str = "at", **more: Any) -> Any:
    """The hours of the directories of a record's files; None for a dead letter. And whether all is verified."""
    world = VerifiedTopic(
        format={"type": format},
        converter={"value": converter, "times": times, **({"registry": {"url": url}} if url else {})},
        layout={
            "template": "{topic}/{time:yyyy-MM-dd'T'HH}/{partition}-{offset}",
            "time": {"source": "field", "field": field},
        },
        errors={"tolerance": "all"},
        **more,
    )
    stage_records(world, [(None, value, [])])
    report = world.verify()
    assert report.differences == ()
    if report.dead_letters:
        return None
    (key,) = (key for key in world.store.objects if "/_" not in key and not key.startswith(".") and TOPIC in key)
    return key.split(f"{TOPIC}/")[1].split("/")[0]


TOPIC = "verified"
EACH = [
    ("connect", "parquet"),
    ("exact", "parquet"),
    ("connect", "json"),
    ("exact", "avro"),
]


@pytest.mark.parametrize(("times", "format"), EACH)
@pytest.mark.parametrize(("type", "name", "value", "hour"), NAMED)
def test_a_time_in_connect_s_json_chooses_the_hour_by_its_type(
    type: str, name: str | None, value: Any, hour: str, times: str, format: str
) -> None:
    field = {"type": type, "field": "at", "optional": True, **({"name": name} if name else {})}
    schema = {"type": "struct", "optional": False, "fields": [field]}
    envelope = json.dumps({"schema": schema, "payload": {"at": value}}).encode()
    assert hours_of("connect_json", envelope, times=times, format=format, url="") == hour


@pytest.mark.parametrize(("times", "format"), EACH)
@pytest.mark.parametrize(("type", "name", "value", "hour"), NAMED)
def test_a_time_of_a_json_schema_chooses_the_hour_by_its_type(
    registry: SchemaRegistry, type: str, name: str | None, value: Any, hour: str, times: str, format: str
) -> None:
    kind = {"string": "string", "double": "number"}.get(type, "integer")
    field = {
        "type": kind,
        **({"connect.type": type} if type.startswith("int") else {}),
        **({"title": name} if name else {}),
    }
    number = registry.add({"type": "object", "properties": {"at": field}}, "JSON")
    value = framed(number, json.dumps({"at": value}).encode())
    assert hours_of("json_schema", value, times=times, format=format, url=registry.url) == hour


@pytest.mark.parametrize(("times", "format"), EACH)
@pytest.mark.parametrize(("type", "name", "value", "hour"), LOGICAL)
def test_a_time_of_avro_chooses_the_hour_by_its_type(
    registry: SchemaRegistry, type: str, name: str, value: int, hour: str, times: str, format: str
) -> None:
    number = registry.add(record(("at", {"type": type, "logicalType": name})))
    data = framed(number, datum(record(("at", type)), {"at": value}))
    assert hours_of("avro", data, times=times, format=format, url=registry.url) == hour


@pytest.mark.parametrize(("times", "format"), EACH)
@pytest.mark.parametrize(("type", "name", "value", "hour"), NAMED[3:9])
def test_a_field_of_avro_with_debezium_s_name(
    registry: SchemaRegistry, type: str, name: str, value: int, hour: str, times: str, format: str
) -> None:
    physical = {"int32": "int", "int64": "long"}[type]
    number = registry.add(record(("at", {"type": physical, "connect.name": name})))
    data = framed(number, datum(record(("at", physical)), {"at": value}))
    assert hours_of("avro", data, times=times, format=format, url=registry.url) == hour


@pytest.mark.parametrize(("times", "format"), EACH)
def test_a_timestamp_of_protobuf_chooses_the_hour(registry: SchemaRegistry, times: str, format: str) -> None:
    text = (
        'syntax = "proto3"; import "google/protobuf/timestamp.proto"; message M { google.protobuf.Timestamp at = 1; }'
    )
    moment = Timestamp(seconds=MS // 1000).SerializeToString()
    value = framed(registry.add(text, "PROTOBUF"), b"\0\x0a" + bytes([len(moment)]) + moment)
    assert hours_of("protobuf", value, times=times, format=format, url=registry.url) == MORNING


def test_a_field_within_structs_lists_and_maps(registry: SchemaRegistry) -> None:
    micros = {"type": "long", "logicalType": "timestamp-micros"}
    rows = {"type": "array", "items": record(("at", micros), name="Row")}
    number = registry.add(record(("rows", rows)))
    plain = {"type": "array", "items": record(("at", "long"), name="Row")}
    data = framed(number, datum(record(("rows", plain)), {"rows": [{"at": 0}, {"at": MS * 1000}]}))
    assert hours_of("avro", data, times="connect", format="parquet", url=registry.url, field="rows.1.at") == MORNING


def test_records_of_one_batch_keep_the_unit_of_their_schema(registry: SchemaRegistry) -> None:
    numbers = [
        registry.add(record(("at", {"type": "long", "logicalType": name})))
        for name in ("timestamp-micros", "timestamp-millis")
    ]
    world = VerifiedTopic(
        format={"type": "json"},
        converter={"value": "avro", "registry": {"url": registry.url}},
        layout={"template": "{topic}/{time:yyyy}/{partition}-{offset}", "time": {"source": "field", "field": "at"}},
    )
    values = [datum(record(("at", "long")), {"at": at}) for at in (MS * 1000, MS)]
    stage_records(world, [(None, framed(number, value), []) for number, value in zip(numbers, values, strict=True)])
    assert world.verify().differences == ()
    assert {key.split("/")[-2] for key in world.store.objects if "/0-" in key} == {"2024"}


def test_the_unit_stays_behind_a_transform_of_another_field(registry: SchemaRegistry) -> None:
    step = {"type": "org.apache.kafka.connect.transforms.InsertField$Value", "static.field": "x", "static.value": "y"}
    number = registry.add(record(("at", {"type": "long", "logicalType": "timestamp-micros"})))
    data = framed(number, datum(record(("at", "long")), {"at": MS * 1000}))
    transforms = [{"type": step.pop("type"), "options": step}]
    found = hours_of("avro", data, times="connect", format="parquet", url=registry.url, transforms=transforms)
    assert found == MORNING
