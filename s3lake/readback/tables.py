"""Files of columns as record batches of the columns that are asked for."""

from __future__ import annotations

import base64
import io
import json
import uuid
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from s3lake.readback.shape import STAMP, Frame

_ROWS = 10_000
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
_LOGICAL = {"timestamp-millis": pa.timestamp("ms", "UTC"), "date": pa.date32(), "time-millis": pa.time32("ms")}
_AVRO_HEADER = {
    "type": "record",
    "name": "header",
    "fields": [
        {"name": "magic", "type": {"type": "fixed", "name": "magic", "size": 4}},
        {"name": "meta", "type": {"type": "map", "values": "bytes"}},
        {"name": "sync", "type": {"type": "fixed", "name": "sync", "size": 16}},
    ],
}
_ZONE = r"(Z|[+-]\d\d:?\d\d)$"


class Unlike(ValueError):
    """A file's column has a type that does not become the sink's without loss."""


def parquet(body: bytes, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of a Parquet file."""
    with pq.ParquetFile(pa.BufferReader(body)) as file:
        for batch in file.iter_batches(batch_size=_ROWS):
            yield fitted(batch, schema)


def avro(body: bytes, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of an Avro file."""
    import fastavro

    stream = io.BytesIO(body)
    header: Any = fastavro.schemaless_reader(stream, _AVRO_HEADER, None)
    written = json.loads(header["meta"]["avro.schema"])
    # The library makes dates of numbers, and Python has none after the year 9999; Arrow takes the numbers.
    header["meta"]["avro.schema"] = json.dumps(_without_logical_types(written)).encode()
    plain = io.BytesIO()
    fastavro.schemaless_writer(plain, _AVRO_HEADER, header)
    plain.write(stream.read())
    plain.seek(0)
    named: dict[str, Any] = {}
    columns = [(field["name"], *_avro_column(field["type"], named)) for field in written["fields"]]
    columns = [column for column in columns if column[0] in schema.names]
    rows: list[Any] = []
    for row in fastavro.reader(plain):
        rows.append(row)
        if len(rows) == _ROWS:
            yield _turned(rows, columns, schema)
            rows = []
    yield _turned(rows, columns, schema)


def csv(text: bytes, header: bool, names: Sequence[str], frame: Frame, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of a CSV file (RFC 4180), without what stands before the first and after the last."""
    from pyarrow import csv as reader

    if frame.between not in (b"\n", b"\r\n"):
        text = b"\n".join(_records(text, frame.between))
    if header:
        first = next(iter(_records(text, b"\n")))
        names = reader.read_csv(io.BytesIO(first + b"\n"), parse_options=_parsing(reader)).column_names
        text = text[len(first) :].removeprefix(b"\r").removeprefix(b"\n")
    if not names:
        names = schema.names
    if not text and header and len(names) > 1:
        return
    table = reader.read_csv(
        io.BytesIO(text + b"\n"),
        read_options=reader.ReadOptions(column_names=list(names), use_threads=False),
        parse_options=_parsing(reader),
        convert_options=reader.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            null_values=[""],
        ),
    )
    for batch in table.to_batches(max_chunksize=_ROWS):
        columns = [
            _of_text(batch.column(field.name), field.type) if field.name in names else _nulls(batch, field)
            for field in schema
        ]
        yield pa.record_batch(columns, schema=schema)


def fitted(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch in the columns that are asked for: those that it lacks are null."""
    columns = []
    for field in schema:
        if field.name not in batch.schema.names:
            columns.append(_nulls(batch, field))
            continue
        column = batch.column(field.name)
        try:
            columns.append(fit(column, field.type))
        except (Unlike, pa.ArrowInvalid):
            raise Unlike(f"column {field.name!r} is {column.type}, the sink's columns have {field.type}") from None
    return pa.record_batch(columns, schema=schema)


def fit(column: pa.Array, target: pa.DataType) -> pa.Array:
    """A file's column in the sink's present type: integers widened, fields that came later null."""
    of = pa.types
    if column.type == target:
        return column
    if of.is_struct(target) and of.is_struct(column.type):
        fields = [
            fit(pc.struct_field(column, field.name), field.type)
            if column.type.get_field_index(field.name) >= 0
            else pa.nulls(len(column), field.type)
            for field in target
        ]
        return pa.StructArray.from_arrays(fields, fields=list(target), mask=column.is_null())
    mask = column.is_null() if column.null_count else None
    if of.is_map(target) and of.is_map(column.type):
        items = fit(column.items, target.item_type)
        return pa.MapArray.from_arrays(column.offsets, column.keys, items, mask=mask).cast(target)
    if of.is_list(target) and of.is_list(column.type):
        return pa.ListArray.from_arrays(column.offsets, fit(column.values, target.value_type), mask=mask).cast(target)
    if of.is_string(target) and column.type in (pa.uuid(), pa.binary(16)):
        texts = [
            None if one is None else str(one if isinstance(one, uuid.UUID) else uuid.UUID(bytes=one))
            for one in column.to_pylist()
        ]
        return pa.array(texts, pa.string())
    if not _widens(column.type, target):
        raise Unlike
    return column.cast(
        target, safe=not of.is_floating(target)
    )  # the same rounding that JSON's integers get in a column of doubles


def _widens(narrow: pa.DataType, wide: pa.DataType) -> bool:
    """Whether every value of a type is one of the other, but for JSON's integers in a column of doubles."""
    of = pa.types
    if of.is_null(narrow):
        return True
    if of.is_floating(wide):
        return bool(of.is_integer(narrow) or of.is_floating(narrow)) and wide.bit_width >= min(narrow.bit_width, 64)
    if of.is_integer(wide):
        return bool(of.is_integer(narrow)) and wide.bit_width >= narrow.bit_width
    if of.is_string(wide):
        return bool(of.is_time(narrow))
    return bool((of.is_timestamp(narrow) and of.is_timestamp(wide)) or (of.is_decimal(narrow) and of.is_decimal(wide)))


def _is_number(texts: pa.Array) -> pa.Array:
    return pc.match_substring_regex(texts, r"^-?\d+$")


def _moment(text: str | None, target: pa.DataType) -> int | None:
    if text is None or text.lstrip("-").isdigit():
        return None if text is None else int(text)
    return int(pa.scalar(text if text.endswith("Z") else f"{text}Z").cast(target).value)


def _nulls(batch: pa.RecordBatch, field: pa.Field) -> pa.Array:
    return pa.nulls(batch.num_rows, field.type)


def _turned(rows: Sequence[Any], columns: Sequence[Any], schema: pa.Schema) -> pa.RecordBatch:
    arrays = {
        name: pa.array([None if row[name] is None else read(row[name]) for row in rows], target)
        for name, target, read in columns
    }
    given = pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays))
    if not arrays:
        return pa.record_batch([pa.nulls(len(rows), field.type) for field in schema], schema=schema)
    return fitted(given, schema)


def _avro_column(schema: Any, named: dict[str, Any]) -> tuple[pa.DataType, Callable[[Any], Any]]:
    """The type of a column, and how Avro's plain value becomes one of it."""
    if isinstance(schema, list):
        others = [one for one in schema if one != "null"]
        return _avro_column(others[0], named) if len(others) == 1 else (pa.null(), _same)
    if isinstance(schema, str):
        return named[schema] if schema in named else (_ARROW[schema], _same)
    column = _avro_type(schema, named)
    if "name" in schema:
        named[schema["name"]] = named[f"{schema.get('namespace', '')}.{schema['name']}"] = column
    return column


def _avro_type(schema: dict[str, Any], named: dict[str, Any]) -> tuple[pa.DataType, Callable[[Any], Any]]:
    logical = schema.get("logicalType")
    match schema["type"]:
        case "record":
            fields = {field["name"]: _avro_column(field["type"], named) for field in schema["fields"]}
            target = pa.struct([(name, one) for name, (one, _) in fields.items()])
            return target, lambda value: {name: _each(value[name], read) for name, (_, read) in fields.items()}
        case "array":
            element, read = _avro_column(schema["items"], named)
            return pa.list_(element), lambda value: [_each(one, read) for one in value]
        case "map":
            element, read = _avro_column(schema["values"], named)
            return pa.map_(pa.string(), element), lambda value: [
                (name, _each(one, read)) for name, one in value.items()
            ]
        case "bytes" | "fixed" if logical == "decimal":
            scale = schema.get("scale", 0)
            target = pa.decimal128(min(38, schema["precision"]), scale)
            return target, lambda value: Decimal((0, (0,), 0)) if not value else _unscaled(value, scale)
        case "fixed" if logical == "uuid":
            return pa.string(), lambda value: str(uuid.UUID(bytes=value))
        case dict() | list():
            return _avro_column(schema["type"], named)
    if schema["type"] in named:
        return named[schema["type"]]  # type: ignore[no-any-return]
    return _LOGICAL.get(str(logical), _ARROW[schema["type"]]), _same


def _unscaled(value: bytes, scale: int) -> Decimal:
    number = int.from_bytes(value, "big", signed=True)
    return Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -scale))


def _each(value: Any, read: Callable[[Any], Any]) -> Any:
    return None if value is None else read(value)


def _same(value: Any) -> Any:
    return value


def _without_logical_types(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {
            name: _without_logical_types(one) for name, one in schema.items() if name not in ("logicalType", "default")
        }
    return list(map(_without_logical_types, schema)) if isinstance(schema, list) else schema


def _parsing(reader: Any) -> Any:
    return reader.ParseOptions(newlines_in_values=True, ignore_empty_lines=False)


def _records(text: bytes, between: bytes) -> Iterator[bytes]:
    """Records of a CSV file: inside of quotes the separator is text."""
    pieces: list[bytes] = []
    quotes = 0
    for piece in text.split(between):
        pieces.append(piece)
        quotes += piece.count(b'"')
        if quotes % 2 == 0:
            yield between.join(pieces)
            pieces, quotes = [], 0


def _of_text(texts: pa.Array, target: pa.DataType) -> pa.Array:
    of = pa.types
    if not of.is_string(target) and not of.is_binary(target):  # null in a row of one column, which is no empty line
        texts = pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)
    if of.is_timestamp(target):
        moments = pa.timestamp("ms", "UTC")
        if pc.any(_is_number(texts)).as_py():  # years that have no text
            return pa.array([_moment(one, moments) for one in texts.to_pylist()], moments).cast(STAMP)
        zoned = pc.match_substring_regex(texts, _ZONE)
        texts = pc.if_else(zoned, texts, pc.binary_join_element_wise(texts, "Z", ""))
        return texts.cast(moments).cast(STAMP)
    if of.is_binary(target):
        decoded = [None if one is None else base64.b64decode(one, validate=True) for one in texts.to_pylist()]
        return pa.array(decoded, pa.binary())
    return texts if of.is_string(target) else texts.cast(target)
