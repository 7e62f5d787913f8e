"""Java's `.properties`, with the place of every key and of every character of a value."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from s3lake.config.report import Place, Report, Setting
from s3lake.config.syntax.node import Node, join_surrogates

_BLANK = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_DROPPED = " =:#!\\\"'"  # a backslash before these only protects them


@dataclass(frozen=True)
class _Character:
    text: str
    line: int
    column: int
    escaped: bool = False

    @property
    def blank(self) -> bool:
        return not self.escaped and self.text in _BLANK


def read(text: str, report: Report) -> list[Setting]:
    r"""The settings in `text`, in its order.

    A backslash before a character that Java gives no meaning, as in `\d`, is kept: Java would drop it without a word.
    """
    return [_setting(line, report) for line in _lines(text, report)]


def parse(text: str, report: Report) -> Node:
    """Return the tree of a text."""
    nodes = (Node(setting.key, setting.place, setting.value, setting.positions) for setting in read(text, report))
    return Node("", Place(report.file), tuple(nodes))


def _lines(text: str, report: Report) -> Iterator[list[_Character]]:
    """Logical lines: comments and empty lines left out, continued lines joined, escapes resolved."""
    logical: list[_Character] = []
    continued = False
    for number, line in enumerate(re.split(r"\r\n|\r|\n", text), 1):
        start = len(line) - len(line.lstrip(_BLANK))
        if not continued and (start == len(line) or line[start] in "#!"):
            continue
        ends = len(line) - len(line.rstrip("\\"))
        continued = ends % 2 == 1
        body = line[: len(line) - 1] if continued else line
        logical += _characters(body, number, start, report)
        if not continued:
            if logical:
                yield logical
            logical = []
    if logical:
        yield logical


def _characters(line: str, number: int, start: int, report: Report) -> Iterator[_Character]:
    position = start
    while position < len(line):
        character, column = line[position], position + 1
        position += 1
        if character != "\\" or position == len(line):
            yield _Character(character, number, column)
            continue
        escape = line[position]
        position += 1
        if escape == "u":
            digits = re.compile(r"[0-9A-Fa-f]{4}").match(line, position)
            if digits is None:
                report.error(Place(report.file, number, column), r"\u needs four hexadecimal digits, as in \u00e9")
                continue
            position += 4
            yield _Character(chr(int(digits[0], 16)), number, column, escaped=True)
        elif escape in _ESCAPES:
            yield _Character(_ESCAPES[escape], number, column, escaped=True)
        else:
            if escape not in _DROPPED:
                message = f"\\{escape} is taken as written; Java drops the backslash: write \\\\{escape} to be sure"
                report.notice(Place(report.file, number, column), message)
                yield _Character("\\", number, column, escaped=True)
            yield _Character(escape, number, column + 1, escaped=True)


def _setting(line: list[_Character], report: Report) -> Setting:
    end = next(
        (at for at, character in enumerate(line) if not character.escaped and character.text in _BLANK + "=:"),
        len(line),
    )
    value = _stripped(line[end:])
    if value and not value[0].escaped and value[0].text in "=:":
        value = _stripped(value[1:])
    while value and value[-1].blank:
        value = value[:-1]
    key = _joined(line[:end])
    first = line[0]
    positions = [(character.line, character.column) for character in value]
    return Setting(key, _joined(value), Place(report.file, first.line, first.column, key), positions)


def _stripped(characters: list[_Character]) -> list[_Character]:
    start = next((at for at, character in enumerate(characters) if not character.blank), len(characters))
    return characters[start:]


def _joined(characters: list[_Character]) -> str:
    return join_surrogates("".join(character.text for character in characters))
