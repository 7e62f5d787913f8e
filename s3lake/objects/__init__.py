"""Committed objects as rows: every format, codec and envelope, without the code that wrote them.

What an object holds is a `Shape`, which its commit's manifest says.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from s3lake.errors import UnreadableError
from s3lake.objects import columns, content, csv, fit, rows, tables
from s3lake.objects.content import Body
from s3lake.objects.shape import Shape

__all__ = ["Body", "Shape", "batches", "columns"]

_STRANGE = (ValueError, LookupError, TypeError, StopIteration)
"""What texts that are no records lead to."""


def batches(shape: Shape, body: Body, key: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of an object.

    Args:
        shape: what it holds: `Shape.of` its manifest.
        body: its bytes, or a stream of them; of Parquet only the columns that are asked for are read.
        key: its name, for messages, and for the codec of commits that recorded none.
        schema: the columns that are asked for, all of `columns.of` or some; those that the object lacks are null.

    Raises:
        UnreadableError: it is no file of its shape.
        ConfigurationError: its columns have types that do not become those asked for.
    """
    if shape.in_columns:
        turn = csv.values if shape.format == "csv" else fit.widened
        for batch in tables.opened(shape, body, key, schema.names).batches:
            yield fit.fitted(batch, schema, key, turn)
        return
    for some in content.records(shape, body, key):
        try:
            yield rows.to_batch(shape, some, schema)
        except _STRANGE as error:
            raise UnreadableError(f"{key} holds a record that is none of its shape: {error}") from None
