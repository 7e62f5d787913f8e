"""Files of columns: the type of each column, and its values as Python has them, times as numbers."""

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa

from s3lake.objects import tables
from s3lake.objects.shape import BYTES, TEXT, Shape
from s3lake.schema import types as schema_types
from s3lake.schema.types import TICKS, UNKNOWN, Columns, List, Map, Primitive, Struct, Type, fields_of
from s3lake.verify import projection


class Table(NamedTuple):
    """A file of columns.

    Attributes:
        types: of the columns, in the file's order; unknown where there is none for them.
        batches: the columns of some rows at a time.
    """

    types: Columns
    batches: Iterator[Sequence[Sequence[Any]]]


def opened(shape: Shape, body: bytes, key: str) -> Table:
    """A file of columns.

    Raises:
        UnreadableError: it is none of its format; also while its batches are read.
    """
    schema, batches = tables.opened(shape, body, key)
    if shape.format == "csv":
        recorded = fields_of(shape.columns)
        if shape.value in (TEXT, BYTES):
            recorded = {"value": Primitive.STRING if shape.value == TEXT else Primitive.BINARY}
        types = {name: recorded.get(name, Primitive.STRING) for name in schema.names}
        cells = [_cells(_csv_read(type), len(types)) for type in types.values()]
    else:
        types = {field.name: _type_of(field.type) for field in schema}
        cells = [partial(_values, _numeric(field.type)) for field in schema]
    turned = ([read(column) for read, column in zip(cells, batch.columns, strict=True)] for batch in batches)
    return Table(types, turned)


def _type_of(arrow: Any) -> Type:
    of = pa.types
    if of.is_struct(arrow):
        return Struct({field.name: _type_of(field.type) for field in arrow})
    if of.is_map(arrow):
        return Map(_type_of(arrow.item_type))
    if of.is_list(arrow) or of.is_large_list(arrow):
        return List(_type_of(arrow.value_type))
    if of.is_decimal(arrow):
        return schema_types.Decimal(arrow.precision, arrow.scale)
    tests = (
        (of.is_boolean, Primitive.BOOL),
        (of.is_int64, Primitive.INT64),
        (of.is_integer, Primitive.INT32),
        (of.is_float64, Primitive.DOUBLE),
        (of.is_floating, Primitive.FLOAT),
        (of.is_string, Primitive.STRING),
        (of.is_large_string, Primitive.STRING),
        (of.is_binary, Primitive.BINARY),
        (of.is_large_binary, Primitive.BINARY),
        (of.is_date, Primitive.DATE),
        (of.is_time32, Primitive.TIME),
        (of.is_time, Primitive.TIME_US),
        (lambda type: of.is_timestamp(type) and type.unit == "us", Primitive.TIMESTAMP_US),
        (lambda type: of.is_timestamp(type) and type.unit == "ns", Primitive.TIMESTAMP_NS),
        (of.is_timestamp, Primitive.TIMESTAMP),
        (lambda type: type == pa.uuid() or type == pa.binary(16), Primitive.UUID),
    )
    return next((primitive for test, primitive in tests if test(arrow)), UNKNOWN)


def _numeric(arrow: Any) -> Any:
    """The type without times and UUIDs: Python has no dates after the year 9999."""
    of = pa.types
    if of.is_struct(arrow):
        return pa.struct([field.with_type(_numeric(field.type)) for field in arrow])
    if of.is_map(arrow):
        return pa.map_(arrow.key_type, _numeric(arrow.item_type))
    if of.is_list(arrow):
        return pa.list_(arrow.value_field.with_type(_numeric(arrow.value_type)))
    if of.is_timestamp(arrow) or of.is_time64(arrow):
        return pa.int64()
    if arrow in (pa.date32(), pa.time32("ms")):
        return pa.int32()
    return arrow


def _values(plain: pa.DataType, column: pa.Array) -> Sequence[Any]:
    values: list[Any] = (column if column.type == plain else column.cast(plain)).to_pylist()
    return values


def _cells(read: Callable[[str], Any], columns: int) -> Callable[[pa.Array], Sequence[Any]]:
    # A row of one null may not be an empty line, which readers skip; only a text can be empty itself.
    nothing = (None, "") if columns == 1 and read not in _TEXTS else (None,)
    return lambda column: [None if cell in nothing else _read(read, cell) for cell in column.to_pylist()]


def _csv_read(type: Type) -> Callable[[str], Any]:
    if isinstance(type, Primitive):
        return _CSV[type]
    return Decimal if isinstance(type, schema_types.Decimal) else _text


def _read(read: Callable[[str], Any], field: str) -> Any:
    try:
        return read(field)
    except (ValueError, InvalidOperation, KeyError, binascii.Error):
        return projection.misfit(field)


def _text(field: str) -> Any:
    return field


def _csv_bytes(field: str) -> bytes:
    return base64.b64decode(field, validate=True)


def _csv_integer(field: str) -> int:
    if not re.fullmatch(r"-?\d+", field):
        raise ValueError(field)
    return int(field)


def _csv_whole(type: Primitive) -> Callable[[str], Any]:
    read = projection.of_json(type)
    assert read is not None
    # Years that have no text are a number: of days, or of milliseconds, whatever the column's precision.
    ticks = TICKS.get(type, 1000) // 1000
    return lambda field: int(Decimal(field) * ticks) if re.fullmatch(r"-?\d+(\.\d+)?", field) else read(field)


_CSV: dict[Primitive, Callable[[str], Any]] = {
    Primitive.BOOL: {"true": True, "false": False}.__getitem__,
    Primitive.INT32: _csv_integer,
    Primitive.INT64: _csv_integer,
    Primitive.FLOAT: float,
    Primitive.DOUBLE: float,
    Primitive.BINARY: _csv_bytes,
    **{one: _csv_whole(one) for one in (Primitive.DATE, *TICKS)},
    Primitive.STRING: _text,
    Primitive.UUID: str,
}
_TEXTS = (_text, _csv_bytes)
