"""Avro schemas written, as files have them: of columns, and of datums that stay the bytes that the producer wrote.

Of columns logical types keep their meaning, and so do the properties of Arrow's fields: a field can be null unless it
has otherwise, and null is the default unless the field has another one.
"""

from __future__ import annotations

import functools
import json
from typing import Any

import pyarrow as pa

from s3lake.records.schema.avro.read_schema import NAMED
from s3lake.records.schema.columns.arrow_types import type_of
from s3lake.records.schema.columns.details import (
    ALONE,
    DEFAULT,
    FIELD_PROPERTIES,
    NAME,
    NAME_SPACE,
    PROPERTIES,
    is_of_connect,
)
from s3lake.records.schema.columns.types import Primitive, Type
from s3lake.records.schema.columns.union import LEGAL_NAME

_UNNAMED = f"{NAME_SPACE}.ConnectDefault"
_PRIMITIVES: dict[Type, Any] = {
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
_NAMES = {name for name in _PRIMITIVES.values() if isinstance(name, str)} | {"null"}
_Records = dict[str, tuple[pa.DataType, bytes] | None]
"""The records of a schema by their full names, with their properties; None for the outermost, which no other can be."""


def write_schema(columns: pa.Schema) -> Any:
    """Return the schema of one row. A nested record without a name is called after the path to it: `Order_items`."""
    if ALONE in (columns.metadata or {}):
        (field,) = columns
        return _write_field(field, field.name, "", {})
    full = (columns.metadata or {}).get(NAME, _UNNAMED.encode()).decode()
    space, _, name = full.rpartition(".")
    records: _Records = {full: None}
    fields = [_write_member(field, name, space, records) for field in columns]
    record = {"type": "record", "name": name, **({"namespace": space} if space else {}), "fields": fields}
    return {**_read_properties(columns.metadata, PROPERTIES), **record}


def is_value_first(field: pa.Field) -> bool:
    """Return whether a value is before null in the union, as in Avro if the default is a value."""
    return bool(field.nullable) and DEFAULT in (field.metadata or {})


def _write_member(field: pa.Field, path: str, space: str, records: _Records) -> dict[str, Any]:
    default = (field.metadata or {}).get(DEFAULT)
    member = {"name": field.name, "type": _write_field(field, f"{path}_{field.name}", space, records)}
    member = {**_read_properties(field.metadata, FIELD_PROPERTIES), **member}
    if default is not None:
        return {**member, "default": json.loads(default)}
    return {**member, "default": None} if field.nullable else member


def _write_field(field: pa.Field, path: str, space: str, records: _Records) -> Any:
    written = _write_type(field, path, space, records)
    properties = _read_properties(field.metadata, PROPERTIES)
    if properties and written != "null" and not _is_reference(written):
        written = {**properties, **(written if isinstance(written, dict) else {"type": written})}
    if not field.nullable or written == "null":
        return written
    return [written, "null"] if is_value_first(field) else ["null", written]


def _write_type(field: pa.Field, path: str, space: str, records: _Records) -> Any:
    arrow = field.type
    if pa.types.is_list(arrow):
        return {"type": "array", "items": _write_field(arrow.value_field, path, space, records)}
    if pa.types.is_map(arrow):
        return {"type": "map", "values": _write_field(arrow.item_field, path, space, records)}
    if pa.types.is_decimal(arrow):
        return {"type": "bytes", "logicalType": "decimal", "precision": arrow.precision, "scale": arrow.scale}
    if not pa.types.is_struct(arrow):
        return "null" if pa.types.is_null(arrow) else _PRIMITIVES[type_of(arrow)]
    named = (field.metadata or {}).get(NAME)
    own, _, name = named.decode().rpartition(".") if named is not None else (space, "", path)
    before = records.get(_join_name(own, name))
    # A name without a namespace would be read as one of the record around it.
    properties = (field.metadata or {}).get(PROPERTIES, b"")
    is_same = before is not None and before[0].equals(arrow, check_metadata=True) and before[1] == properties
    if named is not None and is_same and (own or not space):
        return _join_name(own, name)
    name = _find_free_name(name, own, records)
    records[_join_name(own, name)] = arrow, properties
    fields = [_write_member(field, name, own, records) for field in arrow]
    return {"type": "record", "name": name, **({"namespace": own} if own != space else {}), "fields": fields}


def _is_reference(written: Any) -> bool:
    """Return whether a type is the name of a record, whose properties are where it is defined."""
    return isinstance(written, str) and written not in _NAMES


def _read_properties(metadata: Any, key: bytes) -> dict[str, Any]:
    properties: dict[str, Any] = json.loads((metadata or {}).get(key, b"{}"))
    return properties


def _join_name(space: str, name: str) -> str:
    return f"{space}.{name}" if space else name


def _find_free_name(path: str, space: str, records: _Records) -> str:
    """`a_b.c` and `a.b_c` have one path in underscores, and a record's name is given once."""
    name, number = path, 2
    while _join_name(space, name) in records:
        name, number = f"{path}{number}", number + 1
    return name


# The schema of files whose datums stay the bytes that the producer wrote


def write_passthrough_schema(written: Any) -> bytes | None:
    """Return the schema of files that keep the producer's bytes. Return None if the value's own cannot be one.

    It is the producer's, with all its properties, and without `doc` and aliases: schemas that differ only in these
    share files.

    Args:
        written: the schema, as `SchemaNode.written` has it.
    """
    if not isinstance(written, dict) or written["type"] != "record":
        return None
    types, fields = set[str](), set[str]()
    schema = _define_once(written, types, fields)
    if not all(map(LEGAL_NAME.fullmatch, [*fields, *(part for name in types for part in name.split("."))])):
        return None
    space, _, name = written["name"].rpartition(".")
    if space and any("." not in one for one in types):
        return None  # a type without a namespace would be read as one of the record's
    return json.dumps(schema | ({"name": name, "namespace": space} if space else {}), separators=(",", ":")).encode()


def _define_once(schema: Any, types: set[str], fields: set[str]) -> Any:
    """Return the schema with a type of several places defined in the first, and named in the others.

    Adds the names of types and of fields, for which Avro has a rule.
    """
    if isinstance(schema, list):
        return [_define_once(one, types, fields) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if schema["type"] in NAMED:
        if schema["name"] in types:
            return schema["name"]
        types.add(schema["name"])
    once = schema | {name: _define_once(schema[name], types, fields) for name in schema.keys() & {"items", "values"}}
    if "fields" in once:
        fields.update(one["name"] for one in schema["fields"])
        once["fields"] = [one | {"type": _define_once(one["type"], types, fields)} for one in schema["fields"]]
    return once


@functools.lru_cache(maxsize=4096)
def drop_connect_properties(schema: bytes) -> bytes:
    """Return the schema of a file without the properties that only Connect reads."""
    return json.dumps(_drop_connect(json.loads(schema)), separators=(",", ":")).encode()


def _drop_connect(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_drop_connect(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {name: one for name, one in schema.items() if not is_of_connect(name)}
    for part in kept.keys() & {"type", "items", "values"}:
        kept[part] = _drop_connect(kept[part])
    if isinstance(kept.get("fields"), list):
        kept["fields"] = [_drop_connect(field) for field in kept["fields"]]
    return kept["type"] if kept.keys() == {"type"} else kept
