"""The rows of landed objects, by libraries of others: no code of the package, so the trials compare with it."""

import gzip
import io
import json
from collections.abc import Iterator, Sequence
from typing import Any

import fastavro
import pyarrow.parquet as pq


def read_rows(key: str, body: bytes, columns: Sequence[str] | None = None) -> Iterator[Any]:
    """Yield the rows of a file of Parquet or Avro, or of lines of JSON, which the end of its key names.

    Args:
        key: the key of the object.
        body: the bytes of the object.
        columns: the columns that are needed; Avro and JSON give the others too.
    """
    if key.endswith(".parquet"):
        yield from pq.read_table(io.BytesIO(body), columns=columns).to_pylist()
    elif key.endswith(".avro"):
        yield from fastavro.reader(io.BytesIO(body))
    else:
        text = gzip.decompress(body) if key.endswith(".gz") else body
        yield from (json.loads(line) for line in text.splitlines() if line)
