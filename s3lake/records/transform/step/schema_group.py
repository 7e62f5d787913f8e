"""Records with a schema in a chain: a schema and a column of values, as Kafka Connect has a schema and a value.

A transform is applied to all records of a batch that have the same schemas at once. So it states once what it does to
the schema, and each column that it leaves alone costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec import structs

from s3lake.records.schema.columns.arrow_types import arrow_type
from s3lake.records.schema.columns.details import NAME_SPACE, Detail
from s3lake.records.schema.columns.types import PLACEHOLDER, Primitive, Struct, Type, fields_of
from s3lake.records.schema.connect_schema import Schema
from s3lake.records.transform.step.record_values import Header, Side, TransformError

Refusals = dict[int, str]
"""Place in a group -> reason."""


@dataclass(frozen=True)
class Typed:
    """Keys or values with one schema; null where the schema came with null."""

    schema: Schema
    array: pa.Array

    def take(self, places: npt.NDArray[np.int64]) -> Typed:
        return Typed(self.schema, self.array.take(pa.array(places)))


class Member(NamedTuple):
    """A field of a struct."""

    type: Type
    detail: Detail
    array: pa.Array


@dataclass(frozen=True)
class Group:
    """Some records of a batch, whose keys have one schema or none, and whose values have one or none.

    Attributes:
        rows: their rows in the batch, ascending.
        kafka: what Kafka has of them: `partition`, `offset`, `timestamp`.
        origin: the name of their topic.
        wallclock_ms: the time of the micro-batch.
        topics: the topics as routers named them; None if the chain has no router.
        headers: their headers, or the added ones if no transform reads headers; None if none adds any either.
        key, value: with a schema; or decoded, one by one; None if no transform reads or changes them.
    """

    rows: npt.NDArray[np.int64]
    kafka: pa.RecordBatch
    origin: str
    wallclock_ms: int
    topics: list[str] | None
    headers: list[list[Header]] | None
    key: Typed | list[Any] | None
    value: Typed | list[Any] | None

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, places: npt.NDArray[np.int64]) -> Group:
        """Return some of the records."""
        if len(places) == len(self):
            return self
        listed = places.tolist()

        def pick(values: Any) -> Any:
            if isinstance(values, Typed):
                return values.take(places)
            return None if values is None else [values[place] for place in listed]

        return Group(
            self.rows[places],
            self.kafka.take(pa.array(places)),
            self.origin,
            self.wallclock_ms,
            pick(self.topics),
            pick(self.headers),
            pick(self.key),
            pick(self.value),
        )

    def split(self, mask: npt.NDArray[np.bool_]) -> tuple[Group, Group]:
        """Return the records that a mask selects, and the others."""
        return self.take(np.flatnonzero(mask)), self.take(np.flatnonzero(~mask))

    def side(self, side: Side) -> Typed:
        """Return the keys or values, which have a schema."""
        typed = self.key if side == "key" else self.value
        assert isinstance(typed, Typed), "records without a schema are changed one by one"
        return typed

    def with_side(self, side: Side, typed: Typed | list[Any]) -> Group:
        """Return the records with other keys or values."""
        return replace(self, key=typed) if side == "key" else replace(self, value=typed)


Changed = tuple[list[Group], dict[int, str]]
"""The records after a transform, and by the row of the batch why one is refused."""

Change = Callable[[Typed, Group, Refusals], Typed]
"""Changes keys or values of a group. Adds records that it refuses; a TransformError refuses all, for their schema."""


def change_group_side(side: Side, change: Change, group: Group, *, nulls: bool = False) -> Changed:
    """Apply a change to a key or value; null is left alone, with its schema, unless `nulls`."""
    missing: list[Group] = []
    typed = group.side(side)
    if typed.array.null_count and not nulls:
        group, without = group.split(typed.array.is_valid().to_numpy(zero_copy_only=False))
        missing, typed = [without], group.side(side)
    if not len(group):
        return missing, {}
    refused: Refusals = {}
    try:
        changed = change(typed, group, refused)
    except TransformError as refusal:
        return missing, dict.fromkeys(group.rows.tolist(), str(refusal))
    done, reasons = drop_refused(group.with_side(side, changed), refused)
    return [*missing, done], reasons


def drop_refused(group: Group, refused: Refusals) -> tuple[Group, dict[int, str]]:
    """Return the records that are not refused, and the reasons by the row of the batch."""
    if not refused:
        return group, {}
    kept = np.array([place for place in range(len(group)) if place not in refused], np.int64)
    return group.take(kept), {int(group.rows[place]): reason for place, reason in refused.items()}


def change_struct(side: Side, change: Change, group: Group) -> Changed:
    """Apply a change to keys or values that are structs; others are refused."""

    def change_it(typed: Typed, group: Group, refused: Refusals) -> Typed:
        require_struct(typed, side)
        return change(typed, group, refused)

    return change_group_side(side, change_it, group)


def require_struct(typed: Typed, side: str) -> None:
    """Raise a TransformError if keys or values are no structs."""
    if not isinstance(typed.schema.type, Struct):
        raise TransformError(f"the {side} is {typed.schema.type} by its schema, a struct is needed")


def open_struct(type: Type, detail: Detail | None, array: pa.StructArray) -> dict[str, Member]:
    """Return the fields of structs by name; where a struct is null, so are its fields."""
    if list(fields_of(type)) == [PLACEHOLDER]:
        return {}  # it holds the place of fields, until there is one
    columns = array.flatten() if array.null_count else [array.field(at) for at in range(array.type.num_fields)]
    # Of a schema of Protobuf nothing is known but the types: everything may be null.
    details = detail.inner if detail is not None and detail.inner else [Detail()] * len(columns)
    pairs = zip(fields_of(type).items(), details, columns, strict=True)
    return {name: Member(of, each, column) for (name, of), each, column in pairs}


def open_fields(typed: Typed) -> dict[str, Member]:
    """Return the fields of keys or values that are structs."""
    return open_struct(typed.schema.type, typed.schema.detail, typed.array)


def close_struct(members: Mapping[str, Member], detail: Detail, nulls: pa.BooleanArray | None, count: int) -> Member:
    """Make structs of fields; `detail` is what their schema has besides its fields."""
    members = members or {PLACEHOLDER: Member(Primitive.STRING, Detail(), pa.nulls(count, pa.string()))}
    type = Struct({name: member.type for name, member in members.items()})
    detail = structs.replace(detail, inner=tuple(member.detail for member in members.values()))
    fields = [pa.field(name, arrow_type(member.type)) for name, member in members.items()]
    arrays = [member.array for member in members.values()]
    return Member(type, detail, pa.StructArray.from_arrays(arrays, fields=fields, mask=nulls))


def close_fields(members: Mapping[str, Member], typed: Typed, *, required: bool = True) -> Typed:
    """Make keys or values of fields, with the name of their schema; a null stays null.

    Args:
        required: True if by the schema they are never null, whatever it was before.
    """
    basics = structs.replace(typed.schema.detail or Detail(), required=required, default=None)
    nulls = typed.array.is_null() if typed.array.null_count else None
    struct = close_struct(members, basics, nulls, len(typed.array))
    return Typed(Schema(typed.schema.name, struct.type, detail=struct.detail), struct.array)


def is_required(typed: Typed) -> bool:
    """Return whether by their schema keys or values are never null."""
    return typed.schema.detail is not None and typed.schema.detail.required


def to_typed(member: Member) -> Typed:
    """Make a key or value of a field."""
    name = member.detail.name if isinstance(member.type, Struct) else None
    if name is not None and name.startswith(f"{NAME_SPACE}.ConnectDefault"):
        name = None  # the schema gives the struct no name
    return Typed(Schema(name, member.type, detail=member.detail), member.array)
