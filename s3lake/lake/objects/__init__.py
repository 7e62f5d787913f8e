"""Committed objects as rows: every format, codec and envelope, without the code that wrote them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from s3lake.errors import UnreadableError
from s3lake.lake.objects import avro_objects, content, csv_objects, spark_columns, text_records
from s3lake.lake.objects.content import Body
from s3lake.lake.objects.shape import ObjectShape

__all__ = ["Body", "ObjectShape", "OpenFile", "columns", "open_columns", "read_batches", "read_text_rows"]

Result = TypeVar("Result")


class OpenFile(NamedTuple):
    """A file of columns; CSV has texts.

    Attributes:
        schema: the schema of all columns of the file.
        batches: the rows, with the columns that the reader wants.
    """

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]


def open_columns(shape: ObjectShape, body: Body, key: str, columns: Collection[str] | None = None) -> OpenFile:
    """Open a file of columns and read what it has of `columns` (None: all).

    Raises:
        UnreadableError: it is not of its format; also while its batches are read, of which those before still count.
    """
    if shape.format == "avro":
        return OpenFile(*avro_objects.open_avro(body, key, columns, shape.bare_column))
    if shape.format == "csv":
        return OpenFile(*csv_objects.open_csv(shape, body, key, columns))
    try:
        file = pq.ParquetFile(pa.BufferReader(body) if isinstance(body, bytes) else body)
    except (pa.ArrowException, OSError) as error:
        raise UnreadableError(f"{key} is not a Parquet file: {error}") from None
    return OpenFile(file.schema_arrow, _read_parquet(file, key, None if columns is None else list(columns)))


def read_batches(shape: ObjectShape, body: Body, key: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of an object.

    Args:
        body: its bytes, or a stream of them; of Parquet only the columns that are asked for are read.
        schema: the columns that are asked for, all of `columns.read_schema` or some; if the object lacks one, it is
            null.

    Raises:
        UnreadableError: it is not of its shape.
        ConfigurationError: its columns have types that do not become those asked for.
    """
    if shape.in_columns:
        cast = csv_objects.cast_texts if shape.format == "csv" else None
        for batch in open_columns(shape, body, key, schema.names).batches:
            yield spark_columns.cast_batch(batch, schema, key, cast)
        return
    yield from _convert(shape, body, key, lambda texts: text_records.to_batch(shape, texts, schema))


def read_text_rows(shape: ObjectShape, body: Body, key: str) -> Iterator[list[text_records.Row]]:
    """Yield the rows of a text object, some at a time, as `rows.build_row_reader` splits them.

    Raises:
        UnreadableError: it is not of its shape.
    """
    read = text_records.build_row_reader(shape)
    return _convert(shape, body, key, lambda texts: [read(text) for text in texts])


def _convert(shape: ObjectShape, body: Body, key: str, convert: Callable[[list[bytes]], Result]) -> Iterator[Result]:
    for texts in content.split_records(shape, body, key):
        try:
            converted = convert(texts)
        except (ValueError, LookupError, TypeError, StopIteration) as error:
            raise UnreadableError(f"{key} has a record that is not of its shape: {error}") from None
        yield converted


def _read_parquet(file: Any, key: str, columns: list[str] | None) -> Iterator[pa.RecordBatch]:
    try:
        # Threads of Arrow that still start when a process ends abort it, or let it wait for ever.
        yield from file.iter_batches(batch_size=content.ROWS, columns=columns, use_threads=False)
    except (pa.ArrowException, OSError) as error:
        raise UnreadableError(f"{key} cannot be read to its end: {error}") from None
