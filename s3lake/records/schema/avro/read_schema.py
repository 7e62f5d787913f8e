"""Avro schemas read: the columns of a value, and how its datums are read.

A datum is read with a schema that is made for it: logical types are taken away, so dates and times stay the numbers
that Arrow wants, and every branch of a wide union becomes a record of one field. Records add no bytes of their own, so
this reads the same datum, and tells an `int` from a `long`.

Columns are as in Confluent's AvroData; a wide union is a struct with one field for each branch.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from msgspec import structs

from s3lake.records.schema.avro.defaults import read_default
from s3lake.records.schema.avro.logical_types import is_valid, strip_invalid
from s3lake.records.schema.columns.details import REQUIRED, Detail, format_properties
from s3lake.records.schema.columns.types import (
    MOST_DIGITS,
    MOST_LEVELS,
    TOO_DEEP,
    UNKNOWN,
    Decimal,
    List,
    Map,
    Primitive,
    Struct,
    Type,
    make_struct_type,
)
from s3lake.records.schema.connect_schema import SchemaError

UNION = "io.confluent.connect.avro.Union"
"""What Confluent calls the struct of a union."""

_NODES = 10_000
_STRUCTURE = {
    *("type", "name", "namespace", "fields", "items", "values", "symbols", "size"),
    *("doc", "aliases"),  # what differs in these alone shares files
}
"""What Avro's specification calls attributes; `default`, of fields, is judged by itself."""
_PRIMITIVES = {
    "boolean": Primitive.BOOL,
    "int": Primitive.INT32,
    "long": Primitive.INT64,
    "float": Primitive.FLOAT,
    "double": Primitive.DOUBLE,
    "bytes": Primitive.BINARY,
    "string": Primitive.STRING,
}
NAMED = ("record", "error", "enum", "fixed")

_TIMES = {
    ("int", "date"): Primitive.DATE,
    ("int", "time-millis"): Primitive.TIME,
    ("long", "timestamp-millis"): Primitive.TIMESTAMP,
    ("long", "local-timestamp-millis"): Primitive.TIMESTAMP,
}
"""AvroData leaves micros and nanos the `long` that they are."""
_EXACT_TIMES = _TIMES | {
    ("long", "time-micros"): Primitive.TIME_US,
    ("long", "timestamp-micros"): Primitive.TIMESTAMP_US,
    ("long", "local-timestamp-micros"): Primitive.TIMESTAMP_US,
    ("long", "timestamp-nanos"): Primitive.TIMESTAMP_NS,
    ("long", "local-timestamp-nanos"): Primitive.TIMESTAMP_NS,
}
_DEBEZIUM = {
    ("int", "io.debezium.time.Date"): "date",
    ("int", "io.debezium.time.Time"): "time-millis",
    ("long", "io.debezium.time.MicroTime"): "time-micros",
    ("long", "io.debezium.time.Timestamp"): "timestamp-millis",
    ("long", "io.debezium.time.MicroTimestamp"): "timestamp-micros",
    ("long", "io.debezium.time.NanoTimestamp"): "timestamp-nanos",
}
"""Debezium defines a number by the name of Connect's schema, and names no logical type."""


@dataclass(frozen=True)
class SchemaNode:
    """A part of a schema.

    Attributes:
        type: the type of the column, unknown if there is never anything but null.
        plain: the schema that datums are read with; with the `scale` of a decimal whose column has another.
        written: the schema as a file has it; None if its values would not read back as its column's do: a union of
            several types, a field that is only null, a logical type that its column shows in another way.
        detail: what the schema has of the column besides its type.
    """

    type: Type
    plain: Any
    written: Any = None
    detail: Detail = REQUIRED


def read_schema(
    text: str, references: Mapping[str, str], *, exact: bool = False, digits: int = MOST_DIGITS
) -> tuple[str | None, SchemaNode]:
    """Return the name of a schema's record, None if it is not a record, and the schema.

    Args:
        references: schemas that it refers to, each after the ones that it refers to itself.
        exact: whether times have columns that AvroData does not know: micros and nanos, and Debezium's.
        digits: how many a decimal may have.

    Raises:
        SchemaError: it is not valid, or has no columns.
    """
    named: dict[str, Any] = {}
    try:
        for reference in references.values():
            _parse(reference, named)
        schema = _parse(text, named)
        node = _NamedTypes(named, exact, digits).read(schema, "the schema", 0)
    except SchemaError:
        raise
    except RecursionError:
        raise SchemaError("it is nested too deeply") from None
    except Exception as error:  # fastavro's several kinds for an invalid schema
        raise SchemaError(f"it is not valid Avro: {type(error).__name__}: {error}"[:300]) from None
    branches = [one for one in node.plain if one != "null"] if isinstance(node.plain, list) else [node.plain]
    name = UNION if len(branches) > 1 else node.detail.name
    return name, node


def _parse(text: str, named: dict[str, Any]) -> Any:
    """Parse a registered schema, whose named types are added; some registries give a primitive without quotes."""
    from fastavro import parse_schema

    schema = text.strip() if text.strip() in {*_PRIMITIVES, "null"} else json.loads(text, parse_constant=_refuse)
    _refuse_nested_types(schema)
    return parse_schema(strip_invalid(schema), named, _write_hint=False, _force=True, _ignore_default_error=True)


def _refuse_nested_types(schema: Any) -> None:
    """Refuse an object whose `type` is another schema, as Avro's Java does; fastavro's error names no place."""
    match schema:
        case list():
            for branch in schema:
                _refuse_nested_types(branch)
        case {"type": nested} if not isinstance(nested, str):
            raise SchemaError(
                f"{json.dumps(schema)[:100]} has another schema as its type; expected the name of a type, as "
                '{"type": "string"}: write the inner schema alone'
            )
        case {"fields": list(fields)}:
            for member in fields:
                _refuse_nested_types(member.get("type") if isinstance(member, dict) else None)
        case {"items": inner} | {"values": inner}:
            _refuse_nested_types(inner)


def _refuse(constant: str) -> None:
    raise SchemaError(f"{constant} is not JSON")


@dataclass
class _NamedTypes:
    """Named types by their full names, and the names of the ones that are being read."""

    named: Mapping[str, Any]
    exact: bool
    digits: int
    inside: list[str] = field(default_factory=list)
    nodes: int = 0

    def read(self, schema: Any, path: str, level: int) -> SchemaNode:
        self.nodes += 1
        if level > MOST_LEVELS:
            raise SchemaError(f"{path} {TOO_DEEP}; use bytes")
        if self.nodes > _NODES:
            raise SchemaError(f"the schema has more than {_NODES} parts")
        match schema:
            case list():
                return self._read_union(schema, path, level)
            case "null" | {"type": "null"}:
                return SchemaNode(UNKNOWN, "null")
            case str() if schema in _PRIMITIVES:
                return SchemaNode(_PRIMITIVES[schema], schema, schema)
            case str():
                return self.read(self.named[schema], path, level)
        return self._read_described(schema, path, level)

    def _read_described(self, schema: dict[str, Any], path: str, level: int) -> SchemaNode:
        """Read a part of a schema that is an object."""
        match schema["type"]:
            case "record" | "error":
                return self._read_record(schema, path, level)
            case "array":
                return _make_array(self.read(schema["items"], f"{path}[]", level + 1), schema)
            case "map":
                return _make_map(self.read(schema["values"], f"{path}{{}}", level + 1), schema)
            case "enum":
                plain = {"type": "enum", "name": f"E{self.nodes}", "symbols": schema["symbols"]}
                written = plain | {"name": schema["name"]} | _list_properties(schema)
                return SchemaNode(Primitive.STRING, plain, written, _detail_of(schema, without=("default",)))
            case "fixed":
                if type(schema["size"]) is not int or schema["size"] < 0:
                    raise SchemaError(f"{path}.size is {schema['size']!r}: a number of bytes is expected")
                plain = {"type": "fixed", "name": f"F{self.nodes}", "size": schema["size"]}
                written = plain | {"name": schema["name"]} | _list_properties(schema)
                node = self._read_logical(schema, plain, written)
                # A duration is valid on a fixed, and not on the bytes that it is in files that are written again.
                detail = _detail_of(schema, without=("logicalType",) if is_valid(schema) else ())
                return node or SchemaNode(Primitive.BINARY, plain, written, detail)
        name, properties = schema["type"], _list_properties(schema)
        node = self._read_logical(schema, name, {"type": name} | properties)
        detail = structs.replace(_detail_of(schema), time=_find_unit(schema))
        return node or SchemaNode(_PRIMITIVES[name], name, {"type": name} | properties if properties else name, detail)

    def _read_record(self, schema: dict[str, Any], path: str, level: int) -> SchemaNode:
        name, number = schema["name"], self.nodes
        if name in self.inside:
            # Columns would have no end, and data that nests without end kills the process that reads it.
            raise SchemaError(f"{path} is {name} inside of itself: recursive schemas are not supported; use bytes")
        self.inside.append(name)
        nodes: dict[str, SchemaNode] = {}
        defaults: dict[str, Any] = {}
        for described in schema["fields"]:
            member = described["name"]
            if member in nodes:
                raise SchemaError(f"{path}: a field is called {member!r}; a name that no other has is expected")
            nodes[member] = self.read(described["type"], f"{path}.{member}", level + 1)
            if "default" in described:
                with suppress(ValueError):
                    defaults[member] = {"default": read_default(described["default"], described["type"], self.named)}
        self.inside.pop()
        present = {member: node for member, node in nodes.items() if node.type != UNKNOWN}
        plain = [{"name": member, "type": node.plain} for member, node in nodes.items()]
        own = {
            described["name"]: {key: one for key, one in _list_properties(described).items() if key != "default"}
            for described in schema["fields"]
        }
        written = [
            {"name": member, "type": node.written} | own[member] | defaults.get(member, {})
            for member, node in nodes.items()
        ]
        inner = tuple(
            structs.replace(
                _add_default(node, defaults.get(member, {})), field_properties=format_properties(own[member])
            )
            for member, node in present.items()
        )
        return SchemaNode(
            make_struct_type({member: node.type for member, node in present.items()}),
            {"type": "record", "name": f"R{number}", "fields": plain},
            {"type": "record", "name": name, "fields": written} | _list_properties(schema)
            if all(one["type"] for one in written)
            else None,
            _detail_of(schema, name=name, inner=inner or (Detail(),)),
        )

    def _read_union(self, schema: list[Any], path: str, level: int) -> SchemaNode:
        number = self.nodes
        schema = ["null" if one == {"type": "null"} else one for one in schema]
        branches = [one for one in schema if one != "null"]
        is_required = len(branches) == len(schema)
        if len(branches) < 2:
            nodes = [self.read(one, path, level) for one in schema]
            inner = next((one for one in nodes if one.type != UNKNOWN), SchemaNode(UNKNOWN, "null"))
            written = [one.written or "null" for one in nodes] if len(nodes) == 2 and inner.written else None
            detail = structs.replace(inner.detail, required=is_required)
            return SchemaNode(inner.type, [one.plain for one in nodes], written, detail)
        members = dict(zip(_name_branches(branches), branches, strict=False))
        if len(members) < len(branches):
            raise SchemaError(f"{path} is a union with two branches of one name")
        by_name = {name: self.read(one, f"{path}.{name}", level + 1) for name, one in members.items()}
        wrapped = iter(
            {"type": "record", "name": f"U{number}_{at}", "fields": [{"name": name, "type": node.plain}]}
            for at, (name, node) in enumerate(by_name.items())
        )
        plain = [one if one == "null" else next(wrapped) for one in schema]
        present = {name: one for name, one in by_name.items() if one.type != UNKNOWN}
        inner_details = tuple(structs.replace(one.detail, required=False) for one in present.values())
        type = Struct({name: one.type for name, one in present.items()})
        return SchemaNode(type, plain, detail=Detail(required=is_required, inner=inner_details))

    def _read_logical(self, schema: dict[str, Any], plain: Any, written: dict[str, Any]) -> SchemaNode | None:
        """Read a logical type. Return None if it has no column of its own."""
        physical, logical = schema["type"], schema["logicalType"] if is_valid(schema) else None
        if logical is None and self.exact:
            logical = _DEBEZIUM.get((physical, str(schema.get("connect.name"))))
        if logical is None:
            return None
        written = written | {"logicalType": logical}
        if logical == "decimal":
            return _make_decimal(schema, plain, written, self.digits)
        if logical == "uuid":  # of a fixed it is a text in files: many readers know no other
            return SchemaNode(
                Primitive.UUID, plain, written if physical == "string" else None, _detail_of_logical(schema)
            )
        time = (_EXACT_TIMES if self.exact else _TIMES).get((physical, logical))
        is_local = logical.startswith("local-")  # its column shows it as if it were in UTC
        return SchemaNode(time, plain, None if is_local else written, _detail_of_logical(schema)) if time else None


def _find_unit(schema: dict[str, Any]) -> str | None:
    """Return what a number is that has no column of its own, but is a time: its type with `exact`."""
    physical, logical = schema["type"], schema["logicalType"] if is_valid(schema) else None
    time = _EXACT_TIMES.get((physical, logical or _DEBEZIUM.get((physical, str(schema.get("connect.name"))), "")))
    return None if time is None else str(time)


def _name_branches(branches: list[Any]) -> list[str]:
    """Name the field of each branch after its type, with the namespace only where two have one name."""
    full = [one if isinstance(one, str) else str(one["name" if one["type"] in NAMED else "type"]) for one in branches]
    short = [one.rpartition(".")[2] for one in full]
    return [long.replace(".", "_") if short.count(name) > 1 else name for name, long in zip(short, full, strict=True)]


def _list_properties(schema: dict[str, Any]) -> dict[str, Any]:
    """Return what a schema, or a field, has besides its structure: properties of its producer or of its readers."""
    return {name: value for name, value in schema.items() if name not in _STRUCTURE}


def _detail_of(
    schema: dict[str, Any], *, name: str | None = None, inner: tuple[Detail, ...] = (), without: Collection[str] = ()
) -> Detail:
    """Return the detail of a type that is never null."""
    properties = {key: value for key, value in _list_properties(schema).items() if key not in without}
    return Detail(required=True, name=name, inner=inner, properties=format_properties(properties))


def _detail_of_logical(schema: dict[str, Any]) -> Detail:
    """Return the detail of a logical type that its column's type has."""
    return _detail_of(schema, without=("logicalType", "precision", "scale"))


def _give_column(node: SchemaNode) -> SchemaNode:
    """Return items that are only null with a column, a text that is always null: how many they are is a fact."""
    return replace(node, type=Primitive.STRING, detail=Detail()) if node.type == UNKNOWN else node


def _make_array(items: SchemaNode, schema: dict[str, Any]) -> SchemaNode:
    items = _give_column(items)
    written = items.written and {"type": "array", "items": items.written} | _list_properties(schema)
    plain = {"type": "array", "items": items.plain}
    return SchemaNode(List(items.type), plain, written, _detail_of(schema, inner=(items.detail,)))


def _make_map(values: SchemaNode, schema: dict[str, Any]) -> SchemaNode:
    values = _give_column(values)
    plain = {"type": "map", "values": values.plain}
    written = values.written and {"type": "map", "values": values.written} | _list_properties(schema)
    return SchemaNode(Map(values.type), plain, written, _detail_of(schema, inner=(values.detail,)))


def _make_decimal(schema: dict[str, Any], plain: Any, written: dict[str, Any], digits: int) -> SchemaNode:
    """Read a decimal. One of more digits than there may be can have values that fit: places before the point first."""
    precision, scale = schema["precision"], schema.get("scale", 0)
    fits = written | {"precision": precision, "scale": scale} if precision <= MOST_DIGITS else None
    type = Decimal(min(precision, digits), scale)
    if scale > digits:
        type = Decimal(digits, max(0, digits - (precision - scale)))
        plain = {**(plain if isinstance(plain, dict) else {"type": plain}), "scale": scale}
    return SchemaNode(type, plain, fits, _detail_of_logical(schema))


def _add_default(node: SchemaNode, default: Mapping[str, Any]) -> Detail:
    """Return the detail of a field, with its default where a file's column has one like it."""
    value = default.get("default")
    has_parts = isinstance(node.type, Struct) or (isinstance(value, dict | list) and value)
    if value is None or has_parts or node.type is Primitive.UUID:
        return node.detail
    return structs.replace(node.detail, default=json.dumps(value))
