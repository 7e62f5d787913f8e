"""Java's `.properties`, with the place of every key and of every character of a value."""

from __future__ import annotations

import re
from collections.abc import Iterator

from s3lake.config.report import Place, Report, Setting
from s3lake.config.syntax.node import Node, join_surrogates

_BLANK = " \t\f"
_KEY = re.compile(r"((?:\\.|[^\\ \t\f=:])*)[ \t\f]*[=:]?[ \t\f]*", re.DOTALL)
_PIECE = re.compile(r"\\u([0-9A-Fa-f]{4})|\\(.)|[^\\]+|.", re.DOTALL)
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", **{mark: mark for mark in " =:#!\\\"'"}}
_Places = list[tuple[int, int]]
"""Line and column of each character."""


def read_settings(text: str, report: Report) -> list[Setting]:
    r"""Return the settings in `text`, in its order.

    A backslash before a character that Java gives no meaning, as in `\d`, is kept: Java would drop it without a word.
    """
    settings = []
    for line, places in _lines(text):
        key_match = _KEY.match(line)
        assert key_match is not None, "the key may be empty"
        end = len(line.rstrip(_BLANK))
        end += end < len(line) and (end - len(line[:end].rstrip("\\"))) % 2  # an escaped blank
        key, _ = _unescape(line, places, key_match.span(1), report)
        value, positions = _unescape(line, places, (key_match.end(), max(end, key_match.end())), report)
        settings.append(Setting(key, value, Place(report.file, *places[0], key), positions))
    return settings


def parse_properties(text: str, report: Report) -> Node:
    """Return the tree of a text."""
    nodes = (
        Node(setting.key, setting.place, setting.value, setting.positions) for setting in read_settings(text, report)
    )
    return Node("", Place(report.file), tuple(nodes))


def _lines(text: str) -> Iterator[tuple[str, _Places]]:
    """Yield logical lines: without comments and empty lines, continued ones joined."""
    logical, places, continued = "", _Places(), False
    for number, line in enumerate(re.split(r"\r\n|\r|\n", text), 1):
        start = len(line) - len(line.lstrip(_BLANK))
        if not continued and (start == len(line) or line[start] in "#!"):
            continue
        continued = (len(line) - len(line.rstrip("\\"))) % 2 == 1
        end = len(line) - continued
        logical += line[start:end]
        places += [(number, column) for column in range(start + 1, end + 1)]
        if not continued:
            if logical:
                yield logical, places
            logical, places = "", []
    if logical:
        yield logical, places


def _unescape(line: str, places: _Places, span: tuple[int, int], report: Report) -> tuple[str, _Places]:
    """Return a part of a line with its escapes resolved, and the place of each character."""
    text, positions = "", _Places()
    for match in _PIECE.finditer(line, *span):
        start, end = match.span()
        if match[1] or match[2] in _ESCAPES:
            text += chr(int(match[1], 16)) if match[1] else _ESCAPES[match[2]]
            positions.append(places[start])
        elif match[2] == "u":
            report.error(Place(report.file, *places[start]), r"\u needs four hexadecimal digits, as in \u00e9")
        else:
            if match[2]:
                message = f"{match[0]} is taken as written; Java drops the backslash: write \\{match[0]} to be sure"
                report.notice(Place(report.file, *places[start]), message)
            text += match[0]
            positions += places[start:end]
    return join_surrogates(text), positions
