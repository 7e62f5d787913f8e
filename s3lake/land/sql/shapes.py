"""Shapes: which types the fields that a sink's SQL names have in one record, in the words of Spark's SQL."""

from __future__ import annotations

from typing import Any

import msgspec
import pyarrow as pa

KINDS: dict[str, Any] = {"b": pa.bool_(), "i": pa.int64(), "d": pa.float64(), "s": pa.string(), "j": pa.string()}
"""The columns of a field: for truth values, integers, other numbers, texts, and JSON of lists and objects."""
SCALARS = {"BOOLEAN": "b", "BIGINT": "i", "DOUBLE": "d", "STRING": "s"}
NULL = "VOID"
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1


def find_kind(encoded: Any) -> tuple[str, str, Any]:
    """Return the column, the type and the cell of a field's JSON value; no column if it is missing or null.

    Raises:
        ValueError: the items of a list have different types.
    """
    value = None if encoded is None else msgspec.json.decode(encoded)
    if value is None:
        return "", NULL, None
    type = _find_type(value)
    if isinstance(value, list | dict):
        return "j", _write_type(type), bytes(encoded).decode()
    return SCALARS[type], type, float(value) if type == "DOUBLE" else value


def _find_type(value: Any) -> Any:
    """Return the type of a value: a name, a list with the type of its items, or an object's types by field."""
    match value:
        case None:
            return NULL
        case bool():
            return "BOOLEAN"
        case int():
            return "BIGINT" if _SMALLEST <= value <= _LARGEST else "DOUBLE"
        case float():
            return "DOUBLE"
        case str():
            return "STRING"
        case list():
            item: Any = NULL
            for one in value:
                item = _unite(item, _find_type(one))
            return [item]
        case _:
            return {name: _find_type(inner) for name, inner in value.items()}


def _unite(one: Any, other: Any) -> Any:
    """Return the type of two items of a list."""
    if one == other or other == NULL:
        return one
    if one == NULL:
        return other
    if isinstance(one, list) and isinstance(other, list):
        return [_unite(one[0], other[0])]
    if isinstance(one, dict) and isinstance(other, dict):
        return {name: _unite(one.get(name, NULL), other.get(name, NULL)) for name in {**one, **other}}
    if {str(one), str(other)} == {"BIGINT", "DOUBLE"}:
        return "DOUBLE"
    raise ValueError(f"a list has items of different types, {_write_type(one)} and {_write_type(other)}")


def _write_type(type: Any) -> str:
    if isinstance(type, list):
        return f"ARRAY<{_write_type(type[0])}>"
    if isinstance(type, dict):
        return f"STRUCT<{', '.join(f'{quote(name)}: {_write_type(inner)}' for name, inner in type.items())}>"
    return "STRING" if type == NULL else str(type)


def quote(name: str) -> str:
    """Return a name as Spark's SQL takes any."""
    return "`" + name.replace("`", "``") + "`"
