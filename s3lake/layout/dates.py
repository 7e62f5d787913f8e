"""Date patterns of `_date.<pattern>`: the letters of Java's DateTimeFormatter that make sense in a key, in UTC."""

import re
from collections.abc import Callable
from datetime import datetime, timezone
from functools import lru_cache

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_YEAR_10000_MS = 253_402_300_800_000
Piece = Callable[[datetime], str]

_LETTERS: dict[str, dict[int, Piece]] = {
    "y": {1: lambda d: str(d.year), 2: lambda d: f"{d.year % 100:02d}", 4: lambda d: f"{d.year:04d}"},
    "M": {1: lambda d: str(d.month), 2: lambda d: f"{d.month:02d}", 3: lambda d: _MONTHS[d.month - 1]},
    "d": {1: lambda d: str(d.day), 2: lambda d: f"{d.day:02d}"},
    "D": {1: lambda d: str(d.timetuple().tm_yday), 3: lambda d: f"{d.timetuple().tm_yday:03d}"},
    "H": {1: lambda d: str(d.hour), 2: lambda d: f"{d.hour:02d}"},
    "m": {1: lambda d: str(d.minute), 2: lambda d: f"{d.minute:02d}"},
    "s": {1: lambda d: str(d.second), 2: lambda d: f"{d.second:02d}"},
}
# Quoted text ('' is one quote, inside and outside), a run of one letter, or anything else.
_TOKEN = re.compile(r"'((?:[^']|'')*)'|(([A-Za-z])\3*)|(.)", re.DOTALL)
_LETTERS["u"] = _LETTERS["y"]
_LETTERS["L"] = _LETTERS["M"]


def formatter(pattern: str) -> Callable[[int], str]:
    """A function from epoch milliseconds to text.

    Raises:
        ValueError: a letter has no meaning in a key, or a quote is not closed.

    The function raises ValueError where a timestamp has no date: Kafka's own are any 64 bits, and -1 stands for none.
    """
    pieces = _pieces(pattern)

    @lru_cache(maxsize=65_536)
    def of_second(second: int) -> str:
        moment = datetime.fromtimestamp(second, timezone.utc)
        return "".join(piece(moment) for piece in pieces)

    def of(epoch_ms: int) -> str:
        if not 0 <= epoch_ms < _YEAR_10000_MS:
            raise ValueError(f"timestamp {epoch_ms} has no date")
        return of_second(epoch_ms // 1000)

    return of


def _pieces(pattern: str) -> list[Piece]:
    pieces: list[Piece] = []
    for token in _TOKEN.finditer(pattern):
        quoted, run, letter, other = token.groups()
        if quoted is not None:
            pieces.append(_constant(quoted.replace("''", "'") or "'"))
        elif run is None:
            if other == "'":
                raise ValueError(f"date pattern {pattern!r}: a quote is not closed")
            if other in "[]{}#" or not other.isprintable():
                raise ValueError(f"date pattern {pattern!r}: {other!r} has another meaning; take it out")
            pieces.append(_constant(other))
        elif len(run) in _LETTERS.get(letter, {}):
            pieces.append(_LETTERS[letter][len(run)])
        else:
            allowed = ", ".join(one * n for one, forms in _LETTERS.items() for n in forms)
            raise ValueError(f"date pattern {pattern!r}: {run!r} is not among {allowed}; quote plain text")
    return pieces


def _constant(text: str) -> Piece:
    return lambda _: text
