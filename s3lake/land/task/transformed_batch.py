"""A batch before conversion: after transforms and SQL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from s3lake.records.convert.read import value_checks
from s3lake.records.convert.read.keys_and_values import Column
from s3lake.records.convert.read.value_checks import Refusals
from s3lake.records.transform.sql.query import Projection, project_value


@dataclass(frozen=True)
class Prepared:
    """A batch before conversion.

    Attributes:
        original: records as Kafka has them, for dead letters.
        batch: the remaining records, changed or not.
        rows: rows of `original` that `batch` holds; None for all.
        refused: stage -> row of `original` -> reason.
        filtered: records that were left out on purpose.
        unknown: shapes of records (`Projection.shapes`) that are not known yet.
        columns: keys or values with their schemas, as transforms left them.
    """

    original: pa.RecordBatch
    batch: pa.RecordBatch
    rows: pa.Int64Array | None = None
    refused: Mapping[str, Refusals] = field(default_factory=dict)
    filtered: int = 0
    unknown: frozenset[str] = frozenset()
    columns: Mapping[str, Column] = field(default_factory=dict)


def project_batch(ready: Prepared, projection: Projection) -> Prepared:
    """Apply SQL that only names fields to a batch."""
    batch, values = ready.batch, ready.batch.column("value")
    check = value_checks.CHECKS.get(projection.converter)
    refused: Refusals = check(values) if check else {}
    if projection.converter == "json":
        refused = value_checks.find_repeated_names(values) | refused
    projected: list[Any] = []
    for row, value in enumerate(values.to_pylist()):
        if row not in refused:
            try:
                projected.append(project_value(projection.query, value, projection.converter, ()))
            except ValueError as error:
                refused[row] = str(error)
    left = value_checks.list_others(batch.num_rows, refused)
    rows = ready.rows
    if left is not None:
        batch, rows = batch.take(left), left if rows is None else rows.take(left)
    places = refused if ready.rows is None else {ready.rows[row].as_py(): why for row, why in refused.items()}
    return replace(ready, batch=_with_values(batch, projected), rows=rows, refused={**ready.refused, "sql": places})


def read_computed(batch: pa.RecordBatch, projection: Projection) -> Prepared:
    """Put what Spark computed into the values of a batch that comes from it."""
    original = batch.set_column(batch.schema.get_field_index("value"), "value", batch.column("original"))
    names = ("value", "dropped", "refused", "shape", "computed")
    refused: Refusals = {}
    is_written = projection.converter == "json" and not projection.query.keeps_values
    repeated = value_checks.find_repeated_names(batch.column("value")) if is_written else {}
    rows: list[int] = []
    values: list[Any] = []
    unknown: set[str] = set()
    for row, cells in enumerate(zip(*(batch.column(name).to_pylist() for name in names), strict=True)):
        value, dropped, reason, shape, computed = cells
        if reason is None and not dropped and shape in projection.shapes:
            reason = projection.shapes[shape] or None
        elif reason is None and not dropped and projection.is_full:
            reason = "the types of its fields are one combination more than SQL takes"
        elif reason is None and not dropped:
            unknown.add(shape)
        if reason is None and not dropped:
            reason = repeated.get(row)
        if reason is None and computed is not None:
            try:
                values.append(project_value(projection.query, value, projection.converter, computed))
                rows.append(row)
            except ValueError as error:
                reason = str(error)
        if reason is not None:
            refused[row] = reason
    taken = pa.array(rows, pa.int64())
    filtered = batch.num_rows - len(rows) - len(refused)
    ready = _with_values(batch.take(taken), values)
    return Prepared(original, ready, taken, {"sql": refused}, filtered, frozenset(unknown))


def _with_values(batch: pa.RecordBatch, values: list[Any]) -> pa.RecordBatch:
    return batch.set_column(batch.schema.get_field_index("value"), "value", pa.array(values, pa.binary()))


def take_rows(records: pa.RecordBatch, rows: pa.Int64Array | None) -> pa.RecordBatch:
    """Return the records with these numbers; None takes all."""
    return records if rows is None else records.take(rows)
