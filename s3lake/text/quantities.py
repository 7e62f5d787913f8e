"""Sizes, durations, shares and counts as text: `500MB`, `5m`, `1%`, `1 row`.

MB is 10^6, as connectors mean it; MiB is 2^20.
"""

import re
from decimal import Decimal
from typing import Any

_SIZES = {"B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PLURAL_ENDING = re.compile(r"(?<=ch)es\b|s\b")


def parse_size(value: Any) -> Any:
    """Parse a text to bytes; return any other value unchanged.

    Raises:
        ValueError: the text is not a size.
    """
    if not isinstance(value, str):
        return value
    quantity = re.fullmatch(r"\s*(\d+)\s*([A-Za-z]*)\s*", value)
    if quantity is None or (quantity[2] or "B") not in _SIZES:
        raise ValueError(f"{value!r} is not a size: write bytes as a whole number, or with one of {', '.join(_SIZES)}")
    return int(quantity[1]) * _SIZES[quantity[2] or "B"]


def parse_duration(value: Any) -> Any:
    """Parse a text to seconds; return any other value unchanged.

    Raises:
        ValueError: the text is not a duration.
    """
    if not isinstance(value, str):
        return value
    quantity = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?\s*", value)
    if quantity is None:
        raise ValueError(f"{value!r} is not a duration: write a number with ms, s, m, h or d, for example 5m")
    return float(quantity[1]) * _SECONDS[quantity[2] or "s"]


def parse_share(value: Any) -> Any:
    """Parse a share, `1%` or `0.01`; return any other value unchanged.

    Raises:
        ValueError: the text is not a share.
    """
    if not isinstance(value, str):
        return value
    quantity = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(%)?\s*", value)
    if quantity is None:
        raise ValueError(f"{value!r} is not a share: write it as 1% or as 0.01")
    return float(Decimal(quantity[1]) / 100 if quantity[2] else Decimal(quantity[1]))


def format_size(value: int) -> str:
    """Format bytes in the largest unit that is exact."""
    for unit in ("GB", "MB", "MiB", "kB"):
        if value and value % _SIZES[unit] == 0:
            return f"{value // _SIZES[unit]}{unit}"
    return f"{value}B"


def format_duration(value: float) -> str:
    """Format seconds in the largest unit that is exact."""
    for unit in ("h", "m", "s") if value else ("s",):
        if value % _SECONDS[unit] == 0:
            return f"{int(value // _SECONDS[unit])}{unit}"
    milliseconds = round(value * 1000)
    exact = milliseconds * _SECONDS["ms"] == value
    return f"{milliseconds}ms" if exact else f"{Decimal(repr(value)):f}s"


def format_wait(seconds: float) -> str:
    """Format seconds for people, in the two largest units that are not zero: `3.5 s`, `2 h 5 min`, `3 d 4 h`."""
    if seconds < 60:
        return f"{round(seconds, 1):g} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    small, large, units = (minutes % 60, minutes // 60, ("h", "min"))
    if large >= 24:
        small, large, units = large % 24, large // 24, ("d", "h")
    return f"{large} {units[0]} {small} {units[1]}" if small else f"{large} {units[0]}"


def format_count(count: int, plural: str) -> str:
    """Format a count with its noun, in the singular after 1: `1 row`, `2 rows`. `plural` is the noun for all others."""
    noun = _PLURAL_ENDING.sub("", plural, count=1) if count == 1 else plural
    return f"{count:,} {noun}"


def format_double(value: float) -> str:
    """Format a number as Java's `Double.toString`: plain from 10^-3 to 10^7, else with E."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    fraction = "".join(map(str, digits[1:])) or "0"
    return f"{'-' if sign else ''}{digits[0]}.{fraction}E{len(digits) - 1 + int(exponent)}"
