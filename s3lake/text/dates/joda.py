"""Joda-Time's patterns, as `path.format` of Confluent's partitioners has them: from epoch milliseconds to text.

Not Java's DateTimeFormatter: here `Y` is the year of era, `x` the week year, and `u` and `L` are not letters.
Buckets count from local 1970-01-01T00:00, in both directions.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from s3lake.text.dates import zones
from s3lake.text.dates.pattern_letters import (
    SIMPLE,
    Printer,
    Style,
    Token,
    compile_printer,
    format_number,
    format_year,
    prints_name,
    require_hour_of_minutes,
    split_pattern,
)

_EPOCH = datetime(1970, 1, 1)
_UTC_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_FIRST_MS, _LAST_MS = -62_135_596_800_000, 253_402_300_799_999
_TABLE = "G C x w e E D y Y M d a K h H k m s S z Z"
_DATES = frozenset("YyxMdDwe")


@lru_cache(maxsize=256)
def compile_formatter(
    pattern: str, zone: str = "UTC", locale: str = "en", bucket_ms: int | None = None, *, toward_zero: bool = False
) -> Callable[[int], str]:
    """Return a function from epoch milliseconds to text: of the beginning of its bucket if there are buckets.

    Args:
        pattern: Joda's letters, plain text in single quotes.
        zone: id of a time zone.
        locale: `en` for English names, anything that is not a bare language for short English ones, as Java does.
        bucket_ms: how long a bucket lasts.
        toward_zero: a time before 1970 gets the end of its bucket, as in the arithmetic of Confluent's partitioners.

    Raises:
        ValueError: the pattern or the zone is invalid, or a name would have to be in another language. The function
            raises it for a moment outside of the years 1 to 9999.
    """
    parts = parse_pattern(pattern)
    language = locale.lower()
    if language != "en" and language.isalpha() and any(map(prints_name, parts)):
        raise ValueError(f"time pattern {pattern!r}: names are English only; write MM, or set locale to en")
    where, style = zones.parse_zone(zone), Style(zones.format_zone_id(zone), simple=True, short_names=language != "en")
    printer = compile_printer(parts, _LETTERS, style)
    letters = {part.letter for part in parts}

    @lru_cache(maxsize=65_536)
    def format_instant(epoch_ms: int) -> str:
        try:
            return printer(_to_local(epoch_ms, where, bucket_ms, toward_zero=toward_zero))
        except OverflowError:
            raise ValueError(f"timestamp {epoch_ms} has no date") from None

    size = 1 if "S" in letters or (bucket_ms or 1000) % 1000 else 1000

    def format_moment(epoch_ms: int) -> str:
        if not _FIRST_MS <= epoch_ms <= _LAST_MS:
            raise ValueError(f"timestamp {epoch_ms} has no date")
        # Moments that print alike share an entry.
        return format_instant(epoch_ms if toward_zero and epoch_ms < 0 else epoch_ms - epoch_ms % size)

    return format_moment


def parse_pattern(pattern: str) -> list[Token]:
    """Return the parts of a pattern.

    Raises:
        ValueError: it has a letter that Joda does not have, a quote is not closed, or it is surely a mistake.
    """
    try:
        parts = split_pattern(pattern, pairs=True)
        _require_plausible(parts)
    except ValueError as error:
        raise ValueError(f"time pattern {pattern!r}: {error}") from None
    return parts


def _require_plausible(parts: list[Token]) -> None:
    if not all(part.text.isprintable() for part in parts):
        raise ValueError("a control character cannot be in a key")
    for part in parts:
        if part.letter == "z" and part.count >= 4:
            raise ValueError(f"{part.text!r}: long names of zones are not supported; write z, or ZZZ")
        if part.letter and part.letter not in _LETTERS:
            message = f"means nothing; quote plain text, as in '{part.text}='. Letters are {_TABLE}"
            raise ValueError(f"{part.text!r} at character {part.position + 1} {message}")
    letters = {part.letter for part in parts if part.letter}
    if not letters:
        raise ValueError(f"it does not print any part of a time; letters are {_TABLE}")
    require_hour_of_minutes(letters, _DATES)
    if "D" in letters and ("M" in letters or any(part.text == "DD" for part in parts if part.letter)):
        raise ValueError("D is the day of the year; write dd for the day of the month, or DDD without a month")
    if "w" in letters and letters & {"Y", "y"} and "x" not in letters:
        raise ValueError("w is the week of a week year; write xxxx for its year")


def _to_local(epoch_ms: int, where: tzinfo, bucket_ms: int | None, *, toward_zero: bool) -> datetime:
    local = (_UTC_EPOCH + timedelta(milliseconds=epoch_ms)).astimezone(where)
    if bucket_ms is None:
        return local
    since = (local.replace(tzinfo=None) - _EPOCH) // timedelta(milliseconds=1)
    bucket = -(-since // bucket_ms) if toward_zero and since < 0 else since // bucket_ms
    begin = (_EPOCH + timedelta(milliseconds=bucket * bucket_ms)).replace(tzinfo=where)
    before, after = begin.utcoffset(), begin.replace(fold=1).utcoffset()
    if before is None or after is None or before == after:
        return begin
    if before < after:  # the clock skips it: the first hour that exists
        return begin.astimezone(timezone.utc).astimezone(where)
    return begin.replace(fold=1) if after >= timedelta(0) else begin  # of two, the one that Joda takes


def _print_fraction(moment: datetime, style: Style) -> str:
    return f"{moment.microsecond // 1000:03d}".ljust(style.count, "0")[: style.count]


def _print_zone_name(moment: datetime, style: Style) -> str:
    name = moment.tzname() or ""
    if isinstance(moment.tzinfo, ZoneInfo) and name.isalpha():
        return name
    return _print_offset(moment, ":") if moment.utcoffset() else style.zone


def _print_zone_offset(moment: datetime, style: Style) -> str:
    if style.count >= 3:
        return style.zone
    return _print_offset(moment, ":" if style.count == 2 else "")


def _print_offset(moment: datetime, between: str) -> str:
    return zones.format_offset(moment.utcoffset() or timedelta(), between)


_SHARED = {letter: SIMPLE[letter].printer for letter in "EDyMdaKhHkms"}
_LETTERS: dict[str, Printer] = {
    "G": lambda *_: "AD",
    "C": lambda moment, style: format_number(moment.year // 100, style),
    "x": lambda moment, style: format_year(moment.isocalendar()[0], style),
    "w": lambda moment, style: format_number(moment.isocalendar()[1], style),
    "e": lambda moment, style: format_number(moment.isoweekday(), style),
    **{"Y": _SHARED["y"], **_SHARED},
    "S": _print_fraction,
    "z": _print_zone_name,
    "Z": _print_zone_offset,
}
