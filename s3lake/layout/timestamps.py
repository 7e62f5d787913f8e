"""Times that a field of the value holds: epoch milliseconds, as a number or as digits, or ISO 8601 text."""

import re
from datetime import tzinfo
from typing import Any

from s3lake.layout.pieces import Unplaceable
from s3lake.text.dates import iso
from s3lake.text.masking import quote

_DIGITS = re.compile(r"-?[0-9]{1,19}")
_NAMES = {bool: "a boolean", float: "a fraction", list: "a list", dict: "an object"}


def milliseconds(value: Any, where: tzinfo, what: str) -> int:
    """The epoch milliseconds that `value` says; text without an offset is read in `where`.

    Raises:
        Unplaceable: it is no time.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if value is None:
        raise Unplaceable(f"{what} is null or missing: there is no time")
    if not isinstance(value, str):
        name = _NAMES[type(value)]
        raise Unplaceable(f"{what} is {name}, not a time: write epoch milliseconds or ISO 8601 text")
    if _DIGITS.fullmatch(value):
        return int(value)
    try:
        return iso.epoch_ms(value, where)
    except iso.SkippedError:
        raise Unplaceable(
            f"{what} is {quote(what, repr(value))}, which the clock of {where} jumps over: write it with an offset"
        ) from None
    except (ValueError, OverflowError):
        raise Unplaceable(
            f"{what} is {quote(what, repr(value[:40]))}, no time: write epoch milliseconds or ISO 8601, for example "
            "2026-11-20T09:30:00Z"
        ) from None
