"""Header columns in Arrow: read as lists, written from lists, or with headers appended without reading them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, chain

import pyarrow as pa
import pyarrow.compute as pc

from s3lake.transform.record import Header

TYPE = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))


def read(headers: pa.ListArray) -> list[list[Header]]:
    """The headers of every record; none are an empty list."""
    entries = headers.flatten()
    pairs = list(zip(entries.field(0).to_pylist(), entries.field(1).to_pylist(), strict=True))
    ends = list(accumulate(length or 0 for length in pc.list_value_length(headers).to_pylist()))
    return [pairs[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def written(rows: Sequence[Sequence[Header]], type: pa.DataType = TYPE) -> pa.ListArray:
    """A column of headers; null where there are none."""
    pairs = list(chain.from_iterable(rows))
    entries = _entries([name for name, _ in pairs], [value for _, value in pairs], type)
    return _listed(pa.array([len(row) for row in rows], pa.int32()), entries, type)


def appended(headers: pa.ListArray, added: Sequence[Sequence[Header]]) -> pa.ListArray:
    """The column with each record's further headers at its end."""
    counts = pa.array([len(row) for row in added], pa.int32())
    parents = pa.array([row for row, more in enumerate(added) for _ in more], pa.int64())
    pairs = list(chain.from_iterable(added))
    entries = _entries([name for name, _ in pairs], [value for _, value in pairs], headers.type)
    return _merged(headers, counts, parents, entries)


def with_constants(headers: pa.ListArray, constants: Sequence[Header]) -> pa.ListArray:
    """The column with the same headers at every record's end."""
    records = len(headers)
    counts = pa.repeat(pa.scalar(len(constants), pa.int32()), records)
    rows = pa.array(range(records), pa.int64())
    parents = pa.concat_arrays([rows] * len(constants))
    which = pa.concat_arrays([pa.repeat(pa.scalar(n, pa.int64()), records) for n in range(len(constants))])
    entries = _entries([name for name, _ in constants], [value for _, value in constants], headers.type).take(which)
    return _merged(headers, counts, parents, entries)


def _merged(headers: pa.ListArray, counts: pa.Array, parents: pa.Array, entries: pa.StructArray) -> pa.ListArray:
    before = pc.fill_null(pc.list_value_length(headers), 0)
    of_record = pa.concat_arrays([pc.list_parent_indices(headers).cast(pa.int64()), parents])
    # A stable sort by record keeps what was there first, and the order within it.
    order = pc.array_sort_indices(of_record)
    return _listed(pc.add(before, counts), pa.concat_arrays([headers.flatten(), entries]).take(order), headers.type)


def _entries(names: list[str], values: list[bytes | None], type: pa.DataType) -> pa.StructArray:
    fields = list(type.value_type)
    return pa.StructArray.from_arrays(
        [pa.array(names, fields[0].type), pa.array(values, fields[1].type)], fields=fields
    )


def _listed(counts: pa.Array, entries: pa.StructArray, type: pa.DataType) -> pa.ListArray:
    zero = pa.array([0], pa.int32())
    offsets = pa.concat_arrays([zero, pc.cumulative_sum(counts).cast(pa.int32())])
    return pa.ListArray.from_arrays(offsets, entries, type=type, mask=pc.equal(counts, 0))
