"""Kafka Connect's Cast for keys and values with a schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pyarrow.compute as pc

from s3lake.records.schema.columns import types
from s3lake.records.schema.columns.details import Detail
from s3lake.records.schema.columns.types import Primitive
from s3lake.records.transform.families.casts import cast_value
from s3lake.records.transform.step import group_values
from s3lake.records.transform.step.record_values import Side
from s3lake.records.transform.step.schema_group import (
    Changed,
    Group,
    Member,
    Refusals,
    Typed,
    change_group_side,
    change_struct,
    close_fields,
    is_required,
    open_fields,
    to_typed,
)

_TARGETS = {
    "int8": Primitive.INT32,
    "int16": Primitive.INT32,
    "int32": Primitive.INT32,
    "int64": Primitive.INT64,
    "float32": Primitive.FLOAT,
    "float64": Primitive.DOUBLE,
    "boolean": Primitive.BOOL,
    "string": Primitive.STRING,
}


def cast_fields(side: Side, fields: Mapping[str, str], group: Group) -> Changed:
    """Cast fields that the schema has; each may be null if it could before."""

    def cast(typed: Typed, _group: Group, refused: Refusals) -> Typed:
        members = open_fields(typed)
        for name, to in fields.items():
            if name in members:
                members[name] = _cast(members[name], to, f"field {name!r}", refused)
        return close_fields(members, typed, required=is_required(typed))

    return change_struct(side, cast, group)


def cast_whole(side: Side, to: str, group: Group) -> Changed:
    """Cast the whole key or value."""

    def cast(typed: Typed, _group: Group, refused: Refusals) -> Typed:
        whole = Member(typed.schema.type, typed.schema.detail or Detail(), typed.array)
        return to_typed(_cast(whole, to, f"the {side}", refused))

    return change_group_side(side, cast, group)


def _cast(member: Member, to: str, what: str, refused: Refusals) -> Member:
    target = _TARGETS[to]
    if not isinstance(member.type, Primitive | types.Decimal):
        places = pc.indices_nonzero(member.array.is_valid()).to_pylist()
        refused |= dict.fromkeys(places, f"{what} is {member.type} by its schema, which cannot be cast to {to}")
        return Member(target, Detail(required=member.detail.required), group_values.nulls(target, len(member.array)))
    detail = Detail(required=member.detail.required, default=_cast_default(member, to, what))
    if member.type == target and to not in ("int8", "int16"):
        return member._replace(detail=detail)
    before = group_values.to_values(member.array, member.type)
    array = group_values.compute_array(before, target, lambda value: _cast_value(value, to, what), refused, what)
    return Member(target, detail, array)


def _cast_value(value: Any, to: str, what: str) -> Any:
    if isinstance(value, Decimal) and to == "string":
        return str(value)  # Java's BigDecimal prints the same
    cast = cast_value(value, to, what)
    return float(cast) if isinstance(cast, Decimal) else cast


def _cast_default(member: Member, to: str, what: str) -> str | None:
    """Return the default as it is after the cast; bytes and decimals have none that is a number or a text."""
    default, type = member.detail.default, member.type
    if default is None or type is Primitive.BINARY or isinstance(type, types.Decimal):
        return None
    (value,) = group_values.to_values(group_values.to_array([json.loads(default)], type), type)
    return json.dumps(_cast_value(value, to, what))
