"""Values of pinned columns one by one: each in the one spelling that all columns share, or the reason why it is none.

The slow way, for batches that hold a value that does not fit, several spellings in one column, or maps.
"""

import base64
import datetime
import decimal
import re
from typing import Any
from uuid import UUID

from s3lake.convert.json_columns import is_pinned
from s3lake.convert.json_probes import explain_rounding, holds_exactly
from s3lake.convert.pinned import DAY_S
from s3lake.schema.types import (
    TICKS,
    UNKNOWN,
    Columns,
    Decimal,
    List,
    Map,
    Primitive,
    Struct,
    Type,
    fields_of,
    item_of,
)
from s3lake.schema.unite import Conflict, joined, shown
from s3lake.text.masking import quote

_INT32, _INT64 = range(-(2**31), 2**31), range(-(2**63), 2**63)
_BEYOND_FLOAT = 2.0**128 - 2.0**103  # from here on a float rounds to infinity
_EPOCH = datetime.date(1970, 1, 1).toordinal()
_DATE = r"(\d{4}-\d\d-\d\d)"
_TIME = r"(\d\d)(?::(\d\d)(?::(\d\d)(?:[.,](\d+))?)?)?"
_MOMENT = re.compile(rf"{_DATE}(?:[T ]({_TIME})(Z|([+-])(\d\d)(?::?(\d\d))?)?)?", re.ASCII)
_UUID = re.compile(r"[0-9A-Fa-f]{8}(-?)(?:[0-9A-Fa-f]{4}\1){3}[0-9A-Fa-f]{12}")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_EXACT = decimal.Context(prec=1_000, Emax=10_000, Emin=-10_000, traps=[decimal.InvalidOperation])

_FORMS = {
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


class Number(float):
    """A JSON number with a fraction or an exponent, and its text: a decimal goes through no double."""

    text: str

    @classmethod
    def of(cls, text: str) -> "Number":
        """The number of its text."""
        number = cls(text)
        number.text = text
        return number


def respelt(value: dict[str, Any], columns: Columns, given: Columns, path: str = "") -> dict[str, Any]:
    """A decoded JSON object whose pinned fields are spelt as the schema for numbers reads them.

    Raises:
        Conflict: a value does not fit its column's type.
    """
    return {
        name: _respelt(field, columns.get(name, UNKNOWN), given.get(name, UNKNOWN), joined(path, name))
        for name, field in value.items()
    }


def _respelt(value: Any, type: Type, given: Type, path: str) -> Any:
    if value is None:
        return None
    match type:
        case Primitive() | Decimal():
            return _leaf(value, type, path) if is_pinned(type, given) else value
        case Map(inner):
            if not isinstance(value, dict):
                raise _unfit(value, type, path, "an object")
            return [
                {"key": name, "value": _respelt(item, inner, inner, f"{path}.{name}")} for name, item in value.items()
            ]
        case Struct(fields) if isinstance(value, dict):
            return respelt(value, fields, fields_of(given), path)
        case List(item) if isinstance(value, list):
            return [_respelt(element, item, item_of(given), f"{path}[]") for element in value]
        case Struct() | List() if given != UNKNOWN:
            raise _unfit(value, type, path, "an object" if isinstance(type, Struct) else "a list")
    return value


def _leaf(value: Any, type: Primitive | Decimal, path: str) -> Any:
    try:
        spelt = _decimal(value, type) if isinstance(type, Decimal) else _primitive(value, type)
    except (ValueError, OverflowError, ArithmeticError):
        spelt = None
    if spelt is None:
        form = (
            f"a number of at most {type.precision} digits, {type.scale} of them after the point"
            if isinstance(type, Decimal)
            else _FORMS[type]
        )
        raise _unfit(value, type, path, form)
    if isinstance(value, int) and not holds_exactly(type, value):
        raise Conflict(explain_rounding(type, path))
    return spelt


def _primitive(value: Any, type: Primitive) -> object:
    is_text = isinstance(value, str)
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    match type:
        case Primitive.BOOL:
            return value if isinstance(value, bool) else None
        case Primitive.STRING:
            return value if is_text else None
        case Primitive.INT32:
            return value if is_integer and value in _INT32 else None
        case Primitive.INT64:
            return value if is_integer and value in _INT64 else None
        case Primitive.FLOAT | Primitive.DOUBLE:
            is_number = is_integer or isinstance(value, float)
            return value if is_number and (type is Primitive.DOUBLE or abs(value) < _BEYOND_FLOAT) else None
        case Primitive.BINARY:
            base64.b64decode(value if is_text else "?", validate=True)
            return value
        case Primitive.UUID:
            return str(UUID(value)) if is_text and _UUID.fullmatch(value) else None
        case Primitive.DATE:
            if is_text:
                return _day(value) if re.fullmatch(_DATE, value, re.ASCII) else None
            return value if is_integer and value in _INT32 else None
        case Primitive.TIME | Primitive.TIME_US:
            match = re.fullmatch(_TIME, value, re.ASCII) if is_text else None
            if match:
                return _ticks(TICKS[type], *match.groups())
            return value if is_integer and 0 <= value < DAY_S * TICKS[type] else None
        case Primitive.TIMESTAMP | Primitive.TIMESTAMP_US | Primitive.TIMESTAMP_NS:
            moment = value if is_integer else None
            if is_text:
                moment = _moment(value, TICKS[type])
            return moment if moment is not None and moment in _INT64 else None


def _decimal(value: Any, type: Decimal) -> str | None:
    if isinstance(value, bool) or not isinstance(value, (int, Number, str)):
        return None
    if isinstance(value, str) and not _NUMBER.fullmatch(value):
        return None
    number = decimal.Decimal(value.text if isinstance(value, Number) else value)
    if not number.is_finite() or abs(number.adjusted()) > 1_000:
        return None
    scaled = number.scaleb(type.scale, _EXACT)
    unscaled = int(scaled)
    if scaled != unscaled or abs(unscaled) >= 10**type.precision:
        return None
    return format(decimal.Decimal(unscaled).scaleb(-type.scale, _EXACT), "f")


def _moment(text: str, per_second: int) -> int | None:
    found = _MOMENT.fullmatch(text)
    if found is None:
        return None
    day, time, hour, minute, second, fraction, _, sign, ahead_hours, ahead_minutes = found.groups()
    moment = _day(day) * DAY_S * per_second + (_ticks(per_second, hour, minute, second, fraction) if time else 0)
    hours, minutes = int(ahead_hours or 0), int(ahead_minutes or 0)
    if hours > 23 or minutes > 59:
        return None
    ahead = (hours * 60 + minutes) * 60 * per_second
    return moment + ahead if sign == "-" else moment - ahead


def _day(text: str) -> int:
    if text.startswith("0000"):  # Arrow has a year 0, Python has not; it leaps as year 4 does
        return datetime.date.fromisoformat(f"0004{text[4:]}").toordinal() - 1461 - _EPOCH
    return datetime.date.fromisoformat(text).toordinal() - _EPOCH


def _ticks(per_second: int, hour: str, minute: str | None, second: str | None, fraction: str | None) -> int:
    numbers, digits = (int(hour), int(minute or 0), int(second or 0)), len(str(per_second)) - 1
    if numbers[0] > 23 or numbers[1] > 59 or numbers[2] > 59 or (fraction or "")[digits:].strip("0"):
        raise ValueError("no time of a day, or finer than its column")
    seconds = (numbers[0] * 60 + numbers[1]) * 60 + numbers[2]
    return seconds * per_second + int((fraction or "")[:digits].ljust(digits, "0"))


def _unfit(value: Any, type: Type, path: str, form: str) -> Conflict:
    text = value.text if isinstance(value, Number) else repr(value)
    text = quote(path, text if len(text) <= 60 else f"{text[:60]}…")
    return Conflict(f"field {path!r}: {text} does not fit {shown(type)}: {form} is allowed")
