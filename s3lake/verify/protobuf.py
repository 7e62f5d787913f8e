"""Protobuf by Google's library: messages as the structs that Confluent's converter makes of them.

Google's compiler and reader are shared with the writer; which fields there are, and what becomes of them, is not.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from google.protobuf import descriptor_pb2, json_format, message_factory
from google.protobuf.message import DecodeError

from s3lake.schema import protoc
from s3lake.verify.values import Decode, Float32, Map

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor

_Read = Callable[[Any], Any]
_GOOGLE = "google.protobuf."
_JSON = {f"{_GOOGLE}{name}" for name in ("Struct", "Value", "ListValue")}
_WRAPPERS = {
    f"{_GOOGLE}{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
}


@lru_cache(4096)
def build_reader(text: str, references: tuple[tuple[str, str], ...]) -> Decode:
    """Return what decodes the path of a message within its schema, and the message behind it."""

    @lru_cache(64)
    def find_descriptor(path: tuple[int, ...]) -> Descriptor:
        return protoc.compile_message(text, dict(references), path)

    def read(data: bytes) -> Any:
        path, begin = _parse_path(data)
        return _decode(find_descriptor(path), data[begin:])

    return read


@lru_cache(64)
def build_set_reader(descriptors: bytes, name: str) -> Decode:
    """Return what decodes messages of a descriptor set."""
    descriptor = protoc.read_message_of_set(descriptors, name)
    return lambda data: _decode(descriptor, data)


def _decode(descriptor: Descriptor, data: bytes) -> Any:
    try:
        return _to_struct(message_factory.GetMessageClass(descriptor).FromString(data))
    except DecodeError as error:
        raise ValueError(str(error)) from None


def _parse_path(data: bytes) -> tuple[tuple[int, ...], int]:
    """Return the numbers of the message within its file, and where the message begins."""
    numbers: list[int] = []
    at = 0
    while not numbers or len(numbers) <= numbers[0]:
        number = shift = 0
        while True:
            byte = data[at] if at < len(data) else -1
            at, number, shift = at + 1, number | (byte & 127) << shift, shift + 7
            if byte < 128:
                break
        numbers.append(number >> 1 ^ -(number & 1))
        if byte < 0 or numbers[-1] < 0:
            raise ValueError("no path of a message is before the data")
    return tuple(numbers[1:]) or (0,), at


@lru_cache(4096)
def _build_field_readers(descriptor: Descriptor) -> list[tuple[str, str | None, FieldDescriptor, _Read]]:
    """Return per field its name, the struct of its oneof (None if it is in none), and what reads it."""
    proto = descriptor_pb2.DescriptorProto()
    descriptor.CopyToProto(proto)
    optional = {field.name for field in proto.field if field.proto3_optional}
    oneofs = [oneof for oneof in descriptor.oneofs if oneof.fields[0].name not in optional]
    structs = {field.name: f"{oneof.name}_{number}" for number, oneof in enumerate(oneofs) for field in oneof.fields}
    return [(field.name, structs.get(field.name), field, _build_field_reader(field)) for field in descriptor.fields]


def _to_struct(message: Any) -> dict[str, Any]:
    struct: dict[str, Any] = {}
    for name, oneof, field, read in _build_field_readers(message.DESCRIPTOR):
        if field.has_presence and not message.HasField(name):
            continue
        value = read(getattr(message, name))
        if oneof is None:
            struct[name] = value
        else:
            struct[oneof] = {name: value}
    return struct


def _build_field_reader(field: FieldDescriptor) -> _Read:
    inner = field.message_type
    if inner is not None and inner.GetOptions().map_entry:
        key, read = (_build_value_reader(inner.fields_by_name[name]) for name in ("key", "value"))
        if inner.fields_by_name["key"].type == field.TYPE_STRING:
            return lambda entries: Map({name: read(entries[name]) for name in entries})
        return lambda entries: [{"key": key(name), "value": read(entries[name])} for name in entries]
    read = _build_value_reader(field)
    return (lambda values: [read(value) for value in values]) if field.is_repeated else read


def _build_value_reader(field: FieldDescriptor) -> _Read:
    inner = field.message_type
    if field.enum_type is not None:
        symbols = field.enum_type.values_by_number
        return lambda number: symbols[number].name if number in symbols else str(number)
    if inner is None:
        return Float32 if field.type == field.TYPE_FLOAT else _require_int64
    if inner.full_name == f"{_GOOGLE}Timestamp":
        return lambda moment: moment.seconds * 1000 + moment.nanos // 10**6
    if inner.full_name in _JSON:
        return lambda value: json_format.MessageToJson(value, indent=None)
    if inner.full_name in _WRAPPERS:
        read = _build_value_reader(inner.fields_by_name["value"])
        return lambda wrapper: read(wrapper.value)
    return _to_struct


def _require_int64(value: Any) -> Any:
    if isinstance(value, int) and value >= 2**63:
        raise ValueError("no column holds it")
    return value
