"""Records of confluent-kafka's serializers that name their schemas in headers: they land, and verifying agrees."""

import importlib
import io
import json
import warnings
from typing import Any
from uuid import UUID

import pyarrow.parquet as pq
import pytest
from google.protobuf import message_factory

from s3lake.records.schema.protobuf import compiler
from s3lake_tests.kit.avro_messages import record
from s3lake_tests.lake.verify.staged_records import Record, stage_records
from s3lake_tests.lake.verify.world import VerifiedTopic, build_registered_topic
from s3lake_tests.records.schema.registry.server import SchemaRegistry

AVRO = record(("id", "long"), ("note", ["null", "string"]))
JSON = {"title": "Order", "properties": {"id": {"type": "integer"}, "note": {"type": "string"}}}
PROTO = 'syntax = "proto3"; message Other { } message Order { int64 id = 1; string note = 2; }'
ORDERS = [{"id": 1, "note": "é"}, {"id": 2**40, "note": "x"}]


def confluent(module: str = "") -> Any:
    """A module of their client, which is imported where it is needed: it takes half a second."""
    with warnings.catch_warnings(record=True):  # of its own client of HTTP
        return importlib.import_module(f"confluent_kafka.schema_registry{module}")


def serialize(registry: SchemaRegistry, converter: str, *, in_header: bool) -> list[Record]:
    """Orders as a serializer writes them for keys and for values; the registry has its schemas."""
    from confluent_kafka.serialization import MessageField, SerializationContext

    names = confluent()
    client = names.SchemaRegistryClient.new_client({"url": "mock://"})
    settings: dict[str, Any] = {"schema.id.serializer": names.header_schema_id_serializer} if in_header else {}
    make: Any = dict
    if converter == "avro":
        serializer = confluent(".avro").AvroSerializer(client, json.dumps(AVRO), conf=settings)
    elif converter == "json_schema":
        serializer = confluent(".json_schema").JSONSerializer(json.dumps(JSON), client, conf=settings)
    else:
        make = message_factory.GetMessageClass(compiler.compile_message(PROTO, {}, (1,)))
        settings["use.deprecated.format"] = False
        serializer = confluent(".protobuf").ProtobufSerializer(make, client, conf=settings)
    written: list[Record] = []
    for order in ORDERS:
        headers: list[tuple[str, bytes | None]] = [("trace", b"t")]
        key, value = (
            serializer(make(**order), SerializationContext("orders", field, headers))
            for field in (MessageField.KEY, MessageField.VALUE)
        )
        written.append((key, value, headers))
    for subject in client.get_subjects():
        registered = client.get_latest_version(subject)
        kind = {"avro": "AVRO", "json_schema": "JSON", "protobuf": "PROTOBUF"}[converter]
        registry.guids[UUID(registered.guid)] = registry.add(registered.schema.schema_str, kind)
    return written


def land(registry: SchemaRegistry, converter: str, records: list[Record], **sink: Any) -> VerifiedTopic:
    made = build_registered_topic(registry, sink, {"key": converter, "value": converter})
    stage_records(made, records)
    return made


def rows(made: VerifiedTopic) -> list[Any]:
    """The rows of the Parquet files, in the order of their names."""
    files = sorted((key, body) for key, (body, *_) in made.store.objects.items() if key.endswith(".parquet"))
    return [row for _, body in files for row in pq.read_table(io.BytesIO(body)).to_pylist()]


@pytest.mark.parametrize("converter", ["avro", "json_schema", "protobuf"])
def test_values_land_as_columns(registry: SchemaRegistry, converter: str) -> None:
    made = land(registry, converter, serialize(registry, converter, in_header=True), format={"type": "parquet"})
    assert rows(made) == ORDERS
    assert made.verify().clean


SINKS: list[dict[str, Any]] = [
    {"format": {"type": "json"}, "envelope": {"style": "record", "fields": ["key", "value", "headers"]}},
    {"format": {"type": "avro"}, "sidecars": {"keys": "avro"}},
    {"format": {"type": "parquet"}, "sidecars": {"keys": "bytes"}},
    {"format": {"type": "bytes"}},
    {
        "format": {"type": "parquet"},
        "transforms": [{"type": "DropHeaders", "options": {"headers": "__key_schema_id,__value_schema_id"}}],
    },
    {
        "format": {"type": "avro"},
        "transforms": [{"type": "InsertField$Value", "options": {"offset.field": "at"}}],
    },
    {"format": {"type": "json"}, "layout": {"template": "{field:id}/{partition}-{offset}"}},
]


@pytest.mark.parametrize("sink", SINKS)
@pytest.mark.parametrize("converter", ["avro", "json_schema", "protobuf"])
def test_records_with_schemas_in_headers_land_as_verifying_expects(
    registry: SchemaRegistry, converter: str, sink: dict[str, Any]
) -> None:
    records = serialize(registry, converter, in_header=True)
    report = land(registry, converter, records, **sink).verify()
    assert (report.differences, report.landed, report.dead_letters) == ((), 2, 0)


@pytest.mark.parametrize("converter", ["avro", "json_schema", "protobuf"])
def test_a_changed_value_is_found(registry: SchemaRegistry, converter: str) -> None:
    made = land(registry, converter, serialize(registry, converter, in_header=True), format={"type": "parquet"})
    (stamp, _), (_, other) = made.log.records[0][0], made.log.records[0][1]
    made.log.records[0][0] = stamp, other
    assert not made.verify().clean
