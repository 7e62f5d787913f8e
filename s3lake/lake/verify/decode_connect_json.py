"""Kafka Connect's JSON with its schema, `{"schema": …, "payload": …}`, as values."""

from __future__ import annotations

import base64
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import Any

import msgspec

from s3lake.lake.verify.decoded_values import (
    MapValue,
    Mismatch,
    Pairs,
    SinglePrecision,
    parse_exact_json,
    return_unchanged,
)

_Cast = Callable[[Any], Any]
_LOGICAL = "org.apache.kafka.connect.data."
_MISSING: Any = object()


class _Envelope(msgspec.Struct, forbid_unknown_fields=True):
    schema: msgspec.Raw
    payload: msgspec.Raw


_decode_envelope = msgspec.json.Decoder(_Envelope).decode


def decode_connect(
    data: bytes,
    plain: Callable[[bytes], Any],
    described: Callable[[Any], Any] = return_unchanged,
    *,
    has_floats: bool = True,
    null_to_default: bool = False,
) -> Any:
    """Decode a value by the schema that it brings.

    Args:
        data: the value as Kafka has it.
        plain: makes a value of JSON without a schema.
        described: what is done to a value that its schema has decoded.
        has_floats: True if numbers become floats and doubles by their schema; else they stay as they are in JSON.
        null_to_default: whether the files have the default of a schema where Kafka has a null.
    """
    try:
        envelope = _decode_envelope(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return plain(data)
    schema = bytes(envelope.schema)
    if schema == b"null":
        return plain(bytes(envelope.payload))
    cast = _build_payload_cast(schema, has_floats, null_to_default)
    return described(cast(parse_exact_json(bytes(envelope.payload))))


def is_null_payload(data: bytes, *, null_to_default: bool) -> bool:
    """Return whether a value comes with a schema, and is null by it."""
    try:
        envelope = _decode_envelope(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    schema = bytes(envelope.schema)
    if bytes(envelope.payload) != b"null":
        return False
    try:
        return schema == b"null" or _build_payload_cast(schema, True, null_to_default)(None) is None
    except (ValueError, TypeError, KeyError):
        return False


@lru_cache(4096)
def _build_payload_cast(schema: bytes, has_floats: bool, null_to_default: bool) -> _Cast:
    primitives: dict[str, _Cast] = _PRIMITIVES if has_floats else {"bytes": to_bytes}
    return _build_cast(parse_exact_json(schema), primitives, null_to_default)


def _build_cast(schema: dict[str, Any], primitives: dict[str, _Cast], null_to_default: bool) -> _Cast:
    """Return what makes a parsed payload a value: the default of what is missing, and of a null that cannot stay."""
    cast, default = _build_present(schema, primitives, null_to_default), schema.get("default")
    null_stays = schema.get("optional") is True and not null_to_default

    def cast_or_default(value: Any) -> Any:
        if value is _MISSING or (value is None and not null_stays):
            value = default
        return None if value is None else cast(value)

    return cast_or_default


def _build_present(schema: dict[str, Any], primitives: dict[str, _Cast], null_to_default: bool) -> _Cast:
    def build(part: dict[str, Any]) -> _Cast:
        return _build_cast(part, primitives, null_to_default)

    match schema["type"]:
        case "struct":
            fields = {field["field"]: build(field) for field in schema["fields"]}
            return lambda value: {name: cast(value.get(name, _MISSING)) for name, cast in fields.items()}
        case "array":
            item = build(schema["items"])
            return lambda value: [item(inner) for inner in _require_list(value)]
        case "map":
            key, inner = build(schema["keys"]), build(schema["values"])
            if schema["keys"]["type"] == "string":
                return lambda value: MapValue({name: inner(cell) for name, cell in _list_entries(value)})
            return lambda value: Pairs([(key(name), inner(cell)) for name, cell in _list_entries(value)])
        case "bytes" if schema.get("name") == f"{_LOGICAL}Decimal":
            scale = int(schema.get("parameters", {}).get("scale", 0))
            return lambda value: to_decimal(value, scale)
        case primitive:
            return primitives.get(primitive, return_unchanged)


def _require_list(value: Any) -> Any:
    if type(value) is not list:
        raise Mismatch("it is not a list")
    return value


def _list_entries(value: Any) -> Any:
    return value.items() if isinstance(value, dict) else _require_list(value)


def to_decimal(value: Any, scale: int) -> Decimal:
    """Return a decimal from base64 of its unscaled number, or from a number."""
    if isinstance(value, str):
        unscaled = int.from_bytes(base64.b64decode(value, validate=True), "big", signed=True)
        return Decimal(f"{unscaled}E{-scale}")
    return Decimal(value)


def to_double(value: Any) -> float:
    """Return a double from a number, or from the name of one that JSON does not have."""
    if isinstance(value, bool):
        raise Mismatch("a boolean is not a number")
    number = float(value)
    if isinstance(value, int) and value != number:
        raise Mismatch(f"{value} is not a double")
    return number


def to_float(value: Any) -> SinglePrecision:
    """Return a float of 32 bits from a number, or from the name of one that JSON does not have."""
    import numpy as np

    number = SinglePrecision(np.float32(to_double(value)))
    if isinstance(value, int) and value != float(number):
        raise Mismatch(f"{value} is not a float")
    return number


def to_bytes(value: Any) -> bytes:
    """Return the bytes of their base64."""
    return base64.b64decode(value, validate=True)


_PRIMITIVES: dict[str, _Cast] = {
    "bytes": to_bytes,
    "float": to_float,
    "float32": to_float,
    "double": to_double,
    "float64": to_double,
}
