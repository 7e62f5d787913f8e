"""Kafka Connect's transforms of keys and values with a schema, as its classes define them (`applyWithSchema`).

Other than there, a null stays null, and nothing is wrapped round or overwritten: such a record is refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import structs

from s3lake.records.convert.read.arrays import Misfit
from s3lake.records.record_timestamps import NO_TIMESTAMP, to_epoch_ms
from s3lake.records.schema.columns.arrow_types import arrow_type
from s3lake.records.schema.columns.details import Detail, set_property
from s3lake.records.schema.columns.types import List, Map, Primitive, Struct
from s3lake.records.transform.families.connect import replace_value
from s3lake.records.transform.step import group_values
from s3lake.records.transform.step.record_values import Side, TransformError, to_header
from s3lake.records.transform.step.schema_group import (
    Changed,
    Group,
    Member,
    Refusals,
    Typed,
    change_group_side,
    change_struct,
    close_fields,
    drop_refused,
    is_required,
    open_fields,
    open_struct,
    require_struct,
    to_typed,
)

_NAME, _VERSION = "connect.name", "connect.version"  # as Confluent's AvroData has them in a schema of Avro
_INSERTED = {
    "topic": Primitive.STRING,
    "partition": Primitive.INT32,
    "offset": Primitive.INT64,
    "timestamp": Primitive.TIMESTAMP,
    "static": Primitive.STRING,
}


def insert_field(
    side: Side, fields: Mapping[str, str], required: Collection[str], static: str, group: Group
) -> Changed:
    """Insert topic, partition, offset, timestamp or a constant as fields that are null only without a timestamp."""

    def insert(typed: Typed, group: Group, refused: Refusals) -> Typed:
        members = open_fields(typed)
        for source, name in fields.items():
            if name in members:
                raise TransformError(f"field {name!r} is in the schema already: insert it by another name")
            array = list_parts(group, source, static)
            if source in required and array.null_count:
                refused |= dict.fromkeys(pc.indices_nonzero(array.is_null()).to_pylist(), f"it has no {source}")
            version = 1 if source == "timestamp" else None  # as Connect's logical types have it
            detail = Detail(required=source in required, version=version)
            members[name] = Member(_INSERTED[source], detail, array)
        return close_fields(members, typed)

    return change_struct(side, insert, group)


def list_parts(group: Group, source: str, static: str) -> pa.Array:
    """Return what Kafka has of each record, or a constant."""
    match source:
        case "topic":
            if group.topics is None:
                return group_values.repeat(group.origin, Primitive.STRING, len(group))
            return pa.array(group.topics, pa.string())
        case "static":
            return group_values.repeat(static, Primitive.STRING, len(group))
        case "timestamp":
            stamps = to_epoch_ms(group.kafka.column("timestamp"))
            is_known = pc.not_equal(stamps, NO_TIMESTAMP)
            return pc.if_else(is_known, stamps, pa.scalar(None, pa.int64())).cast(arrow_type(Primitive.TIMESTAMP))
    return group.kafka.column(source).cast(arrow_type(_INSERTED[source]))


def replace_field(
    side: Side, exclude: Collection[str], include: Collection[str], renames: Mapping[str, str], group: Group
) -> Changed:
    """Leave fields out, keep only some, or rename them."""

    def change(typed: Typed, _group: Group, _refused: Refusals) -> Typed:
        kept: dict[str, Member] = {}
        for name, member in open_fields(typed).items():
            if name not in exclude and (not include or name in include):
                _add(kept, renames.get(name, name), member)
        return close_fields(kept, typed)

    return change_struct(side, change, group)


def _add(members: dict[str, Member], name: str, member: Member) -> None:
    if name in members:
        raise TransformError(f"two fields would be called {name!r}: rename or leave out one of them before")
    members[name] = member


def mask_field(side: Side, fields: Collection[str], replacement: str | None, group: Group) -> Changed:
    """Put an empty value, or a constant, into fields that are not null."""

    def mask(typed: Typed, _group: Group, refused: Refusals) -> Typed:
        members = open_fields(typed)
        masked = [name for name in fields if name in members]
        has_text = any(members[name].type is Primitive.UUID for name in masked)
        for name in masked:
            members[name] = _mask(name, _to_text_of_uuid(members[name]), replacement, refused)
        return close_fields(members, typed, required=is_required(typed)) if has_text else replace_typed(typed, members)

    return change_group_side(side, _only_structs(side, mask), group, nulls=True)


def _only_structs(side: Side, change: Callable[[Typed, Group, Refusals], Typed]) -> Callable[..., Typed]:
    """Return a change that refuses null, too, as Connect's `requireStruct` does."""

    def change_it(typed: Typed, group: Group, refused: Refusals) -> Typed:
        require_struct(typed, side)
        if typed.array.null_count:
            nulls = pc.indices_nonzero(typed.array.is_null()).to_pylist()
            refused |= dict.fromkeys(nulls, f"the {side} is null, a struct is needed")
        return change(typed, group, refused)

    return change_it


def replace_typed(typed: Typed, members: Mapping[str, Member]) -> Typed:
    """Return keys or values with other columns of the same fields; a null stays null."""
    if not members:
        return typed  # a struct without fields
    nulls = typed.array.is_null() if typed.array.null_count else None
    arrays = [member.array for member in members.values()]
    return Typed(
        replace(typed.schema, file=None), pa.StructArray.from_arrays(arrays, fields=list(typed.array.type), mask=nulls)
    )


def _to_text_of_uuid(member: Member) -> Member:
    """Return a field of UUIDs as one of texts, which it is in Connect: no UUID is empty, or a replacement."""
    if member.type is not Primitive.UUID:
        return member
    texts = group_values.to_values(member.array, Primitive.UUID)
    return member._replace(type=Primitive.STRING, array=pa.array(texts, pa.string()))


def _mask(name: str, member: Member, replacement: str | None, refused: Refusals) -> Member:
    """Return the field masked. The masked value depends on the type alone."""
    array, count = member.array, len(member.array)
    present = np.flatnonzero(array.is_valid().to_numpy(zero_copy_only=False))
    if not len(present):
        return member
    try:
        if member.type is Primitive.BINARY or isinstance(member.type, Struct):
            raise TransformError(f"field {name!r} is {member.type} by its schema, which cannot be masked")
        if isinstance(member.type, List | Map) and replacement is None:
            empty = pa.array([[]], array.type).take(pa.array(np.zeros(count, np.int64)))
        else:
            (example,) = group_values.to_values(array.slice(int(present[0]), 1), member.type)
            empty = group_values.repeat(replace_value(name, example, replacement), member.type, count)
    except (TransformError, Misfit) as error:
        reason = (
            str(error) if isinstance(error, TransformError) else f"field {name!r}: replacement is not {member.type}"
        )
        refused |= dict.fromkeys(present.tolist(), reason)
        return member
    return member._replace(array=pc.if_else(array.is_valid(), empty, pa.scalar(None, array.type)))


def extract_field(side: Side, path: Sequence[str], group: Group) -> Changed:
    """Take one field instead of the whole; of null, it is null."""

    def extract(typed: Typed, _group: Group, _refused: Refusals) -> Typed:
        member = find_member(typed, path, side)
        return to_typed(member)

    return change_group_side(side, extract, group, nulls=True)


def find_member(typed: Typed, path: Sequence[str], side: str) -> Member:
    """Return the field at a path.

    Raises:
        TransformError: the schema does not have it.
    """
    member = Member(typed.schema.type, typed.schema.detail or Detail(), typed.array)
    for depth, name in enumerate(path):
        if not isinstance(member.type, Struct):
            at = f"field {'.'.join(path[:depth])!r}" if depth else f"the {side}"
            raise TransformError(f"{at} is {member.type} by its schema, a struct is needed for {'.'.join(path)!r}")
        members = open_struct(member.type, member.detail, member.array)
        if name not in members:
            raise TransformError(f"field {'.'.join(path)!r} is not in the schema: it has {', '.join(members)[:200]}")
        member = members[name]
    return member


def hoist_field(side: Side, field: str, group: Group) -> Changed:
    """Make a struct with one field that has the whole, also null."""

    def hoist(typed: Typed, _group: Group, _refused: Refusals) -> Typed:
        type = Struct({field: typed.schema.type})
        array = pa.StructArray.from_arrays([typed.array], fields=[pa.field(field, typed.array.type)])
        detail = Detail(required=True, inner=(typed.schema.detail or Detail(),))
        return to_typed(Member(type, detail, array))

    return change_group_side(side, hoist, group, nulls=True)


def flatten(side: Side, delimiter: str, group: Group) -> Changed:
    """Put the fields of nested structs at the top; a field of a struct that may be null may be null."""

    def change(typed: Typed, _group: Group, _refused: Refusals) -> Typed:
        flat: dict[str, Member] = {}

        def add_leaves(members: Mapping[str, Member], prefix: str, *, required: bool) -> None:
            for name, member in members.items():
                path, is_required = f"{prefix}{name}", required and member.detail.required
                if isinstance(member.type, Struct):
                    details = member.detail
                    inner = open_struct(member.type, details, member.array)
                    add_leaves(inner, f"{path}{delimiter}", required=is_required)
                else:
                    detail = structs.replace(member.detail, required=is_required)
                    _add(flat, path, member._replace(detail=detail))

        add_leaves(open_fields(typed), "", required=is_required(typed))
        return close_fields(flat, typed)

    return change_struct(side, change, group)


def header_from(side: Side, fields: Sequence[str], headers: Sequence[str], move: bool, group: Group) -> Changed:
    """Move or copy fields to headers, as text."""
    typed = group.side(side)
    try:
        require_struct(typed, side)
        members = open_fields(typed)
        if missing := [name for name in fields if name not in members]:
            raise TransformError(f"field {missing[0]!r} is not in the schema: it has {', '.join(members)[:200]}")
    except TransformError as refusal:
        return [], dict.fromkeys(group.rows.tolist(), str(refusal))
    refused: Refusals = {}
    if typed.array.null_count:
        nulls = pc.indices_nonzero(typed.array.is_null()).to_pylist()
        refused = dict.fromkeys(nulls, f"the {side} is null, a struct is needed")
    columns = [list(map(to_header, group_values.to_values(members[name].array, members[name].type))) for name in fields]
    rows = zip(*columns, strict=True)
    assert group.headers is not None, "the step declares that it adds headers"
    added = [[*own, *zip(headers, row, strict=True)] for own, row in zip(group.headers, rows, strict=True)]
    group = replace(group, headers=added)
    if move:
        left = {name: member for name, member in members.items() if name not in fields}
        group = group.with_side(side, close_fields(left, typed))
    done, reasons = drop_refused(group, refused)
    return [done], reasons


def value_to_key(fields: Sequence[str], group: Group) -> Changed:
    """Make a key of some of the value's fields."""

    def select(typed: Typed, _group: Group, _refused: Refusals) -> Typed:
        members = open_fields(typed)
        if missing := [name for name in fields if name not in members]:
            raise TransformError(f"field {missing[0]!r} is not in the schema: it has {', '.join(members)[:200]}")
        nameless = Typed(replace(typed.schema, name=None, detail=Detail()), typed.array)
        return close_fields({name: members[name] for name in fields}, nameless)

    groups, refused = change_group_side("value", _only_structs("value", select), group, nulls=True)
    # The value stays what it is.
    kept = np.isin(group.rows, [row for row in group.rows.tolist() if row not in refused])
    before, _ = group.split(kept)
    return [before.with_side("key", done.side("value")) for done in groups if len(done)], refused


def set_schema_metadata(side: Side, name: str, version: int | None, group: Group) -> Changed:
    """Set name and version of the schema."""
    typed = group.side(side)
    schema, detail = typed.schema, typed.schema.detail or Detail()
    if isinstance(schema.type, Struct) and not detail.inner:
        detail = structs.replace(detail, inner=tuple(Detail() for _ in schema.type.fields))
    if name:
        schema, detail = replace(schema, name=name), set_property(structs.replace(detail, name=name), _NAME, name)
    if version is not None:
        detail = set_property(structs.replace(detail, version=version), _VERSION, version)
    return [group.with_side(side, Typed(replace(schema, file=None, detail=detail), typed.array))], {}


def apply_after_defaults(side: Side, typed_step: Callable[[Group], Changed], group: Group) -> Changed:
    """Put the defaults of a schema for nulls of its fields, then apply a transform."""

    def fill(typed: Typed, _group: Group, _refused: Refusals) -> Typed:
        if not isinstance(typed.schema.type, Struct):
            return typed
        members = {name: member._replace(array=_fill_null(member)) for name, member in open_fields(typed).items()}
        return replace_typed(typed, members)

    filled, refused = change_group_side(side, fill, group)
    done: list[Group] = []
    for each in filled:
        groups, reasons = typed_step(each) if len(each) else ([], {})
        done, refused = [*done, *groups], refused | reasons
    return done, refused


def _fill_null(member: Member) -> pa.Array:
    if member.detail.default is None or not member.array.null_count:
        return member.array
    default: Any = json.loads(member.detail.default)
    if member.type is Primitive.BINARY:
        default = default.encode("latin-1")
    return pc.fill_null(member.array, pa.scalar(default, member.array.type))
