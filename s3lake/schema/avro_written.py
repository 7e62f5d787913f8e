"""The Avro schema of columns as files have it: every field can be null, logical types keep their meaning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from s3lake.schema.arrow import type_of
from s3lake.schema.types import Decimal, Primitive, Unknown, fold

NAME = b"s3lake.name"
"""Metadata of an Arrow schema: the full name of the record."""

_UNNAMED = "io.confluent.connect.avro.ConnectDefault"
_PRIMITIVES: dict[Primitive, Any] = {
    Primitive.BOOL: "boolean",
    Primitive.INT32: "int",
    Primitive.INT64: "long",
    Primitive.FLOAT: "float",
    Primitive.DOUBLE: "double",
    Primitive.STRING: "string",
    Primitive.BINARY: "bytes",
    Primitive.DATE: {"type": "int", "logicalType": "date"},
    Primitive.TIME: {"type": "int", "logicalType": "time-millis"},
    Primitive.TIMESTAMP: {"type": "long", "logicalType": "timestamp-millis"},
    # As text: readers before Avro 1.12 know no other, and those that know none of them still see the UUID.
    Primitive.UUID: {"type": "string", "logicalType": "uuid"},
}
_Spell = Callable[[str, set[str]], Any]
"""Takes the path to a type, and the names of records that are taken: its schema, without null."""


def schema_of(columns: pa.Schema) -> dict[str, Any]:
    """The schema of one record. Nested records are called after the path to them: `Order_items`."""
    full = (columns.metadata or {}).get(NAME, _UNNAMED.encode()).decode()
    namespace, _, name = full.rpartition(".")
    space = {"namespace": namespace} if namespace else {}
    fields = {field.name: fold(type_of(field.type), _leaf, _list, _struct, _map) for field in columns}
    return {"type": "record", "name": name, **space, "fields": _members(fields, name, {name})}


def _leaf(leaf: Primitive | Decimal | Unknown) -> _Spell:
    def spell(_path: str, _taken: set[str]) -> Any:
        match leaf:
            case Primitive():
                return _PRIMITIVES[leaf]
            case Decimal(precision, scale):
                return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
            case Unknown():
                return "null"

    return spell


def _list(item: _Spell) -> _Spell:
    return lambda path, taken: {"type": "array", "items": ["null", item(path, taken)]}


def _map(value: _Spell) -> _Spell:
    return lambda path, taken: {"type": "map", "values": ["null", value(path, taken)]}


def _struct(fields: dict[str, _Spell]) -> _Spell:
    def spell(path: str, taken: set[str]) -> dict[str, Any]:
        name = _free(path, taken)
        return {"type": "record", "name": name, "fields": _members(fields, name, taken)}

    return spell


def _members(fields: dict[str, _Spell], path: str, taken: set[str]) -> list[dict[str, Any]]:
    return [
        {"name": name, "type": ["null", spell(f"{path}_{name}", taken)], "default": None}
        for name, spell in fields.items()
    ]


def _free(path: str, taken: set[str]) -> str:
    """`a_b.c` and `a.b_c` have one path in underscores, and a record's name is given once."""
    name, number = path, 2
    while name in taken:
        name, number = f"{path}{number}", number + 1
    taken.add(name)
    return name
