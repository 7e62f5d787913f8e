"""Files of columns: what kind each column is, and its values as Python has them, times as numbers."""

import base64
import binascii
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from s3lake.schema import types as schema_types
from s3lake.schema.types import UNKNOWN, Columns, List, Map, Primitive, Struct, Type, fold
from s3lake.verify import projection, texts
from s3lake.verify.shape import LINES, Shape
from s3lake.verify.texts import Unreadable

_ROWS = 10_000
_AVRO_HEADER = {
    "type": "record",
    "name": "header",
    "fields": [
        {"name": "magic", "type": {"type": "fixed", "name": "magic", "size": 4}},
        {"name": "meta", "type": {"type": "map", "values": "bytes"}},
        {"name": "sync", "type": {"type": "fixed", "name": "sync", "size": 16}},
    ],
}
_AVRO: dict[str, Type] = {
    "boolean": Primitive.BOOL,
    "int": Primitive.INT32,
    "long": Primitive.INT64,
    "float": Primitive.FLOAT,
    "double": Primitive.DOUBLE,
    "string": Primitive.STRING,
    "enum": Primitive.STRING,
    "bytes": Primitive.BINARY,
    "fixed": Primitive.BINARY,
}
_AVRO_LOGICAL: dict[tuple[str, str], Type] = {
    ("int", "date"): Primitive.DATE,
    ("int", "time-millis"): Primitive.TIME,
    ("long", "timestamp-millis"): Primitive.TIMESTAMP,
    ("string", "uuid"): Primitive.UUID,
    ("fixed", "uuid"): Primitive.UUID,
}


class Table(NamedTuple):
    """A file of columns.

    Attributes:
        types: of the columns, in the file's order; unknown where there is none for them.
        batches: the columns of some rows at a time.
    """

    types: Columns
    batches: Iterator[Sequence[Sequence[Any]]]


def opened(shape: Shape, body: bytes, key: str) -> Table:
    """A file of columns.

    Raises:
        Unreadable: it is none of its format; also while its batches are read.
    """
    if shape.format == "parquet":
        return _parquet(body, key)
    return _avro(body, key) if shape.format == "avro" else _csv(shape, body, key)


def _parquet(body: bytes, key: str) -> Table:
    try:
        file = pq.ParquetFile(pa.BufferReader(body))
    except (pa.ArrowException, OSError) as error:
        raise Unreadable(f"{key} is no Parquet file: {error}") from None
    schema = file.schema_arrow
    types = {field.name: _arrow_type(field.type) for field in schema}
    return Table(types, _parquet_batches(file, [_numeric(field.type) for field in schema], key))


def _parquet_batches(file: Any, types: Sequence[Any], key: str) -> Iterator[list[list[Any]]]:
    try:
        for batch in file.iter_batches(batch_size=_ROWS):
            columns = zip(batch.columns, types, strict=True)
            yield [(column if column.type == kind else column.cast(kind)).to_pylist() for column, kind in columns]
    except (pa.ArrowException, OSError) as error:
        raise Unreadable(f"{key} cannot be read to its end: {error}") from None


def _arrow_type(arrow: Any) -> Type:
    of = pa.types
    if of.is_struct(arrow):
        return Struct({field.name: _arrow_type(field.type) for field in arrow})
    if of.is_map(arrow):
        return Map(_arrow_type(arrow.item_type))
    if of.is_list(arrow) or of.is_large_list(arrow):
        return List(_arrow_type(arrow.value_type))
    if of.is_decimal(arrow):
        return schema_types.Decimal(arrow.precision, arrow.scale)
    tests = (
        (of.is_boolean, Primitive.BOOL),
        (of.is_int64, Primitive.INT64),
        (of.is_integer, Primitive.INT32),
        (of.is_float64, Primitive.DOUBLE),
        (of.is_floating, Primitive.FLOAT),
        (of.is_string, Primitive.STRING),
        (of.is_large_string, Primitive.STRING),
        (of.is_binary, Primitive.BINARY),
        (of.is_large_binary, Primitive.BINARY),
        (of.is_date, Primitive.DATE),
        (of.is_time, Primitive.TIME),
        (of.is_timestamp, Primitive.TIMESTAMP),
        (lambda type: type == pa.uuid() or type == pa.binary(16), Primitive.UUID),
    )
    return next((primitive for test, primitive in tests if test(arrow)), UNKNOWN)


def _numeric(arrow: Any) -> Any:
    """The type without times and UUIDs: Python has no dates after the year 9999."""
    of = pa.types
    if of.is_struct(arrow):
        return pa.struct([field.with_type(_numeric(field.type)) for field in arrow])
    if of.is_map(arrow):
        return pa.map_(arrow.key_type, _numeric(arrow.item_type))
    if of.is_list(arrow):
        return pa.list_(arrow.value_field.with_type(_numeric(arrow.value_type)))
    if of.is_timestamp(arrow) and arrow.unit == "ms":
        return pa.int64()
    if arrow in (pa.date32(), pa.time32("ms")):
        return pa.int32()
    return arrow


def _avro(body: bytes, key: str) -> Table:
    import fastavro

    try:
        stream = io.BytesIO(body)
        header: Any = fastavro.schemaless_reader(stream, _AVRO_HEADER, None)
        schema = json.loads(header["meta"]["avro.schema"])
        if header["magic"] != b"Obj\x01" or schema["type"] != "record":
            raise ValueError("its schema is no record")
        # Logical types are read here and not by the library, which has no dates after the year 9999.
        header["meta"]["avro.schema"] = json.dumps(_without_logical_types(schema)).encode()
        plain = io.BytesIO()
        fastavro.schemaless_writer(plain, _AVRO_HEADER, header)
        plain.write(stream.read())
        plain.seek(0)
        reader = fastavro.reader(plain)
    except Exception as error:  # whatever broken bytes lead to
        raise Unreadable(f"{key} is no Avro file: {error!r}") from None
    named: dict[str, Any] = {}
    types = {field["name"]: _avro_type(field["type"], named) for field in schema["fields"]}
    return Table(types, _avro_batches(reader, types, key))


def _avro_batches(reader: Any, types: Columns, key: str) -> Iterator[list[list[Any]]]:
    columns = [(name, fold(type, _of_leaf, _of_list, _of_struct, _of_map)) for name, type in types.items()]

    def turned(rows: list[Any]) -> list[list[Any]]:
        columns_of_rows = [([row[name] for row in rows], read) for name, read in columns]
        return [
            values if read is None else [None if one is None else read(one) for one in values]
            for values, read in columns_of_rows
        ]

    rows: list[Any] = []
    try:
        for row in reader:
            rows.append(row)
            if len(rows) == _ROWS:
                yield turned(rows)
                rows = []
    except Exception as error:  # whatever broken bytes lead to
        if rows:
            yield turned(rows)
        raise Unreadable(f"{key} cannot be read to its end: {error!r}") from None
    if rows:
        yield turned(rows)


def _without_logical_types(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {
            name: _without_logical_types(one) for name, one in schema.items() if name not in ("logicalType", "default")
        }
    return list(map(_without_logical_types, schema)) if isinstance(schema, list) else schema


def _avro_type(schema: Any, named: dict[str, Type]) -> Type:
    if isinstance(schema, list):
        others = [branch for branch in schema if branch != "null"]
        return _avro_type(others[0], named) if len(others) == 1 else UNKNOWN
    if isinstance(schema, str):
        return named.get(schema) or _AVRO.get(schema, UNKNOWN)
    type = _avro_complex(schema, named)
    if "name" in schema:
        named[schema["name"]] = type
        named[f"{schema.get('namespace', '')}.{schema['name']}"] = type
    return type


def _avro_complex(schema: dict[str, Any], named: dict[str, Type]) -> Type:
    match schema["type"]:
        case "record":
            return Struct({field["name"]: _avro_type(field["type"], named) for field in schema["fields"]})
        case "array":
            return List(_avro_type(schema["items"], named))
        case "map":
            return Map(_avro_type(schema["values"], named))
        case "bytes" | "fixed" if schema.get("logicalType") == "decimal":
            return schema_types.Decimal(schema["precision"], schema.get("scale", 0))
        case dict() | list():
            return _avro_type(schema["type"], named)
    logical = _AVRO_LOGICAL.get((schema["type"], schema.get("logicalType", "")))
    return logical or named.get(schema["type"]) or _AVRO.get(schema["type"], UNKNOWN)


# Decimals as such; everything else is what Avro's reader gives.

_Read = Callable[[Any], Any]


def _of_leaf(leaf: Type) -> _Read | None:
    if not isinstance(leaf, schema_types.Decimal):
        return None
    scale = leaf.scale
    return lambda value: projection.scaled(int.from_bytes(value, "big", signed=True), scale)


def _of_struct(fields: dict[str, _Read | None]) -> _Read | None:
    reads = [(name, read) for name, read in fields.items() if read]
    if not reads:
        return None
    return lambda value: value | {name: read(value[name]) for name, read in reads if value[name] is not None}


def _of_list(item: _Read | None) -> _Read | None:
    return item and (lambda values: [None if value is None else item(value) for value in values])


def _of_map(item: _Read | None) -> _Read | None:
    return item and (lambda values: {name: None if value is None else item(value) for name, value in values.items()})


def _csv(shape: Shape, body: bytes, key: str) -> Table:
    frame = shape.frame or LINES
    records = texts.split(texts.blocks(body, key, shape.codec), frame, key)
    rows = texts.csv_rows(records, frame.between, key)
    recorded = dict(shape.columns or {})
    names, first = list(recorded), next(rows, [])
    if shape.header:
        if not first:
            raise Unreadable(f"{key} has no header line")
        names, first = [(field or b"").decode(errors="replace") for field in first[0]], first[1:]
    if shape.value in ("string", "bytes"):
        recorded = {"value": Primitive.STRING if shape.value == "string" else Primitive.BINARY}
        names = names or ["value"]
    if not names:
        names = [f"column {number}" for number in range(len(first[0]) if first else 0)]
    types = {name: recorded.get(name, Primitive.STRING) for name in names}
    return Table(types, _csv_batches(rows, first, list(map(_csv_read, types.values())), key))


def _csv_read(type: Type) -> Callable[[str], Any]:
    if isinstance(type, Primitive):
        return _CSV[type]
    return Decimal if isinstance(type, schema_types.Decimal) else _text


def _csv_batches(
    rows: Iterator[list[list[bytes | None]]],
    first: list[list[bytes | None]],
    reads: Sequence[Callable[[str], Any]],
    key: str,
) -> Iterator[list[list[Any]]]:
    def turned(some: Iterable[list[bytes | None]]) -> list[list[Any]]:
        columns: list[list[Any]] = [[] for _ in reads]
        for row in some:
            if len(row) != len(reads):
                raise Unreadable(f"{key}: a row has {len(row)} fields, not {len(reads)}: {row!r:.80}")
            for column, read, field in zip(columns, reads, row, strict=True):
                # A row of one null may not be an empty line, which readers skip; only a text can be empty itself.
                null = field is None or (field == b"" and len(reads) == 1 and read not in _TEXTS)
                column.append(None if field is None or null else _read(read, field))
        return columns

    yield turned(first)
    for some in rows:
        yield turned(some)


def _read(read: Callable[[str], Any], field: bytes) -> Any:
    try:
        return read(field.decode())
    except (ValueError, InvalidOperation, KeyError, binascii.Error):
        return projection.misfit(field)


def _text(field: str) -> Any:
    return field


def _csv_bytes(field: str) -> bytes:
    return base64.b64decode(field, validate=True)


def _csv_integer(field: str) -> int:
    if not re.fullmatch(r"-?\d+", field):
        raise ValueError(field)
    return int(field)


def _csv_whole(type: Primitive) -> Callable[[str], Any]:
    read = projection.of_json(type)
    assert read is not None
    # Years that have no text are a number.
    return lambda field: int(field) if re.fullmatch(r"-?\d+", field) else read(field)


_CSV: dict[Primitive, Callable[[str], Any]] = {
    Primitive.BOOL: {"true": True, "false": False}.__getitem__,
    Primitive.INT32: _csv_integer,
    Primitive.INT64: _csv_integer,
    Primitive.FLOAT: float,
    Primitive.DOUBLE: float,
    Primitive.BINARY: _csv_bytes,
    Primitive.DATE: _csv_whole(Primitive.DATE),
    Primitive.TIME: _csv_whole(Primitive.TIME),
    Primitive.TIMESTAMP: _csv_whole(Primitive.TIMESTAMP),
    Primitive.STRING: _text,
    Primitive.UUID: str,
}
_TEXTS = (_text, _csv_bytes)
