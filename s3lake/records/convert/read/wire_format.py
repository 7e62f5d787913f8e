"""Confluent's wire format: a zero byte, the id of the schema in four bytes, the data."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np
import pyarrow as pa

from s3lake.errors import ConfigurationError, TransientError, printable
from s3lake.records.convert.read.foreign_bytes import explain_unframed
from s3lake.records.convert.read.keys_and_values import Numbers
from s3lake.records.convert.read.value_checks import Refusals
from s3lake.records.encode.column_bytes import offsets_of, slice_values
from s3lake.records.schema.registry import UnknownSchema, get_client
from s3lake.records.schema.registry.registry_connection import Connection

HEADER = 5
_SHOWN = 300
References = tuple[tuple[str, str], ...]
"""Names and texts of the schemas that a schema refers to."""
Compiled = TypeVar("Compiled")


def read_schema_ids(raw: pa.BinaryArray) -> tuple[Numbers, Refusals]:
    """Return the id before each value, -1 if it is missing, and why rows without one are refused."""
    offsets = offsets_of(raw).astype(np.int64)
    block = raw.buffers()[2]
    data = np.frombuffer(block, np.uint8) if block is not None and block.size else np.zeros(1, np.uint8)
    starts, present = offsets[:-1], raw.is_valid().to_numpy(zero_copy_only=False)
    first, *rest = (data.take(starts + at, mode="clip").astype(np.int64) for at in range(HEADER))
    has_id = present & (np.diff(offsets) >= HEADER) & (first == 0)
    numbers = functools.reduce(lambda high, low: high << 8 | low, rest)
    wrong = np.flatnonzero(present & ~has_id).tolist()
    return np.where(has_id, numbers, -1), {row: _explain_header(raw[row].as_py()) for row in wrong}


def group_by_id(numbers: Numbers) -> Iterator[tuple[int, Numbers]]:
    """Yield ids in the order in which they come, with their rows."""
    if len(numbers) and numbers[0] >= 0 and (numbers == numbers[0]).all():
        yield int(numbers[0]), np.arange(len(numbers))
        return
    ids, first = np.unique(numbers, return_index=True)
    for number in ids[np.argsort(first)].tolist():
        if number >= 0:
            yield number, np.flatnonzero(numbers == number)


def compile_registered(
    registry: Connection, number: int, language: str, compile_text: Callable[[str, References], Compiled | str]
) -> Compiled | str:
    """Return what `compile_text` makes of a registered schema, or why values with its id are refused.

    Raises:
        TransientError: the registry did not answer.
        ConfigurationError: it refused.
    """
    try:
        registered = get_client(registry).schema(number)
    except UnknownSchema as error:
        return printable(str(error))
    if registered.language != language:
        actual = printable(registered.language)
        return f"schema id {number}: it is a schema of {actual}, not of {language}: set the converter that fits"
    compiled = compile_foreign(compile_text, registered.text, tuple(registered.references.items()))
    return f"schema id {number}: {compiled}" if isinstance(compiled, str) else compiled


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


def strip_header(raw: pa.BinaryArray) -> pa.BinaryArray:
    """Return the data of values that were read, none of them null."""
    if not len(raw):
        return raw
    starts = offsets_of(raw)
    return slice_values(starts[:-1] + HEADER, starts[1:], raw.buffers()[2])


def _explain_header(value: bytes) -> str:
    if len(value) < HEADER:
        return f"{len(value)} bytes are too few: a zero byte and the schema's id in four are expected"
    reason = f"the first byte is 0x{value[0]:02x}, not 0x00: no schema id of a registry is before the value"
    return explain_unframed(value, reason)
