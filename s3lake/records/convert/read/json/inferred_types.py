"""Types that JSON shows, and columns that grow by them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import msgspec

from s3lake.records.convert.read.arrays import Misfit
from s3lake.records.schema.columns.types import (
    MOST_LEVELS,
    UNKNOWN,
    Columns,
    Decimal,
    List,
    Map,
    Primitive,
    Struct,
    Type,
    Unknown,
    fields_of,
    item_of,
)
from s3lake.records.schema.columns.union import Conflict, join_path, make_depth_error, unify_types
from s3lake.records.schema.connect_schema import UNREADABLE

INFERRED = frozenset({Primitive.BOOL, Primitive.INT64, Primitive.DOUBLE, Primitive.STRING})
"""Types that JSON shows by itself."""
LARGE = 2**53
"""All integers up to here are doubles."""
_INT64 = range(-(2**63), 2**63)
_UNREADABLE_NAME = "its name has a quote, a backslash or a control character: rename it"
_decode = msgspec.json.Decoder().decode


def decode_checked_json(text: bytes | msgspec.Raw) -> Any:
    """Decode JSON that passed the gate.

    Raises:
        Conflict: a number is beyond a double, or it nests too deeply.
    """
    try:
        return _decode(text)
    except RecursionError:
        raise Conflict("nested too deeply") from None
    except msgspec.DecodeError:
        raise Conflict("a number is beyond a double") from None


def infer_type(value: Any, path: str = "", level: int = 0, large: set[str] | None = None) -> Type:
    """Return the type of a decoded JSON value; a list or object that holds nothing keeps its shape.

    Adds to `large` the paths of integers beyond 2^53. Larger than 64 bits they are doubles.

    Raises:
        Conflict: the elements of a list have nothing in common, a number is beyond a double, or it nests too deeply.
    """
    if level > MOST_LEVELS:
        raise make_depth_error(path)
    match value:
        case bool():
            return Primitive.BOOL
        case int() if value in _INT64:
            if large is not None and abs(value) > LARGE:
                large.add(path)
            return Primitive.INT64
        case int() | float():
            if abs(value) > sys.float_info.max:
                raise Conflict(f"field {path!r}: the number is beyond a double")
            if float(value) != value:
                raise Conflict(str(Misfit(Primitive.DOUBLE, path, is_rounded=True)))
            return Primitive.DOUBLE
        case str():
            return Primitive.STRING
        case list():
            item: Type = UNKNOWN
            for element in value:
                item = unify_types(item, infer_type(element, f"{path}[]", level + 1, large), f"{path}[]")
            return List(item)
        case dict():
            fields = value.items()
            return Struct({name: infer_type(one, join_path(path, name), level + 1, large) for name, one in fields})
    return UNKNOWN


def widen(
    recorded: Columns, seen: Columns, declared: Columns, path: str = "", integral: Mapping[str, str] | None = None
) -> Columns:
    """Return recorded columns united with what JSON showed. Declared ones, and types that JSON lacks, do not change.

    Args:
        integral: path of a column that stays one of integers -> why.

    Raises:
        Conflict: a field's types have nothing in common, or a column that stays one of integers would be of doubles.
    """
    wider = dict(recorded)
    for name, type in seen.items():
        if name not in recorded and UNREADABLE.search(name):
            raise Conflict(f"field {join_path(path, name)[:80]!r}: {_UNREADABLE_NAME}")
        of_user = declared.get(name, UNKNOWN)
        wider[name] = _widen_type(recorded.get(name, UNKNOWN), type, of_user, join_path(path, name), integral or {})
    return wider


def _widen_type(recorded: Type, seen: Type, declared: Type, path: str, integral: Mapping[str, str]) -> Type:
    match recorded, seen:
        case Map(), Struct() | Primitive() | Unknown():
            return recorded
        case ((Struct() | Unknown()), Struct(fields)):
            return Struct(widen(fields_of(recorded), fields, fields_of(declared), path, integral))
        case ((List() | Unknown()), List(item)):
            return List(_widen_type(item_of(recorded), item, item_of(declared), f"{path}[]", integral))
        case _, Struct() | List():
            _widen_type(UNKNOWN, seen, UNKNOWN, path, integral)  # no column is made of it, but its names are checked
    is_plain = isinstance(recorded, Primitive | Decimal)
    if isinstance(recorded, Map) or (is_plain and (declared != UNKNOWN or recorded not in INFERRED)):
        return recorded
    if seen == Primitive.DOUBLE and recorded != Primitive.DOUBLE and path in integral:
        raise Conflict(f"field {path!r} is {seen}, and its column stays one of integers: {integral[path]}")
    return unify_types(recorded, seen, path)
