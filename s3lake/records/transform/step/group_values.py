"""Columns as the values that transforms take one by one, and back."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from s3lake.records.convert.read import arrays
from s3lake.records.schema.columns.arrow_types import arrow_type
from s3lake.records.schema.columns.details import Detail
from s3lake.records.schema.columns.types import PLACEHOLDER, Decimal, Primitive, Type, Unknown, fold
from s3lake.records.transform.step.record_values import (
    INSTANTS,
    Float32,
    Instant,
    TransformError,
    describe,
    make_unit_marker,
)
from s3lake.records.transform.step.schema_group import Refusals
from s3lake.text.masking import strip_values

_Read = Callable[[pa.Array], list[Any]]


def to_values(array: pa.Array, type: Type) -> list[Any]:
    """Return values as transforms take them: dates and times as instants, decimals exact, bytes as bytes."""
    return _make_reader(type)(array)


@functools.lru_cache(maxsize=1024)
def _make_reader(type: Type) -> _Read:
    def of_list(item: _Read) -> _Read:
        return lambda array: _slice(array, item(array.values))

    def of_map(value: _Read) -> _Read:
        def read(array: pa.MapArray) -> list[Any]:
            pairs = list(zip(array.keys.to_pylist(), value(array.items), strict=True))
            return [None if one is None else dict(one) for one in _slice(array, pairs)]

        return read

    return fold(type, _make_leaf_reader, of_list, _make_struct_reader, of_map)


def _slice(array: pa.Array, items: list[Any]) -> list[Any]:
    """Return the items of each list, None for null."""
    ends = array.offsets.to_pylist()
    bounds = zip(ends[:-1], ends[1:], array.is_valid().to_pylist(), strict=True)
    return [items[start:end] if valid else None for start, end, valid in bounds]


def _make_struct_reader(fields: dict[str, _Read]) -> _Read:
    def read(array: pa.StructArray) -> list[Any]:
        columns = [each(array.field(at)) for at, each in enumerate(fields.values())]
        rows: list[Any] = [dict(zip(fields, row, strict=True)) for row in zip(*columns, strict=True)]
        rows = [{} for _ in rows] if list(fields) == [PLACEHOLDER] else rows
        return [row if valid else None for row, valid in zip(rows, array.is_valid().to_pylist(), strict=True)]

    return read


def _make_leaf_reader(leaf: Primitive | Decimal | Unknown) -> _Read:
    if isinstance(leaf, Primitive) and (instant := INSTANTS.get(leaf)):
        width = pa.int32() if leaf in (Primitive.DATE, Primitive.TIME) else pa.int64()
        return lambda array: [None if one is None else instant(one) for one in array.cast(width).to_pylist()]
    match leaf:
        case Primitive.FLOAT:
            return lambda array: [None if one is None else Float32(one) for one in array.to_pylist()]
        case Primitive.UUID:
            return lambda array: [None if one is None else str(one) for one in array.to_pylist()]
    return lambda array: array.to_pylist()


def to_numbered_values(array: pa.Array, type: Type, detail: Detail | None) -> list[Any]:
    """Return values as transforms take them, of which numbers know the unit that their schema gives them."""
    mark = make_unit_marker(type, detail)
    values = to_values(array, type)
    return values if mark is None else list(map(mark, values))


def to_array(values: Sequence[Any], type: Type) -> pa.Array:
    """Return a column of values of a type without parts.

    Raises:
        Misfit: a value does not fit.
    """
    plain = [int(one) if isinstance(one, Instant) else one for one in values]
    assert isinstance(type, Primitive | Decimal | Unknown), "only leaves are computed value by value"
    return arrays.make_leaf(type)(plain)


def compute_array(
    values: Sequence[Any], type: Type, compute: Callable[[Any], Any], refused: Refusals, what: str
) -> pa.Array:
    """Return a column of what `compute` makes of each value, null of null. Adds to `refused`.

    Args:
        what: the values are, for messages.
    """
    computed: list[Any] = []
    for place, value in enumerate(values):
        result = None
        try:
            result = None if value is None else compute(value)
        except TransformError as refusal:
            refused[place] = str(refusal)
        except (ArithmeticError, ValueError) as error:
            refused[place] = strip_values(str(error))
        computed.append(result)
    try:
        return to_array(computed, type)
    except arrays.Misfit:
        for place, result in enumerate(computed):
            if result is not None and not _fits(result, type):
                refused[place] = f"{what} is {describe(values[place], what)}, which {type} cannot hold"
                computed[place] = None
        return to_array(computed, type)


def _fits(value: Any, type: Type) -> bool:
    try:
        to_array([value], type)
    except arrays.Misfit:
        return False
    return True


def repeat(value: Any, type: Type, count: int) -> pa.Array:
    """Return a column of one value.

    Raises:
        Misfit: it does not fit.
    """
    return to_array([value], type).take(pa.array(np.zeros(count, np.int64)))


def nulls(type: Type, count: int) -> pa.Array:
    """Return a column without a value."""
    return pa.nulls(count, arrow_type(type))
