"""The columns that objects are read into: one schema for all commits of equal shape, in types that Spark has."""

from __future__ import annotations

import pyarrow as pa

from s3lake.commit.documents import Envelope
from s3lake.objects.shape import BYTES, TEXT, Shape
from s3lake.schema.types import Columns, Decimal, Primitive, Type, Unknown, fold

_STAMP = pa.timestamp("us", "UTC")
_PRIMITIVES = {
    Primitive.BOOL: pa.bool_(),
    Primitive.INT32: pa.int32(),
    Primitive.INT64: pa.int64(),
    Primitive.FLOAT: pa.float32(),
    Primitive.DOUBLE: pa.float64(),
    Primitive.STRING: pa.string(),
    Primitive.BINARY: pa.binary(),
    Primitive.DATE: pa.date32(),
    Primitive.TIME: pa.string(),
    Primitive.TIME_US: pa.string(),
    Primitive.TIMESTAMP: _STAMP,
    Primitive.TIMESTAMP_US: _STAMP,
    Primitive.TIMESTAMP_NS: pa.int64(),  # as Spark has them with spark.sql.legacy.parquet.nanosAsLong
    Primitive.UUID: pa.string(),
}
_ENVELOPE = {
    "headers": pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
    "metadata": pa.struct(
        [("timestamp", pa.int64()), ("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64())]
    ),
    "offset": pa.int64(),
    "timestamp": _STAMP,
}


_FLAT_TABLE = {"headers": pa.map_(pa.string(), pa.string()), "timestamp": pa.int64()}
"""What Aiven's rows have in tables."""


def of(shape: Shape, recorded: Columns) -> pa.Schema:
    """The columns of objects of a shape.

    Files of columns have those that are `recorded`, of the sink or of one commit. Text files have one column `value`,
    with an envelope one for each of its fields.
    """
    if shape.in_columns and shape.spread and shape.converter(shape.spread) not in (TEXT, BYTES):
        return pa.schema([(name, arrow_type(type)) for name, type in recorded.items()])
    if shape.envelope and shape.envelope.style != "iggy":
        return pa.schema([(field, _column(shape, shape.envelope, field, recorded)) for field in shape.envelope.fields])
    raw = shape.format == "bytes" or (shape.value == BYTES and not shape.format.startswith("json"))
    return pa.schema([("value", pa.binary() if raw else pa.string())])


def arrow_type(type: Type) -> pa.DataType:
    """The type that a column is read into: there are no UUIDs and no times of day, and microseconds only."""
    return fold(type, _leaf, pa.list_, lambda fields: pa.struct(list(fields.items())), _map)


def _leaf(leaf: Primitive | Decimal | Unknown) -> pa.DataType:
    match leaf:
        case Primitive():
            return _PRIMITIVES[leaf]
        case Decimal(precision, scale):
            return pa.decimal128(precision, scale)
        case Unknown():
            return pa.null()


def _map(value: pa.DataType) -> pa.DataType:
    return pa.map_(pa.string(), value)


def _column(shape: Shape, envelope: Envelope, field: str, recorded: Columns) -> pa.DataType:
    if field in _FLAT_TABLE and envelope.style == "flat" and shape.in_columns and not shape.spelled:
        return _FLAT_TABLE[field]
    if field in _ENVELOPE:
        return _ENVELOPE[field]
    converter = shape.converter(field)
    if shape.in_columns and converter not in (TEXT, BYTES) and field in recorded:
        return arrow_type(recorded[field])
    encoded = shape.format == "csv" and (field == "key" or envelope.value_encoding == "base64")
    return pa.binary() if converter == BYTES or encoded else pa.string()
