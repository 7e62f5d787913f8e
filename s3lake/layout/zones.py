"""Time zones by the ids that Joda-Time takes: IANA names (`Europe/Kyiv`, `EST`), offsets (`+02:00`) and `Z`."""

import re
from datetime import timedelta, timezone, tzinfo
from difflib import get_close_matches
from functools import lru_cache
from importlib import resources
from zoneinfo import ZoneInfo

_OFFSET = re.compile(r"([+-])(\d\d)(?::?(\d\d)(?::?(\d\d))?)?")
_NOT_ZONES = ("Factory", "Zulu")  # tzdata's placeholder; Joda spells the other `Z`
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
"""Abbreviations that several countries use, so that they are no ids, and what most of those who write them mean."""


def zone(text: str) -> tzinfo:
    """The zone that `text` names.

    Raises:
        ValueError: it names none; the message says what to write.
    """
    if text in ("UTC", "Z"):
        return timezone.utc
    if found := _OFFSET.fullmatch(text):
        hours, minutes, seconds = (int(part or 0) for part in found.groups()[1:])
        if hours < 24 and minutes < 60 and seconds < 60:
            size = timedelta(hours=hours, minutes=minutes, seconds=seconds)
            return timezone(-size if found[1] == "-" else size)
    if text not in _ids():
        raise ValueError(f"{text!r} is no time zone: {_fix(text)}")
    return _packaged(text)


def zone_id(text: str) -> str:
    """How Joda spells the id of `zone(text)`: `Z` is UTC, and offsets have a colon."""
    found = zone(text)
    if isinstance(found, ZoneInfo):
        return text
    minutes, seconds = divmod(int(found.utcoffset(None).total_seconds()), 60)  # type: ignore[union-attr]
    if not minutes and not seconds:
        return "UTC"
    size = abs(minutes * 60 + seconds)
    tail = f":{size % 60:02d}" if size % 60 else ""
    return f"{'-' if minutes < 0 else '+'}{size // 3600:02d}:{size // 60 % 60:02d}{tail}"


@lru_cache(maxsize=64)
def _packaged(text: str) -> ZoneInfo:
    # Not the operating system's rules: keys are the same on every worker, and when a task is tried again.
    with resources.files("tzdata").joinpath("zoneinfo", *text.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=text)


@lru_cache(maxsize=1)
def _ids() -> frozenset[str]:
    # tzdata's own list: the operating system's directory has files that are no zones, and may ignore case.
    return frozenset(resources.files("tzdata").joinpath("zones").read_text().split()).difference(_NOT_ZONES)


def _fix(text: str) -> str:
    if text in _MEANT:
        return f"the abbreviation stands for more than one; write the place, for example {_MEANT[text]}"
    if found := re.fullmatch(r"(?:UTC|GMT)([+-])(\d{1,2})(?::?(\d\d))?", text):
        return f"write the offset alone, {found[1]}{int(found[2]):02d}:{found[3] or '00'}"
    by_lower = {one.lower(): one for one in _ids()}
    near = get_close_matches(text.lower(), by_lower, 1)
    meant = f"did you mean {by_lower[near[0]]}? Else " if near else ""
    return f"{meant}write an IANA name such as Europe/Berlin, or an offset such as +02:00"
