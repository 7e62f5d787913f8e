"""Lenses' transforms, `io.lenses.connect.smt.header.*`: times as headers, to partition by.

The wallclock is the micro-batch's: every record of it gets the same, also when the micro-batch is tried again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from s3lake.text.dates.java import DatePattern
from s3lake.transform.instants import Instant
from s3lake.transform.options import OptionError, Options
from s3lake.transform.paths import value_at
from s3lake.transform.record import Header, HeaderStep, Record, Refusal, shown
from s3lake.transform.times import (
    PRECISIONS,
    TARGETS,
    TYPED,
    Window,
    from_unix,
    pattern_of,
    printed,
    to_unix,
    unix_number,
)

_PARTS = ("year", "month", "day", "hour", "minute", "second", "date")
_DEFAULTS = {
    "year": "yyyy",
    "month": "MM",
    "day": "dd",
    "hour": "HH",
    "minute": "mm",
    "second": "ss",
    "date": "yyyy-MM-dd",
}
_SINGLE = {"year": "u", "month": "M", "day": "d", "hour": "H", "minute": "m", "second": "s"}
_KNOWN = 4096
_ISO_MILLISECONDS = DatePattern("uuuu-MM-dd'T'HH:mm:ss.SSS")


@dataclass(frozen=True)
class Source:
    """Where a timestamp comes from: a field of the key or value (or the whole), or the record's own time."""

    part: Literal["key", "value", "timestamp"]
    path: tuple[str, ...]
    patterns: tuple[DatePattern, ...]
    precision: str
    zone: str

    @classmethod
    def of(cls, options: Options, locale: str, zone: str) -> Source:
        """Read `field`, `format.from.pattern` and `unix.precision`."""
        text = options.text("field") or "_value"
        head, *rest = text.split(".")
        if head.lower() == "_timestamp" and rest:
            raise OptionError(f"field: {text!r}: _timestamp has no fields", "field")
        part: Literal["key", "value", "timestamp"] = "value"
        path = (head, *rest)
        if head.lower() in ("_key", "_value", "_timestamp"):
            part = {"_key": "key", "_value": "value", "_timestamp": "timestamp"}[head.lower()]  # type: ignore[assignment]
            path = tuple(rest)
        if not all(path):
            raise OptionError(f"field: {text!r} has an empty step; write a.b.c, _key.a or _timestamp", "field")
        patterns = tuple(DatePattern(one, "java.time", locale) for one in options.names("format.from.pattern"))
        for one in patterns:
            options.read("format.from.pattern", one.pattern, lambda _, one=one: one.parser(zone))  # type: ignore[misc]
        return cls(part, path, patterns, options.choice("unix.precision", PRECISIONS, PRECISIONS[0]), zone)

    @property
    def reads(self) -> frozenset[str]:
        """The part of the record that it looks into."""
        return frozenset() if self.part == "timestamp" else frozenset({self.part})

    def epoch_ms(self, record: Record) -> int | None:
        """The timestamp, None where it is null or missing.

        Raises:
            Refusal: what stands there is none.
        """
        if self.part == "timestamp":
            return record.timestamp
        whole = record.key if self.part == "key" else record.value
        value = whole if whole is None else value_at(whole, self.path)
        return None if value is None else self._read(value)

    def _read(self, value: Any) -> int:
        if isinstance(value, str) and self.patterns:
            for one in self.patterns:
                try:
                    return one.parser(self.zone)(value)
                except ValueError:
                    continue
        if isinstance(value, Instant):
            return value.epoch_ms
        number = unix_number(value)
        if number is not None:
            return from_unix(number, self.precision)
        what = f"field {'.'.join(self.path)!r}" if self.path else f"the {self.part}"
        if not isinstance(value, str):
            raise Refusal(f"{what} is {shown(value, what)}; a timestamp is a whole number or a text")
        if not self.patterns:
            raise Refusal(f"{what} is {shown(value, what)}; to read texts, format.from.pattern is needed")
        tried = ", ".join(one.pattern for one in self.patterns)
        raise Refusal(f"{what} is {shown(value, what)}, which matches none of format.from.pattern: {tried}")


@dataclass(frozen=True)
class TimestampConverter(HeaderStep):
    """A timestamp of the record as a header; a null or missing one is a header without a value."""

    header: str
    source: Source
    target: str
    pattern: DatePattern | None
    window: Window
    zone: str

    @classmethod
    def of(cls, options: Options) -> TimestampConverter:
        header = options.needed_text("header.name", "ts")
        locale = options.text("locale", "en")
        source = Source.of(options, locale, options.text("timezone", "UTC"))
        target = options.choice("target.type", TARGETS)
        zone = options.text("target.timezone", "UTC")
        text = options.text("format.to.pattern")
        if target == "string" and not text.strip():
            message = "format.to.pattern is missing; target.type string needs it, for example yyyy-MM-dd-HH"
            raise OptionError(message, "format.to.pattern")
        if not text.strip():
            # Only to say whether there is such a zone.
            options.read("target.timezone", zone, TYPED["Date"].formatter)
        pattern = pattern_of(options, "format.to.pattern", text, locale, zone) if text.strip() else None
        return cls(header, source, target, pattern, Window.of(options, optional=True), zone)

    @property
    def reads(self) -> frozenset[str]:
        return self.source.reads

    def __call__(self, record: Record) -> None:
        epoch_ms = self.source.epoch_ms(record)
        record.add(self.header, None if epoch_ms is None else self._text(self.window.start(epoch_ms)).encode())

    def _text(self, epoch_ms: int) -> str:
        if self.target == "unix":
            return str(to_unix(epoch_ms, self.source.precision))
        if self.target == "Timestamp":
            return printed(TYPED["Timestamp"], epoch_ms)
        pattern = self.pattern if self.target == "string" else TYPED[self.target]
        assert pattern is not None
        return printed(pattern, epoch_ms, self.zone)


@dataclass(frozen=True)
class InsertWallclock(HeaderStep):
    """The wallclock as a header, at the start of its window where one is set; without a pattern as epoch ms.

    An empty pattern is ISO 8601 without an offset, with a fraction only where there is one.
    """

    header: str
    pattern: DatePattern | None
    iso: bool
    window: Window
    zone: str

    @classmethod
    def of(cls, options: Options) -> InsertWallclock:
        return cls._read(options, rolling=False)

    @classmethod
    def rolling(cls, options: Options) -> InsertWallclock:
        """Read the options of InsertRollingWallclock."""
        return cls._read(options, rolling=True)

    @classmethod
    def _read(cls, options: Options, *, rolling: bool) -> InsertWallclock:
        header = options.needed_text("header.name", "wallclock")
        value_type = options.choice("value.type", ("format", "epoch"), "format")
        text = options.text("format")
        zone = options.text("timezone", "UTC")
        options.read("timezone", zone, _ISO_MILLISECONDS.formatter)
        if value_type == "epoch" and zone != "UTC":
            raise OptionError(f"timezone: {zone!r} has no meaning with value.type epoch; take it out", "timezone")
        window = Window.of(options, optional=not rolling)
        pattern = pattern_of(options, "format", text, "en", zone) if value_type == "format" and text else None
        return cls(header, pattern, value_type == "format" and not text, window, zone)

    def constants(self, wallclock_ms: int) -> list[Header]:
        moment = self.window.start(wallclock_ms)
        if self.pattern is not None:
            return [(self.header, printed(self.pattern, moment, self.zone).encode())]
        if not self.iso:
            return [(self.header, str(moment).encode())]
        text = printed(_ISO_MILLISECONDS, moment, self.zone)
        return [(self.header, (text.rstrip("0") if moment % 1000 else text[:-4]).encode())]

    def __call__(self, record: Record) -> None:
        for header in self.constants(record.wallclock_ms):
            record.add(*header)


@dataclass(frozen=True)
class InsertWallclockDateTimePart(HeaderStep):
    """One number of the wallclock in UTC, without leading zeros."""

    header: str
    part: str

    @classmethod
    def of(cls, options: Options) -> InsertWallclockDateTimePart:
        header = options.needed_text("header.name", "wallclock")
        return cls(header, options.choice("date.time.part", tuple(_SINGLE)))

    def constants(self, wallclock_ms: int) -> list[Header]:
        return [(self.header, printed(DatePattern(_SINGLE[self.part]), wallclock_ms).encode())]

    def __call__(self, record: Record) -> None:
        for header in self.constants(record.wallclock_ms):
            record.add(*header)


@dataclass(frozen=True)
class InsertTimestampHeaders(HeaderStep):
    """The parts of a time as seven headers: of a field, of the record, or of the wallclock (no source).

    Attributes:
        resolution: milliseconds within which they are the same.
        known: those of times that were there before, since many records share a second.
    """

    headers: tuple[tuple[str, DatePattern], ...]
    source: Source | None
    window: Window
    zone: str
    resolution: int
    printed_of: dict[int, list[Header]] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(
        cls, options: Options, origin: Literal["field", "record", "wallclock"], *, rolling: bool
    ) -> InsertTimestampHeaders:
        """Read the options of the class for that origin."""
        prefix = options.text("header.prefix.name")
        zone = options.text("timezone", "UTC")
        locale = options.text("locale", "en")
        options.read("timezone", zone, _ISO_MILLISECONDS.formatter)
        headers = tuple(
            (
                prefix + part,
                pattern_of(options, f"{part}.format", options.text(f"{part}.format", _DEFAULTS[part]), locale),
            )
            for part in _PARTS
        )
        source = Source.of(options, locale, zone) if origin == "field" else None
        if origin == "record":
            source = Source("timestamp", (), (), PRECISIONS[0], zone)
        window = Window.of(options, optional=False) if rolling else Window()
        return cls(headers, source, window, zone, min(pattern.resolution for _, pattern in headers))

    @property
    def reads(self) -> frozenset[str]:
        return self.source.reads if self.source else frozenset()

    def constants(self, wallclock_ms: int) -> list[Header] | None:
        return None if self.source else self._headers(wallclock_ms)

    def __call__(self, record: Record) -> None:
        epoch_ms = self.source.epoch_ms(record) if self.source else record.wallclock_ms
        if epoch_ms is None:
            if self.source is None or self.source.part != "timestamp":
                raise Refusal("the timestamp is null or missing")
            epoch_ms = record.wallclock_ms
        record.headers.extend(self._headers(epoch_ms))

    def _headers(self, epoch_ms: int) -> list[Header]:
        moment = self.window.start(epoch_ms)
        headers = self.printed_of.get(moment // self.resolution)
        if headers is None:
            if len(self.printed_of) >= _KNOWN:
                self.printed_of.clear()
            headers = [(name, printed(pattern, moment, self.zone).encode()) for name, pattern in self.headers]
            self.printed_of[moment // self.resolution] = headers
        return headers


@dataclass(frozen=True)
class RenameHeader(HeaderStep):
    """Headers of one name under another, at the end."""

    old: str
    new: str

    @classmethod
    def of(cls, options: Options) -> RenameHeader:
        return cls(options.needed_text("header.name.old", "ts"), options.needed_text("header.name.new", "time"))

    reads = frozenset({"headers"})

    def __call__(self, record: Record) -> None:
        headers = record.headers
        others = [one for one in headers if one[0] != self.old]
        record.headers = [*others, *((self.new, value) for name, value in headers if name == self.old)]
