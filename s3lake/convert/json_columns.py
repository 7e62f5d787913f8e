"""Columns that JSON objects are read into, with all that every batch asks of them.

JSON lacks dates, decimals, UUIDs, maps and narrow numbers. A column of such a type is *pinned*: it is read as it is
spelt in JSON (as texts, or as numbers) and converted whole by `pinned.py`. So is every column that the user gives, or a
record's own schema: `given`, in all of this room. A pinned column never widens: a value that does not fit refuses its
record (`json_values.py` finds which).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

import pyarrow as pa

from s3lake.convert.json_probes import decimals_of
from s3lake.schema.arrow import arrow_type, to_arrow
from s3lake.schema.json import INFERRED
from s3lake.schema.types import (
    TICKS,
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
    fold,
    has,
    item_of,
)
from s3lake.schema.unite import Conflict, joined, unite

Spelling = Literal["text", "number"]
"""How dates, times and timestamps are spelt in JSON."""

NOT_INTEGRAL: Mapping[str, str] = MappingProxyType({})
"""No column stays one of integers: all may widen to doubles."""

_NUMBERS = dict.fromkeys(TICKS, pa.int64()) | {Primitive.DATE: pa.int32(), Primitive.TIME: pa.int32()}
_TEXTS = (Primitive.UUID, Primitive.BINARY)


@dataclass(frozen=True)
class JsonColumns:
    """Columns, and what follows from them alone.

    Attributes:
        pinned: names of those that are, or hold something that is.
        has_map: whether there is a map, whose names would each be a field to the reader of JSON.
        decimals: says of JSON objects whether the reader may be trusted with their decimals; None without decimals.
        arrow: their schema.
        spelt: the schemas to read JSON with.
    """

    columns: Columns
    given: Columns
    pinned: frozenset[str]
    has_map: bool
    decimals: Callable[[pa.BinaryArray], bool] | None
    arrow: pa.Schema
    spelt: dict[Spelling, pa.Schema]

    def spelt_like(self, schema: pa.Schema) -> pa.Schema:
        """The schema to read JSON with of which pyarrow inferred `schema`: dates are texts here and numbers there."""
        return _spelt_schema(self.columns, "text", schema)


def json_columns(columns: Columns, given: Columns) -> JsonColumns:
    """What follows from columns, computed once for all batches that have the same."""
    return _json_columns(tuple(columns.items()), tuple(given.items()))


@functools.lru_cache(maxsize=64)
def _json_columns(columns: tuple[tuple[str, Type], ...], given: tuple[tuple[str, Type], ...]) -> JsonColumns:
    types, given_types = dict(columns), dict(given)
    has_map = any(has(type, lambda _: False, maps=True) for type in types.values())
    return JsonColumns(
        columns=types,
        given=given_types,
        pinned=frozenset(name for name, type in columns if name in given_types or has(type, _is_foreign, maps=True)),
        has_map=has_map,
        decimals=None if has_map else decimals_of(types),
        arrow=to_arrow(types),
        spelt={"text": _spelt_schema(types, "text"), "number": _spelt_schema(types, "number")},
    )


def _is_foreign(leaf: Primitive | Decimal | Unknown) -> bool:
    """Whether JSON shows no such type by itself."""
    return leaf != UNKNOWN and leaf not in INFERRED


def is_pinned(leaf: Primitive | Decimal, given: Type) -> bool:
    """Whether a type without others inside does not follow the data."""
    return given != UNKNOWN or leaf not in INFERRED


def fitted(
    known: Columns, seen: Columns, given: Columns, path: str = "", integral: Mapping[str, str] = NOT_INTEGRAL
) -> Columns:
    """Known columns united with what JSON showed; pinned ones stay as they are.

    Args:
        integral: path of a column that stays one of integers -> why.

    Raises:
        Conflict: a field's types have nothing in common, or a column that stays one of integers would be of doubles.
    """
    united = dict(known)
    for name, type in seen.items():
        united[name] = _fitted(known.get(name, UNKNOWN), type, given.get(name, UNKNOWN), joined(path, name), integral)
    return united


def _fitted(known: Type, seen: Type, given: Type, path: str, integral: Mapping[str, str]) -> Type:
    match known, seen:
        case Map(), _:
            return known
        case Primitive() | Decimal(), _ if is_pinned(known, given):
            return known
        case ((Struct() | Unknown()), Struct(seen_fields)):
            return Struct(fitted(fields_of(known), seen_fields, fields_of(given), path, integral))
        case ((List() | Unknown()), List(seen_item)):
            return List(_fitted(item_of(known), seen_item, item_of(given), f"{path}[]", integral))
        case _, Primitive.DOUBLE if known != Primitive.DOUBLE and path in integral:
            raise Conflict(f"field {path!r} is {seen}, and its column stays one of integers: {integral[path]}")
    return unite(known, seen, path)


# The schema to read JSON with


_SpeltType = Callable[[Any], pa.DataType]
"""Takes what pyarrow inferred of the same part, None where it inferred nothing."""


def _spelt_schema(columns: Columns, spelling: Spelling, inferred: pa.Schema = None) -> pa.Schema:
    """The schema to read JSON with; what pyarrow inferred of it beats `spelling`."""
    leaf = functools.partial(_spelt_leaf, spelling)
    return pa.schema(
        [
            (name, fold(type, leaf, _spelt_list, _spelt_struct, _spelt_map)(_type_in(inferred, name)))
            for name, type in columns.items()
        ]
    )


def _spelt_leaf(spelling: Spelling, leaf: Primitive | Decimal | Unknown) -> _SpeltType:
    number = _NUMBERS.get(leaf) if isinstance(leaf, Primitive) else None
    plain = pa.string() if number is not None or leaf in _TEXTS else arrow_type(leaf)

    def of_leaf(inferred: Any) -> pa.DataType:
        as_number = spelling == "number" if inferred is None else pa.types.is_integer(inferred)
        return number if number is not None and as_number else plain

    return of_leaf


def _spelt_list(item: _SpeltType) -> _SpeltType:
    def of_list(inferred: Any) -> pa.DataType:
        is_list = inferred is not None and pa.types.is_list(inferred)
        return pa.list_(item(inferred.value_type if is_list else None))

    return of_list


def _spelt_struct(fields: dict[str, _SpeltType]) -> _SpeltType:
    return lambda inferred: pa.struct([(name, field(_type_in(inferred, name))) for name, field in fields.items()])


def _spelt_map(value: _SpeltType) -> _SpeltType:
    return lambda _inferred: pa.list_(pa.struct([("key", pa.string()), ("value", value(None))]))


def _type_in(inferred: Any, name: str) -> Any:
    """The type of a field of a schema or a struct, None where there is none."""
    if inferred is None or (isinstance(inferred, pa.DataType) and not pa.types.is_struct(inferred)):
        return None
    position = inferred.get_field_index(name)
    return inferred.field(position).type if position >= 0 else None
