"""Columns of a batch of records as a chain changes them: headers, and a column in another's place."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, chain

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from s3lake.records.transform.step.record_values import Header


def replace_column(batch: pa.RecordBatch, name: str, column: pa.Array) -> pa.RecordBatch:
    """Return a batch with another column of this name."""
    return batch.set_column(batch.schema.get_field_index(name), name, column)


def read_headers(headers: pa.ListArray) -> list[list[Header]]:
    """Return the headers of every record; an empty list if it has none."""
    entries = headers.flatten()
    pairs = list(zip(entries.field(0).to_pylist(), entries.field(1).to_pylist(), strict=True))
    ends = list(accumulate(length or 0 for length in pc.list_value_length(headers).to_pylist()))
    return [pairs[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def append_headers(headers: pa.ListArray, added: Sequence[Sequence[Header]]) -> pa.ListArray:
    """Return the column with each record's added headers at its end; null if a record has no headers."""
    rows = np.array([row for row, more in enumerate(added) for _ in more], np.int64)
    return merge_headers(headers, rows, make_entries(list(chain.from_iterable(added)), headers.type))


def merge_headers(headers: pa.ListArray, rows: npt.NDArray[np.int64], added: pa.StructArray) -> pa.ListArray:
    """Append the entries of `added` to the headers of their `rows`."""
    of_row = np.concatenate([pc.list_parent_indices(headers).to_numpy().astype(np.int64), rows])
    # A stable sort by row keeps the record's own headers first, and the order within.
    order = np.argsort(of_row, kind="stable")
    counts = np.bincount(of_row, minlength=len(headers))
    entries = pa.concat_arrays([headers.flatten(), added]).take(pa.array(order))
    offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())
    return pa.ListArray.from_arrays(offsets, entries, type=headers.type, mask=pa.array(counts == 0))


def make_entries(headers: Sequence[Header], type: pa.DataType) -> pa.StructArray:
    """Return headers as the items of a column of this type."""
    key, value = type.value_type
    columns = [pa.array([name for name, _ in headers], key.type), pa.array([text for _, text in headers], value.type)]
    return pa.StructArray.from_arrays(columns, fields=[key, value])
