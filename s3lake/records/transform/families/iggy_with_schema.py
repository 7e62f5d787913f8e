"""Iggy's transforms of values with a schema: what they set, leave out or take is of the schema, not of one value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import structs

from s3lake.records.convert.read.json.inferred_types import infer_type
from s3lake.records.convert.read.json.object_columns import read_values
from s3lake.records.schema.columns.arrow_types import arrow_type
from s3lake.records.schema.columns.details import Detail
from s3lake.records.schema.columns.types import UNKNOWN, Primitive, Struct, Type, fields_of
from s3lake.records.schema.columns.union import Conflict
from s3lake.records.transform.step import group_values
from s3lake.records.transform.step.record import MISSING, Record, find_field, resolve_key
from s3lake.records.transform.step.record_values import TransformError, encode
from s3lake.records.transform.step.schema_group import (
    Changed,
    Group,
    Member,
    Refusals,
    Typed,
    change_group_side,
    close_fields,
    close_struct,
    open_fields,
    open_struct,
    to_typed,
)

if TYPE_CHECKING:
    from s3lake.records.transform.families.iggy import FieldSetting

Path = tuple[str, ...]


def set_fields(fields: Sequence[FieldSetting], group: Group) -> Changed:
    """Set fields in the order cells, each if its condition is true of the schema."""

    def change(members: dict[str, Member], group: Group, refused: Refusals) -> dict[str, Member]:
        for field in fields:
            path = resolve_key(_shape(members), field.key)
            exists = find_field(_shape(members), path) is not MISSING
            if field.condition == "always" or (field.condition == "key_exists") == exists:
                old = _find(members, path) if exists else None
                members = set_member(members, path, _make_member(field, group, old), refused)
        return members

    return _change_structs(change, group)


def delete_fields(keys: Sequence[str], group: Group) -> Changed:
    """Leave fields out."""

    def change(members: dict[str, Member], _group: Group, refused: Refusals) -> dict[str, Member]:
        for key in keys:
            path = resolve_key(_shape(members), key)
            if find_field(_shape(members), path) is not MISSING:
                members = set_member(members, path, None, refused)
        return members

    return _change_structs(change, group)


def unwrap_envelope(key: str, group: Group) -> Changed:
    """Take one field instead of the whole; without that field the whole."""

    def change(typed: Typed, _group: Group, _refused: Refusals) -> Typed:
        if not isinstance(typed.schema.type, Struct):
            return typed
        members = open_fields(typed)
        path = resolve_key(_shape(members), key)
        return typed if find_field(_shape(members), path) is MISSING else to_typed(_find(members, path))

    return change_group_side("value", change, group)


def filter_fields(
    keep: Sequence[str], patterns: Sequence[Callable[[str, Any], bool]], include: bool, group: Group
) -> Changed:
    """Keep the fields that are named or selected. One that is left out of some records only is null in those."""

    def change(members: dict[str, Member], _group: Group, _refused: Refusals) -> dict[str, Member]:
        if not (keep or patterns):
            return members
        shape = _shape(members)
        nested = [path for key in keep if len(path := resolve_key(shape, key)) > 1]
        kept: dict[str, Member] = {}
        for name, member in members.items():
            cells = group_values.to_values(member.array, member.type)
            selected = np.array([any(matches(name, one) for matches in patterns) is include for one in cells], np.bool_)
            if name in keep or selected.all():
                kept[name] = member
            elif selected.any():
                detail = structs.replace(member.detail, required=False)
                some = pc.if_else(pa.array(selected), member.array, pa.scalar(None, member.array.type))
                kept[name] = Member(member.type, detail, some)
            elif below := [path[1:] for path in nested if path[0] == name]:
                kept[name] = _keep_only(member, below)
        return kept

    return _change_structs(change, group)


def _change_structs(change: Callable[[dict[str, Member], Group, Refusals], dict[str, Member]], group: Group) -> Changed:
    """Apply a change to the fields of values that are structs; all others stay as they are."""

    def change_it(typed: Typed, group: Group, refused: Refusals) -> Typed:
        if not isinstance(typed.schema.type, Struct):
            return typed
        before = open_fields(typed)
        after = change(before, group, refused)
        return typed if after is before else close_fields(after, typed)

    return change_group_side("value", change_it, group)


def _shape(members: Mapping[str, Member]) -> dict[str, Any]:
    """Return the names of fields as an object whose objects are the structs: keys are resolved in it."""
    return {name: _shape_type(member.type) for name, member in members.items()}


def _shape_type(type: Type) -> Any:
    return {name: _shape_type(inner) for name, inner in fields_of(type).items()} if isinstance(type, Struct) else True


def _open(member: Member) -> dict[str, Member]:
    return open_struct(member.type, member.detail, member.array)


def _find(members: Mapping[str, Member], path: Path) -> Member:
    first, *rest = path
    return _find(_open(members[first]), tuple(rest)) if rest else members[first]


def set_member(members: Mapping[str, Member], path: Path, new: Member | None, refused: Refusals) -> dict[str, Member]:
    """Return the fields with another one at a path, or without it. Records whose struct there is null are refused."""
    first, *rest = path
    if rest:
        outer = members[first]
        nulls = outer.array.is_null() if outer.array.null_count else None
        if new is not None and nulls is not None:
            places = pc.indices_nonzero(nulls).to_pylist()
            refused |= dict.fromkeys(places, f"field {first!r} is null, so {'.'.join(path)!r} cannot be set")
        inner = set_member(_open(outer), tuple(rest), new, refused)
        return {**members, first: close_struct(inner, outer.detail, nulls, len(outer.array))}
    if new is None:
        return {name: member for name, member in members.items() if name != first}
    return {**members, first: new}


def _make_member(field: FieldSetting, group: Group, old: Member | None) -> Member:
    """Return the column of a field: a constant's or computed; null has the type of the field that it replaces."""
    count = len(group)
    type: Type
    if field.compute is not None:
        computed = [field.value(record) for record in _list_places(group)]
        type = Primitive.STRING if isinstance(computed[0], str) else Primitive.INT64
        return Member(type, Detail(required=True), group_values.to_array(computed, type))
    if field.constant is None:
        type = old.type if old is not None else Primitive.STRING
        return Member(type, Detail(), group_values.nulls(type, count))
    text = encode(field.constant)
    assert text is not None
    try:
        type = infer_type(msgspec.json.decode(text))
    except Conflict as conflict:
        raise TransformError(f"field {field.key!r}: {conflict}") from None
    array, misfits = read_values([text], type)
    if misfits or type == UNKNOWN:
        raise TransformError(f"field {field.key!r}: {misfits.get(0, 'its value has no type')}")
    return Member(type, Detail(required=True), array.cast(arrow_type(type)).take(pa.array(np.zeros(count, np.int64))))


def _list_places(group: Group) -> list[Record]:
    """Return the records of a group as far as computed values look at them: where they are, and the time."""
    records: list[Record] = []
    places = zip(group.kafka.column("partition").to_pylist(), group.kafka.column("offset").to_pylist(), strict=True)
    for partition, offset in places:
        record = Record(group.origin, group.wallclock_ms)
        record.partition, record.offset = partition, offset
        records.append(record)
    return records


def _keep_only(member: Member, paths: Sequence[Path]) -> Member:
    """Return a struct with some of its fields."""
    kept: dict[str, Member] = {}
    for name, inner in _open(member).items():
        if (name,) in paths:
            kept[name] = inner
        elif below := [path[1:] for path in paths if path[0] == name]:
            kept[name] = _keep_only(inner, below)
    nulls = member.array.is_null() if member.array.null_count else None
    return close_struct(kept, member.detail, nulls, len(member.array))
