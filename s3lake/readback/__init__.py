"""Landed hours read again, through the index: as a DataFrame of Spark, and for Arrow, polars, DuckDB and pandas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from s3lake.errors import DataLossError
from s3lake.objects import Shape, read_batches

if TYPE_CHECKING:
    from s3lake.store import Store


def read_object(store: Store, bucket: str, key: str, shape: Shape, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of an object in the columns of `schema`; Spark's workers call this too.

    Raises:
        DataLossError: it does not exist, or is not of its shape.
    """
    document = store.get(key)
    if document is None:
        raise DataLossError(f"s3://{bucket}/{key} is gone: the hour was rewritten meanwhile, or a file deleted")
    yield from read_batches(shape, document.body, key, schema)
