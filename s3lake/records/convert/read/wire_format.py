"""Confluent's wire format: a zero byte and the schema's id in four bytes, or a one and its GUID in 16, and the data."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeVar
from uuid import UUID

import numpy as np
import pyarrow as pa

from s3lake.errors import ConfigurationError, TransientError, printable
from s3lake.records.convert.read.foreign_bytes import explain_unframed
from s3lake.records.convert.read.keys_and_values import Numbers
from s3lake.records.convert.read.value_checks import Refusals
from s3lake.records.encode.column_bytes import offsets_of, slice_values
from s3lake.records.schema.registry import SchemaId, get_client, name_schema
from s3lake.records.schema.registry.registry_answers import UnknownSchema
from s3lake.records.schema.registry.registry_connection import Connection

_BEFORE_DATA = {0: 5, 1: 17}
"""First byte -> how many bytes are before the data: it and an id, or it and a GUID."""
_SHOWN = 300
References = tuple[tuple[str, str], ...]
"""Names and texts of the schemas that a schema refers to."""
Compiled = TypeVar("Compiled")


class FramedRows(NamedTuple):
    """Rows of values that name the same schema.

    Attributes:
        begin: how many bytes of each value are before its data.
    """

    schema_id: SchemaId
    begin: int
    rows: Numbers


def group_by_schema(raw: pa.BinaryArray) -> tuple[list[FramedRows], Refusals]:
    """Return the rows of each schema, in the order in which schemas come, and why rows that name none are refused."""
    offsets = offsets_of(raw).astype(np.int64)
    block = raw.buffers()[2]
    data = np.frombuffer(block, np.uint8) if block is not None and block.size else np.zeros(1, np.uint8)
    starts, lengths, present = offsets[:-1], np.diff(offsets), raw.is_valid().to_numpy(zero_copy_only=False)
    first, *rest = (data.take(starts + at, mode="clip").astype(np.int64) for at in range(_BEFORE_DATA[0]))
    has_id, has_guid = (present & (lengths >= size) & (first == byte) for byte, size in _BEFORE_DATA.items())
    numbers = np.where(has_id, functools.reduce(lambda high, low: high << 8 | low, rest), -1)
    groups = [FramedRows(number, _BEFORE_DATA[0], rows) for number, rows in group_by_number(numbers)]
    if has_guid.any():
        rows = np.flatnonzero(has_guid)
        guids = data.take(starts[rows, np.newaxis] + np.arange(1, _BEFORE_DATA[1]))
        distinct, codes = np.unique(guids, axis=0, return_inverse=True)
        for code, members in group_by_number(codes.reshape(-1)):
            groups.append(FramedRows(UUID(bytes=distinct[code].tobytes()), _BEFORE_DATA[1], rows[members]))
        groups.sort(key=lambda group: group.rows[0])
    wrong = np.flatnonzero(present & ~has_id & ~has_guid).tolist()
    return groups, {row: _explain_missing_id(raw[row].as_py()) for row in wrong}


def group_by_number(numbers: Numbers) -> Iterator[tuple[int, Numbers]]:
    """Yield numbers in the order in which they come, with their rows; negative ones are left out."""
    if len(numbers) and numbers[0] >= 0 and (numbers == numbers[0]).all():
        yield int(numbers[0]), np.arange(len(numbers))
        return
    ids, first = np.unique(numbers, return_index=True)
    for number in ids[np.argsort(first)].tolist():
        if number >= 0:
            yield number, np.flatnonzero(numbers == number)


def compile_registered(
    registry: Connection, schema_id: SchemaId, language: str, compile_text: Callable[[str, References], Compiled | str]
) -> Compiled | str:
    """Return what `compile_text` makes of a registered schema, or why values that name it are refused.

    Raises:
        TransientError: the registry did not answer.
        ConfigurationError: it refused.
    """
    try:
        registered = get_client(registry).schema(schema_id)
    except UnknownSchema as error:
        return printable(str(error))
    if registered.language != language:
        actual = printable(registered.language)
        return f"{name_schema(schema_id)}: it is a schema of {actual}, not of {language}: set the converter that fits"
    compiled = compile_foreign(compile_text, registered.text, tuple(registered.references.items()))
    return f"{name_schema(schema_id)}: {compiled}" if isinstance(compiled, str) else compiled


def compile_foreign(
    compile_text: Callable[[str, References], Compiled | str], text: str, references: References = ()
) -> Compiled | str:
    """Return what `compile_text` makes of a schema that a stranger wrote, or why it makes nothing.

    This is the one guard around compilers of foreign schemas. They are recursive, and other people's: a schema can
    make them raise what no document lists. That is the error of the records that have the schema, and of no others.

    Reasons are printable: a schema can have half a character in its names, which no header of a dead letter can hold.

    Raises:
        MemoryError: this machine has too little; the schema is not the reason.
    """
    try:
        compiled = compile_text(text, references)
    except (MemoryError, TransientError, ConfigurationError):
        raise
    except Exception as error:
        return printable(f"the schema cannot be used: {type(error).__name__}: {error}"[:_SHOWN])
    return printable(compiled) if isinstance(compiled, str) else compiled


def strip_schema_ids(raw: pa.BinaryArray) -> pa.BinaryArray:
    """Return the data of values; of one that names no schema, anything."""
    if not len(raw):
        return raw
    starts, block = offsets_of(raw), raw.buffers()[2]
    if block is None or not block.size:
        return raw
    first = np.frombuffer(block, np.uint8).take(starts[:-1], mode="clip")
    begin = np.where(first == 1, _BEFORE_DATA[1], _BEFORE_DATA[0])
    return slice_values(np.minimum(starts[:-1] + begin, starts[1:]), starts[1:], block)


def _explain_missing_id(value: bytes) -> str:
    if value[:1] == b"\1":
        return f"{len(value)} bytes are too few: behind the first one, 0x01, the schema's GUID in 16 is expected"
    if len(value) < _BEFORE_DATA[0]:
        return f"{len(value)} bytes are too few: a zero byte and the schema's id in four are expected"
    reason = (
        f"the first byte is 0x{value[0]:02x}, not 0x00: no schema id of a registry is before the value, or in a header"
    )
    return explain_unframed(value, reason)
