"""Files of columns: what kind each column is, and its values as Python has them, times as numbers."""

import base64
import binascii
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from s3lake.verify import projection, texts
from s3lake.verify.projection import Kind
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
_AVRO_KINDS: dict[str, Kind] = {
    "boolean": "bool",
    "int": "int32",
    "long": "int64",
    "float": "float",
    "double": "double",
    "string": "string",
    "enum": "string",
    "bytes": "binary",
    "fixed": "binary",
    "null": "null",
}
_AVRO_LOGICAL: dict[tuple[str, str], Kind] = {
    ("int", "date"): "date",
    ("int", "time-millis"): "time",
    ("long", "timestamp-millis"): "timestamp",
    ("string", "uuid"): "uuid",
    ("fixed", "uuid"): "uuid",
}


class Table(NamedTuple):
    """A file of columns.

    Attributes:
        kinds: name -> kind, in the file's order.
        batches: the columns of some rows at a time.
    """

    kinds: dict[str, Kind]
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
    kinds = {field.name: _arrow_kind(field.type) for field in schema}
    return Table(kinds, _parquet_batches(file, [_numeric(field.type) for field in schema], key))


def _parquet_batches(file: Any, types: Sequence[Any], key: str) -> Iterator[list[list[Any]]]:
    try:
        for batch in file.iter_batches(batch_size=_ROWS):
            columns = zip(batch.columns, types, strict=True)
            yield [(column if column.type == kind else column.cast(kind)).to_pylist() for column, kind in columns]
    except (pa.ArrowException, OSError) as error:
        raise Unreadable(f"{key} cannot be read to its end: {error}") from None


def _arrow_kind(kind: Any) -> Kind:
    of = pa.types
    if of.is_struct(kind):
        return {"struct": {field.name: _arrow_kind(field.type) for field in kind}}
    if of.is_map(kind):
        return {"map": _arrow_kind(kind.item_type)}
    if of.is_list(kind) or of.is_large_list(kind):
        return {"list": _arrow_kind(kind.value_type)}
    if of.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    tests = (
        (of.is_boolean, "bool"),
        (of.is_int64, "int64"),
        (of.is_integer, "int32"),
        (of.is_float64, "double"),
        (of.is_floating, "float"),
        (of.is_string, "string"),
        (of.is_large_string, "string"),
        (of.is_binary, "binary"),
        (of.is_large_binary, "binary"),
        (of.is_date, "date"),
        (of.is_time, "time"),
        (of.is_timestamp, "timestamp"),
        (lambda one: one == pa.uuid() or one == pa.binary(16), "uuid"),
        (of.is_null, "null"),
    )
    return next((name for test, name in tests if test(kind)), str(kind))


def _numeric(kind: Any) -> Any:
    """The type without times and UUIDs: Python has no dates after the year 9999."""
    of = pa.types
    if of.is_struct(kind):
        return pa.struct([field.with_type(_numeric(field.type)) for field in kind])
    if of.is_map(kind):
        return pa.map_(kind.key_type, _numeric(kind.item_type))
    if of.is_list(kind):
        return pa.list_(kind.value_field.with_type(_numeric(kind.value_type)))
    if of.is_timestamp(kind) and kind.unit == "ms":
        return pa.int64()
    if kind in (pa.date32(), pa.time32("ms")):
        return pa.int32()
    return kind


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
    kinds = {field["name"]: _avro_kind(field["type"], named) for field in schema["fields"]}
    return Table(kinds, _avro_batches(reader, kinds, key))


def _avro_batches(reader: Any, kinds: Mapping[str, Kind], key: str) -> Iterator[list[list[Any]]]:
    columns = [(name, _of_avro(kind)) for name, kind in kinds.items()]

    def turned(rows: list[Any]) -> list[list[Any]]:
        found = [([row[name] for row in rows], read) for name, read in columns]
        return [
            values if read is None else [None if one is None else read(one) for one in values] for values, read in found
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


def _avro_kind(schema: Any, named: dict[str, Any]) -> Kind:
    if isinstance(schema, list):
        others = [one for one in schema if one != "null"]
        return _avro_kind(others[0], named) if len(others) == 1 else "union"
    if isinstance(schema, str):
        return named.get(schema) or _AVRO_KINDS.get(schema, schema)
    kind = _avro_type(schema, named)
    if "name" in schema:
        named[schema["name"]] = kind
        named[f"{schema.get('namespace', '')}.{schema['name']}"] = kind
    return kind


def _avro_type(schema: dict[str, Any], named: dict[str, Any]) -> Kind:
    match schema["type"]:
        case "record":
            return {"struct": {field["name"]: _avro_kind(field["type"], named) for field in schema["fields"]}}
        case "array":
            return {"list": _avro_kind(schema["items"], named)}
        case "map":
            return {"map": _avro_kind(schema["values"], named)}
        case "bytes" | "fixed" if schema.get("logicalType") == "decimal":
            return f"decimal({schema['precision']},{schema.get('scale', 0)})"
        case dict() | list():
            return _avro_kind(schema["type"], named)
    logical = _AVRO_LOGICAL.get((schema["type"], schema.get("logicalType", "")))
    return logical or named.get(schema["type"]) or _AVRO_KINDS.get(schema["type"], schema["type"])


def _of_avro(kind: Kind) -> Callable[[Any], Any] | None:
    """Decimals as such; everything else is what Avro's reader gives."""
    if isinstance(kind, str):
        if not kind.startswith("decimal"):
            return None
        scale = int(kind.removesuffix(")").partition(",")[2])
        return lambda value: projection.scaled(int.from_bytes(value, "big", signed=True), scale)
    if "struct" in kind:
        fields = [(name, read) for name, inner in kind["struct"].items() if (read := _of_avro(inner))]
        if not fields:
            return None
        return lambda value: value | {name: read(value[name]) for name, read in fields if value[name] is not None}
    (inner,) = kind.values()
    element = _of_avro(inner)
    if element is None:
        return None
    if "map" in kind:
        return lambda value: {name: None if one is None else element(one) for name, one in value.items()}
    return lambda value: [None if one is None else element(one) for one in value]


def _csv(shape: Shape, body: bytes, key: str) -> Table:
    frame = shape.frame or LINES
    records = texts.split(texts.blocks(body, key, shape.codec), frame, key)
    rows = texts.csv_rows(records, frame.between, key)
    known: dict[str, Kind] = dict(shape.columns or {})
    names, first = list(known), next(rows, [])
    if shape.header:
        if not first:
            raise Unreadable(f"{key} has no header line")
        names, first = [(field or b"").decode(errors="replace") for field in first[0]], first[1:]
    if shape.value in ("string", "bytes"):
        known = {"value": "string" if shape.value == "string" else "binary"}
        names = names or ["value"]
    if not names:
        names = [f"column {number}" for number in range(len(first[0]) if first else 0)]
    kinds = {name: known.get(name, "string") for name in names}
    return Table(
        kinds, _csv_batches(rows, first, [_CSV.get(str(kind).partition("(")[0], _text) for kind in kinds.values()], key)
    )


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


def _csv_whole(kind: str) -> Callable[[str], Any]:
    read = projection.of_json(kind)
    assert read is not None
    # Years that have no text are a number.
    return lambda field: int(field) if re.fullmatch(r"-?\d+", field) else read(field)


_CSV: dict[str, Callable[[str], Any]] = {
    "bool": {"true": True, "false": False}.__getitem__,
    "int32": _csv_integer,
    "int64": _csv_integer,
    "float": float,
    "double": float,
    "decimal": Decimal,
    "binary": _csv_bytes,
    "date": _csv_whole("date"),
    "time": _csv_whole("time"),
    "timestamp": _csv_whole("timestamp"),
    "string": _text,
    "uuid": str,
}
_TEXTS = (_text, _csv_bytes)
