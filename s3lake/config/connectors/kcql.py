"""KCQL: the text of `connect.s3.kcql` to statements. The grammar is kcql.lark; here are names, errors and checks.

`INSERT INTO bucket[:prefix] SELECT … FROM topic [WHERE …] [PARTITIONBY … | NOPARTITION] [STOREAS format]
[PROPERTIES(…)]`, several separated by `;`. Everything that Lenses' own parser drops without a word is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lark import Lark, Token, Tree

CLAUSES = ("INSERT", "INTO", "SELECT", "FROM", "WHERE", "PARTITIONBY", "NOPARTITION", "STOREAS", "PROPERTIES")
"""Keywords in their order."""

ORDER = "INSERT INTO … SELECT … FROM … [WHERE …] [PARTITIONBY … | NOPARTITION] [STOREAS …] [PROPERTIES(…)]"
_FORMER = {
    "WITH_FLUSH_COUNT": "flush.count",
    "WITH_FLUSH_SIZE": "flush.size",
    "WITH_FLUSH_INTERVAL": "flush.interval",
    "WITHPARTITIONER": "partition.include.keys",
}
_PARTITIONERS = {"keysandvalues": "true", "values": "false"}
_WORDS = {
    "TARGET": "a bucket, or bucket:prefix",
    "COLUMNS": "* or a list of columns",
    "CONDITION": "a condition",
    "NESTED": "an expression",
    "TOPIC": "a topic",
    "FIELD": "a name",
    "FORMAT": "a format",
    "VALUE": "a value",
    "BACKTICK": "a name in backticks",
    "QUOTED": "text in quotes",
    "SEMICOLON": "';'",
    "COMMA": "','",
    "DOT": "'.'",
    "EQUAL": "'='",
    "LPAR": "'('",
    "RPAR": "')'",
    "$END": "the end",
}
_LONGEST = 50_000
_DEEPEST = 30
_MOST_ELEMENTS = 512  # with a slash each they fill S3's 1,024 bytes
_BRACKET = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`|[()]")
_EXPECTED_ORDER = (*CLAUSES, *_WORDS)


class KcqlError(ValueError):
    """A text is not KCQL.

    Attributes:
        offset: of the first wrong character, from 0; the length of the text if it ends too early.
        line, column: of that character, from 1.
    """

    def __init__(self, text: str, offset: int, message: str) -> None:
        super().__init__(message)
        self.offset = min(offset, len(text))
        self.line = text.count("\n", 0, self.offset) + 1
        self.column = self.offset - text.rfind("\n", 0, self.offset)


@dataclass(frozen=True)
class Property:
    """One entry of PROPERTIES.

    Attributes:
        offset: of its name in the text.
        clause: the clause of older versions that it was written as, or empty.
    """

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
        format: after STOREAS, as written.
        offsets: where the parts begin in the text: "target", "topic", "columns", "where", "partition_by", "format".
    """

    bucket: str
    prefix: str
    topic: str
    columns: str | None = None
    where: str | None = None
    partition_by: tuple[tuple[str, ...], ...] = ()
    partitioned: bool = True
    format: str | None = None
    properties: Mapping[str, Property] = field(default_factory=dict)
    offsets: Mapping[str, int] = field(default_factory=dict)


def parse(text: str) -> tuple[Statement, ...]:
    """The statements in `text`, in their order.

    Raises:
        KcqlError: it is not KCQL; the message says what is there and what is expected.
    """
    from lark import UnexpectedCharacters, UnexpectedEOF, UnexpectedToken

    _bounded(text)
    try:
        tree = _parser().parse(text)
    except UnexpectedCharacters as error:
        raise _unexpected(text, error.pos_in_stream or 0, error.allowed or set()) from None
    except UnexpectedToken as error:
        offset = len(text) if error.token.type == "$END" else _at(error.token)
        raise _unexpected(text, offset, set(error.accepts or error.expected)) from None
    except UnexpectedEOF as error:
        raise _unexpected(text, len(text), set(error.expected)) from None
    trees = sorted(tree.find_data("statement"), key=lambda statement: _at(_tokens(statement)[0]))
    return tuple(_statement(text, statement) for statement in trees)


def _bounded(text: str) -> None:
    if len(text) > _LONGEST:
        raise KcqlError(text, _LONGEST, f"is too long: at most {_LONGEST:,} characters")
    depth = 0
    for match in _BRACKET.finditer(text):
        depth += {"(": 1, ")": -1}.get(match[0], 0)
        if depth > _DEEPEST:
            raise KcqlError(text, match.start(), f"nests too deeply: at most {_DEEPEST} parentheses in one another")


@lru_cache(maxsize=1)
def _parser() -> Lark:
    from lark import Lark

    grammar = resources.files("s3lake.config.connectors").joinpath("kcql.lark").read_text("utf-8")
    return Lark(grammar, parser="lalr", lexer="contextual", keep_all_tokens=True)


def _statement(text: str, tree: Tree[Token]) -> Statement:
    clauses = {part.data: _tokens(part) for part in tree.iter_subtrees()}
    target = next(token for token in _tokens(tree) if token.type == "TARGET")
    bucket, prefix = _target(text, target)
    columns, topic = clauses["columns"], clauses["topic"][0]
    offsets = {"target": _at(target), "columns": _at(columns[0]), "topic": _at(topic)}
    for name in ("where", "partition_by", "no_partition", "storeas"):
        if name in clauses:
            offsets[_PARTS.get(name, name)] = _at(clauses[name][0])
    selected = _source(text, columns)
    return Statement(
        bucket=bucket,
        prefix=prefix,
        topic=_named(text, topic),
        columns=None if selected == "*" else selected,
        where=_source(text, clauses["where"][1:]) if "where" in clauses else None,
        partition_by=_elements(text, tree),
        partitioned="no_partition" not in clauses,
        format=_named(text, clauses["storeas"][1]) if "storeas" in clauses else None,
        properties=_properties(text, tree),
        offsets=offsets,
    )


_PARTS = {"no_partition": "partition_by", "storeas": "format"}


def _target(text: str, token: Token) -> tuple[str, str]:
    plain = re.sub(r"`([^`]*)`|'([^']*)'", lambda match: match[1] or match[2] or "", token)
    bucket, _, prefix = plain.partition(":")
    if ":" in prefix:
        raise KcqlError(text, _at(token), f"{plain!r} has more than one ':'; write bucket or bucket:prefix")
    if not bucket:
        raise KcqlError(text, _at(token), f"{plain!r} names no bucket; write bucket or bucket:prefix")
    return bucket, prefix


def _elements(text: str, tree: Tree[Token]) -> tuple[tuple[str, ...], ...]:
    elements: dict[tuple[str, ...], tuple[str, ...]] = {}
    for element in _in_order(tree.find_data("element")):
        path = tuple(_named(text, token) for token in element if token.type != "DOT")
        if elements.setdefault(tuple(map(str.lower, path)), path) is not path:
            raise KcqlError(text, _at(element[0]), f"PARTITIONBY names {'.'.join(path)!r} twice; take one out")
        if len(elements) > _MOST_ELEMENTS:
            raise KcqlError(
                text, _at(element[0]), f"PARTITIONBY has more than {_MOST_ELEMENTS} fields: no key holds them"
            )
    return tuple(elements.values())


def _properties(text: str, tree: Tree[Token]) -> dict[str, Property]:
    properties: dict[str, Property] = {}
    for name, _, value in _in_order(tree.find_data("property")):
        key = _named(text, name).lower()
        if key in properties:
            raise KcqlError(text, _at(name), f"property {key!r} is given twice; take one out")
        properties[key] = Property(key, _unquoted(value), _at(name))
    for name, _, value in _in_order(tree.find_data("former")):
        clause, content = name.upper(), _unquoted(value)
        key = _FORMER[clause]
        if key in properties:
            raise KcqlError(text, _at(name), f"{clause} is given next to property {key!r}; take one out")
        content = _PARTITIONERS.get(content.lower(), content) if clause == "WITHPARTITIONER" else content
        properties[key] = Property(key, content, _at(name), clause)
    return properties


def _source(text: str, tokens: list[Token]) -> str:
    return text[_at(tokens[0]) : tokens[-1].end_pos].strip()


def _named(text: str, token: Token) -> str:
    name = _unquoted(token)
    if not name.strip():
        raise KcqlError(text, _at(token), "a name is empty")
    return name


def _unquoted(token: Token) -> str:
    if token[0] not in "`'\"":
        return str(token)
    return token[1:-1].replace("''", "'") if token[0] == "'" else str(token[1:-1])


def _tokens(tree: Tree[Token]) -> list[Token]:
    return list(tree.scan_values(lambda _: True))


def _in_order(trees: Iterator[Tree[Token]]) -> list[list[Token]]:
    return sorted(map(_tokens, trees), key=lambda tokens: _at(tokens[0]))


def _at(token: Token) -> int:
    assert token.start_pos is not None
    return token.start_pos


def _unexpected(text: str, offset: int, expected: set[str]) -> KcqlError:
    """Return the error of a text that goes wrong at `offset`: what is there, and what is expected."""
    word = re.compile(r"[A-Za-z_]\w*|.", re.DOTALL).match(text, offset)
    names = " or ".join(_WORDS.get(name, name) for name in _EXPECTED_ORDER if name in expected) or "nothing more"
    if word is None:
        return KcqlError(text, offset, f"the statement ends too early; expected {names}")
    hint = ""
    if word[0] in "'\"`" and text.find(word[0], offset + 1) < 0:
        hint = "; the quote is not closed"
    elif word[0].upper() in CLAUSES:
        hint = f"; the order is {ORDER}, and a name that is a keyword needs backticks"
    elif near := get_close_matches(word[0].upper(), [clause for clause in CLAUSES if clause in expected], 1, 0.7):
        hint = f"; did you mean {near[0]}?"
    elif expected & {"TOPIC", "COMMA", "DOT", "BACKTICK"}:
        hint = "; a name with blanks or other characters needs backticks"
    return KcqlError(text, offset, f"unexpected {word[0]!r}; expected {names}{hint}")
