"""What JSON shows of its types.

JSON has booleans, numbers, texts, lists and objects; other types come from the user or from a record's own schema.
Integers beyond 64 bits are doubles.
"""

from __future__ import annotations

import sys
from typing import Any

from s3lake.schema.types import MOST_LEVELS, UNKNOWN, Columns, List, Primitive, Struct, Type, fields_of
from s3lake.schema.unite import Conflict, joined, too_deep, unite

INFERRED = frozenset({Primitive.BOOL, Primitive.INT64, Primitive.DOUBLE, Primitive.STRING})
"""Primitive types that JSON shows by itself."""

_INT64 = range(-(2**63), 2**63)


def of_value(value: Any, path: str = "", level: int = 0) -> Type:
    """The type of a decoded JSON value; a list or object that holds nothing keeps its shape.

    Raises:
        Conflict: the elements of a list have nothing in common, a number is beyond a double, or it nests too deeply.
    """
    if level > MOST_LEVELS:
        raise too_deep(path)
    match value:
        case bool():
            return Primitive.BOOL
        case int() if value in _INT64:
            return Primitive.INT64
        case int() | float():
            if abs(value) > sys.float_info.max:
                raise Conflict(f"field {path!r}: the number is beyond a double")
            return Primitive.DOUBLE
        case str():
            return Primitive.STRING
        case list():
            item: Type = UNKNOWN
            for element in value:
                item = unite(item, of_value(element, f"{path}[]", level + 1), f"{path}[]")
            return List(item)
        case dict():
            return Struct({name: of_value(field, joined(path, name), level + 1) for name, field in value.items()})
    return UNKNOWN


def of_object(value: dict[str, Any]) -> Columns:
    """The columns of one decoded JSON object, those that hold nothing too."""
    return fields_of(of_value(value))
