"""What the text of an environment variable is worth: Iggy's rule."""

from __future__ import annotations

import re
from typing import Any

_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def value_of(text: str) -> Any:
    """`[a,b]` is a list, `true` and `false` are booleans, then whole numbers of 64 bits, then numbers, else text."""
    if is_list(text):
        return [value_of(one) for one in items_of(text)]
    if text in ("true", "false"):
        return text == "true"
    if _INTEGER.fullmatch(text) and -(2**63) <= int(text) < 2**64:
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else text


def is_list(text: str) -> bool:
    """Whether the text is a list."""
    return text.startswith("[") and text.endswith("]")


def items_of(text: str) -> list[str]:
    """The texts in a list."""
    return [one.strip() for one in text[1:-1].split(",")] if text[1:-1].strip() else []
