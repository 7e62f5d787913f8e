"""Protobuf messages to columns: Google's library reads each message, and columns are made of all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from google.protobuf import json_format, message_factory
from google.protobuf.message import DecodeError

from s3lake.convert import arrays
from s3lake.convert.arrays import Build, Get
from s3lake.convert.column import Column, Gathering, Numbers
from s3lake.convert.converters import ReadRequest
from s3lake.convert.gate import Refusals
from s3lake.convert.wire import HEADER, group_by_id, read_schema_ids
from s3lake.schema import protobuf, protoc
from s3lake.schema.connect import Schema, SchemaError
from s3lake.schema.registry import Connection, UnknownSchema, client
from s3lake.schema.types import UNKNOWN, List, Map, Primitive, Type, fields_of, item_of

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

_MISSHAPEN = (TypeError, LookupError, AttributeError, RecursionError)
_MOST_INDEXES = 64


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
    gathering = Gathering.of(len(raw))
    if registry.descriptors:
        present = np.flatnonzero(raw.is_valid().to_numpy(zero_copy_only=False))
        groups: dict[tuple[int, tuple[int, ...]], tuple[list[int], list[bytes]]] = {
            (0, ()): (present.tolist(), [values[row] for row in present])
        }
        refused: Refusals = {}
    else:
        numbers, refused = read_schema_ids(raw)
        groups, wrong = _by_message(values, numbers)
        refused |= wrong
    for (number, path), (rows, data) in groups.items():
        reader = _reader(registry, number, path)
        if isinstance(reader, str):
            refused |= dict.fromkeys(rows, reader)
        else:
            refused |= _read_messages(reader, rows, data, gathering)
    return Column.from_columns("protobuf", raw, gathering, texts=request.texts), refused


def _by_message(
    values: Sequence[bytes | None], numbers: Numbers
) -> tuple[dict[tuple[int, tuple[int, ...]], tuple[list[int], list[bytes]]], Refusals]:
    """Rows and data by schema and message: its path stands between the schema's id and the data."""
    groups: dict[tuple[int, tuple[int, ...]], tuple[list[int], list[bytes]]] = {}
    refused: Refusals = {}
    for number, rows in group_by_id(numbers):
        for row in rows.tolist():
            value = values[row]
            assert value is not None, "only what is framed has a number"
            try:
                path, begin = ((0,), HEADER + 1) if value[HEADER : HEADER + 1] == b"\0" else _path(value)
            except ValueError as error:
                refused[row] = str(error)
                continue
            held = groups.setdefault((number, path), ([], []))
            held[0].append(row)
            held[1].append(value[begin:])
    return groups, refused


def _path(value: bytes) -> tuple[tuple[int, ...], int]:
    """Which message of its file it is, and where its data begins."""
    count, at = _zigzag(value, HEADER)
    if not 0 <= count <= _MOST_INDEXES:
        raise ValueError(f"{count} indexes of messages stand before the data: it was written by another serializer")
    path = []
    for _ in range(count):
        index, at = _zigzag(value, at)
        if index < 0:
            raise ValueError(f"{index} is no index of a message: it was written by another serializer")
        path.append(index)
    return tuple(path) or (0,), at


def _zigzag(value: bytes, at: int) -> tuple[int, int]:
    spelled, shift = 0, 0
    while at < len(value) and shift < 64:
        spelled |= (value[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if value[at - 1] < 0x80:
            return spelled >> 1 ^ -(spelled & 1), at
    raise ValueError("the indexes of the message, which stand before the data, end too early")


def _read_messages(reader: _Reader, rows: Sequence[int], data: Sequence[bytes], gathering: Gathering) -> Refusals:
    """Read the messages of one schema. Return those that are refused; the others are added to `gathering`."""
    refused: Refusals = {}
    messages = []
    for row, value in zip(rows, data, strict=True):
        try:
            messages.append(reader.parse(value))
        except DecodeError as error:
            refused[row] = f"the data is no {reader.schema.name}: {error}"[:300]
    kept = [row for row in rows if row not in refused] if refused else rows
    array, misfits = arrays.build_each(reader.build, messages)
    if misfits:
        refused |= {kept[at]: reason for at, reason in misfits.items()}
        kept = [row for row in kept if row not in refused]
    gathering.add(reader.schema, np.array(kept, np.int64), array)
    return refused


def _reader(registry: Connection, number: int, path: tuple[int, ...]) -> _Reader | str:
    if registry.descriptors:
        found = _of_set(registry.descriptors, registry.message)
        return f"converter.registry.descriptor_set: {found}" if isinstance(found, str) else found
    try:
        registered = client(registry).schema(number)
    except UnknownSchema as error:
        return str(error)
    if registered.kind != "PROTOBUF":
        return f"schema id {number}: it is a schema of {registered.kind}, not of PROTOBUF: set the converter that fits"
    found = _of_schema(registered.text, tuple(registered.references.items()), path)
    return f"schema id {number}: {found}" if isinstance(found, str) else found


@lru_cache(maxsize=4096)
def _of_schema(text: str, references: tuple[tuple[str, str], ...], path: tuple[int, ...]) -> _Reader | str:
    try:
        return _compiled(protoc.message(text, dict(references), path))
    except SchemaError as error:
        return str(error)
    except _MISSHAPEN as error:  # of a descriptor in base64 that no compiler made
        return f"it is none of Protobuf: {type(error).__name__}: {error}"[:300]


@lru_cache(maxsize=64)
def _of_set(descriptors: bytes, name: str) -> _Reader | str:
    try:
        return _compiled(protoc.message_of_set(descriptors, name))
    except SchemaError as error:
        return str(error)


def _compiled(descriptor: Descriptor) -> _Reader:
    type = protobuf.type_of(descriptor)
    if type == UNKNOWN:
        raise SchemaError(f"{descriptor.full_name} has no fields that hold anything")
    parse = message_factory.GetMessageClass(descriptor).FromString
    return _Reader(Schema(descriptor.full_name, type), parse, _make_struct(descriptor, type))


def _make_struct(descriptor: Descriptor, type: Type) -> Build:
    """Return a builder of messages; the members of a oneof are a struct of their own, null if none is set."""
    types = fields_of(type)
    oneofs = {name: oneof for name, oneof in protobuf.oneofs(descriptor) if name in types}
    fields = {field.name: field for field in protobuf.plain_fields(descriptor)}
    builds: dict[str, tuple[Get, Build]] = {}
    for name, inner in types.items():
        if name in fields:
            builds[name] = _read_field(fields[name], inner)
        else:
            members = {field.name: field for field in oneofs[name].fields}
            pairs = {member: _read_field(members[member], of) for member, of in fields_of(inner).items()}
            builds[name] = (partial(_get_chosen, oneofs[name].name), arrays.make_struct(pairs))
    return arrays.make_struct(builds)


def _get_chosen(oneof: str, message: Any) -> Any:
    return None if message.WhichOneof(oneof) is None else message


def _get_present(name: str, message: Any) -> Any:
    return getattr(message, name) if message.HasField(name) else None


def _read_field(field: FieldDescriptor, type: Type) -> tuple[Get, Build]:
    """Return what reads a field of a message, and the builder of its column."""
    get = attrgetter(field.name)
    if protobuf.is_map(field):
        keys, values = (field.message_type.fields_by_name[name] for name in ("key", "value"))
        if isinstance(type, Map):
            return get, arrays.make_map(_make_values(values, type.value))
        entry = fields_of(item_of(type))
        build_key, build_value = _make_values(keys, entry["key"]), _make_values(values, entry["value"])
        entries = arrays.make_struct({"key": (itemgetter(0), build_key), "value": (itemgetter(1), build_value)})
        return lambda message: list(get(message).items()), arrays.make_list(entries)
    if isinstance(type, List) and field.is_repeated:
        return get, arrays.make_list(_make_values(field, type.item))
    return partial(_get_present, field.name) if field.has_presence else get, _make_values(field, type)


def _make_values(field: FieldDescriptor, type: Type) -> Build:
    """Return a builder of what a field holds."""
    inner = field.message_type
    if inner is not None and inner.full_name not in protobuf.LEAVES:
        return _make_struct(inner, type)
    assert isinstance(type, Primitive), "no field of Protobuf is a decimal"
    if field.enum_type is not None:
        return arrays.make_leaf(type, _make_namer(field.enum_type))
    if inner is None:
        return arrays.make_leaf(type)
    if inner.full_name == protobuf.TIMESTAMP:
        return arrays.make_leaf(type, lambda moment: moment.seconds * 1000 + moment.nanos // 1_000_000)
    if inner.full_name in protobuf.AS_JSON:
        return arrays.make_leaf(type, partial(json_format.MessageToJson, indent=None))
    return arrays.make_leaf(type, attrgetter("value"))


def _make_namer(enum: EnumDescriptor) -> Callable[[int], str]:
    """Return what names a value; one that the schema does not have is its number."""
    names = {value.number: value.name for value in reversed(enum.values)}
    return lambda number: names.get(number) or str(number)
