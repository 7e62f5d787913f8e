"""Changes of columns: new ones, and ones with another type than before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from s3lake.records.schema.columns.types import UNKNOWN, Columns, Type, fields_of, item_of
from s3lake.records.schema.columns.union import join_path, try_unify


class Change(msgspec.Struct, frozen=True):
    """One column that is not as before.

    Attributes:
        column: its path, as `order.items[].id`.
        before: its type as it was, None if there was no such column.
        after: its type as it is.
    """

    column: str
    before: str | None
    after: str


def list_changes(before: Columns, after: Columns) -> list[Change]:
    """List what is new or different in `after`; a column that it lacks is not a change, since none is removed."""
    return [
        Change(path, None if old == UNKNOWN else str(old), str(new))
        for path, old, new in find_differences(before, after)
    ]


def list_conflicts(columns: Columns, seen: Columns) -> list[Change]:
    """List columns that schemas of records give a type with nothing in common: both types stay, in separate files."""
    return [
        Change(path, str(old), f"{new}, in files of its own")
        for path, old, new in find_differences(columns, seen)
        if old != UNKNOWN and try_unify(old, new) is None
    ]


def find_differences(before: Columns, after: Columns) -> Iterator[tuple[str, Type, Type]]:
    """Yield path and types of each column of `after` that `before` has with another type, or, as unknown, not at all.

    Fields of structs, and what lists and maps hold, are compared by themselves.
    """
    for name, type in after.items():
        yield from _compare(join_path("", name), before.get(name, UNKNOWN), type)


def _compare(path: str, before: Type, after: Type) -> Iterator[tuple[str, Type, Type]]:
    if before == after or after == UNKNOWN:
        return
    if fields_of(before) and fields_of(after):
        for name, field in fields_of(after).items():
            yield from _compare(join_path(path, name), fields_of(before).get(name, UNKNOWN), field)
    elif type(before) is type(after) and item_of(before) != UNKNOWN:
        yield from _compare(f"{path}[]", item_of(before), item_of(after))
    else:
        yield path, before, after


def find_column_type(columns: Columns, path: str) -> Type | None:
    """Return the type at a path, as `order.items[].id`; what a map holds is at `[]` too. Return None if it has none."""
    return _find_type(((join_path("", name), type) for name, type in columns.items()), path)


def _find_type(places: Iterable[tuple[str, Type]], path: str) -> Type | None:
    for here, type in places:
        if here == path:
            return type
        if path.startswith((f"{here}.", f"{here}[")):
            inner = [(join_path(here, name), of_field) for name, of_field in fields_of(type).items()]
            return _find_type(inner or [(f"{here}[]", item_of(type))], path) if type != UNKNOWN else None
    return None
