"""Protobuf by its wire format: messages as the structs that Confluent's converter makes of them.

Google's compiler is shared with the writer; how messages are read, which fields there are, and what becomes of them, is
not. A field that the schema does not have has no column: the manifest has to count it, or its record equals no row.
"""

from __future__ import annotations

import datetime
import json
import struct
from collections.abc import Callable, Collection
from decimal import Decimal
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from google.protobuf import descriptor_pb2

from s3lake.lake.verify import protobuf_wire as wire
from s3lake.lake.verify.decoded_values import EXACT, Decode, MapValue, Mismatch, SinglePrecision
from s3lake.records.schema.protobuf import compiler

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

_Read = Callable[[Any], Any]
_OF = descriptor_pb2.FieldDescriptorProto
_GOOGLE = "google.protobuf."
_JSON = tuple(f"{_GOOGLE}{name}" for name in ("Struct", "Value", "ListValue"))
"""Messages that hold any JSON."""
_META = 1088
"""The number of the option in which Confluent keeps Connect's schema."""
_MOST_DIGITS = 38


@lru_cache(4096)
def build_protobuf_reader(
    text: str, references: tuple[tuple[str, str], ...], counted: Collection[str], exact: bool = False
) -> Decode:
    """Return what decodes the path of a message within its schema, and the message behind it.

    Args:
        counted: paths of fields that the schema does not have, and that the manifest counts.
        exact: whether the files have timestamps in nanoseconds.
    """

    @lru_cache(64)
    def find_descriptor(path: tuple[int, ...]) -> Descriptor:
        return compiler.compile_message(text, dict(references), path)

    def read(data: bytes) -> Any:
        path, begin = _parse_path(data)
        return _decode(find_descriptor(path), data[begin:], counted, exact)

    return read


@lru_cache(64)
def build_set_reader(descriptors: bytes, name: str, counted: Collection[str], exact: bool = False) -> Decode:
    """Return what decodes messages of a descriptor set."""
    descriptor = compiler.read_message_of_set(descriptors, name)
    return lambda data: _decode(descriptor, data, counted, exact)


def _decode(descriptor: Descriptor, data: bytes, counted: Collection[str], exact: bool) -> Any:
    unknown = set[str]()
    decoded = _to_struct(descriptor, wire.read_wire_fields(data), "", unknown, exact)
    if not unknown <= set(counted):
        raise Mismatch("it has fields that its schema does not have, and that the manifest does not count")
    return decoded


def _parse_path(data: bytes) -> tuple[tuple[int, ...], int]:
    """Return the numbers of the message within its file, and where the message begins."""
    numbers: list[int] = []
    at = 0
    while not numbers or len(numbers) <= numbers[0]:
        bits, at = wire.read_varint(data, at)
        numbers.append(_zigzag(bits))
        if numbers[-1] < 0:
            raise ValueError("no path of a message is before the data")
    return tuple(numbers[1:]) or (0,), at


class _Member(NamedTuple):
    """A field of a message.

    Attributes:
        oneof: the column of its oneof; empty if it is in none.
        wire: how one value of it is written.
        inner: the message that it holds; None if it holds none.
        read: makes a value of its bits or bytes; of a message, of the struct that it is.
        entry: the keys and the values of a map; None if it is not a map.
        nothing: its value if it is not written; None if it has no value then.
        exact: whether timestamps within it are nanoseconds.
    """

    name: str
    oneof: str
    wire: int
    is_repeated: bool
    inner: Descriptor | None
    read: _Read
    entry: tuple[_Member, _Member] | None
    nothing: Any
    exact: bool = False


_WIRES = {
    _OF.TYPE_DOUBLE: wire.FIXED64,
    _OF.TYPE_FIXED64: wire.FIXED64,
    _OF.TYPE_SFIXED64: wire.FIXED64,
    _OF.TYPE_FLOAT: wire.FIXED32,
    _OF.TYPE_FIXED32: wire.FIXED32,
    _OF.TYPE_SFIXED32: wire.FIXED32,
    _OF.TYPE_STRING: wire.BYTES,
    _OF.TYPE_BYTES: wire.BYTES,
    _OF.TYPE_MESSAGE: wire.BYTES,
    _OF.TYPE_GROUP: wire.GROUP,
}


@lru_cache(4096)
def _list_members(descriptor: Descriptor, exact: bool) -> dict[int, _Member]:
    proto = descriptor_pb2.DescriptorProto()
    descriptor.CopyToProto(proto)
    optional = {field.name for field in proto.field if field.proto3_optional}
    oneofs = [oneof for oneof in descriptor.oneofs if oneof.fields[0].name not in optional]
    columns = {field.name: f"{oneof.name}_{number}" for number, oneof in enumerate(oneofs) for field in oneof.fields}
    return {field.number: _make_member(field, columns.get(field.name, ""), exact) for field in descriptor.fields}


def _make_member(field: FieldDescriptor, oneof: str, exact: bool) -> _Member:
    inner = field.message_type
    of = (field.name, oneof, _WIRES.get(field.type, wire.VARINT), field.is_repeated)
    if inner is not None and inner.GetOptions().map_entry:
        key, value = (_make_member(inner.fields_by_name[name], "", exact) for name in ("key", "value"))
        return _Member(*of, inner, _keep, (key, value), MapValue() if key.wire == wire.BYTES else [], exact)
    if inner is not None:
        read = _find_known(field, inner, exact) or _keep
        return _Member(*of, inner, read, None, [] if field.is_repeated else None, exact)
    read = _name_value(field.enum_type) if field.enum_type is not None else _SCALARS[field.type]
    if field.is_repeated:
        return _Member(*of, None, read, None, [])
    empty: Any = b"" if of[2] == wire.BYTES else 0
    return _Member(*of, None, read, None, None if field.has_presence else read(empty))


def _to_struct(
    descriptor: Descriptor, fields: list[wire.WireField], path: str, unknown: set[str], exact: bool
) -> dict[str, Any]:
    """Return a message; adds the paths of what its schema does not have."""
    members = _list_members(descriptor, exact)
    contents: dict[str, Any] = {}
    chosen: dict[str, str] = {}
    for number, wire_type, content in fields:
        member = members.get(number)
        if member is None or not _accepts(member, wire_type):
            unknown.add(f"{path}#{number}")
            continue
        if member.oneof and chosen.get(member.oneof) != member.name:
            contents.pop(chosen.get(member.oneof, ""), None)
            chosen[member.oneof] = member.name
        if member.inner is not None:
            inner = content if wire_type == wire.GROUP else wire.read_wire_fields(content)
            if member.is_repeated:
                contents.setdefault(member.name, []).append(inner)
            else:  # a message that comes in parts is all of them
                contents[member.name] = contents.get(member.name, []) + inner
        elif not member.is_repeated:
            contents[member.name] = member.read(content)
        elif wire_type == member.wire:
            contents.setdefault(member.name, []).append(member.read(content))
        else:
            contents.setdefault(member.name, []).extend(map(member.read, wire.unpack(content, member.wire)))
    struct: dict[str, Any] = {}
    for member in members.values():
        if member.name not in contents:
            if member.nothing is not None and not member.oneof:
                struct[member.name] = member.nothing
            continue
        here = f"{path}{member.oneof}.{member.name}" if member.oneof else f"{path}{member.name}"
        value = contents[member.name]
        if member.inner is not None:
            value = _read_messages(member, value, here, unknown)
        if member.oneof:
            struct[member.oneof] = {member.name: value}
        else:
            struct[member.name] = value
    return struct


def _accepts(member: _Member, wire_type: int) -> bool:
    packed = member.is_repeated and member.wire not in (wire.BYTES, wire.GROUP) and wire_type == wire.BYTES
    return wire_type == member.wire or packed


def _read_messages(member: _Member, content: Any, path: str, unknown: set[str]) -> Any:
    assert member.inner is not None, "other fields are read as they come"
    if member.entry is not None:
        return _to_map(member.entry, content, f"{path}[].", unknown)
    if member.is_repeated:
        return [member.read(_to_struct(member.inner, one, f"{path}[].", unknown, member.exact)) for one in content]
    return member.read(_to_struct(member.inner, content, f"{path}.", unknown, member.exact))


def _to_map(entry: tuple[_Member, _Member], entries: Any, path: str, unknown: set[str]) -> Any:
    """Return a map: by its keys if they are texts, else its entries in the order of its keys."""
    key, value = entry
    last: dict[Any, Any] = {}
    for fields in entries:
        parts: dict[int, Any] = {}
        for number, wire_type, content in fields:
            if number == 1 and wire_type == key.wire:
                parts[1] = content
            elif number == 2 and wire_type == value.wire:
                has_parts = value.inner is not None
                parts[2] = parts.get(2, []) + wire.read_wire_fields(content) if has_parts else content
        name = key.read(parts.get(1, b"" if key.wire == wire.BYTES else 0))
        last[name] = parts.get(2, [] if value.inner is not None else b"" if value.wire == wire.BYTES else 0)
    values: dict[Any, Any] = {}
    for name in sorted(last):
        if value.inner is None:
            values[name] = value.read(last[name])
        else:
            values[name] = value.read(_to_struct(value.inner, last[name], path, unknown, value.exact))
    return MapValue(values) if key.wire == wire.BYTES else [{"key": name, "value": one} for name, one in values.items()]


# Values


def _keep(value: Any) -> Any:
    return value


def _to_signed(bits: int, number: int) -> int:
    number &= 2**bits - 1
    return number - 2**bits if number >> (bits - 1) else number


def _zigzag(number: int) -> int:
    return number >> 1 ^ -(number & 1)


def _require_int64(number: int) -> int:
    if number >= 2**63:
        raise Mismatch("no column holds it")
    return number


def _name_value(enum: EnumDescriptor) -> _Read:
    names: dict[int, str] = {}
    for value in enum.values:
        names.setdefault(value.number, value.name)
    return lambda bits: names.get(_to_signed(32, bits), str(_to_signed(32, bits)))


_SCALARS: dict[int, _Read] = {
    _OF.TYPE_DOUBLE: lambda bits: struct.unpack("<d", struct.pack("<Q", bits))[0],
    _OF.TYPE_FLOAT: lambda bits: SinglePrecision(struct.unpack("<f", struct.pack("<I", bits))[0]),
    _OF.TYPE_BOOL: bool,
    _OF.TYPE_STRING: bytes.decode,
    _OF.TYPE_BYTES: _keep,
    _OF.TYPE_UINT32: lambda bits: bits & 2**32 - 1,
    _OF.TYPE_FIXED32: _keep,
    _OF.TYPE_SINT32: lambda bits: _zigzag(bits & 2**32 - 1),
    _OF.TYPE_SINT64: _zigzag,
    **dict.fromkeys((_OF.TYPE_UINT64, _OF.TYPE_FIXED64), _require_int64),
    **dict.fromkeys((_OF.TYPE_INT32, _OF.TYPE_SFIXED32), partial(_to_signed, 32)),
    **dict.fromkeys((_OF.TYPE_INT64, _OF.TYPE_SFIXED64), partial(_to_signed, 64)),
}


# Messages that are known by their names: what they are made of is a struct by now


def _find_known(field: FieldDescriptor, inner: Descriptor, exact: bool) -> _Read | None:
    name = inner.full_name
    if name == "confluent.type.Decimal" and _sign(inner) == "value 1 12 precision 2 13 scale 3 5":
        return _find_decimal(field)
    well_known = _KNOWN.get(name)
    if well_known is None or well_known[0] != _sign(inner):
        return None
    if exact and name == f"{_GOOGLE}Timestamp":
        return lambda at: at["seconds"] * 10**9 + at["nanos"]
    if well_known[1] is _to_json_text:
        is_within = field.containing_type.full_name in (*_JSON, f"{_GOOGLE}Struct.FieldsEntry")
        return _to_json_text if _is_json(inner) and not is_within else None
    return well_known[1]


def _sign(message: Descriptor) -> str:
    """Return the fields of a message with their numbers and types."""
    fields = sorted(message.fields, key=lambda field: int(field.number))
    return " ".join(f"{field.name} {field.number} {'*' * field.is_repeated}{field.type}" for field in fields)


def _is_json(message: Descriptor) -> bool:
    """Return whether all three messages of Google's that hold any JSON are Google's."""
    waiting, seen = [message], {message.full_name}
    while waiting:
        descriptor = waiting.pop()
        is_entry = descriptor.GetOptions().map_entry and _sign(descriptor) == "key 1 9 value 2 11"
        if not is_entry and _KNOWN.get(descriptor.full_name, ("",))[0] != _sign(descriptor):
            return False
        inner = [field.message_type for field in descriptor.fields if field.message_type is not None]
        waiting += [each for each in inner if each.full_name not in seen]
        seen.update(each.full_name for each in inner)
    return seen.issuperset(_JSON)


def _to_json_text(message: dict[str, Any]) -> str:
    return json.dumps(_to_json(message), sort_keys=True, allow_nan=False)


def _to_json(message: dict[str, Any]) -> Any:
    if "fields" in message:
        return {name: _to_json(value) for name, value in message["fields"].items()}
    if "values" in message:
        return [_to_json(value) for value in message["values"]]
    for name, value in message.get("kind_0", {}).items():
        if name != "null_value":
            return _to_json(value) if isinstance(value, dict) else value
    return None


def _to_days(date: dict[str, Any]) -> int:
    return (datetime.date(date["year"], date["month"], date["day"]) - datetime.date(1970, 1, 1)).days


def _to_millis(time: dict[str, Any]) -> int:
    parts = [(time["hours"], 24), (time["minutes"], 60), (time["seconds"], 60), (time["nanos"], 10**9)]
    if not all(0 <= part < end for part, end in parts):
        raise Mismatch("it is not a time of a day")
    return int(((time["hours"] * 60 + time["minutes"]) * 60 + time["seconds"]) * 1000 + time["nanos"] // 10**6)


_KNOWN: dict[str, tuple[str, _Read]] = {
    f"{_GOOGLE}Timestamp": ("seconds 1 3 nanos 2 5", lambda at: at["seconds"] * 1000 + at["nanos"] // 10**6),
    f"{_GOOGLE}Struct": ("fields 1 *11", _to_json_text),
    f"{_GOOGLE}Value": (
        "null_value 1 14 number_value 2 1 string_value 3 9 bool_value 4 8 struct_value 5 11 list_value 6 11",
        _to_json_text,
    ),
    f"{_GOOGLE}ListValue": ("values 1 *11", _to_json_text),
    "google.type.Date": ("year 1 5 month 2 5 day 3 5", _to_days),
    "google.type.TimeOfDay": ("hours 1 5 minutes 2 5 seconds 3 5 nanos 4 5", _to_millis),
    **{
        f"{_GOOGLE}{name}Value": (f"value 1 {type}", lambda wrapper: wrapper["value"])
        for name, type in {
            "Double": _OF.TYPE_DOUBLE,
            "Float": _OF.TYPE_FLOAT,
            "Int64": _OF.TYPE_INT64,
            "UInt64": _OF.TYPE_UINT64,
            "Int32": _OF.TYPE_INT32,
            "UInt32": _OF.TYPE_UINT32,
            "Bool": _OF.TYPE_BOOL,
            "String": _OF.TYPE_STRING,
            "Bytes": _OF.TYPE_BYTES,
        }.items()
    },
}


def _find_decimal(field: FieldDescriptor) -> _Read | None:
    """Return what makes a decimal of the message, if its field names a scale that a column can have."""
    params: dict[str, str] = {}
    for number, _, meta in wire.read_wire_fields(field.GetOptions().SerializeToString()):
        for part, _, entry in wire.read_wire_fields(meta) if number == _META else ():
            pair = {at: text.decode() for at, _, text in wire.read_wire_fields(entry)} if part == 2 else {}
            params[pair.get(1, "")] = pair.get(2, "")
    try:
        scale, precision = int(params["scale"]), int(params.get("precision") or 0) or _MOST_DIGITS
    except (KeyError, ValueError):
        return None
    if not 0 <= scale <= min(precision, _MOST_DIGITS):
        return None
    return lambda message: Decimal(int.from_bytes(message["value"], "big", signed=True)).scaleb(
        -message["scale"], EXACT
    )
