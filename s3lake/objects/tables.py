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
    """A file of columns.

    Args:
        shape: of the file.
        columns: that are read, of those that there are; None for all.

    Raises:
        UnreadableError: it is none of its format; also while its batches are read, of which those before still count.
    """
    if shape.format == "parquet":
        return _parquet(body, key, columns)
    return Table(
        *(
            avro.opened(body, key, columns, shape.alone)
            if shape.format == "avro"
            else csv.opened(shape, body, key, columns)
        )
    )


def _parquet(body: Body, key: str, columns: Collection[str] | None) -> Table:
    try:
        file = pq.ParquetFile(pa.BufferReader(body) if isinstance(body, bytes) else body)
    except (pa.ArrowException, OSError) as error:
        raise UnreadableError(f"{key} is no Parquet file: {error}") from None
    return Table(file.schema_arrow, _batches(file, key, None if columns is None else list(columns)))


def _batches(file: Any, key: str, columns: list[str] | None) -> Iterator[pa.RecordBatch]:
    try:
        yield from file.iter_batches(batch_size=ROWS, columns=columns)
    except (pa.ArrowException, OSError) as error:
        raise UnreadableError(f"{key} cannot be read to its end: {error}") from None
