"""Columns of JSON objects: inferred, united by name, written down in the index.

A type is `bool`, `int64`, `double`, `string`, `binary`, `{"list": type}` or `{"struct": {name: type}}`. Every field is
nullable. Integers widen to doubles, and so do integers beyond 64 bits; any other difference is a conflict. What holds
nothing yet (nulls, empty lists, empty objects) gets no column until something is seen in it.
"""

import sys
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

Type = str | dict[str, Any]
Columns = dict[str, Any]
"""Field name -> type."""

_ARROW = {"bool": pa.bool_(), "int64": pa.int64(), "double": pa.float64(), "string": pa.string(), "binary": pa.binary()}
_INT64 = range(-(2**63), 2**63)
_DEPTH = 32  # Parquet's readers go to 100 levels, of which a list takes two


class Conflict(ValueError):
    """Two types that have nothing in common; the message names the field and both."""


def of_value(value: Any, path: str = "", depth: int = 0) -> Type | None:
    """The type of a decoded JSON value, None for null; a list or object that holds nothing keeps its shape.

    Raises:
        Conflict: the elements of a list have nothing in common, a number is beyond a double, or it nests too deeply.
    """
    _check(depth, path)
    match value:
        case bool():
            return "bool"
        case int():
            if value in _INT64:
                return "int64"
            if abs(value) > sys.float_info.max:
                raise Conflict(f"field {path!r}: the number is beyond a double")
            return "double"
        case float():
            if value in (float("inf"), float("-inf")):
                raise Conflict(f"field {path!r}: the number is beyond a double")
            return "double"
        case str():
            return "string"
        case list():
            element: Type | None = None
            for one in value:
                element = unite(element, of_value(one, f"{path}[]", depth + 1), f"{path}[]")
            return {"list": element}
        case dict():
            fields = {name: of_value(one, _join(path, name), depth + 1) for name, one in value.items()}
            return {"struct": {name: kind for name, kind in fields.items() if kind is not None}}
    return None


def of_object(value: dict[str, Any]) -> Columns:
    """The columns of one decoded JSON object, those that hold nothing too."""
    found = of_value(value)
    return found["struct"] if isinstance(found, dict) else {}


def held(columns: Columns) -> Columns:
    """The columns without those that hold nothing."""
    found = {name: _held(kind) for name, kind in columns.items()}
    return {name: kind for name, kind in found.items() if kind is not None}


def _held(kind: Type | None) -> Type | None:
    if isinstance(kind, dict) and "list" in kind:
        element = _held(kind["list"])
        return {"list": element} if element is not None else None
    if isinstance(kind, dict):
        fields = held(kind["struct"])
        return {"struct": fields} if fields else None
    return kind


def unite(one: Type | None, other: Type | None, path: str = "") -> Type | None:
    """The type that holds both.

    Raises:
        Conflict: there is none.
    """
    if one is None or other is None or one == other:
        return other if one is None else one
    if isinstance(one, str) and isinstance(other, str) and {one, other} == {"int64", "double"}:
        return "double"
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        if "list" in one:
            return {"list": unite(one["list"], other["list"], f"{path}[]")}
        return {"struct": unite_columns(one["struct"], other["struct"], path)}
    raise Conflict(f"field {path!r} is {name_of(other)}, the sink's files have {name_of(one)}")


def unite_columns(one: Columns, other: Columns, path: str = "") -> Columns:
    """Columns of both, the first one's order first.

    Raises:
        Conflict: a field's types have nothing in common.
    """
    united = dict(one)
    for name, kind in other.items():
        united[name] = unite(one.get(name), kind, _join(path, name))
    return united


def agree(one: Columns, other: Columns) -> Columns:
    """Columns of both, where a conflict is decided for the first: its records will be the refused ones."""
    united = dict(one)
    for name, kind in other.items():
        try:
            united[name] = unite(united.get(name), kind, name)
        except Conflict:
            known = united[name]
            if isinstance(known, dict) and isinstance(kind, dict) and "struct" in known and "struct" in kind:
                united[name] = {"struct": agree(known["struct"], kind["struct"])}
    return united


def name_of(kind: Type) -> str:
    """A type in words, for messages."""
    if isinstance(kind, str):
        return kind
    if "struct" in kind:
        return "an object"
    return f"a list of {name_of(kind['list'])}" if kind["list"] is not None else "an empty list"


def to_arrow(columns: Columns) -> pa.Schema:
    """The Arrow schema of the columns."""
    return pa.schema(list(_fields(columns)))


def from_arrow(fields: Any, depth: int = 0) -> Columns:
    """Columns of what pyarrow inferred; it takes strings that look like dates for timestamps, we keep them strings.

    Raises:
        Conflict: they nest too deeply.
    """
    found = {field.name: _from_arrow(field.type, depth + 1) for field in fields}
    return {name: kind for name, kind in found.items() if kind is not None}


def _from_arrow(kind: pa.DataType, depth: int) -> Type | None:
    _check(depth, "")
    if pa.types.is_struct(kind):
        fields = from_arrow(kind, depth)
        return {"struct": fields} if fields else None
    if pa.types.is_list(kind):
        element = _from_arrow(kind.value_type, depth + 1)
        return {"list": element} if element is not None else None
    if pa.types.is_null(kind):
        return None
    return next((name for name, arrow in _ARROW.items() if arrow == kind), "string")


def _fields(columns: Columns) -> Iterator[pa.Field]:
    for name, kind in columns.items():
        yield pa.field(name, _to_arrow(kind), nullable=True)


def _to_arrow(kind: Type) -> pa.DataType:
    if isinstance(kind, str):
        return _ARROW[kind]
    return pa.struct(list(_fields(kind["struct"]))) if "struct" in kind else pa.list_(_to_arrow(kind["list"]))


def _check(depth: int, path: str) -> None:
    if depth > _DEPTH:
        raise Conflict(f"field {path[:80]!r}… nests deeper than {_DEPTH} levels, which Parquet's readers refuse")


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
