"""The defaults of fields in place of their nulls, as readers of Kafka Connect's structs get them."""

from __future__ import annotations

import decimal
import functools
import json
from typing import Any

import numpy as np
import pyarrow as pa

from s3lake.records.convert.read import arrays
from s3lake.records.schema.columns.arrow_types import arrow_type
from s3lake.records.schema.columns.details import Detail
from s3lake.records.schema.columns.types import Decimal, List, Map, Primitive, Struct, Type, fields_of, item_of


def fill_nulls(array: pa.Array, type: Type, detail: Detail) -> pa.Array:
    """Return columns whose fields have the default of their schema where they are null, at every level.

    A default that has parts itself (a record, a list or map that is not empty) cannot fill a column: its null stays.
    """
    if not can_fill(type, detail):
        return array
    if array.offset:
        array = pa.concat_arrays([array])  # no mask goes with what is cut out of a list
    nulls = array.is_null() if array.null_count else None
    match type:
        case Struct(fields):
            members = zip(fields.values(), detail.inner, strict=True)
            children = [_fill_field(array.field(at), of, each) for at, (of, each) in enumerate(members)]
            return pa.StructArray.from_arrays(children, fields=list(array.type), mask=nulls)
        case List(item):
            values = fill_nulls(array.values, item, detail.inner[0])
            return pa.ListArray.from_arrays(array.offsets, values, type=array.type, mask=nulls)
        case Map(value):
            items = fill_nulls(array.items, value, detail.inner[0])
            return pa.MapArray.from_arrays(array.offsets, array.keys, items, type=array.type, mask=nulls)
    return array


@functools.lru_cache(maxsize=4096)
def can_fill(type: Type, detail: Detail) -> bool:
    """Return whether a field within can be null, and has a default for that."""
    if isinstance(type, Struct) and any(one.default not in (None, "null") and not one.required for one in detail.inner):
        return True
    types = fields_of(type).values() or [item_of(type)]
    return any(can_fill(of, each) for of, each in zip(types, detail.inner, strict=False))


def _fill_field(array: pa.Array, type: Type, detail: Detail) -> pa.Array:
    array = fill_nulls(array, type, detail)
    if detail.default in (None, "null") or not array.null_count:
        return array
    default = _make_default(type, detail.default)
    is_null = array.is_null().to_numpy(zero_copy_only=False)
    return pa.concat_arrays([array, default]).take(pa.array(np.where(is_null, len(array), np.arange(len(array)))))


@functools.lru_cache(maxsize=4096)
def _make_default(type: Type, text: str) -> pa.Array:
    """Return the one value of a default, which details have as Avro has it: bytes are a text of as many characters."""
    value: Any = json.loads(text)
    if isinstance(type, List | Map | Struct):
        return pa.array([value], arrow_type(type))  # it is empty
    if isinstance(value, str) and (type is Primitive.BINARY or isinstance(type, Decimal)):
        value = value.encode("latin-1")
    if isinstance(type, Decimal):
        value = decimal.Decimal(f"{int.from_bytes(value, 'big', signed=True)}E{-type.scale}")
    return arrays.make_leaf(type)([value])
