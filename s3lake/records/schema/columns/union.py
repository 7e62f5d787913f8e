"""Columns united by name: what holds both of two types, and when nothing does.

Integers and floats widen to doubles, which hold both; 32 bits widen to 64; a list or an object that holds nothing gives
way to any other type; any other difference is a conflict. Who unites columns that have values keeps columns of integers
that doubles would round (`keep_integers`).
"""

from __future__ import annotations

import re
from collections.abc import Collection

from s3lake.records.schema.columns.types import (
    TOO_DEEP,
    UNKNOWN,
    Columns,
    List,
    Map,
    Primitive,
    Struct,
    Type,
    Unknown,
    fields_of,
    fold,
    write_name,
)

_WIDER = {
    frozenset((Primitive.INT32, Primitive.INT64)): Primitive.INT64,
    frozenset((Primitive.FLOAT, Primitive.DOUBLE)): Primitive.DOUBLE,
    frozenset((Primitive.INT32, Primitive.DOUBLE)): Primitive.DOUBLE,
    frozenset((Primitive.INT64, Primitive.DOUBLE)): Primitive.DOUBLE,
    frozenset((Primitive.INT32, Primitive.FLOAT)): Primitive.DOUBLE,  # a float has 24 bits, a double all 32
    frozenset((Primitive.INT64, Primitive.FLOAT)): Primitive.DOUBLE,
}
_SHOWN = 80
LEGAL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""A name that Avro allows."""


USE_JSON = "or use format json, which has no columns"
"""The remedy that is always there: a line of JSON holds every value."""


class Conflict(ValueError):
    """Two types that have nothing in common; the message names the field, both, and what to do."""


def unify_types(recorded: Type, other: Type, path: str = "") -> Type:
    """The type that holds both.

    Raises:
        Conflict: they have nothing in common.
    """
    if recorded == other:
        return recorded
    match recorded, other:
        case Unknown(), _:
            return other
        case _, Unknown():
            return recorded
        case Primitive(), Primitive() if wider := _WIDER.get(frozenset((recorded, other))):
            return wider
        case List(item), List(other_item):
            return List(unify_types(item, other_item, f"{path}[]"))
        case Map(value), Map(other_value):
            return Map(unify_types(value, other_value, f"{path}{{}}"))
        case Struct(fields), Struct(other_fields):
            return Struct(unify_columns(fields, other_fields, path))
    present = _drop_empty(recorded)
    if present == UNKNOWN:
        return other if _drop_empty(other) != UNKNOWN else UNKNOWN
    if _drop_empty(other) == UNKNOWN:
        return recorded
    types = f"is {format_type(other)}, the sink's files have {format_type(present)}"
    raise Conflict(f"field {path!r} {types}: have the producer keep to one type, {USE_JSON}")


def try_unify(recorded: Type, other: Type) -> Type | None:
    """Return the type that holds both. Return None if they have nothing in common."""
    try:
        return unify_types(recorded, other)
    except Conflict:
        return None


def unify_columns(recorded: Columns, other: Columns, path: str = "") -> Columns:
    """Columns of both, the known ones' order first.

    Raises:
        Conflict: a field's types have nothing in common.
    """
    united = dict(recorded)
    for name, type in other.items():
        united[name] = unify_types(recorded.get(name, UNKNOWN), type, join_path(path, name))
    return united


def merge_columns(recorded: Columns, other: Columns) -> Columns:
    """Columns of both, where a conflict is decided for the known ones: the other's records will be refused."""
    united = dict(recorded)
    for name, type in other.items():
        have = united.get(name, UNKNOWN)
        try:
            united[name] = unify_types(have, type, name)
        except Conflict:
            if fields_of(have) and fields_of(type):
                united[name] = Struct(merge_columns(fields_of(have), fields_of(type)))
    return united


def keep_integers(columns: Columns, paths: Collection[str], path: str = "") -> Columns:
    """Return the columns with int64 instead of double at these paths, as `orders.items[].id`."""
    if not paths:
        return columns
    return {name: _keep_integers(type, paths, join_path(path, name)) for name, type in columns.items()}


def _keep_integers(type: Type, paths: Collection[str], path: str) -> Type:
    match type:
        case Primitive.DOUBLE if path in paths:
            return Primitive.INT64
        case Struct(fields):
            return Struct(keep_integers(fields, paths, path))
        case List(item):
            return List(_keep_integers(item, paths, f"{path}[]"))
        case Map(value):
            return Map(_keep_integers(value, paths, f"{path}[]"))
    return type


def drop_empty(columns: Columns) -> Columns:
    """Return the columns without ones that hold nothing: nulls, empty lists and empty objects."""
    return fields_of(_drop_empty(Struct(columns)))


def _drop_empty(type: Type) -> Type:
    """Return a type without what holds nothing, unknown if all of it does."""
    if isinstance(type, Primitive):
        return type

    def of_struct(fields: Columns) -> Type:
        seen = {name: field for name, field in fields.items() if field != UNKNOWN}
        return Struct(seen) if seen else UNKNOWN

    def of_list(item: Type) -> Type:
        return UNKNOWN if item == UNKNOWN else List(item)

    def of_map(value: Type) -> Type:
        return UNKNOWN if value == UNKNOWN else Map(value)

    return fold(type, lambda leaf: leaf, of_list, of_struct, of_map)


def count_leaf_columns(columns: Columns) -> int:
    """How many columns these are to a file: what is in a struct counts, not the struct."""
    # Nearly all are plain, and one by one each record asks for the leaves of all columns.
    return sum(
        1
        if isinstance(type, Primitive)
        else fold(
            type, lambda leaf: int(leaf != UNKNOWN), int, lambda fields: sum(fields.values()), lambda values: 1 + values
        )
        for type in columns.values()
    )


def find_illegal_name(columns: Columns) -> str | None:
    """Return the path of the first field whose name Avro forbids. Return None if all are allowed."""

    def of_struct(fields: dict[str, str | None]) -> str | None:
        for name, inner in fields.items():
            if not LEGAL_NAME.fullmatch(name):
                return name or "''"
            if inner is not None:
                return f"{name}.{inner}"
        return None

    return fold(Struct(columns), lambda _: None, lambda item: item, of_struct, lambda value: value)


def check_column_limit(columns: Columns, recorded: Columns, most: int) -> str | None:
    """Return why columns are more than `most`. Return None if they are not, or were that many before."""
    count = count_leaf_columns(columns)
    if count <= max(most, count_leaf_columns(recorded)):
        return None
    limit = f"max_columns allows {most}: set a larger max_columns, {USE_JSON}"
    return f"with its fields the files would have {count} columns, and {limit}"


def make_depth_error(path: str) -> Conflict:
    """Return the error of a value that nests beyond `MOST_LEVELS`."""
    return Conflict(f"field {path[:80]!r}… {TOO_DEEP}: have the producer flatten it, {USE_JSON}")


def format_type(type: Type) -> str:
    """A type in a message: the spelling of a large one is cut."""
    text = str(type)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def join_path(path: str, name: str) -> str:
    """Return the path of a field within another; no two fields have the same."""
    return f"{path}.{write_name(name)}" if path else write_name(name)
