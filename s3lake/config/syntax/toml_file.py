"""A file of TOML, which Iggy's connectors have: its values, and the place of every line that begins one."""

from __future__ import annotations

import pathlib
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from s3lake.config.report import Path, Place, Setting, format_path, is_comment
from s3lake.config.syntax.node import position_of
from s3lake.errors import ConfigurationError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_NAME = r"""(?:[\w-]+|"(?:[^"\\]|\\.)*"|'[^']*')"""
_KEY = re.compile(rf"\s*({_NAME}(?:\s*\.\s*{_NAME})*)\s*=")
_HEAD = re.compile(rf"\s*(\[\[?)\s*({_NAME}(?:\s*\.\s*{_NAME})*)\s*\]\]?\s*(#.*)?$")


@dataclass(frozen=True)
class TomlFile:
    """The values of a file, and the place of each table and key that begins a line."""

    name: str
    data: dict[str, Any]
    places: Mapping[Path, Place] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The connector's key, or the name of its file."""
        return str(self.data.get("key", pathlib.Path(self.name).stem))

    @property
    def role(self) -> str:
        """`sink` or `source`, as the connector's file has it; a sink and a source may have one key."""
        return str(self.data.get("type", "sink"))

    def table(self, *path: str) -> Mapping[str, Any]:
        """Return the table at a path; empty if there is none."""
        value: Any = self.data
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return value if isinstance(value, dict) else {}

    def place(self, *path: str | int) -> Place:
        """Return the place of the value at a path: of the line that it is in, else of what it is inside of."""
        for size in range(len(path), 0, -1):
            if (near := self.places.get(path[:size])) is not None:
                return Place(near.file, near.line, near.column, format_path(path))
        return Place(self.name, key=format_path(path))

    def settings(self, *skipped: str) -> list[Setting]:
        """Return every value that is not a table, in the file's order."""
        shown = {name: content for name, content in self.data.items() if name not in skipped}
        return [self.setting(*path) for path in _leaves(shown)]

    def setting(self, *path: str | int) -> Setting:
        """Return the value at a path as text."""
        value: Any = self.data
        for step in path:
            value = value[step]
        text = str(value).lower() if isinstance(value, bool) else str(value)
        return Setting(format_path(path), text.strip(), self.place(*path))


def _leaves(value: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the paths of all values that are not tables."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if not is_comment(name):
                yield from _leaves(inner, (*path, name))
    elif isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        for position, inner in enumerate(value):
            yield from _leaves(inner, (*path, position))
    else:
        yield path


def read_toml(path: pathlib.Path) -> TomlFile:
    """Read the file at `path`.

    Raises:
        ConfigurationError: it cannot be read, or is not TOML.
    """
    try:
        return parse_toml(path.read_text("utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigurationError(f"{path}: cannot be read: {why}") from None


def parse_toml(text: str, file: str) -> TomlFile:
    """Return the values of a text, and their places.

    Raises:
        ConfigurationError: it is not TOML.
    """
    try:
        return TomlFile(file, tomllib.loads(text), dict(_places(text, file)))
    except tomllib.TOMLDecodeError as error:
        reason = re.sub(r" \(at .*\)$", "", str(error))
        match = re.search(r"line (\d+), column (\d+)", str(error))
        where = f"{match[1]}:{match[2]}" if match else "{}:{}".format(*position_of(text))
        raise ConfigurationError(f"{file}:{where}: not TOML: {reason[0].lower()}{reason[1:]}") from None
    except RecursionError:
        raise ConfigurationError(f"{file}:1:1: nested too deeply") from None
    except ValueError:  # of Python's, which makes no integer of more than 4,300 digits
        raise ConfigurationError(f"{file}:1:1: a number has more digits than any setting takes") from None


def _places(text: str, file: str) -> Iterator[tuple[Path, Place]]:
    """Yield the path of each table and key that begins a line, and its place."""
    table: Path = ()
    newest: dict[Path, int] = {}  # the position of the newest table of each array of tables
    quote = ""  # of the text of several lines that a line begins in
    for number, line in enumerate(text.split("\n"), 1):
        head, key = (None, None) if quote else (_HEAD.match(line), _KEY.match(line))
        for several in ('"""', "'''"):
            if quote in ("", several) and re.sub(r"\\.", "", line).count(several) % 2:
                quote = "" if quote else several
        column = len(line) - len(line.lstrip()) + 1
        if head is not None:
            table = ()
            for step in _split(head[2]):
                table = (*table, newest[table], step) if table in newest else (*table, step)
            if head[1] == "[[":
                newest[table] = newest.get(table, -1) + 1
                yield table, Place(file, number, column)
                table = (*table, newest[table])
            yield table, Place(file, number, column)
        elif key is not None:
            yield (*table, *_split(key[1])), Place(file, number, column)


def _split(key: str) -> Iterator[str]:
    """Yield the steps of a dotted key."""
    inside: Any = tomllib.loads(f"{key} = 0")
    while isinstance(inside, dict):
        ((name, inside),) = inside.items()
        yield name
