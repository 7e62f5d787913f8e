"""A file of TOML, which Iggy's connectors have: its values, and the place of every key.

The standard library reads it, whole and statement by statement.
"""

from __future__ import annotations

import pathlib
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from s3lake.config.report import Path, Place, Setting, dotted, is_comment
from s3lake.config.syntax.node import position_of
from s3lake.errors import ConfigurationError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_LONG_NUMBER = re.compile(r"[0-9_]{4301,}")
_MAY_END = re.compile(r"""[\]}"'][ \t\r]*(#.*)?$""")


@dataclass(frozen=True)
class File:
    """The values of a file, and the place of each: that of its key's statement."""

    name: str
    data: dict[str, Any]
    places: Mapping[Path, Place] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The connector's key, or the name of its file."""
        return str(self.data.get("key", pathlib.Path(self.name).stem))

    def place(self, *path: str | int) -> Place:
        """Return the place of the value at a path; of what it is in if it has none."""
        return next(
            (self.places[path[:size]] for size in range(len(path), 0, -1) if path[:size] in self.places),
            Place(self.name, key=dotted(path)),
        )

    def settings(self, *skipped: str) -> list[Setting]:
        """Return every value that is not a table, in the file's order."""
        settings = []
        for path, value in leaves({name: content for name, content in self.data.items() if name not in skipped}):
            key, text = dotted(path), str(value).lower() if isinstance(value, bool) else str(value)
            place = self.places.get(path, Place(self.name, key=key))
            settings.append(Setting(key, text.strip(), place, (), value))
        return settings


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield every value that is not a table, with its path."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if not is_comment(name):
                yield from leaves(inner, (*path, name))
    elif isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        for position, inner in enumerate(value):
            yield from leaves(inner, (*path, position))
    else:
        yield path, value


def read(path: pathlib.Path) -> File:
    """Read the file at `path`.

    Raises:
        ConfigurationError: it cannot be read, or is not TOML.
    """
    try:
        return parse(path.read_text("utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigurationError(f"{path}: cannot be read: {why}") from None


def parse(text: str, file: str) -> File:
    """Return the values of a text, and their places.

    Raises:
        ConfigurationError: it is not TOML.
    """
    try:
        return File(file, tomllib.loads(text), dict(_places(text, file)))
    except tomllib.TOMLDecodeError as error:
        reason = re.sub(r" \(at .*\)$", "", str(error))
        match = re.search(r"line (\d+), column (\d+)", str(error))
        where = f"{match[1]}:{match[2]}" if match else "{}:{}".format(*position_of(text))
        raise ConfigurationError(f"{file}:{where}: not TOML: {reason[0].lower()}{reason[1:]}") from None
    except RecursionError:
        raise ConfigurationError(f"{file}:1:1: nested too deeply") from None
    except ValueError:  # of Python's, which makes no integer of more than 4,300 digits
        number = _LONG_NUMBER.search(text)
        line, column = position_of(text[: number.start()]) if number else (1, 1)
        raise ConfigurationError(f"{file}:{line}:{column}: a number has more digits than any setting takes") from None


def _places(text: str, file: str) -> Iterator[tuple[Path, Place]]:
    table: Path = ()
    arrays: dict[Path, int] = {}  # the position of the newest table of each array of tables
    for line, statement in _statements(text):
        column = len(statement) - len(statement.lstrip()) + 1
        inside = tomllib.loads(statement)
        paths = list(_inside(inside))
        if statement.lstrip().startswith("["):
            path: Path = ()
            for step in [step for step in paths[-1] if isinstance(step, str)]:
                path = (*path, arrays[path], step) if path in arrays else (*path, step)
            table = path
            if isinstance(paths[-1][-1], int):
                arrays[path] = arrays.get(path, -1) + 1
                yield path, Place(file, line, column, dotted(path))
                table = (*path, arrays[path])
            yield table, Place(file, line, column, dotted(table))
        else:
            for path in paths:
                yield (*table, *path), Place(file, line, column, dotted((*table, *path)))


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Yield the tables' heads and the assignments, each with its first line: a value may go over several."""
    lines = iter(enumerate(text.split("\n"), 1))
    for number, line in lines:
        statement = line
        while not _is_whole(statement):
            statement += "\n" + next(lines)[1]
        if tomllib.loads(statement):
            yield number, statement


def _is_whole(statement: str) -> bool:
    """True if a text is a statement; a long list is not tried at each of its lines."""
    last = statement.rpartition("\n")[2]
    if last != statement and not _MAY_END.search(last):
        return False
    try:
        tomllib.loads(statement)
    except tomllib.TOMLDecodeError:
        return False
    return True


def _inside(value: Any) -> Iterator[Path]:
    """Yield the path of everything in a value, outer ones first."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in items:
        yield (step,)
        yield from ((step, *path) for path in _inside(inner))
