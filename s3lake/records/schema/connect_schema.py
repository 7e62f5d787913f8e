"""Connect's JSON with its schema: `{"schema": …, "payload": …}` per record.

A schema is compiled once: to columns, to a decoder that refuses payloads which do not fit, and, only where a payload
cannot stay as it is (decimals in base64, defaults, maps whose keys are not strings), to a function that mends it.
"""

import base64
import decimal
import functools
import itertools
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any, Optional, Union

import msgspec
from msgspec import structs

from s3lake.records.schema.columns import time_units
from s3lake.records.schema.columns.details import MAP_ENTRY, NAME_SPACE, REQUIRED, Detail
from s3lake.records.schema.columns.types import (
    MOST_DIGITS,
    MOST_LEVELS,
    TOO_DEEP,
    Decimal,
    List,
    Map,
    Primitive,
    Struct,
    Type,
    fields_of,
    item_of,
    make_struct_type,
)

_LOGICAL = "org.apache.kafka.connect.data."


class SchemaWithPayload(msgspec.Struct, forbid_unknown_fields=True):
    """A value or key with its schema."""

    schema: msgspec.Raw
    payload: msgspec.Raw


class SchemaError(ValueError):
    """A schema that Connect does not have; the message has the place in it, and what is there."""


@dataclass(frozen=True)
class Schema:
    """The schema of a payload: two with the same name, type and detail are equal.

    Attributes:
        name: the name of a struct; None if it has no name.
        detail: what the schema has besides the type; None if it has nothing, and everything may be null.
        file: the schema of Avro files that hold the values as they came; None if they are written again.
    """

    name: str | None
    type: Type
    file: bytes | None = None
    detail: Detail | None = None

    def __post_init__(self) -> None:
        if self.name is not None and not _is_text(self.name):
            raise SchemaError(f"its name {ascii(self.name)[:80]} has half a character, which no file can hold")


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


Mend = Callable[[Any], Any]
"""Makes a value that was read what it shall be; it may change it in its place."""

ReadPayload = Callable[[bytes], bytes]
"""A payload's JSON text as it is written; raises msgspec.ValidationError where it does not fit."""


@dataclass(frozen=True)
class _Way:
    """How payloads are read: the arguments of `compile_schema`."""

    tabular: bool
    null_to_default: bool
    exact: bool


@dataclass(frozen=True)
class _Node:
    """A compiled part of a schema: its column, what msgspec decodes, and what mends the decoded value."""

    type: Type
    decoded: Any
    mend: Mend | None = None
    detail: Detail = REQUIRED


UNREADABLE = re.compile(r'["\\\x00-\x1f]')
"""Characters that msgspec does not take in the name of a field."""

_envelope = msgspec.json.Decoder(SchemaWithPayload).decode
_encode = msgspec.json.Encoder(decimal_format="number").encode


def split_envelope(text: bytes) -> tuple[bytes, bytes] | None:
    """Return schema and payload of a JSON text. Return None if it is not an envelope.

    Args:
        text: a JSON text that passed the gate.
    """
    try:
        envelope = _envelope(text)
    except msgspec.DecodeError:
        return None
    return bytes(envelope.schema), bytes(envelope.payload)


@functools.lru_cache(maxsize=4096)
def compile_schema(
    text: bytes, *, tabular: bool, null_to_default: bool = False, exact: bool = False
) -> tuple[Schema, ReadPayload] | str:
    """Compile the text of a schema. Return the reason if it is not valid.

    Args:
        tabular: whether payloads become rows: maps whose keys are no strings are then lists of `key` and `value`.
        null_to_default: whether a null becomes the default of its schema, as a missing field does.
        exact: whether times of Debezium have columns of their own, where Connect has numbers.
    """
    way = _Way(tabular, null_to_default, exact)
    try:
        document = msgspec.json.decode(text)
        node = _optional(_node(document, "schema", 0, way), document, "schema", way)
    except SchemaError as error:
        return str(error)
    except RecursionError:
        return "the schema is nested too deeply"
    except (ValueError, TypeError, ArithmeticError, LookupError) as error:  # of a word that holds what it cannot hold
        return f"the schema is not valid for Connect: {error}"[:300]
    decode = _make_decoder(node.decoded)
    name = document.get("name")
    name = name if document["type"] == "struct" else None
    schema = Schema(name, node.type, detail=_name_structs(node.detail, node.type, itertools.count(1)))
    mend = node.mend
    if mend is None:

        def keep(payload: bytes) -> bytes:
            decode(payload)
            return payload

        return schema, keep
    return schema, lambda payload: _encode(mend(decode(payload)))


def _node(document: Any, path: str, level: int, way: _Way) -> _Node:
    if not isinstance(document, dict) or not isinstance(document.get("type"), str):
        raise SchemaError(f"{path} is not a Connect schema: expected an object with a type; or use converter json")
    if level > MOST_LEVELS:
        raise SchemaError(f"{path} {TOO_DEEP}; use bytes")
    type_name, name = document["type"], document.get("name")
    if name is not None and not isinstance(name, str):
        raise SchemaError(f"{path}.name is {name!r}: a text is expected")
    if not isinstance(document.get("parameters"), dict | None):
        raise SchemaError(f"{path}.parameters: an object is expected")
    if logical := _logical(type_name, name, document, path, way):
        return logical
    if type_name in _PRIMITIVES:
        return _PRIMITIVES[type_name]
    match type_name:
        case "struct":
            return _struct(document, path, level, way)
        case "array":
            return _array(_child(document, "items", path, level, way))
        case "map":
            keys = _child(document, "keys", path, level, way)
            return _map(keys, _child(document, "values", path, level, way), way)
    allowed = ", ".join((*_PRIMITIVES, "array", "map", "struct"))
    raise SchemaError(f"{path}.type {type_name!r} is not known: there are {allowed}")


def _child(document: dict[str, Any], member: str, path: str, level: int, way: _Way) -> _Node:
    path = f"{path}.{member}"
    return _optional(_node(document.get(member), path, level + 1, way), document[member], path, way)


def _optional(node: _Node, document: dict[str, Any], path: str, way: _Way) -> _Node:
    """A node that takes null where its schema does, and gives the default for what is missing.

    Where a null cannot stay one, because the schema does not allow it or the sink asks for it, it is missing too.
    """
    mend, nullable = node.mend, Optional[node.decoded]  # noqa: UP045 - the operand is a value
    is_optional, written = document.get("optional") is True, document.get("default")
    detail = structs.replace(node.detail, required=not is_optional)
    if isinstance(document.get("doc"), str):
        detail = structs.replace(detail, doc=document["doc"])
    if type(document.get("version")) is int:
        detail = structs.replace(detail, version=document["version"])
    if written is None:
        if not is_optional:
            return replace(node, detail=detail)
        keep_null = mend and (lambda value: None if value is None else mend(value))
        return _Node(node.type, nullable, keep_null, detail)
    detail = structs.replace(detail, default=_default(written, node.type, path))
    if isinstance(node.type, Decimal) and str(node.type.scale) != str((document.get("parameters") or {}).get("scale")):
        detail = structs.replace(detail, default=None)  # its bytes are not of the column's scale
    try:
        default = functools.partial(_make_decoder(node.decoded), msgspec.json.encode(written))
        default()
    except msgspec.ValidationError as error:
        raise SchemaError(f"{path}.default does not fit its schema: {error}") from None
    keeps_null = is_optional and not way.null_to_default

    def fill(value: Any) -> Any:
        if value is None and keeps_null:
            return None
        if value is None or value is msgspec.UNSET:
            value = default()  # a new one each time: it is mended in place
        return mend(value) if mend else value

    return _Node(node.type, nullable, fill, detail)


def _default(value: Any, type: Type, path: str) -> str | None:
    """A default as Avro writes it: bytes are texts of as many characters; None for what has parts."""
    if isinstance(value, dict | list):
        return None
    if isinstance(value, str) and (type is Primitive.BINARY or isinstance(type, Decimal)):
        try:
            value = base64.b64decode(value).decode("latin-1")
        except ValueError as error:
            raise SchemaError(f"{path}.default is {value!r:.40}: base64 is expected ({error})") from None
    elif isinstance(type, Decimal):
        return None
    return json.dumps(value)


def _name_structs(detail: Detail, type: Type, unnamed: Iterator[int]) -> Detail:
    """The detail with a name for every struct: those without one are numbered, as Confluent's AvroData does."""
    name = detail.name
    if fields_of(type) and name is None:
        number = next(unnamed)
        name = f"{NAME_SPACE}.ConnectDefault{number if number > 1 else ''}"
    # As many details as there are types within: a struct's fields, or what a list or a map holds.
    types = fields_of(type).values() or [item_of(type)]
    inner = tuple(_name_structs(each, of, unnamed) for each, of in zip(detail.inner, types, strict=False))
    return structs.replace(detail, name=name, inner=inner)


def _keep(value: Any) -> Any:
    return value


def _make_decoder(decoded: Any) -> Callable[[bytes], Any]:
    return msgspec.json.Decoder(decoded, float_hook=to_exact).decode


def to_exact(text: str) -> decimal.Decimal:
    """Return the number of a text. Raise ValueError, which msgspec reports with its place, if it is beyond bounds."""
    try:
        return decimal.Decimal(text)
    except ArithmeticError:
        raise ValueError("a number has an exponent beyond all bounds") from None


def _struct(document: dict[str, Any], path: str, level: int, way: _Way) -> _Node:
    fields = document.get("fields")
    if not isinstance(fields, list):
        raise SchemaError(f"{path}.fields: a list of the struct's fields is expected")
    nodes: dict[str, _Node] = {}
    members: list[tuple[str, Any, Any]] = []
    for at, field in enumerate(fields):
        here = f"{path}.fields[{at}]"
        name = field.get("field") if isinstance(field, dict) else None
        if not isinstance(name, str) or name in nodes:
            raise SchemaError(f"{here}.field is {name!r}: a name that no other field has is expected")
        if UNREADABLE.search(name):
            raise SchemaError(f"{here}.field is {name[:80]!r}: a name without quotes, backslashes, control characters")
        node = nodes[name] = _optional(_node(field, here, level + 1, way), field, here, way)
        members.append((f"f{at}", *_member(node.decoded, field)))
    # Names of fields need be no names of Python's.
    rename = {f"f{at}": name for at, name in enumerate(nodes)}
    decoded = msgspec.defstruct("Payload", members, rename=rename, forbid_unknown_fields=True, kw_only=True)
    mends = [(f"f{at}", node.mend) for at, node in enumerate(nodes.values()) if node.mend]

    def mend(value: Any) -> Any:
        for attribute, mend_field in mends:
            setattr(value, attribute, mend_field(getattr(value, attribute)))
        return value

    inner = tuple(node.detail for node in nodes.values()) or (Detail(),)
    type = make_struct_type({name: node.type for name, node in nodes.items()})
    return _Node(type, decoded, mend if mends else None, Detail(required=True, name=document.get("name"), inner=inner))


def _member(decoded: Any, field: dict[str, Any]) -> tuple[Any, Any]:
    """The type and the default of a struct's member: what is missing is not null where it has a default."""
    if field.get("default") is not None:
        return Union[decoded, msgspec.UnsetType], msgspec.field(default=msgspec.UNSET)  # noqa: UP007 - a value
    return decoded, msgspec.field(default=None) if field.get("optional") is True else msgspec.field()


def _array(items: _Node) -> _Node:
    decoded: Any = list[items.decoded]  # type: ignore[name-defined]
    detail = Detail(required=True, inner=(items.detail,))
    mend = items.mend
    return _Node(List(items.type), decoded, mend and (lambda values: list(map(mend, values))), detail)


def _map(keys: _Node, values: _Node, way: _Way) -> _Node:
    key, value = keys.mend or _keep, values.mend or _keep
    decoded: Any

    def mend_members(members: Any) -> Any:
        return {name: value(one) for name, one in members.items()}

    if keys.type is Primitive.STRING:
        decoded = dict[str, values.decoded]  # type: ignore[name-defined]
        detail = Detail(required=True, inner=(values.detail,))
        return _Node(Map(values.type), decoded, mend_members if values.mend else None, detail)

    def mend_pairs(pairs_of_file: Any) -> Any:
        pairs = [(key(one), value(other)) for one, other in pairs_of_file]
        return [{"key": one, "value": other} for one, other in pairs] if way.tabular else pairs

    decoded = list[tuple[keys.decoded, values.decoded]]  # type: ignore[name-defined]
    type = List(Struct({"key": keys.type, "value": values.type}))
    entry = Detail(required=True, name=MAP_ENTRY, inner=(keys.detail, values.detail))
    detail = Detail(required=True, inner=(entry,))
    return _Node(type, decoded, mend_pairs if way.tabular or keys.mend or values.mend else None, detail)


def _logical(type_name: str, name: str | None, document: dict[str, Any], path: str, way: _Way) -> _Node | None:
    if (type_name, name) == ("bytes", f"{_LOGICAL}Decimal"):
        return _decimal(document, path)
    time, debezium = time_units.CONNECT.get((type_name, name or "")), time_units.DEBEZIUM.get((type_name, name or ""))
    if debezium is not None and not way.exact:
        return replace(_PRIMITIVES[type_name], detail=structs.replace(REQUIRED, time=str(debezium)))
    time = time or debezium
    if time is None:
        return None
    ticks = time_units.OF_DAY.get(time)
    return _Node(time, Annotated[int, msgspec.Meta(ge=0, lt=ticks)] if ticks else _PRIMITIVES[type_name].decoded)


def _decimal(document: dict[str, Any], path: str) -> _Node:
    parameters = document.get("parameters") or {}
    try:
        scale = int(parameters["scale"])
        precision = int(parameters.get("connect.decimal.precision", MOST_DIGITS))
    except (KeyError, TypeError, ValueError, AttributeError):
        raise SchemaError(f"{path}.parameters: a decimal needs its scale, for example {{'scale': '2'}}") from None
    # Texts hold every number. A column holds numbers of its scale, and of as many digits as there can be. Each other
    # number is refused.
    scale_of_column = min(max(scale, 0), MOST_DIGITS)
    precision = MOST_DIGITS if not 0 <= scale <= precision else min(precision, MOST_DIGITS)

    def mend(value: Any) -> msgspec.Raw:
        try:
            if isinstance(value, str):
                unscaled = int.from_bytes(base64.b64decode(value, validate=True), "big", signed=True)
                number = decimal.Decimal(f"{unscaled}E{-scale}")
            else:
                number = decimal.Decimal(value)
            # One of more zeros than that would fill the memory of whoever writes it out.
            if isinstance(value, bool) or not number.is_finite() or abs(number.adjusted()) > _MOST_ZEROS:
                raise ValueError
        except (ValueError, TypeError, ArithmeticError):
            # Not what it is: the path is of the schema, and does not tell whether the field's name is a secret's.
            raise msgspec.ValidationError(f"no decimal: base64 of its bytes, or a number - at `{path}`") from None
        return msgspec.Raw((format(number, "f") if abs(number.adjusted()) <= _MOST_PLAIN else str(number)).encode())

    return _Node(Decimal(precision, scale_of_column), Any, mend)


_MOST_ZEROS = 100_000
_MOST_PLAIN = 1_000


def _integer(bits: int) -> Any:
    return Annotated[int, msgspec.Meta(ge=-(2 ** (bits - 1)), le=2 ** (bits - 1) - 1)]


_PRIMITIVES = {
    "boolean": _Node(Primitive.BOOL, bool),
    "int8": _Node(Primitive.INT32, _integer(8)),
    "int16": _Node(Primitive.INT32, _integer(16)),
    "int32": _Node(Primitive.INT32, _integer(32)),
    "int64": _Node(Primitive.INT64, _integer(64)),
    "float": _Node(Primitive.FLOAT, int | float),  # an integer stays one: who makes the column decides whether it fits
    "double": _Node(Primitive.DOUBLE, int | float),
    "string": _Node(Primitive.STRING, str),
    "bytes": _Node(Primitive.BINARY, bytes),
}
