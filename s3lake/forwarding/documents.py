"""Rows of committed objects as JSON: one spelling for every destination."""

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
        offset: where its envelope says it; else None.
        file: the key of its object.
        number: in that object, from 0; with `file` it tells the row from every other.
        document: what the object holds of the record, as JSON.
    """

    partition: int
    offset: int | None
    file: str
    number: int
    document: bytes

    @property
    def line(self) -> msgspec.Raw:
        """The document on one line: line ends stand between its tokens only, for texts have them escaped."""
        return msgspec.Raw(self.document.replace(b"\n", b" "))


def rows(shape: Shape, batch: pa.RecordBatch, file: str, partition: int, first: int) -> Iterator[Row]:
    """The rows of a batch, the first of which is number `first` of its file.

    Columns are members of an object; lines of JSON are what they are. Bytes are base64, moments ISO 8601, decimals
    numbers with all of their digits.

    Raises:
        ConfigurationError: a value has no spelling, as a moment after the year 9999.
    """
    spelled, whole = _spelled(shape, batch.schema), _whole(shape)
    try:
        cells: list[dict[str, Any]] = batch.to_pylist(maps_as_pydicts="strict")
    except (ValueError, OverflowError, KeyError) as error:
        raise ConfigurationError(
            f"{file}: rows {first} to {first + batch.num_rows - 1} hold a value that JSON has no spelling for: "
            f"{error}. Land the field as a number or as text, and the hour anew"
        ) from None
    for number, row in enumerate(cells, first):
        place = _place(shape, row)
        for name in spelled:
            if row[name] is not None:
                row[name] = msgspec.Raw(row[name].encode())
        yield Row(partition, place, file, number, row["value"].encode() if whole else _json(row))


def _whole(shape: Shape) -> bool:
    """Whether a row is one text of JSON."""
    return shape.format.startswith("json") and (shape.envelope is None or shape.envelope.style == "iggy")


def _spelled(shape: Shape, schema: pa.Schema) -> list[str]:
    """Columns that hold JSON as its text."""
    if not shape.format.startswith("json") or _whole(shape):
        return []
    return [name for name in ("key", "value") if name in schema.names and shape.converter(name) not in (TEXT, BYTES)]


def _place(shape: Shape, row: dict[str, Any]) -> int | None:
    """The offset, of an envelope that says it: a field of a value may have the same name."""
    if shape.spread is not None or shape.envelope is None or shape.envelope.style == "iggy":
        return None
    fields = shape.envelope.fields
    if "metadata" in fields:
        return int(row["metadata"]["offset"])
    return int(row["offset"]) if "offset" in fields else None
