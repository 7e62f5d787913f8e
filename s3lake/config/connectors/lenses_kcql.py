"""KCQL: the text of `connect.s3.kcql` to statements.

`INSERT INTO bucket[:prefix] SELECT … FROM topic [WHERE …] [PARTITIONBY … | NOPARTITION] [STOREAS format]
[PROPERTIES(…)]`, several separated by `;`. Everything that Lenses' own parser drops without a word is an error.
Clauses of Lenses 4 and 5 (`WITH_FLUSH_COUNT = n`, …) are entries of PROPERTIES.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from s3lake.records.transform.sql import parser
from s3lake.records.transform.sql.query import Star

CLAUSES = ("INSERT", "INTO", "SELECT", "FROM", "WHERE", "PARTITIONBY", "NOPARTITION", "STOREAS", "PROPERTIES")
"""Keywords in their order."""
ORDER = "INSERT INTO … SELECT … FROM … [WHERE …] [PARTITIONBY … | NOPARTITION] [STOREAS …] [PROPERTIES(…)]"
_FORMER = {
    "WITH_FLUSH_COUNT": "flush.count",
    "WITH_FLUSH_SIZE": "flush.size",
    "WITH_FLUSH_INTERVAL": "flush.interval",
    "WITHPARTITIONER": "partition.include.keys",
}
"""Clauses of Lenses 4 and 5, and the properties that took their place."""
_PARTITIONERS = {"VALUES": "false", "KEYSANDVALUES": "true"}
"""The value of WITHPARTITIONER, and whether directories have names then."""
_KEYWORDS = {*CLAUSES, *_FORMER, "LIMIT", "BATCH"}
_QUOTED = r"'(?:[^']|'')*'|\"[^\"]*\"|`[^`]*`"
_TOKEN = re.compile(rf"{_QUOTED}|\w+|.", re.DOTALL)
_WORD = re.compile(r"[A-Za-z_]\w*")
_TARGET = re.compile(r"(?:`[^`]*`|'[^']*'|[A-Za-z0-9_@+/{}:.$=-])+")
_TOPIC = re.compile(rf"{_QUOTED}|[A-Za-z0-9_@.$-]+")
_NAME = re.compile(r"`[^`]*`|'[^']*'|[A-Za-z0-9_@]+")
_FORMAT = re.compile(r"`[^`]*`|[A-Za-z0-9_@]+")
_PROPERTY = re.compile(rf"{_QUOTED}|[A-Za-z0-9_@]+")
_VALUE = re.compile(rf"{_QUOTED}|[A-Za-z0-9_@+/{{}}:.$-]+")


class KcqlError(ValueError):
    """A text is not KCQL; `offset` is that of the first wrong character, or the text's length if it ends too early."""

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.offset = offset


@dataclass(frozen=True)
class Property:
    """One entry of PROPERTIES, and its `offset` in the text; or the `clause` of Lenses 4 and 5 that means the same."""

    name: str
    value: str
    offset: int
    clause: str = ""


@dataclass(frozen=True)
class Statement:
    """One statement.

    Attributes:
        prefix: empty if there is none.
        topic: `*` for every topic that has no statement of its own.
        columns: the SELECT list as Spark SQL; None for `*`.
        where: the condition as Spark SQL.
        partition_by: elements, each a path of names (a name may hold dots).
        partitioned: False with NOPARTITION, for all records of a topic-partition side by side.
        format: the format after STOREAS, as written.
        offsets: where the parts begin in the text: "target", "topic", "columns", "where", "partition_by", "format".
    """

    bucket: str
    prefix: str
    topic: str
    columns: str | None
    where: str | None
    partition_by: tuple[tuple[str, ...], ...]
    partitioned: bool
    format: str | None
    properties: Mapping[str, Property]
    offsets: Mapping[str, int]


def parse_kcql(text: str) -> tuple[Statement, ...]:
    """Return the statements in `text`, in their order.

    Raises:
        KcqlError: it is not KCQL; the message contains what is there and what is expected.
    """
    parser, statements = _Parser(text), list[Statement]()
    while True:
        while parser.take_mark(";"):
            pass
        if parser.skip_blanks() == len(text):
            return tuple(statements)
        statements.append(parser.read_statement())


def read_aliases(columns: str | None) -> Mapping[str, str | None]:
    """Return the names that a SELECT list gives to other fields: the field, or None for what is computed.

    Nothing if the list is not Spark SQL: what is disregarded may be anything.
    """
    try:
        items = () if columns is None else parser.parse_sql(columns, None).items
    except ValueError:
        return {}
    paths = {item.name: getattr(item, "path", None) for item in items if not isinstance(item, Star)}
    return {name: path and ".".join(path) for name, path in paths.items() if path != (name,)}


class _Parser:
    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0

    def skip_blanks(self) -> int:
        """Advance to the next character that is not blank. Return its offset."""
        while self._text[self._at : self._at + 1].isspace():
            self._at += 1
        return self._at

    def take_mark(self, mark: str) -> bool:
        """Advance past `mark` if it is next. Return whether it is."""
        is_next = self._text.startswith(mark, self.skip_blanks())
        self._at += is_next
        return is_next

    def read_statement(self) -> Statement:
        """Read a statement up to its semicolon or the end."""
        self._require("INSERT")
        self._require("INTO")
        target = self._take(_TARGET, "a bucket, or bucket:prefix")
        bucket, prefix = _split_target(target)
        offsets = {"target": target.start()}
        self._require("SELECT")
        offsets["columns"], columns = self._take_sql({"FROM"}, "* or a list of columns")
        self._require("FROM")
        topic = self._take(_TOPIC, "a topic", "a name in backticks")
        offsets["topic"] = topic.start()
        left, where, form, properties = list(CLAUSES[4:]), None, None, dict[str, Property]()
        elements: dict[tuple[str, ...], tuple[str, ...]] = {}
        if (offset := self._take_word("WHERE", left)) is not None:
            offsets["where"] = offset
            _, where = self._take_sql({*CLAUSES[4:], *_FORMER, "LIMIT"}, "a condition")
        self._take_former(properties)
        if (offset := self._take_word("PARTITIONBY", left)) is not None:
            offsets["partition_by"] = offset
            left.remove("NOPARTITION")
            elements = self._take_elements()
        elif (offset := self._take_word("NOPARTITION", left)) is not None:
            offsets["partition_by"] = offset
        self._take_former(properties)
        if (offset := self._take_word("STOREAS", left)) is not None:
            offsets["format"] = offset
            form = _unquote(self._take(_FORMAT, "a format", "a name in backticks"))
        self._take_former(properties)
        if self._take_word("PROPERTIES", left) is not None:
            self._take_properties(properties)
        self._take_former(properties)
        if self.skip_blanks() < len(self._text) and not self.take_mark(";"):
            raise self._describe_unexpected(*left, "';'", "the end")
        return Statement(
            bucket=bucket,
            prefix=prefix,
            topic=_unquote(topic),
            columns=None if columns == "*" else columns,
            where=where,
            partition_by=tuple(elements.values()),
            partitioned="partition_by" not in offsets or bool(elements),
            format=form,
            properties=properties,
            offsets=offsets,
        )

    def _take_word(self, word: str, left: list[str]) -> int | None:
        """Advance past a clause's keyword if it is next, and forget the clauses before it. Return its offset."""
        keyword = _WORD.match(self._text, self.skip_blanks())
        if keyword is None or keyword[0].upper() != word:
            return None
        del left[: left.index(word) + 1]
        self._at = keyword.end()
        return keyword.start()

    def _require(self, word: str) -> None:
        if self._take_word(word, [word]) is None:
            raise self._describe_unexpected(word)

    def _take(self, pattern: re.Pattern[str], *expected: str) -> re.Match[str]:
        token = pattern.match(self._text, self.skip_blanks())
        if token is None or token[0].upper() in _KEYWORDS:
            raise self._describe_unexpected(*expected)
        self._at = token.end()
        return token

    def _require_mark(self, *marks: str) -> str:
        for mark in marks:
            if self.take_mark(mark):
                return mark
        raise self._describe_unexpected(*map(repr, marks))

    def _take_sql(self, ends: set[str], expected: str) -> tuple[int, str]:
        """Take Spark SQL up to a keyword that is not in quotes or parentheses. Return its offset, and the SQL."""
        start, depth = self.skip_blanks(), 0
        for token in _TOKEN.finditer(self._text, start):
            self._at = token.start()
            if token[0] == ";" or (depth == 0 and (token[0].upper() in ends or token[0] == ")")):
                break
            if token[0] in "'\"`":
                raise self._describe_unexpected(expected)
            depth += {"(": 1, ")": -1}.get(token[0], 0)
            self._at = token.end()
        sql = self._text[start : self._at].strip()
        if depth or not sql:
            raise self._describe_unexpected("')'" if depth else expected)
        return start, sql

    def _take_elements(self) -> dict[tuple[str, ...], tuple[str, ...]]:
        """Take the elements of PARTITIONBY. Return each by its name in lower case."""
        elements: dict[tuple[str, ...], tuple[str, ...]] = {}
        in_parentheses = self.take_mark("(")
        while True:
            offset, path = self.skip_blanks(), list[str]()
            while not path or self.take_mark("."):
                path.append(_unquote(self._take(_NAME, "a name", "a name in backticks")))
            key = tuple(map(str.lower, path))
            if key in elements:
                raise KcqlError(offset, f"PARTITIONBY names {'.'.join(path)!r} twice; take one out")
            elements[key] = tuple(path)
            if not self.take_mark(","):
                break
        if in_parentheses:
            self._require_mark(",", ")")
        return elements

    def _take_former(self, properties: dict[str, Property]) -> None:
        """Take the clauses of Lenses 4 and 5 that are next as entries of PROPERTIES."""
        while (word := _WORD.match(self._text, self.skip_blanks())) and word[0].upper() in _FORMER:
            self._at = word.end()
            self._require_mark("=")
            token = self._take(_VALUE, "a value")
            clause, value = word[0].upper(), _unquote(token)
            if clause == "WITHPARTITIONER":
                if value.upper() not in _PARTITIONERS:
                    raise KcqlError(token.start(), f"{value!r} is not allowed; write Values or KeysAndValues")
                value = _PARTITIONERS[value.upper()]
            self._add(properties, Property(_FORMER[clause], value, word.start(), clause))

    def _add(self, properties: dict[str, Property], entry: Property) -> None:
        if entry.name in properties:
            also = f" ({entry.clause} is the same)" if entry.clause else ""
            raise KcqlError(entry.offset, f"property {entry.name!r} is given twice{also}; take one out")
        properties[entry.name] = entry

    def _take_properties(self, properties: dict[str, Property]) -> None:
        self._require_mark("(")
        while not self.take_mark(")"):
            token = self._take(_PROPERTY, "a name", "text in quotes", "')'")
            name = _unquote(token).lower()
            self._require_mark("=")
            value = _unquote(self._take(_VALUE, "a value", "text in quotes"), may_be_empty=True)
            self._add(properties, Property(name, value, token.start()))
            if self._require_mark(",", ")") == ")":
                break

    def _describe_unexpected(self, *expected: str) -> KcqlError:
        """Return the error of a text that goes wrong here: what is there, and what is expected."""
        offset, names = self.skip_blanks(), " or ".join(expected)
        token = re.compile(rf"{_WORD.pattern}|.", re.DOTALL).match(self._text, offset)
        if token is None:
            return KcqlError(offset, f"the statement ends too early; expected {names}")
        word, hint = token[0], ""
        if word in "'\"`" and self._text.find(word, offset + 1) < 0:
            hint = "; the quote is not closed"
        elif word.upper() in CLAUSES:
            hint = f"; the order is {ORDER}, and a name that is a keyword needs backticks"
        elif near := get_close_matches(word.upper(), [clause for clause in CLAUSES if clause in expected], 1, 0.7):
            hint = f"; did you mean {near[0]}?"
        elif self._text[offset - 1 : offset].isalnum():
            hint = "; a name with other characters needs backticks, in PROPERTIES quotes"
        return KcqlError(offset, f"unexpected {word!r}; expected {names}{hint}")


def _split_target(target: re.Match[str]) -> tuple[str, str]:
    plain = re.sub(r"`([^`]*)`|'([^']*)'", lambda match: match[1] or match[2] or "", target[0])
    bucket, _, prefix = plain.partition(":")
    if ":" in prefix:
        raise KcqlError(target.start(), f"{plain!r} has more than one ':'; write bucket or bucket:prefix")
    if not bucket:
        raise KcqlError(target.start(), f"{plain!r} names no bucket; write bucket or bucket:prefix")
    return bucket, prefix


def _unquote(token: re.Match[str], *, may_be_empty: bool = False) -> str:
    text = token[0]
    if text[0] in "`'\"":
        text = text[1:-1].replace("''", "'") if text[0] == "'" else text[1:-1]
    if not text.strip() and not may_be_empty:
        raise KcqlError(token.start(), "a name is empty")
    return text
