"""`*` of a select list as the columns that it stands for: Spark has no REPLACE, and no EXCEPT within lists."""

from __future__ import annotations

from collections.abc import Sequence

from s3lake.schema.types import Columns, List, Struct, Type, fields_of
from s3lake.transform.sql import META, Path, Star


def columns_of(star: Star, fields: Columns) -> list[str]:
    """The entries of the select list that a star stands for.

    Names are compared as Spark compares them, without their case: what is to be left out is never landed because it is
    spelled in another one.
    """
    within: Type | None = Struct({name: type for name, type in fields.items() if name not in META})
    for step in star.of:
        within = fields_of(within).get(step)
    of = ".".join(map(quoted, star.of))
    if within is None:
        return [text for _, text in star.replaced]
    if of and not fields_of(within):
        return [f"{of}.*"]  # which Spark refuses, and says why
    replaced = {name.lower(): text for name, text in star.replaced}
    entries = []
    for name, type in fields_of(within).items():
        inner = _inner(star.without, name)
        if () in inner:
            continue
        column = f"{of}.{quoted(name)}" if of else quoted(name)
        if name.lower() in replaced:
            entries.append(replaced.pop(name.lower()))
        elif inner:
            entries.append(f"{_without(column, type, inner, 0)} AS {quoted(name)}")
        else:
            entries.append(column)
    return [*entries, *replaced.values()]


def quoted(name: str) -> str:
    """A name as Spark's SQL takes any."""
    return "`" + name.replace("`", "``") + "`"


def _inner(paths: Sequence[Path], name: str) -> list[Path]:
    """What paths through a field name within it; an empty one names the field itself."""
    return [path[1:] for path in paths if path[0].lower() == name.lower()]


def _without(value: str, type: Type, paths: Sequence[Path], depth: int) -> str:
    """A value without some of its fields, also where it is a list of objects."""
    if isinstance(type, List):
        each = f"s3lake_{depth}"
        return f"transform({value}, {each} -> {_without(each, type.item, paths, depth + 1)})"
    if not isinstance(type, Struct):
        return value
    kept = []
    for name, field in type.fields.items():
        inner = _inner(paths, name)
        if () not in inner:
            text = f"{value}.{quoted(name)}"
            kept.append(f"{_without(text, field, inner, depth) if inner else text} AS {quoted(name)}")
    return f"if({value} IS NULL, NULL, struct({', '.join(kept)}))"
