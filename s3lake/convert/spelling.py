"""Values of pinned columns one by one: each in the one spelling that all columns share, or the reason why it is none.

The slow way, for batches that hold a value that does not fit, several spellings in one column, or maps.
"""

import base64
import datetime
import re
from decimal import Context, Decimal, InvalidOperation
from typing import Any
from uuid import UUID

from s3lake.convert import columns as kinds
from s3lake.convert import typed
from s3lake.convert.columns import Columns, Conflict
from s3lake.convert.types import Type

_INTEGERS = {"int32": range(-(2**31), 2**31), "int64": range(-(2**63), 2**63)}
_BEYOND_FLOAT = 2.0**128 - 2.0**103  # from here on a float rounds to infinity
_EPOCH = datetime.date(1970, 1, 1).toordinal()
_DATE = r"(\d{4}-\d\d-\d\d)"
_TIME = r"(\d\d)(?::(\d\d)(?::(\d\d)(?:[.,](\d+))?)?)?"
_MOMENT = re.compile(rf"{_DATE}(?:[T ]({_TIME})(Z|([+-])(\d\d)(?::?(\d\d))?)?)?", re.ASCII)
_UUID = re.compile(r"[0-9A-Fa-f]{8}(-?)(?:[0-9A-Fa-f]{4}\1){3}[0-9A-Fa-f]{12}")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_EXACT = Context(prec=1_000, Emax=10_000, Emin=-10_000, traps=[InvalidOperation])

_FORMS = {
    "bool": "true or false",
    "int32": "an integer of 32 bits",
    "int64": "an integer of 64 bits",
    "float": "a number within a float's range",
    "double": "a number",
    "string": "a text",
    "binary": "a text in base64",
    "date": "an ISO 8601 date or days since 1970",
    "time": "an ISO 8601 time, to the millisecond, or milliseconds of the day",
    "timestamp": "an ISO 8601 time, to the millisecond, or epoch milliseconds",
    "uuid": "a UUID's text",
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
    """A decoded JSON object whose pinned fields are spelt as `typed.spelt_schema` reads numbers.

    Raises:
        Conflict: a value does not fit its column's type.
    """
    return {
        name: _respelt(one, columns.get(name), given.get(name), f"{path}.{name}" if path else name)
        for name, one in value.items()
    }


def _respelt(value: Any, kind: Type | None, given: Type | None, path: str) -> Any:
    if value is None or kind is None:
        return value
    if isinstance(kind, str):
        return _primitive(value, kind, path) if typed.is_pinned(kind, given) else value
    if "map" in kind:
        if not isinstance(value, dict):
            raise _unfit(value, kind, path, "an object")
        pairs = {name: _respelt(one, kind["map"], kind["map"], f"{path}.{name}") for name, one in value.items()}
        return [{"key": name, "value": one} for name, one in pairs.items()]
    if "struct" in kind:
        if isinstance(value, dict):
            return respelt(value, kind["struct"], typed.fields_of(given), path)
    elif isinstance(value, list):
        return [_respelt(one, kind["list"], typed.inside(given, "list"), f"{path}[]") for one in value]
    if given is not None:
        raise _unfit(value, kind, path, "an object" if "struct" in kind else "a list")
    return value


def _primitive(value: Any, kind: str, path: str) -> Any:
    try:
        found = _decimal(value, kind) if kinds.digits_of(kind) else _spelt(value, kind)
    except (ValueError, OverflowError, ArithmeticError):
        found = None
    if found is None:
        digits = kinds.digits_of(kind)
        form = (
            f"a number of at most {digits[0]} digits, {digits[1]} of them after the point" if digits else _FORMS[kind]
        )
        raise _unfit(value, kind, path, form)
    return found


def _spelt(value: Any, kind: str) -> Any:
    is_text = isinstance(value, str)
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    match kind:
        case "bool":
            return value if isinstance(value, bool) else None
        case "string":
            return value if is_text else None
        case "int32" | "int64":
            return value if is_integer and value in _INTEGERS[kind] else None
        case "float" | "double":
            number = is_integer or isinstance(value, float)
            return value if number and (kind == "double" or abs(value) < _BEYOND_FLOAT) else None
        case "binary":
            base64.b64decode(value if is_text else "?", validate=True)
            return value
        case "uuid":
            return str(UUID(value)) if is_text and _UUID.fullmatch(value) else None
        case "date":
            if is_text:
                return _day(value) if re.fullmatch(_DATE, value, re.ASCII) else None
            return value if is_integer and value in _INTEGERS["int32"] else None
        case "time":
            found = re.fullmatch(_TIME, value, re.ASCII) if is_text else None
            if found:
                return _milliseconds(*found.groups())
            return value if is_integer and 0 <= value < typed.DAY_MS else None
    return _moment(value) if is_text else value if is_integer and value in _INTEGERS["int64"] else None


def _decimal(value: Any, kind: str) -> str | None:
    precision, scale = kinds.digits_of(kind) or (0, 0)
    if isinstance(value, bool) or not isinstance(value, (int, Number, str)):
        return None
    if isinstance(value, str) and not _NUMBER.fullmatch(value):
        return None
    number = Decimal(value.text if isinstance(value, Number) else value)
    if not number.is_finite() or abs(number.adjusted()) > 1_000:
        return None
    scaled = number.scaleb(scale, _EXACT)
    unscaled = int(scaled)
    if scaled != unscaled or abs(unscaled) >= 10**precision:
        return None
    return format(Decimal(unscaled).scaleb(-scale, _EXACT), "f")


def _moment(text: str) -> int | None:
    found = _MOMENT.fullmatch(text)
    if found is None:
        return None
    day, time, hour, minute, second, fraction, _, sign, ahead_hours, ahead_minutes = found.groups()
    milliseconds = _day(day) * typed.DAY_MS + (_milliseconds(hour, minute, second, fraction) if time else 0)
    hours, minutes = int(ahead_hours or 0), int(ahead_minutes or 0)
    if hours > 23 or minutes > 59:
        return None
    ahead = (hours * 60 + minutes) * 60_000
    return milliseconds + ahead if sign == "-" else milliseconds - ahead


def _day(text: str) -> int:
    if text.startswith("0000"):  # Arrow has a year 0, Python has not; it leaps as year 4 does
        return datetime.date.fromisoformat(f"0004{text[4:]}").toordinal() - 1461 - _EPOCH
    return datetime.date.fromisoformat(text).toordinal() - _EPOCH


def _milliseconds(hour: str, minute: str | None, second: str | None, fraction: str | None) -> int:
    numbers = int(hour), int(minute or 0), int(second or 0)
    if numbers[0] > 23 or numbers[1] > 59 or numbers[2] > 59 or (fraction or "")[3:].strip("0"):
        raise ValueError("no time of a day, or finer than a millisecond")
    return ((numbers[0] * 60 + numbers[1]) * 60 + numbers[2]) * 1000 + int((fraction or "")[:3].ljust(3, "0"))


def _unfit(value: Any, kind: Type, path: str, form: str) -> Conflict:
    shown = value.text if isinstance(value, Number) else repr(value)
    shown = shown if len(shown) <= 60 else f"{shown[:60]}…"
    return Conflict(f"field {path!r}: {shown} does not fit {kinds.name_of(kind)}: {form} is allowed")
