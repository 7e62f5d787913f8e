"""Date patterns of `_date.<pattern>`: the letters of Java's DateTimeFormatter that make sense in a key, in UTC."""

from collections.abc import Callable
from datetime import datetime, timezone
from functools import lru_cache
from itertools import groupby

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
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
_LETTERS["u"] = _LETTERS["y"]
_LETTERS["L"] = _LETTERS["M"]


def formatter(pattern: str) -> Callable[[int], str]:
    """A function from epoch milliseconds to text.

    Raises:
        ValueError: a letter has no meaning in a key, or a quote is not closed.
    """
    pieces = _pieces(pattern)

    @lru_cache(maxsize=65_536)
    def of_second(second: int) -> str:
        moment = datetime.fromtimestamp(second, timezone.utc)
        return "".join(piece(moment) for piece in pieces)

    return lambda epoch_ms: of_second(epoch_ms // 1000)


def _pieces(pattern: str) -> list[Piece]:
    pieces: list[Piece] = []
    quoted = pattern.split("'")
    if len(quoted) % 2 == 0:
        raise ValueError(f"date pattern {pattern!r}: a quote is not closed")
    for position, part in enumerate(quoted):
        if position % 2:
            pieces.append(_constant(part or "'"))  # '' is one quote
            continue
        for letter, run in groupby(part):
            count = len(list(run))
            if not letter.isalpha():
                pieces.append(_constant(letter * count))
            elif count in _LETTERS.get(letter, {}):
                pieces.append(_LETTERS[letter][count])
            else:
                allowed = ", ".join(one * n for one, forms in _LETTERS.items() for n in forms)
                raise ValueError(f"date pattern {pattern!r}: {letter * count!r} is not among {allowed}; quote plain text")
    return pieces


def _constant(text: str) -> Piece:
    return lambda _: text
