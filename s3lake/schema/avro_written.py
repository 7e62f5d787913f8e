"""The Avro schema of columns as files have it: logical types keep their meaning, and so does what Arrow's fields say.

A field can be null unless it says otherwise; null is the default unless the field has another one.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from s3lake.schema.arrow import type_of
from s3lake.schema.details import ALONE, DEFAULT, NAME, NAME_SPACE
from s3lake.schema.types import Decimal, Primitive, Type

_UNNAMED = f"{NAME_SPACE}.ConnectDefault"
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
    Primitive.TIME_US: {"type": "long", "logicalType": "time-micros"},
    Primitive.TIMESTAMP: {"type": "long", "logicalType": "timestamp-millis"},
    Primitive.TIMESTAMP_US: {"type": "long", "logicalType": "timestamp-micros"},
    Primitive.TIMESTAMP_NS: {"type": "long", "logicalType": "timestamp-nanos"},
    # As text: readers before Avro 1.12 know no other, and readers that know neither still see the UUID.
    Primitive.UUID: {"type": "string", "logicalType": "uuid"},
}
_Records = dict[str, pa.DataType | None]
"""The records of a schema by their full names; None for the outermost, which no other can be."""


def schema_of(columns: pa.Schema) -> Any:
    """The schema of one row. A nested record without a name is called after the path to it: `Order_items`."""
    if ALONE in (columns.metadata or {}):
        (field,) = columns
        return _field(field, field.name, "", {})
    full = (columns.metadata or {}).get(NAME, _UNNAMED.encode()).decode()
    space, _, name = full.rpartition(".")
    records: _Records = {full: None}
    fields = [_member(field, name, space, records) for field in columns]
    return {"type": "record", "name": name, **({"namespace": space} if space else {}), "fields": fields}


def is_value_first(field: pa.Field) -> bool:
    """Return whether a value is before null in the union, as in Avro if the default is a value."""
    return bool(field.nullable) and DEFAULT in (field.metadata or {})


def _member(field: pa.Field, path: str, space: str, records: _Records) -> dict[str, Any]:
    default = (field.metadata or {}).get(DEFAULT)
    member = {"name": field.name, "type": _field(field, f"{path}_{field.name}", space, records)}
    if default is not None:
        return {**member, "default": json.loads(default)}
    return {**member, "default": None} if field.nullable else member


def _field(field: pa.Field, path: str, space: str, records: _Records) -> Any:
    written = _type(field, path, space, records)
    if not field.nullable or written == "null":
        return written
    return [written, "null"] if is_value_first(field) else ["null", written]


def _type(field: pa.Field, path: str, space: str, records: _Records) -> Any:
    arrow = field.type
    if pa.types.is_list(arrow):
        return {"type": "array", "items": _field(arrow.value_field, path, space, records)}
    if pa.types.is_map(arrow):
        return {"type": "map", "values": _field(arrow.item_field, path, space, records)}
    if not pa.types.is_struct(arrow):
        return _leaf(type_of(arrow))
    named = (field.metadata or {}).get(NAME)
    own, _, name = named.decode().rpartition(".") if named is not None else (space, "", path)
    before = records.get(_full(own, name))
    # A name without a namespace would be read as one of the record around it.
    if named is not None and before is not None and before.equals(arrow, check_metadata=True) and (own or not space):
        return _full(own, name)
    name = _free(name, own, records)
    records[_full(own, name)] = arrow
    return _record(arrow, name, own, space, records)


def _record(arrow: pa.DataType, name: str, own: str, space: str, records: _Records) -> dict[str, Any]:
    fields = [_member(field, name, own, records) for field in arrow]
    return {"type": "record", "name": name, **({"namespace": own} if own != space else {}), "fields": fields}


def _leaf(type: Type) -> Any:
    match type:
        case Primitive():
            return _PRIMITIVES[type]
        case Decimal(precision, scale):
            return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
    return "null"


def _full(space: str, name: str) -> str:
    return f"{space}.{name}" if space else name


def _free(path: str, space: str, records: _Records) -> str:
    """`a_b.c` and `a.b_c` have one path in underscores, and a record's name is given once."""
    name, number = path, 2
    while _full(space, name) in records:
        name, number = f"{path}{number}", number + 1
    return name
