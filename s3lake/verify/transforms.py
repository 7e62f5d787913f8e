"""A sink's transforms run again on Kafka's records: the one part that verify shares with the writer.

No other module of verify imports this one before a commit was transformed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

import pyarrow as pa

from s3lake.source.records import SCHEMA
from s3lake.transform.batch import apply_chain
from s3lake.transform.chain import Chain
from s3lake.verify.log import Records, to_records

if TYPE_CHECKING:
    from s3lake.sink import Sink


class Transforms:
    """The transforms of a sink, as the commit of a topic-partition ran them.

    Attributes:
        needs: the parts of records, next to their values, that transforms look at or change.
    """

    def __init__(self, sink: Sink, topic: str, clocks: Sequence[tuple[int, int]]) -> None:
        """`clocks` are the times of micro-batches: `(end, epoch milliseconds)`, in order, for offsets below `end`."""
        registry = sink.converter.registry
        connection = registry.connection if registry else None
        self._chain = Chain(sink.transforms_as_data, sink.converter.key, sink.converter.value, connection)
        self._topic, self._clocks = topic, clocks
        self.needs = self._chain.needs

    def apply(self, records: Records) -> tuple[Records, dict[int, str]]:
        """Return the records after the transforms, in order, and by offset why one is refused.

        Those that a transform filters out, or refuses, are left out.
        """
        ends = [end for end, _ in self._clocks]
        batches: list[pa.RecordBatch] = []
        refused: dict[int, str] = {}
        numbered = [(min(bisect_right(ends, offset), len(ends) - 1), row) for row, offset in enumerate(records.offsets)]
        for clock, run in groupby(numbered, key=itemgetter(0)):
            own = records.select([row for _, row in run])
            done = apply_chain(self._chain, _to_batch(own), self._topic, self._clocks[clock][1])
            refused |= {own.offsets[row]: why for row, why in done.refused.items()}
            batches.append(done.batch)
        return to_records(records.partition, pa.concat_batches(batches)), refused


def _to_batch(records: Records) -> pa.RecordBatch:
    columns: dict[str, Sequence[object]] = {
        "partition": [records.partition] * len(records.offsets),
        "offset": records.offsets,
        "timestamp": [stamp * 1000 for stamp in records.timestamps],
        "value": records.values,
    }
    if records.keys:
        columns["key"] = records.keys
    if records.headers:
        columns["headers"] = [[{"key": name, "value": value} for name, value in row] or None for row in records.headers]
    fields = [SCHEMA.field(name) for name in columns]
    arrays = [pa.array(columns[field.name], field.type) for field in fields]
    return pa.record_batch(arrays, schema=pa.schema(fields))
