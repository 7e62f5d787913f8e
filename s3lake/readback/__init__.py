"""Reading back: a Spark DataFrame of exactly the committed objects, through the index and the same door to S3."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from s3lake.commit.index import Manifest, TopicIndex
from s3lake.commit.written import Written
from s3lake.errors import ConfigurationError, DataLossError
from s3lake.land import binding
from s3lake.land.task.pipeline import Stores
from s3lake.objects import Shape, batches, columns
from s3lake.plan.tile import Tile
from s3lake.readback import completeness
from s3lake.schema.types import from_document

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from s3lake.sink import Sink


def frame(
    spark: Callable[[], SparkSession],
    sink: Sink,
    topic: str,
    stores: Stores,
    asked: Sequence[str] | None,
    *,
    allow_incomplete: bool = False,
) -> DataFrame:
    """The records that `sink` committed of `topic` in the hours `asked` (None: all that the index has).

    Avro, Parquet and CSV give the sink's recorded columns, whichever of them a file has. Text formats give one column
    `value`, with an envelope one column for each of its fields. Keys' and headers' own files are not read.
    A file of an hour that is being rewritten is read from one side of the switch, never from both.

    Args:
        spark: gives the session; called when the hours can be read.
        sink: the sink.
        topic: one of its topics.
        stores: opens the bucket.
        asked: the hours.
        allow_incomplete: take what is there of hours that are not landed, or only in part.

    Raises:
        IncompleteError: some of these hours are not landed, or only in part.
        ConfigurationError: some of these hours were landed in another format or envelope than the sink has now.
        MissingDocumentError: a manifest is gone from the index.
    """
    index = _index(sink, topic, stores)
    tiles = _tiles(index, sink, asked, allow_incomplete)
    now = binding.shape_of(sink.landed)
    committed = manifests(index, tiles)
    shapes: dict[Shape, int] = {}
    files = []
    for manifest in committed:
        shape = Shape.of(manifest)
        _same_rows(sink, topic, manifest, shape, now)
        number = shapes.setdefault(shape, len(shapes))
        files += [(file.key, number) for file in manifest.files if file.kind == "data"]
    recorded = index.columns()
    schema = columns.of(now, from_document(recorded[0].columns) if recorded else {})
    session = spark()
    ddl = session.createDataFrame([], _spark_schema(schema)).schema
    if not files:
        return session.createDataFrame([], ddl)
    listed = session.createDataFrame(files, "key string, shape int").repartition(min(len(files), 64))
    read = _reader(stores, sink.bucket, list(shapes), schema)
    return listed.mapInArrow(lambda some: read(some), ddl)


def frames(
    spark: Callable[[], SparkSession],
    sink: Sink,
    topic: str,
    stores: Stores,
    asked: Sequence[str],
    *,
    allow_incomplete: bool = False,
) -> dict[str, DataFrame]:
    """As `frame`, one for each hour.

    Raises:
        IncompleteError: some of these hours are not landed, or only in part.
    """
    _tiles(_index(sink, topic, stores), sink, asked, allow_incomplete)  # the error is to name all that are not
    return {hour: frame(spark, sink, topic, stores, [hour], allow_incomplete=True) for hour in asked}


def _index(sink: Sink, topic: str, stores: Stores) -> TopicIndex:
    return TopicIndex(stores(sink.bucket), f"{sink.index.prefix}/{sink.name}", topic)


def _tiles(
    index: TopicIndex, sink: Sink, asked: Sequence[str] | None, allow_incomplete: bool
) -> Mapping[str, Tile | None]:
    by_hour = completeness.tiles(index, asked)
    if not allow_incomplete:
        completeness.refuse(by_hour, f"topic {index.topic} in sink {sink.name}")
    return by_hour


def manifests(index: TopicIndex, tiles: Mapping[str, Tile | None]) -> list[Manifest]:
    """The manifests of every commit of the hours, in order."""
    listed: list[Manifest] = []
    for hour, tile in tiles.items():
        listed += [index.listed(hour, commit) for commit in (tile.commits if tile else ())]
    return listed


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


def _spark_schema(schema: pa.Schema) -> Any:
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema)


def _reader(
    stores: Stores, bucket: str, shapes: Sequence[Shape], schema: pa.Schema
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def read(listed: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        store = stores(bucket)
        for batch in listed:
            for entry in batch.to_pylist():
                document = store.get(entry["key"])
                if document is None:
                    raise DataLossError(
                        f"s3://{bucket}/{entry['key']} is gone: the hour was rewritten meanwhile, or a file deleted"
                    )
                yield from batches(shapes[entry["shape"]], document.body, entry["key"], schema)

    return read
