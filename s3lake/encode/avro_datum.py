"""Avro datums from Arrow columns, a column at a time.

A column is turned into *pieces*: binary arrays of its length whose values, side by side, are the encoded values. The
pieces of all columns joined row by row are the datums. What an array or a map holds is encoded in the same way, as one
long column; the items of one row are neighbours there, so its bytes are a slice and need no copy of their own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from s3lake.encode.buffers import Bytes, binary, masked, offsets_of, rows_of, uuid_texts

_NULL, _VALUE = 0, 2  # the branch of ["null", type], as Avro spells it
_INTEGERS = {pa.int32(): np.int32, pa.date32(): np.int32, pa.time32("ms"): np.int32}

Valid = npt.NDArray[np.bool_]


def datums(batch: pa.RecordBatch) -> pa.BinaryArray:
    """One datum for each row of `batch`, in the schema that `schema.avro_written.schema_of` gives."""
    return _joined([piece for column in batch.columns for piece in _nullable(column)])


def _nullable(column: pa.Array) -> list[pa.BinaryArray]:
    type, count = column.type, len(column)
    if count == 0:
        return [binary([0], b"")]
    valid = np.ones(count, np.bool_) if not column.null_count else column.is_valid().to_numpy(zero_copy_only=False)
    if pa.types.is_struct(type):
        return _record(column, valid)
    if pa.types.is_list(type):
        return _blocks(column, _nullable(_within(column, column.values)), valid)
    if pa.types.is_map(type):
        keys, values = _within(column, column.keys), _within(column, column.items)
        return _blocks(column, [*_text(keys, None), *_nullable(values)], valid)
    if pa.types.is_string(type) or pa.types.is_binary(type):
        return _text(column, valid)
    if type == pa.uuid():
        return _text(uuid_texts(column), valid)
    return [_scalars(column, valid)]


def _scalars(column: pa.Array, valid: Valid) -> pa.BinaryArray:
    type = column.type
    if pa.types.is_boolean(type):
        return _fixed(np.asarray(column.fill_null(False).cast(pa.uint8()))[:, None], valid)
    if pa.types.is_floating(type):
        return _fixed(rows_of(column, type.bit_width // 8), valid)
    if pa.types.is_decimal(type):
        return _decimals(column, valid)
    width = _INTEGERS.get(type, np.int64)
    return _varints(np.frombuffer(column.buffers()[1], width, len(column), column.offset * width().itemsize), valid)


def _decimals(column: pa.Array, valid: Valid) -> pa.BinaryArray:
    """As many bytes as the precision can need, the most significant first."""
    width = ((10**column.type.precision).bit_length() + 8) // 8
    rows = np.empty((len(column), width + 1), np.uint8)
    rows[:, 0] = 2 * width
    rows[:, 1:] = rows_of(column, 16)[:, width - 1 :: -1]
    return _fixed(rows, valid)


def _text(column: pa.Array, valid: Valid | None) -> list[pa.BinaryArray]:
    lengths = np.diff(offsets_of(column))
    return [_varints(lengths, valid), column.cast(pa.binary())]


def _record(column: pa.StructArray, valid: Valid) -> list[pa.BinaryArray]:
    pieces = [_fixed(np.empty((len(column), 0), np.uint8), valid)]
    fields = [piece for field in column.flatten() for piece in _nullable(field)]
    if not column.null_count:
        return pieces + fields
    return [*pieces, masked(_joined(fields), column)] if fields else pieces


def _blocks(column: pa.Array, pieces: list[pa.BinaryArray], valid: Valid) -> list[pa.BinaryArray]:
    """One block with all items, and the empty one that ends an array; without items only the latter."""
    starts = column.offsets.to_numpy()
    counts = np.where(valid, np.diff(starts), 0)
    items = _joined(pieces)
    data = items.buffers()[2] if len(items) else b""
    slices = binary(offsets_of(items)[starts - starts[0]], data)
    ends = np.concatenate(([0], np.cumsum(counts > 0)))
    return [_varints(counts, valid), masked(slices, column), binary(ends, bytes(int(ends[-1])))]


def _within(column: pa.Array, items: pa.Array) -> pa.Array:
    """The items that the rows of `column` point at: all between the first one's and the last one's."""
    starts = column.offsets
    return items.slice(starts[0].as_py(), starts[-1].as_py() - starts[0].as_py())


def _fixed(values: Bytes, valid: Valid) -> pa.BinaryArray:
    """Values of one width, after their branch; null is its branch alone."""
    rows = np.empty((len(values), values.shape[1] + 1), np.uint8)
    rows[:, 0] = _VALUE
    rows[:, 1:] = values
    return _cut(rows, np.full(len(rows), rows.shape[1]), valid)


def _varints(values: npt.NDArray[Any], valid: Valid | None) -> pa.BinaryArray:
    """Zigzag integers of variable length, after their branch if `valid` says which."""
    wide = values.astype(np.int64)
    zigzag = ((wide << 1) ^ (wide >> 63)).view(np.uint64)
    highest = int(zigzag.max()) if len(zigzag) else 0
    width = max(1, -(-highest.bit_length() // 7))
    lead = 0 if valid is None else 1
    rows = np.empty((len(zigzag), lead + width), np.uint8)
    rows[:, :lead] = _VALUE
    lengths = np.full(len(zigzag), lead + 1)
    for at in range(width):
        rest = zigzag >> np.uint64(7 * (at + 1))
        more = rest != 0 if at < width - 1 else np.zeros(len(zigzag), np.bool_)
        rows[:, lead + at] = (zigzag >> np.uint64(7 * at)).astype(np.uint8) & 0x7F | more.astype(np.uint8) << 7
        lengths += more
    return _cut(rows, lengths, valid)


def _cut(rows: Bytes, lengths: npt.NDArray[Any], valid: Valid | None) -> pa.BinaryArray:
    """The first bytes of each row, as many as `lengths` says; of a null's only the first, which says so."""
    if valid is not None and not valid.all():
        rows[~valid, 0] = _NULL
        lengths[~valid] = 1
    offsets = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    if offsets[-1] == rows.size:
        return binary(offsets, rows)
    return binary(offsets, rows[np.arange(rows.shape[1]) < lengths[:, None]])


def _joined(pieces: list[pa.BinaryArray]) -> pa.BinaryArray:
    if len(pieces) == 1:
        return pieces[0]
    return pc.binary_join_element_wise(*pieces, b"", null_handling="replace", null_replacement="")
