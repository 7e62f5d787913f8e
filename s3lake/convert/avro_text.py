"""JSON of Avro values that were read as columns: the texts that their records one by one would have.

A value is read for its JSON in its plainest type: a UUID is whatever text it is, and a time any number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from s3lake.convert import avro_columns, json_text
from s3lake.schema.types import MOST_DIGITS, UNKNOWN, Decimal, List, Map, Primitive, Struct, Type, Unknown, fold

Spell = Callable[[pa.Array], pa.BinaryArray]
"""Gives the texts of values, `null` for null."""

_NUMBERS = {
    Primitive.INT32: Primitive.INT32,
    Primitive.INT64: Primitive.INT64,
    Primitive.DATE: Primitive.INT32,
    Primitive.TIME: Primitive.INT32,
    Primitive.TIME_US: Primitive.INT64,
    Primitive.TIMESTAMP: Primitive.INT64,
    Primitive.TIMESTAMP_US: Primitive.INT64,
    Primitive.TIMESTAMP_NS: Primitive.INT64,
}


class _OneByOne(Exception):
    """A schema has values whose texts only fastavro's can tell."""


@dataclass(frozen=True)
class Texts:
    """How values of a schema become JSON: read as columns, and these spelt."""

    decode: avro_columns.Decode
    spell: Spell


def compiled(plain: Any, type: Type) -> Texts | None:
    """How values of a schema become JSON; None where they can only one by one.

    Args:
        plain: as `schema.avro.Node` has it.
        type: of its column.
    """
    try:
        plainest, spell = _node(plain, type)
    except _OneByOne:
        return None
    decode = avro_columns.compiled(plain, plainest)
    return Texts(decode, spell) if decode is not None else None


def spelling(type: Type) -> Spell:
    """How the values of a column are spelt, whatever they were read from; it holds no UUID."""
    return fold(type, _spelled_leaf, _spelled_list, _spelled_struct, _spelled_map)


def _spelled_leaf(leaf: Primitive | Decimal | Unknown) -> Spell:
    if isinstance(leaf, Unknown):
        return _nulls
    spell = _leaf(None, leaf)[1]
    return (lambda array: spell(array.cast(pa.int64()))) if leaf is Primitive.TIMESTAMP else spell


def _spelled_list(item: Spell) -> Spell:
    return partial(_items, item)


def _spelled_struct(fields: dict[str, Spell]) -> Spell:
    return partial(_members, fields)


def _spelled_map(value: Spell) -> Spell:
    return partial(_object, value)


def _node(plain: Any, type: Type) -> tuple[Type, Spell]:
    """The type that values are read in, and how they are spelt."""
    if isinstance(type, Unknown):
        return UNKNOWN, _nulls
    branches = [branch for branch in plain if branch != "null"] if isinstance(plain, list) else [plain]
    match type:
        case Primitive() | Decimal():
            return _leaf(branches[0], type)
        case Map(value):
            values, spell = _node(branches[0]["values"], value)
            return Map(values), _spelled_map(spell)
        case List(item):
            items, spell = _node(branches[0]["items"], item)
            return List(items), _spelled_list(spell)
        case Struct(fields):
            # A wide union has a branch for each field, and each branch is a record of that one field.
            is_union = len(branches) > 1
            members = [branch["fields"][0] for branch in branches] if is_union else branches[0]["fields"]
            nodes = {field["name"]: _node(field["type"], fields.get(field["name"], UNKNOWN)) for field in members}
            types = {name: inner for name, (inner, _) in nodes.items() if inner != UNKNOWN}
            spells = {name: spell for name, (_, spell) in nodes.items()}
            return Struct(types), _spelled_struct(spells)


def _leaf(plain: Any, leaf: Primitive | Decimal) -> tuple[Type, Spell]:
    if isinstance(leaf, Decimal):
        if leaf == Decimal(MOST_DIGITS, MOST_DIGITS):  # which stands for more digits after the point too
            raise _OneByOne
        return leaf, json_text.decimals
    if leaf in _NUMBERS:
        return _NUMBERS[leaf], json_text.numbers
    match leaf:
        case Primitive.BOOL:
            return leaf, _booleans
        case Primitive.FLOAT | Primitive.DOUBLE:
            return leaf, json_text.floats
        case Primitive.STRING:
            return leaf, _quoted
        case Primitive.UUID if plain == "string":
            return Primitive.STRING, _quoted
        case Primitive.BINARY:
            return leaf, json_text.quoted_base64
    raise _OneByOne


def _nulls(array: pa.Array) -> pa.BinaryArray:
    return pa.repeat(pa.scalar(b"null", pa.binary()), len(array))


def _booleans(array: pa.Array) -> pa.BinaryArray:
    texts = pc.if_else(array, pa.scalar(b"true", pa.binary()), pa.scalar(b"false", pa.binary()))
    return pc.fill_null(texts, b"null") if array.null_count else texts


def _quoted(array: pa.Array) -> pa.BinaryArray:
    return json_text.quoted(array.cast(pa.binary()))


def _items(spell: Spell, array: pa.ListArray) -> pa.BinaryArray:
    return _between(array, b"[", spell(array.values), b"]")


def _object(spell: Spell, array: pa.MapArray) -> pa.BinaryArray:
    return _between(array, b"{", json_text.joined(_quoted(array.keys), b":", spell(array.items)), b"}")


def _between(array: pa.Array, opening: bytes, items: pa.BinaryArray, closing: bytes) -> pa.BinaryArray:
    lists = pa.ListArray.from_arrays(array.offsets, items)
    return json_text.or_null(json_text.joined(opening, pc.binary_join(lists, b","), closing), array)


def _members(spells: Mapping[str, Spell], array: pa.StructArray) -> pa.BinaryArray:
    pieces: list[json_text.Piece] = []
    for name, spell in spells.items():
        pieces.append((b"," if pieces else b"{") + msgspec.json.encode(name) + b":")
        position = array.type.get_field_index(name)
        pieces.append(spell(array.field(position)) if position >= 0 else b"null")
    return json_text.or_null(json_text.joined(*pieces, b"}"), array)
