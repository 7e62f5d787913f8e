"""Parsers of option values: the error of each has what is allowed, and the name that was probably meant.

The error does not contain the value, which may be secret: the caller adds it, or a mask, in front.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

_NEAR = 0.77
_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)


def did_you_mean(name: str, allowed: Iterable[str], form: str = "{}", cutoff: float = 0.6) -> str:
    """Return `did you mean …? ` if a name is near an allowed one, also in another case, else an empty text."""
    exact = {word: word for word in allowed}
    for text, words in ((name, exact), (name.lower(), {word.lower(): word for word in exact})):
        for near in get_close_matches(text, words, 1, cutoff):
            return f"did you mean {form.format(words[near])}? "
    return ""


def suggest(name: str, allowed: Iterable[str], remedy: str = "use one of") -> str:
    """Return the allowed names as a remedy; the one that is near `name` comes first."""
    names = list(allowed)
    return f"{did_you_mean(name, names)}{remedy}: {', '.join(names)}"


def find_nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the name that a mistyped one probably is, None if none is near; only a few letters may differ.

    A section that both names begin with makes them no nearer: what is behind it must be near too.
    """
    near = get_close_matches(name, list(names), 3, _NEAR)
    return next((allowed for allowed in near if get_close_matches(*_skip_section(name, allowed))), None)


def _skip_section(name: str, allowed: str) -> tuple[str, list[str]]:
    """Return both names without the steps that they have in common, as `get_close_matches` takes them."""
    steps, allowed_steps = name.split("."), allowed.split(".")
    while len(steps) > 1 and len(allowed_steps) > 1 and steps[0] == allowed_steps[0]:
        del steps[0], allowed_steps[0]
    return ".".join(steps), [".".join(allowed_steps)]


def parse_whole_number(text: str, low: int, high: int | None = None) -> int:
    """Parse a whole number within bounds.

    Raises:
        ValueError: it is not one.
    """
    if _WHOLE.fullmatch(text.strip()) and low <= int(text) and (high is None or int(text) <= high):
        return int(text)
    bounds = f"of at least {low}" if high is None else f"from {low} to {high}"
    raise ValueError(f"is not allowed; write a whole number {bounds}")


def parse_bool(text: str) -> bool:
    """Parse `true` or `false`, in any case.

    Raises:
        ValueError: it is neither.
    """
    if text.strip().lower() not in ("true", "false"):
        raise ValueError("is not allowed; write true or false")
    return text.strip().lower() == "true"


def parse_choice(text: str, choices: Iterable[str]) -> str:
    """Return the one of some words that the text is, in any case.

    Raises:
        ValueError: it is not one of them.
    """
    by_lower = {word.lower(): word for word in choices}
    if text.strip().lower() not in by_lower:
        allowed = [word for word in by_lower.values() if word]
        raise ValueError(f"is not allowed; {suggest(text, allowed)}")
    return by_lower[text.strip().lower()]


def parse_names(text: str) -> list[str]:
    """Parse names separated by commas.

    Raises:
        ValueError: one is empty.
    """
    parts = [name.strip() for name in text.split(",")] if text.strip() else []
    if not all(parts):
        raise ValueError("has an empty name between commas; take a comma out")
    return parts
