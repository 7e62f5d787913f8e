"""Keys and values with the id of their schema before them: Confluent's wire format.

A zero byte, the id in four bytes, the data. Whatever a record's data does to its reader is that record's error; a
registry that does not answer is nobody's, and stops the batch.
"""

from __future__ import annotations

import functools
import io
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from s3lake.convert import avro_schema
from s3lake.convert.connect import Schema, SchemaError
from s3lake.convert.gate import Refusals
from s3lake.registry.client import Connection, Registered, UnknownSchema, client

if TYPE_CHECKING:
    from s3lake.sink import Registry

_HEADER = 5
_encode = msgspec.json.Encoder(decimal_format="number").encode


@dataclass(frozen=True)
class Read:
    """Keys or values that were read; refused rows hold nothing.

    Attributes:
        texts: as JSON, in one line; None for null.
        objects: the same as Python has them: decimals as such, bytes as bytes, dates and times as numbers.
        schemas: the schema of each, None for null.
    """

    texts: list[bytes | None]
    objects: list[Any]
    schemas: list[Schema | None]
    refused: Refusals


@dataclass(frozen=True)
class Unframing:
    """Makes keys and values of a batch plain JSON, for what has to look at them before conversion does.

    Attributes:
        converters: column -> avro or json_schema.
    """

    converters: tuple[tuple[str, str], ...]
    registry: Connection | None

    @classmethod
    def of(cls, converters: tuple[tuple[str, str], ...], registry: Registry | None) -> Unframing:
        """The same with the registry of a configuration."""
        return cls(converters, Connection.of(registry) if registry else None)

    def __call__(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, Refusals]:
        """The batch, and the rows that cannot be read."""
        refused: Refusals = {}
        for name, converter in self.converters:
            raw = batch.column(name)
            if converter == "json_schema":
                data, wrong = unframed(raw)
            else:
                assert self.registry is not None, "the sink model asks for one"
                found = avro(raw, self.registry, tabular=False)
                data, wrong = pa.array(found.texts, pa.binary()), found.refused
            refused |= {row: reason if name == "value" else f"{name}: {reason}" for row, reason in wrong.items()}
            batch = batch.set_column(batch.schema.get_field_index(name), name, data)
        return batch, refused


@dataclass(frozen=True)
class _Reader:
    """How the data of one schema is read."""

    schema: Schema
    node: avro_schema.Node
    parsed: Any


def unframed(raw: pa.BinaryArray) -> tuple[pa.BinaryArray, Refusals]:
    """The data without what stands before it; refused rows are null."""
    data: list[bytes | None] = []
    refused: Refusals = {}
    for row, value in enumerate(raw.to_pylist()):
        reason = _not_framed(value) if value is not None else None
        if reason:
            refused[row] = reason
        data.append(None if reason or value is None else value[_HEADER:])
    return pa.array(data, pa.binary()), refused


def avro(raw: pa.BinaryArray, registry: Connection, *, tabular: bool) -> Read:
    """Avro of a batch.

    Args:
        raw: as Kafka has it.
        registry: where the schemas are.
        tabular: whether it becomes rows of a table.

    Raises:
        TransientError: the registry did not answer.
        ConfigurationError: it refused.
    """
    from fastavro import schemaless_reader

    total = len(raw)
    found = Read([None] * total, [None] * total, [None] * total, {})
    readers: dict[bytes, _Reader | str] = {}
    for row, value in enumerate(raw.to_pylist()):
        if value is None:
            continue
        if len(value) < _HEADER or value[0]:
            found.refused[row] = _not_framed(value) or ""
            continue
        mark = value[1:_HEADER]
        reader = readers.get(mark)
        if reader is None:
            reader = readers[mark] = _reader(registry, int.from_bytes(mark, "big"), tabular)
        if isinstance(reader, str):
            found.refused[row] = reader
            continue
        stream = io.BytesIO(value)
        stream.seek(_HEADER)
        try:
            datum = schemaless_reader(stream, reader.parsed, None)
            if left := len(value) - stream.tell():
                raise ValueError(f"{left} bytes are left after it")
            if reader.node.mend is not None:
                datum = reader.node.mend(datum)
            text = _encode(datum)
            if reader.node.floats and b"null" in text:
                text = _encode(_named_numbers(datum))
        except Exception as error:  # of whichever kind: fastavro has no error of its own for what it cannot read
            found.refused[row] = _misfit(value, error)
            continue
        if datum is None:
            continue
        found.texts[row], found.objects[row], found.schemas[row] = text, datum, reader.schema
    return found


def _not_framed(value: bytes) -> str | None:
    if len(value) < _HEADER:
        return f"{len(value)} bytes are too few: a zero byte and the schema's id in four are expected"
    if value[0]:
        return (
            f"the first byte is 0x{value[0]:02x}, not 0x00, so it was not written with a Schema Registry's serializer: "
            "look which converter fits"
        )
    return None


def _misfit(value: bytes, error: Exception) -> str:
    number = int.from_bytes(value[1:_HEADER], "big")
    said = str(error) or "it ends too early" if isinstance(error, EOFError) else f"{type(error).__name__}: {error}"
    return f"the data does not fit schema id {number}: {said[:200]}"


def _reader(registry: Connection, number: int, tabular: bool) -> _Reader | str:
    try:
        registered = client(registry).schema(number)
    except UnknownSchema as error:
        return str(error)
    found = _compiled(registered.kind, registered.text, tuple(registered.references.items()), tabular)
    return f"schema id {number}: {found}" if isinstance(found, str) else found


@functools.lru_cache(maxsize=4096)
def _compiled(kind: str, text: str, references: tuple[tuple[str, str], ...], tabular: bool) -> _Reader | str:
    from fastavro import parse_schema

    registered = Registered(kind, text, dict(references))
    if registered.kind != "AVRO":
        return f"it is a schema of {registered.kind}, not of AVRO: set the converter that fits"
    try:
        name, node = avro_schema.compiled(registered.text, registered.references, tabular=tabular)
        return _Reader(Schema(name, node.kind or {"struct": {}}), node, parse_schema(node.plain))
    except SchemaError as error:
        return str(error)
    except RecursionError:
        return "it is nested too deeply"
    except Exception as error:  # fastavro's several kinds for what is no schema
        return f"it is none of Avro: {type(error).__name__}: {error}"[:300]


def _named_numbers(value: Any) -> Any:
    """Numbers that JSON does not have as texts, as Connect's JSON converter writes them."""
    match value:
        case float() if not math.isfinite(value):
            return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
        case dict():
            return {name: _named_numbers(one) for name, one in value.items()}
        case list():
            return list(map(_named_numbers, value))
    return value
