"""Rows of committed objects as JSON, the same for every destination."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa

from s3lake.errors import ConfigurationError
from s3lake.objects.shape import BYTES, TEXT, Shape

_json = msgspec.json.Encoder(decimal_format="number").encode


class Row(NamedTuple):
    """A committed record.

    Attributes:
        partition: topic-partition.
        offset: if its envelope contains it; else None.
        file: the key of its object.
        number: in that object, from 0; no other row has the same `file` and number.
        document: the record as it is in the object, as JSON.
    """

    partition: int
    offset: int | None
    file: str
    number: int
    document: bytes

    @property
    def line(self) -> msgspec.Raw:
        """The document on one line. Line ends are only between its tokens: in texts they are escaped."""
        return msgspec.Raw(self.document.replace(b"\n", b" "))


def read_rows(shape: Shape, batch: pa.RecordBatch, file: str, partition: int, first: int) -> Iterator[Row]:
    """Yield the rows of a batch; `first` is the number of its first row in the file.

    Columns become members of an object; lines of JSON stay as they are. Bytes are base64, times ISO 8601, decimals
    numbers with all digits.

    Raises:
        ConfigurationError: JSON cannot hold a value, for example a time after the year 9999.
    """
    spelled, whole = _json_columns(shape, batch.schema), _is_one_text(shape)
    try:
        cells: list[dict[str, Any]] = batch.to_pylist(maps_as_pydicts="strict")
    except (ValueError, OverflowError, KeyError) as error:
        raise ConfigurationError(
            f"{file}: rows {first} to {first + batch.num_rows - 1} have a value that JSON cannot hold: "
            f"{error}. Land the field as a number or as text, and rewrite the hour"
        ) from None
    for number, row in enumerate(cells, first):
        offset = _find_offset(shape, row)
        for name in spelled:
            if row[name] is not None:
                row[name] = msgspec.Raw(row[name].encode())
        yield Row(partition, offset, file, number, row["value"].encode() if whole else _json(row))


def _is_one_text(shape: Shape) -> bool:
    """Return whether a row is one text of JSON."""
    return shape.format.startswith("json") and (shape.envelope is None or shape.envelope.style == "iggy")


def _json_columns(shape: Shape, schema: pa.Schema) -> list[str]:
    """Return the columns that contain JSON as text."""
    if not shape.format.startswith("json") or _is_one_text(shape):
        return []
    return [name for name in ("key", "value") if name in schema.names and shape.converter(name) not in (TEXT, BYTES)]


def _find_offset(shape: Shape, row: dict[str, Any]) -> int | None:
    """Return the offset of an envelope that contains it. A field of the value may have the same name."""
    if shape.spread is not None or shape.envelope is None or shape.envelope.style == "iggy":
        return None
    fields = shape.envelope.fields
    if "metadata" in fields:
        return int(row["metadata"]["offset"])
    return int(row["offset"]) if "offset" in fields else None
