"""Reading back: a Spark DataFrame of exactly the committed objects, through the index and the same door to S3."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from s3lake.errors import DataLossError
from s3lake.land.task.pipeline import Stores
from s3lake.objects import Shape, batches
from s3lake.objects.readback.committed import open_input

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
        topic: one of its topics.
        stores: opens the bucket.
        asked: the hours.
        allow_incomplete: take what is there of hours that are not landed, or only in part.

    Raises:
        IncompleteError: some of these hours are not landed, or only in part.
        ConfigurationError: some of these hours have another format or envelope than others.
        MissingDocumentError: a manifest is gone from the index.
    """
    found = open_input(sink, topic, stores(sink.bucket), asked, allow_incomplete=allow_incomplete)
    shapes: dict[Shape, int] = {}
    listed_files = [(file.key, shapes.setdefault(shape, len(shapes))) for file, shape in found.files]
    schema = found.schema
    session = spark()
    ddl = session.createDataFrame([], _spark_schema(schema)).schema
    if not listed_files:
        return session.createDataFrame([], ddl)
    listed = session.createDataFrame(listed_files, "key string, shape int").repartition(min(len(listed_files), 64))
    read = _reader(stores, sink.bucket, list(shapes), schema)
    return listed.mapInArrow(lambda some: read(some), ddl)


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
