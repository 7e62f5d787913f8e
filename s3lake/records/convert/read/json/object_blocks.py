"""JSON objects of a whole batch read at once by C or Arrow, where these are sure of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as pyarrow_json

from s3lake.records.convert.read import arrays, value_checks
from s3lake.records.convert.read.json import compiled_columns
from s3lake.records.convert.read.json.inferred_types import INFERRED, LARGE
from s3lake.records.schema.columns.arrow_types import to_arrow
from s3lake.records.schema.columns.types import UNKNOWN, Columns, Decimal, Primitive, Unknown, contains

_MOST_NULLS = 100
_SAMPLES = 20
"""Records that show how dates and times are written."""
_UNREADABLE = (ValueError, msgspec.DecodeError, RecursionError)
_decode = msgspec.json.Decoder().decode


@dataclass(frozen=True)
class Block:
    """Columns that Arrow's reader has types for.

    Attributes:
        times: dates and times, which are written as texts or as numbers.
        nulls: names of fields that were null in all objects that were looked at; they grow, so that objects with such
            fields are read as fast as others.
    """

    arrow: pa.Schema
    times: Mapping[str, Primitive]
    nulls: set[str] = field(default_factory=set)

    def note_nulls(self, columns: Columns) -> None:
        """Note which of the columns, found in objects, hold nothing but nulls."""
        names = [name for name, type in columns.items() if type == UNKNOWN and name not in self.arrow.names]
        self.nulls.update(names[: _MOST_NULLS - len(self.nulls)])

    def read_at_once(self, values: pa.BinaryArray, *, checked: bool) -> pa.RecordBatch | None:
        """Read objects by C, or else by Arrow. Return None if neither is sure of them.

        Args:
            checked: they passed the gate.
        """
        batch = self.read_exact(values)
        if batch is None and (checked or are_whole_objects(values)):
            batch = self.read(values, "error")
        return batch

    def read_exact(self, values: pa.BinaryArray) -> pa.RecordBatch | None:
        """Read objects, which need not have passed the gate, as `read` does. Return None if C is not sure of them."""
        reader = compiled_columns.load_reader()
        if reader is None:
            return None
        try:
            schema = self._find_written_times(values) if self.times else self.arrow
            batch = compiled_columns.read_columns(reader, values, schema, self.nulls)
            return None if batch is None else self._convert_times(batch)
        except _UNREADABLE:
            return None

    def read(self, values: pa.BinaryArray, unexpected: Literal["error", "ignore"]) -> pa.RecordBatch | None:
        """Read objects that have no fields but the columns', and such as were always null. Return None if in doubt."""
        # A number at the top would crash the process.
        if not len(values) or not pc.all(pc.starts_with(values, b"{")).as_py():
            return None
        nulls = [(name, pa.null()) for name in self.nulls] if unexpected == "error" else []
        block = pc.binary_join_element_wise(values, b"", b"\n").buffers()[2]
        try:
            schema = self._find_written_times(values) if self.times else self.arrow
            table = pyarrow_json.read_json(
                pa.BufferReader(block),
                # One block: types inferred block by block could differ. No threads: Spark has given this task its core.
                read_options=pyarrow_json.ReadOptions(use_threads=False, block_size=block.size + 1),
                parse_options=pyarrow_json.ParseOptions(
                    explicit_schema=pa.schema([*schema, *nulls]), unexpected_field_behavior=unexpected
                ),
            )
            table = table.select(schema.names)
            if table.num_rows != len(values) or any(map(_has_doubtful_double, table.columns)):
                return None
            (batch,) = table.combine_chunks().to_batches()
            return self._convert_times(batch)
        except _UNREADABLE:
            return None

    def _convert_times(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the batch with its dates and times, which were read as texts or numbers, as columns of their types."""
        for name, type in self.times.items():
            at = batch.schema.get_field_index(name)
            batch = batch.set_column(at, self.arrow.field(name), arrays.convert_times(type, batch.column(at)))
        return batch

    def _find_written_times(self, values: pa.BinaryArray) -> Any:
        """Return the schema with each date or time as text or number, as it is written in the first objects."""
        samples = [*map(_decode, values[:_SAMPLES].to_pylist())]
        schema: Any = self.arrow
        for name in self.times:
            is_text = any(isinstance(sample, dict) and isinstance(sample.get(name), str) for sample in samples)
            schema = schema.set(schema.get_field_index(name), pa.field(name, pa.string() if is_text else pa.int64()))
        return schema


def make_block(columns: Columns) -> Block | None:
    """Return the columns for Arrow's reader. Return None if it lacks one of the types, or there are none."""
    times = {name: type for name, type in columns.items() if isinstance(type, Primitive) and type in arrays.TIMES}
    is_plain = not any(contains(type, is_foreign, maps=True) for name, type in columns.items() if name not in times)
    return Block(to_arrow(columns), times) if columns and is_plain else None


def is_foreign(leaf: Primitive | Decimal | Unknown) -> bool:
    """Return whether JSON shows no such type by itself."""
    return leaf != UNKNOWN and leaf not in INFERRED


def are_whole_objects(values: pa.BinaryArray) -> bool:
    """Return whether values that have not passed the gate are surely objects, one in each line, if Arrow reads them.

    No line that begins and ends with braces can begin within another value: `}` and, on the next line, `{` are only
    between objects. Arrow's parser is as strict as the gate, but for UTF-8, for zero bytes, which end its input, and
    for NaN, of which `Block.read` is not sure.
    """
    in_braces = pc.and_(pc.starts_with(values, b"{"), pc.ends_with(values, b"}"))
    return (
        pc.all(in_braces).as_py() and value_checks.find_lowest_byte(values) > 0 and not value_checks.check_utf8(values)
    )


def _has_doubtful_double(column: Any) -> bool:
    """Return whether there is a double that JSON may not have like this.

    Arrow rounds larger integers without a word, and reads `NaN`, which is not JSON.
    """
    if pa.types.is_floating(column.type):
        ends = pc.min_max(column).as_py()  # without NaN
        is_large = ends["min"] is not None and max(-ends["min"], ends["max"]) >= LARGE
        return is_large or bool(pc.any(pc.is_nan(column)).as_py())
    if pa.types.is_list(column.type):
        return _has_doubtful_double(pc.list_flatten(column))
    # All fields at once: one by one each costs all of them.
    return pa.types.is_struct(column.type) and any(map(_has_doubtful_double, column.flatten()))
