"""Columns of tables: inferred from JSON or given, united by name, written down in the index.

A type is one of `types.PRIMITIVES`, `decimal(p,s)`, `{"list": type}`, `{"struct": {name: type}}` or `{"map": type}`,
whose keys are strings. Every field is nullable. JSON shows `INFERRED` types, lists and structs; others come from the
user or from a record's own schema. Integers widen to doubles, and so do integers beyond 64 bits; 32 bits widen to 64;
any other difference is a conflict. What holds nothing yet (nulls, empty lists, empty objects) gets no column until
something is seen in it.
"""

import re
import sys
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from s3lake.convert.types import AVRO_NAME, Type

Columns = dict[str, Any]
"""Field name -> type."""

INFERRED = frozenset({"bool", "int64", "double", "string"})
"""Primitive types that JSON shows by itself."""

_ARROW = {
    "bool": pa.bool_(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "time": pa.time32("ms"),
    "timestamp": pa.timestamp("ms", "UTC"),
    "uuid": pa.uuid(),
}
_WIDER = {
    frozenset(("int32", "int64")): "int64",
    frozenset(("float", "double")): "double",
    frozenset(("int32", "double")): "double",
    frozenset(("int64", "double")): "double",
}
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
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
    if not isinstance(kind, dict):
        return kind
    if "struct" in kind:
        fields = held(kind["struct"])
        return {"struct": fields} if fields else None
    ((what, inner),) = kind.items()
    inner = _held(inner)
    return {what: inner} if inner is not None else None


def unite(one: Type | None, other: Type | None, path: str = "") -> Type | None:
    """The type that holds both.

    Raises:
        Conflict: there is none.
    """
    if one is None or other is None or one == other:
        return other if one is None else one
    if isinstance(one, str) and isinstance(other, str) and (wider := _WIDER.get(frozenset((one, other)))):
        return wider
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        if "list" in one:
            return {"list": unite(one["list"], other["list"], f"{path}[]")}
        if "map" in one:
            return {"map": unite(one["map"], other["map"], f"{path}{{}}")}
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


def leaves(columns: Columns) -> int:
    """How many columns these are to a file: what is in a struct counts, not the struct."""
    return sum(map(_leaves, columns.values()))


def _leaves(kind: Type | None) -> int:
    if not isinstance(kind, dict):
        return 0 if kind is None else 1
    if "struct" in kind:
        return leaves(kind["struct"])
    return _leaves(kind["list"]) if "list" in kind else 1 + _leaves(kind["map"])


def beyond(columns: Columns, known: Columns, most: int) -> str | None:
    """Why columns are more than `most`, None where they are not, or were that many before."""
    count = leaves(columns)
    if count <= max(most, leaves(known)):
        return None
    return f"with its fields the files would have {count} columns, and max_columns allows {most}"


def agree_within(one: Columns, other: Columns, most: int) -> Columns:
    """Like `agree`, with as many of the other's columns as there is room for: `most` in all."""
    united = dict(one)
    room = most - leaves(one)
    for name, kind in other.items():
        have = united.get(name)
        if (
            isinstance(kind, dict)
            and "struct" in kind
            and (have is None or (isinstance(have, dict) and "struct" in have))
        ):
            fields = have["struct"] if have else {}
            wider: Columns = {name: {"struct": agree_within(fields, kind["struct"], leaves(fields) + room)}}
            wider = wider if wider[name]["struct"] or have else {}
        else:
            wider = agree({name: have} if have is not None else {}, {name: kind})
        more = leaves(wider) - _leaves(have)
        if more <= max(0, room):
            united |= wider
            room -= more
    return united


def name_of(kind: Type) -> str:
    """A type in words, for messages."""
    if isinstance(kind, str):
        return kind
    if "struct" in kind:
        return "an object"
    if "map" in kind:
        return f"a map of {name_of(kind['map'])}"
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
    if pa.types.is_map(kind):
        values = _from_arrow(kind.item_type, depth + 1)
        return {"map": values} if values is not None else None
    if pa.types.is_null(kind):
        return None
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    return next((name for name, arrow in _ARROW.items() if arrow == kind), "string")


def _fields(columns: Columns) -> Iterator[pa.Field]:
    for name, kind in columns.items():
        yield pa.field(name, arrow_type(kind), nullable=True)


def arrow_type(kind: Type) -> pa.DataType:
    """The Arrow type of a column."""
    if isinstance(kind, str):
        digits = digits_of(kind)
        return pa.decimal128(*digits) if digits else _ARROW[kind]
    if "struct" in kind:
        return pa.struct(list(_fields(kind["struct"])))
    return pa.map_(pa.string(), arrow_type(kind["map"])) if "map" in kind else pa.list_(arrow_type(kind["list"]))


def digits_of(kind: str) -> tuple[int, int] | None:
    """Precision and scale of a decimal, None for any other type."""
    found = _DECIMAL.fullmatch(kind)
    return (int(found[1]), int(found[2])) if found else None


def illegal_in_avro(columns: Columns, path: str = "") -> str | None:
    """The path of the first field whose name Avro forbids, None where all are allowed."""
    for name, kind in columns.items():
        if not AVRO_NAME.fullmatch(name):
            return _join(path, name) or "''"
        while isinstance(kind, dict) and "struct" not in kind:
            kind = kind["list"] if "list" in kind else kind["map"]
        if isinstance(kind, dict) and (found := illegal_in_avro(kind["struct"], _join(path, name))):
            return found
    return None


def _check(depth: int, path: str) -> None:
    if depth > _DEPTH:
        raise Conflict(f"field {path[:80]!r}… nests deeper than {_DEPTH} levels, which Parquet's readers refuse")


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
