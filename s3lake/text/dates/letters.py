"""The letters of date patterns: what each prints and reads, how often it may stand in a row; a table per language."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone, tzinfo
from operator import attrgetter

from s3lake.text.dates.iso import day_of_year
from s3lake.text.dates.names import Names
from s3lake.text.dates.tokens import Token
from s3lake.text.dates.zones import java_zone, offset_text

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MILLISECOND = timedelta(milliseconds=1)
_DAY_MS = 86_400_000
_ALWAYS = 99


@dataclass(frozen=True)
class Style:
    """What a letter prints depends on besides the moment.

    Attributes:
        names: of months and days.
        zone: its id.
        simple: as Joda and SimpleDateFormat have it, more than four letters are no shorter name, and numbers that are
            read may have fewer digits than letters.
        count: how often the letter stands in a row.
    """

    names: Names
    zone: str
    simple: bool = False
    count: int = 1

    @property
    def width(self) -> str:
        """Which of a month's or a day's names is meant."""
        if self.count == 5 and not self.simple:
            return "narrow"
        return "wide" if self.count >= 4 else "abbreviated"


Printer = Callable[[datetime, Style], str]


class Moment:
    """What a text has said so far; what it does not say is the first midnight of 1970."""

    def __init__(self, zone: tzinfo) -> None:
        self.zone = zone
        self.fields = {"year": 1970, "month": 1, "day": 1, "minute": 0, "second": 0, "nanosecond": 0}

    def epoch_ms(self) -> int:
        """The moment.

        Raises:
            ValueError, OverflowError: there is none.
        """
        fields = self.fields
        hour = fields.get("hour")
        if hour is None:
            hour = fields.get("half_hour", 0) % 12 + 12 * fields.get("afternoon", 0)
        micros = fields["nanosecond"] // 1000
        minute, second = fields["minute"], fields["second"]
        local = datetime(fields["year"], fields["month"], fields["day"], hour % 24, minute, second, micros)
        if "day_of_year" in fields:
            local = datetime.combine(day_of_year(local.year, fields["day_of_year"]), local.time())
        if "nanosecond_of_day" in fields:
            midnight = local.replace(hour=0, minute=0, second=0, microsecond=0)
            local = midnight + timedelta(microseconds=fields["nanosecond_of_day"] // 1000)
        return (local.replace(tzinfo=self.zone) - _EPOCH) // _MILLISECOND


@dataclass(frozen=True)
class Letter:
    """A letter of Java's: from its style to what it prints and to the expression that it reads.

    Attributes:
        most: how often it may stand in a row.
        digits_below: with fewer letters than that in a row it is a number.
    """

    most: int
    printer: Printer
    expression: Callable[[Style], str]
    read: Callable[[Moment, str, Style], None]
    digits_below: int = 0


def printed(parts: Sequence[Token], letters: Mapping[str, Printer], style: Style) -> Callable[[datetime], str]:
    """What the parts of a pattern print, one after the other."""
    template = "".join("%s" if part.letter else part.text.replace("%", "%%") for part in parts)
    printers = [(letters[part.letter], replace(style, count=part.count)) for part in parts if part.letter]

    def text(moment: datetime) -> str:
        return template % tuple([printer(moment, own) for printer, own in printers])

    return text


def counted(number: int, style: Style) -> str:
    """A number, filled up with zeros and never cut."""
    return f"{number:0{style.count}d}"


def year(number: int, style: Style) -> str:
    """The same of a year, of which two letters are its last two digits."""
    return f"{number % 100:02d}" if style.count == 2 else counted(number, style)


def _number(most: int, value: Callable[[datetime], int], field: str, low: int, high: int, unit: int = 1) -> Letter:
    """A letter that counts something; times `unit` it is the field of the moment."""

    def printer(moment: datetime, style: Style) -> str:
        return f"{value(moment):0{style.count}d}"

    def expression(style: Style) -> str:
        if style.count >= 2 and not style.simple:
            return rf"\d{{{style.count}}}"
        return rf"\d{{1,{max(2, len(str(high)))}}}"

    def read(moment: Moment, text: str, _: Style) -> None:
        digits = int(text)
        if not low <= digits <= high:
            raise ValueError(text)
        moment.fields[field] = digits * unit

    return Letter(most, printer, expression, read, _ALWAYS)


def _nothing(moment: Moment, text: str, style: Style) -> None:
    """Names of days and eras change nothing."""


def _named(most: int, names: Callable[[Style], tuple[str, ...]], position: Callable[[datetime], int]) -> Letter:
    def printer(moment: datetime, style: Style) -> str:
        return names(style)[position(moment)]

    def expression(style: Style) -> str:
        return "|".join(re.escape(name) for name in sorted(names(style), key=len, reverse=True))

    return Letter(most, printer, expression, _nothing)


def _print_year(moment: datetime, style: Style) -> str:
    return year(moment.year, style)


def _year_expression(style: Style) -> str:
    if style.count == 2:
        return r"\d{2}"
    return rf"\d{{{1 if style.simple else style.count},4}}"


def _read_year(moment: Moment, text: str, style: Style) -> None:
    century = 0
    if style.count == 2:
        century = 1900 if style.simple and int(text) >= 50 else 2000
    moment.fields["year"] = century + int(text)


def _month(names: Callable[[Names], dict[str, tuple[str, ...]]]) -> Letter:
    """A number, and from three letters on a name."""
    number = _number(5, attrgetter("month"), "month", 1, 12)
    name = _named(5, lambda style: names(style.names)[style.width], lambda moment: moment.month - 1)

    def printer(moment: datetime, style: Style) -> str:
        return (number if style.count < 3 else name).printer(moment, style)

    def expression(style: Style) -> str:
        return (number if style.count < 3 else name).expression(style)

    def read(moment: Moment, text: str, style: Style) -> None:
        if style.count < 3:
            number.read(moment, text, style)
        else:
            moment.fields["month"] = style.names.month(text)

    return Letter(5, printer, expression, read, digits_below=3)


def _read_half(moment: Moment, text: str, style: Style) -> None:
    moment.fields["afternoon"] = int(style.names.halves[1].lower() == text.lower())


def _print_fraction(moment: datetime, style: Style) -> str:
    return f"{moment.microsecond * 1000:09d}"[: style.count]


def _read_fraction(moment: Moment, text: str, _: Style) -> None:
    moment.fields["nanosecond"] = int(f"{text:0<9}")


def _print_era(_: datetime, style: Style) -> str:
    widths = {} if style.simple else {4: "Anno Domini", 5: "A"}
    return widths.get(style.count, "AD")


def _read_zone(moment: Moment, text: str, _: Style) -> None:
    moment.zone = java_zone(text)


def _zone(most: int, printer: Printer) -> Letter:
    return Letter(most, printer, lambda _: r"[A-Za-z][A-Za-z0-9_/+:-]*|[+-]\d\d:?\d\d", _read_zone)


def _offset(most: int, spelled: Callable[[str, Style], str]) -> Letter:
    """A letter of an offset; `spelled` has it as `+02:00`."""

    def printer(moment: datetime, style: Style) -> str:
        return spelled(offset_text(moment.utcoffset() or timedelta(), ":"), style)

    return Letter(most, printer, lambda _: r"Z|GMT|(?:GMT)?[+-]\d\d(?::?\d\d)?", _read_zone)


def _offset_x(offset: str, style: Style) -> str:
    if style.count == 1 and (style.simple or offset.endswith(":00")):
        return offset[:3]
    return offset if style.count == 3 else offset.replace(":", "")


def _offset_z(offset: str, style: Style) -> str:
    if style.simple or style.count < 4:
        return offset.replace(":", "")
    if offset[1:] == "00:00":
        return "GMT" if style.count == 4 else "Z"
    return f"GMT{offset}" if style.count == 4 else offset


def _nanosecond_of_day(moment: datetime) -> int:
    return ((moment.hour * 60 + moment.minute) * 60 + moment.second) * 1_000_000_000 + moment.microsecond * 1000


def _millisecond_of_day(moment: datetime) -> int:
    return _nanosecond_of_day(moment) // 1_000_000


_YEAR = Letter(4, _print_year, _year_expression, _read_year, _ALWAYS)

JAVA_TIME: dict[str, Letter] = {
    "y": _YEAR,
    "u": _YEAR,
    "M": _month(attrgetter("months")),
    "L": _month(attrgetter("months_alone")),
    "E": _named(5, lambda style: style.names.days[style.width], datetime.weekday),
    "G": Letter(5, _print_era, lambda _: "AD|Anno Domini|A", _nothing),
    "d": _number(2, attrgetter("day"), "day", 1, 31),
    "H": _number(2, attrgetter("hour"), "hour", 0, 23),
    "h": _number(2, lambda moment: moment.hour % 12 or 12, "half_hour", 1, 12),
    "K": _number(2, lambda moment: moment.hour % 12, "half_hour", 0, 11),
    "k": _number(2, lambda moment: moment.hour or 24, "hour", 1, 24),
    "m": _number(2, attrgetter("minute"), "minute", 0, 59),
    "s": _number(2, attrgetter("second"), "second", 0, 59),
    "S": Letter(9, _print_fraction, lambda style: rf"\d{{{style.count}}}", _read_fraction, _ALWAYS),
    "n": _number(9, lambda moment: moment.microsecond * 1000, "nanosecond", 0, 999_999_999),
    "A": _number(9, _millisecond_of_day, "nanosecond_of_day", 0, _DAY_MS - 1, unit=1_000_000),
    "N": _number(9, _nanosecond_of_day, "nanosecond_of_day", 0, _DAY_MS * 1_000_000 - 1),
    "D": _number(3, lambda moment: moment.timetuple().tm_yday, "day_of_year", 1, 366),
    "a": replace(_named(1, lambda style: style.names.halves, lambda moment: moment.hour // 12), read=_read_half),
    "z": _zone(3, lambda moment, style: moment.tzname() or style.zone),
    "Z": _offset(5, _offset_z),
    "X": _offset(3, lambda offset, style: "Z" if offset[1:] == "00:00" else _offset_x(offset, style)),
    "x": _offset(3, _offset_x),
    "V": _zone(2, lambda _, style: style.zone),
}
"""Of DateTimeFormatter."""

SIMPLE: dict[str, Letter] = {
    **{letter: replace(JAVA_TIME[letter], most=9) for letter in "yMLdDHhKkmsEGaZ"},
    "S": _number(9, lambda moment: moment.microsecond // 1000, "nanosecond", 0, 999, unit=1_000_000),
    "u": _number(9, datetime.isoweekday, "weekday", 1, 7),
    "z": JAVA_TIME["z"],
    "X": JAVA_TIME["X"],
}
"""Of SimpleDateFormat."""
