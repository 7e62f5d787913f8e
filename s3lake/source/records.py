"""Records on their way out of a source: which of them a task is asked for, and as which columns it gives them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute as pc

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
"""Every column that a batch can have; each costs, so only those that are asked for are made."""

UNREADABLE = [(None, None)]
"""The headers of a record whose own ones the reader cannot decode: no real header has a null name."""

UNREADABLE_HEADERS = "a header's name is not UTF-8: the record's headers cannot be read, and are not in the dead letter"


def take_unreadable(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, list[int]]:
    """Return the batch with null for headers that its reader could not decode, and the rows that had them."""
    if "headers" not in batch.schema.names:
        return batch, []
    column = batch.column("headers")
    names = column.flatten().field("key")
    if not names.null_count:
        return batch, []
    rows = pc.list_parent_indices(column).filter(names.is_null()).to_pylist()
    places: list[int | None] = list(range(batch.num_rows))
    for row in rows:
        places[row] = None
    column = column.take(pa.array(places, pa.int64()))
    return batch.set_column(batch.schema.get_field_index("headers"), "headers", column), rows


class Range(NamedTuple):
    """Offsets `[start, end)` of one topic-partition."""

    partition: int
    start: int
    end: int


class Reader(Protocol):
    """A source as a task reaches it: plain values, which travel to Spark's workers."""

    def batches(self, topic: str, ranges: Iterable[Range], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The records of `ranges`, in order, as batches of one topic-partition each.

        A range is exact to the offset. Where its records are not there any more that is an error, and nothing is
        passed over; offsets that never had a record for readers, as Kafka's transaction markers, are.

        Args:
            ranges: what to read.
            columns: names of `SCHEMA`.

        Raises:
            TransientError: what was planned is not there now, or the source does not answer: planning again tells.
            ConfigurationError: the source refuses to let this user read.
            RecordError: a record is none that the source can hand over.
        """
        ...
