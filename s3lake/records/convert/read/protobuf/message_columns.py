"""Columns of messages, as Confluent's ProtobufData has them: every field may be null.

Messages that Google or Confluent know by name have a type of their own, if they have the fields that these give them.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable, Mapping
from functools import cache, partial
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from google.protobuf import descriptor_pb2, json_format, message_factory, struct_pb2, timestamp_pb2, wrappers_pb2

from s3lake.plugins import require_extra
from s3lake.records.convert.read import arrays
from s3lake.records.convert.read.arrays import Build, Get, Misfit
from s3lake.records.convert.read.protobuf.messages import choose, has, list_oneofs
from s3lake.records.schema.columns.types import (
    MOST_DIGITS,
    MOST_LEVELS,
    PLACEHOLDER,
    TOO_DEEP,
    Decimal,
    List,
    Map,
    Primitive,
    Type,
    make_struct_type,
)
from s3lake.records.schema.connect_schema import SchemaError
from s3lake.records.schema.protobuf import known_files

with require_extra("protobuf", "converter protobuf"):
    from google.type import date_pb2, timeofday_pb2

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor, OneofDescriptor

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
_EPOCH = datetime.date(1970, 1, 1).toordinal()
_MOST_BYTES = 1_000
"""Of a decimal; 38 digits, with zeros behind them, are in fewer."""
_EXACT = decimal.Context(prec=3_000, traps=[decimal.Inexact, decimal.InvalidOperation, decimal.Overflow])


class MessageColumn(NamedTuple):
    """A column, and what builds it."""

    type: Type
    build: Build


def make_message_column(
    descriptor: Descriptor, path: str, inside: tuple[str, ...] = (), *, exact: bool = False
) -> MessageColumn:
    """Return the column of a message; the members of a oneof are a struct of their own, null if none is set.

    Args:
        descriptor: the descriptor of the message.
        path: where it is.
        inside: the messages that it is within.
        exact: whether timestamps keep their nanoseconds.

    Raises:
        SchemaError: it has no columns, because it is inside of itself, for example.
    """
    if descriptor.full_name in inside:
        raise SchemaError(
            f"{path} is {descriptor.full_name} inside of itself: recursive schemas are not supported; use bytes"
        )
    inside = (*inside, descriptor.full_name)
    if len(inside) > MOST_LEVELS:
        raise SchemaError(f"{path} {TOO_DEEP}; use bytes")
    oneofs, fields = list_fields(descriptor)
    members: dict[str, tuple[Get, MessageColumn]] = {}
    for column, oneof in oneofs.items():
        if column in {field.name for field in fields}:
            raise SchemaError(
                f"{path} has a oneof {oneof.name}, whose column is {column}, and a field {column}: rename one of them; "
                "use bytes"
            )
        struct = _make_struct({one.name: _read_field(one, f"{path}.{one.name}", inside, exact) for one in oneof.fields})
        members[column] = partial(_get_chosen, oneof.name), struct
    return _make_struct(members | {one.name: _read_field(one, f"{path}.{one.name}", inside, exact) for one in fields})


def list_fields(descriptor: Descriptor) -> tuple[dict[str, OneofDescriptor], list[FieldDescriptor]]:
    """Return the oneofs of a message by their columns, and the fields in none of them, as an `optional` one is."""
    oneofs = list_oneofs(descriptor)
    members = {field.name for oneof in oneofs.values() for field in oneof.fields}
    return oneofs, [field for field in descriptor.fields if field.name not in members]


def _make_struct(members: Mapping[str, tuple[Get, MessageColumn]]) -> MessageColumn:
    """Return a struct of members with what reads each; without any it only shows whether it is set."""
    type = make_struct_type({name: column.type for name, (_, column) in members.items()})
    built = {name: (get, column.build) for name, (get, column) in members.items()}
    return MessageColumn(
        type, arrays.make_struct_builder(built or {PLACEHOLDER: (_get_nothing, _make_leaf(Primitive.STRING).build)})
    )


def _get_nothing(_: Any) -> None:
    return None


def _get_chosen(oneof: str, message: Any) -> Any:
    return None if choose(oneof, message) is None else message


def _get_present(name: str, message: Any) -> Any:
    return getattr(message, name) if has(message, name) else None


def _read_field(field: FieldDescriptor, path: str, inside: tuple[str, ...], exact: bool) -> tuple[Get, MessageColumn]:
    """Return what reads a field of a message, and its column."""
    get, inner = attrgetter(field.name), field.message_type
    if inner is not None and inner.GetOptions().map_entry:
        key, value = (_read_values(inner.fields_by_name[name], path, inside, exact) for name in ("key", "value"))
        if key.type is Primitive.STRING:
            return partial(_sort_entries, get), MessageColumn(Map(value.type), arrays.make_map(value.build))
        entry = _make_struct({"key": (itemgetter(0), key), "value": (itemgetter(1), value)})
        return lambda message: list(_sort_entries(get, message).items()), _make_list(entry)
    column = _read_values(field, path, inside, exact)
    if field.is_repeated:
        return get, _make_list(column)
    return partial(_get_present, field.name) if field.has_presence else get, column


def _sort_entries(get: Get, message: Any) -> dict[Any, Any]:
    """Return the entries of a map in the order of their keys: Protobuf's own differs from process to process."""
    entries = get(message)
    return {key: entries[key] for key in sorted(entries)}


def _make_list(item: MessageColumn) -> MessageColumn:
    return MessageColumn(List(item.type), arrays.make_list(item.build))


def _read_values(field: FieldDescriptor, path: str, inside: tuple[str, ...], exact: bool) -> MessageColumn:
    """Return the column of what a field holds."""
    inner = field.message_type
    if inner is None:
        name = None if field.enum_type is None else _make_namer(field.enum_type)
        return _make_leaf(_PRIMITIVES[field.type], name)
    return _read_known(field, inner, exact) or make_message_column(inner, path, inside, exact=exact)


def _make_leaf(type: Primitive | Decimal, read: Get | None = None) -> MessageColumn:
    return MessageColumn(type, arrays.make_leaf(type, read))


def _make_namer(enum: EnumDescriptor) -> Callable[[int], str]:
    """Return what names a value; one that the schema does not have is its number."""
    names = {value.number: value.name for value in reversed(enum.values)}
    return lambda number: names.get(number) or str(number)


# Messages that have a type of their own


def _read_known(field: FieldDescriptor, inner: Descriptor, exact: bool) -> MessageColumn | None:
    name = inner.full_name
    if name == _DECIMAL:
        return _read_decimal(field) if _list_shapes(inner) == _DECIMAL_SHAPES else None
    expected = _find_googles().get(name)
    if expected is None or _list_shapes(inner) != _list_shapes(expected):
        return None
    if exact and name == "google.protobuf.Timestamp":
        return _make_leaf(Primitive.TIMESTAMP_NS, _read_nanos)
    if name in _LEAVES:
        return _make_leaf(*_LEAVES[name])
    return _make_leaf(_PRIMITIVES[expected.fields_by_name["value"].type], attrgetter("value"))


@cache
def _find_googles() -> dict[str, Any]:
    """Return the messages of Google's that have a type, by their full names."""
    wrappers = list(wrappers_pb2.DESCRIPTOR.message_types_by_name.values())
    others = (timestamp_pb2.Timestamp, struct_pb2.Struct, struct_pb2.Value, struct_pb2.ListValue)
    messages = [*wrappers, *(one.DESCRIPTOR for one in (*others, date_pb2.Date, timeofday_pb2.TimeOfDay))]
    return {message.full_name: message for message in messages}


_Shapes = dict[str, list[tuple[str, int, int, bool]]]


def _list_shapes(descriptor: Descriptor) -> _Shapes:
    """Return the fields of a message, and of all in it, by the messages' names: names belong to whoever registers."""
    shapes: _Shapes = {}
    waiting = [descriptor]
    while waiting:
        message = waiting.pop()
        if message.full_name not in shapes:
            fields = sorted(message.fields, key=lambda field: int(field.number))
            shapes[message.full_name] = [(each.name, each.number, each.type, each.is_repeated) for each in fields]
            waiting += [each.message_type for each in fields if each.message_type is not None]
    return shapes


def _read_moment(moment: Any) -> int:
    return int(moment.seconds * 1000 + moment.nanos // 1_000_000)


def _read_nanos(moment: Any) -> int:
    nanos = int(moment.seconds * 1_000_000_000 + moment.nanos)
    if not -(2**63) <= nanos < 2**63:
        raise Misfit(Primitive.TIMESTAMP_NS, reason="is not between 1677 and 2262, which 64 bits of nanoseconds hold")
    return nanos


def _read_date(day: Any) -> int:
    try:
        return datetime.date(day.year, day.month, day.day).toordinal() - _EPOCH
    except ValueError:
        raise Misfit(Primitive.DATE, reason="is not a day of the calendar, of the years 1 to 9999") from None


def _read_time(time: Any) -> int:
    of_day = datetime.time(time.hours, time.minutes, time.seconds, time.nanos // 1000)
    return ((of_day.hour * 60 + of_day.minute) * 60 + of_day.second) * 1000 + of_day.microsecond // 1000


def _write_json(message: Any) -> str:
    try:
        text: str = json_format.MessageToJson(message, indent=None, sort_keys=True)
    except ValueError:  # the library knows of no other reason
        reason = "holds NaN or an infinity, which JSON does not have: send it as a text, or in a field of type double"
        raise Misfit(Primitive.STRING, reason=reason) from None
    return text


_LEAVES: dict[str, tuple[Primitive, Get]] = {
    "google.protobuf.Timestamp": (Primitive.TIMESTAMP, _read_moment),
    "google.type.Date": (Primitive.DATE, _read_date),
    "google.type.TimeOfDay": (Primitive.TIME, _read_time),
    **{f"google.protobuf.{name}": (Primitive.STRING, _write_json) for name in ("Struct", "Value", "ListValue")},
}

_DECIMAL = "confluent.type.Decimal"
_DECIMAL_SHAPES: _Shapes = {
    _DECIMAL: [
        ("value", 1, _OF.TYPE_BYTES, False),
        ("precision", 2, _OF.TYPE_UINT32, False),
        ("scale", 3, _OF.TYPE_INT32, False),
    ]
}


def _read_decimal(field: FieldDescriptor) -> MessageColumn | None:
    """Return the column of a decimal whose field has its scale; without one each value has a scale of its own."""
    params = _read_params(field)
    try:
        scale, precision = int(params["scale"]), int(params.get("precision") or MOST_DIGITS)
    except (KeyError, ValueError):
        return None
    precision = min(precision or MOST_DIGITS, MOST_DIGITS)
    if not 0 <= scale <= precision:
        return None
    return _make_leaf(Decimal(precision, scale), _to_decimal)


def _to_decimal(message: Any) -> decimal.Decimal:
    if len(message.value) > _MOST_BYTES or abs(message.scale) > _MOST_BYTES:
        raise ValueError("it has more digits than any column")
    unscaled = int.from_bytes(message.value, "big", signed=True)
    return decimal.Decimal(unscaled).scaleb(-message.scale, _EXACT)


def _read_params(field: FieldDescriptor) -> dict[str, str]:
    """Return the parts of Connect's schema that Confluent's converter wrote next to a field."""
    pool = field.file.pool
    try:
        meta = pool.FindExtensionByName(known_files.FIELD_META)
        options = message_factory.GetMessageClass(meta.containing_type)
        written = options.FromString(field.GetOptions().SerializeToString())
        return dict(written.Extensions[meta].params) if written.HasExtension(meta) else {}
    except (KeyError, AttributeError, TypeError, ValueError):  # none is imported, or one of another shape
        return {}
