"""Protobuf messages to columns: Google's library reads each message, and columns are made of all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from google.protobuf import descriptor_pb2, json_format, message_factory
from google.protobuf.message import DecodeError

from s3lake.convert import arrays
from s3lake.convert.arrays import Build, Get
from s3lake.convert.column import Column, Gathering, Numbers
from s3lake.convert.converters import ReadRequest
from s3lake.convert.gate import Refusals
from s3lake.convert.wire import HEADER, References, compile_registered, group_by_id, read_schema_ids
from s3lake.schema import protoc
from s3lake.schema.connect import Schema, SchemaError
from s3lake.schema.registry import Connection
from s3lake.schema.types import MOST_LEVELS, UNKNOWN, List, Map, Primitive, Struct, Type

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor, OneofDescriptor

_GOOGLE = "google.protobuf."
_AS_JSON = frozenset(f"{_GOOGLE}{name}" for name in ("Struct", "Value", "ListValue"))
"""Messages that hold any JSON, and so are a text of it."""
_WRAPPERS = frozenset(
    f"{_GOOGLE}{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
"""Messages of one `value`, which is null if they are missing."""
_MISSHAPEN = (TypeError, LookupError, AttributeError, RecursionError)
_OF = descriptor_pb2.FieldDescriptorProto
_PRIMITIVES = {
    _OF.TYPE_BOOL: Primitive.BOOL,
    _OF.TYPE_STRING: Primitive.STRING,
    _OF.TYPE_BYTES: Primitive.BINARY,
    _OF.TYPE_ENUM: Primitive.STRING,
    _OF.TYPE_FLOAT: Primitive.FLOAT,
    _OF.TYPE_DOUBLE: Primitive.DOUBLE,
    **dict.fromkeys((_OF.TYPE_INT32, _OF.TYPE_SINT32, _OF.TYPE_SFIXED32), Primitive.INT32),
    **dict.fromkeys((_OF.TYPE_INT64, _OF.TYPE_SINT64, _OF.TYPE_SFIXED64), Primitive.INT64),
    **dict.fromkeys((_OF.TYPE_UINT32, _OF.TYPE_FIXED32), Primitive.INT64),
    **dict.fromkeys((_OF.TYPE_UINT64, _OF.TYPE_FIXED64), Primitive.INT64),
}


@dataclass(frozen=True)
class _Reader:
    """How messages of one schema are read: the bytes of one, and columns of many."""

    schema: Schema
    parse: Callable[[bytes], Any]
    build: Build


def read(raw: pa.BinaryArray, request: ReadRequest) -> tuple[Column, Refusals]:
    """Return messages as columns, and as JSON if that is request, by the schema of each value.

    Each has the id of its schema before it, or all are one message of a descriptor set.

    Raises:
        TransientError: the registry did not answer.
        ConfigurationError: it refused, or the descriptor set cannot be used.
    """
    registry, values = request.schemas, raw.to_pylist()
    gathering, refused = Gathering(len(raw)), Refusals()
    if registry.descriptors:
        present = np.flatnonzero(raw.is_valid().to_numpy(zero_copy_only=False)).tolist()
        groups: _Groups = {(0, ()): (present, [values[row] for row in present])}
    else:
        numbers, refused = read_schema_ids(raw)
        groups = _group_by_message(values, numbers, refused)
    for (number, path), (rows, data) in groups.items():
        reader = _find_reader(registry, number, path)
        if isinstance(reader, str):
            refused |= dict.fromkeys(rows, reader)
        else:
            refused |= _read_messages(reader, rows, data, gathering)
    return Column.from_columns("protobuf", raw, gathering, texts=request.texts), refused


_Groups = dict[tuple[int, tuple[int, ...]], tuple[list[int], list[bytes]]]
"""Rows and data by the id of the schema and the path of the message, which is between the id and the data."""


def _group_by_message(values: Sequence[bytes | None], numbers: Numbers, refused: Refusals) -> _Groups:
    """Group rows by their messages. Adds to `refused`."""
    groups: _Groups = {}
    for number, rows in group_by_id(numbers):
        for row in rows.tolist():
            value = values[row]
            assert value is not None, "only what is framed has a number"
            try:
                path, begin = ((0,), HEADER + 1) if value[HEADER : HEADER + 1] == b"\0" else _parse_path(value)
            except ValueError as error:
                refused[row] = str(error)
                continue
            group = groups.setdefault((number, path), ([], []))
            group[0].append(row)
            group[1].append(value[begin:])
    return groups


def _parse_path(value: bytes) -> tuple[tuple[int, ...], int]:
    """Return which message of its file it is, and where its data begins."""
    count, at = _zigzag(value, HEADER)
    number, path = count, list[int]()
    while number >= 0 and len(path) < count:
        number, at = _zigzag(value, at)
        path.append(number)
    if number < 0:
        raise ValueError(f"{number} is not an index of a message: it was written by another serializer")
    return tuple(path) or (0,), at


def _zigzag(value: bytes, at: int) -> tuple[int, int]:
    spelled, shift = 0, 0
    while at < len(value) and shift < 64:
        spelled |= (value[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if value[at - 1] < 0x80:
            return spelled >> 1 ^ -(spelled & 1), at
    raise ValueError("the indexes of the message, which are before the data, end too early")


def _read_messages(reader: _Reader, rows: Sequence[int], data: Sequence[bytes], gathering: Gathering) -> Refusals:
    """Read the messages of one schema. Return the refused ones; the others are added to `gathering`."""
    refused: Refusals = {}
    messages = []
    for row, value in zip(rows, data, strict=True):
        try:
            messages.append(reader.parse(value))
        except DecodeError as error:
            refused[row] = f"the data is not a {reader.schema.name}: {error}"[:300]
    kept = [row for row in rows if row not in refused] if refused else rows
    array, misfits = arrays.build_each(reader.build, messages)
    if misfits:
        refused |= {kept[at]: reason for at, reason in misfits.items()}
        kept = [row for row in kept if row not in refused]
    gathering.add(reader.schema, np.array(kept, np.int64), array)
    return refused


def _find_reader(registry: Connection, number: int, path: tuple[int, ...]) -> _Reader | str:
    if registry.descriptors:
        reader = _compile_set(registry.descriptors, registry.message)
        return f"converter.registry.descriptor_set: {reader}" if isinstance(reader, str) else reader
    return compile_registered(registry, number, "PROTOBUF", partial(_compile_schema, path))


@lru_cache(maxsize=4096)
def _compile_schema(path: tuple[int, ...], text: str, references: References) -> _Reader | str:
    try:
        return _compile(protoc.compile_message(text, dict(references), path))
    except SchemaError as error:
        return str(error)
    except _MISSHAPEN as error:  # of a descriptor in base64 that no compiler made
        return f"it is not valid Protobuf: {type(error).__name__}: {error}"[:300]


@lru_cache(maxsize=64)
def _compile_set(descriptors: bytes, name: str) -> _Reader | str:
    try:
        return _compile(protoc.read_message_of_set(descriptors, name))
    except SchemaError as error:
        return str(error)


def _compile(descriptor: Descriptor) -> _Reader:
    type, build = _read_message(descriptor, descriptor.full_name, ())
    if type == UNKNOWN:
        raise SchemaError(f"{descriptor.full_name} has no fields that hold anything")
    parse = message_factory.GetMessageClass(descriptor).FromString
    return _Reader(Schema(descriptor.full_name, type), parse, build)


# Columns of messages, as Confluent's ProtobufData has them: every field may be null


class _Column(NamedTuple):
    """A column, and what builds it."""

    type: Type
    build: Build


def _make_struct(members: Mapping[str, tuple[Get, _Column]]) -> _Column:
    """Return a struct of members with what reads each, without members that never hold anything."""
    filled = {name: member for name, member in members.items() if member[1].type != UNKNOWN}
    if not filled:
        return _Column(UNKNOWN, arrays.make_leaf(UNKNOWN))
    type = Struct({name: column.type for name, (_, column) in filled.items()})
    return _Column(type, arrays.make_struct({name: (get, column.build) for name, (get, column) in filled.items()}))


def _make_list(item: _Column) -> _Column:
    return item if item.type == UNKNOWN else _Column(List(item.type), arrays.make_list(item.build))


def list_fields(descriptor: Descriptor) -> tuple[dict[str, OneofDescriptor], list[FieldDescriptor]]:
    """Return the oneofs of a message by their columns, and the fields in none of them, as an `optional` one is."""
    proto = descriptor_pb2.DescriptorProto()
    descriptor.CopyToProto(proto)
    optional = {field.name for field in proto.field if field.proto3_optional}
    declared = [oneof for oneof in descriptor.oneofs if oneof.fields[0].name not in optional]
    members = {field.name for oneof in declared for field in oneof.fields}
    oneofs = {f"{oneof.name}_{number}": oneof for number, oneof in enumerate(declared)}
    return oneofs, [field for field in descriptor.fields if field.name not in members]


def _read_message(descriptor: Descriptor, path: str, inside: tuple[str, ...]) -> _Column:
    """Return the column of a message; the members of a oneof are a struct of their own, null if none is set."""
    if descriptor.full_name in inside:
        raise SchemaError(
            f"{path} is {descriptor.full_name} inside of itself: recursive schemas are not supported; use bytes"
        )
    inside = (*inside, descriptor.full_name)
    if len(inside) > MOST_LEVELS:
        raise SchemaError(f"{path} nests deeper than {MOST_LEVELS} levels, which Parquet's readers refuse")
    oneofs, fields = list_fields(descriptor)
    members: dict[str, tuple[Get, _Column]] = {}
    for column, oneof in oneofs.items():
        if column in {field.name for field in fields}:
            raise SchemaError(
                f"{path} has a oneof {oneof.name}, whose column is {column}, and a field {column}: rename one of them; "
                "use bytes"
            )
        struct = _make_struct({one.name: _read_field(one, f"{path}.{one.name}", inside) for one in oneof.fields})
        members[column] = partial(_get_chosen, oneof.name), struct
    return _make_struct(members | {one.name: _read_field(one, f"{path}.{one.name}", inside) for one in fields})


def _get_chosen(oneof: str, message: Any) -> Any:
    return None if message.WhichOneof(oneof) is None else message


def _get_present(name: str, message: Any) -> Any:
    return getattr(message, name) if message.HasField(name) else None


def _read_field(field: FieldDescriptor, path: str, inside: tuple[str, ...]) -> tuple[Get, _Column]:
    """Return what reads a field of a message, and its column."""
    get, inner = attrgetter(field.name), field.message_type
    if inner is not None and inner.GetOptions().map_entry:
        key, value = (_read_values(inner.fields_by_name[name], path, inside) for name in ("key", "value"))
        if value.type == UNKNOWN:
            return get, value
        if key.type is Primitive.STRING:
            return get, _Column(Map(value.type), arrays.make_map(value.build))
        entry = _make_struct({"key": (itemgetter(0), key), "value": (itemgetter(1), value)})
        return lambda message: list(get(message).items()), _make_list(entry)
    column = _read_values(field, path, inside)
    if field.is_repeated:
        return get, _make_list(column)
    return partial(_get_present, field.name) if field.has_presence else get, column


def _read_values(field: FieldDescriptor, path: str, inside: tuple[str, ...]) -> _Column:
    """Return the column of what a field holds; messages that Google knows by name have a type if there is one."""
    inner = field.message_type
    if inner is None:
        name = None if field.enum_type is None else _make_namer(field.enum_type)
        return _make_leaf(_PRIMITIVES[field.type], name)
    if inner.full_name == f"{_GOOGLE}Timestamp":
        return _make_leaf(Primitive.TIMESTAMP, lambda moment: moment.seconds * 1000 + moment.nanos // 1_000_000)
    if inner.full_name in _AS_JSON:
        return _make_leaf(Primitive.STRING, partial(json_format.MessageToJson, indent=None))
    if inner.full_name in _WRAPPERS:
        return _make_leaf(_PRIMITIVES[inner.fields_by_name["value"].type], attrgetter("value"))
    return _read_message(inner, path, inside)


def _make_leaf(type: Primitive, read: Get | None) -> _Column:
    return _Column(type, arrays.make_leaf(type, read))


def _make_namer(enum: EnumDescriptor) -> Callable[[int], str]:
    """Return what names a value; one that the schema does not have is its number."""
    names = {value.number: value.name for value in reversed(enum.values)}
    return lambda number: names.get(number) or str(number)
