"""The places of rows of columns in a layout: keys read a record's value, which is made of its columns again."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from s3lake.lake.objects import ObjectShape
from s3lake.land.task.table_rows import encode_json_rows, group_rows
from s3lake.records.encode.json_texts import make_encoder
from s3lake.records.layout.elements import RecordColumns
from s3lake.records.layout.object_keys import KeyLayout
from s3lake.records.schema.columns.arrow_types import type_of
from s3lake.records.schema.columns.time_units import find_time
from s3lake.records.schema.columns.types import Primitive, Struct, Type, fields_of

_SCHEMAS_WITH_UNITS = ("avro", "connect_json", "json_schema")
"""Converters whose schemas define that a number is a time, and its unit. Its column does not."""


def find_key_blocker(keys: KeyLayout, shape: ObjectShape) -> str:
    """Return the reason why columns do not contain what keys read of a value. Return "" if they do."""
    if not keys.needs("value"):
        return ""
    columns = _find_value(shape)
    if columns is None:
        return "the layout names fields of the value, which is not a column of fields in its files"
    path = keys.time_path
    type: Type | None = columns
    for step in path:
        type = type.fields.get(step) if isinstance(type, Struct) else None
    if type in (Primitive.INT32, Primitive.INT64) and shape.value in _SCHEMAS_WITH_UNITS:
        return (
            f"column {'.'.join(path)} holds numbers, and only the schemas of the records defined if they are days, "
            "milli-, micro- or nanoseconds: land the hour again from Kafka, by `s3lake rewrite`"
        )
    return ""


def place(keys: KeyLayout, partition: int, rows: pa.RecordBatch, shape: ObjectShape) -> str | pa.Array:
    """Return the group of all rows if it is the same for all, else the group of each.

    Raises:
        ConfigurationError: a row has no place in the layout.
    """
    group = keys.fixed_group(partition)
    if group is not None:
        return group
    if not keys.needs("value"):
        return group_rows(keys, partition, RecordColumns(), len(rows))
    values = rows.to_struct_array() if shape.spread_part == "value" else rows.column("value")
    texts = _write_values(values, shape).to_pylist()
    time = find_time(type_of(values.type), None, keys.time_path) if keys.time_path else None
    times = () if time is None or shape.value == "json" else (str(time),) * len(rows)
    fields = RecordColumns(values=texts, times=times)
    return group_rows(keys, partition, fields, len(rows))


def _write_values(values: pa.StructArray, shape: ObjectShape) -> pa.BinaryArray:
    """Return values as JSON, null for none: times of a schema are numbers, as they are when records land."""
    if shape.value == "json":  # a column of times was made of texts
        texts = pa.array(encode_json_rows(pa.RecordBatch.from_struct_array(values)), pa.binary())
    else:
        texts = make_encoder(type_of(values.type))(values)
    return pc.if_else(values.is_valid(), texts, None)


def _find_value(shape: ObjectShape) -> Struct | None:
    """Return the columns of values. Return None if a value is not columns."""
    if shape.spread_part == "value":
        return shape.columns
    value = fields_of(shape.columns).get("value")
    return value if isinstance(value, Struct) else None
