"""A sink's SQL, read without Spark: the select list, the filter, and the fields that its expressions read.

Spark gets the words of the configuration as they are, because a parser that writes them again may leave a part out.
The parser's tree only decides whether they are allowed: what is not known to be an expression over one record is
refused. Fields that the select list only names never reach Spark: `query.py` copies their bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from s3lake.records.transform.sql.query import META, ComputedField, CopiedField, Path, Query, Star
from s3lake.records.transform.sql.spark_functions import FUNCTIONS
from s3lake.records.transform.sql.sql_words import CALL_NOTHING, NODES
from s3lake.text.option_values import did_you_mean

if TYPE_CHECKING:
    from sqlglot import exp
    from sqlglot.errors import SqlglotError
    from sqlglot.tokens import Token  # type: ignore[attr-defined]

_LONGEST = 100_000  # characters, which the parser reads in about a second
_DEEPEST = 30  # brackets in one another; the parser needs some 15 frames of Python's 1,000 for each

_FROM = "FROM records"
"""The line that a select list and a condition become a statement with."""
_MISSING = re.compile(r"Required keyword: '\w+' missing for <class .*>")
"""sqlglot's words, which name a class of its own."""
_BARE = {"current_date", "current_time", "current_timestamp", "current_user", "localtimestamp", "session_user"}
_LIKES = {"like", "ilike", "rlike"}


@lru_cache(maxsize=64)
def parse_sql(select: str, where: str | None) -> Query:
    """Read a SELECT list and a WHERE condition.

    Raises:
        ValueError: it is not Spark SQL, or does more than project and filter record by record, or two of its fields
            differ in case only.
    """
    items, expressions, read = _read_select_list(select)
    if where is not None:
        read |= _read_condition(where)
    paths = {path for path in read if path[0] not in META}
    leaves = tuple(sorted(path for path in paths if not any(path[:size] in paths for size in range(1, len(path)))))
    named = {item.path for item in items if isinstance(item, CopiedField)}
    named |= {item.of for item in items if isinstance(item, Star) and item.of}
    _refuse_twins([*leaves, *named])
    return Query(
        items=items,
        expressions=expressions,
        where=where.strip() if where is not None else None,
        leaves=leaves,
        meta=frozenset(path[0] for path in read if path[0] in META),
        fields=frozenset(path[0] for path in paths | named),
    )


def _refuse_twins(paths: Sequence[Path]) -> None:
    first_names: dict[Path, Path] = {}
    for path in paths:
        for size in range(1, len(path) + 1):
            part = path[:size]
            other = first_names.setdefault(tuple(map(str.lower, part)), part)
            if other != part:
                raise ValueError(
                    f"{'.'.join(other)!r} and {'.'.join(part)!r} differ in case only, and Spark takes them for one "
                    "field: name one of them"
                )


def _read_select_list(text: str) -> tuple[tuple[CopiedField | ComputedField | Star, ...], tuple[str, ...], set[Path]]:
    """Return the entries, the expressions among them, and what these read."""
    from sqlglot import exp

    clause = f"select {_shorten(text)}"
    tokens = _tokenize(text, clause)
    entries = list(_split_entries(tokens))
    if not all(entries):
        raise ValueError(f"{clause}: an entry of the select list is empty: take a comma out")
    tree = _parse_tree(f"SELECT {text}\n{_FROM}", clause, {"expressions", "from_"})
    if len(tree.expressions) != len(entries):
        raise ValueError(f"{clause}: its entries cannot be told apart; write cast(… AS …) instead of ::")
    items: list[CopiedField | ComputedField | Star] = []
    expressions: list[str] = []
    read: set[Path] = set()
    for node, entry in zip(tree.expressions, entries, strict=True):
        star = node.this if isinstance(node, exp.Column) else node
        if isinstance(star, exp.Star):
            of = () if star is node else _to_path(node)[:-1]
            items.append(_read_star(star, of, text, entry, clause, expressions))
            read |= _find_fields(
                [one for replaced in star.args.get("replace") or () for one in _check_nodes(replaced, clause)]
            )
            continue
        nodes = _check_nodes(node, clause)
        named = node.this if isinstance(node, exp.Alias) else node
        path = _to_path(named) if _is_field(named) else ()
        if path and path[0] not in META:
            items.append(CopiedField(node.alias or path[-1], path))
            continue
        items.append(ComputedField(node.alias or (path[-1] if path else f"col{len(items) + 1}"), len(expressions)))
        expressions.append(_slice(text, entry))
        read |= _find_fields(nodes)
    return tuple(items), tuple(expressions), read


def _is_field(node: exp.Expr) -> bool:
    """Return whether an expression only names a field, like `a.b.c`."""
    from sqlglot import exp

    while isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
        node = node.this
    return isinstance(node, exp.Column)


def _read_condition(text: str) -> set[Path]:
    """Check a condition. Return the fields that it reads."""
    clause = f"where {_shorten(text)}"
    _tokenize(text, clause)
    tree = _parse_tree(f"SELECT 1\n{_FROM}\nWHERE {text}", clause, {"expressions", "from_", "where"})
    if "where" not in tree.args:
        raise ValueError(f"{clause}: a condition is missing: write one, or take where out")
    return _find_fields(_check_nodes(tree.args["where"].this, clause))


def _tokenize(text: str, clause: str) -> Sequence[Token]:
    """Split a text into tokens.

    Raises:
        ValueError: it has a comment, or calls a function that is not allowed.
    """
    from sqlglot.dialects.dialect import Dialect
    from sqlglot.errors import SqlglotError

    if len(text) > _LONGEST:
        raise ValueError(f"{clause} is too long: at most {_LONGEST:,} characters")
    try:
        tokens = Dialect.get_or_raise("spark").tokenize(text)
    except SqlglotError as error:
        raise ValueError(f"{clause} is not Spark SQL: {error}") from None
    end, depth = 0, 0
    for token in tokens:
        if text[end : token.start].strip():
            raise ValueError(f"{clause}: {_shorten(text[end : token.start].strip())} is a comment: take it out")
        end = max(end, token.end + 1)
        depth += _count_depth(token)
        if depth > _DEEPEST:
            raise ValueError(f"{clause} nests too deeply: at most {_DEEPEST} brackets in one another")
    if text[end:].strip():
        raise ValueError(f"{clause}: {_shorten(text[end:].strip())} is a comment: take it out")
    # sqlglot has one node for these words and for from_utc_timestamp; Spark has no such words.
    words = [token.text.lower() for token in tokens if token.token_type.name not in ("STRING", "IDENTIFIER")]
    if "at time zone" in " ".join(words):
        raise ValueError(f"{clause}: Spark has no AT TIME ZONE: write from_utc_timestamp(timestamp, 'zone')")
    for position in range(len(tokens)):
        _check_call(text, tokens, position, clause)
    return tokens


def _check_call(text: str, tokens: Sequence[Token], position: int, clause: str) -> None:
    """Raise ValueError if a token calls a function that is not allowed."""
    token, before = tokens[position], tokens[position - 1].text.lower() if position else ""
    after = [following.text for following in tokens[position + 1 : position + 3]]
    quoted = text[token.start] == "`"
    name = token.text.lower()
    if not quoted and not re.fullmatch(r"[A-Za-z_]\w*", text[token.start : token.end + 1]):
        return
    if after[:1] != ["("]:
        if quoted or name not in _BARE or before == ".":
            return
    elif not quoted and (name in CALL_NOTHING or (name in ("any", "some") and before in _LIKES)):
        return
    elif before == ".":
        raise ValueError(
            f"{clause}: {token.text} is called by a name with dots: only Spark's own functions are allowed"
        )
    elif name == "unix_timestamp" and after == ["(", ")"]:
        raise ValueError(f"{clause}: unix_timestamp() is the time at which a record is read: take _timestamp")
    if name not in FUNCTIONS:
        hint = did_you_mean(name, FUNCTIONS, cutoff=0.8)
        raise ValueError(
            f"{clause}: {token.text} is not a function that depends on the record alone; {hint}"
            "docs/transforms.md lists the allowed ones"
        )


def _parse_tree(text: str, clause: str, parts: set[str]) -> exp.Select:
    """Parse a statement that has these parts and nothing else. Raise ValueError if it is another one."""
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        statements = sqlglot.parse(text, dialect="spark")
    except SqlglotError as error:
        raise ValueError(f"{clause} is not Spark SQL: {_describe_error(error, text)}") from None
    except IndexError:  # of sqlglot: map() with an odd number of arguments
        raise ValueError(f"{clause} is not Spark SQL: a function lacks an argument") from None
    except RecursionError:
        raise ValueError(f"{clause} nests too deeply: split it") from None
    (query,) = statements if len(statements) == 1 else (None,)
    source = exp.From(this=exp.Table(this=exp.Identifier(this="records", quoted=False)))
    if not isinstance(query, exp.Select) or _list_parts(query) - parts or query.args.get("from_") != source:
        raise ValueError(f"{clause} is more than a select list and a condition: no other clauses, no ';'")
    return query


def _describe_error(error: SqlglotError, text: str) -> str:
    """Return what is wrong with a statement, and where in the part of it that the user wrote."""
    from sqlglot.errors import ParseError

    if not isinstance(error, ParseError) or not error.errors:
        return str(error)
    problem = error.errors[0]
    what = _MISSING.sub("an operand or an argument is missing", problem["description"])
    if text.splitlines()[problem["line"] - 1] == _FROM:
        return f"{what}, at its end"
    near = problem["highlight"].strip()
    return f"{what}, near {near!r}" if near else what


def _list_parts(node: exp.Expr) -> set[str]:
    return {name for name, value in node.args.items() if value}


def _check_nodes(tree: exp.Expr, clause: str) -> list[exp.Expr]:
    """Return every node of an expression.

    Raises:
        ValueError: one is not allowed.
    """
    from sqlglot import exp

    nodes = list(tree.walk())
    for node in nodes:
        if isinstance(node, exp.Star) and not isinstance(node.parent, exp.Column):
            raise ValueError(f"{clause}: * is in an expression: name the fields")
        if isinstance(node, exp.Star) and _list_parts(node):
            raise ValueError(f"{clause}: EXCEPT and REPLACE are in an expression: name the fields")
        if not isinstance(node, exp.Func) and type(node).__name__ not in NODES:
            shown = f"not supported ({type(node).__name__})"
            if isinstance(node, exp.Query | exp.Window):
                shown = "a subquery" if isinstance(node, exp.Query) else "a window"
            raise ValueError(
                f"{clause}: {_shorten(node.sql(dialect='spark'))} is {shown}: SQL works on one record at a time"
            )
    return nodes


def _find_fields(nodes: Sequence[exp.Expr]) -> set[Path]:
    from sqlglot import exp

    paths = set[Path]()
    for node in nodes:
        if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
            whole: exp.Expr = node  # with its further steps: sqlglot's tree gives a column four
            while isinstance(parent := whole.parent, exp.Dot) and isinstance(parent.expression, exp.Identifier):
                whole = parent
            paths.add(_to_path(whole))
    return paths


def _to_path(node: exp.Expr) -> Path:
    return tuple(part.name for part in node.parts)  # type: ignore[attr-defined]


def _read_star(
    star: exp.Star, of: Path, text: str, entry: Sequence[Token], clause: str, expressions: list[str]
) -> Star:
    """Return a star. Adds the expressions of its REPLACE to `expressions`."""
    from sqlglot import exp

    shown = _slice(text, entry)
    if unknown := _list_parts(star) - {"except_", "replace"}:
        raise ValueError(f"{clause}: {sorted(unknown)[0].upper()} of {shown} is not supported: EXCEPT and REPLACE are")
    without = []
    for node in star.args.get("except_") or ():
        if not isinstance(node, exp.Column | exp.Dot):
            raise ValueError(f"{clause}: EXCEPT takes names of fields, not {_shorten(node.sql(dialect='spark'))}")
        without.append(_to_path(node))
    nodes = star.args.get("replace") or []
    if not all(isinstance(node, exp.Alias) for node in nodes):
        raise ValueError(f"{clause}: REPLACE takes (expression AS field, …)")
    texts = [_slice(text, part) for part in _split_entries(_find_replacements(entry))] if nodes else []
    if len(texts) != len(nodes):
        raise ValueError(f"{clause}: REPLACE takes (expression AS field, …), with the parentheses")
    first = len(expressions)
    expressions += texts
    replaced = tuple(ComputedField(node.alias, first + number) for number, node in enumerate(nodes))
    return Star(of, tuple(without), replaced)


def _find_replacements(entry: Sequence[Token]) -> Sequence[Token]:
    """Return the tokens between REPLACE's parentheses, which end the entry or go before EXCEPT."""
    words = [token.text.lower() for token in entry]
    start = next(i for i in range(len(words)) if words[i] == "replace" and words[i + 1 : i + 2] == ["("])
    depth = 0
    for position in range(start + 1, len(entry)):
        depth += _count_depth(entry[position])
        if not depth:
            return entry[start + 2 : position]
    return ()


def _split_entries(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """Yield the tokens between commas outside of brackets."""
    depth, start = 0, 0
    for position, token in enumerate(tokens):
        depth += _count_depth(token)
        if token.token_type.name == "COMMA" and not depth:
            yield tokens[start:position]
            start = position + 1
    yield tokens[start:]


def _count_depth(token: Token) -> int:
    """Return 1 for a bracket that opens, -1 for one that closes, else 0."""
    side, _, bracket = token.token_type.name.partition("_")
    return {"L": 1, "R": -1}.get(side, 0) if bracket in ("PAREN", "BRACKET", "BRACE") else 0


def _slice(text: str, tokens: Sequence[Token]) -> str:
    return text[tokens[0].start : max(token.end for token in tokens) + 1]


def _shorten(text: str) -> str:
    return repr(text if len(text) <= 200 else text[:200] + "…")
