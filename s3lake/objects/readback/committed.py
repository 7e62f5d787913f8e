"""Which objects hold the records of hours: through the index, and never by listing a bucket."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from s3lake.commit.documents import File, Manifest, files_of
from s3lake.commit.index import TopicIndex
from s3lake.errors import ConfigurationError
from s3lake.land import binding
from s3lake.objects import Shape, columns
from s3lake.objects.readback import completeness
from s3lake.plan.tile import Tile
from s3lake.schema.types import Columns, from_document

if TYPE_CHECKING:
    from s3lake.sink import Config, Sink
    from s3lake.store import Store

_AT_ONCE = 16


@dataclass(frozen=True)
class CommittedFile:
    """One object of records that a commit of an hour consists of.

    Attributes:
        bucket: that it is in.
        key: its whole key.
        hour: that it was landed in, as `2026-11-20T05`.
        commit: id of the commit.
        partition: topic-partition of its records.
        first_offset: of its first record.
        last_offset: of its last one.
        rows: records in it.
        bytes: its size.
        format: as `format.type` calls it.
        schema: the columns that it is read into; of a CSV file without a header line those that it has, in their order.
    """

    bucket: str
    key: str
    hour: str
    commit: str
    partition: int
    first_offset: int
    last_offset: int
    rows: int
    bytes: int
    format: str
    schema: pa.Schema

    @property
    def address(self) -> str:
        """`s3://BUCKET/KEY`."""
        return f"s3://{self.bucket}/{self.key}"


def files(
    config: Config | str,
    sink: str,
    topic: str,
    hours: Iterable[str] | None = None,
    *,
    allow_incomplete: bool = False,
) -> list[CommittedFile]:
    """The objects that hold what was landed, hour by hour: no more than the index lists, and no dead letters.

    Args:
        config: the configuration, or where it is.
        sink: name of one of its sinks.
        topic: one of its topics.
        hours: as `2026-11-20T05`, UTC; without them all that the index has.
        allow_incomplete: take what is there of hours that are not landed, or only in part.

    Raises:
        IncompleteError: some of these hours are not landed, or only in part.
        MissingDocumentError: a manifest is gone from the index.
    """
    from s3lake.config.load import load
    from s3lake.store.connection import S3Connection
    from s3lake.store.s3 import S3Store

    loaded = load(config) if isinstance(config, str) else config
    route = loaded.sink(sink)
    index = index_of(route, topic, S3Store(S3Connection.of(route.s3 or loaded.s3), route.bucket))
    committed = manifests(index, tiles(index, route, hours, allow_incomplete))
    return list(committed_files(route.bucket, committed, recorded_columns(index)))


def committed_files(bucket: str, committed: Iterable[Manifest], recorded: Columns) -> Iterator[CommittedFile]:
    """The objects of records of these commits; `recorded` are the columns of those that say none."""
    schemas: dict[tuple[bytes, tuple[str, ...] | None], pa.Schema] = {}
    for manifest in committed:
        what = msgspec.json.encode((manifest.format, manifest.converter, manifest.shape, manifest.columns))
        for file in files_of([manifest], "data"):
            if (what, file.columns) not in schemas:
                shape = Shape.of(manifest).of_file(file)
                schemas[what, file.columns] = columns.of(shape, shape.columns.fields if shape.columns else recorded)
            yield _committed(bucket, manifest, file, schemas[what, file.columns])


def index_of(sink: Sink, topic: str, store: Store) -> TopicIndex:
    return TopicIndex(store, f"{sink.index.prefix}/{sink.name}", topic)


def tiles(
    index: TopicIndex, sink: Sink, asked: Iterable[str] | None, allow_incomplete: bool
) -> Mapping[str, Tile | None]:
    """The tiles of the hours, all of them landed unless others are allowed.

    Raises:
        IncompleteError: some are not.
    """
    by_hour = completeness.tiles(index, asked)
    if not allow_incomplete:
        completeness.refuse(by_hour, f"topic {index.topic} in sink {sink.name}")
    return by_hour


def manifests(index: TopicIndex, tiles: Mapping[str, Tile | None]) -> list[Manifest]:
    """The manifests of every commit of the hours, in order."""
    listed = [(hour, commit) for hour, tile in tiles.items() for commit in (tile.commits if tile else ())]
    with ThreadPoolExecutor(_AT_ONCE, "s3lake-index") as pool:
        return list(pool.map(lambda one: index.listed(*one), listed))


def recorded_columns(index: TopicIndex) -> Columns:
    """The columns of the sink's files; none where nothing was recorded."""
    recorded = index.columns()
    return from_document(recorded[0].columns) if recorded else {}


@dataclass(frozen=True)
class CommittedInput:
    """The data of hours, all of one form.

    Attributes:
        files: each with its shape.
        form: the shape that they have in common, apart from their own columns; the sink's if there are none.
        recorded: the columns of the sink's files.
    """

    files: list[tuple[File, Shape]]
    form: Shape
    recorded: Columns

    @property
    def schema(self) -> pa.Schema:
        """The columns that they are read into."""
        return columns.of(self.form, self.recorded)


def open_input(
    sink: Sink, topic: str, store: Store, hours: Iterable[str] | None, *, allow_incomplete: bool
) -> CommittedInput:
    """Find the data of hours (None: all that the index has) through the index.

    Raises:
        IncompleteError: some of these hours are not landed, or only in part.
        ConfigurationError: some have another form than others: format, converters or envelope.
        MissingDocumentError: a manifest is gone from the index.
    """
    index = index_of(sink, topic, store)
    files: list[tuple[File, Shape]] = []
    form, since = None, ""
    for manifest in manifests(index, tiles(index, sink, hours, allow_incomplete)):
        shape = Shape.of(manifest)
        if form is None:
            form, since = shape, manifest.hour
        elif _rows(shape) != _rows(form):
            raise ConfigurationError(
                f"{topic} {manifest.hour} was landed as {_describe(shape)}, and {since} as {_describe(form)}: read "
                "them apart, or bring them into one form: s3lake reformat"
            )
        files += [(file, shape.of_file(file)) for file in files_of([manifest], "data")]
    return CommittedInput(files, form or binding.shape_of(sink.after_transforms), recorded_columns(index))


def _committed(bucket: str, manifest: Manifest, file: File, schema: pa.Schema) -> CommittedFile:
    return CommittedFile(
        bucket=bucket,
        key=file.key,
        hour=manifest.hour,
        commit=manifest.id,
        partition=file.partition,
        first_offset=file.first_offset,
        last_offset=file.last_offset,
        rows=file.records,
        bytes=file.bytes,
        format=manifest.format,
        schema=schema,
    )


def _rows(shape: Shape) -> Any:
    """Return what must be the same in all commits that are read together: it decides the columns."""
    envelope = shape.envelope and msgspec.structs.replace(shape.envelope, stream="", topic="")
    return shape.format, shape.value, shape.key, envelope


def _describe(shape: Shape) -> str:
    envelope = shape.envelope
    words = f"envelope {envelope.style} of {', '.join(envelope.fields)}" if envelope else "no envelope"
    return f"{shape.format} with converter.key {shape.key}, converter.value {shape.value} and {words}"
