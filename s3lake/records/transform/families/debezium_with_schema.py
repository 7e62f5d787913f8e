"""Debezium's transforms of values with a schema: rows keep the types, the names and the defaults of their columns."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import structs

from s3lake.records.schema.columns.details import Detail
from s3lake.records.schema.columns.types import Primitive, Struct
from s3lake.records.schema.connect_schema import Schema
from s3lake.records.transform.families.connect_with_schema import apply_after_defaults
from s3lake.records.transform.families.debezium import (
    DELETED,
    ENVELOPE,
    AddedField,
    Unwrapping,
    leave_out,
    list_header_fields,
    read_dropped,
    refuse_twice,
    require_row,
    route,
)
from s3lake.records.transform.families.iggy_with_schema import set_member
from s3lake.records.transform.step import group_values
from s3lake.records.transform.step.record import MISSING
from s3lake.records.transform.step.record_values import Header, TransformError, to_header
from s3lake.records.transform.step.schema_group import (
    Changed,
    Group,
    Member,
    Refusals,
    Typed,
    change_struct,
    close_fields,
    drop_refused,
    open_fields,
    open_struct,
    to_typed,
)

Path = tuple[str, ...]


def unwrap(unwrapping: Unwrapping, group: Group) -> Changed:
    """Take rows out of change events, which are known by the name of their schema."""
    done: list[Group] = []
    typed = group.side("value")
    if typed.array.null_count:
        group, tombstones = group.split(typed.array.is_valid().to_numpy(zero_copy_only=False))
        if unwrapping.keeps_tombstones:
            done.append(_add_headers(tombstones, [unwrapping.list_tombstone_headers()] * len(tombstones)))
    if not len(group) or not _is_event(typed.schema):
        return [*done, group], {}
    members = open_fields(group.side("value"))
    has_after, has_before = (_is_there(members, name, len(group)) for name in ("after", "before"))
    refused = _refuse_lacking(members, group, has_after)
    if unwrapping.headers:
        added = _list_added(members, unwrapping.headers)
        texts = [[*map(to_header, group_values.to_values(one.array, one.type))] for one in added.values()]
        rows = zip(*texts, strict=True) if texts else [()] * len(group)
        group = _add_headers(group, [list(zip(added, row, strict=True)) for row in rows])
    deletes = ~has_after & has_before & (unwrapping.deletes != "drop")  # without both rows it is a truncation
    for deleted, mask in ((False, has_after), (True, deletes)):
        places = np.flatnonzero(mask)
        if len(places):
            groups, reasons = _unwrap_rows(unwrapping, group.take(places), deleted=deleted)
            done, refused = [*done, *groups], refused | reasons
    return done, refused


def _is_event(schema: Schema) -> bool:
    return isinstance(schema.type, Struct) and schema.name is not None and schema.name.endswith(ENVELOPE)


def _is_there(members: Mapping[str, Member], name: str, count: int) -> npt.NDArray[np.bool_]:
    """Return which events have a row of that name."""
    if name not in members:
        return np.zeros(count, np.bool_)
    there: npt.NDArray[np.bool_] = members[name].array.is_valid().to_numpy(zero_copy_only=False)
    return there


def _refuse_lacking(members: Mapping[str, Member], group: Group, has_after: npt.NDArray[np.bool_]) -> dict[int, str]:
    """Return why events are refused whose schema lacks the row that they need, by the row of the batch."""
    lacking = np.zeros(0, np.int64)
    if "after" not in members:
        lacking = group.rows
    elif "before" not in members:
        lacking = group.rows[~has_after]
    name = "before" if "after" in members else "after"
    return dict.fromkeys(lacking.tolist(), f"the schema of the change event has no field {name!r}")


def _add_headers(group: Group, added: Sequence[list[Header]]) -> Group:
    if group.headers is None or not any(added):
        return group
    return replace(group, headers=[[*own, *more] for own, more in zip(group.headers, added, strict=True)])


def _list_added(members: Mapping[str, Member], references: Sequence[AddedField]) -> dict[str, Member]:
    """Return the fields of events that are added, by their new names: each may be null, and has no default."""
    fields = [(one.name, _find(members, one)) for one in references]
    return {
        name: member._replace(detail=structs.replace(member.detail, required=False, default=None))
        for name, member in fields
        if member is not None
    }


def _find(members: Mapping[str, Member], reference: AddedField) -> Member | None:
    """Return a field of events, else the events' own of that name; None if their schema has neither."""
    own = members.get(reference.field)
    parent = None if reference.struct is None else members.get(reference.struct)
    if parent is None or not isinstance(parent.type, Struct):
        return own
    inner = open_struct(parent.type, parent.detail, parent.array)
    if reference.field in inner:
        return inner[reference.field]
    if own is None or not parent.array.null_count:
        return own
    return own._replace(array=pc.if_else(parent.array.is_valid(), own.array, pa.scalar(None, own.array.type)))


def _unwrap_rows(unwrapping: Unwrapping, group: Group, *, deleted: bool) -> Changed:
    """Unwrap events that all have a row after them, or all have only one before them."""
    members = open_fields(group.side("value"))
    row = members["before" if deleted else "after"]
    try:
        if unwrapping.needs_row(deleted=deleted):
            require_row(isinstance(row.type, Struct), f"{row.type} by its schema")
        topics, refused = _list_topics(unwrapping, row, group)
    except TransformError as refusal:
        return [], dict.fromkeys(group.rows.tolist(), str(refusal))
    group = replace(group, topics=topics)
    group, reasons = drop_refused(group, refused)
    done: list[Group] = []
    if not len(group):
        return done, reasons
    for each, names, wrong in _by_headers(lambda headers: read_dropped(unwrapping, headers), group):
        if wrong:
            reasons |= dict.fromkeys(each.rows.tolist(), wrong)
            continue
        left = _leave_out_of_key(unwrapping, names, each) if unwrapping.drops_from_key and names else each
        try:
            done.append(_take_row(unwrapping, names, left, deleted=deleted))
        except TransformError as refusal:
            reasons |= dict.fromkeys(each.rows.tolist(), str(refusal))
    return done, reasons


def _list_topics(unwrapping: Unwrapping, row: Member, group: Group) -> tuple[list[str] | None, Refusals]:
    """Return the topics that rows name. Raise a TransformError if their schema has no such column of text."""
    if not unwrapping.route or group.topics is None:
        return group.topics, {}
    column = open_struct(row.type, row.detail, row.array).get(unwrapping.route)
    if column is None:
        route(MISSING, unwrapping.route, "")
    assert column is not None
    if column.type is not Primitive.STRING:
        raise TransformError(
            f"route.by.field: column {unwrapping.route!r} is {column.type} by its schema, a text is needed"
        )
    default = None if column.detail.default is None else json.loads(column.detail.default)
    topics, refused = list[str](), Refusals()
    for place, (named, present) in enumerate(zip(column.array.to_pylist(), group.topics, strict=True)):
        try:
            topics.append(route(default if named is None else named, unwrapping.route, present))
        except TransformError as refusal:
            topics.append(present)
            refused[place] = str(refusal)
    return topics, refused


def _by_headers(read: Callable[[Sequence[Header]], Hashable], group: Group) -> list[tuple[Group, Any, str]]:
    """Return the records of a group by what is read of their headers, and why that could not be."""
    if not group.headers:
        return [(group, (), "")]
    places_by_mark: dict[tuple[Any, str], list[int]] = {}
    for place, headers in enumerate(group.headers):
        try:
            mark: tuple[Any, str] = (read(headers), "")
        except TransformError as refusal:
            mark = ((), str(refusal))
        places_by_mark.setdefault(mark, []).append(place)
    return [(group.take(np.array(places)), *mark) for mark, places in places_by_mark.items()]


def _take_row(unwrapping: Unwrapping, dropped: Sequence[str], group: Group, *, deleted: bool) -> Group:
    """Return events whose rows, or what is left of them, have taken their places."""
    members = open_fields(group.side("value"))
    if deleted and not unwrapping.marks:
        if unwrapping.deletes == "tombstone":
            return replace(group, value=[None] * len(group))
        return group.with_side("value", to_typed(members["after"]))  # null, with the schema of a row
    group = group.with_side("value", to_typed(members["before" if deleted else "after"]))
    if unwrapping.marks and unwrapping.fills:
        (group,), _ = apply_after_defaults("value", lambda filled: ([filled], {}), group)
    typed = group.side("value")
    row = open_fields(typed)
    if unwrapping.marks:
        text = group_values.repeat(str(deleted).lower(), Primitive.STRING, len(group))
        row = _join(row, {DELETED: Member(Primitive.STRING, Detail(), text)})
    added = _list_added(members, unwrapping.fields)
    if deleted:  # added fields stay, as with Debezium
        row = _join(_leave_out(unwrapping, row, dropped), added)
    else:
        row = _leave_out(unwrapping, _join(row, added), dropped)
    return group.with_side("value", close_fields(row, typed))


def _join(row: Mapping[str, Member], more: Mapping[str, Member]) -> dict[str, Member]:
    if both := row.keys() & more.keys():
        raise TransformError(refuse_twice(min(both)))
    return {**row, **more}


def _leave_out(unwrapping: Unwrapping, members: Mapping[str, Member], names: Sequence[str]) -> dict[str, Member]:
    """Return the columns without the named ones, or without the optional ones among them."""
    return {
        name: member
        for name, member in members.items()
        if name not in names or (unwrapping.drops_optional and member.detail.required)
    }


def _leave_out_of_key(unwrapping: Unwrapping, names: Sequence[str], group: Group) -> Group:
    key = group.key
    if isinstance(key, Typed) and isinstance(key.schema.type, Struct):
        members = open_fields(key)
        left = _leave_out(unwrapping, members, names)
        return group if len(left) == len(members) else group.with_side("key", close_fields(left, key))
    if not isinstance(key, list):
        return group
    return replace(group, key=[leave_out(one, names) if isinstance(one, dict) else one for one in key])


def header_to_value(paths: Mapping[str, Path], move: bool, group: Group) -> Changed:
    """Move or copy headers to fields, as text; records that have other ones get other schemas."""
    done: list[Group] = []
    refused: dict[int, str] = {}

    def list_paths(headers: Sequence[Header]) -> tuple[Path, ...]:
        return tuple(dict.fromkeys(path for path, _ in list_header_fields(paths, headers)))

    for each, added, wrong in _by_headers(list_paths, group):
        if wrong:
            refused |= dict.fromkeys(each.rows.tolist(), wrong)
            continue
        groups, reasons = change_struct("value", _insert_headers(paths, added), each)
        refused |= reasons
        done += [_remove_headers(paths, one) for one in groups] if move and added else groups
    return done, refused


def _insert_headers(paths: Mapping[str, Path], added: Sequence[Path]) -> Callable[[Typed, Group, Refusals], Typed]:
    def insert(typed: Typed, group: Group, refused: Refusals) -> Typed:
        if not added:
            return typed
        assert group.headers is not None, "the step declares that it reads headers"
        texts = [dict(list_header_fields(paths, headers)) for headers in group.headers]
        members = open_fields(typed)
        for path in added:
            detail = _find_place(members, path)
            column = pa.array([of[path] for of in texts], pa.string())
            if detail.required:
                nulls = pc.indices_nonzero(column.is_null()).to_pylist()
                refused |= dict.fromkeys(nulls, f"the header for field {'.'.join(path)!r} is null, which it cannot be")
            members = set_member(members, path, Member(Primitive.STRING, detail, column), refused)
        return close_fields(members, typed)

    return insert


def _find_place(members: Mapping[str, Member], path: Path) -> Detail:
    """Return the detail of the field at a path: of one that is there, if it is a text, or of a new one.

    Raises:
        TransformError: it has another type, or there are no structs on the way to it.
    """
    first, *rest = path
    old = members.get(first)
    if not rest:
        if old is not None and old.type is not Primitive.STRING:
            raise TransformError(
                f"field {first!r} is {old.type} by its schema, and a header is a text: use another name"
            )
        return Detail() if old is None else old.detail
    if old is None or not isinstance(old.type, Struct):
        of = "not in the schema" if old is None else f"{old.type} by its schema"
        raise TransformError(f"field {first!r} is {of}, a struct is needed for {'.'.join(path)!r}")
    return _find_place(open_struct(old.type, old.detail, old.array), tuple(rest))


def _remove_headers(paths: Mapping[str, Path], group: Group) -> Group:
    typed: Typed | list[Any] | None = group.value
    if group.headers is None or not isinstance(typed, Typed) or typed.array.null_count:
        return group  # nulls are left alone
    return replace(group, headers=[[one for one in headers if one[0] not in paths] for headers in group.headers])
