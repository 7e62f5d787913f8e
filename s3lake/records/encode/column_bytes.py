"""Bytes of whole columns, with numpy instead of value by value; what CSV, Avro and JSON have in common."""

from __future__ import annotations

import binascii
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Bytes = npt.NDArray[np.uint8]

_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
_UUID_TEXT = 36
_DIGITS = [at for at in range(_UUID_TEXT) if at not in (8, 13, 18, 23)]

ENCODED = b"s3lake.encoded"
"""Marks a batch of finished records in its schema's metadata; with what the file has before the first of them."""


def wrap_encoded(records: pa.BinaryArray, beginning: bytes) -> pa.RecordBatch:
    """Finished records as a batch of one column, cheap to split among files; see `ENCODED`."""
    schema = pa.schema([pa.field("record", pa.binary())], metadata={ENCODED: beginning})
    return pa.RecordBatch.from_arrays([records], schema=schema)


def binary(offsets: Any, data: Any) -> pa.BinaryArray:
    """Binary values from where each begins and their bytes."""
    buffers = [None, pa.py_buffer(np.ascontiguousarray(offsets, np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers)


def slice_values(start: npt.NDArray[Any], end: npt.NDArray[Any], data: pa.Buffer) -> pa.BinaryArray:
    """Return the bytes from each start to its end.

    Arrow takes every second value of an array that has what lies between too.
    """
    count = 2 * len(start)
    offsets = np.full(count + 1, data.size, np.int32)
    offsets[0:count:2] = start
    offsets[1:count:2] = end
    return binary(offsets, data).take(pa.array(np.arange(0, count, 2)))


def offsets_of(array: pa.Array) -> npt.NDArray[np.int32]:
    """Return where each value of a string or binary array begins in its data, and where the last one ends."""
    if not len(array):
        return np.zeros(1, np.int32)
    return np.frombuffer(array.buffers()[1], np.int32, len(array) + 1, array.offset * 4)


def data_of(array: pa.Array) -> bytes:
    """The bytes of all values, one after the other."""
    offsets = offsets_of(array)
    start, end = int(offsets[0]), int(offsets[-1])
    return bytes(array.buffers()[2].slice(start, end - start)) if end > start else b""


def rows_of(array: pa.Array, width: int) -> Bytes:
    """Return values of a fixed width as rows of bytes; a null has any bytes."""
    data = array.buffers()[1]
    return np.frombuffer(data, np.uint8, len(array) * width, array.offset * width).reshape(len(array), width)


def uuid_texts(array: pa.Array) -> pa.BinaryArray:
    """UUIDs in their usual 36 characters."""
    data = rows_of(array.storage, 16)
    text = np.full((len(array), _UUID_TEXT), ord("-"), np.uint8)
    text[:, _DIGITS[0::2]] = _HEX[data >> 4]
    text[:, _DIGITS[1::2]] = _HEX[data & 15]
    return copy_nulls(binary(np.arange(len(array) + 1) * _UUID_TEXT, text), array)


def base64(values: pa.BinaryArray) -> pa.BinaryArray:
    """Return bytes in base64, null as null.

    One call for all: each value is filled up to three bytes with zeros, whose characters become the padding.
    """
    lengths = np.diff(offsets_of(values))
    if values.null_count:
        lengths = np.where(pc.is_valid(values).to_numpy(zero_copy_only=False), lengths, 0)
    missing = -lengths % 3
    fill = binary(np.concatenate(([0], np.cumsum(missing))), bytes(int(missing.sum())))
    filled = pc.binary_join_element_wise(values, fill, b"", null_handling="replace")
    offsets = offsets_of(filled)
    text = np.frombuffer(bytearray(binascii.b2a_base64(data_of(filled), newline=False)), np.uint8)
    ends = offsets[1:].astype(np.int64) // 3 * 4
    text[ends[missing >= 1] - 1] = ord("=")
    text[ends[missing == 2] - 2] = ord("=")
    return copy_nulls(binary(np.concatenate(([0], ends)), text), values)


def copy_nulls(values: pa.Array, like: pa.Array) -> pa.Array:
    """`values`, null where `like` is."""
    return pc.if_else(pc.is_valid(like), values, pa.scalar(None, values.type)) if like.null_count else values
