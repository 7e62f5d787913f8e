"""Regular expressions of a configuration over names and values of others, none of which may take for ever.

RE2 takes time in proportion to the text whatever the expression is. What it cannot do, lookarounds and references
back, or would do otherwise than Python, is left to an engine that tries ways one by one, for so long and no longer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

_PATIENCE = 0.25
"""Seconds for one text."""


class EndlessError(ValueError):
    """An expression did not come to an end; the message names it and the text."""


@dataclass(frozen=True)
class Expression:
    """A compiled expression.

    Attributes:
        pattern: as it is written.
        ascii: whether classes mean ASCII in any text.
        syntax: what Python says of it: its groups and their names.
        linear: RE2's, None where that cannot do it.
        patient: the other engine's.
    """

    pattern: str
    ascii: bool
    syntax: re.Pattern[str] = field(compare=False, repr=False)
    linear: Any = field(compare=False, repr=False)
    patient: Any = field(compare=False, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        """RE2's does not travel; each process compiles its own."""
        return _again, (self.pattern, self.ascii)

    def fits(self, text: str) -> bool:
        """Whether it is the whole of `text`.

        Raises:
            EndlessError: it does not come to an end.
        """
        return self._match("fullmatch", text) is not None

    def search(self, text: str) -> Any:
        """The first place where it fits, a match of either engine, or None.

        Raises:
            EndlessError: it does not come to an end.
        """
        return self._match("search", text)

    def _match(self, verb: str, text: str) -> Any:
        # Of other texts the two engines disagree: what a letter is, and whether `$` stands before the last newline.
        if self.linear is not None and text.isprintable() and (self.ascii or text.isascii()):
            return getattr(self.linear, verb)(text)
        try:
            return getattr(self.patient, verb)(text, timeout=_PATIENCE)
        except TimeoutError:
            raise EndlessError(
                f"the expression {self.pattern!r} does not come to an end with {text[:80]!r}: write it without "
                "repetitions inside of repetitions"
            ) from None


@lru_cache(maxsize=256)
def compiled(pattern: str, *, ascii: bool = False) -> Expression:
    r"""The expression in Python's syntax; with `ascii` `\d`, `\w` and `\s` are ASCII.

    Raises:
        re.error: it is none.
    """
    import re2
    import regex

    try:
        syntax = re.compile(pattern, re.ASCII if ascii else 0)
    except (RecursionError, OverflowError):
        raise re.error("its groups are nested too deeply, or it repeats too often") from None
    options = re2.Options()
    options.log_errors = False
    try:
        linear = re2.compile(pattern, options)
    except re2.error:
        linear = None
    try:
        patient = regex.compile(pattern, regex.ASCII if ascii else 0)
    except (RecursionError, regex.error) as error:
        raise re.error(str(error)) from None
    return Expression(pattern, ascii, syntax, linear, patient)


def _again(pattern: str, ascii: bool) -> Expression:
    return compiled(pattern, ascii=ascii)
