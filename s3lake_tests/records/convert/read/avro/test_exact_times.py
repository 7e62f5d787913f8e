"""Times of Avro that Kafka Connect does not know: numbers as it has them, or times in their own precision."""

import json
from dataclasses import replace
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from s3lake.records.convert.conversion import Conversion
from s3lake.records.convert.convert_batch import ConvertedBatch, convert_batch
from s3lake_tests.kit.avro_messages import datum, logical, record
from s3lake_tests.lake.verify.staged_records import stage_records
from s3lake_tests.lake.verify.world import VerifiedTopic
from s3lake_tests.records.convert.batches import batch
from s3lake_tests.records.convert.read.avro.avro_files import read_avro_schema, write_avro_file
from s3lake_tests.records.convert.read.avro.one_by_one import one_by_one
from s3lake_tests.records.schema.registry.server import SchemaRegistry, framed, serving

US = 1_795_162_500_123_456
NS = US * 1000 + 789


class Time(NamedTuple):
    schema: dict[str, Any]
    number: int
    column: str
    arrow: pa.DataType


def debezium(physical: str, name: str) -> dict[str, Any]:
    return {"type": physical, "connect.version": 1, "connect.name": f"io.debezium.time.{name}"}


TIMES = [
    Time(logical("long", "timestamp-micros"), US, "timestamp_us", pa.timestamp("us", "UTC")),
    Time(logical("long", "local-timestamp-micros"), US, "timestamp_us", pa.timestamp("us", "UTC")),
    Time(logical("long", "timestamp-nanos"), NS, "timestamp_ns", pa.timestamp("ns", "UTC")),
    Time(logical("long", "local-timestamp-nanos"), NS, "timestamp_ns", pa.timestamp("ns", "UTC")),
    Time(logical("long", "time-micros"), 29_700_123_456, "time_us", pa.time64("us")),
    Time(debezium("long", "MicroTimestamp"), US, "timestamp_us", pa.timestamp("us", "UTC")),
    Time(debezium("long", "NanoTimestamp"), NS, "timestamp_ns", pa.timestamp("ns", "UTC")),
    Time(debezium("long", "Timestamp"), US // 1000, "timestamp", pa.timestamp("ms", "UTC")),
    Time(debezium("long", "MicroTime"), 29_700_123_456, "time_us", pa.time64("us")),
    Time(debezium("int", "Time"), 29_700_123, "time", pa.time32("ms")),
    Time(debezium("int", "Date"), 20_777, "date", pa.date32()),
]
LOGICAL = {
    "date": "date",
    "time": "time-millis",
    "time_us": "time-micros",
    "timestamp": "timestamp-millis",
    "timestamp_us": "timestamp-micros",
    "timestamp_ns": "timestamp-nanos",
}


def landed(registry: SchemaRegistry, format: str, *values: bytes, exact: bool = True) -> ConvertedBatch:
    connection = replace(registry.connection, exact=exact)
    return convert_batch(Conversion("string", "avro", format, "write", registry=connection), batch(*values), {})


def message(registry: SchemaRegistry, time: Time) -> bytes:
    return framed(registry.add(record(("a", time.schema))), raw(time))


def raw(time: Time) -> bytes:
    return datum(record(("a", time.schema["type"])), {"a": time.number})


@pytest.mark.parametrize("time", TIMES, ids=lambda time: time.schema.get("logicalType") or time.schema["connect.name"])
def test_an_exact_time_has_its_precision_in_files_and_is_a_number_in_json_and_to_connect(
    registry: SchemaRegistry, time: Time
) -> None:
    value = message(registry, time)
    found = landed(registry, "parquet", value)
    with one_by_one():
        other = landed(registry, "parquet", value)
    for read in (found, other):
        assert (read.refused, {name: str(type) for name, type in read.seen.items()}) == ({}, {"a": time.column})
        (cells,) = read.parts[0].streams["data"].columns
        assert cells.type == time.arrow
        assert cells.cast(pa.int32() if time.arrow.bit_width == 32 else pa.int64()).to_pylist() == [time.number]

    (part,) = landed(registry, "avro", value).parts
    (field,) = read_avro_schema(part.streams["data"])["fields"]
    branches = field["type"] if isinstance(field["type"], list) else [field["type"]]
    assert branches[-1] == time.schema | {"logicalType": LOGICAL[time.column]}
    assert raw(time) in write_avro_file(part.streams["data"])

    (text,) = landed(registry, "json", value).parts[0].streams["data"].to_pylist()
    assert json.loads(text) == {"a": time.number}
    plain = landed(registry, "parquet", value, exact=False)
    assert str(plain.seen["a"]) == ("int32" if time.schema["type"] == "int" else "int64")


def test_a_time_outside_of_its_day_is_refused(registry: SchemaRegistry) -> None:
    value = message(registry, Time(logical("long", "time-micros"), 86_400_000_000, "time_us", pa.time64("us")))
    assert "field 'a' does not fit time_us" in landed(registry, "parquet", value).refused[0]


@pytest.mark.parametrize("format", ["parquet", "avro", "csv"])
def test_landed_exact_times_are_verified(format: str) -> None:
    with serving() as registry:
        schema = record(*((f"a{at}", time.schema) for at, time in enumerate(TIMES)))
        plain = record(*((f"a{at}", time.schema["type"]) for at, time in enumerate(TIMES)))
        values = {f"a{at}": time.number for at, time in enumerate(TIMES)}
        world = VerifiedTopic(
            format={"type": format},
            converter={"value": "avro", "registry": {"url": registry.url, "times": "exact"}},
            nulls="write",
        )
        stage_records(world, [(None, framed(registry.add(schema), datum(plain, values)), [])])
        report = world.verify()
        assert (report.differences, report.landed, report.dead_letters) == ((), 1, 0)


TYPED = [
    ("int32", "Date", 20_777, "date"),
    ("int32", "Time", 29_700_123, "time"),
    ("int64", "MicroTime", 29_700_123_456, "time_us"),
    ("int64", "Timestamp", US // 1000, "timestamp"),
    ("int64", "MicroTimestamp", US, "timestamp_us"),
    ("int64", "NanoTimestamp", NS, "timestamp_ns"),
    ("string", "ZonedTimestamp", "2026-11-20T08:15:00.123456+01:00", "string"),
    ("string", "ZonedTime", "08:15:00.123456+01:00", "string"),
]
"""Debezium's types: the types of Connect, a value, and the column."""
FIELDS = [
    {"type": type, "field": f"a{at}", "name": f"io.debezium.time.{name}", "version": 1, "optional": True}
    for at, (type, name, _, _) in enumerate(TYPED)
]
VALUES = {f"a{at}": value for at, (_, _, value, _) in enumerate(TYPED)}
EXACT = {f"a{at}": column for at, (*_, column) in enumerate(TYPED)}
ENVELOPE = json.dumps({"schema": {"type": "struct", "fields": FIELDS}, "payload": VALUES}).encode()


def json_schema() -> dict[str, Any]:
    """Debezium's types as Confluent's JsonSchemaConverter registers them."""
    kinds = {"int32": "integer", "int64": "integer", "string": "string"}
    properties = {
        field["field"]: {"type": kinds[field["type"]], "title": field["name"], "connect.type": field["type"]}
        for field in FIELDS
    }
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize("exact", [True, False])
def test_debezium_s_times_in_connect_s_json_are_exact_when_asked_for(exact: bool) -> None:
    conversion = Conversion("string", "connect_json", "parquet", "write", exact=exact)
    seen = convert_batch(conversion, batch(ENVELOPE), {}).seen
    numbers = {f"a{at}": type for at, (type, *_) in enumerate(TYPED)}
    assert {name: str(type) for name, type in seen.items()} == (EXACT if exact else numbers)


def test_debezium_s_times_in_a_json_schema_are_exact_when_asked_for(registry: SchemaRegistry) -> None:
    value = framed(registry.add(json_schema(), "JSON"), json.dumps(VALUES).encode())
    conversion = Conversion("string", "json_schema", "parquet", "write", registry=registry.connection, exact=True)
    assert {name: str(type) for name, type in convert_batch(conversion, batch(value), {}).seen.items()} == EXACT


def test_a_time_of_connect_s_json_outside_of_its_day_is_refused() -> None:
    field = {"type": "int64", "field": "a", "name": "io.debezium.time.MicroTime"}
    value = {"schema": {"type": "struct", "fields": [field]}, "payload": {"a": 86_400_000_000}}
    conversion = Conversion("string", "connect_json", "parquet", "write", exact=True)
    assert (
        "Expected `int` <= 86399999999" in convert_batch(conversion, batch(json.dumps(value).encode()), {}).refused[0]
    )


@pytest.mark.parametrize(
    ("format", "side"),
    [
        (format, side)
        for format in ("parquet", "avro", "csv", "json")
        for side in ("value", "key")
        if (format, side) != ("csv", "key")
    ],
)
@pytest.mark.parametrize("converter", ["connect_json", "json_schema"])
def test_debezium_s_types_of_a_side_are_verified(converter: str, format: str, side: str) -> None:
    with serving() as registry:
        number = registry.add(json_schema(), "JSON")
        data = ENVELOPE if converter == "connect_json" else framed(number, json.dumps(VALUES).encode())
        key, value = (data, b"x") if side == "key" else (None, data)
        world = VerifiedTopic(
            format={"type": format},
            converter={
                "key": converter if side == "key" else "string",
                "value": converter if side == "value" else "string",
                "registry": {"url": registry.url},
                "times": "exact",
            },
            nulls="write",
            **({"envelope": {"fields": ["key", "value"]}} if side == "key" else {}),
        )
        stage_records(world, [(key, value, [])])
        report = world.verify()
        assert (report.differences, report.landed, report.dead_letters) == ((), 1, 0)


MOMENTS = """syntax = "proto3";
import "google/protobuf/timestamp.proto";
message M {
  google.protobuf.Timestamp at = 1;
  repeated google.protobuf.Timestamp all = 2;
  map<string, google.protobuf.Timestamp> by = 3;
  oneof one { google.protobuf.Timestamp of = 4; }
}"""


def moments(seconds: int, nanos: int) -> bytes:
    moment = Timestamp(seconds=seconds, nanos=nanos).SerializeToString()
    held = bytes([len(moment)]) + moment
    entry = b"\x0a\x01k\x12" + held
    return b"\0\x0a" + held + b"\x12" + held + b"\x1a" + bytes([len(entry)]) + entry + b"\x22" + held


@pytest.mark.parametrize("exact", [True, False])
def test_timestamps_of_protobuf_keep_their_nanoseconds(registry: SchemaRegistry, exact: bool) -> None:
    value = framed(registry.add(MOMENTS, "PROTOBUF"), moments(NS // 10**9, NS % 10**9))
    connection = replace(registry.connection, exact=exact)
    (part,) = convert_batch(
        Conversion("string", "protobuf", "parquet", "write", registry=connection), batch(value), {}
    ).parts
    type = pa.timestamp("ns" if exact else "ms", "UTC")
    expected = pa.scalar(NS if exact else NS // 10**6, pa.int64()).cast(type)
    row = part.streams["data"].slice(0, 1)
    struct = row.column("one_0")
    cells = [row.column("at")[0], row.column("all")[0][0], row.column("by").items[0], struct.field(0)[0]]
    assert [(cell.type, cell) for cell in cells] == [(type, expected)] * 4


def test_a_timestamp_of_protobuf_beyond_nanoseconds_is_refused_with_the_reason(registry: SchemaRegistry) -> None:
    value = framed(registry.add(MOMENTS, "PROTOBUF"), moments(-62_135_596_800, 0))
    refused = convert_batch(
        Conversion("string", "protobuf", "parquet", "write", registry=replace(registry.connection, exact=True)),
        batch(value),
        {},
    ).refused
    assert "is not between 1677 and 2262" in refused[0]


@pytest.mark.parametrize("format", ["parquet", "avro", "csv", "json"])
@pytest.mark.parametrize("times", ["exact", "connect"])
def test_timestamps_of_protobuf_are_verified(format: str, times: str) -> None:
    text, data = MOMENTS, moments(NS // 10**9, NS % 10**9)
    if format == "csv":  # it has no lists and no maps
        text = MOMENTS[: MOMENTS.index("  repeated")] + "}"
        data = data[: 3 + data[2]]
    with serving() as registry:
        value = framed(registry.add(text, "PROTOBUF"), data)
        world = VerifiedTopic(
            format={"type": format},
            converter={"value": "protobuf", "registry": {"url": registry.url}, "times": times},
        )
        stage_records(world, [(None, value, [])])
        report = world.verify()
        assert (report.differences, report.landed, report.dead_letters) == ((), 1, 0)
