"""Protobuf messages to columns: Google's library reads each message, and columns are made of all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from google.protobuf.message import DecodeError

from s3lake.records.convert.read import arrays
from s3lake.records.convert.read.arrays import Build
from s3lake.records.convert.read.converters import ConverterRequest
from s3lake.records.convert.read.keys_and_values import Column, Gathering
from s3lake.records.convert.read.protobuf.message_columns import make_message_column
from s3lake.records.convert.read.protobuf.messages import Messages
from s3lake.records.convert.read.value_checks import Refusals
from s3lake.records.convert.read.wire_format import FramedRows, References, compile_registered, group_by_schema
from s3lake.records.schema.connect_schema import Schema, SchemaError
from s3lake.records.schema.protobuf import compiler
from s3lake.records.schema.registry import SchemaId
from s3lake.records.schema.registry.registry_connection import Connection

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor

_EXPECTED = "Confluent's serializers write them between the schema's id and the data; write values with one of them"
_MISSHAPEN = (TypeError, LookupError, AttributeError, RecursionError)


@dataclass(frozen=True)
class _MessageReader:
    """How messages of one schema are read: the bytes of one, and columns of many."""

    schema: Schema
    messages: Messages
    build: Build


def read(raw: pa.BinaryArray, request: ConverterRequest) -> tuple[Column, Refusals]:
    """Return messages as columns, and as JSON if the request asks for it, by the schema of each value.

    Each has the id of its schema before it, or all are one message of a descriptor set.

    Raises:
        TransientError: the registry did not answer.
        ConfigurationError: it refused, or the descriptor set cannot be used.
    """
    registry, values = request.schemas, raw.to_pylist()
    gathering, refused, left_out = Gathering(len(raw)), Refusals(), Counter[str]()
    if registry.descriptors:
        present = np.flatnonzero(raw.is_valid().to_numpy(zero_copy_only=False)).tolist()
        groups: _Groups = {(0, ()): (present, [values[row] for row in present])}
    else:
        of_schemas, refused = group_by_schema(raw)
        groups = _group_by_message(values, of_schemas, refused)
    for (schema_id, path), (rows, data) in groups.items():
        reader = _find_reader(registry, schema_id, path)
        if isinstance(reader, str):
            refused |= dict.fromkeys(rows, reader)
        else:
            refused |= _read_messages(reader, rows, data, gathering, left_out)
    return replace(Column.from_columns("protobuf", raw, gathering, texts=request.texts), left_out=left_out), refused


_Groups = dict[tuple[SchemaId, tuple[int, ...]], tuple[list[int], list[bytes]]]
"""Rows and data by the id of the schema and the path of the message, which is between the id and the data."""


def _group_by_message(values: Sequence[bytes | None], of_schemas: Sequence[FramedRows], refused: Refusals) -> _Groups:
    """Group rows by their messages. Adds to `refused`."""
    groups: _Groups = {}
    for schema_id, at, rows in of_schemas:
        for row in rows.tolist():
            value = values[row]
            assert value is not None, "only what is framed names a schema"
            try:
                path, begin = ((0,), at + 1) if value[at : at + 1] == b"\0" else _parse_path(value, at)
            except ValueError as error:
                refused[row] = str(error)
                continue
            group = groups.setdefault((schema_id, path), ([], []))
            group[0].append(row)
            group[1].append(value[begin:])
    return groups


def _parse_path(value: bytes, at: int) -> tuple[tuple[int, ...], int]:
    """Return which message of its file it is, as the indexes at a place tell, and where its data begins."""
    count, at = _zigzag(value, at)
    number, path = count, list[int]()
    while number >= 0 and len(path) < count:
        number, at = _zigzag(value, at)
        path.append(number)
    if number < 0:
        raise ValueError(f"{number} is not an index of a message: {_EXPECTED}")
    return tuple(path) or (0,), at


def _zigzag(value: bytes, at: int) -> tuple[int, int]:
    encoded, shift = 0, 0
    while at < len(value) and shift < 64:
        encoded |= (value[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if value[at - 1] < 0x80:
            return encoded >> 1 ^ -(encoded & 1), at
    raise ValueError(f"the indexes of the message, which are before the data, end too early: {_EXPECTED}")


_UNREADABLE = (
    ". It is cut off, is another message, or has a text that is not UTF-8, which needs a field of bytes: correct the "
    "producer"
)
"""The causes, which the parser does not tell apart."""


def _read_messages(
    reader: _MessageReader, rows: Sequence[int], data: Sequence[bytes], gathering: Gathering, left_out: Counter[str]
) -> Refusals:
    """Read the messages of one schema. Return the refused ones; the others are added to `gathering`.

    Adds to `left_out` the fields that the schema does not have.
    """
    refused: Refusals = {}
    messages = []
    unknown: dict[int, Collection[str]] = {}
    for row, value in zip(rows, data, strict=True):
        try:
            message, unknown[row] = reader.messages.read(value)
            messages.append(message)
        except DecodeError as error:
            refused[row] = f"the data is not a {reader.schema.name}: {error}"[:300] + _UNREADABLE
    kept = [row for row in rows if row not in refused] if refused else rows
    array, misfits = arrays.build_each(reader.build, messages)
    if misfits:
        refused |= {kept[at]: reason for at, reason in misfits.items()}
        kept = [row for row in kept if row not in refused]
    for row in kept:
        left_out.update(unknown[row])
    gathering.add(reader.schema, np.array(kept, np.int64), array)
    return refused


def _find_reader(registry: Connection, schema_id: SchemaId, path: tuple[int, ...]) -> _MessageReader | str:
    if registry.descriptors:
        reader = _compile_set(registry.descriptors, registry.message, registry.exact)
        return f"converter.registry.descriptor_set: {reader}" if isinstance(reader, str) else reader
    return compile_registered(registry, schema_id, "PROTOBUF", partial(_compile_schema, registry.exact, path))


@lru_cache(maxsize=4096)
def _compile_schema(exact: bool, path: tuple[int, ...], text: str, references: References) -> _MessageReader | str:
    try:
        return _compile(compiler.compile_message(text, dict(references), path), exact)
    except SchemaError as error:
        return str(error)
    except _MISSHAPEN as error:  # of a descriptor in base64 that no compiler made
        return f"it is not valid Protobuf: {type(error).__name__}: {error}"[:300]


@lru_cache(maxsize=64)
def _compile_set(descriptors: bytes, name: str, exact: bool) -> _MessageReader | str:
    try:
        return _compile(compiler.read_message_of_set(descriptors, name), exact)
    except SchemaError as error:
        return str(error)


def _compile(descriptor: Descriptor, exact: bool) -> _MessageReader:
    type, build = make_message_column(descriptor, descriptor.full_name, exact=exact)
    return _MessageReader(Schema(descriptor.full_name, type), Messages.from_descriptor(descriptor), build)
