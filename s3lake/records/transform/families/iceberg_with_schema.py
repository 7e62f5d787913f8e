"""Transforms of Apache Iceberg's sink, of values with a schema."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s3lake.records.schema.columns.arrow_types import arrow_type
from s3lake.records.schema.columns.details import REQUIRED, Detail
from s3lake.records.schema.columns.types import Primitive, Struct
from s3lake.records.transform.families.connect_with_schema import list_parts
from s3lake.records.transform.families.iceberg import CDC, OPERATIONS, Metadata, name_table
from s3lake.records.transform.step import group_values
from s3lake.records.transform.step.record_values import TransformError
from s3lake.records.transform.step.schema_group import (
    Changed,
    Group,
    Member,
    Refusals,
    Typed,
    change_struct,
    close_fields,
    close_struct,
    open_fields,
    open_struct,
    to_typed,
)

_EVENT = "the value is not a change event of Debezium"


def unwrap_debezium(pattern: str, group: Group) -> Changed:
    """Take rows out of change events: of deletes those before them, of all others those after them."""
    done: list[Group] = []
    typed = group.side("value")
    if typed.array.null_count:
        group, missing = group.split(typed.array.is_valid().to_numpy(zero_copy_only=False))
        done.append(missing)
    try:
        if not isinstance(typed.schema.type, Struct):
            raise TransformError(f"the value is {typed.schema.type} by its schema, a struct is needed")
        operations = _list_texts(open_fields(group.side("value")), "op") if len(group) else []
    except TransformError as refusal:
        return done, dict.fromkeys(group.rows.tolist(), str(refusal))
    refused: dict[int, str] = {}
    deletes = np.array([one == "d" for one in operations], np.bool_)
    keys = group.key if isinstance(group.key, list) else [None] * len(group)
    texts = np.array([isinstance(one, str) for one in keys], np.bool_)
    for row, mask in product(("before", "after"), (texts, ~texts)):
        each = group.take(np.flatnonzero(mask & (deletes if row == "before" else ~deletes)))
        if len(each):
            groups, reasons = change_struct("value", partial(_take_row, row, pattern), each)
            done, refused = [*done, *groups], refused | reasons
    return done, refused


def _list_texts(members: Mapping[str, Member], name: str) -> list[Any]:
    """Return a field of texts. Raise a TransformError if a schema has none of that name."""
    if name not in members or members[name].type is not Primitive.STRING:
        raise TransformError(f"{_EVENT}: its schema has no text {name!r}")
    texts: list[Any] = members[name].array.to_pylist()
    return texts


def _take_row(side: str, pattern: str, typed: Typed, group: Group, refused: Refusals) -> Typed:
    members = open_fields(typed)
    row, source = members.get(side), members.get("source")
    if row is None or source is None or not isinstance(row.type, Struct) or not isinstance(source.type, Struct):
        raise TransformError(f"{_EVENT}: its schema needs the structs {side!r} and 'source'")
    for place in pc.indices_nonzero(row.array.is_null()).to_pylist():
        refused[place] = f"field {side!r} of the change event is null, so it has no row"
    of_source = open_struct(source.type, source.detail, source.array)
    databases = _list_texts(of_source, "schema" if "schema" in of_source else "db")
    names: list[dict[str, str]] = []
    for place, (database, table) in enumerate(zip(databases, _list_texts(of_source, "table"), strict=True)):
        try:
            names.append(name_table(database, table, pattern))
        except TransformError as refusal:
            names.append({"source": "", "target": ""})
            refused.setdefault(place, str(refusal))
    operations = [OPERATIONS.get(one, "I") for one in _list_texts(members, "op")]
    stamps = members.get("ts_ms")
    if stamps is None or stamps.type is not Primitive.INT64:
        raise TransformError(f"{_EVENT}: its schema has no int64 'ts_ms'")
    for place in pc.indices_nonzero(stamps.array.is_null()).to_pylist():
        refused.setdefault(place, "field 'ts_ms' of the change event is null, so _cdc has no time")
    added = {
        "op": Member(Primitive.STRING, REQUIRED, pa.array(operations, pa.string())),
        "ts": Member(
            Primitive.TIMESTAMP, Detail(required=True, version=1), stamps.array.cast(arrow_type(Primitive.TIMESTAMP))
        ),
        "offset": Member(Primitive.INT64, Detail(), list_parts(group, "offset", "")),
        **{
            name: Member(Primitive.STRING, REQUIRED, pa.array([one[name] for one in names], pa.string()))
            for name in ("source", "target")
        },
    }
    if isinstance(group.key, Typed):
        schema = group.key.schema
        added["key"] = Member(schema.type, schema.detail or Detail(), group.key.array)
    elif isinstance(group.key, list) and isinstance(group.key[0], str):  # Connect has a schema of texts
        added["key"] = Member(Primitive.STRING, Detail(), pa.array(group.key, pa.string()))
    whole = to_typed(row)
    columns = open_fields(whole)
    _require_new(columns, CDC)
    columns[CDC] = close_struct(added, REQUIRED, None, len(group))
    return close_fields(columns, whole)


def _require_new(members: Mapping[str, Member], name: str) -> None:
    if name in members:
        raise TransformError(f"field {name!r} is in the schema already: rename it before")


def insert_metadata(metadata: Metadata, group: Group) -> Changed:
    """Insert topic, partition, offset and timestamp, which is null where Kafka has none."""

    def insert(typed: Typed, group: Group, _refused: Refusals) -> Typed:
        members = open_fields(typed)
        milliseconds = list_parts(group, "timestamp", "").cast(pa.int64())
        added = {
            "topic": Member(Primitive.STRING, REQUIRED, list_parts(group, "topic", "")),
            "partition": Member(Primitive.INT32, REQUIRED, list_parts(group, "partition", "")),
            "offset": Member(Primitive.INT64, REQUIRED, list_parts(group, "offset", "")),
            "timestamp": Member(Primitive.INT64, Detail(), milliseconds),
        }
        if metadata.constant:
            name, text = metadata.constant
            added[name] = Member(Primitive.STRING, REQUIRED, group_values.repeat(text, Primitive.STRING, len(group)))
        if metadata.nested:
            added = {metadata.name: close_struct(added, REQUIRED, None, len(group))}
        else:
            added = {f"{metadata.name}_{name}": member for name, member in added.items()}
        for name in added:
            _require_new(members, name)
        return close_fields({**members, **added}, typed)

    return change_struct("value", insert, group)


def copy_value(source: str, target: str, group: Group) -> Changed:
    """Copy a field to another one, which is the last then."""

    def copy(typed: Typed, _group: Group, _refused: Refusals) -> Typed:
        members = open_fields(typed)
        if source not in members:
            raise TransformError(f"field {source!r} is not in the schema: it has {', '.join(members)[:200]}")
        _require_new(members, target)
        return close_fields({**members, target: members[source]}, typed)

    return change_struct("value", copy, group)
