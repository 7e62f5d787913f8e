"""Batches as Spark hands them over."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from s3lake.records.convert.conversion import Conversion
from s3lake.records.convert.convert_batch import ConvertedBatch, convert_batch
from s3lake.source.record_batches import HEADERS

Headers = Sequence[tuple[str, bytes | None]]


def batch(
    *values: bytes | None,
    keys: Sequence[bytes | None] | None = None,
    headers: Sequence[Headers | None] | None = None,
    timestamps: Sequence[int | None] | None = None,
    partition: int = 3,
    first: int = 100,
) -> pa.RecordBatch:
    """Records of one topic-partition; timestamps in epoch milliseconds."""
    total = len(values)
    stamps = timestamps if timestamps is not None else [1_000 * row for row in range(total)]
    columns: dict[str, Any] = {
        "partition": pa.array([partition] * total, pa.int32()),
        "offset": pa.array(range(first, first + total), pa.int64()),
        "timestamp": pa.array([None if one is None else one * 1000 for one in stamps], pa.int64()).cast(
            pa.timestamp("us", "UTC")
        ),
        "value": pa.array(values, pa.binary()),
    }
    if keys is not None:
        columns["key"] = pa.array(keys, pa.binary())
    if headers is not None:
        found = [None if one is None else [{"key": name, "value": value} for name, value in one] for one in headers]
        columns["headers"] = pa.array(found, HEADERS)
    return pa.record_batch(columns)


def lines(by: Conversion, records: pa.RecordBatch) -> list[str]:
    """The texts that records become, none of which is refused."""
    converted = convert_batch(by, records, {})
    assert converted.refused == {}
    (part,) = converted.parts
    return [line.decode() for line in part.streams["data"].to_pylist()]


def table(converted: ConvertedBatch) -> list[Any]:
    """The rows of the one part."""
    (part,) = converted.parts
    return part.streams["data"].to_pylist()  # type: ignore[no-any-return]


def parts(converted: ConvertedBatch) -> list[tuple[list[int] | None, list[Any]]]:
    """The rows of each part, and which of the batch they are; None if they are all of it."""
    return [
        (None if part.rows is None else part.rows.to_pylist(), part.streams["data"].to_pylist())
        for part in converted.parts
    ]
