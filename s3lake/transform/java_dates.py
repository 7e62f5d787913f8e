"""Date patterns of Java: those of DateTimeFormatter (Lenses' transforms) and of SimpleDateFormat (Kafka Connect's).

Reading is stricter than Java's: the whole text must match, numbers must be in range, and an offset in the text counts
(Lenses' transforms read over it). What the pattern does not say is midnight. Two digits of a year are 1950 to 2049
(DateTimeFormatter: 2000 to 2099).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo
from functools import lru_cache, partial
from typing import Any, Literal

from s3lake.transform import java_names
from s3lake.transform.java_zones import zone

Dialect = Literal["java.time", "simple"]

_YEAR_1_MS, _YEAR_10000_MS = -62_135_596_800_000, 253_402_300_800_000
_MARGIN_MS = 86_400_000  # local time may be a day off
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MILLISECOND = timedelta(milliseconds=1)
# Quoted text ('' is one quote, inside and outside), a run of one letter, or anything else.
_TOKEN = re.compile(r"'((?:[^']|'')*)'|(([A-Za-z])\3*)|(.)", re.DOTALL)

_NUMBERS = "yuMLdDHhKkmsSnAN"
_COUNTS: dict[Dialect, dict[str, int]] = {
    "java.time": {
        **dict.fromkeys("yu", 4),
        **dict.fromkeys("MLEG", 5),
        **dict.fromkeys("dHhKkms", 2),
        **dict.fromkeys("SnAN", 9),
        **{"D": 3, "a": 1, "z": 3, "Z": 5, "X": 3, "x": 3, "V": 2},
    },
    "simple": {**dict.fromkeys("yMLdDHhKkmsSuEGa", 9), "z": 3, "Z": 9, "X": 3},
}
"""Letters and how often each may stand in a row."""
_FINE = frozenset("SnAN")


@dataclass(frozen=True)
class Piece:
    """A letter and how often it stands there, or literal text (no letter)."""

    letter: str
    count: int
    text: str

    def is_number(self, dialect: Dialect) -> bool:
        """Whether it prints digits."""
        if self.letter in ("M", "L"):
            return self.count < 3
        return self.letter != "" and self.letter in _NUMBERS and not (self.letter == "u" and dialect == "simple")


@dataclass(frozen=True)
class DatePattern:
    """A pattern; `locale` names months and days."""

    pattern: str
    dialect: Dialect = "java.time"
    locale: str = "en"

    def formatter(self, zone_name: str = "UTC") -> Callable[[int], str]:
        """A function from epoch ms to text; it raises ValueError where a timestamp has no date.

        Raises:
            ValueError: the pattern or the zone cannot be right.
        """
        return _formatter(self, zone_name)

    @property
    def resolution(self) -> int:
        """Milliseconds within which the text is the same: a second, unless a letter says less."""
        fine = any(isinstance(one, Piece) and one.letter in _FINE for one in pieces(self.pattern, self.dialect))
        return 1 if fine else 1000

    def parser(self, zone_name: str = "UTC") -> Callable[[str], int]:
        """A function from text to epoch ms; a text that names no offset is in the zone. It raises ValueError.

        Raises:
            ValueError: the pattern or the zone cannot be right, or the pattern does not say which day.
        """
        return _parser(self, zone_name)


def pieces(pattern: str, dialect: Dialect) -> list[Piece | str]:
    """The parts of a pattern; `[` and `]` stand for themselves where they mean something.

    Raises:
        ValueError: it cannot be right.
    """
    found: list[Piece | str] = []
    for token in _TOKEN.finditer(pattern):
        quoted, run, letter, other = token.groups()
        if quoted is not None:
            found.append(Piece("", 0, quoted.replace("''", "'") or "'"))
        elif run is None:
            if other == "'":
                raise ValueError(f"date pattern {pattern!r}: a quote is not closed")
            if other in "{}#" and dialect == "java.time":
                raise ValueError(f"date pattern {pattern!r}: {other!r} is reserved; put it in quotes")
            found.append(other if other in "[]" and dialect == "java.time" else Piece("", 0, other))
        else:
            _check(pattern, dialect, letter, len(run))
            found.append(Piece(letter, len(run), ""))
    depth = 0
    for one in found:
        depth += {"[": 1, "]": -1}.get(one, 0) if isinstance(one, str) else 0
        if depth < 0:
            break
    if depth:
        raise ValueError(f"date pattern {pattern!r}: '[' and ']' do not pair")
    if not found:
        raise ValueError("the date pattern is empty; for example yyyy-MM-dd")
    return found


def _check(pattern: str, dialect: Dialect, letter: str, count: int) -> None:
    counts = _COUNTS[dialect]
    if letter == "Y":
        raise ValueError(f"date pattern {pattern!r}: Y is the year of the week, not of the day; use {'y' * count}")
    if letter not in counts:
        raise ValueError(
            f"date pattern {pattern!r}: {letter!r} is not supported; quote plain text, letters are {''.join(counts)}"
        )
    if count > counts[letter] or (letter == "V" and count != 2):
        most = f"at most {counts[letter]} times" if letter != "V" else "twice"
        raise ValueError(f"date pattern {pattern!r}: {letter!r} stands {count} times in a row; {most}")


@lru_cache(maxsize=256)
def _formatter(pattern: DatePattern, zone_name: str) -> Callable[[int], str]:
    place = zone(zone_name)
    parts = [one for one in pieces(pattern.pattern, pattern.dialect) if isinstance(one, Piece)]
    printers = [_printer(one, pattern, zone_name) for one in parts]
    unit = pattern.resolution

    @lru_cache(maxsize=16_384)
    def of(units: int) -> str:
        moment = (_EPOCH + units * unit * _MILLISECOND).astimezone(place)
        return "".join(one(moment) for one in printers)

    def checked(epoch_ms: int) -> str:
        if not _YEAR_1_MS + _MARGIN_MS <= epoch_ms < _YEAR_10000_MS - _MARGIN_MS:
            raise ValueError(f"{epoch_ms} ms after 1970 has no date")
        return of(epoch_ms // unit)

    of(0)
    return checked


def _printer(piece: Piece, pattern: DatePattern, zone_name: str) -> Callable[[datetime], str]:
    letter, count, simple = piece.letter, piece.count, pattern.dialect == "simple"
    names = java_names.names(pattern.locale)
    number = partial(_padded, count)
    match letter:
        case "":
            return lambda _: piece.text
        case "y" | "u" if not (simple and letter == "u"):
            return (lambda d: f"{d.year % 100:02d}") if count == 2 else (lambda d: number(d.year))
        case "M" | "L" if count >= 3:
            months = names.months(_width(count, simple), standalone=letter == "L")
            return lambda d: months[d.month - 1]
        case "E":
            days = names.days(_width(count, simple))
            return lambda d: days[d.weekday()]
        case "a":
            return lambda d: names.halves[d.hour >= 12]
        case "G":
            return lambda _: "Anno Domini" if count == 4 and not simple else "A" if count == 5 and not simple else "AD"
        case "S" if not simple:
            return lambda d: f"{d.microsecond * 1000:09d}"[:count]
        case "z":
            return lambda d: d.tzname() or zone_name
        case "V":
            return lambda _: zone_name
        case "X" | "x" | "Z":
            return lambda d: _offset(d.utcoffset() or timedelta(), letter, count, simple)
    value = _VALUES["u simple" if letter == "u" else "S" if letter == "S" else letter]
    return lambda d: number(value(d))


_VALUES: dict[str, Callable[[datetime], int]] = {
    "M": lambda d: d.month,
    "L": lambda d: d.month,
    "d": lambda d: d.day,
    "D": lambda d: d.timetuple().tm_yday,
    "H": lambda d: d.hour,
    "h": lambda d: d.hour % 12 or 12,
    "K": lambda d: d.hour % 12,
    "k": lambda d: d.hour or 24,
    "m": lambda d: d.minute,
    "s": lambda d: d.second,
    "S": lambda d: d.microsecond // 1000,
    "n": lambda d: d.microsecond * 1000,
    "A": lambda d: ((d.hour * 60 + d.minute) * 60 + d.second) * 1000 + d.microsecond // 1000,
    "N": lambda d: ((d.hour * 60 + d.minute) * 60 + d.second) * 1_000_000_000 + d.microsecond * 1000,
    "u simple": lambda d: d.isoweekday(),
}


def _padded(count: int, value: int) -> str:
    return f"{value:0{count}d}"


def _width(count: int, simple: bool) -> str:
    if count == 5 and not simple:
        return "narrow"
    return "wide" if count >= 4 else "abbreviated"


def _offset(offset: timedelta, letter: str, count: int, simple: bool) -> str:
    minutes = round(offset.total_seconds() / 60)
    sign = "-" if minutes < 0 else "+"
    hours, rest = divmod(abs(minutes), 60)
    if letter == "Z":
        if count == 4 and not simple:
            return "GMT" if not minutes else f"GMT{sign}{hours:02d}:{rest:02d}"
        if count == 5 and not simple:
            return "Z" if not minutes else f"{sign}{hours:02d}:{rest:02d}"
        return f"{sign}{hours:02d}{rest:02d}"
    if letter == "X" and not minutes:
        return "Z"
    if count == 1:
        return f"{sign}{hours:02d}" + (f"{rest:02d}" if rest and not simple else "")
    return f"{sign}{hours:02d}{':' if count == 3 else ''}{rest:02d}"


@lru_cache(maxsize=256)
def _parser(pattern: DatePattern, zone_name: str) -> Callable[[str], int]:
    place = zone(zone_name)
    parts = pieces(pattern.pattern, pattern.dialect)
    regex, letters = _reader(parts, pattern)
    _can_be_read(pattern, {one.letter for one in letters})

    def of(text: str) -> int:
        found = regex.fullmatch(text)
        if found is None:
            raise ValueError(f"{text[:60]!r} does not match the pattern {pattern.pattern}")
        read = [(piece, one) for piece, one in zip(letters, found.groups(), strict=True) if one is not None]
        try:
            return _moment(read, pattern, place)
        except (ValueError, OverflowError, KeyError):
            raise ValueError(f"{text[:60]!r} is no date by the pattern {pattern.pattern}") from None

    return of


def _can_be_read(pattern: DatePattern, letters: set[str]) -> None:
    if pattern.dialect == "java.time":
        if not letters & set("yu") or not (letters & set("MLD")):
            raise ValueError(f"date pattern {pattern.pattern!r} does not say which day: year, month and day are needed")
        if letters & set("hK") and "a" not in letters:
            raise ValueError(f"date pattern {pattern.pattern!r}: h is one of 12 hours and needs a; use H, or add a")


def _reader(parts: list[Piece | str], pattern: DatePattern) -> tuple[re.Pattern[str], list[Piece]]:
    texts: list[str] = []
    letters: list[Piece] = []
    for position, one in enumerate(parts):
        if isinstance(one, str):
            texts.append("(?:" if one == "[" else ")?")
        elif not one.letter:
            texts.append(re.escape(one.text))
        else:
            after = parts[position + 1] if position + 1 < len(parts) else None
            fixed = isinstance(after, Piece) and after.is_number(pattern.dialect)
            texts.append(f"({_expression(one, pattern, fixed)})")
            letters.append(one)
    # SimpleDateFormat reads names in any case.
    flags = re.ASCII | (re.IGNORECASE if pattern.dialect == "simple" else 0)
    return re.compile("".join(texts), flags), letters


def _expression(piece: Piece, pattern: DatePattern, fixed: bool) -> str:
    letter, count, simple = piece.letter, piece.count, pattern.dialect == "simple"
    names = java_names.names(pattern.locale)
    if letter in "ML" and count >= 3:
        return _any(names.months(_width(count, simple), standalone=letter == "L"))
    match letter:
        case "E":
            return _any(names.days(_width(count, simple)))
        case "a":
            return _any(names.halves)
        case "G":
            return "AD|Anno Domini|A"
        case "z" | "V":
            return r"[A-Za-z][A-Za-z0-9_/+:-]*|[+-]\d\d:?\d\d"
        case "X" | "x" | "Z":
            return r"Z|GMT|(?:GMT)?[+-]\d\d(?::?\d\d)?"
        case "S" if not simple:
            return rf"\d{{{count}}}"
        case "S":
            return r"\d{3}" if fixed else r"\d{1,3}"
        case "y" | "u" if not (simple and letter == "u"):
            if count == 2 or fixed:
                return rf"\d{{{count}}}"
            return rf"\d{{{1 if simple else max(count, 1)},4}}"
    if fixed or (count >= 2 and not simple):
        return rf"\d{{{count}}}"
    widest = {"D": 3, "n": 9, "A": 8, "N": 14}.get(letter, 2)
    return rf"\d{{1,{widest}}}"


def _any(names: tuple[str, ...]) -> str:
    return "|".join(re.escape(one) for one in sorted(names, key=len, reverse=True))


def _moment(read: list[tuple[Piece, str]], pattern: DatePattern, place: tzinfo) -> int:
    simple = pattern.dialect == "simple"
    names = java_names.names(pattern.locale)
    year, month, day, day_of_year = 1970, 1, 1, 0
    hour: int | None = None
    half_hour, afternoon = 0, False
    minute = second = micros = 0
    within: timedelta | None = None
    offset: tzinfo = place
    for piece, text in read:
        value: Any = int(text) if text.isascii() and text.isdigit() else None
        match piece.letter:
            case "y" | "u" if not (simple and piece.letter == "u"):
                year = value + (1900 if simple and value >= 50 else 2000) if piece.count == 2 else value
            case "M" | "L":
                month = value or names.month(text)
            case "d":
                day = value
            case "D":
                day_of_year = value
            case "H":
                hour = value
            case "k":
                hour = _within(value, 1, 24) % 24
            case "h":
                half_hour = _within(value, 1, 12) % 12
            case "K":
                half_hour = _within(value, 0, 11)
            case "a":
                afternoon = names.halves[1].lower() == text.lower()
            case "m":
                minute = value
            case "s":
                second = value
            case "S":
                micros = value * 1000 if simple else int(f"{text:0<9}"[:6])
            case "n":
                micros = _within(value, 0, 999_999_999) // 1000
            case "A":
                within = timedelta(milliseconds=_within(value, 0, 86_399_999))
            case "N":
                within = timedelta(microseconds=_within(value, 0, 86_399_999_999_999) // 1000)
            case "X" | "x" | "Z" | "z" | "V":
                offset = zone(text)
    if hour is None:
        hour = half_hour + (12 if afternoon else 0)
    if day_of_year:
        first = datetime(year, 1, 1)
        local = first + timedelta(days=day_of_year - 1)
        if local.year != year:
            raise ValueError
        month, day = local.month, local.day
    moment = datetime(year, month, day, tzinfo=offset)
    if within is None:
        moment = datetime(year, month, day, hour, minute, second, micros, tzinfo=offset)
    else:
        moment = (datetime(year, month, day) + within).replace(tzinfo=offset)
    return (moment - _EPOCH) // _MILLISECOND


def _within(value: int, low: int, high: int) -> int:
    if not low <= value <= high:
        raise ValueError
    return value
