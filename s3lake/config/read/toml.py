"""TOML with the line of every key. The standard library reads it, whole and statement by statement."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any

from s3lake.config.read.yaml import position_of
from s3lake.config.report import Path, Place, dotted
from s3lake.errors import ConfigurationError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_LONG_NUMBER = re.compile(r"[0-9_]{4301,}")
_MAY_END = re.compile(r"""[\]}"'][ \t\r]*(#.*)?$""")


def read(text: str, file: str) -> tuple[dict[str, Any], dict[Path, Place]]:
    """Return the values of a text, and the place of each: that of its key's statement.

    Raises:
        ConfigurationError: it is not TOML.
    """
    try:
        return tomllib.loads(text), dict(_places(text, file))
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
