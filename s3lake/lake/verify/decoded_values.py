"""Keys and values as plain Python, and the two forms in which both sides of a comparison are digested.

A decoded value is None, bool, int, float, Decimal, str, bytes, list or dict. Dates and times are integers in the unit
of their schema. Four classes keep what Python does not tell apart. Numbers are equal by value, exactly.
"""

from __future__ import annotations

import base64
import decimal
import json
import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from hashlib import blake2b
from typing import Any
from uuid import UUID

import msgspec

Decode = Callable[[bytes], Any]


DIGEST_BYTES = 16
EXACT = decimal.Context(prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
_LONGEST_INTEGER = 4000
"""Digits up to which a text becomes an integer of Python, which refuses more than 4300."""
UNDECODABLE = (struct.error, ValueError, ArithmeticError, RecursionError, LookupError, TypeError, AttributeError)
"""Raised by decoders for bytes that are not a value."""
_LARGEST = 2**63
_pack = msgspec.msgpack.Encoder(order="sorted", decimal_format="number").encode
_compact = msgspec.json.Encoder(decimal_format="number").encode


class BoundlessNumber(float):
    """A number whose exponent has more digits than a Decimal's: as a double it is 0 or infinite."""

    def __init__(self, text: str) -> None:
        self.text = text


def _read_number(text: str) -> Decimal | BoundlessNumber:
    try:
        return Decimal(text)
    except ArithmeticError:
        return BoundlessNumber(text)


_decode = msgspec.json.Decoder(float_hook=_read_number).decode


class SinglePrecision(float):
    """A number of 32 bits: JSON has fewer digits of it."""


class Uuid(str):
    """A text that is a UUID by its schema."""

    __slots__ = ()


class MapValue(dict):  # type: ignore[type-arg]
    """A map: a null in it is an entry, unlike a null field."""


class Pairs(list):  # type: ignore[type-arg]
    """The entries of a map whose keys are not strings: pairs in JSON, structs in columns."""


@dataclass(frozen=True)
class Decoded:
    """A key or value that a sink's transforms left with a schema, decoded by it."""

    value: Any


class PlainJson(bytes):
    """A key or value that they left without a schema, next to others that have one: JSON."""


class Mismatch(ValueError):
    """A value that no row of a file can equal."""


def return_unchanged(value: Any) -> Any:
    """Return a value unchanged."""
    return value


def parse_exact_json(text: bytes | str) -> Any:
    """Decode JSON; every number with a fraction is a Decimal, or a BoundlessNumber, and so are very long integers.

    Raises:
        ValueError: it is not JSON.
    """
    try:
        return _decode(text)
    except msgspec.DecodeError:  # numbers beyond 64 bits, lone surrogates, NaN
        return json.loads(text, parse_float=_read_number, parse_int=_read_integer, parse_constant=Decimal)


def _read_integer(text: str) -> int | Decimal:
    return int(text) if len(text) <= _LONGEST_INTEGER else Decimal(text)


def compact_json(value: Any) -> str:
    """Return JSON without blanks."""
    return _compact(value).decode()


def digest_bytes(data: bytes) -> bytes:
    """Return the digest of a text that is compared as it is."""
    return blake2b(data, digest_size=DIGEST_BYTES).digest()


def digest_row(row: Any) -> bytes:
    """Return the digest of a row in one of the two forms."""
    try:
        packed = _pack(row)
    except (OverflowError, ValueError, RecursionError):  # no file holds it: numbers beyond 64 bits, half a character
        packed = b"\0" + repr(row).encode(errors="backslashreplace")
    return blake2b(packed, digest_size=DIGEST_BYTES).digest()


def to_column_form(value: Any) -> Any:
    """Return a decoded value, or a cell of a column, as columns hold it: a null field is not a field."""
    of = type(value)
    if of is str or of is int or of is bool or of is bytes or value is None:
        return value
    if of is dict:
        return {name: to_column_form(inner) for name, inner in value.items() if inner is not None}
    if of is list:
        if value and type(value[0]) is tuple:  # a map of a file
            return [[name, to_column_form(inner)] for name, inner in sorted(value, key=lambda entry: str(entry[0]))]
        return [to_column_form(item) for item in value]
    if of is float or of is SinglePrecision or of is BoundlessNumber:
        return to_float_form(value)
    if of is Decimal:
        return _make_number(_format_digits(value))
    if of is MapValue:
        return [[name, to_column_form(value[name])] for name in sorted(value)]
    if of is Pairs:
        return [to_column_form({"key": key, "value": inner}) for key, inner in value]
    if of is Uuid or of is UUID:
        return _to_uuid_bytes(value)
    raise Mismatch(f"{of.__name__} is not a value of a record")


def to_float_form(value: float) -> Any:
    """Return a float as columns hold it: an integer if it is one, and one NaN of the many."""
    if value.is_integer():
        return int(value) if -_LARGEST <= value < _LARGEST else float(value)
    return float(value) if value == value else _make_number("NaN")


def to_json_form(value: Any) -> Any:
    """Return a decoded value, or parsed JSON, as Connect's JSON converter writes it, without null fields."""

    def convert(value: Any) -> Any:
        of = type(value)
        if of is str or of is bool or value is None:
            return value
        if of is int:
            return value if -_LARGEST <= value < _LARGEST else _make_number(_format_digits(Decimal(value)))
        if of is dict or of is MapValue:
            return {name: convert(inner) for name, inner in value.items() if inner is not None}
        if of is list:
            return [convert(item) for item in value]
        if of is Pairs:
            return [[convert(key), convert(inner)] for key, inner in value]
        if of is bytes:
            return base64.b64encode(value).decode()
        if of is Decimal:
            return _to_number(value)
        if of is Uuid:
            return str(value)
        if of is BoundlessNumber:
            return _make_number(value.text)
        if not math.isfinite(value):
            return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
        return _to_number(Decimal(_format_float32(value) if of is SinglePrecision else repr(value)))

    return convert(value)


def sort_json_texts(value: Any) -> Any:
    """Return a value in which texts of JSON, as Python writes it, have their keys in order, at any depth.

    Protobuf's maps have none, so such texts of hours that landed before differ from what they are today.
    """
    if isinstance(value, dict):
        return {name: sort_json_texts(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return list(map(sort_json_texts, value))
    if not isinstance(value, str) or value[:1] not in ("{", "["):
        return value
    try:
        parsed = json.loads(value)
        return json.dumps(parsed, sort_keys=True) if json.dumps(parsed) == value else value
    except (ValueError, RecursionError):
        return value


def _make_number(digits: str) -> msgspec.msgpack.Ext:
    """A number that msgpack has no exact type for; nothing else has this type."""
    return msgspec.msgpack.Ext(1, digits.encode())


def _to_number(value: Decimal) -> Any:
    if value == value.to_integral_value() and -_LARGEST <= value < _LARGEST:
        return int(value)
    return _make_number(_format_digits(value))


def _format_digits(value: Decimal) -> str:
    return str(EXACT.normalize(value)) if value else "0"


def _format_float32(value: float) -> str:
    import numpy as np

    return str(np.float32(value))


def _to_uuid_bytes(value: Any) -> bytes:
    try:
        return (value if isinstance(value, UUID) else UUID(str(value))).bytes
    except ValueError:
        raise Mismatch("it is not a UUID") from None
