"""What a sink's SQL asks for, found without Spark: the select list, the filter, and the fields that both name."""

from __future__ import annotations

from dataclasses import dataclass

META = ("_key", "_headers", "_topic", "_partition", "_offset", "_timestamp")
"""Columns that every record has beside its value's fields."""


@dataclass(frozen=True)
class Query:
    """A parsed projection and filter, both in Spark's spelling.

    Attributes:
        items: the select list; `*` stands for all fields of the value.
        where: the filter, None for all records.
        paths: fields of the value that the query names, outermost name first.
        meta: those of `META` that it names.
    """

    items: tuple[str, ...]
    where: str | None
    paths: frozenset[tuple[str, ...]]
    meta: frozenset[str]


def parse(select: str, where: str | None) -> Query:
    """Read a SELECT list and a WHERE condition.

    Raises:
        ValueError: it is no Spark SQL, or does more than project and filter record by record.
    """
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    text = f"SELECT {select} FROM records" + (f" WHERE {where}" if where is not None else "")
    given = f"select {select!r}" if where is None else f"where {where!r}"
    try:
        statements = sqlglot.parse(text, dialect="spark")
    except SqlglotError as error:
        found = getattr(error, "errors", None) or [{}]
        near = (found[0].get("highlight") or "").strip()
        what = found[0].get("description") or str(error)
        raise ValueError(f"{given} is no Spark SQL: {what}{f', near {near!r}' if near else ''}") from None
    (query,) = statements if len(statements) == 1 else (None,)
    if not isinstance(query, exp.Select) or set(_clauses(query)) - {"expressions", "from_", "from", "where"}:
        raise ValueError(f"{given} is more than a select list and a condition: no other clauses, no ';'")
    if select.count(",") and any(not part.strip() for part in _split(select)):
        raise ValueError(f"{given}: an entry of the select list is empty")
    for kind, name in (
        (exp.AggFunc, "an aggregate"),
        (exp.Window, "a window"),
        (exp.Subquery, "a subquery"),
        (exp.Select, "a subquery"),
        (exp.Explode, "a generator"),
    ):
        for node in query.find_all(kind):
            if node is not query:
                shown = node.sql(dialect="spark")[:60]
                raise ValueError(f"{given}: {shown} is {name}: SQL works on one record at a time")
    paths = {tuple(part.name for part in column.parts) for column in query.find_all(exp.Column) if column.name != "*"}
    condition = query.args.get("where")
    return Query(
        items=tuple("*" if isinstance(one, exp.Star) else one.sql(dialect="spark") for one in query.expressions),
        where=condition.this.sql(dialect="spark") if condition is not None else None,
        paths=frozenset(path for path in paths if path[0] not in META),
        meta=frozenset(path[0] for path in paths if path[0] in META),
    )


def _clauses(query: object) -> list[str]:
    return [name for name, value in getattr(query, "args", {}).items() if value]


def _split(text: str) -> list[str]:
    """Entries between commas that stand outside of parentheses and quotes."""
    parts, depth, quote = [""], 0, ""
    for char in text:
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"`":
            quote = char
        elif char in "([":
            depth += 1
        elif char in ")]":
            depth -= 1
        elif char == "," and not depth:
            parts.append("")
            continue
        parts[-1] += char
    return parts
