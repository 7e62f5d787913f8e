"""Arrays in the types that JSON does not have: of what was read as it is spelt in JSON, and of Python's values."""

from __future__ import annotations

import base64
import binascii
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from s3lake.convert.gate import Refusals
from s3lake.schema.arrow import arrow_type
from s3lake.schema.types import TICKS, Decimal, Primitive, Type, Unknown, fold
from s3lake.text.masking import strip_values

DAY_S = 86_400
_UUID_HYPHENS = (8, 13, 18, 23)
_MISFITS = (pa.ArrowException, ValueError, TypeError, OverflowError)


def converted(array: pa.Array, type: Type) -> pa.Array:
    """An array that was read as it was spelt, in its own type.

    Raises:
        pa.ArrowInvalid: some value does not fit.
    """
    return _converter(type)(array)


def column(values: Sequence[Any], type: Type) -> tuple[pa.Array, Refusals]:
    """A column of what Python decoded, null where a value is refused: no number is lost that JSON does not have.

    Args:
        values: bytes as such, dates and times as numbers, UUIDs as texts.
        type: of the column.
    """
    try:
        return _array(values, type), {}
    except _MISFITS:  # of some row: look at each
        refused: Refusals = {}
    for row, value in enumerate(values):
        try:
            _array([value], type)
        except _MISFITS as error:
            refused[row] = f"a value does not fit its column: {strip_values(str(error))}"[:300]
    return _array([None if row in refused else value for row, value in enumerate(values)], type), refused


@dataclass(frozen=True)
class _Converter:
    """How arrays become one of a type.

    Attributes:
        arrow: the type.
        python: the type that pyarrow makes of Python's values: it takes any number for a time, and no UUID in a struct.
        has_decimal: whether there is a decimal in it.
        convert: takes an array of another type.
    """

    arrow: pa.DataType
    python: pa.DataType
    has_decimal: bool
    convert: Callable[[pa.Array], pa.Array]

    def __call__(self, array: pa.Array) -> pa.Array:
        if array.type != self.arrow:
            return self.convert(array)
        if self.has_decimal:
            array.validate(full=True)  # the reader of JSON looks only at the digits after the point
        return array


@functools.lru_cache(maxsize=4096)
def _converter(type: Type) -> _Converter:
    return fold(type, _leaf, _list, _struct, _map)


_IN_PYTHON: dict[Type, pa.DataType] = {
    Primitive.TIME: pa.int32(),
    Primitive.TIME_US: pa.int64(),
    Primitive.UUID: pa.string(),
}
"""What Python's values of a column are, where Arrow takes others for them."""


def _leaf(leaf: Primitive | Decimal | Unknown) -> _Converter:
    arrow = arrow_type(leaf)
    python = _IN_PYTHON.get(leaf, arrow)
    return _Converter(arrow, python, isinstance(leaf, Decimal), functools.partial(_primitive, leaf))


def _list(item: _Converter) -> _Converter:
    arrow = pa.list_(item.arrow)

    def convert(array: pa.Array) -> pa.Array:
        return pa.ListArray.from_arrays(array.offsets, item(array.values), type=arrow, mask=_nulls(array))

    return _Converter(arrow, pa.list_(item.python), item.has_decimal, convert)


def _struct(fields: dict[str, _Converter]) -> _Converter:
    arrow = pa.struct([(name, field.arrow) for name, field in fields.items()])
    python = pa.struct([(name, field.python) for name, field in fields.items()])

    def convert(array: pa.Array) -> pa.Array:
        children = [field(array.field(at)) for at, field in enumerate(fields.values())]
        return pa.StructArray.from_arrays(children, fields=list(arrow), mask=_nulls(array))

    return _Converter(arrow, python, any(field.has_decimal for field in fields.values()), convert)


def _map(value: _Converter) -> _Converter:
    arrow = pa.map_(pa.string(), value.arrow)

    def convert(array: pa.Array) -> pa.Array:
        keys, values = array.values.field(0), array.values.field(1)  # of JSON it is a list of pairs
        return pa.MapArray.from_arrays(array.offsets, keys, value(values), mask=_nulls(array))

    return _Converter(arrow, pa.map_(pa.string(), value.python), value.has_decimal, convert)


def _nulls(array: pa.Array) -> pa.BooleanArray | None:
    return array.is_null() if array.null_count else None


def _array(values: Sequence[Any], type: Type) -> pa.Array:
    converter = _converter(type)
    array = pa.array(values, converter.python)
    return array if array.type == converter.arrow else converter(_whole(array))


def _whole(array: pa.Array) -> pa.Array:
    """The same, with nulls inside of a null struct: pyarrow leaves empty texts there, which are no UUIDs."""
    nulls = _nulls(array)
    if pa.types.is_struct(array.type):
        return pa.StructArray.from_arrays(list(map(_whole, array.flatten())), fields=list(array.type), mask=nulls)
    if pa.types.is_map(array.type):
        return pa.MapArray.from_arrays(array.offsets, array.keys, _whole(array.items), mask=nulls)
    if pa.types.is_list(array.type):
        return pa.ListArray.from_arrays(array.offsets, _whole(array.values), type=array.type, mask=nulls)
    return array


def _primitive(leaf: Primitive | Decimal | Unknown, array: pa.Array) -> pa.Array:
    is_text = pa.types.is_string(array.type)
    match leaf:
        case Primitive.TIMESTAMP | Primitive.TIMESTAMP_US | Primitive.TIMESTAMP_NS:
            return _moments(array, arrow_type(leaf)) if is_text else array.cast(arrow_type(leaf))
        case Primitive.DATE:
            return array.cast(pa.date32())
        case Primitive.TIME | Primitive.TIME_US:
            return _times(array, arrow_type(leaf), DAY_S * TICKS[leaf], is_text=is_text)
        case Primitive.UUID:
            return _uuids(array)
    return _bytes(array)


def _moments(texts: pa.Array, wanted: pa.DataType) -> pa.Array:
    try:
        return texts.cast(wanted)
    except pa.ArrowInvalid:  # some lack an offset, or a time
        has_offset = pc.match_substring_regex(texts, r"[T ].*(Z|[+-]\d\d(:?\d\d)?)$")
        has_time = pc.match_substring_regex(texts, "[T ]")
        missing = pc.if_else(has_offset, "", pc.if_else(has_time, "Z", "T00:00Z"))
        return pc.binary_join_element_wise(texts, missing, "").cast(wanted)


def _times(array: pa.Array, wanted: pa.DataType, day: int, *, is_text: bool) -> pa.Array:
    if is_text:
        moments = pc.binary_join_element_wise("1970-01-01T", array, "").cast(pa.timestamp(wanted.unit))
        array = moments.cast(pa.int64())
    ends = pc.min_max(array).as_py()
    if ends["min"] is not None and not 0 <= ends["min"] <= ends["max"] < day:
        raise pa.ArrowInvalid("a time is outside of its day")
    return array.cast(pa.int32() if wanted.bit_width == 32 else pa.int64()).cast(wanted)


def _uuids(texts: pa.Array) -> pa.Array:
    import numpy as np

    filled = pc.fill_null(texts, "00000000-0000-0000-0000-000000000000")
    block = b"".join(filled.cast(pa.binary()).to_pylist())
    if len(block) != 36 * len(texts) or (len(texts) and pc.max(pc.binary_length(filled)).as_py() != 36):
        raise pa.ArrowInvalid("a UUID has another length")
    characters = np.frombuffer(block, np.uint8).reshape(-1, 36)
    if not (characters[:, _UUID_HYPHENS] == ord("-")).all():
        raise pa.ArrowInvalid("a UUID has no hyphen where one belongs")
    try:
        data = binascii.unhexlify(np.delete(characters, _UUID_HYPHENS, axis=1).tobytes())
    except binascii.Error as error:
        raise pa.ArrowInvalid(f"no UUID: {error}") from None
    storage = pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), len(texts), [None, pa.py_buffer(data)])
    if texts.null_count:
        storage = pc.if_else(texts.is_valid(), storage, pa.scalar(None, pa.binary(16)))
    return pa.ExtensionArray.from_storage(pa.uuid(), storage)


def _bytes(texts: pa.Array) -> pa.Array:
    try:
        found = [None if one is None else base64.b64decode(one, validate=True) for one in texts.to_pylist()]
    except ValueError as error:
        raise pa.ArrowInvalid(f"no base64: {error}") from None
    return pa.array(found, pa.binary())
