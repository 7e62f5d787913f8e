"""Columns that JSON objects are read into, with all that every batch asks of them.

JSON lacks dates, decimals, UUIDs, maps and narrow numbers. A column of such a type is *pinned*: it is read as it is
spelt in JSON (as texts, or as numbers) and converted whole by `pinned.py`. So is every column that the user gives, or a
record's own schema: `given`, in all of this room. A pinned column never widens: a value that does not fit refuses its
record (`json_values.py` finds which).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from types import MappingProxyType
from typing import Any

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
    has,
    item_of,
)
from s3lake.schema.unite import Conflict, joined, unite

NOT_INTEGRAL: Mapping[str, str] = MappingProxyType({})
"""No column stays one of integers: all may widen to doubles."""

_NUMBERS = dict.fromkeys(TICKS, pa.int64()) | {Primitive.DATE: pa.int32(), Primitive.TIME: pa.int32()}
_TEXTS = (Primitive.UUID, Primitive.BINARY)
_MOST_NULLS = 100


@dataclass(frozen=True)
class JsonColumns:
    """Columns, and what follows from them alone.

    Attributes:
        pinned: names of those that are, or hold something that is.
        has_map: whether there is a map, whose names would each be a field to the reader of JSON.
        decimals: says of JSON objects whether the reader may be trusted with their decimals; None without decimals.
        arrow: their schema.
        nulls: names of fields that were null in all objects that were looked at; they grow, so that objects with such
            fields are read as fast as others.
    """

    columns: Columns
    given: Columns
    pinned: frozenset[str]
    has_map: bool
    decimals: Callable[[pa.BinaryArray], bool] | None
    arrow: pa.Schema
    nulls: set[str] = field(default_factory=set)

    def note_nulls(self, columns: Columns) -> None:
        """Note which of the columns, found in objects, hold nothing but nulls."""
        found = [name for name, type in columns.items() if type == UNKNOWN and name not in self.columns]
        self.nulls.update(found[: _MOST_NULLS - len(self.nulls)])


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


def spelt_schema(columns: Columns, objects: Sequence[Any] | None) -> pa.Schema:
    """Return the schema to read JSON with.

    Dates and times are numbers or texts, as the objects spell them; without objects they are numbers.
    """
    return pa.schema([(name, _spelt(type, _members(objects, name))) for name, type in columns.items()])


def _spelt(type: Type, values: Sequence[Any] | None) -> pa.DataType:
    match type:
        case Primitive() if type in _NUMBERS:
            return _NUMBERS[type] if values is None or any(isinstance(value, int) for value in values) else pa.string()
        case Primitive() if type in _TEXTS:
            return pa.string()
        case List(item):
            lists = None if values is None else [value for value in values if isinstance(value, list)]
            return pa.list_(_spelt(item, lists and [*chain.from_iterable(lists)]))
        case Struct(fields):
            return pa.struct(list(spelt_schema(fields, values)))
        case Map(value):
            return pa.list_(pa.struct([("key", pa.string()), ("value", _spelt(value, values))]))
    return arrow_type(type)


def _members(objects: Sequence[Any] | None, name: str) -> Sequence[Any] | None:
    return None if objects is None else [value.get(name) for value in objects if isinstance(value, dict)]
