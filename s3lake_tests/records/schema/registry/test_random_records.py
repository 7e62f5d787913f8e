"""Random records with references, written by confluent-kafka's and Apicurio's own serializers, land as they were given.

The registry is Apicurio's. Each case is a record; what it was is compared with what a Parquet file of it has.
"""

import importlib
import io
import itertools
import json
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from random import Random
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_writer
from google.protobuf import message_factory

from s3lake.records.convert.conversion import Conversion
from s3lake.records.convert.convert_batch import convert_batch
from s3lake.records.schema.protobuf import compiler
from s3lake.records.schema.registry.registry_connection import Connection
from s3lake_tests.records.convert.batches import batch
from s3lake_tests.records.schema.registry import random_records
from s3lake_tests.records.schema.registry.apicurio import Apicurio, run_serializers, serializer_settings
from s3lake_tests.records.schema.registry.random_records import MadeSchema

RECORDS = 10  # of each schema
_subjects = itertools.count()
Write = Callable[[Any], bytes]


def confluent(module: str = "") -> Any:
    with warnings.catch_warnings(record=True):  # of its own client of HTTP
        return importlib.import_module(f"confluent_kafka.schema_registry{module}")


def register_references(apicurio: Apicurio, made: MadeSchema, kind: str) -> list[dict[str, Any]]:
    """Register what a schema refers to. Return its references: each subject has the ones before it, too."""
    known: list[dict[str, Any]] = []
    for name, schema in made.references.items():
        subject, written = f"random-{next(_subjects)}", schema if isinstance(schema, str) else json.dumps(schema)
        needed = [one for one in known if f'"{one["name"]}"' in written]
        apicurio.register(subject, written, needed, kind)
        known.append({"name": name, "subject": subject, "version": 1})
    return known


def confluents_schema(apicurio: Apicurio, made: MadeSchema, kind: str) -> Any:
    """Return a schema with its references as confluent-kafka has one."""
    module = confluent()
    known = [module.SchemaReference(**one) for one in register_references(apicurio, made, kind)]
    written = json.dumps(made.schema)
    if kind == "AVRO":  # its parser needs all references of references
        return module.Schema(written, kind, known)
    return module.Schema(written, kind, [one for one in known if f'"{one.name}"' in written])


def in_topic(serializer: Any) -> Write:
    from confluent_kafka.serialization import MessageField, SerializationContext

    context = SerializationContext(f"random-{next(_subjects)}", MessageField.VALUE)
    return lambda value: bytes(serializer(value, context))


def write_avro(apicurio: Apicurio, client: Any, made: MadeSchema) -> Write:
    return in_topic(confluent(".avro").AvroSerializer(client, confluents_schema(apicurio, made, "AVRO")))


def write_json_schema(apicurio: Apicurio, client: Any, made: MadeSchema) -> Write:
    return in_topic(confluent(".json_schema").JSONSerializer(confluents_schema(apicurio, made, "JSON"), client))


def write_protobuf(_: Apicurio, client: Any, made: MadeSchema) -> Write:
    of = message_factory.GetMessageClass(compiler.compile_message(made.schema, made.references, (1,)))
    write = in_topic(confluent(".protobuf").ProtobufSerializer(of, client, {"use.deprecated.format": False}))
    return lambda value: write(of(**without_nulls(value)))


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_nulls(inner) for name, inner in value.items() if inner is not None}
    return [*map(without_nulls, value)] if isinstance(value, list) else value


KINDS: Mapping[str, tuple[Callable[[Random], MadeSchema], Callable[[Apicurio, Any, MadeSchema], Write]]] = {
    "avro": (random_records.avro, write_avro),
    "json_schema": (random_records.json_schema, write_json_schema),
    "protobuf": (random_records.protobuf, write_protobuf),
}


@pytest.fixture
def client(apicurio: Apicurio) -> Iterator[Any]:
    """confluent-kafka's own."""
    with confluent().SchemaRegistryClient({"url": apicurio.url, "timeout": 30}) as found:
        yield found


def compare(apicurio: Apicurio, converter: str, made: MadeSchema, write: Write, count: int) -> int:
    """Compare what lands of some records with what was given. Return how many they were."""
    drawn = [made.draw() for _ in range(count)]
    values = [write(given) for given, _ in drawn]
    conversion = Conversion("string", converter, "parquet", "skip", registry=Connection((apicurio.url,)))
    found = convert_batch(conversion, batch(*values), {})
    assert found.refused == {}, made
    rows = [row for part in found.parts for row in part.streams["data"].to_pylist(maps_as_pydicts="strict")]
    assert rows == [row for _, row in drawn], made
    return len(rows)


@pytest.mark.parametrize("converter", KINDS)
def test_random_records_land_as_they_were_given(
    apicurio: Apicurio, client: Any, converter: str, capsys: pytest.CaptureFixture[str]
) -> None:
    make, writer = KINDS[converter]
    random = Random(f"{converter} 1")
    mades = [make(random) for _ in range(2)]
    compared = sum(compare(apicurio, converter, made, writer(apicurio, client, made), RECORDS) for made in mades)
    with capsys.disabled():
        print(f"\n{compared} records of {converter} compared")
    assert compared == 20


@pytest.mark.slow("more random records")
@pytest.mark.parametrize("converter", KINDS)
def test_700_random_records_land_as_they_were_given(
    apicurio: Apicurio, client: Any, converter: str, capsys: pytest.CaptureFixture[str]
) -> None:
    make, writer = KINDS[converter]
    random, compared, references = Random(f"{converter} 2"), 0, 0
    for _ in range(70):
        made = make(random)
        compared += compare(apicurio, converter, made, writer(apicurio, client, made), RECORDS)
        references += len(made.references)
    with capsys.disabled():
        print(f"\n{compared} records of {converter} compared, whose schemas have {references} references")
    assert compared == 700
    assert references > 10


# Apicurio's own serializers, in Java


@pytest.fixture(scope="module")
def java() -> Iterator[Any]:
    with run_serializers() as classes:
        yield classes


def write_avro_in_java(apicurio: Apicurio, java: Any, made: MadeSchema) -> Write:
    """Give Java's serializer the datum that fastavro wrote."""
    names: dict[str, Any] = {}
    parser = getattr(java.org.apache.avro, "Schema$Parser")()
    for schema in made.references.values():
        parse_schema(schema, named_schemas=names)
        parser.parse(json.dumps(schema))
    parsed, javas = parse_schema(made.schema, named_schemas=names), parser.parse(json.dumps(made.schema))
    reader = java.org.apache.avro.generic.GenericDatumReader(javas)
    serializer = java.io.apicurio.registry.serde.avro.AvroKafkaSerializer()
    serializer.configure(serializer_settings(apicurio), False)
    topic = f"java-{next(_subjects)}"

    def write(value: Any) -> bytes:
        out = io.BytesIO()
        schemaless_writer(out, parsed, value)
        decoder = java.org.apache.avro.io.DecoderFactory.get().binaryDecoder(out.getvalue(), None)
        return bytes(serializer.serialize(topic, reader.read(None, decoder)))

    return write


def write_json_in_java(apicurio: Apicurio, java: Any, made: MadeSchema) -> Write:
    known = register_references(apicurio, made, "JSON")
    written, topic = json.dumps(made.schema), f"java-{next(_subjects)}"
    apicurio.register(topic, written, [one for one in known if f'"{one["name"]}"' in written], "JSON")
    latest = {"apicurio.registry.find-latest": True, "apicurio.registry.artifact.artifact-id": topic}
    more = {"apicurio.registry.auto-register": False, "apicurio.registry.serde.validation-enabled": False}
    serializer = java.io.apicurio.registry.serde.jsonschema.JsonSchemaKafkaSerializer()
    serializer.configure({**serializer_settings(apicurio), **latest, **more}, False)
    mapper = java.com.fasterxml.jackson.databind.ObjectMapper()
    return lambda value: bytes(serializer.serialize(topic, mapper.readTree(json.dumps(value))))


JAVAS: Mapping[str, tuple[Callable[[Random], MadeSchema], Callable[[Apicurio, Any, MadeSchema], Write]]] = {
    "avro": (partial(random_records.avro, most=1e6), write_avro_in_java),
    "json_schema": (random_records.json_schema, write_json_in_java),
}


@pytest.mark.slow("an oracle: Java's own serializers")
@pytest.mark.usefixtures("jvm")
@pytest.mark.parametrize("converter", JAVAS)
def test_500_random_records_of_java_land_as_they_were_given(
    apicurio: Apicurio, java: Any, converter: str, capsys: pytest.CaptureFixture[str]
) -> None:
    make, write = JAVAS[converter]
    random, compared = Random(f"{converter} 3"), 0
    for _ in range(50):
        made = make(random)
        compared += compare(apicurio, converter, made, write(apicurio, java, made), RECORDS)
    with capsys.disabled():
        print(f"\n{compared} records of {converter} that Java wrote compared")
    assert compared == 500
