"""Avro schemas compiled: to columns, and to how a datum is read.

A datum is read by fastavro with a schema that is made for it: logical types are taken away, so dates and times stay the
numbers that JSON and Arrow want, and every branch of a wide union becomes a record of one field. Records add no bytes
of their own, so this reads the same datum, and tells an `int` from a `long`.

Columns are those of Confluent's AvroData; a wide union is a struct with one field for each branch.
"""

from __future__ import annotations

import decimal
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from msgspec import structs

from s3lake.schema import mending
from s3lake.schema.avro_names import definitions, full_name, space_of
from s3lake.schema.avro_times import logical_type, time_of
from s3lake.schema.connect import SchemaError
from s3lake.schema.details import REQUIRED, Detail
from s3lake.schema.mending import IsOdd, Mend
from s3lake.schema.types import MOST_DIGITS, MOST_LEVELS, UNKNOWN, Decimal, List, Map, Primitive, Struct, Type

UNION = "io.confluent.connect.avro.Union"
"""What Confluent calls the struct of a union."""

_NODES = 10_000
_EXACT = decimal.Context(prec=1_000, traps=[decimal.Inexact, decimal.InvalidOperation])
_PRIMITIVES = {
    "boolean": Primitive.BOOL,
    "int": Primitive.INT32,
    "long": Primitive.INT64,
    "float": Primitive.FLOAT,
    "double": Primitive.DOUBLE,
    "bytes": Primitive.BINARY,
    "string": Primitive.STRING,
}
_OWN = frozenset((*_PRIMITIVES, "record", "error", "array", "map", "enum", "fixed"))
"""Types that are no names of others, which have their properties where they are defined."""


class Single(float):
    """A datum of type float, which JSON spells as one: 0.1, though as a double it is 0.10000000149011612."""

    __slots__ = ()


@dataclass(frozen=True)
class Node:
    """A compiled part of a schema.

    Attributes:
        type: of the column, unknown where there is never anything but null.
        plain: the schema that fastavro reads with.
        mend: what a value that was read becomes; None where it stays.
        written: the schema as a file has it; None where its values would not read back as its column's do: a union of
            several types, a field that is only null, a logical type that its column shows in another way.
        detail: what the schema says of the column beside its type.
        is_odd: whether a value, mended, holds a number that JSON does not have; None where none ever does.
    """

    type: Type
    plain: Any
    mend: Mend | None = None
    is_odd: IsOdd | None = None
    written: Any = None
    detail: Detail = REQUIRED


def compiled(
    text: str, references: Mapping[str, str], *, tabular: bool, exact: bool = False
) -> tuple[str | None, Node]:
    """The name of a schema's record, None where it is none, and the schema compiled.

    Args:
        text: the schema.
        references: schemas that it refers to, by any name.
        tabular: whether values become rows of a table.
        exact: whether times have columns that AvroData does not know: micros and nanos, and Debezium's.

    Raises:
        SchemaError: it is none, or has no columns.
    """
    compiler = _Compiler(tabular, exact)
    for name, reference in references.items():
        compiler.learn(_parsed(reference, f"reference {name}"), "")
    schema = _parsed(text, "the schema")
    compiler.learn(schema, "")
    return compiler.name(schema), compiler.node(schema, "the schema", "", 0)


@dataclass
class _Compiler:
    """Named types as they were defined, and those that are being compiled."""

    tabular: bool
    exact: bool
    named: dict[str, tuple[dict[str, Any], str]] = field(default_factory=dict)
    inside: list[str] = field(default_factory=list)
    nodes: int = 0

    def learn(self, schema: Any, space: str) -> None:
        """Note the named types that are defined in a schema."""
        for definition, at in definitions(schema, space):
            self.named.setdefault(full_name(definition["name"], definition, at), (definition, at))

    def name(self, schema: Any) -> str | None:
        """What the struct of a whole value is called."""
        schema = _only(schema)
        if isinstance(schema, list):
            return UNION if len([one for one in schema if one != "null"]) > 1 else None
        found = self._named(schema, "") if isinstance(schema, str) else (schema, "")
        if found is None or found[0].get("type") not in ("record", "error"):
            return None
        return full_name(found[0]["name"], *found)

    def node(self, schema: Any, path: str, space: str, level: int) -> Node:
        """A part of a schema; `space` is the namespace around it."""
        self.nodes += 1
        if level > MOST_LEVELS:
            raise SchemaError(f"{path} nests deeper than {MOST_LEVELS} levels, which Parquet's readers refuse")
        if self.nodes > _NODES:
            raise SchemaError(f"the schema has more than {_NODES} parts")
        if isinstance(schema, list):
            return self._union(schema, path, space, level)
        if isinstance(schema, str):
            return self._by_name(schema, path, space, level)
        type_name = schema.get("type") if isinstance(schema, dict) else None
        if isinstance(type_name, dict | list):
            return self.node(type_name, path, space, level)
        return _connected(self._described(schema, type_name, path, space, level), schema)

    def _described(self, schema: Any, type_name: Any, path: str, space: str, level: int) -> Node:
        """A part of a schema that is an object."""
        match type_name:
            case "record" | "error":
                return self._record(schema, path, space, level)
            case "array":
                return self._array(self.node(schema.get("items"), f"{path}[]", space, level + 1), path)
            case "map":
                return _map(self.node(schema.get("values"), f"{path}{{}}", space, level + 1))
            case "enum":
                plain = {"type": "enum", "name": f"E{self.nodes}", "symbols": schema.get("symbols")}
                return Node(
                    Primitive.STRING, plain, written=plain | {"name": full_name(schema.get("name", ""), schema, space)}
                )
            case "fixed":
                if type(schema.get("size")) is not int or schema["size"] < 0:
                    raise SchemaError(f"{path}.size is {schema.get('size')!r}: a number of bytes is expected")
                plain = {"type": "fixed", "name": f"F{self.nodes}", "size": schema.get("size")}
                written = plain | {"name": full_name(schema.get("name", ""), schema, space)}
                return self._logical(schema, plain, written, path) or Node(Primitive.BINARY, plain, written=written)
            case str() if type_name in _PRIMITIVES:
                return self._logical(schema, type_name, {"type": type_name}, path) or _primitive(type_name)
            case str():
                return self._by_name(type_name, path, space, level)
        raise SchemaError(f"{path} is no Avro schema: {schema!r:.80}")

    def _by_name(self, name: str, path: str, space: str, level: int) -> Node:
        if name == "null":
            return Node(UNKNOWN, "null")
        if name in _PRIMITIVES:
            return _primitive(name)
        definition = self._named(name, space)
        if definition is None:
            raise SchemaError(f"{path} is of type {name!r}, which neither the schema nor its references define")
        return self.node(definition[0], path, definition[1], level)

    def _named(self, name: str, space: str) -> tuple[dict[str, Any], str] | None:
        return self.named.get(f"{space}.{name}" if space and "." not in name else name) or self.named.get(name)

    def _record(self, schema: dict[str, Any], path: str, space: str, level: int) -> Node:
        name = full_name(schema.get("name", ""), schema, space)
        if name in self.inside:
            # Columns would have no end, and data that nests without end kills the process that reads it.
            raise SchemaError(f"{path} is {name} inside of itself: recursive schemas are not supported; use bytes")
        self.inside.append(name)
        number, fields = self.nodes, schema.get("fields")
        if not isinstance(fields, list):
            raise SchemaError(f"{path}.fields: a list of the record's fields is expected")
        nodes: dict[str, Node] = {}
        for described in fields:
            member = described.get("name") if isinstance(described, dict) else None
            if not isinstance(member, str) or member in nodes:
                raise SchemaError(f"{path}: a field is called {member!r}; a name that no other has is expected")
            nodes[member] = self.node(described.get("type"), f"{path}.{member}", space_of(name), level + 1)
        self.inside.pop()
        plain = {
            "type": "record",
            "name": f"R{number}",
            "fields": [{"name": member, "type": node.plain} for member, node in nodes.items()],
        }
        held = {member: node for member, node in nodes.items() if node.type != UNKNOWN}
        defaults = {one["name"]: {"default": one["default"]} for one in fields if "default" in one}
        members = [{"name": member, "type": node.written, **defaults.get(member, {})} for member, node in nodes.items()]
        is_whole = members and all(field["type"] for field in members)
        written = {"type": "record", "name": name, "fields": members} if is_whole else None
        inner = tuple(_defaulted(node, defaults.get(member, {})) for member, node in held.items())
        type = Struct({member: node.type for member, node in held.items()})
        detail = Detail(required=True, name=name, inner=inner)
        mend = mending.of_members({member: node.mend for member, node in nodes.items()})
        is_odd = mending.odd_members({member: node.is_odd for member, node in nodes.items()})
        return Node(type, plain, mend, is_odd, written, detail)

    def _array(self, items: Node, path: str) -> Node:
        if items.type in (UNKNOWN, Struct({})):
            # Such items take no bytes, so a few could ask for more of them than any memory holds.
            raise SchemaError(f"{path} is an array of what holds nothing")
        plain = {"type": "array", "items": items.plain}
        return Node(
            List(items.type),
            plain,
            mending.of_items(items.mend),
            mending.odd_items(items.is_odd),
            items.written and {"type": "array", "items": items.written},
            Detail(required=True, inner=(items.detail,)),
        )

    def _union(self, schema: list[Any], path: str, space: str, level: int) -> Node:
        number = self.nodes
        branches = [one for one in schema if one != "null"]
        if len(branches) < 2:
            nodes = [self.node(one, path, space, level) for one in schema]
            inner = next((one for one in nodes if one.type != UNKNOWN), Node(UNKNOWN, "null"))
            is_whole = len(nodes) == 2 and inner.written
            written = [one.written or "null" for one in nodes] if is_whole else None
            detail = structs.replace(inner.detail, required=len(branches) == len(schema))
            mend, is_odd = mending.unless_null(inner.mend), mending.odd_unless_null(inner.is_odd)
            return Node(inner.type, [one.plain for one in nodes], mend, is_odd, written, detail)
        members = dict(zip(self._members(branches, space), branches, strict=False))
        if len(members) < len(branches):
            raise SchemaError(f"{path} is a union with two branches of one name")
        branches_by_name = {name: self.node(one, f"{path}.{name}", space, level + 1) for name, one in members.items()}
        wrapped = iter(
            {"type": "record", "name": f"U{number}_{at}", "fields": [{"name": name, "type": one.plain}]}
            for at, (name, one) in enumerate(branches_by_name.items())
        )
        plain = [one if one == "null" else next(wrapped) for one in schema]
        held = {name: one for name, one in branches_by_name.items() if one.type != UNKNOWN}
        type = Struct({name: one.type for name, one in held.items()})
        inner_details = tuple(structs.replace(one.detail, required=False) for one in held.values())
        union_detail = Detail(required=len(branches) == len(schema), inner=inner_details)
        nothing = dict.fromkeys(branches_by_name)
        mends = {name: one.mend or mending.same for name, one in branches_by_name.items()}

        def mend_branch(value: Any) -> Any:
            if value is None:
                return None
            ((name, one),) = value.items()
            return {**nothing, name: mends[name](one)}

        is_odd = mending.odd_members({name: one.is_odd for name, one in branches_by_name.items()})
        return Node(type, plain, mend_branch, mending.odd_unless_null(is_odd), detail=union_detail)

    def _members(self, branches: list[Any], space: str) -> list[str]:
        """A branch's field is called after its type, with the namespace only where two have one name."""
        full = [self._member(one, space) for one in branches]
        short = [one.rpartition(".")[2] for one in full]
        return [
            long.replace(".", "_") if short.count(name) > 1 else name for name, long in zip(short, full, strict=True)
        ]

    def _member(self, branch: Any, space: str) -> str:
        branch = _only(branch)
        if isinstance(branch, str):
            found = self._named(branch, space)
            return branch if branch in _PRIMITIVES or found is None else full_name(found[0]["name"], *found)
        if isinstance(branch, dict) and branch.get("type") in ("record", "error", "enum", "fixed"):
            return full_name(branch.get("name", ""), branch, space)
        return str(branch.get("type")) if isinstance(branch, dict) else str(branch)

    def _logical(self, schema: dict[str, Any], plain: Any, written: dict[str, Any], path: str) -> Node | None:
        """A logical type; what is none by Avro's rules is ignored, as they say."""
        logical, physical = logical_type(schema, exact=self.exact), written["type"]
        written = written | {"logicalType": logical}
        if logical == "decimal" and physical in ("bytes", "fixed"):
            return self._decimal(schema, plain, written, path)
        if logical == "uuid" and physical == "string":
            return Node(Primitive.UUID, plain, written=written)
        if logical == "uuid" and physical == "fixed" and schema.get("size") == 16:
            return Node(Primitive.UUID, plain, _uuid_text)  # in files a text: many readers know no other
        time = time_of(physical, logical, exact=self.exact)
        is_local = str(logical).startswith("local-")  # its column shows it as if it were in UTC
        return Node(time, plain, written=None if is_local else written) if time else None

    def _decimal(self, schema: dict[str, Any], plain: Any, written: dict[str, Any], path: str) -> Node | None:
        precision, scale = schema.get("precision"), schema.get("scale", 0)
        if type(precision) is not int or type(scale) is not int or not 0 <= scale <= precision or precision < 1:
            return None
        if self.tabular and scale > MOST_DIGITS:
            raise SchemaError(f"{path}: decimals of scale {scale} do not fit {MOST_DIGITS} digits: use format json")

        def mend(data: bytes) -> decimal.Decimal:
            return decimal.Decimal(int.from_bytes(data, "big", signed=True)).scaleb(-scale, _EXACT)

        # A decimal of more digits than 128 bits hold may still have values that fit.
        fits = written | {"precision": precision, "scale": scale} if precision <= MOST_DIGITS else None
        return Node(Decimal(min(precision, MOST_DIGITS), min(scale, MOST_DIGITS)), plain, mend, written=fits)


def _parsed(text: str, what: str) -> Any:
    """A registered schema; some registries give a primitive's name without quotes."""
    try:
        return text.strip() if text.strip() in {*_PRIMITIVES, "null"} else json.loads(text)
    except (ValueError, RecursionError):
        raise SchemaError(f"{what} is no JSON: {text[:80]!r}") from None


def _only(schema: Any) -> Any:
    """What a value is if it is not null; `{"type": {…}}` is what is inside."""
    while True:
        if isinstance(schema, list) and len(branches := [one for one in schema if one != "null"]) == 1:
            schema = branches[0]
        elif isinstance(schema, dict) and isinstance(schema.get("type"), dict | list):
            schema = schema["type"]
        else:
            return schema


def _connected(node: Node, schema: dict[str, Any]) -> Node:
    """A node with what Connect left in its schema when it was written there."""
    properties = {name: value for name, value in schema.items() if name.startswith("connect.")}
    if not properties or schema["type"] not in _OWN:
        return node
    written = {"type": node.written} if isinstance(node.written, str) else node.written
    detail = structs.replace(node.detail, connect=json.dumps(properties))
    return replace(node, written=written and {**written, **properties}, detail=detail)


def _primitive(name: str) -> Node:
    mend = Single if name == "float" else None
    return Node(_PRIMITIVES[name], name, mend, _is_no_number if name in ("float", "double") else None, name)


def _map(values: Node) -> Node:
    plain = {"type": "map", "values": values.plain}
    mend, is_odd = mending.of_values(values.mend), mending.odd_values(values.is_odd)
    written = values.written and {"type": "map", "values": values.written}
    detail = Detail(required=True, inner=(values.detail,))
    return Node(Map(values.type), plain, mend, is_odd, written, detail)


def _defaulted(node: Node, default: Mapping[str, Any]) -> Detail:
    """The detail of a field, with its default where a file's column has one like it."""
    value = default.get("default")
    is_empty = value in ([], {}) and not isinstance(node.type, Struct)
    if value is None or (isinstance(value, dict | list) and not is_empty) or node.type is Primitive.UUID:
        return node.detail
    return structs.replace(node.detail, default=json.dumps(value))


def _is_no_number(value: float) -> bool:
    return not math.isfinite(value)


def _uuid_text(data: bytes) -> str:
    return str(UUID(bytes=data))
