"""Date patterns of Java: those of DateTimeFormatter (Lenses' transforms) and of SimpleDateFormat (Kafka Connect's).

Reading is stricter than Java's: numbers must be in range, and an offset in the text counts (Lenses' transforms read
over it). DateTimeFormatter's patterns match the whole text, SimpleDateFormat's its beginning, but no part of a number.
What the pattern does not say is midnight. Two digits of a year are 1950 to 2049 (DateTimeFormatter: 2000 to 2099).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from typing import Literal

from s3lake.text.dates import names
from s3lake.text.dates.letters import JAVA_TIME, SIMPLE, Letter, Moment, Style, printed
from s3lake.text.dates.tokens import Token, tokens
from s3lake.text.dates.zones import java_zone

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MILLISECOND = timedelta(milliseconds=1)
_FINE = frozenset("SnAN")


@dataclass(frozen=True)
class DatePattern:
    """A pattern; `locale` names months and days."""

    pattern: str
    dialect: Literal["java.time", "simple"] = "java.time"
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
        return 1 if any(part.letter in _FINE for part in self.parts()) else 1000

    def parser(self, zone_name: str = "UTC") -> Callable[[str], int]:
        """A function from text to epoch ms; a text that names no offset is in the zone. It raises ValueError.

        Raises:
            ValueError: the pattern or the zone cannot be right, or the pattern does not say which day.
        """
        return _parser(self, zone_name)

    @property
    def simple(self) -> bool:
        """Whether it is one of SimpleDateFormat."""
        return self.dialect == "simple"

    @property
    def letters(self) -> dict[str, Letter]:
        """What each letter means in it."""
        return SIMPLE if self.simple else JAVA_TIME

    def parts(self) -> list[Token]:
        """Its letters and texts.

        Raises:
            ValueError: it cannot be right.
        """
        if not self.pattern:
            raise ValueError("the date pattern is empty; for example yyyy-MM-dd")
        try:
            parts = tokens(self.pattern, pairs=self.simple)
            self._check(parts)
        except ValueError as error:
            raise ValueError(f"date pattern {self.pattern!r}: {error}") from None
        return parts

    def _check(self, parts: list[Token]) -> None:
        depth = 0
        for part in parts:
            if part.letter:
                self._check_letter(part.letter, part.count)
            elif not self.simple and not part.quoted and part.text in "{}#":
                raise ValueError(f"{part.text!r} is reserved; put it in quotes")
            elif self.is_bracket(part):
                depth += 1 if part.text == "[" else -1
            if depth < 0:
                break
        if depth:
            raise ValueError("'[' and ']' do not pair")

    def _check_letter(self, letter: str, count: int) -> None:
        if letter == "Y":
            raise ValueError(f"Y is the year of the week, not of the day; use {'y' * count}")
        if letter not in self.letters:
            raise ValueError(f"{letter!r} is not supported; quote plain text, letters are {''.join(self.letters)}")
        most = self.letters[letter].most
        if count > most or (letter == "V" and count != 2):
            allowed = f"at most {most} times" if letter != "V" else "twice"
            raise ValueError(f"{letter!r} stands {count} times in a row; {allowed}")

    def is_bracket(self, part: Token) -> bool:
        """Whether it begins or ends what a text may leave out."""
        return not self.simple and not part.quoted and part.text in ("[", "]")

    def is_number(self, part: Token | None) -> bool:
        """Whether it prints digits."""
        return part is not None and part.letter != "" and part.count < self.letters[part.letter].digits_below


@lru_cache(maxsize=256)
def _formatter(pattern: DatePattern, zone_name: str) -> Callable[[int], str]:
    place, style = java_zone(zone_name), Style(names.of_locale(pattern.locale), zone_name, pattern.simple)
    parts = [part for part in pattern.parts() if not pattern.is_bracket(part)]
    printer = printed(parts, {name: letter.printer for name, letter in pattern.letters.items()}, style)
    unit = pattern.resolution

    @lru_cache(maxsize=16_384)
    def of(units: int) -> str:
        return printer((_EPOCH + units * unit * _MILLISECOND).astimezone(place))

    def checked(epoch_ms: int) -> str:
        try:
            return of(epoch_ms // unit)
        except OverflowError:
            raise ValueError(f"{epoch_ms} ms after 1970 has no date") from None

    return checked


@lru_cache(maxsize=256)
def _parser(pattern: DatePattern, zone_name: str) -> Callable[[str], int]:
    place, style = java_zone(zone_name), Style(names.of_locale(pattern.locale), zone_name, pattern.simple)
    parts = pattern.parts()
    _can_be_read(pattern, {part.letter for part in parts})
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
    # SimpleDateFormat reads names in any case, and nothing behind what the pattern says.
    expression += r"(?!\d).*" if pattern.simple else ""
    regex = re.compile(expression, re.ASCII | (re.IGNORECASE | re.DOTALL if pattern.simple else 0))

    def of(text: str) -> int:
        match = regex.fullmatch(text)
        if match is None:
            raise ValueError(f"{text[:60]!r} does not match the pattern {pattern.pattern}")
        moment = Moment(place)
        try:
            for (letter, repeated), group in zip(fields, match.groups(), strict=True):
                if group is not None:
                    letter.read(moment, group, repeated)
            return moment.epoch_ms()
        except (ValueError, OverflowError):
            raise ValueError(f"{text[:60]!r} is no date by the pattern {pattern.pattern}") from None

    return of


def _can_be_read(pattern: DatePattern, letters: set[str]) -> None:
    if pattern.simple:
        return
    if not letters & set("yu") or not letters & set("MLD"):
        raise ValueError(f"date pattern {pattern.pattern!r} does not say which day: year, month and day are needed")
    if letters & set("hK") and "a" not in letters:
        raise ValueError(f"date pattern {pattern.pattern!r}: h is one of 12 hours and needs a; use H, or add a")
