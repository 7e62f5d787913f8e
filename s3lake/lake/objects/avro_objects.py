"""Avro files as Arrow batches."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from decimal import Decimal
from functools import cache
from typing import Any
from uuid import UUID

import pyarrow as pa

from s3lake.errors import UnreadableError
from s3lake.lake.objects.content import Body, batch_rows
from s3lake.records.schema.columns.types import MOST_DIGITS

_ARROW = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "enum": pa.string(),
    "bytes": pa.binary(),
    "fixed": pa.binary(),
    "long timestamp-millis": pa.timestamp("ms", "UTC"),
    "long timestamp-micros": pa.timestamp("us", "UTC"),
    "long timestamp-nanos": pa.timestamp("ns", "UTC"),
    "long time-micros": pa.time64("us"),
    "int date": pa.date32(),
    "int time-millis": pa.time32("ms"),
    "fixed uuid": pa.binary(16),
    "string uuid": pa.binary(16),
}
_HEADER = {
    "type": "record",
    "name": "header",
    "fields": [
        {"name": "magic", "type": {"type": "fixed", "name": "magic", "size": 4}},
        {"name": "meta", "type": {"type": "map", "values": "bytes"}},
        {"name": "sync", "type": {"type": "fixed", "name": "sync", "size": 16}},
    ],
}
_MARKS = {
    "string uuid": "s3lake.uuid_bytes",
    "bytes decimal": "s3lake.number",
    "fixed decimal": "s3lake.number",
}
"""Logical types of our own: their readers give values that Arrow takes."""
_BLOCK = 1 << 16


class _Joined(io.RawIOBase):
    """Two streams one after the other: no file is held whole."""

    def __init__(self, *streams: Any) -> None:
        self._streams = list(streams)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while self._streams:
            data = self._streams[0].read(len(buffer))
            if data:
                buffer[: len(data)] = data
                return len(data)
            del self._streams[0]
        return 0


@cache
def _load_fastavro() -> Any:
    """Return fastavro with the readers of our logical types; it is imported once an Avro file is read."""
    import fastavro
    from fastavro.read import LOGICAL_READERS

    def read_number(unscaled: bytes, schema: Any, _reader: Any = None) -> Decimal:
        number = int.from_bytes(unscaled, "big", signed=True)
        return Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -schema.get("scale", 0)))

    LOGICAL_READERS["map-s3lake.entries"] = lambda value, *_: list(value.items())
    LOGICAL_READERS["string-s3lake.uuid_bytes"] = lambda value, *_: UUID(value).bytes
    LOGICAL_READERS["bytes-s3lake.number"] = LOGICAL_READERS["fixed-s3lake.number"] = read_number
    return fastavro


def open_avro(
    body: Body, key: str, columns: Collection[str] | None = None, bare_column: str = ""
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return the columns of a file, and its rows with the columns of `columns` that it has (None: all).

    Raises:
        UnreadableError: see `open_rows`.
    """
    schema, rows = open_rows(body, key, bare_column)
    asked = pa.schema([field for field in schema if columns is None or field.name in columns])
    return schema, (_to_batch(some, asked, key) for some in batch_rows(rows))


def open_rows(body: Body, key: str, bare_column: str = "") -> tuple[pa.Schema, Iterator[dict[str, Any]]]:
    """Return the columns of a file, and its rows: times are integers, maps are lists of pairs.

    `bare_column` is the name of the one column of a file whose datums are not records of columns.

    Raises:
        UnreadableError: it is not an Avro file; also while it is read, after the rows before.
    """
    fastavro = _load_fastavro()
    try:
        stream = io.BytesIO(body) if isinstance(body, bytes) else body
        header: Any = fastavro.schemaless_reader(stream, _HEADER, None)
        schema = json.loads(header["meta"]["avro.schema"])
        if bare_column:
            # A record of one field is the field, byte for byte.
            schema = {"type": "record", "name": "s3lake_bare", "fields": [{"name": bare_column, "type": schema}]}
        if header["magic"] != b"Obj\x01" or schema["type"] != "record":
            raise ValueError("its schema is not a record")
        header["meta"]["avro.schema"] = json.dumps(mark_logical_types(schema)).encode()
        plain = io.BytesIO()
        fastavro.schemaless_writer(plain, _HEADER, header)
        rows = fastavro.reader(io.BufferedReader(_Joined(io.BytesIO(plain.getvalue()), stream), _BLOCK))
        types = pa.schema(list(_to_arrow(schema, {})))
    except Exception as error:  # any that broken bytes lead to
        raise UnreadableError(f"{key} is not an Avro file: {error!r}") from None
    return types, _require_readable(rows, key)


def _require_readable(rows: Iterable[Any], key: str) -> Iterator[Any]:
    try:
        yield from rows
    except Exception as error:  # any that broken bytes lead to
        raise UnreadableError(f"{key} cannot be read to its end: {error!r}") from None


def _to_batch(rows: Sequence[dict[str, Any]], schema: pa.Schema, key: str) -> pa.RecordBatch:
    if not schema.names:
        return pa.record_batch([pa.nulls(len(rows))], names=[""]).select([])
    cells = ([row[name] for row in rows] for name in schema.names)
    try:
        return pa.record_batch(list(map(pa.array, cells, schema.types)), schema=schema)
    except (ValueError, ArithmeticError) as error:
        raise UnreadableError(f"{key} has a value that is not one of its column: {error}") from None


def _to_arrow(schema: Any, named: dict[str, pa.DataType], space: str = "") -> pa.DataType:
    """Return the Arrow type of a schema; `named` are the types with a name so far, `space` is their namespace here."""
    if isinstance(schema, list):
        others = [branch for branch in schema if branch != "null"]
        return _to_arrow(others[0], named, space) if len(others) == 1 else pa.null()
    if isinstance(schema, str):
        full = _qualify(schema, space)
        return named[full] if full in named else _ARROW[schema]
    if "name" in schema:
        full = _qualify(schema["name"], schema.get("namespace", space))
        space = full.rpartition(".")[0]
    match schema["type"]:
        case "record":
            type = pa.struct([(field["name"], _to_arrow(field["type"], named, space)) for field in schema["fields"]])
        case "array":
            type = pa.list_(_to_arrow(schema["items"], named, space))
        case "map":
            type = pa.map_(pa.string(), _to_arrow(schema["values"], named, space))
        case "bytes" | "fixed" if _is_decimal(schema):
            type = pa.decimal128(min(MOST_DIGITS, schema["precision"]), schema.get("scale", 0))
        case name:
            type = _ARROW.get(f"{name} {schema.get('logicalType')}", _ARROW[name])
    if "name" in schema:
        named[full] = type
    return type


def _qualify(name: str, space: str) -> str:
    """Return the full name of a type: one without a namespace is in that of the type around it."""
    return name if "." in name or not space else f"{space}.{name}"


def _is_decimal(schema: dict[str, Any]) -> bool:
    """Return whether a schema is a decimal: an invalid one, which a connector's file may have, is its bytes."""
    precision, scale = schema.get("precision"), schema.get("scale", 0)
    if schema.get("logicalType") != "decimal" or not type(precision) is type(scale) is int:
        return False
    fits = schema["type"] != "fixed" or precision <= int(math.log10(2) * (8 * schema["size"] - 1))
    return fits and 0 <= scale <= precision > 0


def mark_logical_types(schema: Any) -> Any:
    """Return a schema of the same bytes, in which times are numbers: Python has no dates after the year 9999."""
    if isinstance(schema, list):
        return list(map(mark_logical_types, schema))
    if not isinstance(schema, dict):
        return schema
    plain = {name: mark_logical_types(part) for name, part in schema.items() if name not in ("logicalType", "default")}
    of, logical = schema.get("type"), schema.get("logicalType")
    mark = "s3lake.entries" if of == "map" else _MARKS.get(f"{of} {logical}")
    if logical == "decimal" and not _is_decimal(schema):
        mark = None
    return {**plain, "logicalType": mark} if mark else plain
