"""Regular expressions of a configuration over names and values of other people; each search has a time limit."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

PATIENCE_S = 0.25
"""Seconds for one text."""


class PatternTimeoutError(ValueError):
    """A search took too long; the message names the expression and the text."""


class Expression:
    """A compiled expression; `engine` is that of the `regex` module, which has a time limit."""

    def __init__(self, pattern: str, engine: Any) -> None:
        self.pattern, self.engine = pattern, engine

    def matches(self, text: str) -> bool:
        """Return whether the expression matches the whole of `text`. Raises PatternTimeoutError."""
        return self._run(self.engine.fullmatch, text) is not None

    def search(self, text: str) -> Any:
        """Return the first match in `text`, or None. Raises PatternTimeoutError."""
        return self._run(self.engine.search, text)

    def _run(self, verb: Callable[..., Any], text: str) -> Any:
        try:
            return verb(text, timeout=PATIENCE_S)
        except TimeoutError:
            raise PatternTimeoutError(
                f"the expression {self.pattern!r} takes too long on {text[:80]!r}: write it without repetitions inside "
                "of repetitions"
            ) from None


@lru_cache(maxsize=256)
def compile_pattern(pattern: str, *, java: bool = False) -> Expression:
    r"""Compile an expression in Python's syntax; with `java` it may have sets in sets, and `\d` and `\w` are ASCII.

    Raises:
        re.error: it is invalid.
    """
    import regex

    try:
        if java:
            return Expression(pattern, regex.compile(pattern, regex.VERSION1 | regex.ASCII))
        re.compile(pattern)  # refuses what only `regex` has
        return Expression(pattern, regex.compile(pattern))
    except (RecursionError, OverflowError):
        raise re.error("its groups are nested too deeply, or it repeats too often") from None
    except regex.error as error:
        raise re.error(str(error)) from None
