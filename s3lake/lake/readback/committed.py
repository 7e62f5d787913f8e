"""Which objects hold the records of hours: through the index, and never by listing a bucket."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from s3lake import hours
from s3lake.errors import ConfigurationError, DataLossError, IncompleteError
from s3lake.index.commit.documents import File, Manifest, collect_files
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.index.plan.tile import Tile
from s3lake.records.schema.columns.types import Columns, from_document
from s3lake.text.quantities import format_count

if TYPE_CHECKING:
    import pyarrow as pa

    from s3lake.config.model import Config, Sink
    from s3lake.index.store import Store
    from s3lake.lake.objects import ObjectShape

_NEVER = "never landed"
_NAMED = 20
_AT_ONCE = 16


@dataclass(frozen=True)
class CommittedFile:
    """One object of records that a commit of an hour consists of.

    Attributes:
        bucket: the bucket of the object.
        key: its whole key.
        hour: the hour that the file was landed in, such as `2026-11-20T05`.
        commit: id of the commit.
        partition: topic-partition of its records.
        first_offset: the offset of its first record.
        last_offset: the offset of its last record.
        rows: records in it.
        bytes: its size.
        format: the value of `format.type`.
        schema: the columns that it is read into; for a CSV file without a header line its columns, in their order.
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
    config: Config | str, sink: str, topic: str, hours: Iterable[str] | None = None, *, allow_incomplete: bool = False
) -> list[CommittedFile]:
    """Return the objects that hold what was landed, hour by hour: what the index lists, without dead letters.

    Args:
        config: the configuration, or where it is.
        sink: name of one of its sinks.
        topic: one of its topics.
        hours: the hours in UTC, such as `2026-11-20T05`; None for all that the index has.
        allow_incomplete: take what is there of hours that are not landed, or only in part.

    Raises:
        IncompleteError: some of these hours are not landed, or only in part.
        MissingDocumentError: a manifest is missing from the index.
    """
    from s3lake.config.load import load
    from s3lake.index.store.s3_connection import S3Connection
    from s3lake.index.store.s3_store import S3Store

    loaded = load(config) if isinstance(config, str) else config
    route = loaded.sink(sink)
    index = open_index(route, topic, S3Store(S3Connection.from_settings(route.s3 or loaded.s3), route.bucket))
    committed = read_manifests(index, read_complete_tiles(index, route, hours, allow_incomplete=allow_incomplete))
    return list(list_committed_files(route.bucket, committed, read_recorded_columns(index)))


def list_committed_files(bucket: str, committed: Iterable[Manifest], recorded: Columns) -> Iterator[CommittedFile]:
    """Yield the objects of records of these commits; `recorded` are the columns of commits without columns."""
    from s3lake.lake.objects import ObjectShape, spark_columns  # Arrow, which a look at the index does without

    for manifest in committed:
        shape = ObjectShape.from_manifest(manifest)
        schemas: dict[tuple[str, ...] | None, pa.Schema] = {}
        for file in collect_files([manifest], "data"):
            if file.columns not in schemas:
                schemas[file.columns] = spark_columns.build_read_schema(shape.for_file(file), recorded)
            origin = (bucket, file.key, manifest.hour, manifest.id, file.partition, file.first_offset, file.last_offset)
            yield CommittedFile(*origin, file.records, file.bytes, manifest.form.format, schemas[file.columns])


def open_index(sink: Sink, topic: str, store: Store) -> TopicIndex:
    return TopicIndex(store, sink.index_root, topic)


def read_manifests(index: TopicIndex, tiles: Mapping[str, Tile | None]) -> list[Manifest]:
    """Return the manifests of every commit of the hours, in order."""
    listed = [(hour, commit) for hour, tile in tiles.items() for commit in (tile.commits if tile else ())]
    with ThreadPoolExecutor(_AT_ONCE, "s3lake-index") as pool:
        return list(pool.map(lambda one: index.read_listed(*one), listed))


def read_recorded_columns(index: TopicIndex) -> Columns:
    """Return the columns of the sink's files; none if nothing was recorded."""
    recorded = index.columns()
    return from_document(recorded[0].columns) if recorded else {}


def read_tiles(index: TopicIndex, asked_hours: Iterable[str] | None) -> dict[str, Tile | None]:
    """Return the tile of each of these hours, in order; without hours, of each that the index has."""
    head = index.head()
    landed = head[0].hours if head else ()
    asked_hours = hours.expand(landed) if asked_hours is None else sorted(set(asked_hours))

    def read(hour: str) -> Tile | None:
        stored = index.tile(hour) if hours.in_ranges(hour, landed) else None
        return stored[0] if stored else None

    with ThreadPoolExecutor(_AT_ONCE, "s3lake-index") as pool:
        return dict(zip(asked_hours, pool.map(read, asked_hours), strict=True))


def read_complete_tiles(
    index: TopicIndex, sink: Sink, asked_hours: Iterable[str] | None, *, allow_incomplete: bool = False
) -> dict[str, Tile | None]:
    """Return the tiles of the hours (None: all that the index has), all of them landed unless others are allowed.

    An hour that is being rewritten or cleaned up has all of its records.

    Raises:
        IncompleteError: some are not landed, or only in part.
    """
    tiles = read_tiles(index, asked_hours)
    missing = {hour: _find_missing(tile) for hour, tile in tiles.items() if tile is None or not tile.landed}
    if allow_incomplete or (tiles and not missing):
        return tiles
    ranges = hours.ranges(hour for hour, reason in missing.items() if reason == _NEVER)
    reasons = {first: f"{first if first == last else f'{first} to {last}'} {_NEVER}" for first, last in ranges}
    reasons |= {hour: f"{hour} {reason}" for hour, reason in missing.items() if reason != _NEVER}
    reports = [reasons[hour] for hour in sorted(reasons)] or ["no hour was ever landed"]
    if len(reports) > _NAMED:
        reports[_NAMED:] = [f"and {len(reports) - _NAMED} more"]
    raise IncompleteError(
        f"topic {index.topic} in sink {sink.name}: {len(missing)} of {len(tiles)} hours are not complete, so that what "
        f"would be read is not all that Kafka had: {'; '.join(reports)}. Materialise these hours first; to read what "
        'there is all the same, pass allow_incomplete=True, or metadata={"allow_incomplete": True} of an AssetIn'
    )


def _find_missing(tile: Tile | None) -> str:
    if tile is None:
        return _NEVER
    landed = sum(span.committed - span.start for span in tile.partitions.values())
    if not tile.closed:
        return f"is still open, {format_count(landed, 'offsets')} landed so far"
    total = sum((span.end or 0) - span.start for span in tile.partitions.values())
    return f"lacks {total - landed:,} of {format_count(total, 'offsets')}"


@dataclass(frozen=True)
class CommittedInput:
    """The data of hours, all of one form.

    Attributes:
        form: the shape that they have in common, apart from their own columns; the sink's if there are none.
        recorded: the columns of the sink's files.
    """

    files: list[tuple[File, ObjectShape]]
    form: ObjectShape
    recorded: Columns

    @property
    def schema(self) -> pa.Schema:
        """The columns that they are read into."""
        from s3lake.lake.objects import spark_columns

        return spark_columns.build_read_schema(self.form, self.recorded)


def open_input(
    sink: Sink, topic: str, store: Store, asked_hours: Iterable[str] | None, *, allow_incomplete: bool
) -> CommittedInput:
    """Find the data of hours (None: all that the index has) through the index.

    Raises:
        IncompleteError: some of these hours are not landed, or only in part.
        ConfigurationError: some have another form than others: format, converters or envelope.
        MissingDocumentError: a manifest is missing from the index.
    """
    from s3lake.lake.form import shape_of
    from s3lake.lake.objects import ObjectShape

    index = open_index(sink, topic, store)
    files: list[tuple[File, ObjectShape]] = []
    form, since = None, ""
    tiles = read_complete_tiles(index, sink, asked_hours, allow_incomplete=allow_incomplete)
    for manifest in read_manifests(index, tiles):
        shape = ObjectShape.from_manifest(manifest)
        if form is None:
            form, since = msgspec.structs.replace(shape, columns=None), manifest.hour
        elif _get_row_form(shape) != _get_row_form(form):
            raise ConfigurationError(
                f"{topic} {manifest.hour} was landed as {_describe(shape)}, and {since} as {_describe(form)}: read "
                "them apart, or bring them into one form: s3lake reformat"
            )
        files += [(file, shape.for_file(file)) for file in collect_files([manifest], "data")]
    return CommittedInput(files, form or shape_of(sink.after_transforms), read_recorded_columns(index))


def read_object(store: Store, bucket: str, key: str, shape: ObjectShape, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of an object in the columns of `schema`; Spark's workers call this too.

    Raises:
        DataLossError: it does not exist, or is not of its shape.
    """
    from s3lake.lake.objects import read_batches

    document = store.get(key)
    if document is None:
        raise DataLossError(f"s3://{bucket}/{key} is missing: the hour was rewritten meanwhile, or a file deleted")
    yield from read_batches(shape, document.body, key, schema)


def _get_row_form(shape: ObjectShape) -> Any:
    """Return what must be the same in all commits that are read together: it decides the columns."""
    envelope = shape.envelope and msgspec.structs.replace(shape.envelope, stream="", topic="")
    return shape.format, shape.value, shape.key, envelope


def _describe(shape: ObjectShape) -> str:
    envelope = shape.envelope
    words = f"envelope {envelope.style} of {', '.join(envelope.fields)}" if envelope else "no envelope"
    return f"{shape.format} with converter.key {shape.key}, converter.value {shape.value} and {words}"
