"""Layout: the output partition of each converted row. Functions over batches, without any memory of earlier ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from s3lake.land.task.staging import StagingRows, Streams
from s3lake.land.task.transformed_batch import take_rows
from s3lake.records.convert.read.value_checks import Refusals
from s3lake.records.convert.rows.parts_by_schema import Part
from s3lake.records.layout.elements import RecordColumns
from s3lake.records.layout.object_keys import KeyLayout
from s3lake.records.layout.pieces import NoObjectKeyError
from s3lake.records.record_timestamps import to_epoch_ms


@dataclass(frozen=True)
class ConvertedRows:
    """Converted rows of one schema.

    Attributes:
        records: the records that they were made of.
        original: these records as Kafka has them.
        streams: the payloads of their files.
        values: JSON texts, or the values as Kafka has them.
        names: see `convert.rows.parts_by_schema.Part`.
        keys: their keys as text; None if they are as Kafka has them.
        times: see `names`.
        are_tombstones: True if they have no value, and keys of their own in the layout.
    """

    records: pa.RecordBatch
    original: pa.RecordBatch
    streams: Streams
    values: pa.BinaryArray
    names: pa.StringArray | None
    keys: pa.BinaryArray | None
    times: pa.StringArray | None = None
    are_tombstones: bool = False

    def filter(self, mask: pa.BooleanArray) -> ConvertedRows:
        """Return the rows for which the mask is true."""
        return replace(
            self,
            records=self.records.filter(mask),
            original=self.original.filter(mask),
            streams={name: payload.filter(mask) for name, payload in self.streams.items()},
            values=self.values.filter(mask),
            names=None if self.names is None else self.names.filter(mask),
            keys=None if self.keys is None else self.keys.filter(mask),
            times=None if self.times is None else self.times.filter(mask),
        )


@dataclass(frozen=True)
class PlacedRows:
    """Rows of one topic-partition with their output partitions.

    Attributes:
        groups: the group of all rows, or of each.
        refused: row of the converted ones that has no place -> why.
    """

    rows: StagingRows
    groups: str | Sequence[str]
    refused: Refusals = field(default_factory=dict)


def split_tombstones(
    keys: KeyLayout, partition: int, batch: pa.RecordBatch, original: pa.RecordBatch, part: Part
) -> Iterator[ConvertedRows]:
    """Yield the rows of a converted part: tombstones first, if these have keys of their own.

    Args:
        batch: the records that were converted.
        original: row by row these records, as Kafka has them.
    """
    if not keys.has_tombstones and part.values is not None and keys.fixed_group(partition) is not None:
        batch = original = batch.select(["offset", "timestamp"])  # nothing else of the records decides where they go
    records = take_rows(batch, part.rows)
    values = records.column("value") if part.values is None else part.values
    kafka_records = records if original is batch else take_rows(original, part.rows)
    rows = ConvertedRows(records, kafka_records, part.streams, values, part.names, part.keys, part.times)
    if not keys.has_tombstones or not records.column("value").null_count:
        yield rows
        return
    are_null = records.column("value").is_null()
    tombstones = rows.filter(are_null)
    sidecars = {name: payload for name, payload in tombstones.streams.items() if name != "data"}
    yield replace(tombstones, streams=sidecars, are_tombstones=True)
    yield rows.filter(pc.invert(are_null))


def lay_out(keys: KeyLayout, partition: int, rows: ConvertedRows, *, by_span: bool) -> PlacedRows:
    """Find the output partition of each row.

    Args:
        by_span: a file's rows lie within a span of time, which may be the time of a field.
    """
    placed = StagingRows(rows.records.column("offset"), to_epoch_ms(rows.records.column("timestamp")), rows.streams)
    group = None if rows.are_tombstones else keys.fixed_group(partition)
    if group is not None:
        return PlacedRows(placed, group)
    columns = _list_columns(keys, rows)
    groups = keys.groups(partition, columns, len(placed), tombstones=rows.are_tombstones)
    if by_span and not rows.are_tombstones and (times := keys.times(columns)) is not None:
        placed = replace(placed, clock=pa.array(times, pa.int64()))
    refused = {row: str(error) for row, error in enumerate(groups) if isinstance(error, NoObjectKeyError)}
    if refused:
        placed = placed.take(pa.array([row for row in range(len(placed)) if row not in refused], pa.int64()))
    return PlacedRows(placed, [group for group in groups if isinstance(group, str)], refused)


def _list_columns(keys: KeyLayout, rows: ConvertedRows) -> RecordColumns:
    """Return all that keys contain of the rows."""
    records, names = rows.records, rows.names
    schemas: Sequence[str | None] = ()
    if keys.needs("schema"):
        schemas = [None] * records.num_rows if names is None else names.to_pylist()
    return RecordColumns(
        values=rows.values.to_pylist() if keys.needs("value") else (),
        keys=(records.column("key") if rows.keys is None else rows.keys).to_pylist() if keys.needs("key") else (),
        headers=records.column("headers").to_pylist() if keys.needs("header") else (),
        timestamps=to_epoch_ms(records.column("timestamp")).to_pylist() if keys.needs("timestamp") else (),
        schemas=schemas,
        topics=records.column("topic").to_pylist() if keys.needs("topic") else (),
        times=() if rows.times is None else rows.times.to_pylist(),
    )
