"""Arrow arrays of Python's values, exactly: a value that would be rounded or cut is refused.

A *builder* makes an array of values, of which None is null. Builders of structs, lists and maps are made of others, and
each names its field in what a builder within it raises.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import accumulate, chain
from typing import Any
from uuid import UUID

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s3lake.records.schema.columns.arrow_types import arrow_type
from s3lake.records.schema.columns.types import TICKS, Decimal, Primitive, Type, Unknown, write_name
from s3lake.records.schema.columns.union import format_type

Build = Callable[[Sequence[Any]], pa.Array]
Get = Callable[[Any], Any]
"""Reads a field of a record that is not None."""

DAY_S = 86_400
TIMES = frozenset({Primitive.DATE, *TICKS})
_MISFITS = (pa.ArrowException, ArithmeticError, TypeError, ValueError, msgspec.ValidationError)
_ALLOWED = {
    Primitive.BOOL: "true or false",
    Primitive.INT32: "an integer of 32 bits",
    Primitive.INT64: "an integer of 64 bits",
    Primitive.FLOAT: "a number within a float's range",
    Primitive.DOUBLE: "a number",
    Primitive.STRING: "a text",
    Primitive.BINARY: "a text in base64",
    Primitive.DATE: "an ISO 8601 date or days since 1970",
    Primitive.TIME: "an ISO 8601 time, to the millisecond, or milliseconds of the day",
    Primitive.TIME_US: "an ISO 8601 time, to the microsecond, or microseconds of the day",
    Primitive.TIMESTAMP: "an ISO 8601 time, to the millisecond, or epoch milliseconds",
    Primitive.TIMESTAMP_US: "an ISO 8601 time, to the microsecond, or epoch microseconds",
    Primitive.TIMESTAMP_NS: "an ISO 8601 time of the years 1678 to 2261, to the nanosecond, or epoch nanoseconds",
    Primitive.UUID: "a UUID's text",
}


class Misfit(ValueError):
    """A value does not fit its column. The message names the field and its type, and never quotes the value."""

    def __init__(self, type: Type, path: str = "", *, is_rounded: bool = False, reason: str = "") -> None:
        """`reason` is what is wrong, if more is known than that the value does not fit."""
        self.type, self.path, self.is_rounded, self.reason = type, path, is_rounded, reason
        if reason:
            mistake = reason
        elif is_rounded:
            mistake = (
                f"is an integer that its column, {type}, does not hold exactly: give the column a type, "
                "decimal(38,0) or string"
            )
        else:
            mistake = f"does not fit {format_type(type)}: {_explain_type(type)} is allowed"
        super().__init__(f"{f'field {path!r}' if path else 'the value'} {mistake}")

    def within(self, step: str) -> Misfit:
        """Return the same of the field around it, whose path ends with this step."""
        path = step + self.path if self.path.startswith("[") or not self.path else f"{step}.{self.path}"
        return Misfit(self.type, path, is_rounded=self.is_rounded, reason=self.reason)


def _explain_type(type: Type) -> str:
    match type:
        case Primitive():
            return _ALLOWED[type]
        case Decimal(precision, scale):
            return f"a number of at most {precision} digits, {scale} of them after the point"
    return "a list" if str(type).startswith("list") else "an object"


def build_each(build: Build, values: Sequence[Any]) -> tuple[pa.Array, dict[int, str]]:
    """Return an array of the values that fit, and why each of the others does not: halves them to find those."""
    try:
        return build(values), {}
    except Misfit as misfit:
        if len(values) == 1:
            return build([]), {0: str(misfit)}
    half = len(values) // 2
    first, refused = build_each(build, values[:half])
    second, more = build_each(build, values[half:])
    return pa.concat_arrays([first, second]), refused | {half + row: reason for row, reason in more.items()}


def make_leaf(leaf: Primitive | Decimal | Unknown, read: Get | None = None) -> Build:
    """Return a builder of values that hold no others: times are numbers or texts, a UUID is a UUID or its text.

    Args:
        read: makes such a value of what is there; None if it is one.
    """
    build = _choose_leaf(leaf)

    def build_leaf(values: Sequence[Any]) -> pa.Array:
        try:
            return build(values if read is None else [None if one is None else read(one) for one in values])
        except Misfit:
            raise
        except _MISFITS:
            raise Misfit(leaf) from None

    return build_leaf


def _choose_leaf(leaf: Primitive | Decimal | Unknown) -> Build:
    arrow = arrow_type(leaf)
    match leaf:
        case Decimal():
            return partial(_build_decimals, leaf, arrow)
        case Primitive.FLOAT | Primitive.DOUBLE:
            return partial(_build_floats, leaf, arrow)
        case Primitive.UUID:
            return _build_uuids
        case Primitive() if leaf in TIMES:
            return partial(_build_times, leaf)
        case Unknown():
            return lambda values: pa.nulls(len(values))
    return partial(pa.array, type=arrow)


def make_list(item: Build) -> Build:
    """Return a builder of lists."""

    def build(values: Sequence[Any]) -> pa.Array:
        offsets, nulls = _find_offsets(values)
        items = _build_within("[]", item, list(chain.from_iterable(filter(None, values))))
        return pa.ListArray.from_arrays(offsets, items, mask=nulls)

    return build


def make_map(value: Build) -> Build:
    """Return a builder of dictionaries with texts as keys."""

    def build(values: Sequence[Any]) -> pa.Array:
        offsets, nulls = _find_offsets(values)
        present = list(filter(None, values))
        keys = pa.array(list(chain.from_iterable(present)), pa.string())
        items = _build_within("[]", value, [one for each in present for one in each.values()])
        return pa.MapArray.from_arrays(offsets, keys, items, mask=nulls)

    return build


def make_struct_builder(fields: Mapping[str, tuple[Get, Build]]) -> Build:
    """Return a builder of records, each field with what reads it."""
    arrow = [pa.field(name, build([]).type) for name, (_, build) in fields.items()]

    def build_struct(values: Sequence[Any]) -> pa.Array:
        if None in values:
            nulls = pa.array([value is None for value in values], pa.bool_())
            columns = [[None if one is None else get(one) for one in values] for get, _ in fields.values()]
        else:
            nulls, columns = None, [list(map(get, values)) for get, _ in fields.values()]
        pairs = zip(fields.items(), columns, strict=True)
        children = [_build_within(write_name(name), build, column) for (name, (_, build)), column in pairs]
        return pa.StructArray.from_arrays(children, fields=arrow, mask=nulls)

    return build_struct


def _build_within(step: str, build: Build, values: Sequence[Any]) -> pa.Array:
    try:
        return build(values)
    except Misfit as misfit:
        raise misfit.within(step) from None


def _find_offsets(values: Sequence[Any]) -> tuple[pa.Array, pa.Array | None]:
    if None not in values:
        return pa.array([0, *accumulate(map(len, values))], pa.int32()), None
    offsets = pa.array([0, *accumulate(len(value or ()) for value in values)], pa.int32())
    return offsets, pa.array([value is None for value in values], pa.bool_())


def _build_floats(type: Primitive, arrow: pa.DataType, values: Sequence[Any]) -> pa.Array:
    """Integers stay what they are, or are refused; fractions are rounded, as everywhere."""
    rounded = np.float32 if type is Primitive.FLOAT else float
    if any(isinstance(value, int) and int(rounded(value)) != value for value in values):
        raise Misfit(type, is_rounded=True)
    return pa.array([None if value is None else float(value) for value in values], arrow)


def _build_decimals(type: Decimal, arrow: pa.DataType, values: Sequence[Any]) -> pa.Array:
    # Arrow makes zero of 1e-41, and no error.
    exact = decimal.Context(
        type.precision,
        traps=[decimal.Inexact, decimal.InvalidOperation],
        Emax=decimal.MAX_EMAX,
        Emin=decimal.MIN_EMIN,
    )
    unit = decimal.Decimal(1).scaleb(-type.scale)
    return pa.array([None if value is None else value.quantize(unit, context=exact) for value in values], arrow)


def _build_uuids(values: Sequence[Any]) -> pa.Array:
    uuids = msgspec.convert(values, list[UUID | None])
    data = [None if value is None else value.bytes for value in uuids]
    return pa.ExtensionArray.from_storage(pa.uuid(), pa.array(data, pa.binary(16)))


def _build_times(type: Primitive, values: Sequence[Any]) -> pa.Array:
    """Build dates or times of which some may be numbers and some texts."""
    number = pa.int32() if type is Primitive.DATE else pa.int64()
    texts = [value if isinstance(value, str) else None for value in values]
    if texts.count(None) == len(texts):
        return convert_times(type, pa.array(values, number))
    parsed = convert_times(type, pa.array(texts, pa.string()))
    if None not in texts:
        return parsed
    numbers = pa.array([None if isinstance(value, str) else value for value in values], number)
    return pc.coalesce(parsed, convert_times(type, numbers))


def convert_times(type: Primitive, array: pa.Array) -> pa.Array:
    """Convert texts, or numbers, to dates or times. Raise ValueError if one does not fit."""
    arrow = arrow_type(type)
    is_text, is_time_of_day = pa.types.is_string(array.type), pa.types.is_time(arrow)
    if is_text and is_time_of_day:
        moments = pc.binary_join_element_wise("1970-01-01T", array, "").cast(pa.timestamp("us"))
        array = moments.cast(pa.timestamp(arrow.unit)).cast(pa.int64())
    elif is_text:
        return array.cast(arrow) if type is Primitive.DATE else _parse_moments(arrow, array)
    if is_time_of_day:
        ends = pc.min_max(array).as_py()
        if ends["min"] is not None and not 0 <= ends["min"] <= ends["max"] < DAY_S * TICKS[type]:
            raise ValueError("a time is outside of its day")
    return array.cast(pa.int32() if arrow.bit_width == 32 else pa.int64()).cast(arrow)


def _parse_moments(arrow: pa.DataType, texts: pa.Array) -> pa.Array:
    fine = pa.timestamp("ns" if arrow.unit == "ns" else "us", "UTC")
    try:
        return texts.cast(fine).cast(arrow)
    except pa.ArrowInvalid:  # some lack an offset, or a time
        has_offset = pc.match_substring_regex(texts, r"[T ].*(Z|[+-]\d\d(:?\d\d)?)$")
        has_time = pc.match_substring_regex(texts, "[T ]")
        missing = pc.if_else(has_offset, "", pc.if_else(has_time, "Z", "T00:00Z"))
        return pc.binary_join_element_wise(texts, missing, "").cast(fine).cast(arrow)
