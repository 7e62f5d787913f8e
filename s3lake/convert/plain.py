"""Keys and values without a schema: JSON, UTF-8 texts, bytes as they are, and Kafka's numbers and truth values."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from s3lake.convert import column, gate
from s3lake.convert.column import Column, Gathering
from s3lake.convert.converters import ReadRequest
from s3lake.convert.gate import Refusals
from s3lake.schema.arrow import arrow_type
from s3lake.schema.connect import Schema
from s3lake.schema.types import Primitive

# So many bytes each, the most significant first.
_ENCODED = {
    "short": (">i2", Primitive.INT32),
    "integer": (">i4", Primitive.INT32),
    "long": (">i8", Primitive.INT64),
    "float": (">f4", Primitive.FLOAT),
    "double": (">f8", Primitive.DOUBLE),
    "boolean": ("?", Primitive.BOOL),
}


def read_json(raw: pa.BinaryArray, request: ReadRequest) -> tuple[Column, Refusals]:
    """Return texts of one line, or the values as they are if they need not be checked."""
    if request.unchecked:
        return Column("json", raw, is_checked=False), {}
    lines, refused = column.check_json_lines(raw)
    return Column("json", lines), refused


def read_string(raw: pa.BinaryArray, _request: ReadRequest) -> tuple[Column, Refusals]:
    """Return texts as they are."""
    refused = gate.check_utf8(raw)
    return Column("string", column.null_refused(raw, refused)), refused


def read_bytes(raw: pa.BinaryArray, _request: ReadRequest) -> tuple[Column, Refusals]:
    """Return the bytes themselves."""
    return Column("bytes", raw), {}


def read_number(name: str, raw: pa.BinaryArray, _request: ReadRequest) -> tuple[Column, Refusals]:
    """Return numbers as JSON, and as a column."""
    numbers, refused = _decode_numbers(name, raw)
    gathering = Gathering(len(raw))
    gathering.add(Schema(None, _ENCODED[name][1]), np.arange(len(raw)), numbers)
    return Column.from_columns(name, raw, gathering, texts=True), refused


def _decode_numbers(name: str, raw: pa.BinaryArray) -> tuple[pa.Array, Refusals]:
    """Return the numbers, null if it is missing or refused."""
    encoding, type = _ENCODED[name]
    width = np.dtype(encoding).itemsize
    values = raw.to_pylist()
    refused: Refusals = {
        row: f"{len(value)} bytes are not a {name}: {width} are expected"
        for row, value in enumerate(values)
        if value is not None and len(value) != width
    }
    if type is Primitive.BOOL:
        refused |= {
            row: f"byte 0x{value[0]:02x} is not a boolean: 0x00 or 0x01 is expected"
            for row, value in enumerate(values)
            if value is not None and row not in refused and value[0] > 1
        }
    present = np.array([value is not None and row not in refused for row, value in enumerate(values)], np.bool_)
    nothing = bytes(width)
    block = b"".join(value if kept else nothing for value, kept in zip(values, present, strict=True))
    decoded = np.frombuffer(block, encoding)
    native = decoded.astype(decoded.dtype.newbyteorder("="))
    return pa.array(native, mask=~present).cast(arrow_type(type)), refused
