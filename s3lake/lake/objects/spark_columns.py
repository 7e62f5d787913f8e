"""The columns that objects are read into, in types that Spark has, and the casts that lose nothing."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s3lake.errors import ConfigurationError
from s3lake.lake.objects.shape import BYTES, STRING, ObjectShape
from s3lake.records.schema.columns.types import Columns, Decimal, Primitive, Type, Unknown, fold

Cast = Callable[[pa.Array, pa.DataType], pa.Array]

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


def build_read_schema(shape: ObjectShape, recorded: Columns | None = None) -> pa.Schema:
    """Return the columns that objects of a shape are read into.

    Files of columns have the columns of their commit, or the `recorded` ones of the sink. Text files have
    one column `value`, with an envelope one for each of its fields.
    """
    types = shape.columns.fields if shape.columns else recorded or {}
    if shape.in_columns and shape.spread_part and shape.converter(shape.spread_part) not in (STRING, BYTES):
        return pa.schema([(name, _to_arrow_type(type)) for name, type in types.items()])
    if shape.envelope and shape.envelope.style != "iggy":
        return pa.schema([(field, _find_envelope_type(shape, field, types)) for field in shape.envelope.fields])
    raw = shape.format == "bytes" or (shape.value == BYTES and not shape.format.startswith("json"))
    return pa.schema([("value", pa.binary() if raw else pa.string())])


def _to_arrow_type(type: Type) -> pa.DataType:
    """Return the type that a column is read into: without UUIDs and times of day, and with microseconds only."""

    def of_leaf(leaf: Primitive | Decimal | Unknown) -> pa.DataType:
        if isinstance(leaf, Decimal):
            return pa.decimal128(leaf.precision, leaf.scale)
        return _PRIMITIVES[leaf] if isinstance(leaf, Primitive) else pa.null()

    return fold(
        type,
        of_leaf,
        pa.list_,
        lambda fields: pa.struct(list(fields.items())),
        lambda value: pa.map_(pa.string(), value),
    )


def _find_envelope_type(shape: ObjectShape, field: str, recorded: Columns) -> pa.DataType:
    assert shape.envelope is not None
    if field in _FLAT_TABLE and shape.envelope.style == "flat" and shape.in_columns and not shape.json_as_text:
        return _FLAT_TABLE[field]
    if field in _ENVELOPE:
        return _ENVELOPE[field]
    converter = shape.converter(field)
    if shape.in_columns and converter not in (STRING, BYTES) and field in recorded:
        return _to_arrow_type(recorded[field])
    encoded = shape.format == "csv" and (field == "key" or shape.envelope.value_encoding == "base64")
    return pa.binary() if converter == BYTES or encoded else pa.string()


class RoundedError(ValueError):
    """A column has integers that are not numbers of the other type."""


class IncompatibleTypeError(ValueError):
    """A column has a type that does not become the other without loss."""


def cast_batch(batch: pa.RecordBatch, schema: pa.Schema, key: str, cast: Cast | None = None) -> pa.RecordBatch:
    """Cast a batch to `schema`, each column by `cast` (None: `cast_column`); missing columns become null.

    Raises:
        ConfigurationError: a column's values cannot all be of the type that is asked for.
    """
    columns = []
    for field in schema:
        position = batch.schema.get_field_index(field.name)
        if position < 0:
            columns.append(pa.nulls(batch.num_rows, field.type))
            continue
        column = batch.column(position)
        try:
            columns.append((cast or cast_column)(column, field.type))
        except RoundedError:
            raise ConfigurationError(
                f"{key}: column {field.name!r} holds integers, the sink's columns have {field.type}, and that cannot "
                "hold all of them exactly: read this file by itself, or rewrite its hour with columns that the "
                "configuration gives"
            ) from None
        except (IncompatibleTypeError, pa.ArrowInvalid):
            raise ConfigurationError(
                f"{key}: column {field.name!r} is {column.type}, the sink's columns have {field.type}: files whose "
                "schemas have nothing in common cannot be one table; read this file by itself, or rewrite its hour "
                "with columns that the configuration gives"
            ) from None
    return pa.record_batch(columns, schema=schema)


def cast_column(column: pa.Array, target: pa.DataType) -> pa.Array:
    """Cast a column to another type that has all of its values; nothing is cut short or rounded.

    Raises:
        RoundedError: it has integers that doubles do not have.
        IncompatibleTypeError, ArrowInvalid: the type does not have all of its values.
    """
    of = pa.types
    if column.type == target:
        return column
    if 0 < len(column) == column.null_count:
        return pa.nulls(len(column), target)
    mask = column.is_null() if column.null_count else None
    if of.is_struct(target) and of.is_struct(column.type):
        fields = [
            cast_column(pc.struct_field(column, field.name), field.type)
            if column.type.get_field_index(field.name) >= 0
            else pa.nulls(len(column), field.type)
            for field in target
        ]
        return pa.StructArray.from_arrays(fields, fields=list(target), mask=column.is_null())
    if of.is_map(target) and of.is_map(column.type):
        offsets, keys = _read_items(_as_lists(column, column.keys))
        _, items = _read_items(_as_lists(column, column.items))
        return pa.MapArray.from_arrays(offsets, keys, cast_column(items, target.item_type), mask=mask).cast(target)
    if of.is_list(target) and of.is_list(column.type):
        offsets, items = _read_items(column)
        return pa.ListArray.from_arrays(offsets, cast_column(items, target.value_type), mask=mask).cast(target)
    if of.is_string(target) and column.type in (pa.uuid(), pa.binary(16)):
        cells = column.cast(pa.binary(16)).to_pylist()
        return pa.array([None if cell is None else str(UUID(bytes=cell)) for cell in cells], pa.string())
    if target == pa.uuid() and column.type == pa.binary(16):  # as Avro's files have it
        return pa.ExtensionArray.from_storage(target, column)
    if not _can_widen(column.type, target):
        raise IncompatibleTypeError
    if of.is_floating(target) and of.is_integer(column.type):
        return _cast_integers(column, target)
    return column.cast(target)


def _as_lists(maps: pa.MapArray, flat: pa.Array) -> pa.ListArray:
    """Return the keys, or the values, of each map as a list."""
    offsets = maps.offsets.to_numpy()
    own = flat.slice(offsets[0], offsets[-1] - offsets[0])
    return pa.ListArray.from_arrays(pa.array(offsets - offsets[0], pa.int32()), own, mask=maps.is_null())


def _read_items(lists: pa.ListArray) -> tuple[pa.Int32Array, pa.Array]:
    """Return the first index of each list's items, and all items.

    A slice of lists also has the items of the lists around it, and a null list may have any.

    Arrow does not take a mask together with the offsets of a slice.
    """
    lengths = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False)
    return pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32()), pc.list_flatten(lists)


def _cast_integers(column: pa.Array, target: pa.DataType) -> pa.Array:
    """Cast integers to floats that are the same numbers: Arrow's own check refuses 2^53 + 2, which a double holds."""
    floats = column.cast(target, safe=False)
    wide = floats.cast(pa.float64())
    is_within = pc.and_(pc.greater_equal(wide, -(2.0**63)), pc.less(wide, 2.0**63))
    if (
        not pc.all(is_within, min_count=0).as_py()
        or not pc.all(pc.equal(wide.cast(pa.int64(), safe=False), column.cast(pa.int64())), min_count=0).as_py()
    ):
        raise RoundedError
    return floats


def _can_widen(narrow: pa.DataType, wide: pa.DataType) -> bool:
    """Return whether every value of a type is one of the other; of integers among doubles their values decide."""
    of = pa.types
    if of.is_null(narrow):
        return True
    if of.is_floating(wide):
        return bool(of.is_integer(narrow) or of.is_floating(narrow)) and wide.bit_width >= min(narrow.bit_width, 64)
    if of.is_integer(wide):
        # An Avro file has the unit of a number's column as its producer wrote it: microseconds, or nanoseconds.
        is_fine = (of.is_timestamp(narrow) or of.is_time64(narrow)) and narrow.unit in ("us", "ns")
        return bool(is_fine or of.is_integer(narrow)) and wide.bit_width >= narrow.bit_width
    if of.is_string(wide):
        return bool(of.is_time(narrow))
    return bool((of.is_timestamp(narrow) and of.is_timestamp(wide)) or (of.is_decimal(narrow) and of.is_decimal(wide)))
