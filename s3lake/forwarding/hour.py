"""A landed hour for a destination: its rows, and a digest that changes with a rewrite."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from s3lake.commit.documents import files_of
from s3lake.errors import ConfigurationError, DataLossError, FencedError, UnreadableError
from s3lake.forwarding.documents import Row, read_rows
from s3lake.objects import Shape, batches, columns
from s3lake.plan.sealed import content
from s3lake.readback.committed import complete_tiles, index_of, manifests, recorded_columns
from s3lake.store.reading import opened

if TYPE_CHECKING:
    from s3lake.commit.documents import File, Manifest
    from s3lake.commit.index import TopicIndex
    from s3lake.sink import Sink
    from s3lake.store import Store


@dataclass(frozen=True)
class Hour:
    """One hour of a topic that is landed as a whole.

    Attributes:
        sink: name of the sink.
        topic: one of its topics.
        hour: as `2026-11-20T05`, UTC.
        bucket: the bucket that it was landed in.
        commits: the ids of its commits.
        content: a digest of these: it changes with a rewrite.
        offsets: per topic-partition the start and end offset of the hour.
        rows: their number.
    """

    sink: str
    topic: str
    hour: str
    bucket: str
    commits: tuple[str, ...]
    content: str
    offsets: Mapping[int, tuple[int, int]]
    rows: int
    _index: TopicIndex = field(repr=False, compare=False)
    _manifests: tuple[Manifest, ...] = field(repr=False, compare=False)

    @classmethod
    def from_index(cls, sink: Sink, topic: str, hour: str, store: Store) -> Hour:
        """Read the hour from the index.

        Raises:
            IncompleteError: it is not landed as a whole.
        """
        index = index_of(sink, topic, store)
        by_hour = complete_tiles(index, sink, [hour])
        tile, listed = by_hour[hour], tuple(manifests(index, by_hour))
        assert tile is not None, "an hour without a tile is not complete"
        return cls(
            sink=sink.name,
            topic=topic,
            hour=hour,
            bucket=sink.bucket,
            commits=tile.commits,
            content=content(tile.commits),
            offsets={number: (span.start, span.committed) for number, span in sorted(tile.partitions.items())},
            rows=sum(file.records for file in files_of(listed, "data")),
            _index=index,
            _manifests=listed,
        )

    def batches(self) -> Iterator[list[Row]]:
        """Yield all rows in batches, in the same order each time.

        If the iterator ends, these were all rows, and the hour was not rewritten meanwhile.

        Raises:
            FencedError: the hour was rewritten; discard the rows.
            UnreadableError: an object is not what its commit wrote.
            DataLossError: an object was deleted.
        """
        taken = 0
        try:
            for batch in self._read():
                taken += len(batch)
                yield batch
            if taken != self.rows:
                raise UnreadableError(
                    f"{self._what}: its objects hold {taken:,} rows, its commits say {self.rows:,}: verify the hour"
                )
        except DataLossError:
            self._refuse_rewritten()  # a rewrite deletes objects
            raise
        self._refuse_rewritten()

    @property
    def _what(self) -> str:
        return f"{self.topic} {self.hour} of sink {self.sink}"

    def _read(self) -> Iterator[list[Row]]:
        recorded = recorded_columns(self._index)
        for manifest in self._manifests:
            shape = Shape.of(manifest)
            if not shape.separable:
                raise ConfigurationError(
                    f"{self._what} was landed as {shape.format}, which does not mark where a record ends: "
                    "land it in a format that has records, as parquet or json"
                )
            schema = columns.of(shape, shape.columns.fields if shape.columns else recorded)
            for file in files_of([manifest], "data"):
                yield from self._rows(shape, manifest, file, schema)

    def _rows(self, shape: Shape, manifest: Manifest, file: File, schema: object) -> Iterator[list[Row]]:
        number = 0
        with opened(self._index.store, file.key, file.bytes, manifest.id) as body:
            for batch in batches(shape, body, file.key, schema):
                yield list(read_rows(shape, batch, file.key, file.partition, number))
                number += batch.num_rows

    def _refuse_rewritten(self) -> None:
        stored = self._index.tile(self.hour)
        if stored is None or stored[0].commits != self.commits:
            raise FencedError(f"{self._what} was rewritten while it was forwarded; it will be forwarded again")
