"""Messages of Protobuf read so that nothing is lost that only a newer schema knows.

A closed enum (proto2) keeps a number that it does not have among the unknown fields, where its place in a list is lost,
and the entry of a map with it. So messages are read with a schema in which enums are the numbers that they are on the
wire, and which knows no extensions: what is unknown then are whole fields, and these are counted by their paths.

A field may have any name, also one of a method of a message (`HasField`). So methods are called as functions of the
library's class.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from google.protobuf import descriptor_pb2, descriptor_pool, empty_pb2, message_factory
from google.protobuf.message import DecodeError, EncodeError
from google.protobuf.unknown_fields import UnknownFieldSet

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FileDescriptor, OneofDescriptor

_MESSAGE: Any = empty_pb2.Empty
"""Has the methods of all messages."""
has: Callable[[Any, str], bool] = _MESSAGE.HasField
"""Returns whether a field of a message, which has presence, is set."""
_FIELD = descriptor_pb2.FieldDescriptorProto


@dataclass(frozen=True)
class Messages:
    """How messages of one type are read.

    Attributes:
        parse: reads one; what is unknown stays in it. Raises DecodeError.
    """

    parse: Callable[[bytes], Any]

    @classmethod
    def from_descriptor(cls, descriptor: Descriptor) -> Messages:
        """Return the reader of the messages of a type."""
        pool, added = descriptor_pool.DescriptorPool(), set[str]()

        def add(file: FileDescriptor) -> None:
            if file.name in added:
                return
            added.add(file.name)
            for other in file.dependencies:
                add(other)
            pool.Add(_make_readable(file))

        add(descriptor.file)
        return cls(message_factory.GetMessageClass(pool.FindMessageTypeByName(descriptor.full_name)).FromString)

    def read(self, data: bytes) -> tuple[Any, Collection[str]]:
        """Return a message, and the paths of its fields that the schema does not have.

        Raises:
            DecodeError: the data is not such a message, or lacks a field that proto2 requires.
        """
        message = self.parse(data)
        try:
            size = _MESSAGE.ByteSize(message)
        except EncodeError as error:  # the library sees only here that a required field is missing, at any depth
            raise DecodeError(str(error)) from None
        _MESSAGE.DiscardUnknownFields(message)
        paths = set[str]()
        if _MESSAGE.ByteSize(message) != size:
            _find_unknown(self.parse(data), "", paths)
        return message, paths


def choose(oneof: str, message: Any) -> str | None:
    """Return which member of a oneof is set. Return None if none is."""
    name: str | None = _MESSAGE.WhichOneof(message, oneof)
    return name


def list_oneofs(descriptor: Descriptor) -> dict[str, OneofDescriptor]:
    """Return the oneofs of a message by their columns, without the hidden oneof of each `optional` field."""
    proto = descriptor_pb2.DescriptorProto()
    descriptor.CopyToProto(proto)
    optional = {field.name for field in proto.field if field.proto3_optional}
    declared = [oneof for oneof in descriptor.oneofs if oneof.fields[0].name not in optional]
    return {f"{oneof.name}_{number}": oneof for number, oneof in enumerate(declared)}


def _make_readable(file: FileDescriptor) -> Any:
    """Return a file with numbers for enums, and without extensions."""
    proto = descriptor_pb2.FileDescriptorProto()
    file.CopyToProto(proto)
    proto.ClearField("extension")
    waiting = list(proto.message_type)
    while waiting:
        described = waiting.pop()
        described.ClearField("extension")
        waiting += described.nested_type
        for field in described.field:
            if field.type == _FIELD.TYPE_ENUM:
                field.type = _FIELD.TYPE_INT32
                field.ClearField("type_name")
                field.ClearField("default_value")
    return proto


def _join(path: str, step: str) -> str:
    """Return the path of what is in a message; Protobuf's names need no quotes."""
    return f"{path}.{step}" if path else step


def _find_unknown(message: Any, path: str, paths: set[str]) -> None:
    """Add the paths of the fields that a message, or one in it, does not know: `items[].#17`."""
    paths.update(_join(path, f"#{field.field_number}") for field in UnknownFieldSet(message))
    columns = {
        member.name: _join(column, member.name)
        for column, oneof in list_oneofs(type(message).DESCRIPTOR).items()
        for member in oneof.fields
    }
    for field, value in _MESSAGE.ListFields(message):
        inner = field.message_type
        here = _join(path, columns.get(field.name, field.name))
        if inner is None:
            continue
        if inner.GetOptions().map_entry:
            if inner.fields_by_name["value"].message_type is not None:
                for each in value.values():
                    _find_unknown(each, f"{here}[]", paths)
        elif field.is_repeated:
            for each in value:
                _find_unknown(each, f"{here}[]", paths)
        else:
            _find_unknown(value, here, paths)
