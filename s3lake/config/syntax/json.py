"""JSON as a tree: the standard library judges it, its tokens have the places."""

from __future__ import annotations

import json
import re
from bisect import bisect_right

from s3lake.config.report import Place
from s3lake.config.syntax.node import Node
from s3lake.errors import ConfigurationError

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]|[^\s{}\[\]:,"]+')
_NOT_JSON = {
    "Expecting property name": "a key in double quotes is needed, or }",
    "Expecting ':'": "a colon is needed after a key",
    "Expecting ','": "a comma is needed between values, or the end of the object or list",
    "Expecting value": "a value is needed: text in double quotes, a number, true, false or null",
    "Illegal trailing comma": "a comma before the end is not allowed",
    "Extra data": "something is after the object",
}


def parse_json(text: str, name: str) -> Node:
    """Return the tree of a JSON object; `name` is the file's name in errors.

    Raises:
        ConfigurationError: it is not one.
    """
    try:
        data = json.loads(text, parse_int=float)  # Python makes no integer of more than 4,300 digits
        if isinstance(data, dict):
            return _Builder(text, name).build_root()
    except RecursionError:
        raise ConfigurationError(f"{name}:1:1: nested too deeply") from None
    except json.JSONDecodeError as error:
        unclosed = "a text is not closed, or has a character that needs a backslash"
        message = next((message for begin, message in _NOT_JSON.items() if error.msg.startswith(begin)), unclosed)
        raise ConfigurationError(f"{name}:{error.lineno}:{error.colno}: not JSON: {message}") from None
    raise ConfigurationError(f"{name}:1:1: not JSON: an object begins with {{")


class _Builder:
    def __init__(self, text: str, name: str) -> None:
        self._name, self._tokens = name, _TOKEN.finditer(text)
        self._lines = [0, *(match.end() for match in re.finditer("\n", text))]

    def build_root(self) -> Node:
        token = next(self._tokens)
        return self._build("", token, token)

    def _build(self, key: str, at: re.Match[str], token: re.Match[str]) -> Node:
        """Return the tree that begins with `token`; `at` is the token of its key."""
        place, start = Place(self._name, *self._position(at), key), self._position(token)
        match token[0]:
            case "{":
                nodes = []
                while (inner := next(self._tokens))[0] != "}":
                    nodes.append(self._build(json.loads(inner[0]), inner, next(self._tokens)))
                return Node(key, place, tuple(nodes), start=start)
            case "[":
                items = []
                while (inner := next(self._tokens))[0] != "]":
                    items.append(self._build(key, inner, inner))
                return Node(key, place, items, start=start)
            case "null":
                return Node(key, place, None, start=start)
        quoted = token[0].startswith('"')
        text = json.loads(token[0]) if quoted else token[0]
        line, column = start
        is_plain = text == text.strip() and token[0] in (text, f'"{text}"')
        positions = [(line, column + quoted + offset) for offset in range(len(text))] if is_plain else []
        return Node(key, place, text, positions, start, quoted)

    def _position(self, token: re.Match[str]) -> tuple[int, int]:
        line = bisect_right(self._lines, token.start())
        return line, token.start() - self._lines[line - 1] + 1
