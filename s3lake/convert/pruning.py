"""Fields taken out of values, by their paths: `order.id`, `items[].price`, and of a map's values `prices[]`."""

from __future__ import annotations

from collections.abc import Callable, Collection

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec import structs

from s3lake.schema.details import Detail
from s3lake.schema.types import UNKNOWN, Type, fields_of, item_of
from s3lake.schema.unite import join_path

Rows = npt.NDArray[np.bool_]

Departs = Callable[[str, msgspec.Raw, Type], bool]
"""Whether a field is taken out, by its path, its value as JSON, and the type of its column."""

_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_items = msgspec.json.Decoder(list[msgspec.Raw]).decode
_encode = msgspec.json.encode
_NULL = msgspec.Raw(b"null")


def drop_fields(value: msgspec.Raw, type: Type, path: str, departs: Departs) -> msgspec.Raw:
    """A value as JSON, the same one where nothing was taken out of it.

    Args:
        value: any JSON.
        type: of its column.
        path: of it.
        departs: says of each field whether it is taken out; an item of a list becomes null.
    """
    begin = bytes(value)[:1]
    if begin == b"{" and (fields := fields_of(type)):
        members = _members(value)
        left = {}
        for name, member in members.items():
            here, column = join_path(path, name), fields.get(name, UNKNOWN)
            if not departs(here, member, column):
                left[name] = drop_fields(member, column, here, departs)
        is_same = len(left) == len(members) and all(left[name] is member for name, member in members.items())
        return value if is_same else msgspec.Raw(_encode(left))
    if begin == b"[" and (item := item_of(type)) != UNKNOWN:
        items, here = _items(value), f"{path}[]"
        kept = [_NULL if departs(here, one, item) else drop_fields(one, item, here, departs) for one in items]
        is_same = all(new is old for new, old in zip(kept, items, strict=True))
        return value if is_same else msgspec.Raw(_encode(kept))
    return value


def drop_details(of: Detail, type: Type, gone: Collection[str], path: str = "") -> Detail:
    """Return the detail of a column without the fields that are gone."""
    if not of.inner:
        return of
    fields = fields_of(type)
    if not fields:
        here = f"{path}[]"
        return structs.replace(of, inner=(drop_details(of.inner[0], item_of(type), gone, here),))
    inner = tuple(
        drop_details(each, field, gone, join_path(path, name))
        for each, (name, field) in zip(of.inner, fields.items(), strict=True)
        if join_path(path, name) not in gone
    )
    return structs.replace(of, inner=inner)


def find_holders(values: pa.Array, paths: Collection[str], path: str = "") -> dict[str, Rows]:
    """Return for each of the paths which rows have something there."""
    if pa.types.is_struct(values.type):
        holders: dict[str, Rows] = {}
        for field, column in zip(values.type, values.flatten(), strict=True):
            here = join_path(path, field.name)
            if here in paths:
                holders[here] = column.is_valid().to_numpy(zero_copy_only=False)
            else:
                holders |= find_holders(column, paths, here)
        return holders
    if not pa.types.is_list(values.type) and not pa.types.is_map(values.type):
        return {}
    offsets = values.offsets.to_numpy()
    items = (values.items if pa.types.is_map(values.type) else values.values)[offsets[0] : offsets[-1]]
    # A null list may point at items, which belong to no row.
    counts = np.where(values.is_valid().to_numpy(zero_copy_only=False), np.diff(offsets), 0)
    owned = np.repeat(values.is_valid().to_numpy(zero_copy_only=False), np.diff(offsets))
    parents = np.repeat(np.arange(len(values)), counts)
    inside = find_holders(items, paths, f"{path}[]")
    return {name: np.bincount(parents[has[owned]], minlength=len(values)) > 0 for name, has in inside.items()}
