"""Time zones as Java names them."""

from __future__ import annotations

import re
from datetime import timedelta, timezone, tzinfo
from difflib import get_close_matches
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?", re.ASCII)


@lru_cache(maxsize=1024)
def zone(name: str) -> tzinfo:
    """A zone by its IANA name, or an offset such as `+02:00`, `GMT+2` or `Z`.

    Raises:
        ValueError: there is none; Java would take UTC without a word.
    """
    if name in ("UTC", "GMT", "Z", "UT"):
        return timezone.utc
    if (found := _OFFSET.fullmatch(name)) and int(found[2]) <= 18 and int(found[3] or 0) < 60:
        offset = timedelta(hours=int(found[2]), minutes=int(found[3] or 0))
        return timezone(offset if found[1] == "+" else -offset)
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        near = get_close_matches(name, available_timezones(), 1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise ValueError(f"{name!r} is no time zone; {hint}use a name such as Europe/Paris, or +02:00") from None
