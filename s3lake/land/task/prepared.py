"""A batch before conversion: after transforms, or as it came out of SQL."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from s3lake.convert.gate import Refusals


@dataclass(frozen=True)
class Prepared:
    """A batch before conversion.

    Attributes:
        original: records as Kafka has them, for dead letters.
        batch: those that go on, changed or not.
        rows: rows of `original` that `batch` holds; None for all.
        refused: row of `original` -> why.
        dropped: records that were filtered out.
        stage: which stage refused.
    """

    original: pa.RecordBatch
    batch: pa.RecordBatch
    rows: pa.Int64Array | None = None
    refused: Refusals = field(default_factory=dict)
    dropped: int = 0
    stage: str = ""


def after_sql(batch: pa.RecordBatch) -> Prepared:
    """A batch that came through SQL: refused records and those that the filter left out have marks."""
    original = batch.set_column(batch.schema.get_field_index("value"), "value", batch.column("original"))
    reasons = batch.column("refused")
    refused = {row: reason for row, reason in enumerate(reasons.to_pylist()) if reason is not None}
    alive = pc.and_(batch.column("kept"), reasons.is_null())
    rows = pc.indices_nonzero(alive).cast(pa.int64())
    dropped = batch.num_rows - len(rows) - len(refused)
    return Prepared(original, batch.take(rows), rows, refused, dropped, "sql")


def milliseconds(rows: pa.RecordBatch) -> pa.Array:
    """Record timestamps, which Spark's SQL wants in microseconds."""
    return pc.divide(rows.column("timestamp").cast(pa.int64()), 1000)
