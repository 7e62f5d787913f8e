"""Which log a configuration's topics are compared with."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from s3lake.source.iggy.connection import Connection
from s3lake.source.offsets import Snapshot
from s3lake.source.opening import Source, opened
from s3lake.source.records import Range
from s3lake.verify.iggy_side import IggyLog
from s3lake.verify.kafka_side import KafkaLog
from s3lake.verify.log import Headers, Log, Records

if TYPE_CHECKING:
    from s3lake.sink import Config

_PATIENCE_S = 30.0


@contextmanager
def log_of(config: Config) -> Iterator[Log]:
    """The log of a configuration's source, open until the end of the block.

    Kafka and Iggy are read by code of verifying's own; of another package's source there is only that package's.
    """
    if config.kafka is not None:
        with KafkaLog(config.kafka.bootstrap_servers, config.kafka.properties) as log:
            yield log
    elif config.source is not None and config.source.type == "iggy":
        yield IggyLog(Connection(**config.source.settings, timeout_s=_PATIENCE_S))
    else:
        yield SourceLog(opened(config, _PATIENCE_S))


class SourceLog:
    """`Log` of any source, read as its tasks read it."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def snapshot(self, topic: str, hour: str) -> Snapshot:
        """See `Log.snapshot`."""
        return self._source.offsets.snapshot(topic, hour)

    def first_since(self, topic: str, epoch_ms: int) -> Mapping[int, int]:
        """See `Log.first_since`."""
        return self._source.offsets.first_since(topic, epoch_ms)

    def compacted(self, topic: str) -> bool:
        """See `Log.compacted`: nobody can say, so nothing is forgiven."""
        del topic
        return False

    def read(self, topic: str, ranges: Mapping[int, tuple[int, int]], parts: Collection[str] = ()) -> Iterator[Records]:
        """See `Log.read`."""
        columns = ["offset", "timestamp", "value", *sorted(parts)]
        for partition, (start, end) in ranges.items():
            if start < end:
                for batch in self._source.reader.batches(topic, [Range(partition, start, end)], columns):
                    yield _records(partition, batch)


def _records(partition: int, batch: pa.RecordBatch) -> Records:
    stamps = pc.divide(batch.column("timestamp").cast(pa.int64()), 1000).to_pylist()
    given = batch.to_pydict()
    headers: list[Headers] = [[(one["key"], one["value"]) for one in row or ()] for row in given.get("headers", ())]
    return Records(partition, given["offset"], stamps, given["value"], given.get("key", ()), headers)
