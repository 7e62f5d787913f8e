"""Timestamps in values: how they are read and printed, and Kafka Connect's TimestampConverter."""

from __future__ import annotations

from typing import Any

from s3lake.records.transform.step.option_reader import OptionError, OptionReader
from s3lake.records.transform.step.record import Step, change_object, change_side, later
from s3lake.records.transform.step.record_values import (
    DAY_MS,
    Date,
    Instant,
    Side,
    TimeOfDay,
    Timestamp,
    TransformError,
    describe,
)
from s3lake.text.dates.java import DatePattern
from s3lake.text.masking import quote_masked

TYPED = {
    "Date": DatePattern("uuuu-MM-dd"),
    "Time": DatePattern("HH:mm:ss.SSS'Z'"),
    "Timestamp": DatePattern("uuuu-MM-dd'T'HH:mm:ss.SSS'Z'"),
}
"""How Connect's types of times are printed."""
TARGETS = ("string", "unix", *TYPED)

_PER_SECOND = {"milliseconds": 1000, "seconds": 1, "microseconds": 1_000_000, "nanoseconds": 1_000_000_000}
PRECISIONS = tuple(_PER_SECOND)


def from_unix(number: int, precision: str) -> int:
    """Return the epoch ms of a number of this precision, cut towards 1970 as in Java."""
    return _divide(number * 1000, _PER_SECOND[precision])


def to_unix(epoch_ms: int, precision: str) -> int:
    """Return the number of this precision for a time, cut towards 1970."""
    return _divide(epoch_ms * _PER_SECOND[precision], 1000)


def _divide(number: int, divisor: int) -> int:
    return number // divisor if number >= 0 else -(-number // divisor)


def format_time(pattern: DatePattern, epoch_ms: int, zone: str = "UTC") -> str:
    """Print a time by a pattern. Raise a TransformError if it has no date."""
    try:
        return pattern.formatter(zone)(epoch_ms)
    except ValueError as error:
        raise TransformError(str(error)) from None


def convert_timestamp(options: OptionReader, side: Side) -> Step:
    """Convert a timestamp, a field's or the whole, to another type.

    JSON has no dates. As in Connect's JSON converter, Date is days since 1970, Time milliseconds of the day, Timestamp
    milliseconds since 1970.
    """
    field = options.text("field", "")
    target = options.choice("target.type", TARGETS)
    precision = options.choice("unix.precision", PRECISIONS, PRECISIONS[0])
    pattern = None
    if options.text("format", "").strip():
        pattern = options.parse("format", lambda text: DatePattern(text, "simple"))
        options.parse("format", lambda _: (pattern.formatter(), pattern.parser()))
    elif target == "string":
        raise OptionError("format is missing; target.type string needs it, for example yyyy-MM-dd", "format")

    def convert(value: Any, what: str) -> Any:
        if value is None:
            return None
        epoch_ms = _read_timestamp(value, what, pattern, precision)
        match target:
            case "string":
                assert pattern is not None
                return format_time(pattern, epoch_ms)
            case "unix":
                return to_unix(epoch_ms, precision)
            case "Date":
                return Date(epoch_ms // DAY_MS)
            case "Time":
                return TimeOfDay(epoch_ms % DAY_MS)
        return Timestamp(epoch_ms)

    typed = later("timestamps", "convert_timestamp", side, field, target, convert)
    if not field:
        return change_side(side, lambda value: convert(value, f"the {side}"), typed=typed)
    return change_object(
        side, lambda value: {**value, field: convert(value.get(field), f"field {field!r}")}, typed=typed
    )


def _read_timestamp(value: Any, what: str, pattern: DatePattern | None, precision: str) -> int:
    if isinstance(value, Instant):
        return value.epoch_ms
    if isinstance(value, int) and not isinstance(value, bool):
        return from_unix(value, precision)
    if isinstance(value, str) and pattern is not None:
        try:
            return pattern.parser()(value)
        except ValueError as error:
            raise TransformError(f"{what}: {quote_masked(what, str(error))}") from None
    allowed = "a whole number or, with the option format, a text"
    raise TransformError(f"{what} is {describe(value, what)}; a timestamp is {allowed}")
