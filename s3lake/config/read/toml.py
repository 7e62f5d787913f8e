"""TOML with the place of every key. The standard library says what a text means; the scanner here only where."""

from __future__ import annotations

import re
import sys
from typing import Any

from s3lake.config.read.yaml import position_of
from s3lake.config.report import Path, Place, dotted
from s3lake.errors import ConfigurationError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_STRING = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}|' r"'''.*?'{3,5}|" r'"(?:\\.|[^"\\\n])*"|' r"'[^'\n]*'",
    re.DOTALL,
)
_SPACE = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_PART = re.compile(rf"[ \t]*({_STRING.pattern}|[A-Za-z0-9_-]+)[ \t]*", re.DOTALL)
_LONG_NUMBER = re.compile(r"[0-9_]{4301,}")
_PLAIN = re.compile(r"[^,\]}\n#]*")


def read(text: str, file: str) -> tuple[dict[str, Any], dict[Path, Place]]:
    """The values in `text`, and the place of each key.

    Raises:
        ConfigurationError: it is no TOML.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        reason = re.sub(r" \(at .*\)$", "", str(error))
        raise ConfigurationError(
            f"{file}:{_where(text, str(error))}: not TOML: {reason[0].lower()}{reason[1:]}"
        ) from None
    except RecursionError:
        raise ConfigurationError(f"{file}:1:1: nested too deeply") from None
    except ValueError:  # of Python's, which makes no integer of more than 4,300 digits
        number = _LONG_NUMBER.search(text)
        line, column = position_of(text[: number.start()]) if number else (1, 1)
        raise ConfigurationError(f"{file}:{line}:{column}: a number has more digits than any setting takes") from None
    scanner = _Scanner(text, file)
    scanner.document()
    return data, scanner.places


def _where(text: str, message: str) -> str:
    match = re.search(r"line (\d+), column (\d+)", message)
    if match:
        return f"{match[1]}:{match[2]}"
    line, column = position_of(text)
    return f"{line}:{column}"


class _Scanner:
    """Walks through a text that is known to be TOML."""

    def __init__(self, text: str, file: str) -> None:
        self.text, self.file = text, file
        self.places: dict[Path, Place] = {}
        self._position = 0
        self._tables: dict[Path, int] = {}  # how many tables an array of tables has so far

    def document(self) -> None:
        """Note the places of all keys."""
        table: Path = ()
        self._skip()
        while self._position < len(self.text):
            if self._taken("[["):
                start = self._position
                path = self._resolved(self._key())
                self._tables[path] = self._tables.get(path, -1) + 1
                table = (*path, self._tables[path])
                self._note(path, start)
                self._note(table, start)
                self._taken("]]")
            elif self._taken("["):
                start = self._position
                table = self._resolved(self._key())
                self._note(table, start)
                self._taken("]")
            else:
                self._pair(table)
            self._skip()

    def _resolved(self, path: Path) -> Path:
        """A header's path, with the number of the table where it leads through an array of tables."""
        resolved: Path = ()
        for step in path[:-1]:
            resolved = (*resolved, step)
            if resolved in self._tables:
                resolved = (*resolved, self._tables[resolved])
        return (*resolved, path[-1])

    def _pair(self, table: Path) -> None:
        self._skip()
        start = self._position
        key = self._key()
        for size in range(1, len(key) + 1):
            self._note((*table, *key[:size]), start)
        self._taken("=")
        self._value((*table, *key))

    def _value(self, path: Path) -> None:
        self._skip()
        if self._taken("{"):
            self._skip()
            while not self._taken("}"):
                self._pair(path)
                self._skip()
                self._taken(",")
                self._skip()
        elif self._taken("["):
            count = 0
            self._skip()
            while not self._taken("]"):
                self._note((*path, count), self._position)
                self._value((*path, count))
                count += 1
                self._skip()
                self._taken(",")
                self._skip()
        else:
            match = _STRING.match(self.text, self._position) or _PLAIN.match(self.text, self._position)
            assert match is not None
            self._position = match.end()

    def _key(self) -> tuple[str, ...]:
        steps: list[str] = []
        while True:
            match = _PART.match(self.text, self._position)
            assert match is not None
            self._position = match.end()
            steps.append(_plain(match[1]))
            if not self._taken("."):
                return tuple(steps)

    def _skip(self) -> None:
        match = _SPACE.match(self.text, self._position)
        assert match is not None
        self._position = match.end()

    def _taken(self, text: str) -> bool:
        if self.text.startswith(text, self._position):
            self._position += len(text)
            return True
        return False

    def _note(self, path: Path, at: int) -> None:
        at = at + len(self.text[at:]) - len(self.text[at:].lstrip(" \t"))
        self.places.setdefault(path, Place(self.file, *position_of(self.text[:at]), dotted(path)))


def _plain(key: str) -> str:
    if key[0] not in "\"'":
        return key
    (plain,) = tomllib.loads(f"{key} = 0")
    return str(plain)
