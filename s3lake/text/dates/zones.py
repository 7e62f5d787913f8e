"""Time zones as Java's libraries name them: IANA names and offsets, by rules that are the same on every worker."""

from __future__ import annotations

import re
from datetime import timedelta, timezone, tzinfo
from difflib import get_close_matches
from functools import lru_cache
from importlib import resources
from zoneinfo import ZoneInfo

# The colons may be left out; what comes before the sign, and a single digit, java.time takes and Joda does not.
_OFFSET = re.compile(r"(UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d\d)(?::?(\d\d))?)?", re.ASCII)
_NOT_JODA = ("Factory", "Zulu")  # tzdata's placeholder; Joda spells the other `Z`
_MEANT = {
    "PST": "America/Los_Angeles",
    "PDT": "America/Los_Angeles",
    "CST": "America/Chicago",
    "CDT": "America/Chicago",
    "EDT": "America/New_York",
    "BST": "Europe/London",
    "CEST": "Europe/Berlin",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "AEST": "Australia/Sydney",
}
"""Abbreviations of several countries, which are not ids, and the zone that is usually meant."""


@lru_cache(maxsize=1024)
def parse_zone(text: str) -> tzinfo:
    """Return the zone that `text` is for Joda-Time: `Europe/Kyiv`, `EST`, `+02:00`, `Z`.

    Raises:
        ValueError: it is not a zone; the message says what to write.
    """
    if text in ("UTC", "Z"):
        return timezone.utc
    match = _OFFSET.fullmatch(text)
    if match and not match[1] and len(match[3]) == 2 and int(match[3]) < 24:
        return _fixed(match, text)
    if text in _ids() and text not in _NOT_JODA:
        return _packaged(text)
    if match and match[1] and not match[5]:
        raise ValueError(
            f"{text!r} is not a time zone: write the offset alone, {match[2]}{int(match[3]):02d}:{match[4] or '00'}"
        )
    raise _unknown(text)


@lru_cache(maxsize=1024)
def parse_java_zone(text: str) -> tzinfo:
    """Return the zone that `text` is for java.time: also `GMT+2` and `UT`.

    Raises:
        ValueError: it is not a zone; Java would silently use UTC.
    """
    if text in ("UTC", "GMT", "Z", "UT"):
        return timezone.utc
    match = _OFFSET.fullmatch(text)
    if match and int(match[3]) <= 18 and not match[5]:
        return _fixed(match, text)
    if text in _ids():
        return _packaged(text)
    raise _unknown(text)


def format_zone_id(text: str) -> str:
    """Return Joda's id of `parse_zone(text)`: `UTC` for `Z`, and a colon in offsets."""
    place = parse_zone(text)
    if isinstance(place, ZoneInfo):
        return text
    offset = place.utcoffset(None) or timedelta()
    seconds = abs(offset).seconds % 60
    tail = f":{seconds:02d}" if seconds else ""
    return format_offset(offset, ":") + tail if offset else "UTC"


def format_offset(offset: timedelta, between: str) -> str:
    """Format hours and minutes of an offset, as in `+02:00`; seconds, which zones had long ago, are left out."""
    minutes = abs(offset) // timedelta(minutes=1)
    return f"{'-' if offset < timedelta() else '+'}{minutes // 60:02d}{between}{minutes % 60:02d}"


def _fixed(match: re.Match[str], text: str) -> tzinfo:
    hours, minutes, seconds = (int(part or 0) for part in match.groups()[2:])
    if minutes > 59 or seconds > 59:
        raise _unknown(text)
    size = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    return timezone(-size if match[2] == "-" else size)


@lru_cache(maxsize=64)
def _packaged(text: str) -> ZoneInfo:
    # Not the operating system's rules: keys are the same on every worker, and when a task is tried again.
    with resources.files("tzdata").joinpath("zoneinfo", *text.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=text)


@lru_cache(maxsize=1)
def _ids() -> frozenset[str]:
    # tzdata's own list: the operating system's directory has other files, and may ignore case.
    return frozenset(resources.files("tzdata").joinpath("zones").read_text().split())


def _unknown(text: str) -> ValueError:
    if text in _MEANT:
        why = f"the abbreviation stands for more than one; write the place, for example {_MEANT[text]}"
        return ValueError(f"{text!r} is not a time zone: {why}")
    by_lower = {zone_name.lower(): zone_name for zone_name in _ids().difference(_NOT_JODA)}
    near = get_close_matches(text.lower(), by_lower, 1)
    meant = f"did you mean {by_lower[near[0]]}? Else " if near else ""
    return ValueError(
        f"{text!r} is not a time zone: {meant}write an IANA name such as Europe/Berlin, or an offset such as +02:00"
    )
