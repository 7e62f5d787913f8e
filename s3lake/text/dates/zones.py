"""Time zones as Java's libraries name them: IANA names and offsets, by rules that are the same on every worker."""

from __future__ import annotations

import re
from datetime import timedelta, timezone, tzinfo
from functools import lru_cache
from importlib import resources
from zoneinfo import ZoneInfo

from s3lake.text.option_values import did_you_mean

_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?([0-5]\d))?", re.ASCII)


@lru_cache(maxsize=1024)
def parse_zone(text: str) -> tzinfo:
    """Return the zone that `text` is for Joda-Time or java.time: `Europe/Kyiv`, `EST`, `+02:00`, `GMT+2`, `Z`.

    Raises:
        ValueError: it is not a zone; the message has what to write.
    """
    if text in ("UTC", "Z", "UT"):
        return timezone.utc
    match = _OFFSET.fullmatch(text)
    if match and int(match[2]) <= 18:
        size = timedelta(hours=int(match[2]), minutes=int(match[3] or 0))
        return timezone(-size if match[1] == "-" else size)
    if text in _read_ids():
        return _read_packaged(text)
    hint = did_you_mean(text, _read_ids(), cutoff=0.8)
    raise ValueError(
        f"{text!r} is not a time zone: {hint}write an IANA name such as Europe/Berlin, or an offset such as +02:00"
    )


def format_zone_id(text: str) -> str:
    """Return Joda's id of `parse_zone(text)`: `UTC` for `Z`, and a colon in offsets."""
    zone = parse_zone(text)
    if isinstance(zone, ZoneInfo):
        return text
    offset = zone.utcoffset(None)
    return format_offset(offset, ":") if offset else "UTC"


def format_offset(offset: timedelta, between: str) -> str:
    """Format hours and minutes of an offset, as in `+02:00`; seconds, which zones had long ago, are left out."""
    minutes = abs(offset) // timedelta(minutes=1)
    return f"{'-' if offset < timedelta() else '+'}{minutes // 60:02d}{between}{minutes % 60:02d}"


@lru_cache(maxsize=64)
def _read_packaged(text: str) -> ZoneInfo:
    # Not the operating system's rules: keys are the same on every worker, and when a task is tried again.
    with resources.files("tzdata").joinpath("zoneinfo", *text.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=text)


@lru_cache(maxsize=1)
def _read_ids() -> frozenset[str]:
    # tzdata's own list: the operating system's directory has other files, and may ignore case.
    return frozenset(resources.files("tzdata").joinpath("zones").read_text().split())
