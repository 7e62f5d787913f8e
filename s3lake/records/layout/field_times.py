"""The time in a field of a value, for keys: a number, digits, or a text.

Connect's RecordFieldTimestampExtractor takes every number as milliseconds.
"""

from __future__ import annotations

import math
import re
from datetime import date, datetime, tzinfo
from datetime import time as clock
from fractions import Fraction
from typing import Any

from s3lake.records.layout.pieces import NoObjectKeyError
from s3lake.records.schema.columns.types import TICKS, UNITS, Primitive
from s3lake.text.dates import iso
from s3lake.text.masking import quote_masked

SHAPES = {type(None): "null", bool: "a boolean", float: "a fraction", list: "a list", dict: "an object"}
"""Names of what is not a text or a whole number, for messages."""

_DIGITS = re.compile(r"-?[0-9]{1,19}")
_EPOCH = date(1970, 1, 1)
_YEAR_MS = 31_536_000_000
_SMALLEST = 10_000_000
_LAST_MS = 253_402_300_799_999
_OF_DAY = frozenset({"time", "time_us"})


def read_time(value: Any, where: tzinfo, what: str, time: str | None = None, unit: str | None = None) -> int:
    """Convert the time in a field to epoch milliseconds: a number, digits, or ISO 8601 text.

    A number is in the unit of the field's type, a fraction of a millisecond is cut down. Without such a type, and for
    digits, it is in `unit`. A text without an offset, and a date, is read in the zone `where`.

    Args:
        value: the value as JSON has it.
        where: a zone.
        what: the field, in errors.
        time: its type by the value's schema, if that is one of times.
        unit: the unit of other numbers; without it they are milliseconds, and in 1970 they are refused.

    Raises:
        NoObjectKeyError: it is not a time.
    """
    if value is None:
        raise NoObjectKeyError(f"{what} is null or missing: have the producer write it, or use the record's time")
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _read_number(value, where, what, time, unit)
    if not isinstance(value, str):
        shape = SHAPES[type(value)]
        raise NoObjectKeyError(f"{what} is {shape}, not a time: write epoch milliseconds or ISO 8601 text")
    if _DIGITS.fullmatch(value):
        return _read_count(int(value), what, unit)
    try:
        return iso.parse_epoch_ms(value, where)
    except iso.NonexistentTimeError:
        raise NoObjectKeyError(
            f"{what} is {quote_masked(what, repr(value))}, which the clock of {where} skips: write it with an offset"
        ) from None
    except (ValueError, OverflowError):
        raise NoObjectKeyError(
            f"{what} is {quote_masked(what, repr(value[:40]))}, which is not a time: write epoch milliseconds or "
            "ISO 8601, for example 2026-11-20T09:30:00Z"
        ) from None


def _read_number(number: int | float, where: tzinfo, what: str, time: str | None, unit: str | None) -> int:
    """Return the epoch milliseconds of a number in a unit. Source: Connect takes any Number, as its long value.

    A date has no zone: as text without an offset, it is the day of the zone `where`.
    """
    if isinstance(number, float):
        if not math.isfinite(number):
            raise NoObjectKeyError(f"{what} is {number}, not a time: write epoch milliseconds or ISO 8601 text")
        if time is None and unit == "seconds":
            return math.floor(Fraction(repr(number)) * 1000)
        number = int(number)
    if time is None:
        return _read_count(number, what, unit)
    if time in _OF_DAY:
        raise NoObjectKeyError(f"{what} is a time of day by its schema, and has no date: take a field with a timestamp")
    if time != "date":
        return number * 1000 // TICKS[Primitive(time)]
    try:
        return round(datetime.combine(date.fromordinal(_EPOCH.toordinal() + number), clock(), where).timestamp()) * 1000
    except (ValueError, OverflowError):
        raise NoObjectKeyError(
            f"{what} is {number} days since 1970, which is not of the years 1 to 9999: correct the producer"
        ) from None


def _read_count(number: int, what: str, unit: str | None) -> int:
    """Return the epoch milliseconds of a number without a type.

    Connect takes milliseconds. Seconds, and days such as 20240115, would all be in 1970 then.
    """
    if unit is None and _SMALLEST <= abs(number) < _YEAR_MS:
        raise NoObjectKeyError(
            f"{what} is {number}, which would be in {1970 if number > 0 else 1969} as milliseconds. Set "
            "layout.time.unit to seconds or to milliseconds"
        )
    return number * 1000 // UNITS[unit or "milliseconds"]


def explain_no_date(epoch_ms: int, what: str, time: str | None, unit: str | None) -> str:
    """Return the reason why a time that `read_time` returned has no date, and the unit in which it has one.

    A unit is proposed only if the field has no type of times, because such a type decides the unit.

    Args:
        epoch_ms: the time in epoch milliseconds, not of the years 1 to 9999.
        what: the field, in errors.
        time: its type by the value's schema, if that is one of times.
        unit: the unit that the number was read in, None for milliseconds.
    """
    reason = f"{what} has no date: {epoch_ms} milliseconds since 1970 is outside of the years 1 to 9999"
    read_as = UNITS[unit or "milliseconds"]
    finer = {name: per_s for name, per_s in UNITS.items() if per_s > read_as}
    proposed = next((name for name, per_s in finer.items() if abs(epoch_ms) * read_as <= _LAST_MS * per_s), None)
    if time is not None or proposed is None:
        return reason
    return f"{reason}. If the number is in {proposed}, set layout.time.unit to {proposed}"
