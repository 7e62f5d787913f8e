"""Avro datums from Arrow columns, a column at a time.

A column is turned into *pieces*: binary arrays of its length whose values, side by side, are the encoded values. The
pieces of all columns joined row by row are the datums. What an array or a map holds is encoded in the same way, as one
long column; the items of one row are neighbours there, so its bytes are a slice and need no copy of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from s3lake.records.encode.column_bytes import Bytes, binary, copy_nulls, offsets_of, rows_of, uuid_texts
from s3lake.records.schema.avro.write_schema import is_value_first

_NULL, _VALUE = 0, 2  # the branches of a union of two, as Avro encodes them
_INTEGERS = {pa.int32(): np.int32, pa.date32(): np.int32, pa.time32("ms"): np.int32}


@dataclass(frozen=True)
class _Branch:
    """The branch of its union that each value has: the byte before a value, and the one of a null."""

    valid: npt.NDArray[np.bool_]
    value: int
    null: int

    @classmethod
    def from_field(cls, field: pa.Field, column: pa.Array) -> _Branch | None:
        """Return the branches of a column. Return None if its field is never null, and so not a union."""
        if not field.nullable:
            return None
        every = not column.null_count
        valid = np.ones(len(column), np.bool_) if every else column.is_valid().to_numpy(zero_copy_only=False)
        return cls(valid, *((_NULL, _VALUE) if is_value_first(field) else (_VALUE, _NULL)))


def encode_rows(batch: pa.RecordBatch) -> pa.BinaryArray:
    """One datum for each row of `batch`, in the schema that `schema.avro_write.write_schema` gives."""
    return _join(list(chain.from_iterable(map(_encode_column, batch.schema, batch.columns))))


def _encode_column(field: pa.Field, column: pa.Array) -> list[pa.BinaryArray]:
    type = column.type
    if len(column) == 0:
        return [binary([0], b"")]
    branch = _Branch.from_field(field, column)
    if pa.types.is_struct(type):
        return _encode_record(column, branch)
    if pa.types.is_list(type):
        return _encode_blocks(column, _encode_column(type.value_field, _slice_items(column, column.values)), branch)
    if pa.types.is_map(type):
        keys, values = _slice_items(column, column.keys), _slice_items(column, column.items)
        return _encode_blocks(column, [*_encode_text(keys, None), *_encode_column(type.item_field, values)], branch)
    if pa.types.is_string(type) or pa.types.is_binary(type):
        return _encode_text(column, branch)
    if type == pa.uuid():
        return _encode_text(uuid_texts(column), branch)
    return [_encode_scalars(column, branch)]


def _encode_scalars(column: pa.Array, branch: _Branch | None) -> pa.BinaryArray:
    type = column.type
    if pa.types.is_boolean(type):
        return _encode_fixed(np.asarray(column.fill_null(False).cast(pa.uint8()))[:, None], branch)
    if pa.types.is_floating(type):
        return _encode_fixed(rows_of(column, type.bit_width // 8), branch)
    if pa.types.is_decimal(type):
        return _encode_decimals(column, branch)
    width = _INTEGERS.get(type, np.int64)
    return _encode_varints(
        np.frombuffer(column.buffers()[1], width, len(column), column.offset * width().itemsize), branch
    )


def _encode_decimals(column: pa.Array, branch: _Branch | None) -> pa.BinaryArray:
    """Encode decimals in as many bytes as the precision can need, the most significant first."""
    width = ((10**column.type.precision).bit_length() + 8) // 8
    rows = np.empty((len(column), width + 1), np.uint8)
    rows[:, 0] = 2 * width
    rows[:, 1:] = rows_of(column, 16)[:, width - 1 :: -1]
    return _encode_fixed(rows, branch)


def _encode_text(column: pa.Array, branch: _Branch | None) -> list[pa.BinaryArray]:
    lengths = np.diff(offsets_of(column))
    return [_encode_varints(lengths, branch), column.cast(pa.binary())]


def _encode_record(column: pa.StructArray, branch: _Branch | None) -> list[pa.BinaryArray]:
    pieces = [_encode_fixed(np.empty((len(column), 0), np.uint8), branch)] if branch else []
    fields = list(chain.from_iterable(map(_encode_column, column.type, column.flatten())))
    if not column.null_count:
        return pieces + fields
    return [*pieces, copy_nulls(_join(fields), column)] if fields else pieces


def _encode_blocks(column: pa.Array, pieces: list[pa.BinaryArray], branch: _Branch | None) -> list[pa.BinaryArray]:
    """One block with all items, and the empty one that ends an array; without items only the latter."""
    starts = column.offsets.to_numpy()
    counts = np.where(branch.valid, np.diff(starts), 0) if branch else np.diff(starts)
    items = _join(pieces)
    data = items.buffers()[2] if len(items) else b""
    slices = binary(offsets_of(items)[starts - starts[0]], data)
    ends = np.concatenate(([0], np.cumsum(counts > 0)))
    return [_encode_varints(counts, branch), copy_nulls(slices, column), binary(ends, bytes(int(ends[-1])))]


def _slice_items(column: pa.Array, items: pa.Array) -> pa.Array:
    """The items that the rows of `column` point at: all between the first one's and the last one's."""
    starts = column.offsets
    return items.slice(starts[0].as_py(), starts[-1].as_py() - starts[0].as_py())


def _encode_fixed(values: Bytes, branch: _Branch | None) -> pa.BinaryArray:
    """Values of one width, after their branch; null is its branch alone."""
    if branch is None:
        return binary(np.arange(len(values) + 1) * values.shape[1], values)
    rows = np.empty((len(values), values.shape[1] + 1), np.uint8)
    rows[:, 0] = branch.value
    rows[:, 1:] = values
    return _cut(rows, np.full(len(rows), rows.shape[1]), branch)


def _encode_varints(values: npt.NDArray[Any], branch: _Branch | None) -> pa.BinaryArray:
    """Zigzag integers of variable length, after their branch where there is one."""
    wide = values.astype(np.int64)
    zigzag = ((wide << 1) ^ (wide >> 63)).view(np.uint64)
    highest = int(zigzag.max()) if len(zigzag) else 0
    width = max(1, -(-highest.bit_length() // 7))
    lead = 0 if branch is None else 1
    rows = np.empty((len(zigzag), lead + width), np.uint8)
    rows[:, :lead] = branch.value if branch else 0
    lengths = np.full(len(zigzag), lead + 1)
    for at in range(width):
        rest = zigzag >> np.uint64(7 * (at + 1))
        more = rest != 0 if at < width - 1 else np.zeros(len(zigzag), np.bool_)
        rows[:, lead + at] = (zigzag >> np.uint64(7 * at)).astype(np.uint8) & 0x7F | more.astype(np.uint8) << 7
        lengths += more
    return _cut(rows, lengths, branch)


def _cut(rows: Bytes, lengths: npt.NDArray[Any], branch: _Branch | None) -> pa.BinaryArray:
    """The first bytes of each row, as many as in `lengths`; of a null's only the first, which marks it."""
    if branch is not None and not branch.valid.all():
        rows[~branch.valid, 0] = branch.null
        lengths[~branch.valid] = 1
    offsets = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    if offsets[-1] == rows.size:
        return binary(offsets, rows)
    return binary(offsets, rows[np.arange(rows.shape[1]) < lengths[:, None]])


def _join(pieces: list[pa.BinaryArray]) -> pa.BinaryArray:
    if len(pieces) == 1:
        return pieces[0]
    return pc.binary_join_element_wise(*pieces, b"", null_handling="replace", null_replacement="")
