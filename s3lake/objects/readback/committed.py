"""Which objects hold the records of hours: through the index, and never by listing a bucket."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from s3lake.commit.files import files_of
from s3lake.commit.index import File, Manifest, TopicIndex
from s3lake.commit.written import Written
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


def shaped(sink: Sink, topic: str, committed: Iterable[Manifest]) -> Iterator[tuple[Shape, list[File]]]:
    """The files of commits, those alike together, with what they hold, which is what the sink writes now.

    Raises:
        ConfigurationError: some were landed in another format or envelope than the sink has now.
    """
    now = binding.shape_of(sink.after_transforms)
    for manifest in committed:
        shape = Shape.of(manifest)
        _same_rows(sink, topic, manifest, shape, now)
        for _, alike in groupby(files_of([manifest], "data"), attrgetter("columns")):
            files = list(alike)
            yield shape.of_file(files[0]), files


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


def _same_rows(sink: Sink, topic: str, manifest: Manifest, shape: Shape, now: Shape) -> None:
    was, is_now = manifest.format, str(sink.format.type)
    if was == is_now:
        if _rows(shape) == _rows(now) or manifest.shape == Written():
            return
        was, is_now = _in_words(shape), _in_words(now)
    raise ConfigurationError(
        f"{topic} {manifest.hour} was landed as {was}, sink {sink.name} is {is_now} now: rewrite the hour, or read it "
        "with the former configuration"
    )


def _rows(shape: Shape) -> Any:
    """What must be the same in all commits that are read together: it decides the columns."""
    envelope = shape.envelope and msgspec.structs.replace(shape.envelope, stream="", topic="")
    return shape.format, shape.value, shape.key, envelope


def _in_words(shape: Shape) -> str:
    envelope = shape.envelope
    words = f"envelope {envelope.style} of {', '.join(envelope.fields)}" if envelope else "no envelope"
    return f"{shape.format} with converter.key {shape.key}, converter.value {shape.value} and {words}"
