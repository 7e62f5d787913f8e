"""Types as users write them: `decimal(10,2)`, `list<string>`, `struct<a: int64, "a b": date>`."""

from __future__ import annotations

import difflib
import re

from s3lake.records.schema.columns.types import (
    MOST_DIGITS,
    MOST_LEVELS,
    Columns,
    Decimal,
    List,
    Map,
    Primitive,
    Struct,
    Type,
)

_EXAMPLES = {
    "decimal": "decimal(10,2)",
    "list": "list<string>",
    "map": "map<string, int64>",
    "struct": "struct<a: int64, b: string>",
}
_ALLOWED = ", ".join([*map(str, Primitive), *_EXAMPLES.values()])
_NAMES = [*map(str, Primitive), *_EXAMPLES]
_WORD = re.compile(r"[A-Za-z_]\w*")
_FIELD = re.compile(r'[A-Za-z_]\w*|"(?:[^"]|"")*"|`(?:[^`]|``)*`')
_NUMBER = re.compile(r"\d{1,4}(?!\d)")
_REST = re.compile(r".+", re.DOTALL)


def parse_type(text: str) -> Type:
    """Return the type that `text` names.

    Field names of a struct that are not plain names are in double quotes or backticks.

    Raises:
        ValueError: it names none; the message has the position, and what is allowed.
    """
    reader = _TypeParser(text)
    type = reader.read_type(0)
    begin = reader.at
    if left := reader.take(_REST):
        raise reader.error(begin, f"{left[:20]!r} is left over: take it out")
    return type


class _TypeParser:
    """A text that is read from left to right; `at` is where it goes on."""

    def __init__(self, text: str) -> None:
        self._text, self.at = text, 0
        self._skip_blanks()

    def take(self, pattern: re.Pattern[str]) -> str:
        """Return what matches here, and pass it with the blanks behind it; return nothing if it does not match."""
        match = pattern.match(self._text, self.at)
        if match is None:
            return ""
        self.at = match.end()
        self._skip_blanks()
        return match[0]

    def error(self, at: int, message: str) -> ValueError:
        return ValueError(f"{self._text!r}, position {at + 1}: {message}")

    def read_type(self, level: int) -> Type:
        begin, word = self.at, self.take(_WORD)
        name = word.lower()
        if name not in _NAMES:
            raise self.error(begin, _explain(word))
        if level > MOST_LEVELS:
            raise self.error(begin, f"more than {MOST_LEVELS} levels, which Parquet's readers refuse")
        if name not in _EXAMPLES:
            return Primitive(name)
        if name == "decimal":
            return self._read_decimal()
        self._expect(name, "<")
        type: Type
        match name:
            case "list":
                type = List(self.read_type(level + 1))
            case "map":
                begin = self.at
                if self.take(_WORD).lower() != "string":
                    raise self.error(begin, f"keys of a map are strings: write {_EXAMPLES[name]}")
                self._expect(name, ",")
                type = Map(self.read_type(level + 1))
            case _:
                type = Struct(self._read_fields(level + 1))
        self._expect(name, ">")
        return type

    def _read_fields(self, level: int) -> Columns:
        fields: Columns = {}
        while not fields or self._has(","):
            begin, written = self.at, self.take(_FIELD)
            if not written:
                raise self.error(begin, f"the name of a field is expected: write {_EXAMPLES['struct']}")
            quote = written[0]
            name = written[1:-1].replace(quote * 2, quote) if quote in '"`' else written
            if name in fields:
                raise self.error(begin, f"field {name!r} is named twice: take one out")
            self._expect("struct", ":")
            fields[name] = self.read_type(level)
        return fields

    def _read_decimal(self) -> Decimal:
        self._expect("decimal", "(")
        begin, precision = self.at, self._read_number()
        self._expect("decimal", ",")
        decimal = Decimal(precision, self._read_number())
        self._expect("decimal", ")")
        if not (1 <= decimal.precision <= MOST_DIGITS and decimal.scale <= decimal.precision):
            allowed = f"a precision of 1 to {MOST_DIGITS} and a scale of 0 to the precision"
            raise self.error(begin, f"{decimal} is out of range: {allowed}")
        return decimal

    def _read_number(self) -> int:
        begin, digits = self.at, self.take(_NUMBER)
        if not digits:
            raise self.error(begin, f"a number is expected: write {_EXAMPLES['decimal']}")
        return int(digits)

    def _has(self, mark: str) -> bool:
        return bool(self.take(re.compile(re.escape(mark))))

    def _expect(self, name: str, mark: str) -> None:
        begin = self.at
        if not self._has(mark):
            raise self.error(begin, f"{mark!r} is expected: write {_EXAMPLES[name]}")

    def _skip_blanks(self) -> None:
        while self._text[self.at : self.at + 1].isspace():
            self.at += 1


def _explain(word: str) -> str:
    if not word:
        return f"a type is expected: {_ALLOWED}"
    near = difflib.get_close_matches(word.lower(), _NAMES, 1, 0.5)
    nearest = f"did you mean {near[0]}? " if near else ""
    return f"{word!r} is not a type: {nearest}There are {_ALLOWED}"
