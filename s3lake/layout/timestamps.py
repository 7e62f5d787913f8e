"""Times that a field of the value holds: epoch milliseconds, as a number or as digits, or ISO 8601 text."""

import re
from datetime import datetime, timedelta, timezone, tzinfo
from typing import Any

from s3lake.layout.pieces import Unplaceable

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_DIGITS = re.compile(r"-?[0-9]{1,19}")
_ISO = re.compile(
    r"(?:(?P<year>\d{4})"
    r"(?:-(?P<month>\d\d)(?:-(?P<day>\d\d))?|-(?P<ordinal>\d{3})|-W(?P<week>\d\d)(?:-(?P<weekday>\d))?)?)?"
    r"(?:[Tt](?:(?P<hour>\d\d)(?::(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,](?P<fraction>\d+))?)?)?)?"
    r"(?P<offset>[Zz]|[+-]\d\d(?::?\d\d)?)?)?",
    re.ASCII,
)


def milliseconds(value: Any, where: tzinfo, what: str) -> int:
    """The epoch milliseconds that `value` says; text without an offset is read in `where`.

    Raises:
        Unplaceable: it is no time.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str):
        if _DIGITS.fullmatch(value):
            return int(value)
        return _of_text(value, where, what)
    if value is None:
        raise Unplaceable(f"{what} is null or missing: there is no time")
    kinds = {bool: "a boolean", float: "a fraction", list: "a list", dict: "an object"}
    raise Unplaceable(f"{what} is {kinds[type(value)]}, not a time: write epoch milliseconds or ISO 8601 text")


def _of_text(text: str, where: tzinfo, what: str) -> int:
    refusal = (
        f"{what} is {text[:40]!r}, no time: write epoch milliseconds or ISO 8601, for example 2026-11-20T09:30:00Z"
    )
    found = _ISO.fullmatch(text)
    if found is None or not (found["year"] or found["hour"]):
        raise Unplaceable(refusal)
    try:
        moment = _date(found) + timedelta(hours=_part(found, "hour", 24), minutes=_part(found, "minute", 60))
        moment += timedelta(
            seconds=_part(found, "second", 60), milliseconds=int((found["fraction"] or "").ljust(3, "0")[:3])
        )
        known = moment.replace(tzinfo=_offset(found["offset"]) if found["offset"] else where)
        if not found["offset"] and known.astimezone(timezone.utc).astimezone(where).replace(tzinfo=None) != moment:
            raise Unplaceable(f"{what} is {text!r}, which the clock of {where} jumps over: write it with an offset")
        return (known - _EPOCH) // timedelta(milliseconds=1)
    except Unplaceable:
        raise
    except (ValueError, OverflowError):
        raise Unplaceable(refusal) from None


def _part(found: re.Match[str], name: str, end: int) -> int:
    number = int(found[name] or 0)
    if number >= end:
        raise ValueError(f"{name} {number}")
    return number


def _date(found: re.Match[str]) -> datetime:
    if found["year"] is None:
        return datetime(1970, 1, 1)
    year = int(found["year"])
    if found["week"]:
        return datetime.fromisocalendar(year, int(found["week"]), int(found["weekday"] or 1))
    if found["ordinal"]:
        moment = datetime(year, 1, 1) + timedelta(days=int(found["ordinal"]) - 1)
        if moment.year != year:
            raise ValueError(f"day {found['ordinal']}")
        return moment
    return datetime(year, int(found["month"] or 1), int(found["day"] or 1))


def _offset(text: str) -> tzinfo:
    if text in "Zz":
        return timezone.utc
    hours, minutes = int(text[1:3]), int(text[3:].lstrip(":") or 0)
    if hours > 23 or minutes > 59:
        raise ValueError(f"offset {text}")
    size = timedelta(hours=hours, minutes=minutes)
    return timezone(-size if text[0] == "-" else size)
