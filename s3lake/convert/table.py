"""JSON objects to Arrow columns, one row per record, never shifted.

The columns are the sink's recorded ones. Values with a new field, or with an integer column's first fraction, show
themselves in what pyarrow infers beside the given schema; the caller then starts again with the united columns.
"""

import json
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as pyarrow_json

from s3lake.convert.gate import Refusals, all_begin_with, joined
from s3lake.convert.json_columns import JsonColumns, Spelling, fitted, json_columns
from s3lake.convert.json_values import Number, respelt
from s3lake.convert.pinned import converted
from s3lake.encode.formats import Rule
from s3lake.schema.arrow import from_arrow, to_arrow
from s3lake.schema.avro_names import illegal_name
from s3lake.schema.json import of_object
from s3lake.schema.types import UNKNOWN, Columns, Decimal, Primitive
from s3lake.schema.unite import Conflict, agree, beyond, held, leaves, shown

_FEW, _MANY = 200, 1000
"""Records of the first slice that is looked at for new fields, and of each further one."""

NOTHING = "the object holds nothing, and no column is known yet"
"""Why a row is refused that no column could hold."""


def read_objects(
    values: pa.BinaryArray,
    columns: Columns,
    given: Columns | None = None,
    rule: Rule = "",
    most: int = sys.maxsize,
) -> tuple[pa.RecordBatch | None, Columns, Refusals]:
    """Rows of `values`, which passed the JSON gate and hold no null and no newline.

    A record whose new fields would make more than `most` columns is refused.

    Returns:
        The batch, given columns first (None where every row was refused); `columns` united with what is in it; and the
        rows that are refused, which the batch lacks.
    """
    given = given or {}
    known = json_columns(_known(columns, given, rule), given)
    refused = _not_objects(values)
    kept = _without(values, refused)
    try:
        if _outgrows(kept, known, most):
            raise Conflict("each record has fields of its own")
        batch, united = _parse(kept, known, rule)
        if beyond(held(united), known.columns, most):
            raise Conflict("some record has too many fields")
    except (pa.ArrowInvalid, Conflict):
        texts, united, conflicts = _one_by_one(kept.to_pylist(), known, rule, most)
        rows = [row for row in range(len(values)) if row not in refused]
        refused.update({rows[position]: reason for position, reason in conflicts.items()})
        batch, united = _parse(_without(texts, conflicts), json_columns(united, given), rule, respelt=True)
    if not united:  # a file without columns cannot hold rows
        return None, columns, dict.fromkeys(range(len(values)), NOTHING) | refused
    return batch, agree(columns, united), refused


def misfit(columns: Columns, rule: Rule) -> str | None:
    """Why a format cannot hold these columns, None where it can."""
    if rule == "flat":
        for name, type in columns.items():
            if not isinstance(type, Primitive | Decimal):
                return f"field {name!r} is {shown(type)}, which a row of CSV cannot hold: use another format"
    elif rule == "avro" and (path := illegal_name(held(columns))):
        return f"field {path!r} has a name that Avro forbids: letters, digits and '_', no digit first"
    return None


def _known(columns: Columns, given: Columns, rule: Rule) -> Columns:
    # What the user gives beats what is recorded; the recorded columns of another format may not fit this one.
    fitting = {name: type for name, type in columns.items() if misfit({name: type}, rule) is None}
    united = dict(given)
    for name, type in fitting.items():
        try:
            united |= fitted({name: united.get(name, UNKNOWN)}, {name: type}, given)
        except Conflict:
            united[name] = given[name]
    return united


def _parse(
    values: pa.BinaryArray, known: JsonColumns, rule: Rule, *, respelt: bool = False
) -> tuple[pa.RecordBatch | None, Columns]:
    united = known.columns
    if not len(values):
        return None, united
    if not respelt and known.has_map:
        raise pa.ArrowInvalid("maps are read one by one")
    if not respelt and known.decimals is not None and not known.decimals(values):
        raise pa.ArrowInvalid("some decimal would overflow, or is no plain number")
    block = joined(values)
    table, schema, spell = _spelt(block, known, ("number",) if respelt else ("text", "number"))
    if rule == "flat" and any(pa.types.is_nested(field.type) for field in table.schema):
        raise pa.ArrowInvalid("some record holds an object or a list")
    if table.schema != schema:
        united = united if respelt else fitted(united, from_arrow(table.schema), known.given)
        if misfit(united, rule):
            raise pa.ArrowInvalid("some record has a column that does not fit the format")
        # Inferred types serve, inferred arrays do not: strings became timestamps, and lists that begin with a null
        # point outside of their memory (apache/arrow#51305).
        table = _read(block, spell(json_columns(united, known.given)), "ignore")
    if any(map(_has_infinity, table.columns)):
        raise pa.ArrowInvalid("an integer is beyond a double")
    if table.num_rows != len(values):
        raise pa.ArrowInvalid(f"{len(values)} values gave {table.num_rows} rows")
    if not united:
        return None, united
    batch = table.combine_chunks().to_batches()[0]
    if known.pinned:
        arrays = [
            converted(batch.column(at), type) if name in known.pinned else batch.column(at)
            for at, (name, type) in enumerate(united.items())
        ]
        batch = pa.record_batch(arrays, schema=json_columns(united, known.given).arrow)
    return batch, united


def _outgrows(values: pa.BinaryArray, known: JsonColumns, most: int) -> bool:
    """Whether the columns become too many, found out slice by slice: a table has every column in every row."""
    united, start = known.columns, 0
    while start < len(values) - _FEW:
        end = start + (_MANY if start else _FEW)
        try:
            part = _read(joined(values[start:end]), known.spelt["text"], "infer")
        except pa.ArrowInvalid:
            return False  # for a reason that tells itself when all are read
        wider = agree(united, from_arrow(part.schema))
        if leaves(wider) > max(most, leaves(known.columns)):
            return True
        if not start and wider == united:
            return False
        united, start = wider, end
    return False


def _spelt(
    block: pa.Buffer, known: JsonColumns, spellings: Sequence[Spelling]
) -> tuple[pa.Table, pa.Schema, Callable[[JsonColumns], pa.Schema]]:
    """The table, the schema that it was read with, and how to make such a schema of more columns."""
    for spelling in spellings if known.pinned else spellings[:1]:
        schema = known.spelt[spelling]
        try:
            return _read(block, schema, "infer"), schema, lambda columns, spelling=spelling: columns.spelt[spelling]
        except pa.ArrowInvalid:
            if not known.pinned or len(spellings) == 1:
                raise
    plain = {name: type for name, type in known.columns.items() if name not in known.pinned}
    shown_types = _read(block, to_arrow(plain), "infer").schema
    schema = known.spelt_like(shown_types)
    return _read(block, schema, "infer"), schema, partial(JsonColumns.spelt_like, schema=shown_types)


def _has_infinity(column: Any) -> bool:
    # JSON has no infinity: pyarrow makes it of integers with hundreds of digits.
    if pa.types.is_floating(column.type):
        return pc.any(pc.is_inf(column)).as_py() is True
    if pa.types.is_list(column.type):
        return _has_infinity(pc.list_flatten(column))
    if pa.types.is_struct(column.type):
        return any(map(_has_infinity, column.flatten()))  # all fields at once: one by one each costs all of them
    return False


def _read(block: pa.Buffer, schema: pa.Schema, unexpected: str) -> pa.Table:
    return pyarrow_json.read_json(
        pa.BufferReader(block),
        # One block: types inferred block by block could differ. No threads: Spark has given this task its core.
        read_options=pyarrow_json.ReadOptions(use_threads=False, block_size=block.size + 1),
        parse_options=pyarrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior=unexpected),
    )


def _not_objects(values: pa.BinaryArray) -> Refusals:
    # pyarrow.json crashes the process on a number at the top, so nothing but objects may reach it.
    if all_begin_with(values, b"{"):
        return {}
    braces = pc.starts_with(pc.utf8_ltrim(values.cast(pa.string()), characters=" \t\r\n"), "{")
    return {
        row: "the value is no JSON object, which a table needs"
        for row, is_object in enumerate(braces.to_pylist())
        if not is_object
    }


def _one_by_one(
    values: Sequence[bytes], known: JsonColumns, rule: Rule, most: int
) -> tuple[pa.BinaryArray, Columns, Refusals]:
    """The texts with pinned columns spelt alike, their columns, and those that are refused."""
    united, texts, refused = known.columns, list(values), {}
    for row, value in enumerate(values):
        try:
            decoded = json.loads(value, object_pairs_hook=_unique, parse_int=_integer, parse_float=Number.of)
            if known.pinned:
                texts[row] = json.dumps(respelt(decoded, known.columns, known.given)).encode()
            wider = fitted(united, of_object(decoded), known.given)
            if wider == united:
                continue
            if reason := misfit(wider, rule) or beyond(wider, united, most):
                raise Conflict(reason)
            united = wider
        except (Conflict, RecursionError) as error:
            refused[row] = str(error) if isinstance(error, Conflict) else "nested too deeply"
    return pa.array(texts, pa.binary()), held(united), refused


def _integer(digits: str) -> int | float:
    # Python refuses to read thousands of digits; far fewer are beyond a double.
    return int(digits) if len(digits) < 400 else float(digits)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise Conflict(f"field {twice!r} is given twice")
    return found


def _without(values: pa.BinaryArray, refused: Refusals) -> pa.BinaryArray:
    if not refused:
        return values
    return values.take(pa.array([row for row in range(len(values)) if row not in refused], pa.int64()))
