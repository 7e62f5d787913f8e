"""Batches in the columns that are asked for: integers widened, what came later null, nothing cut short or rounded."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from s3lake.errors import ConfigurationError

Turn = Callable[[pa.Array, pa.DataType], pa.Array]

_NANOS = pa.timestamp("ns", "UTC")


def fitted(batch: pa.RecordBatch, schema: pa.Schema, key: str, turn: Turn) -> pa.RecordBatch:
    """A batch of the object `key` in the columns of `schema`, each turned; those that it lacks are null.

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
            columns.append(turn(column, field.type))
        except Rounded:
            raise ConfigurationError(
                f"{key}: column {field.name!r} holds integers, the sink's columns have {field.type}, and that cannot "
                "hold all of them exactly: read this file by itself, or rewrite its hour with columns that the "
                "configuration gives"
            ) from None
        except (_Unlike, pa.ArrowInvalid):
            raise ConfigurationError(
                f"{key}: column {field.name!r} is {column.type}, the sink's columns have {field.type}: files whose "
                "schemas have nothing in common cannot be one table; read this file by itself, or rewrite its hour "
                "with columns that the configuration gives"
            ) from None
    return pa.record_batch(columns, schema=schema)


def widened(column: pa.Array, target: pa.DataType) -> pa.Array:
    """A column in another type that has all of its values."""
    of = pa.types
    if column.type == target:
        return column
    mask = column.is_null() if column.null_count else None
    if of.is_struct(target) and of.is_struct(column.type):
        fields = [
            widened(pc.struct_field(column, field.name), field.type)
            if column.type.get_field_index(field.name) >= 0
            else pa.nulls(len(column), field.type)
            for field in target
        ]
        return pa.StructArray.from_arrays(fields, fields=list(target), mask=column.is_null())
    if of.is_map(target) and of.is_map(column.type):
        items = widened(column.items, target.item_type)
        return pa.MapArray.from_arrays(column.offsets, column.keys, items, mask=mask).cast(target)
    if of.is_list(target) and of.is_list(column.type):
        items = widened(column.values, target.value_type)
        return pa.ListArray.from_arrays(column.offsets, items, mask=mask).cast(target)
    if of.is_string(target) and column.type in (pa.uuid(), pa.binary(16)):
        cells = column.cast(pa.binary(16)).to_pylist()
        return pa.array([None if cell is None else str(UUID(bytes=cell)) for cell in cells], pa.string())
    if target == pa.uuid() and column.type == pa.binary(16):  # as Avro's files have it
        return pa.ExtensionArray.from_storage(target, column)
    if not _widens(column.type, target):
        raise _Unlike
    if of.is_floating(target) and of.is_integer(column.type):
        try:
            return column.cast(target)
        except pa.ArrowInvalid:
            raise Rounded from None
    return column.cast(target)


class Rounded(ValueError):
    """A column has integers that are not numbers of the other type."""


class _Unlike(ValueError):
    """A column has a type that does not become the other without loss."""


def _widens(narrow: pa.DataType, wide: pa.DataType) -> bool:
    """Whether every value of a type is one of the other; of integers among doubles their values decide."""
    of = pa.types
    if of.is_null(narrow):
        return True
    if of.is_floating(wide):
        return bool(of.is_integer(narrow) or of.is_floating(narrow)) and wide.bit_width >= min(narrow.bit_width, 64)
    if of.is_integer(wide):
        return narrow == _NANOS or (bool(of.is_integer(narrow)) and wide.bit_width >= narrow.bit_width)
    if of.is_string(wide):
        return bool(of.is_time(narrow))
    return bool((of.is_timestamp(narrow) and of.is_timestamp(wide)) or (of.is_decimal(narrow) and of.is_decimal(wide)))
