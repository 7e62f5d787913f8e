"""Values with the id of their JSON Schema before them, as rows of a table: payloads of Connect, with its schemas."""

from __future__ import annotations

import decimal
import functools
from collections import Counter
from collections.abc import Callable

import msgspec
import pyarrow as pa

from s3lake.convert import cells
from s3lake.convert.converters import ReadRequest
from s3lake.convert.gate import Refusals
from s3lake.convert.schemas import Schemas
from s3lake.convert.wire import HEADER, read_schema_ids
from s3lake.schema import connect, json_schema
from s3lake.schema.connect import Schema, SchemaError
from s3lake.schema.registry import Connection, Registered, UnknownSchema, client

_Read = Callable[[bytes, list[str]], bytes]
"""A value as its columns have it; adds the paths of what is left out."""

_decode = msgspec.json.Decoder(float_hook=decimal.Decimal).decode
_encode = msgspec.json.Encoder(decimal_format="number").encode


def read(raw: pa.BinaryArray, request: ReadRequest) -> tuple[cells.Column, Refusals]:
    """Return texts of one line; for a table, if there is a registry, what the schema of each says of it.

    Raises:
        TransientError: the registry did not answer.
        ConfigurationError: it refused.
    """
    numbers, refused = read_schema_ids(raw)
    pairs = zip(raw.to_pylist(), numbers.tolist(), strict=True)
    data = [value[HEADER:] if value is not None and number >= 0 else None for value, number in pairs]
    lines, unreadable = cells.json_lines(pa.array(data, pa.binary()))
    refused |= unreadable
    registry = request.registry
    if not request.tabular or registry is None:
        return cells.Column("json_schema", lines), refused
    texts = lines.to_pylist()
    schemas: list[Schema | None] = [None] * len(texts)
    left_out: Counter[str] = Counter()
    for row, (text, number) in enumerate(zip(texts, numbers.tolist(), strict=True)):
        if text is None or row in refused:
            continue
        reader = _reader(registry, number)
        if isinstance(reader, str):
            refused[row] = f"schema id {number}: {reader}"
        elif reader is not None:
            schemas[row], read_payload = reader
            paths: list[str] = []
            try:
                texts[row] = read_payload(text, paths)
            except msgspec.DecodeError as error:
                refused[row] = f"the data does not fit schema id {number}: {error}"
            else:
                texts[row] = None if texts[row] == b"null" else texts[row]
                left_out.update(set(paths))
    return cells.Column("json_schema", pa.array(texts, pa.binary()), Schemas.of(schemas), left_out), refused


def _reader(registry: Connection, number: int) -> tuple[Schema, _Read] | str | None:
    try:
        registered = client(registry).schema(number)
    except UnknownSchema as error:
        return str(error)
    return _compiled(registered.kind, registered.text, tuple(registered.references.items()))


@functools.lru_cache(maxsize=4096)
def _compiled(kind: str, text: str, references: tuple[tuple[str, str], ...]) -> tuple[Schema, _Read] | str | None:
    """A schema and what reads its values; None where it says nothing of them, and the reason where it is none."""
    registered = Registered(kind, text, dict(references))
    if registered.kind != "JSON":
        return f"it is a schema of {registered.kind}, not of JSON: set the converter that fits"
    try:
        part = json_schema.told(registered.text, registered.references)
    except SchemaError as error:
        return str(error)
    if part is None:
        return None
    compiled = connect.compiled(msgspec.json.encode(part.document), tabular=True)
    if isinstance(compiled, str):
        return compiled
    schema, fitting = compiled
    adapt, plain = part.adapt, part.plain

    def read(value: bytes, left_out: list[str]) -> bytes:
        if plain:
            try:
                return fitting(value)
            except msgspec.ValidationError:
                if adapt is None:
                    raise
        assert adapt is not None, "what is not plain is adapted"
        return fitting(_encode(adapt(_decode(value), "", left_out)))

    return schema, read
