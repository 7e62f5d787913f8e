"""Streams next to the data: the records' keys and headers, each row in the order of its data file."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import structs

from s3lake.records.convert.read.keys_and_values import Column, Rows
from s3lake.records.convert.read.value_checks import Refusals
from s3lake.records.convert.rows import headers, tables
from s3lake.records.encode import json_texts
from s3lake.records.encode.formats import FORMATS
from s3lake.records.schema.columns.arrow_types import make_column
from s3lake.records.schema.columns.details import ALONE, NAME_SPACE, REQUIRED, Detail
from s3lake.records.schema.columns.limits import Limits
from s3lake.records.schema.columns.types import List, Primitive, Struct

_HEADER = Detail(required=True, name=f"{NAME_SPACE}.ConnectDefault", inner=(REQUIRED, REQUIRED))
_HEADERS = List(Struct({"key": Primitive.STRING, "value": Primitive.STRING}))

Payload = Any
"""Texts (`pa.BinaryArray`), or columns (`pa.RecordBatch`)."""


def check_keys(format: str, key: Column) -> Refusals:
    """Rows whose key a file of `format` cannot hold."""
    if format != "bytes" or not key.data.null_count:
        return {}
    reason = (
        "the key is null, which a sidecar of bytes cannot tell from an empty one: set sidecars.keys to json or avro"
    )
    return dict.fromkeys(pc.indices_nonzero(key.data.is_null()).to_pylist(), reason)


def write_keys(format: str, rows: Rows, most: int) -> tuple[Payload | None, Refusals]:
    """Return the stream of keys without refused ones. Return None if all are refused.

    A table has one column, `key`, of the type that the keys' schema gives; keys of JSON without one are their texts.

    Args:
        rows: the rows, whose keys have one schema, or none.
    """
    column = rows.column("key")
    match format:
        case "bytes":
            return rows.kafka.column("key"), {}
        case "json":
            return column.as_json(), {}
    if column.schema is None:
        data = column.data if column.facts.gives == "bytes" else column.data.cast(pa.string())
        return _alone(format, pa.record_batch([data], names=["key"])), {}
    limits = Limits(FORMATS[format].rule, most)
    shape = tables.TableShape(None, ("key",), {"key": column.converter}, {}, limits)
    table = tables.make_table(shape, rows, {})
    refused = {row: f"key: {reason}" for row, reason in table.refused.items()}
    return table.batch and _alone(format, table.batch), refused


def write_headers(format: str, rows: Rows) -> Payload:
    """The stream of headers: an array of `key` and `value` for each record, both texts."""
    if format == "json":
        return json_texts.concat(b'{"headers":', headers.to_json_pairs(rows.headers), b"}")
    lists = headers.to_lists(rows.headers).cast(headers.TEXT_LIST)  # the values passed `check_texts`
    header = _HEADER
    if lists.values.field("value").null_count:
        header = structs.replace(_HEADER, inner=(REQUIRED, Detail()))
    detail = Detail(required=True, inner=(header,))
    field, column = make_column("headers", lists, _HEADERS, detail)
    return _alone(format, pa.record_batch([column], schema=pa.schema([field])))


def _alone(format: str, table: pa.RecordBatch) -> pa.RecordBatch:
    """Avro needs no record round the one column that there is, and Confluent's connector writes none."""
    return table.replace_schema_metadata({ALONE: b""}) if format == "avro" else table
