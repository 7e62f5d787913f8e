"""Java's regular expressions and replacement strings, by the `regex` module."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from s3lake.text.expressions import Expression, compile_pattern

_POSIX = ("Lower", "Upper", "Alpha", "Digit", "Alnum", "Punct", "XDigit", "Space", "Blank")
_OF_JAVA = re.compile(r"\\Q(.*?)(?:\\E|\Z)|\\[pP]\{(\w+)\}|\\k<(\w+)>|\\(.)|(--)", re.DOTALL)
_REFERENCE = re.compile(r"\\(.)|\$([0-9]+)|\$\{([A-Za-z][A-Za-z0-9]*)\}|([\\$])", re.DOTALL)


def compile_java(pattern: str) -> Expression:
    r"""Compile an expression with Java's meaning of `\d`, `\w`, `\s` and `\p{Alpha}`: ASCII.

    Raises:
        ValueError: it is invalid, or has a property of Unicode.
    """

    def translate(match: re.Match[str]) -> str:
        quoted, name, group, escaped, dashes = match.groups()
        if name is not None and name not in _POSIX:
            raise ValueError(f"{pattern!r}: {match[0]} is not supported; use one of {', '.join(_POSIX)}, or [a-z]")
        if quoted is not None:
            return re.escape(quoted)
        if group is not None:
            return f"(?P={group})"
        if dashes is not None:
            return r"-\-"  # two of them are a difference of sets in `regex`
        return r"(?=\n?\Z)" if escaped == "Z" else match[0].replace("Punct", "posix_punct")

    try:
        return compile_pattern(_OF_JAVA.sub(translate, pattern), java=True)
    except re.error as error:
        raise ValueError(f"{pattern!r} is not a regular expression: {error}") from None


def compile_replacement(pattern: str, replacement: str) -> Callable[[str], str]:
    """Return a function that replaces the first occurrence in texts that match as a whole, as RegexRouter does.

    Raises:
        ValueError: the expression or the replacement is invalid.
    """
    expression = compile_java(pattern)
    parts = _split(replacement, expression.engine)

    def replace(text: str) -> str:
        if not expression.matches(text):
            return text
        # The first occurrence need not be the whole text: `a|ab` finds `a` in `ab`.
        match = expression.search(text)
        new = "".join(part if isinstance(part, str) else match.group(part[0]) or "" for part in parts)
        return text[: match.start()] + new + text[match.end() :]

    return replace


def _split(replacement: str, engine: Any) -> list[str | tuple[int | str]]:
    """Return the texts and groups of a replacement."""
    parts: list[str | tuple[int | str]] = []
    position = 0
    for match in _REFERENCE.finditer(replacement):
        parts.append(replacement[position : match.start()])
        position = match.end()
        escaped, digits, name, stray = match.groups()
        group: str | int
        if stray is not None:
            raise ValueError(f"{replacement!r}: {stray!r} must be followed by a group, or be escaped: \\{stray}")
        if escaped is not None:
            parts.append(escaped)
            continue
        if name is not None:
            exists, group = name in engine.groupindex, name
        else:  # Java takes further digits as long as there is such a group
            size = next((size for size in range(len(digits), 1, -1) if int(digits[:size]) <= engine.groups), 1)
            group, position = int(digits[:size]), match.start() + 1 + size
            exists = group <= engine.groups
        if not exists:
            raise ValueError(f"{replacement!r}: the expression has no group {group!r}")
        parts.append((group,))
    return [*parts, replacement[position:]]
