"""Columns to Arrow and back."""

from __future__ import annotations

import functools
import sys
from typing import Any

import pyarrow as pa

from s3lake.schema.types import (
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
from s3lake.schema.unite import held, too_deep

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
    return fold(type, _leaf, pa.list_, _struct, lambda value: pa.map_(pa.string(), value))


def _leaf(leaf: Primitive | Decimal | Unknown) -> pa.DataType:
    match leaf:
        case Primitive():
            return _ARROW[leaf]
        case Decimal(precision, scale):
            return pa.decimal128(precision, scale)
        case Unknown():
            return pa.null()


def _struct(fields: dict[str, pa.DataType]) -> pa.DataType:
    return pa.struct(list(fields.items()))


def from_arrow(fields: Any) -> Columns:
    """Return the columns of an Arrow schema, without those that are only null; whatever is no type of ours is a string.

    Raises:
        Conflict: they nest too deeply.
    """
    return held({field.name: type_of(field.type, MOST_LEVELS - 1) for field in fields})


def type_of(arrow: pa.DataType, levels: int = sys.maxsize) -> Type:
    """The type of an Arrow column, which may nest so many levels."""
    if levels < 0:
        raise too_deep("")
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
