"""Moments in ISO 8601: calendar, week and ordinal dates, with as much of a time and an offset as there is."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone, tzinfo

from s3lake.text.dates.zones import parse_zone

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MILLISECOND = timedelta(milliseconds=1)
_ISO = re.compile(
    r"(?:(?P<year>\d{4})"
    r"(?:-(?P<month>\d\d)(?:-(?P<day>\d\d))?|-(?P<ordinal>\d{3})|-W(?P<week>\d\d)(?:-(?P<weekday>\d))?)?)?"
    r"(?:[Tt](?:(?P<hour>\d\d)(?::(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,](?P<fraction>\d+))?)?)?)?"
    r"(?P<offset>[Zz]|[+-]\d\d(?::?\d\d)?)?)?",
    re.ASCII,
)


class NonexistentTimeError(ValueError):
    """A local time that the clock of the zone skips."""


def parse_epoch_ms(text: str, where: tzinfo) -> int:
    """Parse a text to epoch milliseconds; one without an offset is read in the zone `where`.

    Raises:
        NonexistentTimeError: the zone never had this local time.
        ValueError, OverflowError: it is not a time.
    """
    match = _ISO.fullmatch(text)
    if match is None or not (match["year"] or match["hour"]):
        raise ValueError(text)
    milliseconds = int((match["fraction"] or "").ljust(3, "0")[:3])
    hour, minute, second = (int(match[part] or 0) for part in ("hour", "minute", "second"))
    local = _parse_date(match).replace(hour=hour, minute=minute, second=second, microsecond=milliseconds * 1000)
    if match["offset"]:
        return (local.replace(tzinfo=parse_zone(match["offset"].upper())) - _EPOCH) // _MILLISECOND
    moment = local.replace(tzinfo=where)
    if moment.astimezone(timezone.utc).astimezone(where).replace(tzinfo=None) != local:
        raise NonexistentTimeError(text)
    return (moment - _EPOCH) // _MILLISECOND


def _parse_date(match: re.Match[str]) -> datetime:
    if match["year"] is None:
        return datetime(1970, 1, 1)
    year = int(match["year"])
    if match["week"]:
        return datetime.fromisocalendar(year, int(match["week"]), int(match["weekday"] or 1))
    if match["ordinal"]:
        return find_day_of_year(year, int(match["ordinal"]))
    return datetime(year, int(match["month"] or 1), int(match["day"] or 1))


def find_day_of_year(year: int, day: int) -> datetime:
    """Return the midnight of a day of a year, of which the first is 1.

    Raises:
        ValueError: the year does not have this day.
    """
    moment = datetime(year, 1, 1) + timedelta(days=day - 1)
    if moment.year != year:
        raise ValueError(f"{year} does not have day {day}")
    return moment
