"""Records on their way out of a source: the ranges that a task reads, and the columns of a batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

import pyarrow as pa

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
SCHEMA = pa.schema(
    [
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("value", pa.binary()),
        ("key", pa.binary()),
        ("headers", HEADERS),
    ]
)
"""Every column that a batch can have; each costs, so only requested ones are made."""
KAFKA_SCHEMA = SCHEMA.set(SCHEMA.get_field_index("timestamp"), pa.field("timestamp", pa.timestamp("ms", "UTC")))
"""The same of Kafka, whose timestamps are milliseconds: microseconds could not hold all that a producer may write."""


class OffsetRange(NamedTuple):
    """Offsets `[start, end)` of one topic-partition."""

    partition: int
    start: int
    end: int


class Reader(Protocol):
    """A source as a task reaches it: plain values, which travel to Spark's workers."""

    def batches(self, topic: str, ranges: Iterable[OffsetRange], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the records of `ranges`, in order, as batches of one topic-partition each.

        A range is exact to the offset: records that have expired are an error. Offsets that never had a record for
        readers, such as Kafka's transaction markers, are passed over.

        Args:
            ranges: what to read.
            columns: names of `SCHEMA`.

        Raises:
            TransientError: planned records are missing now, or the source does not answer: a new plan decides.
            ConfigurationError: the source refuses to let this user read.
            RecordError: the source cannot decode a record.
        """
        ...
