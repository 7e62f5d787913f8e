"""The parts of date patterns, and the letters: what each prints and reads, and how often; a table per library."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone, tzinfo
from operator import attrgetter

from s3lake.text.dates.iso import find_day_of_year
from s3lake.text.dates.zones import format_offset, parse_zone

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_SECOND = timedelta(seconds=1)
_ALWAYS = 99
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_HALVES = ("AM", "PM")
_PAIR = r"(?P<pair>'')|"
_TOKEN = r"'(?P<quoted>(?:[^']|'')*)'(?!')|(?P<run>(?P<letter>[A-Za-z])(?P=letter)*)|(?P<other>.)"
# `''''` is one quote in quotes for DateTimeFormatter, and two quotes for Joda and SimpleDateFormat.
_QUOTED = re.compile(_TOKEN, re.DOTALL)
_PAIRED = re.compile(_PAIR + _TOKEN, re.DOTALL)


@dataclass(frozen=True)
class Token:
    """A letter and how often it is repeated, or text that is printed unchanged (without a letter).

    `quoted` text has no other meaning; a single character outside of quotes may have one.
    """

    position: int
    letter: str
    count: int
    text: str
    quoted: bool = False


def split_pattern(pattern: str, *, pairs: bool) -> list[Token]:
    """Split a pattern into its parts; with `pairs`, two quotes are always a quote.

    Raises:
        ValueError: a quote is not closed.
    """
    parts = []
    for match in (_PAIRED if pairs else _QUOTED).finditer(pattern):
        run, quoted, other = match["run"], match["quoted"], match["other"]
        if run is not None:
            parts.append(Token(match.start(), match["letter"], len(run), run))
        elif other == "'":
            raise ValueError(
                f"the quote at character {match.start() + 1} is not closed; write ' before and after plain text, and "
                "'' for a quote"
            )
        elif other is not None:
            parts.append(Token(match.start(), "", 0, other))
        else:
            parts.append(Token(match.start(), "", 0, (quoted or "").replace("''", "'") or "'", quoted=True))
    return parts


def require_hour_of_minutes(letters: Set[str], dates: Set[str]) -> None:
    """Refuse a pattern with a date and minutes, and without an hour; `dates` are the letters that print a date.

    Raises:
        ValueError: it is such a pattern.
    """
    if "m" in letters and letters & dates and not letters & set("HhKk"):
        raise ValueError("m is the minute, and there is no hour; write M for the month")


@dataclass(frozen=True)
class Style:
    """The settings that decide what a letter prints for a moment.

    Attributes:
        zone: id of the time zone.
        simple: True for Joda and SimpleDateFormat: numbers that are read may have fewer digits than letters.
        short_names: names are short however often the letter is repeated.
        count: how often the letter is repeated.
    """

    zone: str
    simple: bool = False
    short_names: bool = False
    count: int = 1

    def cut_name(self, name: str) -> str:
        """Return the name of a month or a day, or its first three letters for fewer than four letters."""
        return name if self.count >= 4 and not self.short_names else name[:3]


Printer = Callable[[datetime, Style], str]


class PartialTime:
    """The fields of a time that a text contains; the others are from the first midnight of 1970."""

    def __init__(self, zone: tzinfo) -> None:
        self.zone = zone
        self.fields = {"year": 1970, "month": 1, "day": 1, "minute": 0, "second": 0, "nanosecond": 0}

    def to_epoch_ns(self) -> int:
        """Return the nanoseconds since 1970.

        Raises:
            ValueError, OverflowError: there is no such time.
        """
        fields = self.fields
        hour = fields.get("hour")
        if hour is None:
            hour = fields.get("half_hour", 0) % 12 + 12 * fields.get("afternoon", 0)
        time = (hour % 24, fields["minute"], fields["second"])
        local = datetime(fields["year"], fields["month"], fields["day"], *time)
        if "day_of_year" in fields:
            local = datetime.combine(find_day_of_year(local.year, fields["day_of_year"]), local.time())
        return (local.replace(tzinfo=self.zone) - _EPOCH) // _SECOND * 10**9 + fields["nanosecond"]


@dataclass(frozen=True)
class Letter:
    """A letter of Java's patterns.

    Attributes:
        most: how often it may be repeated.
        printer: prints it for a moment.
        expression: the regular expression of what it reads.
        read: sets the field of a time to what was read.
        digits_below: repeated less often than this it is a number.
    """

    most: int
    printer: Printer
    expression: Callable[[Style], str]
    read: Callable[[PartialTime, str, Style], None]
    digits_below: int = 0


def compile_printer(parts: Sequence[Token], letters: Mapping[str, Printer], style: Style) -> Callable[[datetime], str]:
    """Return a function that prints the parts of a pattern, one after the other."""
    template = "".join("%s" if part.letter else part.text.replace("%", "%%") for part in parts)
    printers = [(letters[part.letter], replace(style, count=part.count)) for part in parts if part.letter]

    def print_moment(moment: datetime) -> str:
        return template % tuple([printer(moment, own) for printer, own in printers])

    return print_moment


def prints_name(part: Token) -> bool:
    """Return whether a letter prints a word that another language has another one for."""
    return part.letter in tuple("EaG") or (part.letter in ("M", "L") and part.count >= 3)


def format_number(number: int, style: Style) -> str:
    """Format a number, filled up with zeros and never cut."""
    return f"{number:0{style.count}d}"


def format_year(number: int, style: Style) -> str:
    """Format a year, of which two letters are its last two digits."""
    return f"{number % 100:02d}" if style.count == 2 else format_number(number, style)


def _make_number(most: int, value: Callable[[datetime], int], field: str, low: int, high: int, unit: int = 1) -> Letter:
    """Build a letter that counts something; times `unit` it is the field of the time."""

    def printer(moment: datetime, style: Style) -> str:
        return format_number(value(moment), style)

    def expression(style: Style) -> str:
        if style.count >= 2 and not style.simple:
            return rf"\d{{{style.count}}}"
        return rf"\d{{1,{max(2, len(str(high)))}}}"

    def read(time: PartialTime, text: str, _: Style) -> None:
        digits = int(text)
        if not low <= digits <= high:
            raise ValueError(text)
        time.fields[field] = digits * unit

    return Letter(most, printer, expression, read, _ALWAYS)


def _ignore(time: PartialTime, text: str, style: Style) -> None:
    """Ignore the name of a day or an era: it changes nothing."""


def _make_name(most: int, names: Sequence[str], position: Callable[[datetime], int]) -> Letter:
    def printer(moment: datetime, style: Style) -> str:
        return style.cut_name(names[position(moment)])

    return Letter(most, printer, lambda style: "|".join(map(style.cut_name, names)), _ignore)


def _make_year_expression(style: Style) -> str:
    if style.count == 2:
        return r"\d{2}"
    return rf"\d{{{1 if style.simple else style.count},4}}"


def _read_year(time: PartialTime, text: str, style: Style) -> None:
    century = 0
    if style.count == 2:
        century = 1900 if style.simple and int(text) >= 50 else 2000
    time.fields["year"] = century + int(text)


def _make_month() -> Letter:
    """Build the letter of months: a number, and from three letters on a name."""
    number = _make_number(4, attrgetter("month"), "month", 1, 12)
    name = _make_name(4, _MONTHS, lambda moment: moment.month - 1)

    def printer(moment: datetime, style: Style) -> str:
        return (number if style.count < 3 else name).printer(moment, style)

    def expression(style: Style) -> str:
        return (number if style.count < 3 else name).expression(style)

    def read(time: PartialTime, text: str, style: Style) -> None:
        if style.count < 3:
            number.read(time, text, style)
        else:
            time.fields["month"] = [style.cut_name(month).lower() for month in _MONTHS].index(text.lower()) + 1

    return Letter(4, printer, expression, read, digits_below=3)


def _read_half(time: PartialTime, text: str, _: Style) -> None:
    time.fields["afternoon"] = int(text.upper() == "PM")


def _print_fraction(moment: datetime, style: Style) -> str:
    return f"{moment.microsecond * 1000:09d}"[: style.count]


def _read_fraction(time: PartialTime, text: str, _: Style) -> None:
    time.fields["nanosecond"] = int(f"{text:0<9}")


def _read_zone(time: PartialTime, text: str, _: Style) -> None:
    time.zone = parse_zone(text)


def _make_zone(most: int, printer: Printer) -> Letter:
    return Letter(most, printer, lambda _: r"[A-Za-z][A-Za-z0-9_/+:-]*|[+-]\d\d:?\d\d", _read_zone)


def _make_offset(most: int, shorten: Callable[[str, Style], str]) -> Letter:
    """Build a letter of an offset; `shorten` gets it as `+02:00`."""

    def printer(moment: datetime, style: Style) -> str:
        return shorten(format_offset(moment.utcoffset() or timedelta(), ":"), style)

    return Letter(most, printer, lambda _: r"Z|GMT|(?:GMT)?[+-]\d\d(?::?\d\d)?", _read_zone)


def _print_offset_x(offset: str, style: Style) -> str:
    if style.count == 1 and (style.simple or offset.endswith(":00")):
        return offset[:3]
    return offset if style.count == 3 else offset.replace(":", "")


def _print_offset_z(offset: str, style: Style) -> str:
    if style.simple or style.count < 4:
        return offset.replace(":", "")
    if offset[1:] == "00:00":
        return "GMT" if style.count == 4 else "Z"
    return f"GMT{offset}" if style.count == 4 else offset


_YEAR = Letter(4, lambda moment, style: format_year(moment.year, style), _make_year_expression, _read_year, _ALWAYS)
_MONTH = _make_month()

JAVA_TIME: dict[str, Letter] = {
    "y": _YEAR,
    "u": _YEAR,
    "M": _MONTH,
    "L": _MONTH,
    "E": _make_name(4, _DAYS, datetime.weekday),
    "G": Letter(3, lambda *_: "AD", lambda _: "AD", _ignore),
    "d": _make_number(2, attrgetter("day"), "day", 1, 31),
    "H": _make_number(2, attrgetter("hour"), "hour", 0, 23),
    "h": _make_number(2, lambda moment: moment.hour % 12 or 12, "half_hour", 1, 12),
    "K": _make_number(2, lambda moment: moment.hour % 12, "half_hour", 0, 11),
    "k": _make_number(2, lambda moment: moment.hour or 24, "hour", 1, 24),
    "m": _make_number(2, attrgetter("minute"), "minute", 0, 59),
    "s": _make_number(2, attrgetter("second"), "second", 0, 59),
    "S": Letter(9, _print_fraction, lambda style: rf"\d{{{style.count}}}", _read_fraction, _ALWAYS),
    "D": _make_number(3, lambda moment: moment.timetuple().tm_yday, "day_of_year", 1, 366),
    "a": Letter(1, lambda moment, _: _HALVES[moment.hour // 12], lambda _: "|".join(_HALVES), _read_half),
    "z": _make_zone(3, lambda moment, style: moment.tzname() or style.zone),
    "Z": _make_offset(5, _print_offset_z),
    "X": _make_offset(3, lambda offset, style: "Z" if offset[1:] == "00:00" else _print_offset_x(offset, style)),
    "x": _make_offset(3, _print_offset_x),
    "V": _make_zone(2, lambda _, style: style.zone),
}
"""The letters of DateTimeFormatter."""

SIMPLE: dict[str, Letter] = {
    **{letter: replace(JAVA_TIME[letter], most=9) for letter in "yMLdDHhKkmsEGaZ"},
    "S": _make_number(9, lambda moment: moment.microsecond // 1000, "nanosecond", 0, 999, unit=1_000_000),
    "u": _make_number(9, datetime.isoweekday, "weekday", 1, 7),
    "z": JAVA_TIME["z"],
    "X": JAVA_TIME["X"],
}
"""The letters of SimpleDateFormat."""
