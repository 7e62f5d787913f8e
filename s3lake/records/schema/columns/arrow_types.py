"""Columns to Arrow and back."""

from __future__ import annotations

import functools
import hashlib
import sys
from typing import Any

import pyarrow as pa
from msgspec import structs

from s3lake.records.schema.columns.details import (
    DEFAULT,
    DETAIL,
    FIELD_PROPERTIES,
    NAME,
    PROPERTIES,
    Detail,
    strip_to_nullability,
)
from s3lake.records.schema.columns.types import (
    MOST_DIGITS,
    MOST_LEVELS,
    UNKNOWN,
    Columns,
    Decimal,
    List,
    Map,
    Primitive,
    Struct,
    Type,
    Unknown,
    fold,
)
from s3lake.records.schema.columns.union import drop_empty, make_depth_error

_ARROW = {
    Primitive.BOOL: pa.bool_(),
    Primitive.INT32: pa.int32(),
    Primitive.INT64: pa.int64(),
    Primitive.FLOAT: pa.float32(),
    Primitive.DOUBLE: pa.float64(),
    Primitive.STRING: pa.string(),
    Primitive.BINARY: pa.binary(),
    Primitive.DATE: pa.date32(),
    Primitive.TIME: pa.time32("ms"),
    Primitive.TIME_US: pa.time64("us"),
    Primitive.TIMESTAMP: pa.timestamp("ms", "UTC"),
    Primitive.TIMESTAMP_US: pa.timestamp("us", "UTC"),
    Primitive.TIMESTAMP_NS: pa.timestamp("ns", "UTC"),
    Primitive.UUID: pa.uuid(),
}
_PRIMITIVES = {arrow: primitive for primitive, arrow in _ARROW.items()}


def to_arrow(columns: Columns) -> pa.Schema:
    """The Arrow schema of the columns; every field may be null."""
    return pa.schema([(name, arrow_type(type)) for name, type in columns.items()])


@functools.lru_cache(maxsize=4096)
def arrow_type(type: Type) -> pa.DataType:
    """The Arrow type of a column."""

    def of_leaf(leaf: Primitive | Decimal | Unknown) -> pa.DataType:
        if isinstance(leaf, Decimal):
            make_decimal = pa.decimal128 if leaf.precision <= MOST_DIGITS else pa.decimal256
            return make_decimal(leaf.precision, leaf.scale)
        return _ARROW[leaf] if isinstance(leaf, Primitive) else pa.null()

    return fold(
        type,
        of_leaf,
        pa.list_,
        lambda fields: pa.struct(list(fields.items())),
        lambda value: pa.map_(pa.string(), value),
    )


def from_arrow(fields: Any) -> Columns:
    """Return the columns of an Arrow schema, without ones that are only null; any other type is a string.

    Raises:
        Conflict: they nest too deeply.
    """
    return drop_empty({field.name: type_of(field.type, MOST_LEVELS - 1) for field in fields})


def type_of(arrow: pa.DataType, levels: int = sys.maxsize) -> Type:
    """The type of an Arrow column, which may nest so many levels."""
    if levels < 0:
        raise make_depth_error("")
    of = pa.types
    if of.is_struct(arrow):
        return Struct({field.name: type_of(field.type, levels - 1) for field in arrow})
    if of.is_list(arrow):
        return List(type_of(arrow.value_type, levels - 1))
    if of.is_map(arrow):
        return Map(type_of(arrow.item_type, levels - 1))
    if of.is_decimal(arrow):
        return Decimal(arrow.precision, arrow.scale)
    return UNKNOWN if of.is_null(arrow) else _PRIMITIVES.get(arrow, Primitive.STRING)


# Columns with what their schema has besides types: nullable or not, the rest in the metadata of fields


def apply_detail(batch: pa.RecordBatch, detail: Detail, name: str | None) -> pa.RecordBatch:
    """Return rows with the schema of their record, called `name`."""
    inner = detail.inner or (Detail(),) * batch.num_columns  # a message of Protobuf that was extracted has none
    fields = zip(batch.schema, batch.columns, inner, strict=True)
    columns = [make_column(field.name, array, type_of(field.type), each) for field, array, each in fields]
    marks = {DETAIL: _mark(detail)} if detail != strip_to_nullability(detail) else {}
    metadata = marks | (_metadata(Detail(name=name or None, properties=detail.properties)) or {})
    schema = pa.schema([field for field, _ in columns], metadata or None)
    return pa.RecordBatch.from_arrays([array for _, array in columns], schema=schema)


@functools.lru_cache(maxsize=4096)
def _mark(detail: Detail) -> bytes:
    return hashlib.blake2b(repr(_strip_doc(detail)).encode(), digest_size=8).hexdigest().encode()


def _strip_doc(detail: Detail) -> Detail:
    return structs.replace(detail, doc=None, version=None, inner=tuple(map(_strip_doc, detail.inner)))


def make_column(name: str, array: pa.Array, type: Type, detail: Detail) -> tuple[pa.Field, pa.Array]:
    """Return the field and the values of a column; a record without a value has nulls, whatever its schema."""
    field = _make_field(name, type, structs.replace(detail, required=False) if array.null_count else detail)
    return field, _retype(array, field)


@functools.lru_cache(maxsize=4096)
def _make_field(name: str, type: Type, detail: Detail) -> pa.Field:
    inner, arrow = detail.inner, arrow_type(type)
    match type:
        case List(item) if inner:
            arrow = pa.list_(_make_field(arrow.value_field.name, item, inner[0]))
        case Map(value) if inner:
            arrow = pa.map_(pa.string(), _make_field(arrow.item_field.name, value, inner[0]))
        case Struct(fields) if inner:
            members = zip(fields.items(), inner, strict=True)
            arrow = pa.struct([_make_field(member, of, each) for (member, of), each in members])
    return pa.field(name, arrow, nullable=not detail.required, metadata=_metadata(detail))


def _metadata(detail: Detail) -> dict[bytes, bytes] | None:
    facts = {
        NAME: detail.name,
        DEFAULT: detail.default,
        PROPERTIES: detail.properties,
        FIELD_PROPERTIES: detail.field_properties,
    }
    return {key: text.encode() for key, text in facts.items() if text is not None} or None


def _retype(array: pa.Array, field: pa.Field) -> pa.Array:
    """Return the values in a type whose fields differ in nullability and metadata.

    What is never null is null within a null struct alone; there it becomes anything, because Parquet's writer minds.
    """
    type = field.type
    if not pa.types.is_nested(type):
        if field.nullable or not array.null_count:
            return array
        storage = array.storage if isinstance(array, pa.ExtensionArray) else array
        buffers = [None, *storage.buffers()[1:]]
        plain = pa.Array.from_buffers(storage.type, len(storage), buffers, 0, storage.offset)
        return pa.ExtensionArray.from_storage(type, plain) if isinstance(array, pa.ExtensionArray) else plain
    if array.offset:
        array = pa.concat_arrays([array])  # no mask goes with what is cut out of a list
    nulls = array.is_null() if field.nullable and array.null_count else None
    if pa.types.is_struct(type):
        children = [_retype(array.field(at), member) for at, member in enumerate(type)]
        return pa.StructArray.from_arrays(children, fields=list(type), mask=nulls)
    if pa.types.is_map(type):
        items = _retype(array.items, type.item_field)
        return pa.MapArray.from_arrays(array.offsets, array.keys, items, type=type, mask=nulls)
    return pa.ListArray.from_arrays(array.offsets, _retype(array.values, type.value_field), type=type, mask=nulls)
