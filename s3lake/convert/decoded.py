"""Values that Python has decoded to Arrow, without a way through JSON: no number is lost that JSON does not have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from s3lake.convert import columns as kinds
from s3lake.convert import typed
from s3lake.convert.gate import Refusals
from s3lake.convert.types import Type

_BAD = (pa.ArrowException, ValueError, TypeError, OverflowError)


def column(values: Sequence[Any], kind: Type) -> tuple[pa.Array, Refusals]:
    """A column of `kind`, null where a value is refused.

    Args:
        values: bytes as such, dates and times as numbers, UUIDs as texts.
        kind: of the column.
    """
    spelt = _spelt(kind)
    try:
        return _array(values, spelt, kind), {}
    except _BAD:  # of some row: look at each
        refused: Refusals = {}
    for row, value in enumerate(values):
        try:
            _array([value], spelt, kind)
        except _BAD as error:
            refused[row] = f"a value does not fit its column: {error}"[:300]
    return _array([None if row in refused else value for row, value in enumerate(values)], spelt, kind), refused


def _array(values: Sequence[Any], spelt: pa.DataType, kind: Type) -> pa.Array:
    array = pa.array(values, spelt)
    return array if array.type == kinds.arrow_type(kind) else typed.converted(_whole(array), kind)


def _whole(array: pa.Array) -> pa.Array:
    """The same, with nulls inside of a null struct: pyarrow leaves empty texts there, which are no UUIDs."""
    nulls = array.is_null() if array.null_count else None
    if pa.types.is_struct(array.type):
        return pa.StructArray.from_arrays(list(map(_whole, array.flatten())), fields=list(array.type), mask=nulls)
    if pa.types.is_map(array.type):
        return pa.MapArray.from_arrays(array.offsets, array.keys, _whole(array.items), mask=nulls)
    if pa.types.is_list(array.type):
        return pa.ListArray.from_arrays(array.offsets, _whole(array.values), type=array.type, mask=nulls)
    return array


def _spelt(kind: Type) -> pa.DataType:
    """The type that pyarrow makes of the values; it takes any number for a time, and no UUID inside of a struct."""
    if isinstance(kind, str):
        return {"time": pa.int32(), "uuid": pa.string()}.get(kind) or kinds.arrow_type(kind)
    if "struct" in kind:
        return pa.struct([(name, _spelt(one)) for name, one in kind["struct"].items()])
    return pa.map_(pa.string(), _spelt(kind["map"])) if "map" in kind else pa.list_(_spelt(kind["list"]))
