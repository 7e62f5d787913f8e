"""A landed hour for a destination: its rows as JSON, and a digest that changes with a rewrite."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import pyarrow as pa

from s3lake.errors import ConfigurationError, DataLossError, FencedError, UnreadableError
from s3lake.index.commit.documents import collect_files
from s3lake.index.plan.sealed import digest_commits
from s3lake.index.store.reading import open_object
from s3lake.lake.objects import ObjectShape, read_batches, spark_columns
from s3lake.lake.objects.shape import BYTES, STRING
from s3lake.lake.readback.committed import open_index, read_complete_tiles, read_manifests, read_recorded_columns
from s3lake.text.quantities import format_count

if TYPE_CHECKING:
    from s3lake.config.model import Sink
    from s3lake.index.commit.documents import File, Manifest
    from s3lake.index.commit.topic_index import TopicIndex
    from s3lake.index.store import Store


_json = msgspec.json.Encoder(decimal_format="number").encode


class Row(NamedTuple):
    """A committed record.

    Attributes:
        partition: topic-partition.
        offset: the record's offset, if its envelope contains it; else None.
        file: the key of its object.
        number: the number of the row in that object, from 0; no other row has the same `file` and number.
        document: the record as it is in the object, as JSON.
    """

    partition: int
    offset: int | None
    file: str
    number: int
    document: bytes

    @property
    def line(self) -> msgspec.Raw:
        """The document on one line. Line ends are only between its tokens: in texts they are escaped."""
        return msgspec.Raw(self.document.replace(b"\n", b" "))


@dataclass(frozen=True)
class CompleteHour:
    """One hour of a topic that is complete.

    Attributes:
        sink: name of the sink, or of its index: a sink that was renamed forwards no hour again.
        topic: one of its topics.
        hour: the hour in UTC, such as `2026-11-20T05`.
        bucket: the bucket that it was landed in.
        commits: the ids of its commits.
        content: a digest of these: it changes with a rewrite.
        offsets: the start and end offset of the hour for each topic-partition.
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
    def without_rows(cls, sink: Sink, topic: str, hour: str, store: Store) -> CompleteHour:
        """Return an hour that nothing was landed in, by which a destination can be asked whether it answers."""
        return cls(sink.name, topic, hour, sink.bucket, (), "", {}, 0, open_index(sink, topic, store), ())

    @classmethod
    def from_index(cls, sink: Sink, topic: str, hour: str, store: Store) -> CompleteHour:
        """Read the hour from the index.

        Raises:
            IncompleteError: it is not complete.
        """
        index = open_index(sink, topic, store)
        by_hour = read_complete_tiles(index, sink, [hour])
        tile, listed = by_hour[hour], tuple(read_manifests(index, by_hour))
        assert tile is not None, "an hour without a tile is not complete"
        return cls(
            sink=sink.index.name or sink.name,
            topic=topic,
            hour=hour,
            bucket=sink.bucket,
            commits=tile.commits,
            content=digest_commits(tile.commits),
            offsets={number: (span.start, span.committed) for number, span in sorted(tile.partitions.items())},
            rows=sum(file.records for file in collect_files(listed, "data")),
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
                    f"{self._what}: its objects hold {format_count(taken, 'rows')}, its commits "
                    f"state {self.rows:,}: verify the hour"
                )
        except DataLossError:
            self._refuse_rewritten()  # a rewrite deletes objects
            raise
        self._refuse_rewritten()

    @property
    def start(self) -> str:
        """The first moment of the hour in ISO 8601."""
        return f"{self.hour}:00:00Z"

    @property
    def _what(self) -> str:
        return f"{self.topic} {self.hour} of sink {self.sink}"

    def _read(self) -> Iterator[list[Row]]:
        recorded = read_recorded_columns(self._index)
        for manifest in self._manifests:
            shape = ObjectShape.from_manifest(manifest)
            if not shape.separable:
                raise ConfigurationError(
                    f"{self._what} was landed as {shape.format}, which does not mark where a record ends: "
                    "land it in a format that has records, as parquet or json"
                )
            schema = spark_columns.build_read_schema(shape, recorded)
            for file in collect_files([manifest], "data"):
                yield from self._read_file(shape.for_file(file), manifest, file, schema)

    def _read_file(self, shape: ObjectShape, manifest: Manifest, file: File, schema: object) -> Iterator[list[Row]]:
        number = 0
        with open_object(self._index.store, file.key, file.bytes, manifest.id) as body:
            for batch in read_batches(shape, body, file.key, schema):
                yield list(read_batch_rows(shape, batch, file.key, file.partition, number))
                number += batch.num_rows

    def _refuse_rewritten(self) -> None:
        stored = self._index.tile(self.hour)
        if stored is None or stored[0].commits != self.commits:
            raise FencedError(f"{self._what} was rewritten while it was forwarded; it will be forwarded again")


def read_batch_rows(shape: ObjectShape, batch: pa.RecordBatch, file: str, partition: int, first: int) -> Iterator[Row]:
    """Yield the rows of a batch; `first` is the number of its first row in the file.

    Columns become members of an object; lines of JSON stay as they are. Bytes are base64, times ISO 8601, decimals
    numbers with all digits.

    Raises:
        ConfigurationError: JSON cannot hold a value, for example a time after the year 9999.
    """
    json_columns, whole = _find_json_columns(shape, batch.schema), _is_one_text(shape)
    try:
        cells: list[dict[str, Any]] = batch.to_pylist(maps_as_pydicts="strict")
    except (ValueError, OverflowError, KeyError) as error:
        raise ConfigurationError(
            f"{file}: rows {first} to {first + batch.num_rows - 1} have a value that JSON cannot hold: "
            f"{error}. Land the field as a number or as text, and rewrite the hour"
        ) from None
    for number, row in enumerate(cells, first):
        offset = _find_offset(shape, row)
        for name in json_columns:
            if row[name] is not None:
                row[name] = msgspec.Raw(row[name].encode())
        yield Row(partition, offset, file, number, row["value"].encode() if whole else _json(row))


def _is_one_text(shape: ObjectShape) -> bool:
    """Return whether a row is one text of JSON."""
    return shape.format.startswith("json") and (shape.envelope is None or shape.envelope.style == "iggy")


def _find_json_columns(shape: ObjectShape, schema: pa.Schema) -> list[str]:
    """Return the columns that contain JSON as text."""
    if not shape.format.startswith("json") or _is_one_text(shape):
        return []
    return [name for name in ("key", "value") if name in schema.names and shape.converter(name) not in (STRING, BYTES)]


def _find_offset(shape: ObjectShape, row: dict[str, Any]) -> int | None:
    """Return the offset of an envelope that contains it. A field of the value may have the same name."""
    if shape.spread_part is not None or shape.envelope is None or shape.envelope.style == "iggy":
        return None
    fields = shape.envelope.fields
    if "metadata" in fields:
        return int(row["metadata"]["offset"])
    return int(row["offset"]) if "offset" in fields else None
