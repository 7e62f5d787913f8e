"""Avro files as Arrow batches."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

import pyarrow as pa

from s3lake.errors import UnreadableError
from s3lake.objects.content import Body, in_batches
from s3lake.schema.types import MOST_DIGITS

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
}
_LOGICAL = {
    ("long", "timestamp-millis"): pa.timestamp("ms", "UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", "UTC"),
    ("long", "timestamp-nanos"): pa.timestamp("ns", "UTC"),
    ("long", "time-micros"): pa.time64("us"),
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time32("ms"),
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


class _Column(NamedTuple):
    """The type of a column, and how a plain value of Avro becomes one of it; None where it is one."""

    type: pa.DataType
    read: Callable[[Any], Any] | None = None


def opened(
    body: Body, key: str, columns: Collection[str] | None = None, alone: str = ""
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The columns of a file, and their rows, of those columns that are asked for.

    Args:
        columns: that are read, of those that there are; None for all.
        alone: what the one column is called of a file whose datums are no records of columns.

    Raises:
        UnreadableError: it is none; also while it is read, after the batches before.
    """
    import fastavro

    try:
        stream = io.BytesIO(body) if isinstance(body, bytes) else body
        header: Any = fastavro.schemaless_reader(stream, _HEADER, None)
        schema = json.loads(header["meta"]["avro.schema"])
        if alone:
            # A record of one field is the field, byte for byte.
            schema = {"type": "record", "name": "s3lake_alone", "fields": [{"name": alone, "type": schema}]}
        if header["magic"] != b"Obj\x01" or schema["type"] != "record":
            raise ValueError("its schema is no record")
        # The library makes dates of numbers, and Python has none after the year 9999; Arrow takes the numbers.
        header["meta"]["avro.schema"] = json.dumps(without_logical_types(schema)).encode()
        plain = io.BytesIO()
        fastavro.schemaless_writer(plain, _HEADER, header)
        rows = fastavro.reader(io.BufferedReader(_Joined(io.BytesIO(plain.getvalue()), stream), _BLOCK))
    except Exception as error:  # whatever broken bytes lead to
        raise UnreadableError(f"{key} is no Avro file: {error!r}") from None
    named: dict[str, _Column] = {}
    every = {field["name"]: _column(field["type"], named) for field in schema["fields"]}
    asked = {name: column for name, column in every.items() if columns is None or name in columns}
    return _schema(every), _batches(rows, asked, key)


def _schema(columns: Mapping[str, _Column]) -> pa.Schema:
    return pa.schema([(name, column.type) for name, column in columns.items()])


def _batches(rows: Iterable[Any], columns: Mapping[str, _Column], key: str) -> Iterator[pa.RecordBatch]:
    def whole() -> Iterator[Any]:
        try:
            yield from rows
        except Exception as error:  # whatever broken bytes lead to
            raise UnreadableError(f"{key} cannot be read to its end: {error!r}") from None

    for some in in_batches(whole()):
        try:
            yield _batch(some, columns)
        except (ValueError, ArithmeticError) as error:  # of values that are none of their logical types
            raise UnreadableError(f"{key} has a value that is none of its column: {error}") from None


def _batch(rows: Sequence[Any], columns: Mapping[str, _Column]) -> pa.RecordBatch:
    if not columns:
        return pa.record_batch([pa.nulls(len(rows))], names=[""]).select([])
    schema = _schema(columns)
    cells = ([_cell(row[name], column.read) for row in rows] for name, column in columns.items())
    return pa.record_batch(list(map(pa.array, cells, schema.types)), schema=schema)


def _cell(value: Any, read: Callable[[Any], Any] | None) -> Any:
    return value if value is None or read is None else read(value)


def _column(schema: Any, named: dict[str, _Column]) -> _Column:
    if isinstance(schema, list):
        others = [branch for branch in schema if branch != "null"]
        return _column(others[0], named) if len(others) == 1 else _Column(pa.null())
    if isinstance(schema, str):
        return named[schema] if schema in named else _Column(_ARROW[schema])
    column = _complex(schema, named)
    if "name" in schema:
        named[schema["name"]] = named[f"{schema.get('namespace', '')}.{schema['name']}"] = column
    return column


def _complex(schema: dict[str, Any], named: dict[str, _Column]) -> _Column:
    logical = schema.get("logicalType")
    match schema["type"]:
        case "record":
            fields = {field["name"]: _column(field["type"], named) for field in schema["fields"]}
            return _Column(
                pa.struct(_schema(fields)),
                lambda row: {name: _cell(row[name], one.read) for name, one in fields.items()},
            )
        case "array":
            item, read = _column(schema["items"], named)
            return _Column(pa.list_(item), read and (lambda items: [_cell(one, read) for one in items]))
        case "map":
            value, read = _column(schema["values"], named)
            entries = pa.map_(pa.string(), value)
            return _Column(entries, lambda pairs: [(name, _cell(one, read)) for name, one in pairs.items()])
        case "bytes" | "fixed" if logical == "decimal":
            exact = pa.decimal128(min(MOST_DIGITS, schema["precision"]), schema.get("scale", 0))
            return _Column(exact, lambda value: _scaled(value, exact.scale))
        case "fixed" | "string" if logical == "uuid":
            return _Column(pa.binary(16), lambda value: value if isinstance(value, bytes) else UUID(value).bytes)
        case dict() | list():
            return _column(schema["type"], named)
        case name if name in named:
            return named[name]
        case name:
            return _Column(_LOGICAL.get((name, str(logical)), _ARROW[name]))


def _scaled(unscaled: bytes, scale: int) -> Decimal:
    number = int.from_bytes(unscaled, "big", signed=True)
    return Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -scale))


def without_logical_types(schema: Any) -> Any:
    """A schema in which times are numbers."""
    if isinstance(schema, dict):
        return {
            name: without_logical_types(part) for name, part in schema.items() if name not in ("logicalType", "default")
        }
    return list(map(without_logical_types, schema)) if isinstance(schema, list) else schema
