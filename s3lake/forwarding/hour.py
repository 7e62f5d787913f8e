"""A landed hour as what a destination takes: its rows, and by what they are told from those of a rewrite."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from s3lake.commit.files import files_of
from s3lake.errors import ConfigurationError, DataLossError, FencedError, UnreadableError
from s3lake.forwarding.documents import Row, rows
from s3lake.objects import Shape, batches, columns
from s3lake.objects.readback.committed import index_of, manifests, recorded_columns, tiles
from s3lake.plan.sealed import content
from s3lake.store.reading import opened

if TYPE_CHECKING:
    from s3lake.commit.index import File, Manifest, TopicIndex
    from s3lake.sink import Sink
    from s3lake.store import Store


@dataclass(frozen=True)
class Hour:
    """One hour of a topic that is landed as a whole.

    Attributes:
        sink: name of the sink.
        topic: one of its topics.
        hour: as `2026-11-20T05`, UTC.
        bucket: that it was landed in.
        commits: ids of the commits that it consists of.
        content: a digest of these: after a rewrite it is another one.
        offsets: per topic-partition where the hour begins, and where it ends.
        rows: how many there are.
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
    def of(cls, sink: Sink, topic: str, hour: str, store: Store) -> Hour:
        """The hour as the index has it now.

        Raises:
            IncompleteError: it is not landed, or only in part.
        """
        index = index_of(sink, topic, store)
        by_hour = tiles(index, sink, [hour], allow_incomplete=False)
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
        """All rows, some at a time, in the same order each time.

        Who has taken the last one knows that it was all of them, and that the hour was not rewritten meanwhile.

        Raises:
            FencedError: it was; nothing of what was given may be kept.
            UnreadableError: an object is not what its commit wrote.
            DataLossError: an object is gone.
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
            self._refuse_rewritten()  # which takes objects away
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
                    f"{self._what} was landed as {shape.format}, where nothing tells for certain where a record ends: "
                    "land it in a format that has records, as parquet or json"
                )
            schema = columns.of(shape, shape.columns.fields if shape.columns else recorded)
            for file in files_of([manifest], "data"):
                yield from self._rows(shape, manifest, file, schema)

    def _rows(self, shape: Shape, manifest: Manifest, file: File, schema: object) -> Iterator[list[Row]]:
        number = 0
        with opened(self._index.store, file.key, file.bytes, manifest.id) as body:
            for batch in batches(shape, body, file.key, schema):
                yield list(rows(shape, batch, file.key, file.partition, number))
                number += batch.num_rows

    def _refuse_rewritten(self) -> None:
        stored = self._index.tile(self.hour)
        if stored is None or stored[0].commits != self.commits:
            raise FencedError(f"{self._what} was rewritten while it was forwarded; it is forwarded anew")
