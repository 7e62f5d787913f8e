"""Protobuf told as Kafka Connect's JSON with a schema, field by field out of Google's own messages.

Google's compiler and reader are shared with the writer, which fields there are and what becomes of them is not.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from google.protobuf import descriptor_pb2, json_format, message_factory
from google.protobuf.message import DecodeError

from s3lake.schema import protoc
from s3lake.schema.registry import Connection, client
from s3lake.verify import connect, projection

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor, OneofDescriptor

_HEADER = 5
_NAMES = ("", *("double", "float", "int64", "int64", "int32", "int64", "int64", "boolean", "string", "", ""))
_MORE = ("bytes", "int64", "string", "int32", "int64", "int32", "int64")
_TYPES = dict(enumerate((*_NAMES, *_MORE)))
"""Connect's types by Google's numbers of theirs."""

_GOOGLE = "google.protobuf."
_JSON = {f"{_GOOGLE}{name}" for name in ("Struct", "Value", "ListValue")}
_WRAPPERS = {
    f"{_GOOGLE}{name}Value"
    for name in ["Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes"]
}


def told(registry: Connection, value: bytes, *, shortest_floats: bool) -> bytes:
    """A value with its schema, `connect.with_shortest_floats` or without.

    Raises:
        ValueError, LookupError: it is no message.
    """
    if registry.descriptors:
        descriptor, data = protoc.message_of_set(registry.descriptors, registry.message), value
    else:
        if value[:1] != b"\0" or len(value) < _HEADER:
            raise ValueError("it is not framed")
        registered = client(registry).schema(int.from_bytes(value[1:_HEADER], "big"))
        path, data = _split(value[_HEADER:])
        descriptor = _message(registered.text, tuple(registered.references.items()), path)
    try:
        message = message_factory.GetMessageClass(descriptor).FromString(data)
    except DecodeError as error:
        raise ValueError(str(error)) from None
    schema = _schema_with_shortest_floats(descriptor) if shortest_floats else _schema(descriptor)
    document = {"schema": schema, "payload": _struct(message)}
    return json.dumps(document).encode()


@lru_cache(4096)
def _message(text: str, references: tuple[tuple[str, str], ...], path: tuple[int, ...]) -> Descriptor:
    return protoc.message(text, dict(references), path)


def _split(rest: bytes) -> tuple[tuple[int, ...], bytes]:
    numbers: list[int] = []
    left = None
    number = shift = 0
    for at, byte in enumerate(rest):
        number |= (byte & 127) << shift
        shift += 7
        if byte & 128:
            continue
        plain = number // 2 if number % 2 == 0 else -(number + 1) // 2
        number = shift = 0
        if left is None:
            left = plain
        else:
            numbers.append(plain)
            left -= 1
        if left == 0:
            return tuple(numbers) or (0,), rest[at + 1 :]
        if left < 0 or plain < 0:
            break
    raise ValueError("no path of a message stands before the data")


@lru_cache(4096)
def _oneofs(descriptor: Descriptor) -> list[tuple[str, OneofDescriptor]]:
    """Return the oneofs of a message with the names of their structs; an `optional` field is not in one."""
    proto = descriptor_pb2.DescriptorProto()
    descriptor.CopyToProto(proto)
    optional = {field.name for field in proto.field if field.proto3_optional}
    oneofs = [oneof for oneof in descriptor.oneofs if oneof.fields[0].name not in optional]
    return [(f"{oneof.name}_{number}", oneof) for number, oneof in enumerate(oneofs)]


@lru_cache(4096)
def _plain_fields(descriptor: Descriptor) -> list[FieldDescriptor]:
    members = {field.name for _, oneof in _oneofs(descriptor) for field in oneof.fields}
    return [field for field in descriptor.fields if field.name not in members]


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


def _optional(schema: dict[str, Any]) -> dict[str, Any]:
    return {**schema, "optional": True}


@lru_cache(4096)
def _schema(descriptor: Descriptor) -> dict[str, Any]:
    fields = [
        {"field": name, **_optional({"type": "struct", "fields": [_named(one) for one in oneof.fields]})}
        for name, oneof in _oneofs(descriptor)
    ]
    fields += [_named(field) for field in _plain_fields(descriptor)]
    return {"type": "struct", "name": descriptor.full_name, "fields": fields}


@lru_cache(4096)
def _schema_with_shortest_floats(descriptor: Descriptor) -> Any:
    return connect.with_shortest_floats(_schema(descriptor))


def _named(field: FieldDescriptor) -> dict[str, Any]:
    return {"field": field.name, **_optional(_of_field(field))}


def _of_field(field: FieldDescriptor) -> dict[str, Any]:
    if _is_map(field):
        key, value = (_single(field.message_type.fields_by_name[name]) for name in ("key", "value"))
        if key == {"type": "string"}:
            return {"type": "map", "keys": key, "values": _optional(value)}
        entry = [{"field": "key", **_optional(key)}, {"field": "value", **_optional(value)}]
        return {"type": "array", "items": {"type": "struct", "fields": entry}}
    return {"type": "array", "items": _single(field)} if field.is_repeated else _single(field)


def _single(field: FieldDescriptor) -> dict[str, Any]:
    inner = field.message_type
    if inner is None:
        return {"type": _TYPES[field.type]}
    if inner.full_name == f"{_GOOGLE}Timestamp":
        return {"type": "int64", "name": "org.apache.kafka.connect.data.Timestamp"}
    if inner.full_name in _JSON:
        return {"type": "string"}
    if inner.full_name in _WRAPPERS:
        return _single(inner.fields_by_name["value"])
    return _schema(inner)


def _struct(message: Any) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for name, oneof in _oneofs(message.DESCRIPTOR):
        chosen = message.WhichOneof(oneof.name)
        one = {field.name: _payload(field, message) if field.name == chosen else None for field in oneof.fields}
        members[name] = one if chosen else None
    for field in _plain_fields(message.DESCRIPTOR):
        is_absent = field.has_presence and not message.HasField(field.name)
        members[field.name] = None if is_absent else _payload(field, message)
    return members


def _payload(field: FieldDescriptor, message: Any) -> Any:
    value = getattr(message, field.name)
    if _is_map(field):
        key, inner = (_reader(field.message_type.fields_by_name[name]) for name in ("key", "value"))
        pairs = [(key(one), inner(value[one])) for one in value]
        is_text = field.message_type.fields_by_name["key"].type == field.TYPE_STRING
        return dict(pairs) if is_text else [{"key": one, "value": other} for one, other in pairs]
    read = _reader(field)
    return [read(one) for one in value] if field.is_repeated else read(value)


def _reader(field: FieldDescriptor) -> Callable[[Any], Any]:
    inner = field.message_type
    if field.enum_type is not None:
        by_number = field.enum_type.values_by_number
        return lambda value: by_number[value].name if value in by_number else str(value)
    if inner is None:
        return _plain
    if inner.full_name == f"{_GOOGLE}Timestamp":
        return lambda value: value.seconds * 1000 + value.nanos // 10**6
    if inner.full_name in _JSON:
        return lambda value: json_format.MessageToJson(value, indent=None)
    if inner.full_name in _WRAPPERS:
        return lambda value: _plain(value.value)
    return _struct


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, int) and value >= 2**63:
        raise ValueError("no column holds it")
    return projection.plain(value) if isinstance(value, float) else value
