"""Keys and values without a schema: JSON, UTF-8 texts, bytes as they are, and Kafka's numbers and truth values."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pyarrow as pa

from s3lake.records.convert.read import keys_and_values, value_checks
from s3lake.records.convert.read.converters import ConverterRequest
from s3lake.records.convert.read.keys_and_values import Column, Gathering
from s3lake.records.convert.read.value_checks import Refusals
from s3lake.records.schema.columns.arrow_types import arrow_type
from s3lake.records.schema.columns.types import Primitive
from s3lake.records.schema.connect_schema import Schema

_ENCODED = {
    "short": (">h", Primitive.INT32),
    "integer": (">i", Primitive.INT32),
    "long": (">q", Primitive.INT64),
    "float": (">f", Primitive.FLOAT),
    "double": (">d", Primitive.DOUBLE),
    "boolean": (">?", Primitive.BOOL),
}


def read_json(raw: pa.BinaryArray, request: ConverterRequest) -> tuple[Column, Refusals]:
    """Return texts of one line, or the values as they are if they need not be checked."""
    if request.unchecked:
        return Column("json", raw, is_checked=False), {}
    lines, refused = keys_and_values.check_json_lines(raw)
    return Column("json", lines), refused


def read_string(raw: pa.BinaryArray, _request: ConverterRequest) -> tuple[Column, Refusals]:
    """Return texts as they are."""
    refused = value_checks.check_utf8(raw)
    return Column("string", keys_and_values.null_refused(raw, refused)), refused


def read_bytes(raw: pa.BinaryArray, _request: ConverterRequest) -> tuple[Column, Refusals]:
    """Return the bytes themselves."""
    return Column("bytes", raw), {}


def read_number(name: str, raw: pa.BinaryArray, _request: ConverterRequest) -> tuple[Column, Refusals]:
    """Return numbers as JSON, and as a column."""
    encoding, type = _ENCODED[name]
    number, refused = struct.Struct(encoding), Refusals()
    numbers: list[Any] = []
    for row, value in enumerate(raw.to_pylist()):
        if value is not None and len(value) != number.size:
            refused[row] = f"{len(value)} bytes are not a {name}: {number.size} are expected"
        elif value is not None and type is Primitive.BOOL and value[0] > 1:
            refused[row] = f"byte 0x{value[0]:02x} is not a boolean: 0x00 or 0x01 is expected"
        numbers.append(None if value is None or row in refused else number.unpack(value)[0])
    gathering = Gathering(len(raw))
    gathering.add(Schema(None, type), np.arange(len(raw)), pa.array(numbers, arrow_type(type)))
    return Column.from_columns(name, raw, gathering, texts=True), refused
