"""Protobuf messages to columns, a field of all messages at a time, and to JSON out of those.

Google's library reads each message; what is not plainly right is looked at record by record.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import accumulate, chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from google.protobuf import json_format, message_factory
from google.protobuf.message import DecodeError

from s3lake.convert.avro_text import Spell, spelling
from s3lake.convert.cells import Column
from s3lake.convert.converters import Wanted
from s3lake.convert.framed import HEADER, Lines, Read, by_number, kept_where, numbers_of
from s3lake.convert.gate import Refusals
from s3lake.convert.schemas import Gathering, Numbers
from s3lake.schema import protobuf, protoc
from s3lake.schema.arrow import arrow_type
from s3lake.schema.connect import Schema, SchemaError
from s3lake.schema.registry import Connection, UnknownSchema, client
from s3lake.schema.types import UNKNOWN, Primitive, Type, fields_of, item_of
from s3lake.text.masking import strip_values

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

Build = Callable[[Sequence[Any]], pa.Array]
"""Makes a column of messages, or of their fields."""

_MISFITS = (pa.ArrowException, ValueError, TypeError, OverflowError)
_MISSHAPEN = (TypeError, LookupError, AttributeError, RecursionError)
_MOST_INDEXES = 64


@dataclass(frozen=True)
class _Reader:
    """How messages of one schema are read.

    Attributes:
        schema: of their columns.
        parse: reads the bytes of one.
        build: makes columns of many.
        spell: makes JSON of those.
    """

    schema: Schema
    parse: Callable[[bytes], Any]
    build: Build
    spell: Spell


def read(raw: pa.BinaryArray, wanted: Wanted) -> tuple[Column, Refusals]:
    """Return messages as texts, or as columns, by the schema of each value."""
    values = read_messages(raw, wanted.schemas, tabular=wanted.tabular, texts=wanted.texts)
    return Column("protobuf", values.data, values.schemas), values.refused


def unframe(raw: pa.BinaryArray, registry: Connection | None) -> Read:
    """Return messages as JSON."""
    assert registry is not None, "the sink model asks for one"
    return read_messages(raw, registry, tabular=False)


def read_messages(raw: pa.BinaryArray, registry: Connection, *, tabular: bool, texts: bool = True) -> Read:
    """Messages of a batch, with the id of their schema before them, or all of one message of a descriptor set.

    Raises:
        TransientError: the registry did not answer.
        ConfigurationError: it refused, or the descriptor set cannot be used.
    """
    values = raw.to_pylist()
    gathering, lines = Gathering.of(len(raw)), Lines.of(len(raw)) if texts or not tabular else None
    if registry.descriptors:
        present = np.flatnonzero(raw.is_valid().to_numpy(zero_copy_only=False))
        groups: dict[tuple[int, tuple[int, ...]], tuple[list[int], list[bytes]]] = {
            (0, ()): (present.tolist(), [values[row] for row in present])
        }
        refused: Refusals = {}
    else:
        numbers, refused = numbers_of(raw)
        groups, wrong = _by_message(values, numbers)
        refused |= wrong
    for (number, path), (rows, data) in groups.items():
        reader = _reader(registry, number, path)
        if isinstance(reader, str):
            refused |= dict.fromkeys(rows, reader)
            continue
        refused |= _take(reader, np.array(rows, np.int64), data, gathering, lines, tabular)
    found = lines.texts() if lines is not None else kept_where(gathering.codes >= 0, raw)
    return Read(found, gathering.gathered(), refused)


def _by_message(
    values: Sequence[bytes | None], numbers: Numbers
) -> tuple[dict[tuple[int, tuple[int, ...]], tuple[list[int], list[bytes]]], Refusals]:
    """Rows and data by schema and message: its path stands between the schema's id and the data."""
    groups: dict[tuple[int, tuple[int, ...]], tuple[list[int], list[bytes]]] = {}
    refused: Refusals = {}
    for number, rows in by_number(numbers):
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


def _take(
    reader: _Reader, rows: Numbers, data: Sequence[bytes], gathering: Gathering, lines: Lines | None, tabular: bool
) -> Refusals:
    """Read the messages of one schema: those that are refused; the others are added to what is gathered."""
    refused: Refusals = {}
    try:
        messages = list(map(reader.parse, data))
        array = reader.build(messages)
    except (DecodeError, *_MISFITS):
        sound: list[int] = []
        messages = []
        for at, value in enumerate(data):
            try:
                message = reader.parse(value)
                reader.build([message])
            except DecodeError as error:
                refused[int(rows[at])] = f"the data is no {reader.schema.name}: {error}"[:300]
            except _MISFITS as error:
                refused[int(rows[at])] = f"a value does not fit its column: {strip_values(str(error))}"[:300]
            else:
                sound.append(at)
                messages.append(message)
        rows, array = rows[sound], reader.build(messages)
    if lines is not None:
        lines.add(rows, reader.spell(array))
    gathering.add(reader.schema, rows, array if tabular else None)
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
    return _Reader(Schema(descriptor.full_name, type), parse, _struct(descriptor, type), spelling(type))


def _struct(descriptor: Descriptor, type: Type) -> Build:
    types, fields = fields_of(type), list(arrow_type(type))
    builds = {
        **{
            name: _oneof(oneof.name, list(oneof.fields), types[name])
            for name, oneof in protobuf.oneofs(descriptor)
            if name in types
        },
        **{one.name: _field(one, types[one.name]) for one in protobuf.plain_fields(descriptor) if one.name in types},
    }
    ordered = [builds[field.name] for field in fields]

    def build(messages: Sequence[Any]) -> pa.Array:
        return pa.StructArray.from_arrays([each(messages) for each in ordered], fields=fields)

    return build


def _oneof(name: str, members: Sequence[FieldDescriptor], type: Type) -> Build:
    """The members of a oneof, of which one at most holds something: null where none does."""
    types, fields = fields_of(type), list(arrow_type(type))
    builds = {one.name: _field(one, types[one.name]) for one in members if one.name in types}

    def build(messages: Sequence[Any]) -> pa.Array:
        chosen = [message.WhichOneof(name) for message in messages]
        nothing = pa.array([one is None for one in chosen], pa.bool_())
        arrays = [builds[field.name](messages) for field in fields]
        return pa.StructArray.from_arrays(arrays, fields=fields, mask=nothing if None in chosen else None)

    return build


def _field(field: FieldDescriptor, type: Type) -> Build:
    name, get = field.name, attrgetter(field.name)
    if protobuf.is_map(field):
        return _map(field, get, type)
    if field.is_repeated:
        item, arrow = _values(field, type.item), arrow_type(type)  # type: ignore[union-attr]

        def build_list(messages: Sequence[Any]) -> pa.Array:
            lists = list(map(get, messages))
            return pa.ListArray.from_arrays(_offsets(lists), item(list(chain.from_iterable(lists))), type=arrow)

        return build_list
    values = _values(field, type)
    if not field.has_presence:
        return lambda messages: values(list(map(get, messages)))

    def build(messages: Sequence[Any]) -> pa.Array:
        present = [message.HasField(name) for message in messages]
        if all(present):
            return values(list(map(get, messages)))
        array = values([get(message) for message, has in zip(messages, present, strict=True) if has])
        places = np.cumsum(present) - 1
        return array.take(pa.array(places, pa.int64(), mask=~np.array(present, np.bool_)))

    return build


def _map(field: FieldDescriptor, get: Callable[[Any], Any], type: Type) -> Build:
    keys, values = (field.message_type.fields_by_name[name] for name in ("key", "value"))
    arrow = arrow_type(type)
    is_map, inner = pa.types.is_map(arrow), item_of(type)
    entry = {"key": Primitive.STRING, "value": inner} if is_map else fields_of(inner)
    key, value = _values(keys, entry["key"]), _values(values, entry["value"])

    def build(messages: Sequence[Any]) -> pa.Array:
        maps = list(map(get, messages))
        offsets = _offsets(maps)
        items = value([inner for one in maps for inner in one.values()])
        names = key(list(chain.from_iterable(maps)))
        if is_map:
            return pa.MapArray.from_arrays(offsets, names, items)
        entries = pa.StructArray.from_arrays([names, items], fields=list(arrow.value_type))
        return pa.ListArray.from_arrays(offsets, entries, type=arrow)

    return build


def _offsets(holders: Sequence[Any]) -> pa.Int32Array:
    return pa.array([0, *accumulate(map(len, holders))], pa.int32())


def _values(field: FieldDescriptor, type: Type) -> Build:
    """Makes a column of what a field holds, none of which is absent."""
    arrow, inner = arrow_type(type), field.message_type
    if field.enum_type is not None:
        return partial(_mapped, arrow, _name_of(field.enum_type))
    if inner is None:
        return partial(pa.array, type=arrow)
    if inner.full_name == protobuf.TIMESTAMP:
        return partial(_timestamps, arrow)
    if inner.full_name in protobuf.AS_JSON:
        return partial(_mapped, arrow, partial(json_format.MessageToJson, indent=None))
    if inner.full_name in protobuf.WRAPPERS:
        return partial(_mapped, arrow, attrgetter("value"))
    return _struct(inner, type)


def _mapped(arrow: pa.DataType, read: Callable[[Any], Any], values: Sequence[Any]) -> pa.Array:
    return pa.array(list(map(read, values)), arrow)


def _timestamps(arrow: pa.DataType, values: Sequence[Any]) -> pa.Array:
    return pa.array([one.seconds * 1000 + one.nanos // 1_000_000 for one in values], arrow)


def _name_of(enum: EnumDescriptor) -> Callable[[int], str]:
    """A value's name; one that the schema does not know is its number."""
    names = {value.number: value.name for value in reversed(enum.values)}
    return lambda number: names.get(number) or str(number)
