"""A real registry: schemas with references, subjects that evolve, landing from Kafka, and what happens without it."""

import base64
import io
import json
from typing import Any

import fastavro
import pytest
from google.protobuf import descriptor_pb2

from s3lake.convert.values import Conversion, Converted
from s3lake.errors import TransientError
from s3lake.schema.registry import Connection
from s3lake.schema.types import to_document
from s3lake_tests.convert.records import batch
from s3lake_tests.convert.test_protobuf import BILL, COMMON, of
from s3lake_tests.schema.registry.apicurio import Apicurio, running
from s3lake_tests.schema.registry.server import framed

pytestmark = pytest.mark.slow("a case more on a real registry, which test_serializers.py asks")

OLD = {"type": "record", "name": "Order", "namespace": "com.acme", "fields": [{"name": "id", "type": "int"}]}
NEW: dict[str, Any] = {**OLD, "fields": [*OLD["fields"], {"name": "note", "type": ["null", "string"], "default": None}]}


def message(registry: Apicurio, subject: str, schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return framed(registry.register(subject, json.dumps(schema)), out.getvalue())


def converted(registry: Apicurio, *values: bytes) -> Converted:
    by = Conversion("string", "avro", "parquet", "skip", registry=Connection((registry.url,)))
    return by(batch(*values), {})


def test_a_schema_with_references(apicurio: Apicurio) -> None:
    apicurio.register("order", json.dumps(OLD))
    basket = {"type": "record", "name": "Basket", "fields": [{"name": "order", "type": "com.acme.Order"}]}
    reference = {"name": "com.acme.Order", "subject": "order", "version": 1}
    number = apicurio.register("basket", json.dumps(basket), [reference])
    (part,) = converted(apicurio, framed(number, b"\x0a")).parts
    assert (part.schema, part.streams["data"].to_pylist()) == ("Basket", [{"order": {"id": 5}}])


def test_a_subject_that_evolves(apicurio: Apicurio) -> None:
    values = [message(apicurio, "evolving", OLD, {"id": 1}), message(apicurio, "evolving", NEW, {"id": 2, "note": "x"})]
    found = converted(apicurio, *values, b"\0\0\x0f\x42\x3f")
    assert [part.streams["data"].to_pylist() for part in found.parts] == [[{"id": 1}], [{"id": 2, "note": "x"}]]
    assert to_document(found.seen) == {"id": "int32", "note": "string"}
    assert found.refused == {2: "schema id 999999: the registry says 'Schema 999999 not found.'"}


def test_protobuf_with_references_as_text_and_as_descriptors(apicurio: Apicurio) -> None:
    apicurio.register("money", COMMON, kind="PROTOBUF")
    reference = {"name": "common/money.proto", "subject": "money", "version": 1}
    bill = of("Bill", BILL, {"common/money.proto": COMMON})()
    bill.total.units = 5
    file = descriptor_pb2.FileDescriptorProto()
    of("shop.Other").DESCRIPTOR.file.CopyToProto(file)
    texts = apicurio.register("bill", BILL, [reference], "PROTOBUF")
    descriptors = apicurio.register(
        "other-message", base64.b64encode(file.SerializeToString()).decode(), kind="PROTOBUF"
    )
    by = Conversion("string", "protobuf", "parquet", "skip", registry=Connection((apicurio.url,)))
    values = [framed(texts, b"\0" + bill.SerializeToString()), framed(descriptors, b"\0\x0a\1k")]
    found = by(batch(*values), {})
    assert found.refused == {}
    rows = [part.streams["data"].to_pylist() for part in found.parts]
    assert rows == [[{"total": {"currency": "", "units": 5}}], [{"name": "k"}]]


@pytest.mark.usefixtures("jvm")
def test_without_the_registry_only_what_is_known_can_be_read() -> None:
    with running() as registry:
        known = message(registry, "known", OLD, {"id": 1})
        other = message(registry, "other", NEW, {"id": 2, "note": None})
        converted(registry, known)
        registry.stop()
        assert converted(registry, known, known).refused == {}
        with pytest.raises(TransientError, match="did not answer in 3 attempts"):
            converted(registry, known, other)
