"""Timestamps in values: how they are read and printed, and Kafka Connect's TimestampConverter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from s3lake.records.schema.columns.types import TICKS, UNITS, Primitive
from s3lake.records.transform.step.option_reader import OptionError, OptionReader
from s3lake.records.transform.step.record import Step, change_object, change_side, later
from s3lake.records.transform.step.record_values import (
    DAY_MS,
    Date,
    Instant,
    Side,
    TimeNumber,
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

PRECISIONS = tuple(UNITS)
MS = 1_000_000
"""Nanoseconds of a millisecond."""
_SECOND = 1_000_000_000


def from_unix(number: int, precision: str) -> int:
    """Return the nanoseconds since 1970 of a number of this precision."""
    return number * (_SECOND // UNITS[precision])


def to_unix(epoch_ns: int, precision: str) -> int:
    """Return the number of this precision for a time, cut towards 1970 as in Java."""
    return _divide(epoch_ns, _SECOND // UNITS[precision])


def cut_to_ms(epoch_ns: int) -> int:
    """Return a time without what is below its millisecond, cut towards 1970 as in Java."""
    return _divide(epoch_ns, MS) * MS


def _divide(number: int, divisor: int) -> int:
    return number // divisor if number >= 0 else -(-number // divisor)


def require_unit(value: Any, precision: str, what: str) -> None:
    """Raise a TransformError if the schema of a number has another unit than `unix.precision`."""
    if not isinstance(value, TimeNumber) or TICKS.get(value.time) == UNITS[precision]:
        return
    unit = next((name for name, ticks in UNITS.items() if ticks == TICKS.get(value.time)), "")
    remedies = "converter.times: exact" if not unit else f"unix.precision: {unit}, or converter.times: exact"
    raise TransformError(
        f"{what} is a number of {unit or 'days'} by its schema, and unix.precision is {precision}. Set {remedies}"
    )


def format_fine_time(pattern: DatePattern, epoch_ns: int, zone: str = "UTC") -> str:
    """Print a time by a pattern, with what is below its millisecond. Raise a TransformError if it has no date."""
    try:
        return pattern.fine_formatter(zone)(epoch_ns)
    except ValueError as error:
        raise TransformError(str(error)) from None


def format_time(pattern: DatePattern, epoch_ms: int, zone: str = "UTC") -> str:
    """Print a time by a pattern. Raise a TransformError if it has no date."""
    try:
        return pattern.formatter(zone)(epoch_ms)
    except ValueError as error:
        raise TransformError(str(error)) from None


@dataclass(frozen=True)
class TimeConversion:
    """TimestampConverter's options.

    Attributes:
        target: the type of its results.
        precision: the unit of numbers.
        is_chosen: True if the user has set `unix.precision`.
        pattern: the pattern of texts, None if there is none.
        exact: True if what is below a millisecond is kept in values with a schema.
    """

    target: str
    precision: str
    is_chosen: bool
    pattern: DatePattern | None
    exact: bool

    def find_type(self, source: Any) -> Primitive:
        """Return the type of a column made of times of another type: as fine as they are."""
        match self.target:
            case "string":
                return Primitive.STRING
            case "unix":
                return Primitive.INT64
            case "Date":
                return Primitive.DATE
        ticks = TICKS.get(source, 1000)
        if source in (Primitive.INT32, Primitive.INT64) and self.exact:
            ticks = UNITS[self.precision]
        if self.target == "Time":
            return Primitive.TIME if ticks <= 1000 else Primitive.TIME_US
        fine = {10**6: Primitive.TIMESTAMP_US, 10**9: Primitive.TIMESTAMP_NS}
        return fine.get(ticks, Primitive.TIMESTAMP)

    def convert(self, value: Any, what: str) -> Any:
        """Return a value as Kafka Connect has it: to the millisecond. Null stays null."""
        if value is None:
            return None
        epoch_ns = self._read(value, what, exact=False)
        match self.target:
            case "string" | "unix":
                return self._write(epoch_ns, what)
            case "Date":
                return Date(epoch_ns // MS // DAY_MS)
        if epoch_ns % MS:
            remedy = "target.type unix with unix.precision microseconds or nanoseconds keeps them"
            raise TransformError(f"{what} has digits below the millisecond, which JSON's times do not hold; {remedy}")
        return TimeOfDay(epoch_ns // MS % DAY_MS) if self.target == "Time" else Timestamp(epoch_ns // MS)

    def convert_to(self, type: Primitive, value: Any, what: str) -> Any:
        """Return a value as a column of this type has it. Raise a TransformError if digits would be lost."""
        epoch_ns = self._read(value, what, exact=self.exact)
        match self.target:
            case "string" | "unix":
                return self._write(epoch_ns, what)
            case "Date":
                return epoch_ns // MS // DAY_MS
            case "Time":
                epoch_ns %= DAY_MS * MS
        unit = _SECOND // TICKS[type]
        if epoch_ns % unit:
            raise TransformError(f"{what} has digits below the microsecond, which a time of day does not hold")
        return epoch_ns // unit

    def _read(self, value: Any, what: str, *, exact: bool) -> int:
        """Return nanoseconds since 1970."""
        if isinstance(value, Instant):
            return value.epoch_ns
        if isinstance(value, int) and not isinstance(value, bool):
            require_unit(value, self.precision, what)
            epoch_ns = from_unix(value, self.precision)
            return epoch_ns if exact else cut_to_ms(epoch_ns)
        if isinstance(value, str) and self.pattern is not None:
            try:
                return self.pattern.parser()(value) * MS
            except ValueError as error:
                raise TransformError(f"{what}: {quote_masked(what, str(error))}") from None
        allowed = "a whole number or, with the option format, a text"
        raise TransformError(f"{what} is {describe(value, what)}; a timestamp is {allowed}")

    def _write(self, epoch_ns: int, what: str) -> str | int:
        """Return a time as text or as a number, which are the same with and without a schema."""
        return self._print(epoch_ns, what) if self.target == "string" else self._count(epoch_ns, what)

    def _count(self, epoch_ns: int, what: str) -> int:
        if epoch_ns % MS and not self.is_chosen:
            raise TransformError(f"{what} has digits below the millisecond: set unix.precision, as microseconds")
        return to_unix(epoch_ns, self.precision)

    def _print(self, epoch_ns: int, what: str) -> str:
        assert self.pattern is not None, "target.type string needs a format"
        # SimpleDateFormat prints 123 ms as 000123 with SSSSSS, which reads as 123 microseconds.
        if epoch_ns % MS and self.pattern.most_fraction > 3:
            raise TransformError(
                f"{what} has digits below the millisecond, which format cannot print: S is milliseconds"
            )
        return format_time(self.pattern, epoch_ns // MS)


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
    if UNITS[precision] > 1000 and target != "Date" and not options.exact:
        options.notices.append(
            f"unix.precision {precision}: what is below the millisecond is cut, as in Kafka Connect; "
            "converter.times: exact keeps it in values with a schema"
        )
    if target == "string" and pattern is not None and pattern.most_fraction > 3:
        letters = "S" * pattern.most_fraction
        options.notices.append(
            f"format: {letters} is milliseconds with zeros before them, in Kafka Connect too; use SSS"
        )
    conversion = TimeConversion(target, precision, "unix.precision" in options, pattern, options.exact)
    convert = conversion.convert
    typed = later("timestamps", "convert_timestamp", side, field, conversion)
    if not field:
        return change_side(side, lambda value: convert(value, f"the {side}"), typed=typed)
    return change_object(
        side, lambda value: {**value, field: convert(value.get(field), f"field {field!r}")}, typed=typed
    )
