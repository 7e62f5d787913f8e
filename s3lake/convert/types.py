"""The types of a table's columns as users write them: `decimal(10,2)`, `list<string>`, `struct<a: int64>`."""

import difflib
import re
from typing import Any

Type = str | dict[str, Any]

PRIMITIVES = (
    *("bool", "int32", "int64", "float", "double", "string", "binary"),
    *("date", "time", "timestamp", "uuid"),
)
AVRO_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""The names of fields that Avro allows."""

_WRITTEN = (*PRIMITIVES, "decimal(10,2)", "list<string>", "map<string, int64>", "struct<a: int64, b: string>")
_NAMES = (*PRIMITIVES, "decimal", "list", "map", "struct")
_DIGITS = 38  # what 128 bits hold, and every reader of Parquet takes
_LEVELS = 32
_TOKEN = re.compile(r'\s*(?:([A-Za-z_]\w*)|(\d+)|("(?:[^"]|"")*"|`(?:[^`]|``)*`)|([<>(),:]))')


def parse(text: str) -> Type:
    """The type that `text` names.

    Field names of a struct that are no plain names stand in double quotes or backticks.

    Raises:
        ValueError: it names none; the message says where, and what is allowed.
    """
    parser = _Parser(text)
    kind = parser.kind(0)
    parser.end()
    return kind


def text(kind: Type | None) -> str:
    """The type as `parse` reads it; `unknown` where nothing was seen in it yet."""
    if kind is None or isinstance(kind, str):
        return kind or "unknown"
    if "list" in kind:
        return f"list<{text(kind['list'])}>"
    if "map" in kind:
        return f"map<string, {text(kind['map'])}>"
    return f"struct<{', '.join(f'{_quoted(name)}: {text(field)}' for name, field in kind['struct'].items())}>"


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else '"' + name.replace('"', '""') + '"'


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def kind(self, level: int) -> Type:
        start = self._start()
        if level > _LEVELS:
            raise self._error(start, f"more than {_LEVELS} levels, which Parquet's readers refuse")
        written = self._take(1)
        if written is None:
            raise self._error(start, f"a type is expected: {', '.join(_WRITTEN)}")
        name = written.lower()
        if name in PRIMITIVES:
            return name
        match name:
            case "decimal":
                return self._decimal()
            case "list":
                self._mark("<", "list<string>")
                element = self.kind(level + 1)
                self._mark(">", "list<string>")
                return {"list": element}
            case "map":
                return self._map(level)
            case "struct":
                return self._struct(level)
        near = difflib.get_close_matches(name, _NAMES, 1, 0.5)
        meant = f"did you mean {near[0]}? " if near else ""
        raise self._error(start, f"{written!r} is no type: {meant}There are {', '.join(_WRITTEN)}")

    def end(self) -> None:
        start = self._start()
        if start < len(self._text):
            raise self._error(start, f"{self._text[start:][:20]!r} is left over: take it out")

    def _decimal(self) -> str:
        example = "decimal(10,2)"
        self._mark("(", example)
        start = self._start()
        precision = self._number(example)
        self._mark(",", example)
        scale = self._number(example)
        self._mark(")", example)
        if not (1 <= precision <= _DIGITS and scale <= precision):
            allowed = f"a precision of 1 to {_DIGITS} and a scale of 0 to the precision"
            raise self._error(start, f"decimal({precision},{scale}) is out of range: {allowed}")
        return f"decimal({precision},{scale})"

    def _map(self, level: int) -> Type:
        example = "map<string, int64>"
        self._mark("<", example)
        start = self._start()
        key = self.kind(level + 1)
        if key != "string":
            raise self._error(start, f"keys of a map are strings: write {example}")
        self._mark(",", example)
        value = self.kind(level + 1)
        self._mark(">", example)
        return {"map": value}

    def _struct(self, level: int) -> Type:
        example = "struct<a: int64, b: string>"
        self._mark("<", example)
        fields: dict[str, Type] = {}
        while True:
            start = self._start()
            name = self._field(example)
            if name in fields:
                raise self._error(start, f"field {name!r} is named twice: take one out")
            self._mark(":", example)
            fields[name] = self.kind(level + 1)
            if self._take(4, ">") is not None:
                return {"struct": fields}
            self._mark(",", example)

    def _field(self, example: str) -> str:
        start = self._start()
        plain, quoted = self._take(1), self._take(3)
        if plain is not None:
            return plain
        if quoted is None:
            raise self._error(start, f"the name of a field is expected: write {example}")
        return quoted[1:-1].replace(quoted[0] * 2, quoted[0])

    def _number(self, example: str) -> int:
        start = self._start()
        digits = self._take(2)
        if digits is None or len(digits) > 4:
            raise self._error(start, f"a number is expected: write {example}")
        return int(digits)

    def _mark(self, mark: str, example: str) -> None:
        start = self._start()
        if self._take(4, mark) is None:
            raise self._error(start, f"{mark!r} is expected: write {example}")

    def _take(self, group: int, mark: str | None = None) -> str | None:
        found = _TOKEN.match(self._text, self._at)
        if found is None or found[group] is None or (mark is not None and found[group] != mark):
            return None
        self._at = found.end()
        return found[group]

    def _start(self) -> int:
        rest = self._text[self._at :]
        return self._at + len(rest) - len(rest.lstrip())

    def _error(self, at: int, message: str) -> ValueError:
        return ValueError(f"{self._text!r}, position {at + 1}: {message}")
