"""Files of columns: Parquet, Avro and CSV as Arrow batches of the columns that each file has."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from s3lake.errors import UnreadableError
from s3lake.objects import avro, csv
from s3lake.objects.content import ROWS, Body
from s3lake.objects.shape import Shape


class Table(NamedTuple):
    """A file of columns; those of CSV are texts.

    Attributes:
        schema: of all that the file has.
        batches: of the columns that were asked for.
    """

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]


def opened(shape: Shape, body: Body, key: str, columns: Collection[str] | None = None) -> Table:
    """Open a file of columns; `columns` are those that are read, of those that there are (None: all).

    Raises:
        UnreadableError: it is not of its format; also while its batches are read, of which those before still count.
    """
    if shape.format == "avro":
        return Table(*avro.opened(body, key, columns, shape.bare_column))
    if shape.format == "csv":
        return Table(*csv.opened(shape, body, key, columns))
    try:
        file = pq.ParquetFile(pa.BufferReader(body) if isinstance(body, bytes) else body)
    except (pa.ArrowException, OSError) as error:
        raise UnreadableError(f"{key} is not a Parquet file: {error}") from None
    return Table(file.schema_arrow, _read_parquet(file, key, None if columns is None else list(columns)))


def _read_parquet(file: Any, key: str, columns: list[str] | None) -> Iterator[pa.RecordBatch]:
    try:
        yield from file.iter_batches(batch_size=ROWS, columns=columns)
    except (pa.ArrowException, OSError) as error:
        raise UnreadableError(f"{key} cannot be read to its end: {error}") from None
