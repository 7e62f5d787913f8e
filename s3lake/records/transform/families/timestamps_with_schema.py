"""Kafka Connect's TimestampConverter for keys and values with a schema."""

from __future__ import annotations

from s3lake.records.schema.columns.details import Detail
from s3lake.records.schema.columns.types import TICKS, Primitive
from s3lake.records.transform.families.timestamps import TimeConversion
from s3lake.records.transform.step import group_values
from s3lake.records.transform.step.record_values import Side, TransformError
from s3lake.records.transform.step.schema_group import (
    Changed,
    Group,
    Member,
    Refusals,
    Typed,
    change_group_side,
    close_fields,
    is_required,
    open_fields,
    require_struct,
    to_typed,
)

_SOURCES = frozenset({Primitive.STRING, Primitive.INT32, Primitive.INT64, Primitive.DATE, *TICKS})


def convert_timestamp(side: Side, field: str, conversion: TimeConversion, group: Group) -> Changed:
    """Convert a timestamp, a field's or the whole; a field that the schema lacks is left out."""

    def change(typed: Typed, _group: Group, refused: Refusals) -> Typed:
        if not field:
            whole = Member(typed.schema.type, typed.schema.detail or Detail(), typed.array)
            return to_typed(_convert(whole, conversion, f"the {side}", refused))
        require_struct(typed, side)
        members = open_fields(typed)
        if field not in members:
            return typed
        members[field] = _convert(members[field], conversion, f"field {field!r}", refused)
        return close_fields(members, typed, required=is_required(typed))

    return change_group_side(side, change, group, nulls=True)


def _convert(member: Member, conversion: TimeConversion, what: str, refused: Refusals) -> Member:
    if member.type not in _SOURCES and member.array.null_count < len(member.array):
        raise TransformError(
            f"{what} is {member.type} by its schema: a timestamp is an integer, a text, a date or a time"
        )
    before = group_values.to_numbered_values(member.array, member.type, member.detail)
    target = conversion.find_type(member.type)
    array = group_values.compute_array(
        before, target, lambda value: conversion.convert_to(target, value, what), refused, what
    )
    version = None if conversion.target in ("string", "unix") else 1  # as Connect's logical types have it
    return Member(target, Detail(required=member.detail.required, version=version), array)
