"""Columns that JSON objects are read into, with all that every batch asks of them.

JSON lacks dates, decimals, UUIDs, maps and narrow numbers. A column of such a type is *pinned*: it is read as it is
spelt in JSON (as texts, or as numbers) and converted whole by `pinned.py`. So is every column that the user gives, or a
record's own schema: `given`, in all of this room. A pinned column never widens: a value that does not fit refuses its
record (`json_values.py` finds which).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
import pyarrow as pa

from s3lake.schema.arrow import arrow_type, to_arrow
from s3lake.schema.json import INFERRED
from s3lake.schema.types import (
    MOST_DIGITS,
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
from s3lake.schema.unite import joined, unite

Spelling = Literal["text", "number"]
"""How dates, times and timestamps are spelt in JSON."""

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
        decimals=None if has_map else _decimals_of(types),
        arrow=to_arrow(types),
        spelt={"text": _spelt_schema(types, "text"), "number": _spelt_schema(types, "number")},
    )


def _is_foreign(leaf: Primitive | Decimal | Unknown) -> bool:
    """Whether JSON shows no such type by itself."""
    return leaf != UNKNOWN and leaf not in INFERRED


def is_pinned(leaf: Primitive | Decimal, given: Type) -> bool:
    """Whether a type without others inside does not follow the data."""
    return given != UNKNOWN or leaf not in INFERRED


def fitted(known: Columns, seen: Columns, given: Columns, path: str = "") -> Columns:
    """Known columns united with what JSON showed; pinned ones stay as they are.

    Raises:
        Conflict: a field's types have nothing in common.
    """
    united = dict(known)
    for name, type in seen.items():
        united[name] = _fitted(known.get(name, UNKNOWN), type, given.get(name, UNKNOWN), joined(path, name))
    return united


def _fitted(known: Type, seen: Type, given: Type, path: str) -> Type:
    match known, seen:
        case Map(), _:
            return known
        case Primitive() | Decimal(), _ if is_pinned(known, given):
            return known
        case Struct(fields), Struct(seen_fields):
            return Struct(fitted(fields, seen_fields, fields_of(given), path))
        case List(item), List(seen_item):
            return List(_fitted(item, seen_item, item_of(given), f"{path}[]"))
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


# pyarrow's reader of JSON multiplies a decimal to its column's scale without looking at overflow: 44696973661389609 as
# decimal(38,30) silently becomes another number, and the text "1e-41" becomes zero. So each decimal's text is looked at
# first; what is not plainly safe is left to `json_values.py`, which computes exactly.

_NULL = msgspec.Raw(b"null")
_Probe = tuple[Any, Callable[[Any], Iterator[bool]]]
"""What msgspec decodes only the decimals of a value with, as texts, and what says of each whether it is safe."""


def _decimals_of(columns: Columns) -> Callable[[pa.BinaryArray], bool] | None:
    probe = fold(Struct(columns), _probe_leaf, _probe_list, _probe_struct, lambda value: value)
    if probe is None:
        return None
    decode, leaves = msgspec.json.Decoder(probe[0]).decode, probe[1]

    def are_safe(values: pa.BinaryArray) -> bool:
        try:
            return all(all(leaves(decode(value))) for value in values.to_pylist())
        except msgspec.DecodeError:
            return False

    return are_safe


def _probe_leaf(leaf: Primitive | Decimal | Unknown) -> _Probe | None:
    if not isinstance(leaf, Decimal):
        return None
    # No exponent, and room for the column's scale behind the digits that are there.
    digits = leaf.precision - leaf.scale
    whole = rf"\d{{1,{digits}}}" if digits else "0"
    plain = re.compile(rf'"?-?{whole}(?:\.\d{{1,{MOST_DIGITS - 1}}})?"?|null'.encode()).fullmatch
    return msgspec.Raw, lambda raw: iter([plain(bytes(raw)) is not None])


def _probe_list(item: _Probe | None) -> _Probe | None:
    if item is None:
        return None
    decoded, of_item = item

    def leaves(values: Any) -> Iterator[bool]:
        for value in values or ():
            yield from of_item(value)

    return list[decoded] | None, leaves  # type: ignore[valid-type]


def _probe_struct(fields: dict[str, _Probe | None]) -> _Probe | None:
    probes = [(name, *probe) for name, probe in fields.items() if probe is not None]
    if not probes:
        return None
    # Names of fields need be no names of Python's.
    members = [
        (f"f{at}", decoded, _NULL if decoded is msgspec.Raw else None) for at, (_, decoded, _) in enumerate(probes)
    ]
    probe = msgspec.defstruct("Probe", members, rename={f"f{at}": name for at, (name, _, _) in enumerate(probes)})
    attributes = [(f"f{at}", of_field) for at, (_, _, of_field) in enumerate(probes)]

    def leaves(value: Any) -> Iterator[bool]:
        if value is not None:
            for attribute, of_field in attributes:
                yield from of_field(getattr(value, attribute))

    return probe | None, leaves
