"""Lenses' transforms, `io.lenses.connect.smt.header.*`: times as headers, to partition by.

The wallclock is the micro-batch's: every record of it gets the same, also when the micro-batch is tried again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Literal

from s3lake.records.transform.families.timestamps import (
    MS,
    PRECISIONS,
    TARGETS,
    TYPED,
    format_fine_time,
    format_time,
    from_unix,
    require_unit,
    to_unix,
)
from s3lake.records.transform.step.option_reader import OptionError, OptionReader
from s3lake.records.transform.step.record import Record, Step, add_constant, add_headers, change_headers, get_field
from s3lake.records.transform.step.record_values import Header, Instant, TransformError, describe
from s3lake.text.dates.java import DatePattern

_PARTS = {
    "year": "yyyy",
    "month": "MM",
    "day": "dd",
    "hour": "HH",
    "minute": "mm",
    "second": "ss",
    "date": "yyyy-MM-dd",
}
_NUMBERS = {"year": "u", "month": "M", "day": "d", "hour": "H", "minute": "m", "second": "s"}
_ISO_MILLISECONDS = DatePattern("uuuu-MM-dd'T'HH:mm:ss.SSS")

ReadTime = Callable[[Record], int | None]
"""Returns nanoseconds since 1970, None if the time is null or missing."""


def insert_timestamp_header(options: OptionReader) -> Step:
    """Add a timestamp of the record as a header; a null or missing one is a header without a value."""
    header = options.text("header.name", example="ts")
    locale = options.text("locale", "en")
    precision = options.choice("unix.precision", PRECISIONS, PRECISIONS[0])
    part, field, read_time = _read_field(options, locale, options.text("timezone", "UTC"), precision)
    target = options.choice("target.type", TARGETS)
    zone = _read_zone(options, "target.timezone")
    pattern = TYPED.get(target)
    if options.text("format.to.pattern", "").strip():
        own_pattern = _read_pattern(options, "format.to.pattern", "", locale)
        pattern = own_pattern if target == "string" else pattern
    elif target == "string":
        message = "format.to.pattern is missing; target.type string needs it, for example yyyy-MM-dd-HH"
        raise OptionError(message, "format.to.pattern")
    find_start = _read_window(options, optional=True)
    zone = "UTC" if target == "Timestamp" else zone

    def list_headers(record: Record) -> list[Header]:
        epoch_ns = read_time(record)
        if epoch_ns is None:
            return [(header, None)]
        start = find_start(epoch_ns)
        text = str(to_unix(start, precision)) if pattern is None else format_fine_time(pattern, start, zone)
        return [(header, text.encode())]

    return add_headers(list_headers, frozenset({part}) - {"timestamp"}, field)


def insert_wallclock(options: OptionReader, *, rolling: bool) -> Step:
    """Add the wallclock as a header, at the start of its window if one is set.

    Without a pattern it is ISO 8601 without an offset, with a fraction only if it is not 0; or epoch ms.
    """
    header = options.text("header.name", example="wallclock")
    value_type = options.choice("value.type", ("format", "epoch"), "format")
    zone = _read_zone(options, "timezone")
    if value_type == "epoch" and zone != "UTC":
        raise OptionError(f"timezone: {zone!r} has no meaning with value.type epoch; take it out", "timezone")
    find_start = _read_window(options, optional=not rolling)
    pattern = None
    if options.text("format", "") and value_type == "format":
        pattern = _read_pattern(options, "format", "", "en")

    def print_time(epoch_ms: int) -> str:
        if value_type == "epoch":
            return str(epoch_ms)
        text = format_time(pattern or _ISO_MILLISECONDS, epoch_ms, zone)
        if pattern is not None:
            return text
        return text.rstrip("0") if epoch_ms % 1000 else text[:-4]

    return add_constant(lambda wallclock_ms: [(header, print_time(find_start(wallclock_ms * MS) // MS).encode())])


def insert_wallclock_part(options: OptionReader) -> Step:
    """Add one number of the wallclock in UTC, without leading zeros."""
    header = options.text("header.name", example="wallclock")
    pattern = DatePattern(_NUMBERS[options.choice("date.time.part", tuple(_NUMBERS))])
    return add_constant(lambda wallclock_ms: [(header, format_time(pattern, wallclock_ms).encode())])


def insert_time_headers(
    options: OptionReader, origin: Literal["field", "record", "wallclock"], *, rolling: bool
) -> Step:
    """Add the parts of a time as seven headers: of a field, of the record, or of the wallclock."""
    prefix = options.text("header.prefix.name", "")
    zone = _read_zone(options, "timezone")
    locale = options.text("locale", "en")
    patterns = {
        prefix + part: _read_pattern(options, f"{part}.format", default, locale) for part, default in _PARTS.items()
    }
    find_start: Callable[[int], int] = lambda epoch_ns: epoch_ns  # noqa: E731
    if rolling:
        find_start = _read_window(options, optional=False)
    resolution = min(pattern.resolution_ns for pattern in patterns.values())

    @lru_cache(maxsize=4096)  # many records share a second
    def format_parts(moment: int) -> list[Header]:
        return [
            (name, format_fine_time(pattern, moment * resolution, zone).encode()) for name, pattern in patterns.items()
        ]

    def list_parts(epoch_ns: int) -> list[Header]:
        return format_parts(find_start(epoch_ns) // resolution)

    if origin == "wallclock":
        return add_constant(lambda wallclock_ms: list_parts(wallclock_ms * MS))
    if origin == "record":
        return add_headers(
            lambda record: list_parts(MS * (record.wallclock_ms if record.timestamp is None else record.timestamp))
        )
    precision = options.choice("unix.precision", PRECISIONS, PRECISIONS[0])
    part, field, read_time = _read_field(options, locale, zone, precision)

    def list_headers(record: Record) -> list[Header]:
        epoch_ns = read_time(record)
        if epoch_ns is None and part != "timestamp":
            raise TransformError("the timestamp is null or missing")
        return list_parts(record.wallclock_ms * MS if epoch_ns is None else epoch_ns)

    return add_headers(list_headers, frozenset({part}) - {"timestamp"}, field)


def rename_header(options: OptionReader) -> Step:
    """Put the headers of one name under another name, at the end."""
    old, new = options.text("header.name.old", example="ts"), options.text("header.name.new", example="time")

    def rename(headers: list[Header]) -> list[Header]:
        renamed = [(new, value) for name, value in headers if name == old]
        return [*(header for header in headers if header[0] != old), *renamed]

    return change_headers(rename)


def _read_window(options: OptionReader, *, optional: bool) -> Callable[[int], int]:
    """Read a rolling window. Return the function that moves a time to the start of its window, counted from 1970."""
    units = {"minutes": 60_000, "hours": 3_600_000, "seconds": 1000}
    choices = ("none", *units) if optional else tuple(units)
    unit = options.choice("rolling.window.type", choices, choices[0])
    size = options.number("rolling.window.size", 15, 1, 24 if unit == "hours" else 60)
    if optional and unit != "none" and "rolling.window.size" not in options:
        raise OptionError(f"rolling.window.size is missing; how many {unit} a window has", "rolling.window.size")
    window_ns = size * units.get(unit, 0) * MS
    return (lambda epoch_ns: epoch_ns - epoch_ns % window_ns) if window_ns else lambda epoch_ns: epoch_ns


def _read_zone(options: OptionReader, name: str) -> str:
    def parse(zone: str) -> str:
        _ISO_MILLISECONDS.formatter(zone)
        return zone

    return options.parse(name, parse, "UTC")


def _read_pattern(options: OptionReader, name: str, default: str, locale: str) -> DatePattern:
    def parse(text: str) -> DatePattern:
        pattern = DatePattern(text, "java.time", locale)
        pattern.formatter()
        return pattern

    return options.parse(name, parse, default)


def _read_field(options: OptionReader, locale: str, zone: str, precision: str) -> tuple[str, str | None, ReadTime]:
    """Read `field` and `format.from.pattern`.

    Returns:
        The part of a record that has the time, the field of it that has it, and how it is read.
    """
    text = options.text("field", "") or "_value"
    head, *rest = text.split(".")
    parts = {"_key": "key", "_value": "value", "_timestamp": "timestamp"}
    part, path = parts.get(head.lower(), "value"), tuple(rest if head.lower() in parts else (head, *rest))
    if part == "timestamp" and path:
        raise OptionError(f"field: {text!r}: _timestamp has no fields", "field")
    if not all(path):
        raise OptionError(f"field: {text!r} has an empty step; write a.b.c, _key.a or _timestamp", "field")
    patterns = [DatePattern(pattern, "java.time", locale) for pattern in options.names("format.from.pattern")]
    try:
        parsers = [pattern.fine_parser(zone) for pattern in patterns]
    except ValueError as error:
        raise OptionError(f"format.from.pattern: {error}", "format.from.pattern") from None
    tried = ", ".join(pattern.pattern for pattern in patterns)
    what = f"field {'.'.join(path)!r}" if path else f"the {part}"

    def read_time(record: Record) -> int | None:
        whole = getattr(record, part)
        value = whole if whole is None else get_field(whole, path)
        if value is None:
            return None
        if part == "timestamp":
            return record.timestamp * MS if record.timestamp is not None else None
        if isinstance(value, str):
            for parse in parsers:
                try:
                    return parse(value)
                except ValueError:
                    continue
        if isinstance(value, Instant):
            return value.epoch_ns
        number = _to_number(value)
        if number is not None:
            require_unit(number, precision, what)
            return from_unix(number, precision)
        if not isinstance(value, str):
            raise TransformError(f"{what} is {describe(value, what)}; a timestamp is a whole number or a text")
        if not patterns:
            raise TransformError(f"{what} is {describe(value, what)}; to read texts, format.from.pattern is needed")
        raise TransformError(f"{what} is {describe(value, what)}, which matches none of format.from.pattern: {tried}")

    return part, path[0] if path else None, read_time


def _to_number(value: Any) -> int | None:
    """Return a whole number, also one that is written as text. Return None for anything else."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and value.isascii() and len(value) <= 20 and value.removeprefix("-").isdigit():
        return int(value)
    return None
