"""Date patterns of `_date.<pattern>`: the letters of Java's DateTimeFormatter that make sense in a key, in UTC."""

from __future__ import annotations

from collections.abc import Callable

from s3lake.text.dates.java import DatePattern
from s3lake.text.dates.tokens import tokens

_YEAR_10000_MS = 253_402_300_800_000
_COUNTS = {
    **{"y": (1, 2, 4), "M": (1, 2, 3), "d": (1, 2), "D": (1, 3), "H": (1, 2), "m": (1, 2), "s": (1, 2)},
    **{"u": (1, 2, 4), "L": (1, 2, 3)},
}
"""How often each letter may stand in a row."""


def formatter(pattern: str) -> Callable[[int], str]:
    """A function from epoch milliseconds to text.

    Raises:
        ValueError: a letter has no meaning in a key, or a quote is not closed.

    The function raises ValueError where a timestamp has no date: Kafka's own are any 64 bits, and -1 stands for none.
    """
    try:
        _check(pattern)
    except ValueError as error:
        raise ValueError(f"date pattern {pattern!r}: {error}") from None
    print_date = DatePattern(pattern).formatter()

    def of(epoch_ms: int) -> str:
        if not 0 <= epoch_ms < _YEAR_10000_MS:
            raise ValueError(f"timestamp {epoch_ms} has no date")
        return print_date(epoch_ms)

    return of


def _check(pattern: str) -> None:
    for part in tokens(pattern, pairs=False):
        if part.letter and part.count not in _COUNTS.get(part.letter, ()):
            allowed = ", ".join(letter * count for letter, counts in _COUNTS.items() for count in counts)
            raise ValueError(f"{part.text!r} is not among {allowed}; quote plain text")
        if not part.quoted and (part.text in "[]{}#" or not part.text.isprintable()):
            raise ValueError(f"{part.text!r} has another meaning; take it out")
