"""Dates and times in ISO 8601 as integers, of any year: Python's own dates end with the year 9999."""

from __future__ import annotations

import re
from datetime import date

_DAY_S = 86_400
_DAYS_IN_400_YEARS = 146_097
_ISO = re.compile(
    r"\s*(?P<year>[+-]?\d{4,9})-(?P<month>\d\d)-(?P<day>\d\d)"
    r"(?:[T ](?P<time>\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)\s*(?:Z|(?P<sign>[+-])(?P<hours>\d\d):?(?P<minutes>\d\d)?)?)?\s*",
    re.IGNORECASE,
)
_TIME = re.compile(r"\s*(\d\d):(\d\d)(?::(\d\d)(?:[.,](\d+))?)?Z?\s*")


def parse_timestamp(ticks_per_second: int, text: str) -> int:
    """Return a date and time as a number since 1970; without a time zone it is UTC.

    Raises:
        ValueError: it is not a date.
    """
    moment = _match(text)
    clock = parse_time(ticks_per_second, moment["time"] or "00:00")
    offset = (int(moment["hours"] or 0) * 60 + int(moment["minutes"] or 0)) * 60
    return (_count_days(moment) * _DAY_S + (offset if moment["sign"] == "-" else -offset)) * ticks_per_second + clock


def parse_date(text: str) -> int:
    """Return the date of a date, or a date and time, as days since 1970.

    Raises:
        ValueError: it is not a date.
    """
    return _count_days(_match(text))


def parse_time(ticks_per_second: int, text: str) -> int:
    """Return a time of day as a number since midnight.

    Raises:
        ValueError: it is not a time.
    """
    clock = _TIME.fullmatch(text)
    if clock is None:
        raise ValueError(f"{text!r} is not a time")
    hour, minute, second, fraction = clock.groups()
    seconds = (int(hour) * 60 + int(minute)) * 60 + int(second or 0)
    digits = len(str(ticks_per_second)) - 1
    return seconds * ticks_per_second + int((fraction or "")[:digits].ljust(digits, "0"))


def _match(text: str) -> re.Match[str]:
    moment = _ISO.fullmatch(text)
    if moment is None:
        raise ValueError(f"{text!r} is not a date")
    return moment


def _count_days(moment: re.Match[str]) -> int:
    year = int(moment["year"])
    same = date(2000 + year % 400, int(moment["month"]), int(moment["day"]))  # the calendar repeats itself
    return (same - date(1970, 1, 1)).days + (year // 400 - 5) * _DAYS_IN_400_YEARS
