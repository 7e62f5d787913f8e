"""Avro values with the id of their schema before them, or all of one schema.

A mistake in the data of a record is that record's error; a registry that does not answer stops the batch.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import methodcaller
from typing import Any

import numpy as np
import pyarrow as pa

from s3lake.records.convert.read import arrays
from s3lake.records.convert.read.arrays import Build, Misfit
from s3lake.records.convert.read.avro import datum_columns, datums, null_defaults
from s3lake.records.convert.read.converters import ConverterRequest
from s3lake.records.convert.read.keys_and_values import Column, Gathering, Numbers
from s3lake.records.convert.read.value_checks import Refusals
from s3lake.records.convert.read.wire_format import FramedRows, References, compile_registered, group_by_schema
from s3lake.records.schema.avro import read_schema, write_schema
from s3lake.records.schema.columns.types import MOST_DIGITS, MOST_TEXT_DIGITS, fold
from s3lake.records.schema.connect_schema import Schema, SchemaError
from s3lake.records.schema.registry import name_schema


@dataclass(frozen=True)
class _DatumReader:
    """How the data of one schema is read.

    Attributes:
        schema: `file` is the schema of files that hold the data as it is, None if they cannot.
        decode: reads many records at once.
        decode_one: the function that reads one record, and raises what is wrong with it.
        build: makes columns of such records.
    """

    schema: Schema
    decode: datum_columns.Decode
    decode_one: datums.Read
    build: Build


_Finish = Callable[[pa.Array, Schema], pa.Array]
"""Makes columns of a schema what they are in files."""


def read(raw: pa.BinaryArray, request: ConverterRequest) -> tuple[Column, Refusals]:
    """Return Avro as columns, and as JSON if the request asks for it, by the schema of each value.

    Raises:
        TransientError: the registry did not answer.
        ConfigurationError: it refused.
    """
    registry = request.schemas
    if registry.avro:
        groups = [FramedRows(0, 0, np.flatnonzero(raw.is_valid().to_numpy(zero_copy_only=False)))]
        refused: Refusals = {}
    else:
        groups, refused = group_by_schema(raw)
    gathering = Gathering(len(raw))
    compile_text = functools.partial(_make_reader, registry.exact, MOST_DIGITS if request.tabular else MOST_TEXT_DIGITS)
    for group in groups:
        rows, reader = group.rows, compile_registered(registry, group.schema_id, "AVRO", compile_text)
        if isinstance(reader, str):
            refused |= dict.fromkeys(rows.tolist(), reader)
            continue
        is_filled = request.null_to_default and _can_fill(reader.schema)
        if registry.avro or not request.spliced or is_filled:
            reader = replace(reader, schema=replace(reader.schema, file=None))
        finish = _fill_nulls if is_filled else _keep
        array, is_sound = datum_columns.decode_datums(reader.decode, raw, rows, group.begin)
        gathering.add(reader.schema, rows[is_sound], finish(array, reader.schema))
        if not is_sound.all():
            refused |= _read_one_by_one(raw, group, rows[~is_sound], reader, gathering, finish)
    return Column.from_columns("avro", raw, gathering, texts=request.texts), refused


def _read_one_by_one(
    raw: pa.BinaryArray, group: FramedRows, rows: Numbers, reader: _DatumReader, gathering: Gathering, finish: _Finish
) -> Refusals:
    """Read some rows of a group strictly. Return the refused ones; the others are added to `gathering`.

    Files do not hold these as they came, because other readers refuse some of what is read here: padded integers.
    """
    refused: Refusals = {}
    kept: list[int] = []
    values: list[Any] = []
    for row, value in zip(rows.tolist(), raw.take(pa.array(rows)).to_pylist(), strict=True):
        try:
            datum = datums.read_datum(reader.decode_one, value, group.begin)
        except datums.DatumError as error:
            of = name_schema(group.schema_id) if group.begin else "the schema"
            refused[row] = f"the data does not fit {of}: {error}"
        except Misfit as misfit:
            refused[row] = str(misfit)
        else:
            kept.append(row)
            values.append(datum)
    # All at once: a build of a wide union costs as much for one record as for many.
    array = finish(reader.build(values), reader.schema)
    gathering.add(replace(reader.schema, file=None), np.array(kept, np.int64), array)
    return refused


def _can_fill(schema: Schema) -> bool:
    return schema.detail is not None and null_defaults.can_fill(schema.type, schema.detail)


def _keep(array: pa.Array, _: Schema) -> pa.Array:
    return array


def _fill_nulls(array: pa.Array, schema: Schema) -> pa.Array:
    return array if schema.detail is None else null_defaults.fill_nulls(array, schema.type, schema.detail)


@functools.lru_cache(maxsize=4096)
def _make_reader(exact: bool, digits: int, text: str, references: References) -> _DatumReader | str:
    try:
        name, node = read_schema.read_schema(text, dict(references), exact=exact, digits=digits)
        return _DatumReader(
            Schema(name, node.type, write_schema.write_passthrough_schema(node.written), node.detail),
            datum_columns.compile_column_reader(node.plain, node.type),
            datums.compile_datum_reader(node.plain, node.type),
            fold(node.type, arrays.make_leaf, arrays.make_list, _make_struct, arrays.make_map),
        )
    except SchemaError as error:
        return str(error)


def _make_struct(fields: dict[str, Build]) -> Build:
    # A wide union has a branch for each field, and each branch is a record of that one field.
    return arrays.make_struct_builder({name: (methodcaller("get", name), build) for name, build in fields.items()})
