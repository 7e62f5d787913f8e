"""The parts of all date patterns: repeated letters, and plain text."""

from __future__ import annotations

import re
from dataclasses import dataclass

_PAIR = r"(?P<pair>'')|"
_TOKEN = r"'(?P<quoted>(?:[^']|'')*)'(?!')|(?P<run>(?P<letter>[A-Za-z])(?P=letter)*)|(?P<other>.)"
# `''''` is one quote in quotes for DateTimeFormatter, and two quotes for Joda and SimpleDateFormat.
_QUOTED = re.compile(_TOKEN, re.DOTALL)
_PAIRED = re.compile(_PAIR + _TOKEN, re.DOTALL)


@dataclass(frozen=True)
class Token:
    """A letter and how often it is repeated, or text that is printed unchanged (without a letter).

    `quoted` text has no other meaning; a single character outside of quotes may have one.
    """

    position: int
    letter: str
    count: int
    text: str
    quoted: bool = False


def split_pattern(pattern: str, *, pairs: bool) -> list[Token]:
    """Split a pattern into its parts; with `pairs`, two quotes are always a quote.

    Raises:
        ValueError: a quote is not closed.
    """
    parts = []
    for match in (_PAIRED if pairs else _QUOTED).finditer(pattern):
        run, quoted, other = match["run"], match["quoted"], match["other"]
        if run is not None:
            parts.append(Token(match.start(), match["letter"], len(run), run))
        elif other == "'":
            raise ValueError(
                f"the quote at character {match.start() + 1} is not closed; write ' before and after plain text, and "
                "'' for a quote"
            )
        elif other is not None:
            parts.append(Token(match.start(), "", 0, other))
        else:
            parts.append(Token(match.start(), "", 0, (quoted or "").replace("''", "'") or "'", quoted=True))
    return parts
