"""What Apicurio's own serializers in Java write, with a real registry, is read as what was given to them."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from s3lake.records.convert.conversion import Conversion
from s3lake.records.convert.convert_batch import ConvertedBatch, convert_batch
from s3lake.records.schema.registry.registry_connection import Connection
from s3lake_tests.records.convert.batches import batch
from s3lake_tests.records.schema.registry.apicurio import Apicurio, run_serializers, serializer_settings

pytestmark = [pytest.mark.slow("an oracle: Java's own serializers"), pytest.mark.usefixtures("jvm")]


@pytest.fixture(scope="module")
def java() -> Iterator[Any]:
    with run_serializers() as classes:
        yield classes


def read(apicurio: Apicurio, converter: str, message: bytes) -> ConvertedBatch:
    connection = Connection((apicurio.url,))
    return convert_batch(Conversion("string", converter, "parquet", "skip", registry=connection), batch(message), {})


def rows(converted: ConvertedBatch) -> list[Any]:
    assert converted.refused == {}
    return [row for part in converted.parts for row in part.streams["data"].to_pylist()]


def test_avro_of_apicurios_java_serializer_is_read(apicurio: Apicurio, java: Any) -> None:
    fields = [{"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string"], "default": None}]
    schema = {"type": "record", "name": "Order", "namespace": "com.acme", "fields": fields}
    parsed = getattr(java.org.apache.avro, "Schema$Parser")().parse(json.dumps(schema))
    order = getattr(java.org.apache.avro.generic, "GenericData$Record")(parsed)
    order.put("id", java.java.lang.Long.valueOf("1099511627776"))
    order.put("note", "é")
    serializer = java.io.apicurio.registry.serde.avro.AvroKafkaSerializer()
    serializer.configure(serializer_settings(apicurio), False)
    message = bytes(serializer.serialize("java-avro", order))
    assert rows(read(apicurio, "avro", message)) == [{"id": 2**40, "note": "é"}]


def test_json_schema_of_apicurios_java_serializer_is_read(apicurio: Apicurio, java: Any) -> None:
    properties = {"id": {"type": "integer"}, "note": {"type": "string"}}
    apicurio.register(
        "java-json", json.dumps({"title": "Order", "type": "object", "properties": properties}), kind="JSON"
    )
    latest = {"apicurio.registry.find-latest": True, "apicurio.registry.artifact.artifact-id": "java-json"}
    serializer = java.io.apicurio.registry.serde.jsonschema.JsonSchemaKafkaSerializer()
    serializer.configure({**serializer_settings(apicurio), **latest, "apicurio.registry.auto-register": False}, False)
    order = java.java.util.HashMap()
    order.put("id", 7)
    order.put("note", "é")
    message = bytes(serializer.serialize("orders", order))
    assert rows(read(apicurio, "json_schema", message)) == [{"id": 7, "note": "é"}]


def test_avro_with_a_reference_of_apicurios_java_serializer_is_read(apicurio: Apicurio, java: Any) -> None:
    money = {"type": "record", "name": "Money", "namespace": "com.acme", "fields": [{"name": "units", "type": "long"}]}
    paid = {"type": "record", "name": "Paid", "namespace": "com.acme", "fields": [{"name": "price", "type": "Money"}]}
    apicurio.register("java-money", json.dumps(money))
    reference = {"name": "com.acme.Money", "subject": "java-money", "version": 1}
    apicurio.register("java-paid", json.dumps(paid), [reference])
    parser = getattr(java.org.apache.avro, "Schema$Parser")()
    inner = parser.parse(json.dumps(money))
    outer = parser.parse(json.dumps(paid))
    make = getattr(java.org.apache.avro.generic, "GenericData$Record")
    price, order = make(inner), make(outer)
    price.put("units", java.java.lang.Long.valueOf("5"))
    order.put("price", price)
    latest = {"apicurio.registry.find-latest": True, "apicurio.registry.artifact.artifact-id": "java-paid"}
    serializer = java.io.apicurio.registry.serde.avro.AvroKafkaSerializer()
    serializer.configure({**serializer_settings(apicurio), **latest, "apicurio.registry.auto-register": False}, False)
    message = bytes(serializer.serialize("orders", order))
    assert rows(read(apicurio, "avro", message)) == [{"price": {"units": 5}}]


def test_json_schema_with_a_reference_of_apicurios_java_serializer_is_read(apicurio: Apicurio, java: Any) -> None:
    money = {"$id": "http://acme.com/money.json", "type": "object", "properties": {"units": {"type": "integer"}}}
    paid = {"title": "Paid", "type": "object", "properties": {"price": {"$ref": "http://acme.com/money.json"}}}
    apicurio.register("java-money-json", json.dumps(money), kind="JSON")
    reference = {"name": "http://acme.com/money.json", "subject": "java-money-json", "version": 1}
    apicurio.register("java-paid-json", json.dumps(paid), [reference], kind="JSON")
    latest = {"apicurio.registry.find-latest": True, "apicurio.registry.artifact.artifact-id": "java-paid-json"}
    serializer = java.io.apicurio.registry.serde.jsonschema.JsonSchemaKafkaSerializer()
    serializer.configure({**serializer_settings(apicurio), **latest, "apicurio.registry.auto-register": False}, False)
    price, order = java.java.util.HashMap(), java.java.util.HashMap()
    price.put("units", 5)
    order.put("price", price)
    message = bytes(serializer.serialize("orders", order))
    assert rows(read(apicurio, "json_schema", message)) == [{"price": {"units": 5}}]


def test_their_protobuf_is_framed_in_a_way_of_its_own_and_refused_as_that(apicurio: Apicurio, java: Any) -> None:
    serializer = java.io.apicurio.registry.serde.protobuf.ProtobufKafkaSerializer()
    serializer.configure(serializer_settings(apicurio), False)
    message = bytes(
        serializer.serialize("java-proto", java.com.google.protobuf.Duration.newBuilder().setSeconds(5).build())
    )
    converted = read(apicurio, "protobuf", message)
    reason = "-59 is not an index of a message: Confluent's serializers write them between the schema's id and the data"
    assert converted.refused == {0: f"{reason}; write values with one of them"}
