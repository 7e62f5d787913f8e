"""Java's regular expressions and replacement strings, as far as Python's engine can mean the same."""

from __future__ import annotations

import re
from collections.abc import Callable

from s3lake.text import expressions
from s3lake.text.expressions import Expression

_POSIX = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "Alpha": "a-zA-Z",
    "Digit": "0-9",
    "Alnum": "a-zA-Z0-9",
    "Punct": r"!-/:-@\[-`{-~",
    "XDigit": "0-9A-Fa-f",
    "Space": r" \t\n\x0b\f\r",
    "Blank": r" \t",
}
_END = {"z": r"\Z", "Z": r"(?=\n?\Z)"}
_REFERENCE = re.compile(r"\\(.)|\$(\d)|\$\{([A-Za-z][A-Za-z0-9]*)\}|([\\$])", re.DOTALL)


def compiled(pattern: str) -> Expression:
    r"""The expression, with Java's meaning of `\d`, `\w` and `\s`: ASCII.

    Raises:
        ValueError: it is none, or uses what Python's engine cannot do.
    """
    try:
        return expressions.compile_pattern(_translated(pattern), ascii=True)
    except re.error as error:
        raise ValueError(f"{pattern!r} is not a regular expression: {error}") from None


def replaced(pattern: str, replacement: str) -> Callable[[str], str]:
    """Texts that match as a whole, with their first occurrence replaced as RegexRouter does it; others as they are.

    Raises:
        ValueError: the expression or the replacement is wrong.
    """
    regex = compiled(pattern)
    parts = _parts(replacement, regex.syntax)

    def of(text: str) -> str:
        if not regex.matches(text):
            return text
        # The first occurrence need not be the whole text: `a|ab` finds `a` in `ab`.
        match = regex.search(text)
        assert match is not None
        new = "".join(part if isinstance(part, str) else match.group(part[0]) or "" for part in parts)
        return text[: match.start()] + new + text[match.end() :]

    return of


def _parts(replacement: str, regex: re.Pattern[str]) -> list[str | tuple[int | str]]:
    parts: list[str | tuple[int | str]] = []
    position = 0
    while position < len(replacement):
        match = _REFERENCE.search(replacement, position)
        if match is None:
            parts.append(replacement[position:])
            break
        parts.append(replacement[position : match.start()])
        position = match.end()
        escaped, digit, name, stray = match.groups()
        if stray is not None:
            raise ValueError(
                f"replacement {replacement!r}: {stray!r} must be followed by a group, or be escaped: \\{stray}"
            )
        if escaped is not None:
            parts.append(escaped)
        elif name is not None:
            if name not in regex.groupindex:
                raise ValueError(f"replacement {replacement!r}: the expression has no group called {name!r}")
            parts.append((name,))
        else:
            group = int(digit)
            # Java takes further digits as long as there is such a group.
            while position < len(replacement) and replacement[position] in "0123456789":
                if group * 10 + int(replacement[position]) > regex.groups:
                    break
                group = group * 10 + int(replacement[position])
                position += 1
            if group > regex.groups:
                raise ValueError(f"replacement {replacement!r}: the expression has no group {group}")
            parts.append((group,))
    return parts


def _translated(pattern: str) -> str:
    pieces: list[str] = []
    position, in_class = 0, False
    while position < len(pattern):
        rest = pattern[position:]
        if quoted := re.match(r"\\Q(.*?)(\\E|\Z)", rest, re.DOTALL):
            pieces.append(re.escape(quoted[1]))
            position += quoted.end()
        elif posix := re.match(r"\\([pP])\{(\w+)\}", rest):
            name = posix[2].removeprefix("Is")
            if name not in _POSIX:
                raise ValueError(f"{pattern!r}: {posix[0]} is not supported; use one of {', '.join(_POSIX)}, or [a-z]")
            if in_class and posix[1] == "P":
                raise ValueError(f"{pattern!r}: {posix[0]} between brackets is not supported; write it out")
            pieces.append(_POSIX[name] if in_class else f"[{'^' if posix[1] == 'P' else ''}{_POSIX[name]}]")
            position += posix.end()
        elif reference := re.match(r"\\k<(\w+)>", rest):
            pieces.append(f"(?P={reference[1]})")
            position += reference.end()
        elif rest[0] == "\\" and len(rest) > 1:
            pieces.append(_END[rest[1]] if rest[1] in _END and not in_class else rest[:2])
            position += 2
        elif in_class and (rest.startswith("&&") or rest[0] == "["):
            raise ValueError(f"{pattern!r}: a class within a class is not supported; write it out")
        elif not in_class and (named := re.match(r"\(\?<([A-Za-z]\w*)>", rest)):
            pieces.append(f"(?P<{named[1]}>")
            position += named.end()
        elif not in_class and (re.match(r"[*+?}]\+", rest) or rest.startswith("(?>")):
            raise ValueError(f"{pattern!r}: possessive and atomic groups are not supported")
        else:
            if rest[0] == "[" and not in_class:
                in_class = True
                opening = re.match(r"\[\^?\]?", rest)
                assert opening is not None
                pieces.append(opening[0])
                position += opening.end()
                continue
            if rest[0] == "]":
                in_class = False
            pieces.append(rest[0])
            position += 1
    return "".join(pieces)
