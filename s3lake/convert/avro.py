"""Avro values with the id of their schema before them, or all of one schema.

A mistake in the data of a record is that record's error; a registry that does not answer stops the batch.
"""

from __future__ import annotations

import decimal
import functools
import io
import re
from dataclasses import dataclass, replace
from operator import methodcaller
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa

from s3lake.convert import arrays, avro_columns
from s3lake.convert.arrays import Build
from s3lake.convert.column import Column, Gathering, Numbers
from s3lake.convert.converters import ReadRequest
from s3lake.convert.gate import Refusals
from s3lake.convert.wire import HEADER, References, compile_registered, group_by_id, read_schema_ids
from s3lake.schema import avro, avro_write
from s3lake.schema.connect import Schema, SchemaError
from s3lake.schema.types import Decimal, Primitive, Unknown, fold

_STREAM = re.compile(r" from <_io\.BytesIO object at \w+>")
"""fastavro says where in memory it reads: a record that is tried again has another reason then."""
_EXACT = decimal.Context(prec=1_000, traps=[decimal.Inexact, decimal.InvalidOperation])


@dataclass(frozen=True)
class _Reader:
    """How the data of one schema is read.

    Attributes:
        schema: `file` is the schema of files that hold the data as it is, None if they cannot.
        decode: reads many records at once.
        parsed: fastavro's schema, which reads one record.
        build: makes columns of what fastavro has read.
    """

    schema: Schema
    decode: avro_columns.Decode
    parsed: Any
    build: Build


def read(raw: pa.BinaryArray, request: ReadRequest) -> tuple[Column, Refusals]:
    """Return Avro as columns, and as JSON if that is request, by the schema of each value.

    Raises:
        TransientError: the registry did not answer.
        ConfigurationError: it refused.
    """
    registry = request.schemas
    if registry.avro:
        skipped, numbers = 0, np.where(raw.is_valid().to_numpy(zero_copy_only=False), 0, -1)
        refused: Refusals = {}
    else:
        skipped, (numbers, refused) = HEADER, read_schema_ids(raw)
    gathering = Gathering(len(raw))
    for number, rows in group_by_id(numbers):
        reader = compile_registered(registry, number, "AVRO", functools.partial(_make_reader, registry.exact))
        if isinstance(reader, str):
            refused |= dict.fromkeys(rows.tolist(), reader)
            continue
        if skipped == 0 or not request.spliced:
            reader = replace(reader, schema=replace(reader.schema, file=None))
        array, is_sound = avro_columns.decode(reader.decode, raw, rows, skipped)
        gathering.add(reader.schema, rows[is_sound], array)
        if not is_sound.all():
            refused |= _read_one_by_one(raw, rows[~is_sound], reader, gathering, skipped)
    return Column.from_columns("avro", raw, gathering, texts=request.texts), refused


def _read_one_by_one(
    raw: pa.BinaryArray, rows: Numbers, reader: _Reader, gathering: Gathering, skipped: int
) -> Refusals:
    """Read rows of one schema with fastavro. Return the refused ones; the others are added to `gathering`.

    Files do not hold these as they came, because other readers refuse some of what fastavro reads.
    """
    from fastavro import schemaless_reader

    refused: Refusals = {}
    kept: list[int] = []
    values: list[Any] = []
    for row, value in zip(rows.tolist(), raw.take(pa.array(rows)).to_pylist(), strict=True):
        stream = io.BytesIO(value)
        stream.seek(skipped)
        try:
            datum = schemaless_reader(stream, reader.parsed, None)
            if left := len(value) - stream.tell():
                raise ValueError(f"{left} bytes are left after it")
        except Exception as error:  # of whichever kind: fastavro has no error of its own for what it cannot read
            refused[row] = _explain(value, skipped, error)
        else:
            kept.append(row)
            values.append(datum)
    array, misfits = arrays.build_each(reader.build, values)
    refused |= {kept[at]: reason for at, reason in misfits.items()}
    gathering.add(
        replace(reader.schema, file=None), np.array([row for row in kept if row not in refused], np.int64), array
    )
    return refused


def _explain(value: bytes, skipped: int, error: Exception) -> str:
    of = f"schema id {int.from_bytes(value[1:HEADER], 'big')}" if skipped else "the schema"
    reason = str(error) or "it ends too early" if isinstance(error, EOFError) else f"{type(error).__name__}: {error}"
    return f"the data does not fit {of}: {_STREAM.sub('', reason)[:200]}"


@functools.lru_cache(maxsize=4096)
def _make_reader(exact: bool, text: str, references: References) -> _Reader | str:
    from fastavro import parse_schema

    try:
        name, node = avro.read_schema(text, dict(references), exact=exact)
        return _Reader(
            Schema(name, node.type, avro_write.write_passthrough_schema(node.written), node.detail),
            avro_columns.compile_schema(node.plain, node.type),
            parse_schema(node.plain),
            # fastavro's records are dictionaries, and its decimals bytes.
            fold(node.type, _make_leaf, arrays.make_list, _make_struct, arrays.make_map),
        )
    except SchemaError as error:
        return str(error)


def _make_struct(fields: dict[str, Build]) -> Build:
    # A wide union has a branch for each field, and each branch is a record of that one field.
    return arrays.make_struct({name: (methodcaller("get", name), build) for name, build in fields.items()})


def _make_leaf(leaf: Primitive | Decimal | Unknown) -> Build:
    match leaf:
        case Decimal(_, scale):
            return arrays.make_leaf(leaf, functools.partial(_to_decimal, scale))
        case Primitive.UUID:
            return arrays.make_leaf(leaf, lambda data: UUID(bytes=data) if isinstance(data, bytes) else data)
    return arrays.make_leaf(leaf)


def _to_decimal(scale: int, data: bytes) -> decimal.Decimal:
    return decimal.Decimal(int.from_bytes(data, "big", signed=True)).scaleb(-scale, _EXACT)
