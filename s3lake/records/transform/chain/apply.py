"""Apply a chain of transforms to a batch: records come as Kafka has them, and leave as conversion takes them.

Keys and values with a schema leave with one (`typed.run`), all others as they come (`rows`).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from s3lake.records.convert.read.converters import ConverterRequest
from s3lake.records.convert.read.keys_and_values import Column, Schemas, read_column
from s3lake.records.transform.chain.chain import Chain
from s3lake.records.transform.chain.header_column import replace_column
from s3lake.records.transform.chain.one_by_one import Transformed, apply_links


def apply_chain(transforms: Chain, batch: pa.RecordBatch, topic: str, wallclock_ms: int) -> Transformed:
    """Apply a chain to a batch of one topic; `wallclock_ms` is the time of the micro-batch."""
    if not transforms.wrapped:
        return apply_links(transforms, batch, {}, topic, wallclock_ms)
    columns, refused = _read_sides(transforms, batch)
    plain = batch
    for side, column in columns.items():
        plain = replace_column(plain, side, column.data)
    rows = np.arange(batch.num_rows)
    readable = pa.array(rows[~np.isin(rows, list(refused))] if refused else rows)
    if transforms.keeps_schemas:
        from s3lake.records.transform.chain.with_schema import TypedRun

        run = TypedRun(transforms, batch, plain, columns, topic, wallclock_ms)
        return run.apply(readable.to_numpy(), refused)
    schemas: dict[str, Schemas] = {
        side: column.schemas.take(readable) for side, column in columns.items() if column.schemas is not None
    }
    done = apply_links(transforms, plain.take(readable), schemas, topic, wallclock_ms)
    refused = refused | {readable[row].as_py(): reason for row, reason in done.refused.items()}
    left, after = readable.take(done.rows), done.batch
    for side in transforms.wrapped:
        if not transforms.gives_json(side):  # no step writes it
            after = replace_column(after, side, batch.column(side).take(left))
    return Transformed(after, left, refused, done.filtered)


def _read_sides(transforms: Chain, batch: pa.RecordBatch) -> tuple[dict[str, Column], dict[int, str]]:
    """Read the keys and values that steps look at, and that are not JSON, text or bytes in Kafka."""
    columns, refused = dict[str, Column](), dict[int, str]()
    keeps = transforms.keeps_schemas
    for side, converter in transforms.wrapped.items():
        # As lines, JSON with a JSON Schema keeps what its schema does not name: it has none.
        tabular = keeps and (transforms.tabular or converter != "json_schema")
        request = ConverterRequest(
            tabular,
            texts=not keeps,
            spliced=keeps,
            registry=transforms.registry,
            null_to_default=side in transforms.null_to_default,
            exact=transforms.exact,
        )
        column, wrong = read_column(converter, batch.column(side), request)
        refused |= {row: reason if side == "value" else f"{side}: {reason}" for row, reason in wrong.items()}
        columns[side] = column
    return columns, refused
