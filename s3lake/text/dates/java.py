"""Date patterns of Java: DateTimeFormatter's (Lenses' transforms, `_date.<pattern>`) and SimpleDateFormat's.

Reading is stricter than Java's: numbers must be in range, and an offset in the text counts (Lenses' transforms ignore
it). DateTimeFormatter's patterns match the whole text, SimpleDateFormat's its beginning, but no part of a number.
Fields that the pattern does not have are midnight's. Two digits of a year are 1950 to 2049 (DateTimeFormatter:
2000 to 2099). Names of months and days are English.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from typing import Literal

from s3lake.text.dates.pattern_letters import (
    JAVA_TIME,
    SIMPLE,
    Letter,
    PartialTime,
    Style,
    Token,
    compile_printer,
    prints_name,
    require_hour_of_minutes,
    split_pattern,
)
from s3lake.text.dates.zones import parse_zone

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MILLISECOND = timedelta(milliseconds=1)
_MS = 1_000_000
_YEAR_10000_MS = 253_402_300_800_000
_ENGLISH = ("", "en", "en_US", "en-US")
_DATES = frozenset("yuMLdD")


@dataclass(frozen=True)
class DatePattern:
    """A pattern; a `locale` that is not English is allowed if no letter prints a name."""

    pattern: str
    dialect: Literal["java.time", "simple"] = "java.time"
    locale: str = "en"

    def formatter(self, zone_name: str = "UTC") -> Callable[[int], str]:
        """Return a function from epoch milliseconds to text; it raises ValueError if a timestamp has no date.

        Raises:
            ValueError: the pattern or the zone is invalid.
        """
        return _compile_formatter(self, zone_name)

    @property
    def resolution(self) -> int:
        """Milliseconds within which the text is the same: a second, unless the pattern has fractions."""
        return 1 if any(part.letter == "S" for part in self.parts()) else 1000

    @property
    def most_fraction(self) -> int:
        """How many letters S the pattern has at one place, 0 if it prints no fraction."""
        return max((part.count for part in self.parts() if part.letter == "S"), default=0)

    @property
    def resolution_ns(self) -> int:
        """Nanoseconds within which the text is the same."""
        return 10 ** (9 - self.most_fraction) if self.most_fraction > 3 and not self.simple else self.resolution * _MS

    def fine_formatter(self, zone_name: str = "UTC") -> Callable[[int], str]:
        """Return a function from nanoseconds since 1970 to text, as `formatter` does from milliseconds."""
        return _compile_fine_formatter(self, zone_name)

    def parser(self, zone_name: str = "UTC") -> Callable[[str], int]:
        """Return a function from text to epoch milliseconds; a text without an offset is in the zone.

        Raises:
            ValueError: the pattern or the zone is invalid, or the pattern does not name a day. The function raises it
                for a text that does not match.
        """
        parse = _compile_parser(self, zone_name)
        return lambda text: parse(text) // _MS

    def fine_parser(self, zone_name: str = "UTC") -> Callable[[str], int]:
        """Return a function from text to nanoseconds since 1970, as `parser` does to milliseconds."""
        return _compile_parser(self, zone_name)

    @property
    def simple(self) -> bool:
        """True for a pattern of SimpleDateFormat."""
        return self.dialect == "simple"

    @property
    def letters(self) -> dict[str, Letter]:
        """The meaning of each letter."""
        return SIMPLE if self.simple else JAVA_TIME

    def parts(self) -> list[Token]:
        """Return the letters and texts of the pattern.

        Raises:
            ValueError: it is invalid.
        """
        if not self.pattern:
            raise ValueError("the date pattern is empty; for example yyyy-MM-dd")
        try:
            parts = split_pattern(self.pattern, pairs=self.simple)
            self._check(parts)
        except ValueError as error:
            raise ValueError(f"date pattern {self.pattern!r}: {error}") from None
        return parts

    def _check(self, parts: list[Token]) -> None:
        depth = 0
        for part in parts:
            if part.letter:
                self._check_letter(part)
            elif not self.simple and not part.quoted and part.text in "{}#":
                raise ValueError(f"{part.text!r} is reserved; put it in quotes")
            elif self.is_bracket(part):
                depth += 1 if part.text == "[" else -1
            if depth < 0:
                break
        if depth:
            raise ValueError("'[' and ']' do not pair")
        require_hour_of_minutes({part.letter for part in parts}, _DATES)

    def _check_letter(self, part: Token) -> None:
        letter, count = part.letter, part.count
        if letter == "Y":
            raise ValueError(f"Y is the year of the week, not of the day; use {'y' * count}")
        if letter == "D" and count == 2 and not self.simple:
            raise ValueError("D is the day of the year; use dd")
        if letter not in self.letters:
            raise ValueError(f"{letter!r} is not supported; quote plain text, letters are {''.join(self.letters)}")
        most = self.letters[letter].most
        if count > most or (letter == "V" and count != 2):
            allowed = f"at most {most} times" if letter != "V" else "twice"
            raise ValueError(f"{letter!r} is repeated {count} times; {allowed}")
        if self.locale not in _ENGLISH and prints_name(part):
            raise ValueError(f"{part.text} prints a name, and names are English only; write MM, or set locale to en")

    def is_bracket(self, part: Token) -> bool:
        """Return whether a part begins or ends an optional section."""
        return not self.simple and not part.quoted and part.text in ("[", "]")

    def is_number(self, part: Token | None) -> bool:
        """Return whether a part prints digits."""
        return part is not None and part.letter != "" and part.count < self.letters[part.letter].digits_below


@lru_cache(maxsize=256)
def compile_key_date(pattern: str) -> Callable[[int], str]:
    """Return a function from epoch milliseconds to the text of `_date.<pattern>`, in UTC.

    Raises:
        ValueError: the pattern is invalid. The function raises it if a timestamp has no date: Kafka's own are any 64
            bits, and -1 means none.
    """
    print_date = DatePattern(pattern).formatter()

    def format_date(epoch_ms: int) -> str:
        if not 0 <= epoch_ms < _YEAR_10000_MS:
            raise ValueError(f"timestamp {epoch_ms} has no date")
        return print_date(epoch_ms)

    return format_date


@lru_cache(maxsize=256)
def _compile_formatter(pattern: DatePattern, zone_name: str) -> Callable[[int], str]:
    place, style = parse_zone(zone_name), Style(zone_name, pattern.simple)
    parts = [part for part in pattern.parts() if not pattern.is_bracket(part)]
    printer = compile_printer(parts, {name: letter.printer for name, letter in pattern.letters.items()}, style)
    unit = pattern.resolution

    @lru_cache(maxsize=16_384)
    def format_units(units: int) -> str:
        return printer((_EPOCH + units * unit * _MILLISECOND).astimezone(place))

    def format_date(epoch_ms: int) -> str:
        try:
            return format_units(epoch_ms // unit)
        except OverflowError:
            raise ValueError(f"{epoch_ms} ms after 1970 has no date") from None

    return format_date


@lru_cache(maxsize=256)
def _compile_fine_formatter(pattern: DatePattern, zone_name: str) -> Callable[[int], str]:
    if pattern.resolution_ns >= _MS:
        formatter = _compile_formatter(pattern, zone_name)
        return lambda epoch_ns: formatter(epoch_ns // _MS)
    place, style = parse_zone(zone_name), Style(zone_name, pattern.simple)
    printers = {name: letter.printer for name, letter in pattern.letters.items()}
    # A fraction has more digits than Python's dates.
    pieces = [
        (part.count if part.letter == "S" else 0, compile_printer([part], printers, style))
        for part in pattern.parts()
        if not pattern.is_bracket(part)
    ]

    def format_date(epoch_ns: int) -> str:
        seconds, fraction = divmod(epoch_ns, 10**9)
        try:
            moment = (_EPOCH + timedelta(seconds=seconds)).astimezone(place)
        except OverflowError:
            raise ValueError(f"{epoch_ns} ns after 1970 has no date") from None
        digits = f"{fraction:09d}"
        return "".join([digits[:count] if count else print_part(moment) for count, print_part in pieces])

    return format_date


@lru_cache(maxsize=256)
def _compile_parser(pattern: DatePattern, zone_name: str) -> Callable[[str], int]:
    place, style = parse_zone(zone_name), Style(zone_name, pattern.simple)
    parts = pattern.parts()
    _require_day(pattern, {part.letter for part in parts})
    expression = ""
    fields: list[tuple[Letter, Style]] = []
    for part, after in zip(parts, [*parts[1:], None], strict=True):
        if pattern.is_bracket(part):
            expression += "(?:" if part.text == "[" else ")?"
        elif not part.letter:
            expression += re.escape(part.text)
        else:
            letter, repeated = pattern.letters[part.letter], replace(style, count=part.count)
            # Of digits before digits there are as many as letters.
            adjacent = pattern.is_number(part) and pattern.is_number(after)
            expression += rf"(\d{{{part.count}}})" if adjacent else f"({letter.expression(repeated)})"
            fields.append((letter, repeated))
    # SimpleDateFormat reads names in any case, and nothing after the end of the pattern.
    expression += r"(?!\d).*" if pattern.simple else ""
    regex = re.compile(expression, re.ASCII | (re.IGNORECASE | re.DOTALL if pattern.simple else 0))

    def parse_date(text: str) -> int:
        match = regex.fullmatch(text)
        if match is None:
            raise ValueError(f"{text[:60]!r} does not match the pattern {pattern.pattern}")
        time = PartialTime(place)
        try:
            for (letter, repeated), group in zip(fields, match.groups(), strict=True):
                if group is not None:
                    letter.read(time, group, repeated)
            return time.to_epoch_ns()
        except (ValueError, OverflowError):
            raise ValueError(f"{text[:60]!r} is not a date of the pattern {pattern.pattern}") from None

    return parse_date


def _require_day(pattern: DatePattern, letters: set[str]) -> None:
    if pattern.simple:
        return
    if not letters & set("yu") or not letters & set("MLD"):
        raise ValueError(f"date pattern {pattern.pattern!r} does not name a day: year, month and day are needed")
    if letters & set("hK") and "a" not in letters:
        raise ValueError(f"date pattern {pattern.pattern!r}: h is one of 12 hours and needs a; use H, or add a")
