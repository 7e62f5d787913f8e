"""Rows of a table that was handed in: stages them as files of a commit, here or in a task of Spark."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from s3lake.errors import ConfigurationError, S3LakeError
from s3lake.index.commit.documents import File
from s3lake.index.store import Stores
from s3lake.lake.objects.spark_columns import cast_batch
from s3lake.land.task.outcomes import Done, Failed
from s3lake.land.task.staging import FileRule, Staging, StagingRows
from s3lake.records.layout.elements import RecordColumns
from s3lake.records.layout.object_keys import KeyLayout

TASK_ROWS = 2**32
"""Numbers of rows that each task of Spark has for itself, so that no two files have one key."""
Form = Literal["columns", "json", "value"]
"""What a row is in a file: columns, a line of JSON, or its only cell."""

_json = msgspec.json.Encoder(decimal_format="number", enc_hook=str).encode
_OTHERS = {
    **dict.fromkeys((pa.int8(), pa.int16(), pa.uint8(), pa.uint16()), pa.int32()),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.int64(),
    pa.float16(): pa.float32(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
    pa.date64(): pa.date32(),
    pa.time32("s"): pa.time32("ms"),
    pa.time64("ns"): pa.time64("us"),
}
_SAME = {*_OTHERS.values(), pa.bool_(), pa.float64(), pa.null(), pa.uuid()}
_DECIMAL_DIGITS = 38


def plain_type(type: pa.DataType, column: str) -> pa.DataType:
    """Return the type that files have for values of a type: int32 for int8, text for a dictionary of texts.

    Raises:
        ConfigurationError: files have no such type.
    """
    of = pa.types
    if type in _SAME:
        return type
    if type in _OTHERS:
        return _OTHERS[type]
    if of.is_dictionary(type):
        return plain_type(type.value_type, column)
    if of.is_fixed_size_binary(type):
        return pa.binary()
    if of.is_timestamp(type):  # without a time zone it is UTC; readers have no nanoseconds
        return pa.timestamp("ms" if type.unit in ("s", "ms") else "us", "UTC")
    if of.is_decimal(type) and type.precision <= _DECIMAL_DIGITS:
        return pa.decimal128(type.precision, type.scale)
    if of.is_struct(type):
        names = [field.name for field in type]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ConfigurationError(f"column {column!r} has two fields that are called {twice!r}: rename one")
        return pa.struct([(field.name, plain_type(field.type, f"{column}.{field.name}")) for field in type])
    if of.is_map(type):
        return pa.map_(pa.string(), plain_type(type.item_type, column))
    if of.is_list(type) or of.is_large_list(type) or of.is_fixed_size_list(type):
        return pa.list_(plain_type(type.value_type, column))
    if isinstance(type, pa.BaseExtensionType):
        return plain_type(type.storage_type, column)
    raise ConfigurationError(f"column {column!r} is {type}, and files have no such type: cast it")


def place_rows(keys: KeyLayout, partition: int, rows: pa.RecordBatch, stamp_ms: int = 0) -> str | pa.Array:
    """Return the group of all rows if it is the same for all, else the group of each.

    Raises:
        ConfigurationError: a row has no place in the layout.
    """
    group = keys.fixed_group(partition)
    if group is not None:
        return group
    values = encode_json_rows(rows) if keys.needs("value") else ()
    stamps = [stamp_ms] * len(rows) if keys.needs("timestamp") else ()
    return group_rows(keys, partition, RecordColumns(values=values, timestamps=stamps), len(rows))


def encode_json_rows(rows: pa.RecordBatch) -> list[bytes]:
    """Return each row as JSON."""
    return [msgspec.json.encode(row, enc_hook=str) for row in _list_rows(rows)]


def group_rows(keys: KeyLayout, partition: int, fields: RecordColumns, rows: int) -> pa.Array:
    """Return the group of each row by what keys read of it.

    Raises:
        ConfigurationError: a row has no place in the layout.
    """
    groups = keys.groups(partition, fields, rows)
    strange = next((one for one in groups if not isinstance(one, str)), None)
    if strange is not None:
        raise ConfigurationError(f"a record has no place in the present layout: {strange}")
    return pa.array(groups, pa.string())


@dataclass(frozen=True)
class RowStage:
    """Stages rows, as plain values that travel to Spark's workers.

    Attributes:
        name: the name of the table, for errors.
        stores: opens the bucket.
        plain: the columns of the rows in types that files have.
        columns: the columns of the files; rows lack columns that only other tables of the sink have.
        stamp_ms: the time of each row for the layout: when its hour begins.
    """

    name: str
    stores: Stores
    bucket: str
    commit: str
    keys: KeyLayout
    files: FileRule
    form: Form
    plain: pa.Schema
    columns: pa.Schema
    stamp_ms: int

    def stage(self, batches: Iterable[pa.RecordBatch], first: int = 0) -> list[File]:
        """Stage rows as files; the first row is number `first`.

        Raises:
            ConfigurationError: a value does not fit its column, or a row has no place in the layout.
        """
        staging = Staging(self.stores(self.bucket), self.keys, self.files, self.commit)
        number = first
        try:
            for batch in batches:
                rows = self._cast(batch)
                if not len(rows):
                    continue
                if number + len(rows) - first > TASK_ROWS:
                    raise ConfigurationError(f"{self.name}: a task has more than {TASK_ROWS:,} rows: repartition it")
                offsets = pa.array(range(number, number + len(rows)), pa.int64())
                number += len(rows)
                placed = StagingRows(
                    offsets, pa.array([self.stamp_ms] * len(rows), pa.int64()), {"data": self._payload(rows)}
                )
                staging.add(0, place_rows(self.keys, 0, rows, self.stamp_ms), placed)
            return staging.finish()
        except BaseException:
            staging.abort()
            raise

    def run_in_spark(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Stage the rows of one task; what `mapInArrow` runs. Yields one encoded outcome."""
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        outcome: Done | Failed
        try:
            outcome = Done(self.stage(batches, context.partitionId() * TASK_ROWS), {}, {})
        except S3LakeError as error:
            outcome = Failed(type(error).__name__, str(error))
        yield pa.record_batch([pa.array([msgspec.json.encode(outcome)], pa.binary())], names=["outcome"])

    def _cast(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = []
        for field, column in zip(self.plain, batch.columns, strict=True):
            try:
                columns.append(column if column.type == field.type else column.cast(field.type))
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                raise ConfigurationError(
                    f"{self.name}: column {field.name!r} is {column.type}, and does not fit {field.type}: {error}"
                ) from None
        return pa.record_batch(columns, schema=self.plain)

    def _list_objects(self, rows: pa.RecordBatch) -> list[Any]:
        try:
            return _list_rows(rows, maps_as_pydicts="strict")
        except KeyError as error:
            raise ConfigurationError(
                f"{self.name}: a map has a key twice, which an object of JSON cannot: {error}"
            ) from None

    def _payload(self, rows: pa.RecordBatch) -> Any:
        if self.form == "columns":
            return cast_batch(rows, self.columns, self.name)
        if self.form == "json":
            return pa.array(map(_json, self._list_objects(rows)), pa.binary())
        cells = rows.column(0).cast(pa.binary()).fill_null(b"")
        if any(b"\n" in cell for cell in cells.to_pylist()) and self.files.formats["data"].type == "text":
            raise ConfigurationError(f"{self.name}: a cell has a line end, and format text has a row a line")
        return cells


def _list_rows(rows: pa.RecordBatch, **options: Any) -> list[Any]:
    """Return rows as JSON has them: NaN and infinities, which are no numbers of JSON, are their names."""
    listed: list[Any] = rows.to_pylist(**options)
    return [*map(_name_numbers, listed)] if any(map(_has_odd_number, rows.columns)) else listed


def _has_odd_number(column: pa.Array) -> bool:
    of = pa.types
    if of.is_floating(column.type):
        return not pc.all(pc.is_finite(column), min_count=0).as_py()
    if of.is_list(column.type):
        return _has_odd_number(pc.list_flatten(column))
    if of.is_map(column.type):
        return _has_odd_number(column.items)
    return of.is_struct(column.type) and any(map(_has_odd_number, column.flatten()))


def _name_numbers(value: Any) -> Any:
    match value:
        case float() if not math.isfinite(value):
            return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
        case dict():
            return {name: _name_numbers(inner) for name, inner in value.items()}
        case list() | tuple():
            return [*map(_name_numbers, value)]
    return value
