"""Avro's schemas, and messages as a producer with a registry writes them."""

import io
from typing import Any

import fastavro

from s3lake_tests.records.schema.registry.server import SchemaRegistry, framed


def record(*fields: tuple[str, Any], name: str = "com.acme.Order", **more: Any) -> dict[str, Any]:
    space, _, short = name.rpartition(".")
    members = [{"name": called, "type": kind} for called, kind in fields]
    return {"type": "record", "name": short, "namespace": space, "fields": members, **more}


def logical(kind: str, called: str, /, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": called, **more}


def datum(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def avro_message(registry: SchemaRegistry, schema: Any, value: Any) -> bytes:
    return framed(registry.add(schema), datum(schema, value))
