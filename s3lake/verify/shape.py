"""What a record looks like in a file, worked out anew from the formats' description and not with the writer's code.

Both sides come to the same digests: `expected` from values as Kafka has them, `line_rows` and `table_rows` from what
an object holds.
"""

import base64
import binascii
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from s3lake.verify import digest, projection

Values = Sequence[bytes | None]
Expected = Callable[[Values], list[bytes]]

_KAFKA, _FILE = b"kafka", b"file"
_text = msgspec.json.Decoder(str | None)
_decode = msgspec.json.Decoder().decode
_pack = msgspec.msgpack.Encoder().encode


def expected(format: str, converter: str, schema: Any = None) -> Expected:
    """How records of a sink are digested; `schema` is the Parquet files' own, None where there is no file."""
    if format == "parquet" and schema is None:
        return _nowhere
    if format == "parquet" and converter == "json":
        return _objects(schema)
    if format == "parquet" or (format == "json" and converter != "json"):
        return _bare
    return _lines(b"null" if format == "json" else b"")


def line_rows(format: str, converter: str) -> Callable[[Sequence[bytes]], list[bytes]]:
    """How lines of a text format are digested."""
    if format == "json" and converter != "json":
        unquote = _text_of if converter == "string" else _bytes_of
        return lambda lines: [unquote(line) for line in lines]
    return lambda lines: [digest.of(line) for line in lines]


def table_rows(converter: str, schema: Any) -> Callable[[Any], list[bytes]]:
    """How rows of a record batch are digested."""
    if converter != "json":
        return lambda batch: [_bare_row(value) for value in batch.column(0).to_pylist()]
    columns = [projection.of_type(field.type) for field in schema]

    def rows(batch: Any) -> list[bytes]:
        found = [
            _projected(column.to_pylist(), project) for column, project in zip(batch.columns, columns, strict=True)
        ]
        return [digest.of(_pack(row)) for row in zip(*found, strict=True)]

    return rows


def wrong_schema(converter: str, schema: Any) -> str | None:
    """What is wrong with a Parquet file's schema, if that can be told without its records."""
    if converter == "json":
        return None
    kind = pa.string() if converter == "string" else pa.binary()
    fits = schema.names == ["value"] and schema.field(0).type == kind
    return None if fits else f"its columns are {_named(schema)}, not one column value of type {kind}"


def raw(value: bytes | None) -> bytes:
    """The digest of a value as it is."""
    return digest.NULL if value is None else digest.of(value)


def _lines(null: bytes) -> Expected:
    def of_line(value: bytes | None) -> bytes:
        if value is None:
            return digest.of(null)
        if b"\n" in value or b"\r" in value:
            value = value.replace(b"\n", b" ").replace(b"\r", b" ")
        return digest.of(value)

    return lambda values: [of_line(value) for value in values]


def _bare(values: Values) -> list[bytes]:
    return [raw(value) for value in values]


def _nowhere(values: Values) -> list[bytes]:
    return [digest.unfit(value or b"", _KAFKA) for value in values]


def _objects(schema: Any) -> Expected:
    project = projection.of_fields(schema)
    nothing = digest.of(_pack([None] * len(schema.names)))

    def of_object(value: bytes | None) -> bytes:
        if value is None:
            return nothing
        try:
            row = project(_parsed(value))
            return digest.of(_pack(row)) if type(row) is list else digest.unfit(value, _KAFKA)
        except (ValueError, OverflowError, RecursionError):  # no JSON, or what no column holds
            return digest.unfit(value, _KAFKA)

    return lambda values: [of_object(value) for value in values]


def _parsed(value: bytes) -> Any:
    try:
        return _decode(value)
    except msgspec.DecodeError:
        return json.loads(value)  # takes the few that msgspec does not: numbers beyond a double, lone surrogates


def _projected(values: list[Any], project: projection.Projection | None) -> Iterable[Any]:
    return values if project is None else [None if value is None else project(value) for value in values]


def _text_of(line: bytes) -> bytes:
    try:
        text = _text.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return digest.unfit(line, _FILE)
    return digest.NULL if text is None else digest.of(text.encode())


def _bytes_of(line: bytes) -> bytes:
    try:
        text = _text.decode(line)
        return raw(None if text is None else base64.b64decode(text, validate=True))
    except (msgspec.DecodeError, UnicodeDecodeError, binascii.Error, ValueError):
        return digest.unfit(line, _FILE)


def _bare_row(value: Any) -> bytes:
    if isinstance(value, str):
        return digest.of(value.encode())
    return raw(value) if value is None or isinstance(value, bytes) else digest.unfit(repr(value).encode(), _FILE)


def _named(schema: Any) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema) or "none"
