"""Messages of Protobuf as columns.

Columns are those of Confluent's ProtobufData: every field may be null, the members of a oneof stand in a struct of
their own, `NAME_0`. Types that Google knows by name have a column's type where there is one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from google.protobuf import descriptor_pb2
from google.protobuf.message import DecodeError

from s3lake.schema import protoc
from s3lake.schema.connect import SchemaError
from s3lake.schema.types import MOST_LEVELS, UNKNOWN, List, Map, Primitive, Struct, Type

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor, OneofDescriptor

TIMESTAMP = "google.protobuf.Timestamp"
AS_JSON = frozenset(f"google.protobuf.{name}" for name in ("Struct", "Value", "ListValue"))
"""Messages that hold any JSON, and so are a text of it."""

WRAPPERS = frozenset(
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
"""Messages of one `value`, which is null where they are absent."""

LEAVES = frozenset({TIMESTAMP, *AS_JSON, *WRAPPERS})
"""Messages that are a column without fields."""

_MESSAGES, _FIELDS, _NESTED, _ONEOFS = 4, 2, 3, 8
"""Numbers of members in descriptor.proto, of which the path to a comment is made."""


def _primitives() -> dict[int, Primitive]:
    of = descriptor_pb2.FieldDescriptorProto
    return {
        of.TYPE_BOOL: Primitive.BOOL,
        of.TYPE_STRING: Primitive.STRING,
        of.TYPE_BYTES: Primitive.BINARY,
        of.TYPE_ENUM: Primitive.STRING,
        of.TYPE_FLOAT: Primitive.FLOAT,
        of.TYPE_DOUBLE: Primitive.DOUBLE,
        **dict.fromkeys((of.TYPE_INT32, of.TYPE_SINT32, of.TYPE_SFIXED32), Primitive.INT32),
        **dict.fromkeys((of.TYPE_INT64, of.TYPE_SINT64, of.TYPE_SFIXED64), Primitive.INT64),
        **dict.fromkeys((of.TYPE_UINT32, of.TYPE_FIXED32), Primitive.INT64),
        **dict.fromkeys((of.TYPE_UINT64, of.TYPE_FIXED64), Primitive.INT64),
    }


_PRIMITIVES = _primitives()


def prose(text: str, references: Mapping[str, str]) -> dict[str, str]:
    """What comments say of the columns of a registered schema's first message.

    Raises:
        SchemaError: it is no schema.
    """
    file = protoc.main_file(text, references)
    return _comments(file, (_MESSAGES, 0), file.message_type[0]) if file.message_type else {}


def prose_of_set(descriptors: bytes, name: str) -> dict[str, str]:
    """The same of a message of a descriptor set, which has comments if protoc was asked for `--include_source_info`."""
    files = descriptor_pb2.FileDescriptorSet()
    try:
        files.ParseFromString(descriptors)
    except DecodeError:
        return {}
    waiting: list[tuple[Any, tuple[int, ...], str, Any]] = [
        (file, (_MESSAGES, at), f"{file.package}.{each.name}".lstrip("."), each)
        for file in files.file
        for at, each in enumerate(file.message_type)
    ]
    for file, path, full, described in waiting:
        if full == name:
            return _comments(file, path, described)
        nested = enumerate(described.nested_type)
        waiting += [(file, (*path, _NESTED, at), f"{full}.{each.name}", each) for at, each in nested]
    return {}


def _comments(file: Any, path: tuple[int, ...], described: Any) -> dict[str, str]:
    """By column: a field, or the struct of a oneof."""
    said = {tuple(one.path): one.leading_comments or one.trailing_comments for one in file.source_code_info.location}
    columns = {
        field.name: (*path, _FIELDS, at)
        for at, field in enumerate(described.field)
        if field.proto3_optional or not field.HasField("oneof_index")
    }
    columns |= {f"{oneof.name}_{at}": (*path, _ONEOFS, at) for at, oneof in enumerate(described.oneof_decl)}
    prose_of_columns = {name: " ".join(said.get(place, "").split()) for name, place in columns.items()}
    return {name: text for name, text in prose_of_columns.items() if text}


def oneofs(descriptor: Descriptor) -> list[tuple[str, OneofDescriptor]]:
    """Return the oneofs of a message with the names of their columns; an `optional` field is not in one."""
    proto = descriptor_pb2.DescriptorProto()
    descriptor.CopyToProto(proto)
    optional = {field.name for field in proto.field if field.proto3_optional}
    declared = [oneof for oneof in descriptor.oneofs if oneof.fields[0].name not in optional]
    return [(f"{oneof.name}_{number}", oneof) for number, oneof in enumerate(declared)]


def plain_fields(descriptor: Descriptor) -> list[FieldDescriptor]:
    """Return the fields of a message that are in no oneof."""
    members = {field.name for _, oneof in oneofs(descriptor) for field in oneof.fields}
    return [field for field in descriptor.fields if field.name not in members]


def is_map(field: FieldDescriptor) -> bool:
    return bool(field.message_type is not None and field.message_type.GetOptions().map_entry)


def type_of(descriptor: Descriptor) -> Type:
    """The columns of a message.

    Raises:
        SchemaError: it has none.
    """
    return _struct(descriptor, descriptor.full_name, ())


def _struct(descriptor: Descriptor, path: str, inside: tuple[str, ...]) -> Type:
    if descriptor.full_name in inside:
        raise SchemaError(
            f"{path} is {descriptor.full_name} inside of itself: recursive schemas are not supported; use bytes"
        )
    inside = (*inside, descriptor.full_name)
    if len(inside) > MOST_LEVELS:
        raise SchemaError(f"{path} nests deeper than {MOST_LEVELS} levels, which Parquet's readers refuse")
    plain = {field.name for field in plain_fields(descriptor)}
    for column, oneof in oneofs(descriptor):
        if column in plain:
            raise SchemaError(
                f"{path} has a oneof {oneof.name}, whose column is {column}, and a field {column}: rename one of them; "
                "use bytes"
            )
    types = {
        **{
            column: Struct({one.name: _field(one, f"{path}.{one.name}", inside) for one in oneof.fields})
            for column, oneof in oneofs(descriptor)
        },
        **{one.name: _field(one, f"{path}.{one.name}", inside) for one in plain_fields(descriptor)},
    }
    held = {name: type for name, type in types.items() if type != UNKNOWN}
    return Struct(held) if held else UNKNOWN


def _field(field: FieldDescriptor, path: str, inside: tuple[str, ...]) -> Type:
    if is_map(field):
        keys, values = (field.message_type.fields_by_name[name] for name in ("key", "value"))
        value = _single(values, path, inside)
        key = _single(keys, path, inside)
        if value == UNKNOWN:
            return UNKNOWN
        return Map(value) if key is Primitive.STRING else List(Struct({"key": key, "value": value}))
    single = _single(field, path, inside)
    if not field.is_repeated:
        return single
    return UNKNOWN if single == UNKNOWN else List(single)


def _single(field: FieldDescriptor, path: str, inside: tuple[str, ...]) -> Type:
    inner = field.message_type
    if inner is None:
        return _PRIMITIVES[field.type]
    if inner.full_name == TIMESTAMP:
        return Primitive.TIMESTAMP
    if inner.full_name in AS_JSON:
        return Primitive.STRING
    if inner.full_name in WRAPPERS:
        return _PRIMITIVES[inner.fields_by_name["value"].type]
    return _struct(inner, path, inside)
