"""Kafka Connect's JSON with a schema, `{"schema": …, "payload": …}`: what such a value means.

Logical types are spelled as Connect's JSON converter does: a Decimal is base64 of its unscaled number (or a number), a
Date days, a Time milliseconds of the day, a Timestamp milliseconds since 1970, bytes are base64.
"""

import base64
import binascii
import json
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import Any

import msgspec

from s3lake.schema import types
from s3lake.schema.types import List, Map, Primitive, Struct, Type
from s3lake.verify import projection


class _Enveloped(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    schema: msgspec.Raw
    payload: msgspec.Raw


Meaning = Callable[[Any], Any]
"""Takes a payload decoded from JSON."""

_enveloped = msgspec.json.Decoder(_Enveloped)
_numbers = msgspec.json.Decoder(float_hook=Decimal)
_plainly = msgspec.json.Encoder(decimal_format="number").encode
_SHORTEST = "shortest"
"""A name of floats that have the fewest digits in JSON."""
_LOGICAL = "org.apache.kafka.connect.data."
_PRIMITIVES = {
    "boolean": Primitive.BOOL,
    "int8": Primitive.INT32,
    "int16": Primitive.INT32,
    "int32": Primitive.INT32,
    "int64": Primitive.INT64,
    "float": Primitive.FLOAT,
    "float32": Primitive.FLOAT,
    "double": Primitive.DOUBLE,
    "float64": Primitive.DOUBLE,
    "string": Primitive.STRING,
    "bytes": Primitive.BINARY,
    # Of Avro: Connect has none.
    **{str(one): one for one in (Primitive.UUID, Primitive.TIME_US, Primitive.TIMESTAMP_US, Primitive.TIMESTAMP_NS)},
    f"{_LOGICAL}Date": Primitive.DATE,
    f"{_LOGICAL}Time": Primitive.TIME,
    f"{_LOGICAL}Timestamp": Primitive.TIMESTAMP,
}


def exactly(text: bytes | str | msgspec.Raw) -> Any:
    """JSON decoded with every fraction as a Decimal.

    Raises:
        ValueError: it is no JSON.
    """
    try:
        return _numbers.decode(text)
    except msgspec.DecodeError:
        return json.loads(text if isinstance(text, str) else bytes(text), parse_float=Decimal)


def with_shortest_floats(schema: Any) -> Any:
    """A schema whose floats have the fewest digits in JSON that read back, not those of the doubles next to them."""
    if isinstance(schema, list):
        return list(map(with_shortest_floats, schema))
    if not isinstance(schema, dict):
        return schema
    named = {"name": _SHORTEST} if schema.get("type") == "float" else {}
    return {part: with_shortest_floats(inner) for part, inner in schema.items()} | named


def exact(value: Any) -> bytes:
    """JSON of a decoded value, every Decimal a number, without blanks."""
    return _plainly(value)


def lenient(text: bytes) -> Any:
    """JSON decoded by the reader that takes numbers beyond a double.

    Raises:
        ValueError: it is no JSON.
    """
    return json.loads(text)


def unwrapped(value: bytes) -> tuple[bytes | None, Any]:
    """The schema's text and the decoded payload of a value; no schema where it is plain JSON.

    Raises:
        ValueError: it is no JSON.
    """
    try:
        enveloped = _enveloped.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None, exactly(value)
    schema = bytes(enveloped.schema)
    if not schema.startswith(b"{"):
        return None, exactly(enveloped.payload if schema == b"null" else value)
    return schema, exactly(enveloped.payload)


def without_schema(value: bytes) -> bytes | None:
    """The text of a payload that no schema comes with; None where one does."""
    try:
        enveloped = _enveloped.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return value
    schema = bytes(enveloped.schema)
    if schema.startswith(b"{"):
        return None
    return bytes(enveloped.payload) if schema == b"null" else value


@lru_cache(4096)
def type_of(schema: bytes) -> Type:
    """The type of the column that holds what this schema describes."""
    return _type(json.loads(schema))


@lru_cache(4096)
def meaning_of(schema: bytes, *, tabular: bool, base64_decimals: bool = False) -> Meaning:
    """How a payload of this schema becomes plain JSON: defaults filled in, Decimals as numbers or in base64.

    In a table a map whose keys are no strings is a list of `key` and `value`, in JSON a list of pairs.
    """
    return _meaning(json.loads(schema), tabular, _in_base64 if base64_decimals else _unscaled)


def meaning(value: bytes, *, base64_decimals: bool = False) -> Any:
    """What a value means, in the canonical form of JSON.

    Raises:
        ValueError: it is no JSON.
    """
    schema, payload = unwrapped(value)
    return plain(
        payload if schema is None else meaning_of(schema, tabular=False, base64_decimals=base64_decimals)(payload)
    )


def plain(value: Any) -> Any:
    """The canonical form of decoded JSON: numbers by their worth, objects without the order of their members.

    A member that is null is as good as none: Connect's own converter writes every field that a schema has.
    """
    if isinstance(value, dict):
        return {name: plain(value[name]) for name in sorted(value) if value[name] is not None}
    if isinstance(value, list):
        return list(map(plain, value))
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return {"number": projection.number(Decimal(value))}
    return value


def _type(schema: dict[str, Any]) -> Type:
    match schema["type"]:
        case "struct":
            return Struct({field["field"]: _type(field) for field in schema["fields"]})
        case "array":
            return List(_type(schema["items"]))
        case "map" if schema["keys"]["type"] == "string":
            return Map(_type(schema["values"]))
        case "map":
            return List(Struct({"key": _type(schema["keys"]), "value": _type(schema["values"])}))
    name = schema.get("name", "")
    if name == f"{_LOGICAL}Decimal":
        return types.Decimal(types.MOST_DIGITS, int(schema.get("parameters", {}).get("scale", 0)))
    return _PRIMITIVES.get(name) or _PRIMITIVES.get(schema["type"], Primitive.STRING)


def _meaning(schema: dict[str, Any], tabular: bool, decimals: "_Decimals") -> Meaning:
    inner, default = _present(schema, tabular, decimals), schema.get("default")

    def read(value: Any) -> Any:
        if value is None:
            value = default
        return None if value is None else inner(value)

    return read


def _present(schema: dict[str, Any], tabular: bool, decimals: "_Decimals") -> Meaning:
    match schema["type"]:
        case "struct":
            fields = {field["field"]: _meaning(field, tabular, decimals) for field in schema["fields"]}
            return lambda value: (
                {name: read(value.get(name)) for name, read in fields.items()}
                if type(value) is dict
                else projection.misfit(value)
            )
        case "array":
            element = _meaning(schema["items"], tabular, decimals)
            return lambda value: [element(one) for one in value] if type(value) is list else projection.misfit(value)
        case "map":
            return _map(schema, tabular, decimals)
    if schema.get("name") == f"{_LOGICAL}Decimal":
        return decimals(schema)
    return _shortest if schema.get("name") == _SHORTEST and not tabular else lambda value: value


def _map(schema: dict[str, Any], tabular: bool, decimals: "_Decimals") -> Meaning:
    by_name = schema["keys"]["type"] == "string"
    key, value = _meaning(schema["keys"], tabular, decimals), _meaning(schema["values"], tabular, decimals)

    def read(payload: Any) -> Any:
        if type(payload) is dict:
            return {name: value(one) for name, one in payload.items()}
        if type(payload) is not list:
            return projection.misfit(payload)
        pairs = [(key(one), value(other)) for one, other in payload]
        if by_name:
            return dict(pairs)
        return [{"key": one, "value": other} if tabular else [one, other] for one, other in pairs]

    return read


def _shortest(value: Any) -> Any:
    return Decimal(repr(projection.shortest(float(value)))) if isinstance(value, int | Decimal) else value


def _unscaled(schema: dict[str, Any]) -> Meaning:
    scale = int(schema.get("parameters", {}).get("scale", 0))

    def read(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        try:
            unscaled = int.from_bytes(base64.b64decode(value, validate=True), "big", signed=True)
        except (binascii.Error, ValueError):
            return projection.misfit(value)
        return projection.scaled(unscaled, scale)

    return read


_Decimals = Callable[[dict[str, Any]], Meaning]


def _in_base64(schema: dict[str, Any]) -> Meaning:
    scale, number = int(schema.get("parameters", {}).get("scale", 0)), _unscaled(schema)

    def read(value: Any) -> Any:
        scaled = number(value)
        if not isinstance(scaled, int | Decimal):
            return scaled
        unscaled = int(projection.scaled(1, -scale) * scaled)
        size = 1
        while not -(1 << 8 * size - 1) <= unscaled < 1 << 8 * size - 1:
            size += 1
        return base64.b64encode(unscaled.to_bytes(size, "big", signed=True)).decode()

    return read
