"""Read the options of a transform: texts from a properties file, or typed values from YAML."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from s3lake.text.option_values import (
    did_you_mean,
    find_nearest,
    parse_bool,
    parse_choice,
    parse_names,
    parse_whole_number,
)

T = TypeVar("T")


class OptionError(ValueError):
    """An option is wrong, missing or unknown."""

    def __init__(self, message: str, option: str = "") -> None:
        super().__init__(message)
        self.option = option


class OptionReader:
    """The options of one transform; an option that is never read is unknown.

    Attributes:
        position: place of the transform in its chain.
        exact: True if the sink keeps what is below a millisecond of its times.
        notices: what the user should know although nothing is wrong.
    """

    def __init__(self, options: Mapping[str, Any], position: int = 0, *, exact: bool = False) -> None:
        self._options = {name: value for name, value in options.items() if value is not None}
        self._read: dict[str, None] = {}
        self.position = position
        self.exact = exact
        self.notices: list[str] = []

    def raw(self, name: str, default: Any = None) -> Any:
        """Return the value as it is written."""
        self._read[name] = None
        return self._options.get(name, default)

    def __contains__(self, name: str) -> bool:
        return self.raw(name) is not None

    def text(self, name: str, default: str | None = None, *, example: str = "") -> str:
        """Return a text; without a default it is required and not empty.

        Raises:
            OptionError: it is missing, or a list or table.
        """
        value = self.raw(name, default)
        if value is None or (value == "" and default is None):
            raise self._missing(name, example)
        if isinstance(value, bool):
            return str(value).lower()
        if not isinstance(value, (str, int, float)):
            raise OptionError(f"{name}: {value!r} is not a text", name)
        return str(value)

    def names(self, name: str, *, example: str = "") -> tuple[str, ...]:
        """Return a list, or the names of a text with commas; with an example there must be one.

        Raises:
            OptionError: it is missing, or an element is empty or not a text.
        """
        value = self.raw(name, ())
        if not isinstance(value, (list, tuple)):
            value = self.parse(name, parse_names, "")
        if not all(isinstance(part, (str, int, float)) and part != "" for part in value):
            raise OptionError(f"{name}: {value!r} is not a list of names; write a,b,c", name)
        if example and not value:
            raise self._missing(name, example)
        return tuple(map(str, value))

    def flag(self, name: str) -> bool:
        """Return true or false; it is true unless it is given."""
        return self.parse(name, parse_bool, "true")

    def number(self, name: str, default: int, low: int, high: int) -> int:
        return self.parse(name, lambda text: parse_whole_number(text, low, high), str(default))

    def choice(self, name: str, choices: Sequence[str], default: str | None = None) -> str:
        """Return one of some words, in any case; without a default it is required."""
        return self.parse(name, lambda text: parse_choice(text, choices), default, example=choices[0])

    def parse(self, name: str, parser: Callable[[str], T], default: str | None = None, *, example: str = "") -> T:
        """Return the value that `parser` makes of the text.

        Raises:
            OptionError: the option is missing, or `parser` raises a ValueError.
        """
        text = self.text(name, default, example=example)
        try:
            return parser(text)
        except ValueError as error:
            message = str(error)
            quoted = "" if repr(text) in message else f"{self._options.get(name, text)!r} "
            raise OptionError(f"{name}: {quoted}{message}", name) from None

    def ignore(self, *names: str, reason: str) -> None:
        """Accept options of the connector that have no effect here, with a notice."""
        self.notices += [f"{name} has no effect: {reason}" for name in names if name in self]

    def finish(self) -> None:
        """Raise OptionError if an option was given that was never read."""
        for name in self._options:
            if name not in self._read:
                allowed = ", ".join(self._read) or "none"
                hint = did_you_mean(name, self._read)
                raise OptionError(f"{name} is not an option; {hint}allowed here: {allowed}", name)

    def _missing(self, name: str, example: str) -> OptionError:
        near = find_nearest(name, [other for other in self._options if other not in self._read])
        hint = f" (is {near!r} meant?)" if near else ""
        state = "empty" if name in self._options else "missing"
        return OptionError(f"{name} is {state}{hint}; add it, for example {name}={example}", name)
