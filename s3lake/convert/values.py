"""Bytes to what an encoder writes: lines for the text formats, columns for Parquet; and why a record is refused."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from s3lake.convert import gate, table
from s3lake.convert.columns import Columns
from s3lake.convert.gate import Refusals

if TYPE_CHECKING:
    from s3lake.sink import Sink


@dataclass(frozen=True)
class Converted:
    """One batch after conversion.

    Attributes:
        payload: what the encoder writes, one entry per kept row: lines, or columns; None where no row was kept.
        kept: rows of the batch that `payload` holds, in order; None for all of them.
        refused: row -> why.
        skipped: rows left out because their value is null.
        columns: of a table; those given united with what the batch showed.
    """

    payload: Any  # pa.BinaryArray or pa.RecordBatch; pyarrow has no types
    kept: pa.Int64Array | None
    refused: Refusals
    skipped: int
    columns: Columns


@dataclass(frozen=True)
class Conversion:
    """A sink's conversion, as plain values: Spark's closures carry it to the workers."""

    converter: str
    format: str
    nulls: str

    @classmethod
    def of(cls, sink: Sink) -> Conversion:
        """The conversion of `sink`."""
        return cls(sink.converter.value, sink.format.type, sink.nulls)

    @property
    def has_columns(self) -> bool:
        """Whether files have columns that grow with the data."""
        return self.format == "parquet" and self.converter == "json"

    @property
    def fixed_columns(self) -> Columns | None:
        """Columns of a table whose rows are bare values, None for text formats."""
        if self.format != "parquet":
            return None
        return {"value": "string" if self.converter == "string" else "binary"}

    def __call__(self, values: pa.BinaryArray, columns: Columns) -> Converted:
        """Convert one batch of values."""
        total = len(values)
        refused: Refusals = {}
        left_out: set[int] = set()
        if values.null_count and self.nulls != "write":
            left_out = set(pc.indices_nonzero(values.is_null()).to_pylist())
            if self.nulls == "fail":
                refused = dict.fromkeys(left_out, "the value is null (nulls: fail)")
        refused |= self._refusals(values)
        kept = _rest(total, left_out | refused.keys())
        rows = values if kept is None else values.take(kept)
        if self.format != "parquet":
            payload = gate.one_line(self._lines(rows))
        elif self.converter == "json":
            batch, columns, conflicts = table.read_objects(gate.one_line(_filled(rows, b"{}")), columns)
            if conflicts:
                numbers = range(total) if kept is None else kept.to_pylist()
                refused.update({numbers[row]: reason for row, reason in conflicts.items()})
                kept = _rest(total, left_out | refused.keys())
            payload = batch
        else:
            payload = pa.record_batch([rows.cast(pa.string()) if self.converter == "string" else rows], names=["value"])
        empty = kept is not None and not len(kept)
        skipped = len(left_out) if self.nulls == "skip" else 0
        return Converted(None if empty else payload, kept, refused, skipped, columns)

    def _refusals(self, values: pa.BinaryArray) -> Refusals:
        if self.converter == "json":
            return gate.json_refusals(values)
        return gate.text_refusals(values) if self.converter == "string" else {}

    def _lines(self, values: pa.BinaryArray) -> pa.BinaryArray:
        if self.format == "text":
            return _filled(values, b"")
        if self.converter == "json":
            return _filled(values, b"null")
        # A string is a JSON string; bytes are one in base64, as Connect's JSON converter has it.
        quoted = map(_quote_text if self.converter == "string" else _quote_bytes, values.to_pylist())
        return pa.array(quoted, pa.binary())


def _rest(total: int, without: Iterable[int]) -> pa.Int64Array | None:
    out = set(without)
    return pa.array([row for row in range(total) if row not in out], pa.int64()) if out else None


def _filled(values: pa.BinaryArray, null: bytes) -> pa.BinaryArray:
    return pc.fill_null(values, null) if values.null_count else values


def _quote_text(value: bytes | None) -> bytes:
    return msgspec.json.encode(None if value is None else value.decode())


def _quote_bytes(value: bytes | None) -> bytes:
    return msgspec.json.encode(None if value is None else base64.b64encode(value).decode())
