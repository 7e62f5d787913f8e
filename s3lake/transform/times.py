"""Timestamps in values: how they are read and printed, rolling windows, and Kafka Connect's TimestampConverter."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from s3lake.text.dates.java import DatePattern
from s3lake.text.masking import quote
from s3lake.transform.instants import DAY_MS, Date, Instant, Time, Timestamp
from s3lake.transform.options import OptionError, Options
from s3lake.transform.record import Record, Refusal, Side, SideStep, shown

PRECISIONS = ("milliseconds", "seconds", "microseconds", "nanoseconds")
TYPED = {
    "Date": DatePattern("uuuu-MM-dd"),
    "Time": DatePattern("HH:mm:ss.SSS'Z'"),
    "Timestamp": DatePattern("uuuu-MM-dd'T'HH:mm:ss.SSS'Z'"),
}
"""How Connect's types of times are printed."""
TARGETS = ("string", "unix", *TYPED)

_TO_MS = {"seconds": (1000, 1), "milliseconds": (1, 1), "microseconds": (1, 1000), "nanoseconds": (1, 1_000_000)}


def from_unix(number: int, precision: str) -> int:
    """Epoch ms of a number of that precision; as Java has it, what is less than a millisecond is cut towards 1970."""
    times, by = _TO_MS[precision]
    return _cut(number * times, by)


def to_unix(epoch_ms: int, precision: str) -> int:
    """A number of that precision; what it cannot hold is cut towards 1970."""
    times, by = _TO_MS[precision]
    return _cut(epoch_ms * by, times)


def _cut(number: int, divisor: int) -> int:
    return number // divisor if number >= 0 else -(-number // divisor)


@dataclass(frozen=True)
class Window:
    """A rolling window: times are moved back to its start, counted from 1970 in UTC; no milliseconds, no window."""

    milliseconds: int = 0

    @classmethod
    def of(cls, options: Options, *, optional: bool) -> Window:
        """Read `rolling.window.type` and `rolling.window.size`."""
        units = {"minutes": 60_000, "hours": 3_600_000, "seconds": 1000}
        choices = ("none", *units) if optional else tuple(units)
        unit = options.choice("rolling.window.type", choices, choices[0])
        size = options.number("rolling.window.size", 15, 1, 24 if unit == "hours" else 60)
        if optional and unit != "none" and not options.given("rolling.window.size"):
            raise OptionError(f"rolling.window.size is missing; how many {unit} a window has", "rolling.window.size")
        return cls(size * units.get(unit, 0))

    def start(self, epoch_ms: int) -> int:
        """When the window began that this time is in."""
        return epoch_ms - epoch_ms % self.milliseconds if self.milliseconds else epoch_ms


def pattern_of(options: Options, name: str, text: str, locale: str = "en", zone: str = "UTC") -> DatePattern:
    """A DateTimeFormatter pattern to print with."""
    pattern = DatePattern(text, "java.time", locale)
    options.read(name, text, lambda _: pattern.formatter(zone))
    return pattern


def printed(pattern: DatePattern, epoch_ms: int, zone: str = "UTC") -> str:
    """A time by a pattern.

    Raises:
        Refusal: it has no date.
    """
    try:
        return pattern.formatter(zone)(epoch_ms)
    except ValueError as error:
        raise Refusal(str(error)) from None


@dataclass(frozen=True)
class TimestampConverter(SideStep):
    """A timestamp as another type: of a field, or the whole where `field` is empty.

    JSON has no dates: as Connect's JSON converter does it, Date is days since 1970, Time milliseconds of the day,
    Timestamp milliseconds since 1970.
    """

    field: str
    target: str
    pattern: DatePattern | None
    precision: str

    @classmethod
    def of(cls, options: Options, side: Side) -> TimestampConverter:
        field = options.text("field")
        target = options.choice("target.type", TARGETS)
        text = options.text("format")
        precision = options.choice("unix.precision", PRECISIONS, PRECISIONS[0])
        options.without_meaning("replace.null.with.default", "there are no defaults without a schema")
        if target == "string" and not text.strip():
            raise OptionError("format is missing; target.type string needs it, for example yyyy-MM-dd", "format")
        pattern = DatePattern(text, "simple") if text.strip() else None
        if pattern is not None:
            options.read("format", text, lambda _: (pattern.formatter(), pattern.parser()))
        return cls(side, field, target, pattern, precision)

    def __call__(self, record: Record) -> None:
        operand = self.operand(record)
        if operand is None:
            return
        if not self.field:
            self.assign(record, self._converted(operand, f"the {self.side}"))
            return
        value = self.object_of(record)
        self.assign(record, {**value, self.field: self._converted(value.get(self.field), f"field {self.field!r}")})

    def _converted(self, value: Any, what: str) -> Any:
        if value is None:
            return None
        epoch_ms = self._read(value, what)
        match self.target:
            case "string":
                assert self.pattern is not None
                return printed(self.pattern, epoch_ms)
            case "unix":
                return to_unix(epoch_ms, self.precision)
            case "Date":
                return Date(epoch_ms // DAY_MS)
            case "Time":
                return Time(epoch_ms % DAY_MS)
        return Timestamp(epoch_ms)

    def _read(self, value: Any, what: str) -> int:
        if isinstance(value, Instant):
            return value.epoch_ms
        if isinstance(value, int) and not isinstance(value, bool):
            return from_unix(value, self.precision)
        if isinstance(value, str) and self.pattern is not None:
            try:
                return self.pattern.parser()(value)
            except ValueError as error:
                raise Refusal(f"{what}: {quote(what, str(error))}") from None
        allowed = "a whole number or, with the option format, a text"
        raise Refusal(f"{what} is {shown(value, what)}; a timestamp is {allowed}")


def unix_number(value: Any) -> int | None:
    """A whole number, also one written as text; None for anything else."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, Decimal):
        return None
    if isinstance(value, str) and value.isascii() and len(value) <= 20 and value.removeprefix("-").isdigit():
        return int(value)
    return None
