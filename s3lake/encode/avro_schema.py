"""The Avro schema of Arrow columns: every field can be null, logical types keep their meaning."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

NAME = b"s3lake.name"
"""Metadata of an Arrow schema: the full name of the record."""

_UNNAMED = "io.confluent.connect.avro.ConnectDefault"
_PLAIN = {
    pa.bool_(): "boolean",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "bytes",
    pa.date32(): {"type": "int", "logicalType": "date"},
    pa.time32("ms"): {"type": "int", "logicalType": "time-millis"},
    pa.timestamp("ms", "UTC"): {"type": "long", "logicalType": "timestamp-millis"},
    # As text: readers before Avro 1.12 know no other, and those that know none of them still see the UUID.
    pa.uuid(): {"type": "string", "logicalType": "uuid"},
}


def schema_of(columns: pa.Schema) -> dict[str, Any]:
    """The schema of one record. Nested records are called after the path to them: `Order_items`."""
    full = (columns.metadata or {}).get(NAME, _UNNAMED.encode()).decode()
    namespace, _, name = full.rpartition(".")
    space = {"namespace": namespace} if namespace else {}
    return {"type": "record", "name": name, **space, "fields": _fields(columns, name, {name})}


def _fields(columns: Any, path: str, taken: set[str]) -> list[dict[str, Any]]:
    return [
        {"name": field.name, "type": _nullable(field.type, f"{path}_{field.name}", taken), "default": None}
        for field in columns
    ]


def _nullable(kind: pa.DataType, path: str, taken: set[str]) -> list[Any]:
    return ["null", _type(kind, path, taken)]


def _type(kind: pa.DataType, path: str, taken: set[str]) -> Any:
    if pa.types.is_struct(kind):
        name = _free(path, taken)
        return {"type": "record", "name": name, "fields": _fields(kind, name, taken)}
    if pa.types.is_list(kind):
        return {"type": "array", "items": _nullable(kind.value_type, path, taken)}
    if pa.types.is_map(kind):
        return {"type": "map", "values": _nullable(kind.item_type, path, taken)}
    if pa.types.is_decimal(kind):
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    return _PLAIN[kind]


def _free(path: str, taken: set[str]) -> str:
    """`a_b.c` and `a.b_c` have one path in underscores, and a record's name is given once."""
    name, number = path, 2
    while name in taken:
        name, number = f"{path}{number}", number + 1
    taken.add(name)
    return name
