"""Integers that a column of doubles does not hold: which columns have had some, and which records are refused for them.

Files of records with a schema have the types of that schema, and readers get all files in one type for each column. A
column of integers beyond 2^53 so stays one of integers, and a record with a fraction for it is refused; to a column of
doubles no integer is added that it would round. All hours can be read together, and the dead letter has the bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from s3lake.records.convert.read.json.inferred_types import LARGE
from s3lake.records.convert.read.value_checks import Refusals
from s3lake.records.schema.columns.changes import find_differences
from s3lake.records.schema.columns.types import FLOATING, Columns, Primitive, write_name
from s3lake.records.schema.columns.union import join_path

Mask = npt.NDArray[np.bool_]


def find_large_columns(batch: pa.RecordBatch) -> Iterator[str]:
    """Yield the paths of columns of integers of which one is beyond 2^53."""
    waiting = list(zip(map(write_name, batch.schema.names), batch.columns, strict=True))
    for path, column in waiting:
        if pa.types.is_int64(column.type):
            ends = pc.min_max(column).as_py()
            if ends["min"] is not None and max(-ends["min"], ends["max"]) > LARGE:
                yield path
        elif pa.types.is_struct(column.type):
            names = [join_path(path, inner.name) for inner in column.type]
            waiting += zip(names, column.flatten(), strict=True)
        elif pa.types.is_list(column.type) or pa.types.is_map(column.type):
            waiting.append((f"{path}[]", _list_items(column)))


def _list_items(column: pa.ListArray | pa.MapArray) -> pa.Array:
    """Return what the lists, or the values of the maps, hold; a null one may point at items that belong to no row.

    Arrow's own list_flatten knows no UUIDs.
    """
    offsets, items = column.offsets.to_numpy(), column.items if pa.types.is_map(column.type) else column.values
    is_owned = np.repeat(column.is_valid().to_numpy(zero_copy_only=False), np.diff(offsets))
    return items.take(pa.array(np.flatnonzero(is_owned) + offsets[0]))


def find_inexact_rows(
    arrays: Mapping[str, pa.Array], seen: Columns, recorded: Columns, integral: Mapping[str, str]
) -> Refusals:
    """Return rows of a schema that cannot be read together with what is recorded without rounding, and why.

    Args:
        arrays: the columns of the rows by the path of each; the fields of the one at `""` are columns.
        seen: the columns that the schema gives.
        recorded: the columns of the files so far.
        integral: path of a column that stays one of integers -> why.
    """
    reasons: dict[str, str] = {}
    tests: dict[str, Callable[[pa.Array], Mask]] = {}
    for path, old, new in find_differences(recorded, seen):
        if new in FLOATING and path in integral:
            reasons[path] = f"field {path!r} is {new}, and its column stays one of integers: {integral[path]}"
            tests[path] = _is_present
        elif old in FLOATING and new is Primitive.INT64:
            reasons[path] = (
                f"field {path!r} is an integer beyond 2^53, and its column, double, does not hold all of those: have "
                "the producer write a decimal or a text"
            )
            tests[path] = _is_large
    refused: Refusals = {}
    for path, rows in (passed for at, array in arrays.items() for passed in find_rows(array, tests, at).items()):
        refused = dict.fromkeys(np.flatnonzero(rows).tolist(), reasons[path]) | refused
    return refused


def find_rows(values: pa.Array, tests: Mapping[str, Callable[[pa.Array], Mask]], path: str = "") -> dict[str, Mask]:
    """Return for each path which rows have something there that passes the path's test.

    Args:
        values: the values of one column, or records whose fields are columns.
        tests: the test of each path; a test never passes for null.
        path: the path of the values.
    """
    if not tests:
        return {}
    if path in tests:
        return {path: tests[path](values)}
    if pa.types.is_struct(values.type):
        masks: dict[str, Mask] = {}
        for field, column in zip(values.type, values.flatten(), strict=True):
            masks |= find_rows(column, tests, join_path(path, field.name))
        return masks
    if not pa.types.is_list(values.type) and not pa.types.is_map(values.type):
        return {}
    offsets = values.offsets.to_numpy()
    items = (values.items if pa.types.is_map(values.type) else values.values)[offsets[0] : offsets[-1]]
    # A null list may point at items, which belong to no row.
    is_list = values.is_valid().to_numpy(zero_copy_only=False)
    counts = np.where(is_list, np.diff(offsets), 0)
    owned = np.repeat(is_list, np.diff(offsets))
    parents = np.repeat(np.arange(len(values)), counts)
    inside = find_rows(items, tests, f"{path}[]")
    return {name: np.bincount(parents[has[owned]], minlength=len(values)) > 0 for name, has in inside.items()}


def _is_present(column: pa.Array) -> Mask:
    mask: Mask = column.is_valid().to_numpy(zero_copy_only=False)
    return mask


def _is_large(column: pa.Array) -> Mask:
    """Return which integers are beyond 2^53: Arrow and others read no file of such as doubles, not even 2^53 + 2."""
    integers = column.fill_null(0).to_numpy(zero_copy_only=False)
    mask: Mask = (integers > LARGE) | (integers < -LARGE)
    return mask
