"""Streams beside the data: the records' keys and headers, each row in the order of its data file."""

import pyarrow as pa
import pyarrow.compute as pc

from s3lake.convert import headers, json_text
from s3lake.convert.cells import Column, Rows
from s3lake.convert.gate import Refusals


def key_refusals(format: str, key: Column) -> Refusals:
    """Rows whose key a file of `format` cannot hold."""
    if format != "bytes" or not key.data.null_count:
        return {}
    reason = (
        "the key is null, which a sidecar of bytes cannot tell from an empty one: set sidecars.keys to json or avro"
    )
    return dict.fromkeys(pc.indices_nonzero(key.data.is_null()).to_pylist(), reason)


def keys(format: str, rows: Rows) -> pa.BinaryArray | pa.RecordBatch:
    """The stream of keys; a table has one column, `key`, where keys of JSON are their texts."""
    column = rows.column("key")
    match format:
        case "bytes":
            return rows.kafka.column("key")
        case "json":
            return column.as_json()
    data = column.data if column.of.gives == "bytes" else column.data.cast(pa.string())
    return pa.record_batch([data], names=["key"])


def header_lists(format: str, rows: Rows) -> pa.BinaryArray | pa.RecordBatch:
    """The stream of headers: an array of `key` and `value` for each record, both texts."""
    if format == "json":
        return json_text.joined(b'{"headers":', headers.as_pairs(rows.headers), b"}")
    return pa.record_batch([headers.as_text_lists(rows.headers)], names=["headers"])
