"""Decimals in JSON as Kafka Connect writes them by default: base64 of the unscaled number, of which a schema says the
scale.
"""

from __future__ import annotations

import base64
import decimal
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import pyarrow as pa

from s3lake.convert.cells import Column
from s3lake.convert.gate import Refusals
from s3lake.schema.types import Decimal, Primitive, Type, Unknown, fold

_Spell = Callable[[Any], Any]

_EXACT = decimal.Context(prec=1_000, traps=[decimal.InvalidOperation])
_decode = msgspec.json.Decoder(float_hook=decimal.Decimal).decode
_encode = msgspec.json.Encoder(decimal_format="number").encode


def in_base64(column: Column, refused: Refusals) -> Column:
    """JSON texts with the decimals of their schemas in base64; those refused, or without a schema, stay as they are."""
    if column.schemas is None:
        return column
    spells = [_of(schema.type) for schema in column.schemas.distinct]
    if not any(spells):
        return column
    texts = column.data.to_pylist()
    for row, code in enumerate(column.schemas.codes.tolist()):
        spell = spells[code] if code >= 0 else None
        if spell is not None and texts[row] is not None and row not in refused:
            texts[row] = _encode(spell(_decode(texts[row])))
    return replace(column, data=pa.array(texts, pa.binary()))


def _of(type: Type) -> _Spell | None:
    """What spells the decimals in a value of this type anew; None where there are none."""
    return fold(type, _leaf, _list, _struct, _map)


def _leaf(leaf: Primitive | Decimal | Unknown) -> _Spell | None:
    if not isinstance(leaf, Decimal):
        return None
    scale = leaf.scale

    def spell(value: Any) -> Any:
        if value is None:
            return None
        unscaled = decimal.Decimal(value).scaleb(scale, _EXACT)
        # More digits after the point than any column has: a number says them all.
        return base64_of(int(unscaled)) if unscaled == unscaled.to_integral_value() else value

    return spell


def base64_of(unscaled: int) -> str:
    """A whole number in two's complement, as short as Java's BigInteger has it."""
    size = (unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1
    return base64.b64encode(unscaled.to_bytes(size, "big", signed=True)).decode()


def _list(item: _Spell | None) -> _Spell | None:
    return item and (lambda value: None if value is None else list(map(item, value)))


def _struct(fields: dict[str, _Spell | None]) -> _Spell | None:
    spells = {name: spell for name, spell in fields.items() if spell is not None}
    places = {name: at for at, name in enumerate(fields)}
    if not spells:
        return None

    def spell_members(value: Any) -> Any:
        # An entry of a map whose keys are no texts is a pair in JSON, and its `key` and `value` in a table.
        at = places if isinstance(value, list | tuple) else {name: name for name in spells}
        for name, spell in spells.items():
            if isinstance(value, list) or name in (value or ()):
                value[at[name]] = spell(value[at[name]])
        return value

    return spell_members


def _map(value: _Spell | None) -> _Spell | None:
    return value and (lambda members: members and {name: value(one) for name, one in members.items()})
