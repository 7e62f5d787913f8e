"""Records as rows of a table: the value's own fields as columns, or one column for each part of the record."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import structs

from s3lake.records.convert.read import wire_format
from s3lake.records.convert.read.converters import CONVERTERS
from s3lake.records.convert.read.json import object_columns
from s3lake.records.convert.read.json.exact_integers import find_inexact_rows, find_large_columns
from s3lake.records.convert.read.json.object_columns import TableRows
from s3lake.records.convert.read.json.unplaced_fields import NOTHING_UNPLACED, mark_keys, split_parts
from s3lake.records.convert.read.keys_and_values import RecordEnvelope, Rows
from s3lake.records.convert.read.value_checks import Refusals, list_others
from s3lake.records.convert.rows import headers
from s3lake.records.encode import json_texts
from s3lake.records.encode.column_bytes import wrap_encoded
from s3lake.records.schema.columns.arrow_types import apply_detail, make_column, to_arrow
from s3lake.records.schema.columns.details import NAME, list_descriptions, list_names, strip_to_nullability
from s3lake.records.schema.columns.limits import Limits, Rule, explain_unsupported, find_unpromotable
from s3lake.records.schema.columns.types import FLOATING, Columns, Map, Primitive, Struct, Type, fields_of
from s3lake.records.schema.columns.union import LEGAL_NAME, Conflict, check_column_limit, format_type, unify_types
from s3lake.records.schema.connect_schema import Schema

_FLAT_NAME = b"io.aiven.avro.output.schema.connector_records"
_METADATA: Columns = {
    "timestamp": Primitive.INT64,
    "topic": Primitive.STRING,
    "partition": Primitive.INT32,
    "offset": Primitive.INT64,
}


@dataclass(frozen=True)
class TableShape:
    """The columns of a sink's files.

    Attributes:
        spread: the part whose JSON object gives the columns; None if each of `parts` is a column.
        parts: the parts of a record that a file has, in order.
        declared: columns that the user gives of the value.
    """

    spread: str | None
    parts: tuple[str, ...]
    converters: dict[str, str]
    declared: Columns
    limits: Limits
    envelope: RecordEnvelope | None = None

    @property
    def is_flat(self) -> bool:
        """True if rows are Aiven's, with its types."""
        return self.envelope is not None and self.envelope.style == "flat"

    @functools.cached_property
    def json_parts(self) -> tuple[str, ...]:
        """The parts whose columns are found in JSON."""
        return tuple(
            part for part in self.parts if part in self.converters and CONVERTERS[self.converters[part]].gives == "json"
        )

    @property
    def fixed(self) -> Columns:
        json_parts = self.json_parts
        return {part: self._choose_type(part) for part in self.parts if part not in json_parts}

    def _choose_type(self, part: str) -> Type:
        match part:
            case "headers":
                return Map(Primitive.STRING) if self.is_flat else headers.LIST_TYPE
            case "metadata":
                return Struct(_METADATA)
            case "offset" | "timestamp":
                return Primitive.INT64
        return Primitive.STRING if CONVERTERS[self.converters[part]].gives == "text" else Primitive.BINARY


def make_table(shape: TableShape, rows: Rows, columns: Columns) -> TableRows:
    """Make a table of rows that have the same schemas, without the rows that readers of all files would see rounded."""
    # A table takes neither of both types for the other, whatever the values are: see `find_unpromotable`.
    arrays, seen = _list_typed(shape, rows) if shape.limits.rule != "iceberg" else ({}, {})
    inexact = find_inexact_rows(arrays, seen, columns, shape.limits.integral) if seen else {}
    left = list_others(len(rows), inexact)
    if left is None:
        return _read(shape, rows, columns)
    if not len(left):
        return TableRows(None, columns, inexact)
    table = _read(shape, rows.take(left), columns)
    refused = inexact | {left[row].as_py(): reason for row, reason in table.refused.items()}
    return table._replace(
        refused=refused, unplaced={left[row].as_py(): fields for row, fields in table.unplaced.items()}
    )


def _list_typed(shape: TableShape, rows: Rows) -> tuple[dict[str, pa.Array], Columns]:
    """Return the values that have a schema, by the path of their columns, and these columns."""
    if shape.spread is not None:
        part = rows.column(shape.spread)
        schema = part.schema
        if schema is None:
            return {}, {}
        fields = fields_of(schema.type)
        return ({"": part.array}, fields) if fields else ({shape.spread: part.array}, {shape.spread: schema.type})
    schemas = {part: schema for part in shape.json_parts if (schema := rows.column(part).schema)}
    return {part: rows.column(part).array for part in schemas}, {part: one.type for part, one in schemas.items()}


def _read(shape: TableShape, rows: Rows, columns: Columns) -> TableRows:
    if shape.spread is None:
        return _by_part(shape, rows, columns)
    part = rows.column(shape.spread)
    schema = part.schema
    if schema is not None and not fields_of(schema.type):
        # No object, so it is a column of its own.
        alone = replace(shape, spread=None, parts=(shape.spread,), declared={})
        return _by_part(alone, rows, columns)
    if schema is None:
        texts = pc.fill_null(part.data, b"{}") if part.data.null_count else part.data
        table = object_columns.read_objects(texts, columns, shape.declared, shape.limits, checked=part.is_checked)
        return table if shape.spread == "value" else table._replace(unplaced=mark_keys(table.unplaced))
    seen = fields_of(schema.type)
    if reason := _find_illegal_record(schema, shape) or _find_unfit(seen, shape, columns):
        return TableRows(None, columns, dict.fromkeys(range(len(rows)), reason))
    if schema.file is not None:  # values that were read without a mistake, in the bytes that the producer wrote
        batch = wrap_encoded(wire_format.strip_schema_ids(rows.kafka.column("value")), schema.file)
    else:
        batch = _as_described(pa.RecordBatch.from_struct_array(part.array), schema, shape.limits.rule)
    large = frozenset(find_large_columns(pa.RecordBatch.from_struct_array(part.array)))
    return TableRows(batch, columns, {}, large, seen, list_descriptions(schema.type, schema.detail))


def _as_described(batch: pa.RecordBatch, schema: Schema, rule: Rule) -> pa.RecordBatch:
    """Return the batch with names, defaults and nullability of its schema, of which CSV holds nothing."""
    if schema.detail is not None and rule != "flat":
        detail = schema.detail if rule == "avro" else strip_to_nullability(schema.detail)
        return apply_detail(batch, detail, schema.name)
    return batch.replace_schema_metadata({NAME: schema.name.encode()}) if schema.name else batch


def _find_illegal_record(schema: Schema, shape: TableShape) -> str | None:
    """Return why Avro files cannot have records of these names. Return None if they can."""
    if shape.limits.rule != "avro":
        return None
    names = [name for inner in (schema.detail.inner if schema.detail else ()) for name in list_names(inner)]
    if schema.name and not (shape.envelope and shape.envelope.style == "record"):  # it takes the name, see `_column`
        names.append(schema.name)
    for name in names:
        if not all(map(LEGAL_NAME.fullmatch, name.split("."))):
            return f"the schema's name {name!r} is not one that Avro allows: letters, digits and '_' between dots"
    return None


def _find_unfit(columns: Columns, shape: TableShape, recorded: Columns) -> str | None:
    """Return why files cannot have the columns that a schema gives. Return None if they can."""
    if reason := explain_unsupported(columns, shape.limits.rule) or check_column_limit(columns, {}, shape.limits.most):
        return reason
    if shape.limits.rule == "flat":
        return _find_conflict(columns, shape.declared, recorded)
    return find_unpromotable(recorded, columns) if shape.limits.rule == "iceberg" else None


def _find_conflict(columns: Columns, declared: Columns, recorded: Columns) -> str | None:
    """Return why a CSV file, whose types only the index has, cannot have these columns. Return None if it can."""
    for name, type in columns.items():
        column = declared.get(name, recorded.get(name, type))
        try:
            united = unify_types(column, type, name)
        except Conflict as conflict:
            return str(conflict)
        rounds_integers = Primitive.INT64 in (column, type) and not FLOATING.isdisjoint((column, type))
        if rounds_integers or (name in declared and united != column):
            return f"field {name!r} is {format_type(type)} by its schema, and its column is {format_type(column)}"
    return None


def _by_part(shape: TableShape, rows: Rows, columns: Columns) -> TableRows:
    schemas = {part: schema for part in shape.json_parts if (schema := rows.column(part).schema)}
    seen: Columns = {part: schema.type for part, schema in schemas.items()}
    illegal = next(filter(None, (_find_illegal_record(schema, shape) for schema in schemas.values())), None)
    if reason := illegal or _find_unfit(seen, shape, columns):
        return TableRows(None, columns, dict.fromkeys(range(len(rows)), reason))
    parsed, refused, large, unplaced = dict[str, Type](), Refusals(), frozenset[str](), NOTHING_UNPLACED
    arrays = {part: rows.column(part).array for part in schemas}
    if arrays:
        large = frozenset(find_large_columns(pa.record_batch(arrays)))
    parsed_parts = [part for part in shape.json_parts if part not in schemas]
    if parsed_parts:
        table = _parse(shape, parsed_parts, rows, columns)
        batch, parsed, refused, unplaced = table.batch, table.columns, table.refused, table.unplaced
        large |= table.large
        left = list_others(len(rows), refused)
        if left is not None:
            rows, arrays = rows.take(left), {part: array.take(left) for part, array in arrays.items()}
        arrays |= dict(zip(batch.schema.names, batch.columns, strict=True)) if batch is not None else {}
    types = parsed | shape.fixed
    wider = columns | {part: types[part] for part in shape.parts if part in types}
    arrays |= {part: _array(shape, rows, part) for part in shape.fixed}
    present = [part for part in shape.parts if part in arrays]
    if not present:
        return TableRows(None, wider, refused, large, seen)
    columns_of_file = [_column(shape, part, arrays[part], schemas.get(part)) for part in present]
    schema = pa.schema([field for field, _ in columns_of_file], {NAME: _FLAT_NAME} if shape.is_flat else None)
    of_parts = {part: list_descriptions(one.type, one.detail) for part, one in schemas.items()}
    in_words = {part: "\n".join(map(": ".join, of_part.items())) for part, of_part in of_parts.items() if of_part}
    batch = pa.record_batch([array for _, array in columns_of_file], schema=schema)
    return TableRows(batch, wider, refused, large, seen, in_words, unplaced)


def _column(shape: TableShape, part: str, array: pa.Array, schema: Schema | None) -> tuple[pa.Field, pa.Array]:
    """A part as a column. The record envelope makes every part optional and takes its name, as Lenses' does."""
    if schema is None or schema.detail is None or shape.limits.rule == "flat":
        never_null = part in ("offset", "timestamp", "headers") and shape.is_flat and not array.null_count
        return pa.field(part, array.type, nullable=not never_null), array
    detail = schema.detail
    if shape.envelope is not None and shape.envelope.style == "record":
        detail = structs.replace(detail, required=False, name=None, default=None)
    detail = detail if shape.limits.rule == "avro" else strip_to_nullability(detail)
    return make_column(part, array, schema.type, detail)


def _parse(shape: TableShape, parts: Sequence[str], rows: Rows, columns: Columns) -> TableRows:
    """Read the columns of JSON parts: each record as one object, so that primitives and nulls come out right."""
    declared: Columns = {"value": Struct(shape.declared)} if shape.declared and "value" in parts else {}
    recorded = {part: columns[part] for part in parts if part in columns}
    pieces: list[json_texts.Piece] = []
    for position, part in enumerate(parts):
        pieces += [(b"," if position else b"{") + b'"' + part.encode() + b'":', rows.column(part).as_json()]
    table = object_columns.read_objects(json_texts.concat(*pieces, b"}"), recorded, declared, shape.limits)
    refused = {row: reason for row, reason in table.refused.items() if reason != object_columns.NOTHING}
    lost = _find_lost(parts, rows, table.columns, refused) | _find_displaced(parts, table)
    batch = table.batch
    if lost and batch is not None:
        kept = (row for row in range(len(rows)) if row not in refused)
        batch = batch.take(pa.array([at for at, row in enumerate(kept) if row not in lost], pa.int64()))
    unplaced = {row: fields for row, fields in table.unplaced.items() if row not in lost}
    return table._replace(batch=batch, refused=refused | lost, unplaced=split_parts(unplaced))


def _find_lost(parts: Sequence[str], rows: Rows, columns: Columns, refused: Refusals) -> Refusals:
    """Return rows with an empty object or list that no column could tell from null."""
    lost: Refusals = {}
    for part in parts:
        if part not in columns:
            for row, text in enumerate(rows.column(part).data.to_pylist()):
                if text is not None and text.strip() != b"null" and row not in refused:
                    lost.setdefault(
                        row,
                        f"the {part} holds nothing, and no column is known yet: declare columns, or use format json",
                    )
    return lost


def _find_displaced(parts: Sequence[str], table: TableRows) -> Refusals:
    """Return rows with an empty object or list as a whole part that its column, of another kind, has as null."""
    return {
        row: f"the {field.path} holds nothing, and its column is {format_type(table.columns[field.path])}"
        for row, fields in table.unplaced.items()
        for field in fields
        if field.has_column and field.path in parts
    }


def _array(shape: TableShape, rows: Rows, part: str) -> pa.Array:
    match part:
        case "headers":
            return headers.to_text_maps(rows.headers) if shape.is_flat else headers.to_lists(rows.headers)
        case "metadata":
            return _metadata(shape, rows)
        case "offset":
            return rows.offsets
        case "timestamp":
            return rows.timestamps
    column = rows.column(part)
    return column.data.cast(pa.string()) if column.facts.gives == "text" else column.data


def _metadata(shape: TableShape, rows: Rows) -> pa.StructArray:
    topics = pa.repeat(shape.envelope.topic if shape.envelope else "", len(rows))
    partitions = rows.kafka.column("partition").cast(pa.int32())
    return pa.StructArray.from_arrays(
        [rows.timestamps, topics, partitions, rows.offsets], fields=list(to_arrow(_METADATA))
    )
