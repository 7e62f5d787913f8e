"""Settings with their places, and the report of what is wrong with them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from s3lake.errors import ConfigurationError
from s3lake.text import masking
from s3lake.text.masking import MASK, is_secret

T = TypeVar("T")
U = TypeVar("U")
_SHOWN = 60
_PLAIN = re.compile(r"[\w-]+|<<")
Path = tuple[str | int, ...]
"""Names and positions from the top of a configuration down to a value."""


def format_path(path: Sequence[str | int]) -> str:
    """Return a path as messages write it: `sinks[0].layout.partition_by[1]`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _PLAIN.fullmatch(step):
            text += f".{step}" if text else step
        else:
            text += f"[{step!r}]"
    return text


@dataclass(frozen=True, order=True)
class Place:
    """A position in a file, from 1, and the key there, or neither; line 0 if there are no lines."""

    file: str
    line: int = 1
    column: int = 1
    key: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


def is_comment(key: str) -> bool:
    """True if a key holds a remark: nothing reads it, and its references are not looked up."""
    return key.startswith(("_", "#"))


def variable(name: str) -> Place:
    """Return the place of a value that an environment variable holds."""
    return Place(f"environment variable {name}", 0, 0)


@dataclass(frozen=True, order=True)
class Notice:
    """A setting that is accepted and means less here, or something else, than where it comes from.

    It is left out if a file or a variable sets `override`: the native path of a sink, with the sink's name.
    """

    place: Place
    message: str
    override: tuple[str, str] = ("", "")

    def __str__(self) -> str:
        return f"{self.place}: " + (f"{self.place.key}: " if self.place.key else "") + self.message


@dataclass(frozen=True)
class Reference:
    """The origin of a value that is not written in the file itself.

    Attributes:
        written: the text with its references as native YAML writes them; empty if YAML cannot.
        alone: whether the text is one reference and nothing else.
    """

    written: str
    value: str = field(repr=False)  # it may be a secret
    alone: bool
    secret: bool


@dataclass(frozen=True)
class Setting:
    """One key, with its place, and its value as text without blanks around it.

    Attributes:
        key: the key as written; in TOML the path to it.
        positions: line and column of each character of the value, if an error may be inside it.
        shape: what is there instead of a text: a mapping, a list or null.
    """

    key: str
    value: str = field(repr=False)  # it may be a secret
    place: Place
    positions: Sequence[tuple[int, int]] = ()
    shape: str = ""
    secret: bool = False
    reference: Reference | None = None

    @property
    def masked_value(self) -> str:
        """The value for a message."""
        if self.shape:
            return self.shape
        if self.secret or is_secret(self.key):
            return MASK
        value = masking.mask_value(self.key, self.value)
        text = repr(value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…")
        return f"{text} (from {self.reference.written})" if self.reference and self.reference.written else text

    def at(self, offset: int) -> Place:
        """Return the place of the character at `offset` of the value; of the last one if the value ends before it."""
        if not self.positions:
            return self.place
        beyond = offset - len(self.positions)
        line, column = self.positions[min(offset, len(self.positions) - 1)]
        return Place(self.place.file, line, column + (1 if beyond >= 0 else 0), self.key)


@dataclass(frozen=True)
class Value(Generic[T]):
    """A value, and the setting that it was read from; None if it is a default."""

    value: T
    setting: Setting | None = None

    def map(self, change: Callable[[T], U]) -> Value[U]:
        """Return the value changed, read from the same setting."""
        return Value(change(self.value), self.setting)


@dataclass
class Report:
    """The errors, notices and settings without effect of a file; nothing secret is in them.

    Attributes:
        secrets: values that are masked wherever a message quotes them.
        unresolved_keys: keys whose values cannot be read: nothing more is reported of them.
        unset_variables: keys that hold `${NAME}` as text, because there is no such variable, and the variables.
    """

    file: str
    notices: dict[Notice, None] = field(default_factory=dict)
    secrets: set[str] = field(default_factory=set)
    unresolved_keys: set[str] = field(default_factory=set)
    unset_variables: dict[str, str] = field(default_factory=dict)
    without_effect: dict[Notice, None] = field(default_factory=dict)
    _problems: set[Notice] = field(default_factory=set)

    def error(self, where: Setting | Place | None, message: str) -> None:
        """Note what is wrong at a setting, a place, or with the whole file."""
        place = self._place(where)
        key = place.key.partition(": ")[0]
        if key in self.unset_variables:
            name = self.unset_variables[key]
            message += f"; environment variable {name} is not set, so ${{{name}}} is text"
        if key not in self.unresolved_keys:
            self._problems.add(Notice(place, self._mask(message)))

    def notice(self, where: Setting | Place | None, message: str, override: tuple[str, str] = ("", "")) -> None:
        """Add a notice about a setting that is accepted."""
        self.notices[Notice(self._place(where), self._mask(message), override)] = None

    def no_effect(self, where: Setting | Place | None, reason: str) -> None:
        """Note a known setting that has no effect here."""
        self.without_effect[Notice(self._place(where), self._mask(reason))] = None

    def mentions(self, place: Place) -> bool:
        """Return whether something is noted at a place."""
        return any(note.place == place for note in (*self._problems, *self.notices, *self.without_effect))

    @property
    def failed(self) -> bool:
        """True if there is an error."""
        return bool(self._problems)

    def check(self) -> None:
        """Raise ConfigurationError if there are problems: one line each, in the file's order."""
        lines: dict[tuple[str, int, int, str], str] = {}
        for problem in sorted(self._problems):
            place = problem.place
            # An anchor's mistakes are reported once, not again for each alias.
            lines.setdefault((place.file, place.line, place.column, problem.message), str(problem))
        if lines:
            raise ConfigurationError("\n".join(lines.values()))

    def _place(self, where: Setting | Place | None) -> Place:
        if isinstance(where, Setting):
            return where.place
        return where or Place(self.file)

    def _mask(self, message: str) -> str:
        return masking.mask_secrets(message, self.secrets)


def by_key(settings: Sequence[Setting], report: Report) -> dict[str, Setting]:
    """Return the settings by key; of a key that is given twice the last one counts, as in Java."""
    settings_by_key: dict[str, Setting] = {}
    for setting in settings:
        if setting.key in settings_by_key:
            message = f"is given again in line {setting.place.line}; that one counts, as in Java"
            report.notice(settings_by_key[setting.key], message)
        settings_by_key[setting.key] = setting
    return settings_by_key
