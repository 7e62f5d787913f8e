"""A Spark DataFrame of exactly the committed objects, through the index and the same door to S3."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from s3lake.index.store import Stores
from s3lake.lake.objects import ObjectShape
from s3lake.lake.readback.committed import open_input, read_object

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from s3lake.config.model import Sink


def read_frame(
    spark: Callable[[], SparkSession],
    sink: Sink,
    topic: str,
    stores: Stores,
    asked_hours: Sequence[str] | None,
    *,
    allow_incomplete: bool = False,
) -> DataFrame:
    """Return the records that `sink` committed of `topic` in the hours `asked_hours` (None: all that the index has).

    Avro, Parquet and CSV give the sink's recorded columns, whichever of them a file has. Text formats give one column
    `value`, with an envelope one column for each of its fields. Keys' and headers' own files are not read.
    A file of an hour that is being rewritten is read from one side of the switch, never from both. `spark` is called
    once the hours can be read.

    Raises:
        IncompleteError, ConfigurationError, MissingDocumentError: see `open_input`.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    committed = open_input(sink, topic, stores(sink.bucket), asked_hours, allow_incomplete=allow_incomplete)
    shapes: dict[ObjectShape, int] = {}
    files = [(file.key, shapes.setdefault(shape, len(shapes))) for file, shape in committed.files]
    session = spark()
    ddl = session.createDataFrame([], from_arrow_schema(committed.schema)).schema
    if not files:
        return session.createDataFrame([], ddl)
    listed = session.createDataFrame(files, "key string, shape int").repartition(min(len(files), 64))
    read = partial(_read_objects, stores, sink.bucket, list(shapes), committed.schema)
    return listed.mapInArrow(lambda batches: read(batches), ddl)  # Spark looks for type hints, which a partial lacks


def _read_objects(
    stores: Stores, bucket: str, shapes: Sequence[ObjectShape], schema: pa.Schema, listed: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    store = stores(bucket)
    for batch in listed:
        for entry in batch.to_pylist():
            yield from read_object(store, bucket, entry["key"], shapes[entry["shape"]], schema)
