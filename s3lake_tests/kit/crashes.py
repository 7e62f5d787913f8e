"""The end of a process at any of its calls."""

from collections.abc import Callable
from typing import Any

import pytest


class Crash(BaseException):
    """The process is killed: no `except Exception` catches it."""


class Crashing:
    """Ends a process before or after its call number `at` of the counted calls.

    Attributes:
        calls: how many calls there were.
    """

    def __init__(self, at: int, *, after: bool, end: Callable[[Any], None] = lambda _: None) -> None:
        self.calls, self._at, self._after, self._end = 0, at, after, end

    def count(self, patch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
        """Count the calls of a function or method."""
        real = getattr(owner, name)

        def call(*arguments: Any, **options: Any) -> Any:
            number, self.calls = self.calls, self.calls + 1
            if number == self._at and not self._after:
                self._crash(arguments[0])
            answer = real(*arguments, **options)
            if number == self._at:
                self._crash(arguments[0])
            return answer

        patch.setattr(owner, name, call)

    def _crash(self, caller: Any) -> None:
        self._end(caller)
        raise Crash
