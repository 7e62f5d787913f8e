"""JSON of Avro values that were read as columns: the texts that their records one by one would have.

A value is read for its JSON in its plainest type: a UUID is whatever text it is, and a time any number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s3lake.convert import avro_columns, json_text
from s3lake.convert import columns as kinds
from s3lake.convert.types import Type

Spell = Callable[[pa.Array], pa.BinaryArray]
"""Gives the texts of values, `null` for null."""

_NUMBERS = {"int32": "int32", "int64": "int64", "date": "int32", "time": "int32", "timestamp": "int64"}
_DIGITS = 38
_NAMES = {"nan": b'"NaN"', "inf": b'"Infinity"', "-inf": b'"-Infinity"'}
_encode = msgspec.json.Encoder(decimal_format="number").encode


class _OneByOne(Exception):
    """A schema has values whose texts only fastavro's can tell."""


@dataclass(frozen=True)
class Texts:
    """How values of a schema become JSON: read as columns, and these spelt."""

    decode: avro_columns.Decode
    spell: Spell


def compiled(plain: Any, kind: Type) -> Texts | None:
    """How values of a schema become JSON; None where they can only one by one.

    Args:
        plain: as `avro_schema.Node` has it.
        kind: of its column.
    """
    try:
        plainest, spell = _node(plain, kind)
    except _OneByOne:
        return None
    decode = avro_columns.compiled(plain, plainest)
    return Texts(decode, spell) if decode is not None else None


def _node(plain: Any, kind: Any) -> tuple[Any, Spell]:
    """The type that values are read in, and how they are spelt."""
    if kind is None:
        return None, lambda array: pa.repeat(pa.scalar(b"null", pa.binary()), len(array))
    if isinstance(kind, str):
        return _primitive(plain, kind)
    if isinstance(plain, list) and len([one for one in plain if one != "null"]) == 1:
        return _node(next(one for one in plain if one != "null"), kind)
    if "map" in kind:
        values, spell = _node(plain["values"], kind["map"])
        return {"map": values}, lambda array: _object(array, spell)
    if "list" in kind:
        items, spell = _node(plain["items"], kind["list"])
        return {"list": items}, lambda array: _between(array, b"[", spell(array.values), b"]")
    members = [one["fields"][0] for one in plain if one != "null"] if isinstance(plain, list) else plain["fields"]
    found = {one["name"]: _node(one["type"], kind["struct"].get(one["name"])) for one in members}
    fields = {name: inner for name, (inner, _) in found.items() if inner is not None}
    spells = {name: spell for name, (_, spell) in found.items()}
    return {"struct": fields}, lambda array: _members(array, spells)


def _primitive(plain: Any, kind: str) -> tuple[str, Spell]:
    if isinstance(plain, list):
        plain = next(one for one in plain if one != "null")
    if kind in _NUMBERS:
        return _NUMBERS[kind], json_text.numbers
    match kind:
        case "bool":
            return kind, _booleans
        case "float" | "double":
            return kind, _floats
        case "string":
            return kind, _quoted
        case "uuid" if plain == "string":
            return "string", _quoted
        case "binary":
            return kind, json_text.quoted_base64
    digits = kinds.digits_of(kind)
    if digits is None or digits == (_DIGITS, _DIGITS):  # which stands for more digits after the point too
        raise _OneByOne
    return kind, lambda array: _listed(array.to_pylist())


def _booleans(array: pa.Array) -> pa.BinaryArray:
    texts = pc.if_else(array, pa.scalar(b"true", pa.binary()), pa.scalar(b"false", pa.binary()))
    return pc.fill_null(texts, b"null") if array.null_count else texts


def _quoted(array: pa.Array) -> pa.BinaryArray:
    return json_text.quoted(array.cast(pa.binary()))


def _floats(array: pa.Array) -> pa.BinaryArray:
    texts = _listed(array.to_pylist())  # where null stands for what is no number too
    odd = pc.fill_null(pc.invert(pc.is_finite(array)), False)
    if not pc.any(odd).as_py():
        return texts
    names = [_NAMES[str(one)] for one in array.filter(odd).to_pylist()]
    return pc.replace_with_mask(texts, odd, pa.array(names, pa.binary()))


def _listed(values: Sequence[Any]) -> pa.BinaryArray:
    """Numbers, whose texts hold no comma, in one call."""
    text = _encode(values)
    commas = np.flatnonzero(np.frombuffer(text, np.uint8) == ord(","))
    starts, ends = np.concatenate(([0], commas)) + 1, np.append(commas, len(text) - 1)
    return avro_columns.every_second(starts, ends, pa.py_buffer(text)) if values else pa.array([], pa.binary())


def _object(array: pa.MapArray, spell: Spell) -> pa.BinaryArray:
    return _between(array, b"{", json_text.joined(_quoted(array.keys), b":", spell(array.items)), b"}")


def _between(array: pa.Array, opening: bytes, items: pa.BinaryArray, closing: bytes) -> pa.BinaryArray:
    lists = pa.ListArray.from_arrays(array.offsets, items)
    return json_text.or_null(json_text.joined(opening, pc.binary_join(lists, b","), closing), array)


def _members(array: pa.StructArray, spells: Mapping[str, Spell]) -> pa.BinaryArray:
    pieces: list[json_text.Piece] = []
    for name, spell in spells.items():
        pieces.append((b"," if pieces else b"{") + msgspec.json.encode(name) + b":")
        position = array.type.get_field_index(name)
        pieces.append(spell(array.field(position)) if position >= 0 else b"null")
    return json_text.or_null(json_text.joined(*pieces, b"}"), array)
