"""Options of a transform as their connector names them: texts from a properties file, or typed values from YAML."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from typing import Any, TypeVar

from s3lake.text import options

T = TypeVar("T")


class OptionError(ValueError):
    """An option is wrong, missing or unknown."""

    def __init__(self, message: str, option: str = "") -> None:
        super().__init__(message)
        self.option = option


class Options:
    """The options given to one transform; each that is asked for counts as known.

    Attributes:
        notices: what the user should know, though nothing is wrong.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = dict(settings)
        self._asked: list[str] = []
        self.notices: list[str] = []

    def given(self, name: str) -> bool:
        """Whether the option is there."""
        self._note(name)
        return self._settings.get(name) is not None

    def raw(self, name: str) -> Any:
        """The value as given, None without one."""
        self._note(name)
        return self._settings.get(name)

    def needed(self, name: str, example: str) -> Any:
        """The value as given; `example` is what could stand there.

        Raises:
            OptionError: it is missing.
        """
        value = self.raw(name)
        if value is None or value == "":
            near = get_close_matches(name, [one for one in self._settings if one not in self._asked], 1)
            hint = f" (is {near[0]!r} meant?)" if near else ""
            raise OptionError(f"{name} is missing{hint}; add it, for example {name}={example}", name)
        return value

    def text(self, name: str, default: str = "") -> str:
        value = self.raw(name)
        return default if value is None else self._text(name, value)

    def needed_text(self, name: str, example: str) -> str:
        """A text that must be there."""
        return self._text(name, self.needed(name, example))

    def names(self, name: str) -> tuple[str, ...]:
        """A list; in a text its elements are separated by commas."""
        value = self.raw(name)
        if value is None:
            return ()
        if isinstance(value, str):
            return tuple(self._read(name, value, options.parse_names))
        if not isinstance(value, Sequence):
            raise OptionError(f"{name}: {value!r} is no list; write a,b,c", name)
        parts = tuple(self._text(name, part) for part in value)
        if not all(parts):
            raise OptionError(f"{name}: {value!r} has an empty name; take it out", name)
        return parts

    def needed_names(self, name: str, example: str) -> tuple[str, ...]:
        """A list that must have an element."""
        self.needed(name, example)
        names = self.names(name)
        if not names:
            raise OptionError(f"{name} is empty; for example {name}={example}", name)
        return names

    def flag(self, name: str, default: bool) -> bool:
        """True or false."""
        value = self.raw(name)
        if value is None:
            return default
        return self._read(name, value, options.parse_bool)

    def number(self, name: str, default: int, low: int, high: int) -> int:
        """A whole number from `low` to `high`."""
        value = self.raw(name)
        parse = partial(options.parse_whole_number, low=low, high=high)
        return default if value is None else self._read(name, value, parse)

    def choice(self, name: str, allowed: Sequence[str], default: str | None = None) -> str:
        """One of `allowed`, whatever its case; without a default it must be there."""
        value = self.text(name, default) if default is not None else self.needed_text(name, allowed[0])
        return self._read(name, value, partial(options.parse_choice, choices=allowed))

    def _read(self, name: str, value: Any, reader: Callable[[str], T]) -> T:
        try:
            return reader(str(value))
        except ValueError as error:
            raise OptionError(f"{name}: {value!r} {error}", name) from None

    def read(self, name: str, value: str, reader: Callable[[str], T]) -> T:
        """`value` as `reader` understands it.

        Raises:
            OptionError: it does not.
        """
        try:
            return reader(value)
        except ValueError as error:
            raise OptionError(f"{name}: {error}", name) from None

    def without_meaning(self, name: str, why: str) -> None:
        """An option of the connector's that is accepted and does nothing here."""
        if self.given(name):
            self.notices.append(f"{name} has no effect: {why}")

    def finish(self) -> None:
        """No further option is known.

        Raises:
            OptionError: another one was given.
        """
        for name in self._settings:
            if name not in self._asked:
                allowed = ", ".join(self._asked) or "none"
                raise OptionError(
                    f"{name} is no option; {options.did_you_mean(name, self._asked)}allowed here: {allowed}", name
                )

    def _note(self, name: str) -> None:
        if name not in self._asked:
            self._asked.append(name)

    @staticmethod
    def _text(name: str, value: Any) -> str:
        if isinstance(value, bool):
            return str(value).lower()
        if not isinstance(value, (str, int, float)):
            raise OptionError(f"{name}: {value!r} is no text", name)
        return str(value)
