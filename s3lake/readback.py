"""Reading back: a Spark DataFrame of exactly the committed objects, through the index and the same door to S3."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from s3lake import hours
from s3lake.commit.index import Manifest, TopicIndex
from s3lake.convert import columns as kinds
from s3lake.errors import ConfigurationError, DataLossError
from s3lake.pipeline import Stores

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from s3lake.sink import Sink


def frame(spark: SparkSession, sink: Sink, topic: str, stores: Stores, wanted: Sequence[str] | None) -> DataFrame:
    """The records that `sink` committed of `topic` in the hours `wanted` (None: all that the index has).

    Parquet gives the sink's recorded columns, whichever of them a file has; text formats give one column `value`.
    A file of an hour that is being rewritten is read from one side of the switch, never from both.

    Raises:
        ConfigurationError: some of these hours were landed in another format than the sink has now.
        DataLossError: a manifest is gone from the index.
    """
    index = TopicIndex(stores(sink.bucket), f"{sink.index.prefix}/{sink.name}", topic)
    found = manifests(index, wanted)
    for manifest in found:
        if manifest.format != sink.format.type:
            raise ConfigurationError(
                f"{topic} {manifest.hour} was landed as {manifest.format}, sink {sink.name} is {sink.format.type} now: "
                "rewrite the hour, or read it with the former configuration"
            )
    files = [file for manifest in found for file in manifest.files if file.kind == "data"]
    schema = _schema(sink, index)
    ddl = spark.createDataFrame([], _spark_schema(schema)).schema
    if not files:
        return spark.createDataFrame([], ddl)
    keys = spark.createDataFrame([(file.key,) for file in files], "key string").repartition(min(len(files), 64))
    read = _reader(stores, sink, schema)
    return keys.mapInArrow(lambda batches: read(batches), ddl)


def manifests(index: TopicIndex, wanted: Iterable[str] | None) -> list[Manifest]:
    """The manifests of every commit of the hours, in order."""
    head = index.head()
    existing = hours.expand(head[0].hours) if head else []
    asked = set(existing if wanted is None else wanted)
    found: list[Manifest] = []
    for hour in existing:
        tile = index.tile(hour) if hour in asked else None
        for commit in tile[0].commits if tile else ():
            manifest = index.manifest(hour, commit)
            if manifest is None:
                raise DataLossError(f"manifest {index.manifest_key(hour, commit)} is gone: it was deleted by hand")
            found.append(manifest)
    return found


def _schema(sink: Sink, index: TopicIndex) -> pa.Schema:
    if sink.format.type == "json":
        return pa.schema([("value", pa.string())])
    if sink.format.type == "text" or sink.converter.value != "json":
        return pa.schema([("value", pa.binary() if sink.converter.value == "bytes" else pa.string())])
    recorded = index.columns()
    return kinds.to_arrow(recorded[0].columns if recorded else {})


def _spark_schema(schema: pa.Schema) -> Any:
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema)


def _reader(
    stores: Stores, sink: Sink, schema: pa.Schema
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    bucket, kind = sink.bucket, sink.format.type

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        store = stores(bucket)
        for batch in batches:
            for key in batch.column("key").to_pylist():
                document = store.get(key)
                if document is None:
                    raise DataLossError(
                        f"s3://{bucket}/{key} is gone: the hour was rewritten meanwhile, or a file deleted"
                    )
                yield from (
                    _parquet(document.body, schema) if kind == "parquet" else _lines(document.body, _codec(key), schema)
                )

    return read


def _parquet(body: bytes, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(pa.BufferReader(body)) as file:
        for batch in file.iter_batches(batch_size=10_000):
            yield pa.record_batch([_column(batch, field) for field in schema], schema=schema)


def _column(batch: pa.RecordBatch, field: pa.Field) -> pa.Array:
    if field.name not in batch.schema.names:
        return pa.nulls(batch.num_rows, field.type)
    return _fitted(batch.column(field.name), field.type)


def _fitted(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """A file's column in the sink's present type: integers widened, fields that came later null."""
    if column.type == kind:
        return column
    if pa.types.is_struct(kind) and pa.types.is_struct(column.type):
        fields = [
            _fitted(pc.struct_field(column, field.name), field.type)
            if column.type.get_field_index(field.name) >= 0
            else pa.nulls(len(column), field.type)
            for field in kind
        ]
        return pa.StructArray.from_arrays(fields, fields=list(kind), mask=column.is_null())
    if pa.types.is_list(kind) and pa.types.is_list(column.type):
        return pa.ListArray.from_arrays(
            column.offsets,
            _fitted(column.values, kind.value_type),
            mask=column.is_null() if column.null_count else None,
        ).cast(kind)
    return column.cast(kind, safe=False)  # the same rounding that JSON's integers get in a column of doubles


def _lines(body: bytes, codec: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    lines = _decompressed(body, codec).split(b"\n")[:-1]  # each line is ended, so the last piece is empty
    for at in range(0, len(lines), 10_000):
        values = pa.array(lines[at : at + 10_000], pa.binary())
        yield pa.record_batch([values.cast(schema.field("value").type)], schema=schema)


def _codec(key: str) -> str:
    """By the file's own name: the sink's codec may have changed since."""
    return {".gz": "gzip", ".zst": "zstd"}.get(PurePosixPath(key).suffix, "none")


def _decompressed(body: bytes, codec: str) -> bytes:
    """A file may hold several gzip members or zstd frames, one after the other."""
    if codec == "gzip":
        return gzip.decompress(body)
    if codec == "zstd":
        import zstandard

        with zstandard.ZstdDecompressor().stream_reader(body, read_across_frames=True) as reader:
            return reader.read()
    return body
