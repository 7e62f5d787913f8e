"""Keys and values with a schema that are taken away."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from msgspec import structs

from s3lake.records.schema.columns.details import Detail
from s3lake.records.transform.step.record_values import Side
from s3lake.records.transform.step.schema_group import Changed, Group, Typed, is_required


def drop_side(side: Side, behavior: str, group: Group) -> Changed:
    """Make nulls of keys or values: `nullify` leaves no schema, `validate` takes schemas only that allow null."""
    typed = group.side(side)
    if behavior == "nullify":
        return [group.with_side(side, [None] * len(group))], {}
    if behavior == "validate" and is_required(typed):
        reason = f"by the schema the {side} is never null, and schema.behavior is validate"
        return [], dict.fromkeys(group.rows.tolist(), reason)
    schema = replace(typed.schema, file=None)
    if behavior == "force_optional":
        schema = replace(schema, detail=structs.replace(schema.detail or Detail(), required=False))
    return [group.with_side(side, Typed(schema, pa.nulls(len(group), typed.array.type)))], {}
