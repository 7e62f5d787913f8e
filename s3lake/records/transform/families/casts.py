"""Kafka Connect's Cast: fields, or the whole key or value, to another primitive type.

Casts are Java's, but a number that its new type cannot hold refuses the record, where Java would wrap it round.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np

from s3lake.records.transform.families.timestamps import TYPED, format_time
from s3lake.records.transform.step.option_reader import OptionError, OptionReader
from s3lake.records.transform.step.record import Step, change_object, change_side, later
from s3lake.records.transform.step.record_values import (
    DAY_MS,
    FineInstant,
    Float32,
    Instant,
    MicroTime,
    Side,
    TimeOfDay,
    TransformError,
    describe,
    format_float32,
)
from s3lake.text.quantities import format_double

_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
_FLOAT = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[dDfF]?\s*", re.ASCII)


def cast(options: OptionReader, side: Side) -> Step:
    """Cast fields, or the whole key or value, to other types."""
    fields: dict[str, str] = {}
    whole = ""
    entries = options.names("spec", example="amount:float64,id:string")
    for entry in entries:
        *names, type_name = [part.strip() for part in entry.split(":")]
        if len(names) > 1 or "" in names:
            raise OptionError(f"spec: {entry!r} is not field:type; write for example amount:float64", "spec")
        if type_name.lower() not in _CASTS:
            raise OptionError(
                f"spec: {type_name!r} in {entry!r} is not a type; use one of: {', '.join(_CASTS)}", "spec"
            )
        if names and names[0] in fields:
            raise OptionError(f"spec: field {names[0]!r} is given twice; take one out", "spec")
        if names:
            fields[names[0]] = type_name.lower()
        elif len(entries) > 1:
            raise OptionError("spec: a type for the whole must be alone; give either it or field:type pairs", "spec")
        else:
            whole = type_name.lower()
    if whole:
        return change_side(
            side,
            lambda value: cast_value(value, whole, f"the {side}"),
            typed=later("casts", "cast_whole", side, whole),
        )
    return change_object(
        side,
        lambda value: value | {name: cast_value(value.get(name), to, f"field {name!r}") for name, to in fields.items()},
        typed=later("casts", "cast_fields", side, fields),
    )


def cast_value(value: Any, type_name: str, what: str) -> Any:
    """Return a value as another type; null stays null."""
    if value is None:
        return None
    if not isinstance(value, (bool, int, float, Decimal, str)) and not (
        isinstance(value, bytes) and type_name == "string"
    ):
        raise TransformError(f"{what} is {describe(value, what)}, which cannot be cast to {type_name}")
    try:
        return _CASTS[type_name](value)
    except (ValueError, ArithmeticError):
        raise TransformError(f"{what} is {describe(value, what)}, which {type_name} cannot hold") from None


def _to_integer(bits: int) -> Callable[[Any], int]:
    def to_integer(value: Any) -> int:
        if isinstance(value, str) and not _INTEGER.fullmatch(value):
            raise ValueError
        if isinstance(value, Decimal) and value and value.adjusted() > 20:
            raise ValueError
        number = int(value)
        if not -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
            raise ValueError
        return number

    return to_integer


def _to_double(value: Any) -> float:
    if isinstance(value, str) and not _FLOAT.fullmatch(value):
        raise ValueError
    if isinstance(value, float):
        return float(value)
    number = float(value.strip().rstrip("dDfF") if isinstance(value, str) else value)
    if number in (float("inf"), float("-inf")):
        raise ValueError
    return number


def _to_float32(value: Any) -> Decimal:
    with np.errstate(over="raise"):
        number = np.float32(_to_double(value))
    return Decimal(repr(float(str(number))))  # in the fewest digits that read back


def _to_string(value: Any) -> str:
    match value:
        case FineInstant():  # Connect has no such type: a long of its own, of which no digit is lost
            text = format_time(TYPED["Time" if isinstance(value, MicroTime) else "Timestamp"], value.epoch_ms)
            per_second = 10**9 // value.unit_ns
            fraction, digits = value % per_second, len(str(per_second)) - 1
            return f"{text[:-4]}{fraction:0{digits}d}Z"
        case TimeOfDay():
            return format_time(TYPED["Time"], value.epoch_ms)
        case Instant():  # as in Connect, a first moment of a day is a date
            return format_time(TYPED["Timestamp" if value.epoch_ms % DAY_MS else "Date"], value.epoch_ms)
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case bytes():
            return base64.b64encode(value).decode()
        case Float32():
            return format_double(float(format_float32(value)))
        case Decimal() | float():
            return format_double(_to_double(value))
    return str(value)


_CASTS: dict[str, Callable[[Any], Any]] = {
    **{name: _to_integer(bits) for name, bits in _BITS.items()},
    "float32": _to_float32,
    "float64": lambda value: Decimal(repr(_to_double(value))),
    "boolean": lambda value: value.lower() == "true" if isinstance(value, str) else bool(value >= 1 or value <= -1),
    "string": _to_string,
}
