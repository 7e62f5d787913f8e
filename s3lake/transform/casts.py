"""Kafka Connect's Cast: fields, or the whole key or value, to another primitive type.

Casts are Java's, but a number that its new type cannot hold refuses the record, where Java would wrap it round.
"""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from s3lake.convert.java_numbers import java_double
from s3lake.transform.instants import DAY_MS, Instant, Time
from s3lake.transform.options import OptionError, Options
from s3lake.transform.record import Record, Refusal, Side, SideStep, shown
from s3lake.transform.times import TYPED, printed

_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_TYPES = (*_BITS, "float32", "float64", "boolean", "string")
_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
_FLOAT = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[dDfF]?\s*", re.ASCII)


@dataclass(frozen=True)
class Cast(SideStep):
    """Types of fields; of the whole where `fields` is empty."""

    fields: tuple[tuple[str, str], ...]
    whole: str

    @classmethod
    def of(cls, options: Options, side: Side) -> Cast:
        fields: dict[str, str] = {}
        whole = ""
        for entry in options.needed_names("spec", "amount:float64,id:string"):
            parts = [part.strip() for part in entry.split(":")]
            type_name = parts[-1].lower()
            if len(parts) > 2 or not parts[0]:
                raise OptionError(f"spec: {entry!r} is no field:type", "spec")
            if type_name not in _TYPES:
                raise OptionError(
                    f"spec: {parts[-1]!r} in {entry!r} is no type; use one of: {', '.join(_TYPES)}", "spec"
                )
            if parts[0] in fields and len(parts) == 2:
                raise OptionError(f"spec: field {parts[0]!r} is given twice; take one out", "spec")
            if len(parts) == 1:
                whole = type_name
            else:
                fields[parts[0]] = type_name
        if whole and (fields or len(options.names("spec")) > 1):
            raise OptionError("spec: a type for the whole stands alone; give either it or field:type pairs", "spec")
        options.without_meaning("replace.null.with.default", "there are no defaults without a schema")
        return cls(side, tuple(fields.items()), whole)

    def __call__(self, record: Record) -> None:
        operand = self.operand(record)
        if operand is None:
            return
        if self.whole:
            self.assign(record, cast(operand, self.whole, f"the {self.side}"))
            return
        value = dict(self.object_of(record))
        for name, type_name in self.fields:
            value[name] = cast(value.get(name), type_name, f"field {name!r}")
        self.assign(record, value)


def cast(value: Any, type_name: str, what: str) -> Any:
    """A value as the type `type_name`; null stays null.

    Raises:
        Refusal: it cannot be.
    """
    if value is None:
        return None
    if not isinstance(value, (bool, int, Decimal, str)) and not (isinstance(value, bytes) and type_name == "string"):
        raise Refusal(f"{what} is {shown(value, what)}, which cannot be cast to {type_name}")
    try:
        return _CASTS[type_name](value)
    except (ValueError, ArithmeticError, struct.error):
        raise Refusal(f"{what} is {shown(value, what)}, which {type_name} cannot hold") from None


def _integer(bits: int) -> Callable[[Any], int]:
    def of(value: Any) -> int:
        if isinstance(value, str) and not _INTEGER.fullmatch(value):
            raise ValueError
        if isinstance(value, Decimal) and value.adjusted() > 20:
            raise ValueError
        number = int(value)
        if not -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
            raise ValueError
        return number

    return of


def _double(value: Any) -> float:
    if isinstance(value, str) and not _FLOAT.fullmatch(value):
        raise ValueError
    number = float(value.strip().rstrip("dDfF") if isinstance(value, str) else value)
    if number in (float("inf"), float("-inf")):
        raise ValueError
    return number


def _float64(value: Any) -> Decimal:
    return Decimal(repr(_double(value)))


def _float32(value: Any) -> Decimal:
    bits = struct.pack("f", _double(value))
    (number,) = struct.unpack("f", bits)
    if number in (float("inf"), float("-inf")):
        raise ValueError
    for digits in range(1, 10):
        text = f"{number:.{digits}g}"
        if struct.pack("f", float(text)) == bits:
            break
    return Decimal(repr(float(text)))


def _boolean(value: Any) -> bool:
    return value.lower() == "true" if isinstance(value, str) else bool(value >= 1 or value <= -1)


def _string(value: Any) -> str:
    match value:
        case Instant():
            return printed(TYPED[_printed_type(value)], value.epoch_ms)
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case bytes():
            return base64.b64encode(value).decode()
        case Decimal():
            return java_double(_double(value))
    return str(value)


def _printed_type(instant: Instant) -> str:
    """As which it is printed, like Connect; there also the first day of 1970, and all before, is a time."""
    if isinstance(instant, Time):
        return "Time"
    return "Timestamp" if instant.epoch_ms % DAY_MS else "Date"


_CASTS: dict[str, Callable[[Any], Any]] = {
    **{kind: _integer(bits) for kind, bits in _BITS.items()},
    "float32": _float32,
    "float64": _float64,
    "boolean": _boolean,
    "string": _string,
}
