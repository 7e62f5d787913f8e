"""The columns of a table: the columns of its files' footers; none is ever removed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from s3lake.errors import TableConflictError
from s3lake.records.schema.columns.limits import LANDED_HOUR

if TYPE_CHECKING:
    from pyiceberg.table import Transaction

_NAMES = "schema.name-mapping.default"


def list_schemas(footers: Iterable[Any]) -> list[pa.Schema]:
    """Return the different schemas of files.

    Raises:
        TableConflictError: a column has times that Iceberg does not have.
    """
    schemas: dict[str, pa.Schema] = {}
    for footer in footers:
        schema = pa.schema(map(_make_nullable, footer.schema.to_arrow_schema()))
        schemas.setdefault(str(schema), schema)
    for schema in schemas.values():
        for field in schema:
            _refuse_other_precisions(field, field.name)
    return list(schemas.values())


def add_hour_column(schema: pa.Schema) -> pa.Schema:
    """Return the schema with the hour of landing before it."""
    if LANDED_HOUR in schema.names:
        raise TableConflictError(
            f"a column of the files is called {LANDED_HOUR!r}, as the hour of landing in a table: rename it by sql"
        )
    return pa.schema([pa.field(LANDED_HOUR, pa.timestamp("us", "UTC")), *schema])


def widen_schema(change: Transaction, schemas: Iterable[pa.Schema]) -> None:
    """Add the columns of files to a table, and the mapping of its fields to their names in files.

    Raises:
        TableConflictError: a column has a type that the table cannot take without loss.
    """
    before = change.table_metadata.schema()
    for schema in schemas:
        try:
            with change.update_schema() as update:
                update.union_by_name(schema)
        except Exception as error:  # of several types
            raise TableConflictError(
                f"files have columns that the table cannot take: {error}. Give the column its type "
                "in `columns` and rewrite the hours, or name another table and run `s3lake table sync`"
            ) from None
    after = change.table_metadata.schema()
    if before.as_struct() != after.as_struct() or _NAMES not in change.table_metadata.properties:
        change.set_properties({_NAMES: after.name_mapping.model_dump_json()})


def _refuse_other_precisions(field: pa.Field, column: str) -> None:
    """Refuse times that Iceberg does not have, with the remedy."""
    for at in range(field.type.num_fields):
        _refuse_other_precisions(field.type.field(at), column)
    if pa.types.is_time32(field.type):
        unit, instead = "milliseconds", "time_us"
    elif pa.types.is_timestamp(field.type) and field.type.unit == "ns":
        unit, instead = "nanoseconds", "timestamp_us"
    else:
        return
    raise TableConflictError(
        f"column {column!r} holds times in {unit}, which Iceberg's tables do not have: give it as {instead} in "
        "the `columns` of a sink of another name, or leave it out by sql"
    )


def _make_nullable(field: pa.Field) -> pa.Field:
    """Return the field as nullable at every level, because a later file may not have it."""
    return pa.field(field.name, _make_type_nullable(field.type), nullable=True)


def _make_type_nullable(type: pa.DataType) -> pa.DataType:
    of = pa.types
    if of.is_struct(type):
        return pa.struct(list(map(_make_nullable, type)))
    if of.is_list(type):
        return pa.list_(_make_nullable(type.value_field))
    if of.is_map(type):
        return pa.map_(type.key_type, _make_nullable(type.item_field))
    return type
