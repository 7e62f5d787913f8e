"""Records that are converted together, compared with the same records one by one."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from s3lake.records.convert.conversion import Conversion
from s3lake.records.convert.convert_batch import ConvertedBatch, convert_batch
from s3lake.records.convert.read.avro import datum_columns
from s3lake_tests.records.schema.registry.server import SchemaRegistry


@contextmanager
def one_by_one() -> Iterator[None]:
    """As if no record could be read together with others."""

    with pytest.MonkeyPatch.context() as patch:
        decode = datum_columns.decode_datums

        def decode_nothing(decoder: Any, raw: Any, rows: Any, skipped: int) -> Any:
            return decode(decoder, raw, rows[:0], skipped)[0], np.zeros(len(rows), np.bool_)

        patch.setattr(datum_columns, "decode_datums", decode_nothing)
        yield


def convert_both_ways(
    registry: SchemaRegistry, records: pa.RecordBatch, format: str = "parquet", **more: Any
) -> ConvertedBatch:
    """What is made of records at once, after a look at whether it is the same as of one by one."""
    convert = Conversion("string", "avro", format, **{"nulls": "write", **more}, registry=registry.connection)
    found = convert_batch(convert, records, {})
    with one_by_one():
        expected = convert_batch(convert, records, {})
    assert found.refused == expected.refused
    assert (found.columns, found.seen, found.skipped) == (expected.columns, expected.seen, expected.skipped)
    assert len(found.parts) == len(expected.parts)
    for part, other in zip(found.parts, expected.parts, strict=True):
        assert (part.rows, part.names, part.values) == (other.rows, other.names, other.values)
        data, wanted = part.streams["data"], other.streams["data"]
        data.validate(full=True)
        if format == "parquet":
            assert data.schema.equals(wanted.schema, check_metadata=True)
            numbers = pa.schema([field.with_type(to_numbers(field.type)) for field in data.schema])
            data, wanted = data.cast(numbers), wanted.cast(numbers)
        assert str(data.to_pylist()) == str(wanted.to_pylist())  # by their texts: no NaN is equal to itself
    return found


def to_numbers(type: pa.DataType) -> pa.DataType:
    """A type with days and milliseconds for dates and timestamps: Python's end with the year 9999, Avro's do not."""
    if pa.types.is_temporal(type):
        return pa.int32() if type.bit_width == 32 else pa.int64()
    if pa.types.is_struct(type):
        return pa.struct([field.with_type(to_numbers(field.type)) for field in type])
    if pa.types.is_map(type):
        return pa.map_(type.key_type, type.item_field.with_type(to_numbers(type.item_type)))
    if pa.types.is_list(type):
        return pa.list_(type.value_field.with_type(to_numbers(type.value_type)))
    return type
