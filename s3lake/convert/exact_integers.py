"""Integers that pyarrow has read into columns of doubles or floats: it rounds them without a word."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s3lake.convert.gate import Refusals
from s3lake.convert.json_columns import JsonColumns
from s3lake.convert.json_probes import LARGE, LARGE_FLOAT, explain_rounding, holds_exactly, large_integers
from s3lake.schema.types import Columns, Primitive, leaf_paths
from s3lake.schema.unite import joined

_INT64 = range(-(2**63), 2**63)
_FLOATING = (Primitive.DOUBLE, Primitive.FLOAT)


@dataclass
class Judged:
    """What is said of the integers of a batch.

    Attributes:
        refused: row -> why: its column does not hold an integer of it.
        large: paths of columns in which there are integers beyond 2^53.
        integral: those among them that would become columns of doubles, and have to stay columns of integers.
        unsettled: whether a row is refused that may have made such a column; without it others may be different.
    """

    refused: Refusals = field(default_factory=dict)
    large: set[str] = field(default_factory=set)
    integral: set[str] = field(default_factory=set)
    unsettled: bool = False


def judge(
    batch: pa.RecordBatch, values: pa.BinaryArray, rows: pa.Int64Array | None, columns: Columns, known: JsonColumns
) -> Judged:
    """Judge the integers of a batch.

    Args:
        batch: what was read.
        values: the texts that it was read from, and others.
        rows: those of its texts; None for all.
        columns: the batch's.
        known: the columns before it was read.
    """
    judged = Judged()
    suspects: Columns = {}
    for name, type, column in zip(columns, columns.values(), batch.columns, strict=True):
        if _may_be_rounded(column):
            suspects[name] = type
        judged.large.update(_large(column, name))
    find = large_integers(suspects) if suspects else None
    if find is not None:
        doubles, given = (set(leaf_paths(types, _FLOATING)) for types in (known.columns, known.given))
        for row in _suspect_rows(batch, suspects):
            at = row if rows is None else rows[row].as_py()
            for path, number, type in find(values[at].as_py()):
                if number in _INT64 and abs(number) > LARGE and path not in given:
                    judged.large.add(path)
                if path not in doubles and number in _INT64:
                    judged.integral.add(path)
                elif not holds_exactly(type, number):
                    judged.refused.setdefault(at, explain_rounding(type, path))
                    judged.unsettled |= path not in doubles
    return judged


def _may_be_rounded(column: pa.Array) -> bool:
    if pa.types.is_floating(column.type):
        ends = pc.min_max(column).as_py()
        least = LARGE_FLOAT if pa.types.is_float32(column.type) else LARGE
        return ends["min"] is not None and max(-ends["min"], ends["max"]) >= least
    return any(map(_may_be_rounded, _inside(column)))


def _large(column: pa.Array, path: str) -> Iterator[str]:
    """Yield the paths of columns of integers beyond 2^53."""
    if pa.types.is_int64(column.type):
        ends = pc.min_max(column).as_py()
        if ends["min"] is not None and max(-ends["min"], ends["max"]) > LARGE:
            yield path
    elif pa.types.is_struct(column.type):
        for inner, at in zip(column.flatten(), column.type, strict=True):
            yield from _large(inner, joined(path, at.name))
    elif pa.types.is_list(column.type):
        yield from _large(pc.list_flatten(column), f"{path}[]")


def _inside(column: pa.Array) -> Iterable[pa.Array]:
    if pa.types.is_struct(column.type):
        fields: list[pa.Array] = column.flatten()  # all at once: one by one each costs all of them
        return fields
    return [pc.list_flatten(column)] if pa.types.is_list(column.type) else []


def _suspect_rows(batch: pa.RecordBatch, suspects: Iterable[str]) -> Iterable[int]:
    """Yield the rows that may have a large integer in one of these columns."""
    marks = np.zeros(batch.num_rows, np.bool_)
    for name in suspects:
        column = batch.column(name)
        if not pa.types.is_floating(column.type):
            return range(batch.num_rows)
        least = LARGE_FLOAT if pa.types.is_float32(column.type) else LARGE
        marks |= np.abs(np.nan_to_num(column.to_numpy(zero_copy_only=False))) >= least
    return np.flatnonzero(marks).tolist()
