"""What confluent-kafka's own serializers write, with a real registry, is read as what was given to them."""

import datetime
import importlib
import json
import warnings
from decimal import Decimal
from typing import Any

import pytest
from google.protobuf import message_factory

from s3lake.records.convert.conversion import Conversion
from s3lake.records.convert.convert_batch import ConvertedBatch, convert_batch
from s3lake.records.schema.columns.types import to_document
from s3lake.records.schema.protobuf import compiler
from s3lake.records.schema.registry.registry_connection import Connection
from s3lake_tests.kit.avro_messages import logical, record
from s3lake_tests.records.convert.batches import batch
from s3lake_tests.records.schema.registry.apicurio import Apicurio
from s3lake_tests.records.schema.registry.server import framed

PROTO = """syntax = "proto3"; package com.acme;
message Other { string name = 1; }
message Order { int64 id = 1; message Line { string sku = 1; } repeated Line lines = 2; }"""


def confluent(module: str = "") -> Any:
    """A module of their client, which is imported where it is needed: it takes half a second."""
    with warnings.catch_warnings(record=True):  # of its own client of HTTP
        return importlib.import_module(f"confluent_kafka.schema_registry{module}")


def client(apicurio: Apicurio) -> Any:
    # Apicurio does not answer some of the requests that it logs as 404: they are asked again.
    return confluent().SchemaRegistryClient({"url": apicurio.url, "timeout": 10})


def read(apicurio: Apicurio, converter: str, serializer: Any, value: Any) -> ConvertedBatch:
    """What is made of a value that a serializer wrote for a topic of its own."""
    from confluent_kafka.serialization import MessageField, SerializationContext

    message = serializer(value, SerializationContext(f"of-{converter}", MessageField.VALUE))
    connection = Connection((apicurio.url,), exact=True)
    found = convert_batch(Conversion("string", converter, "parquet", "skip", registry=connection), batch(message), {})
    assert found.refused == {}
    return found


def rows(found: ConvertedBatch) -> list[Any]:
    return [row for part in found.parts for row in part.streams["data"].to_pylist()]


def test_avro_of_confluents_serializer_is_read(apicurio: Apicurio) -> None:
    price, at = logical("bytes", "decimal", precision=9, scale=2), logical("long", "timestamp-micros")
    schema = record(("id", "long"), ("price", price), ("at", at), ("note", ["null", "string"]))
    moment = datetime.datetime(2026, 11, 20, 8, 15, 0, 123456, datetime.timezone.utc)
    order = {"id": 2**40, "price": Decimal("12.34"), "at": moment, "note": None}
    serializer = confluent(".avro").AvroSerializer(client(apicurio), json.dumps(schema))
    found = read(apicurio, "avro", serializer, order)
    assert rows(found) == [order]
    assert to_document(found.seen) == {
        "id": "int64",
        "price": "decimal(9,2)",
        "at": "timestamp_us",
        "note": "string",
    }


@pytest.mark.slow("another format on a real registry")
def test_json_schema_of_confluents_serializer_is_read(apicurio: Apicurio) -> None:
    properties = {"id": {"type": "integer"}, "note": {"type": "string"}}
    schema = {"title": "Order", "type": "object", "properties": properties}
    serializer = confluent(".json_schema").JSONSerializer(json.dumps(schema), client(apicurio))
    assert rows(read(apicurio, "json_schema", serializer, {"id": 7, "note": "é"})) == [{"id": 7, "note": "é"}]


@pytest.mark.slow("another format on a real registry")
def test_protobuf_of_confluents_serializer_is_read_when_the_message_is_not_the_first_of_its_file(
    apicurio: Apicurio,
) -> None:
    order = message_factory.GetMessageClass(compiler.compile_message(PROTO, {}, (1,)))
    settings = {"use.deprecated.format": False}
    serializer = confluent(".protobuf").ProtobufSerializer(order, client(apicurio), settings)
    found = read(apicurio, "protobuf", serializer, order(id=5, lines=[{"sku": "a"}]))
    assert rows(found) == [{"id": 5, "lines": [{"sku": "a"}]}]


@pytest.mark.slow("a real registry")
def test_a_schema_with_references_is_read_from_a_real_registry(apicurio: Apicurio) -> None:
    apicurio.register("order", json.dumps(record(("id", "int"))))
    basket = {"type": "record", "name": "Basket", "fields": [{"name": "order", "type": "com.acme.Order"}]}
    reference = {"name": "com.acme.Order", "subject": "order", "version": 1}
    message = framed(apicurio.register("basket", json.dumps(basket), [reference]), b"\x0a")
    by = Conversion("string", "avro", "parquet", "skip", registry=Connection((apicurio.url,)))
    assert rows(convert_batch(by, batch(message), {})) == [{"order": {"id": 5}}]


MONEY = record(("units", "long"), ("currency", "string"), name="com.acme.Money")


@pytest.mark.slow("a real registry")
def test_avro_with_a_reference_of_confluents_serializer_is_read(apicurio: Apicurio) -> None:
    apicurio.register("money-of-avro", json.dumps(MONEY))
    paid = {"type": "record", "name": "Paid", "fields": [{"name": "price", "type": "com.acme.Money"}]}
    names = confluent()
    reference = names.SchemaReference("com.acme.Money", "money-of-avro", 1)
    schema = names.Schema(json.dumps(paid), "AVRO", [reference])
    serializer = confluent(".avro").AvroSerializer(client(apicurio), schema)
    price = {"units": 5, "currency": "EUR"}
    assert rows(read(apicurio, "avro", serializer, {"price": price})) == [{"price": price}]


@pytest.mark.slow("a real registry")
def test_json_schema_with_a_reference_of_confluents_serializer_is_read(apicurio: Apicurio) -> None:
    money = {"type": "object", "properties": {"units": {"type": "integer"}, "currency": {"type": "string"}}}
    apicurio.register("money-of-json", json.dumps({"$id": "money.json", **money}), kind="JSON")
    paid = {"title": "Paid", "type": "object", "properties": {"price": {"$ref": "money.json"}}}
    names = confluent()
    schema = names.Schema(json.dumps(paid), "JSON", [names.SchemaReference("money.json", "money-of-json", 1)])
    serializer = confluent(".json_schema").JSONSerializer(schema, client(apicurio))
    price = {"units": 5, "currency": "EUR"}
    assert rows(read(apicurio, "json_schema", serializer, {"price": price})) == [{"price": price}]


@pytest.mark.slow("a real registry")
def test_protobuf_with_a_reference_of_confluents_serializer_is_read(apicurio: Apicurio) -> None:
    money = 'syntax = "proto3"; package com.acme; message Money { int64 units = 1; string currency = 2; }'
    paid = 'syntax = "proto3"; package com.acme; import "money.proto"; message Paid { Money price = 1; }'
    message = message_factory.GetMessageClass(compiler.compile_message(paid, {"money.proto": money}, (0,)))
    settings = {"use.deprecated.format": False}
    serializer = confluent(".protobuf").ProtobufSerializer(message, client(apicurio), settings)
    found = read(apicurio, "protobuf", serializer, message(price={"units": 5, "currency": "EUR"}))
    assert rows(found) == [{"price": {"units": 5, "currency": "EUR"}}]
