"""Avro by its specification, in plain Python: what a datum is, as Kafka Connect's JSON with a schema says it.

The writer reads with fastavro; this shares nothing with it. A union of several types is a struct with a field for each,
a decimal is base64 of its unscaled number, times are numbers, numbers that JSON does not have are texts.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from s3lake.verify import projection

_Read = Callable[[bytes, int], tuple[Any, int]]
"""Takes data and where to begin; gives the value and where it ends."""

_LOGICAL = "org.apache.kafka.connect.data."
_DATES = {("int", "date"): "Date", ("int", "time-millis"): "Time"} | {
    ("long", f"{local}timestamp-millis"): "Timestamp" for local in ("", "local-")
}
_FINER = {
    ("long", "time-micros"): "time_us",
    ("long", "timestamp-micros"): "timestamp_us",
    ("long", "local-timestamp-micros"): "timestamp_us",
    ("long", "timestamp-nanos"): "timestamp_ns",
    ("long", "local-timestamp-nanos"): "timestamp_ns",
    ("long", "io.debezium.time.MicroTime"): "time_us",
    ("long", "io.debezium.time.MicroTimestamp"): "timestamp_us",
    ("long", "io.debezium.time.NanoTimestamp"): "timestamp_ns",
    ("long", "io.debezium.time.Timestamp"): {"type": "long", "logicalType": "timestamp-millis"},
    ("int", "io.debezium.time.Time"): {"type": "int", "logicalType": "time-millis"},
    ("int", "io.debezium.time.Date"): {"type": "int", "logicalType": "date"},
}
"""What Connect has no word for, and Debezium's words, as `_PLAIN` and `_DATES` have them."""
_TYPES = {
    "boolean": "boolean",
    "int": "int32",
    "long": "int64",
    "float": "float",
    "double": "double",
    "bytes": "bytes",
    "string": "string",
}


class Compiled(NamedTuple):
    """A schema: Connect's, None where there is only null, and how its data is read."""

    schema: dict[str, Any] | None
    read: _Read


class BadDatum(ValueError):
    """The data is none of its schema."""


def compiled(text: str, references: Sequence[str], *, exact: bool = False) -> Compiled:
    """A schema with those that it refers to; `exact` with the times that Connect has no word for.

    Raises:
        ValueError, LookupError, TypeError: it is none.
    """
    named: dict[str, Compiled] = {}
    schemas = [_loaded(one) for one in (*references, text)]
    return [_of(_finer(one) if exact else one, "", named) for one in schemas][-1]


def _finer(schema: Any) -> Any:
    if isinstance(schema, list):
        return list(map(_finer, schema))
    if not isinstance(schema, dict):
        return schema
    physical, name = schema.get("type"), schema.get("logicalType") or schema.get("connect.name")
    time = _FINER.get((physical, name)) if isinstance(physical, str) and isinstance(name, str) else None
    return time or {member: _finer(one) for member, one in schema.items()}


def datum(schema: Compiled, data: bytes) -> Any:
    """The value that `data` is.

    Raises:
        BadDatum: it is none.
    """
    try:
        value, end = schema.read(data, 0)
    except (IndexError, struct.error, ValueError) as error:
        raise BadDatum(str(error)) from None
    if end != len(data):
        raise BadDatum(f"{len(data) - end} bytes are left")
    return value


def _loaded(text: str) -> Any:
    return text.strip() if text.strip() in {*_TYPES, "null"} else json.loads(text)


def _of(schema: Any, space: str, named: dict[str, Compiled]) -> Compiled:
    if isinstance(schema, list):
        return _union(schema, space, named)
    if isinstance(schema, str):
        return _PLAIN[schema] if schema in _PLAIN else _named(schema, space, named)
    type_name = schema["type"]
    if not isinstance(type_name, str):
        return _of(type_name, space, named)
    if type_name == "array":
        return _array(_of(schema["items"], space, named))
    if type_name == "map":
        return _map(_of(schema["values"], space, named))
    if type_name in ("record", "error", "enum", "fixed"):
        name = _full(schema, space)
        if type_name == "enum":
            named[name] = Compiled({"type": "string"}, _enum(schema["symbols"]))
        elif type_name == "fixed":
            named[name] = _logical(schema, type_name, _fixed(schema["size"]))
        else:
            named[name] = _record(schema, name, named)
        return named[name]
    return (
        _logical(schema, type_name, _PLAIN[type_name].read) if type_name in _PLAIN else _named(type_name, space, named)
    )


def _full(schema: Mapping[str, Any], space: str) -> str:
    name: str = schema["name"]
    space = schema.get("namespace", space)
    return name if "." in name or not space else f"{space}.{name}"


def _named(name: str, space: str, named: dict[str, Compiled]) -> Compiled:
    return named.get(f"{space}.{name}") or named[name]


def _logical(schema: Mapping[str, Any], physical: str, read: _Read) -> Compiled:
    logical, scale, precision = schema.get("logicalType"), schema.get("scale", 0), schema.get("precision", 0)
    if name := _DATES.get((physical, str(logical))):
        return Compiled({"type": _TYPES[physical], "name": _LOGICAL + name}, read)
    if logical == "decimal" and physical in ("bytes", "fixed") and 0 <= scale <= precision > 0:
        return Compiled({"type": "bytes", "name": f"{_LOGICAL}Decimal", "parameters": {"scale": str(scale)}}, read)
    if logical == "uuid" and physical == "fixed" and schema["size"] == 16:
        return Compiled({"type": "uuid"}, _then(read, lambda text: str(UUID(bytes=base64.b64decode(text)))))
    if logical == "uuid" and physical == "string":
        return Compiled({"type": "uuid"}, read)
    return Compiled({"type": _TYPES.get(physical, "bytes")}, read)


def _record(schema: Mapping[str, Any], name: str, named: dict[str, Compiled]) -> Compiled:
    space = name.rpartition(".")[0]
    fields = [(field["name"], _of(field["type"], space, named)) for field in schema["fields"]]
    described = [{"field": name, "optional": True, **field.schema} for name, field in fields if field.schema]

    def read(data: bytes, at: int) -> tuple[Any, int]:
        values = {}
        for name, field in fields:
            value, at = field.read(data, at)
            if field.schema:
                values[name] = value
        return values, at

    return Compiled({"type": "struct", "name": name, "fields": described}, read)


def _union(schema: Sequence[Any], space: str, named: dict[str, Compiled]) -> Compiled:
    branches = [_of(one, space, named) for one in schema]
    some = [(one, branch_of) for one, branch_of in zip(schema, branches, strict=True) if branch_of.schema]
    names = _names([one for one, _ in some], space, named) if len(some) > 1 else []
    wraps = iter(names)
    wrapped = [next(wraps) if branch_of.schema and names else None for branch_of in branches]

    def read(data: bytes, at: int) -> tuple[Any, int]:
        branch, at = _long(data, at)
        if branch < 0:
            raise BadDatum(f"branch {branch}")
        value, at = branches[branch].read(data, at)
        name = wrapped[branch]
        return (value if name is None else {name: value}), at

    if not names:
        return Compiled(some[0][1].schema if some else None, read)
    described = [
        {"field": name, "optional": True, **(one.schema or {})} for name, (_, one) in zip(names, some, strict=True)
    ]
    return Compiled({"type": "struct", "fields": described}, read)


def _names(branches: Sequence[Any], space: str, named: Mapping[str, Compiled]) -> list[str]:
    full = []
    for branch in branches:
        while isinstance(branch, dict) and not isinstance(branch["type"], str):
            branch = branch["type"]
        if isinstance(branch, str):
            full.append(f"{space}.{branch}" if f"{space}.{branch}" in named else branch)
        else:
            full.append(_full(branch, space) if "name" in branch else branch["type"])
    short = [name.rpartition(".")[2] for name in full]
    return [long.replace(".", "_") if short.count(name) > 1 else name for name, long in zip(short, full, strict=True)]


def _array(items: Compiled) -> Compiled:
    return Compiled({"type": "array", "items": items.schema}, _blocks(items.read))


def _map(values: Compiled) -> Compiled:
    def entry(data: bytes, at: int) -> tuple[Any, int]:
        name, at = _text(data, at)
        value, at = values.read(data, at)
        return (name, value), at

    described = {"type": "map", "keys": {"type": "string"}, "values": values.schema}
    return Compiled(described, _then(_blocks(entry), dict))


def _blocks(item: _Read) -> _Read:
    def read(data: bytes, at: int) -> tuple[Any, int]:
        items: list[Any] = []
        while True:
            count, at = _long(data, at)
            if count == 0:
                return items, at
            if count < 0:  # then the block's size in bytes follows
                count, (_, at) = -count, _long(data, at)
            for _ in range(count):
                value, at = item(data, at)
                items.append(value)

    return read


def _enum(symbols: Sequence[str]) -> _Read:
    def read(data: bytes, at: int) -> tuple[Any, int]:
        number, at = _long(data, at)
        if number < 0:
            raise BadDatum(f"symbol {number}")
        return symbols[number], at

    return read


def _fixed(size: int) -> _Read:
    return _then(partial(_cut, size=size), _base64)


def _cut(data: bytes, at: int, size: int) -> tuple[bytes, int]:
    if not 0 <= size <= len(data) - at:
        raise BadDatum(f"{size} bytes of {len(data) - at}")
    return data[at : at + size], at + size


def _long(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at
        shift += 7


def _bytes(data: bytes, at: int) -> tuple[bytes, int]:
    size, at = _long(data, at)
    return _cut(data, at, size)


def _text(data: bytes, at: int) -> tuple[str, int]:
    encoded, at = _bytes(data, at)
    return encoded.decode(), at


def _then(read: _Read, change: Callable[[Any], Any]) -> _Read:
    def both(data: bytes, at: int) -> tuple[Any, int]:
        value, at = read(data, at)
        return change(value), at

    return both


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _number(layout: str) -> _Read:
    unpack, size = struct.Struct(layout).unpack_from, struct.calcsize(layout)

    def read(data: bytes, at: int) -> tuple[Any, int]:
        (value,) = unpack(data, at)
        return projection.plain(value), at + size

    return read


_PLAIN = {
    "null": Compiled(None, lambda _, at: (None, at)),
    "boolean": Compiled({"type": "boolean"}, lambda data, at: (data[at] != 0, at + 1)),
    "int": Compiled({"type": "int32"}, _long),
    "long": Compiled({"type": "int64"}, _long),
    "float": Compiled({"type": "float"}, _number("<f")),
    "double": Compiled({"type": "double"}, _number("<d")),
    "bytes": Compiled({"type": "bytes"}, _then(_bytes, _base64)),
    "string": Compiled({"type": "string"}, _text),
    **{name: Compiled({"type": name}, _long) for name in ("time_us", "timestamp_us", "timestamp_ns")},
}
