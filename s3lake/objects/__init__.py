"""Committed objects as rows: every format, codec and envelope, without the code that wrote them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import pyarrow as pa

from s3lake.errors import UnreadableError
from s3lake.objects import columns, content, csv, rows, tables
from s3lake.objects.content import Body
from s3lake.objects.shape import Shape

__all__ = ["Body", "Shape", "batches", "columns", "read_rows"]

Result = TypeVar("Result")


def batches(shape: Shape, body: Body, key: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of an object.

    Args:
        shape: of the object, `Shape.of` its manifest.
        body: its bytes, or a stream of them; of Parquet only the columns that are asked for are read.
        key: its name, for messages.
        schema: the columns that are asked for, all of `columns.of` or some; those that the object lacks are null.

    Raises:
        UnreadableError: it is not of its shape.
        ConfigurationError: its columns have types that do not become those asked for.
    """
    if shape.in_columns:
        cast = csv.cast_texts if shape.format == "csv" else None
        for batch in tables.opened(shape, body, key, schema.names).batches:
            yield columns.cast_batch(batch, schema, key, cast)
        return
    yield from _convert(shape, body, key, lambda texts: rows.to_batch(shape, texts, schema))


def read_rows(shape: Shape, body: Body, key: str) -> Iterator[list[rows.Row]]:
    """Yield the rows of a text object, some at a time, as `rows.build_row_reader` splits them.

    Raises:
        UnreadableError: it is not of its shape.
    """
    read = rows.build_row_reader(shape)
    return _convert(shape, body, key, lambda texts: [read(text) for text in texts])


def _convert(shape: Shape, body: Body, key: str, convert: Callable[[list[bytes]], Result]) -> Iterator[Result]:
    for texts in content.records(shape, body, key):
        try:
            converted = convert(texts)
        except (ValueError, LookupError, TypeError, StopIteration) as error:
            raise UnreadableError(f"{key} has a record that is not of its shape: {error}") from None
        yield converted
