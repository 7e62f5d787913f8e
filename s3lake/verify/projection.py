"""A value as a row of a file's own columns, in one canonical form for both sides.

Types of columns are those of the index.

A struct is the list of its fields in the schema's order: a missing field is null, and a field that the schema lacks
must hold nothing. Where files of one commit differ in their columns it is named: the fields that hold something, each
with its name. In a column of doubles an integer that a double holds is one, any other stays an integer, and -0 is 0,
which JSON does not tell apart. Times are numbers in their column's precision: days, of the day, since 1970. What does
not fit a column stays what it is, or becomes a misfit, so that it equals no row.
"""

import base64
import binascii
import decimal
import math
import re
import struct
import uuid
from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from functools import partial
from typing import Any

from s3lake.schema import types
from s3lake.schema.types import Primitive, Type, fold, has

Projection = Callable[[Any], Any]

_exact = decimal.Context(prec=1000, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
_DAY = 86_400
_DAYS_IN_400_YEARS = 146_097
_ISO = re.compile(
    r"\s*(?P<year>[+-]?\d{4,9})-(?P<month>\d\d)-(?P<day>\d\d)"
    r"(?:[T ](?P<time>\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)\s*(?:Z|(?P<sign>[+-])(?P<hours>\d\d):?(?P<minutes>\d\d)?)?)?\s*",
    re.IGNORECASE,
)
_NO_NUMBERS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
_TIME = re.compile(r"(?P<hour>\d\d):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,](?P<fraction>\d+))?)?")


def of_json(type: Type, *, named: bool = False) -> Projection | None:
    """The projection of values decoded from JSON; None where they stay as they are."""
    return fold(type, partial(_of_leaf, _JSON), _of_list, partial(_of_struct, strict=True, named=named), _of_map)


def of_file(type: Type, *, named: bool = False) -> Projection | None:
    """The projection of what a file's reader gives: times as numbers, the rest as Python has it."""
    return fold(type, partial(_of_leaf, _FILE), _of_list, partial(_of_struct, strict=False, named=named), _of_map)


def decimals_within(type: Type) -> bool:
    """Whether a number of such a column must not be read as a double."""
    return has(type, lambda leaf: isinstance(leaf, types.Decimal))


def misfit(value: Any) -> Any:
    """What no projection gives."""
    return {"misfit": value}


def holds(value: Any) -> bool:
    """Whether there is anything in a value decoded from JSON but nulls, empty lists and empty objects."""
    if isinstance(value, dict):
        return any(map(holds, value.values()))
    return any(map(holds, value)) if isinstance(value, list) else value is not None


def ticks(per_second: int, text: str) -> int | None:
    """An ISO 8601 date and time as a number since 1970; in UTC where it says nothing. None if it is none."""
    moment = _ISO.fullmatch(text)
    if moment is None:
        return None
    days, clock = _days(moment), _clock(per_second, moment["time"] or "00:00")
    if days is None or clock is None:
        return None
    offset = (int(moment["hours"] or 0) * 60 + int(moment["minutes"] or 0)) * 60
    return (days * _DAY + (offset if moment["sign"] == "-" else -offset)) * per_second + clock


def number(value: Decimal) -> str:
    """The one spelling of an exact number."""
    return str(_exact.normalize(value) + 0) if value else "0"


def plain(value: Any) -> Any:
    """A number; of one that JSON does not have the name, as in Connect's JSON."""
    if math.isfinite(value):
        return value
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def shortest(value: float) -> float:
    """The number of the shortest text that reads back as a float: as Connect's JSON spells it."""
    import numpy as np

    return float(str(np.float32(value)))


def scaled(unscaled: int, scale: int) -> Decimal:
    """A decimal from its digits without the point."""
    return _exact.scaleb(Decimal(unscaled), -scale)


def _of_leaf(projections: Mapping[Primitive, Projection], leaf: Type) -> Projection | None:
    if isinstance(leaf, types.Decimal):
        return _decimal
    return projections.get(leaf) if isinstance(leaf, Primitive) else None


def _of_struct(fields: Mapping[str, Projection | None], *, strict: bool, named: bool) -> Projection:
    names, allowed = sorted(fields) if named else list(fields), frozenset(fields)
    deeper = [(position, projection) for position, name in enumerate(names) if (projection := fields[name])]

    def project(value: Any) -> Any:
        if type(value) is not dict:
            return None if value is None else misfit(value)
        if strict and not value.keys() <= allowed and any(holds(value[name]) for name in value.keys() - allowed):
            return misfit(value)
        row = list(map(value.get, names))
        for position, projection in deeper:
            cell = row[position]
            if cell is not None:
                row[position] = projection(cell)
        return [[name, cell] for name, cell in zip(names, row, strict=True) if cell is not None] if named else row

    return project


def _of_list(element: Projection | None) -> Projection:
    def project(value: Any) -> Any:
        if type(value) is not list:
            return misfit(value)
        return value if element is None else [None if one is None else element(one) for one in value]

    return project


def _of_map(element: Projection | None) -> Projection:
    def project(value: Any) -> Any:
        if type(value) is dict:
            value = list(value.items())
        if type(value) is not list:
            return misfit(value)
        pairs = [[name, one if one is None or element is None else element(one)] for name, one in value]
        return sorted(pairs, key=lambda pair: str(pair[0]))

    return project


def _double(value: Any) -> Any:
    if type(value) is int or type(value) is Decimal:
        try:
            double = float(value) + 0.0
        except OverflowError:
            return misfit(str(value))
        # An integer is compared by value: rounded here, it would equal one that the writer has rounded.
        is_integer = not isinstance(value, Decimal) or value.as_tuple().exponent == 0
        return int(value) if is_integer and double != value else double
    if type(value) is str and value in _NO_NUMBERS:
        return _NO_NUMBERS[value]
    if type(value) is not float:
        return value
    return value + 0.0 if value == value else _NO_NUMBERS["NaN"]  # -0.0 + 0.0 is 0.0; there are many NaNs


def _float(value: Any) -> Any:
    exact, value = value, _double(value)
    try:
        # Less than the least float is nothing, of which there are two as well.
        single = struct.unpack("<f", struct.pack("<f", value))[0] + 0.0 if type(value) is float else value
        return exact if type(exact) is int and single != exact else single
    except OverflowError:
        return misfit(value)


def _decimal(value: Any) -> Any:
    try:
        if type(value) is float:
            value = repr(value)
        if type(value) in (int, str, Decimal):
            exact = Decimal(value)
            return number(exact) if exact.is_finite() else misfit(str(exact))
    except decimal.InvalidOperation:
        pass
    return misfit(value)


def _binary(value: Any) -> Any:
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError, TypeError):
        return misfit(value)


def _uuid(value: Any) -> Any:
    try:
        return str(uuid.UUID(bytes=value) if isinstance(value, bytes) else uuid.UUID(str(value)))
    except ValueError:
        return misfit(value)


def _timestamp(per_second: int, value: Any) -> Any:
    return _whole(value, partial(ticks, per_second))


def _date(value: Any) -> Any:
    return _whole(value, lambda text: _days(found) if (found := _ISO.fullmatch(text)) else None)


def _time(per_second: int, value: Any) -> Any:
    return _whole(value, lambda text: _clock(per_second, text.strip().removesuffix("Z")))


def _whole(value: Any, read: Callable[[str], int | None]) -> Any:
    if isinstance(value, str):
        number_of_text = read(value)
        return misfit(value) if number_of_text is None else number_of_text
    if isinstance(value, float | Decimal) and value == int(value):
        return int(value)
    return value


def _days(day_text: re.Match[str]) -> int | None:
    """Days since 1970 of any year: Python's own dates end with the year 9999."""
    year, month, day = int(day_text["year"]), int(day_text["month"]), int(day_text["day"])
    try:
        same = date(2000 + year % 400, month, day)  # the calendar repeats itself
    except ValueError:
        return None
    return (same - date(1970, 1, 1)).days + (year // 400 - 5) * _DAYS_IN_400_YEARS


def _clock(per_second: int, text: str) -> int | None:
    clock_text = _TIME.fullmatch(text)
    if clock_text is None:
        return None
    seconds = (int(clock_text["hour"]) * 60 + int(clock_text["minute"])) * 60 + int(clock_text["second"] or 0)
    digits = len(str(per_second)) - 1
    return seconds * per_second + int((clock_text["fraction"] or "")[:digits].ljust(digits, "0"))


_JSON: dict[Primitive, Projection] = {
    Primitive.DOUBLE: _double,
    Primitive.FLOAT: _float,
    Primitive.BINARY: _binary,
    Primitive.UUID: _uuid,
    Primitive.DATE: _date,
    **{one: partial(_time, types.TICKS[one]) for one in (Primitive.TIME, Primitive.TIME_US)},
    **{
        one: partial(_timestamp, types.TICKS[one])
        for one in (Primitive.TIMESTAMP, Primitive.TIMESTAMP_US, Primitive.TIMESTAMP_NS)
    },
}
_FILE: dict[Primitive, Projection] = {Primitive.DOUBLE: _double, Primitive.FLOAT: _float, Primitive.UUID: _uuid}
