"""JSON objects to Arrow columns, one row per record, never shifted.

The columns are the sink's recorded ones. Values with a new field, or with an integer column's first fraction, show
themselves in what pyarrow infers beside the given schema; the caller then starts again with the united columns.
"""

import json
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as pyarrow_json

from s3lake.convert import columns as kinds
from s3lake.convert import decimals, typed
from s3lake.convert.columns import Columns, Conflict
from s3lake.convert.gate import Refusals, all_begin_with, joined
from s3lake.convert.spelling import Number, respelt

Rule = Literal["", "flat", "avro"]
"""What a format asks of columns: none that is nested (`flat`), or only names that Avro allows."""

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
    known = _known(columns, given, rule)
    refused = _not_objects(values)
    kept = _without(values, refused)
    try:
        if _outgrows(kept, known, given, most):
            raise Conflict("each record has fields of its own")
        batch, united = _parse(kept, known, given, rule)
        if kinds.beyond(kinds.held(united), known, most):
            raise Conflict("some record has too many fields")
    except (pa.ArrowInvalid, Conflict):
        texts, united, conflicts = _one_by_one(kept.to_pylist(), known, given, rule, most)
        rows = [row for row in range(len(values)) if row not in refused]
        refused.update({rows[position]: reason for position, reason in conflicts.items()})
        batch, united = _parse(_without(texts, conflicts), united, given, rule, respelt=True)
    if not united:  # a file without columns cannot hold rows
        return None, columns, dict.fromkeys(range(len(values)), NOTHING) | refused
    return batch, kinds.agree(columns, united), refused


def misfit(columns: Columns, rule: Rule) -> str | None:
    """Why a format cannot hold these columns, None where it can."""
    if rule == "flat":
        for name, kind in columns.items():
            if isinstance(kind, dict):
                return f"field {name!r} is {kinds.name_of(kind)}, which a row of CSV cannot hold: use another format"
    elif rule == "avro" and (path := kinds.illegal_in_avro(kinds.held(columns))):
        return f"field {path!r} has a name that Avro forbids: letters, digits and '_', no digit first"
    return None


def _known(columns: Columns, given: Columns, rule: Rule) -> Columns:
    # What the user gives beats what is recorded; the recorded columns of another format may not fit this one.
    fitting = {name: kind for name, kind in columns.items() if misfit({name: kind}, rule) is None}
    united = dict(given)
    for name, kind in fitting.items():
        try:
            united |= typed.fitted({name: united.get(name)}, {name: kind}, given)
        except Conflict:
            united[name] = given[name]
    return united


def _parse(
    values: pa.BinaryArray, columns: Columns, given: Columns, rule: Rule, *, respelt: bool = False
) -> tuple[pa.RecordBatch | None, Columns]:
    if not len(values):
        return None, columns
    if not respelt and any(map(typed.has_map, columns.values())):
        raise pa.ArrowInvalid("maps are read one by one")
    if not respelt and not decimals.are_safe(values, columns):
        raise pa.ArrowInvalid("some decimal would overflow, or is no plain number")
    block = joined(values)
    pinned = {name for name, kind in columns.items() if typed.holds_pinned(kind, given.get(name))}
    spellings: tuple[typed.Spelling, ...] = ("number",) if respelt else ("text", "number") if pinned else ("text",)
    table, schema, how = _spelt(block, columns, given, pinned, spellings)
    if rule == "flat" and any(pa.types.is_nested(field.type) for field in table.schema):
        raise pa.ArrowInvalid("some record holds an object or a list")
    found = {} if respelt else kinds.from_arrow(table.schema)
    united = typed.fitted(columns, found, given)
    if misfit(united, rule):
        raise pa.ArrowInvalid("some record has a column that does not fit the format")
    if table.schema != schema:
        # Inferred types serve, inferred arrays do not: strings became timestamps, and lists that begin with a null
        # point outside of their memory (apache/arrow#51305).
        table = _read(block, typed.spelt_schema(united, given, *how), "ignore")
    if any(map(_has_infinity, table.columns)):
        raise pa.ArrowInvalid("an integer is beyond a double")
    if table.num_rows != len(values):
        raise pa.ArrowInvalid(f"{len(values)} values gave {table.num_rows} rows")
    if not united:
        return None, united
    batch = table.combine_chunks().to_batches()[0]
    if pinned:
        arrays = [
            typed.converted(batch.column(at), kind) if name in pinned else batch.column(at)
            for at, (name, kind) in enumerate(united.items())
        ]
        batch = pa.record_batch(arrays, schema=kinds.to_arrow(united))
    return batch, united


def _outgrows(values: pa.BinaryArray, known: Columns, given: Columns, most: int) -> bool:
    """Whether the columns become too many, found out slice by slice: a table has every column in every row."""
    united, start = known, 0
    while start < len(values) - _FEW:
        end = start + (_MANY if start else _FEW)
        try:
            part = _read(joined(values[start:end]), typed.spelt_schema(known, given, "text"), "infer")
        except pa.ArrowInvalid:
            return False  # for a reason that tells itself when all are read
        found = kinds.agree(united, kinds.from_arrow(part.schema))
        if kinds.leaves(found) > max(most, kinds.leaves(known)):
            return True
        if not start and found == united:
            return False
        united, start = found, end
    return False


def _spelt(
    block: pa.Buffer, columns: Columns, given: Columns, pinned: set[str], spellings: Sequence[typed.Spelling]
) -> tuple[pa.Table, pa.Schema, tuple[Any, ...]]:
    """The table, the schema that it was read with, and how its pinned columns are spelt."""
    for spelling in spellings:
        schema = typed.spelt_schema(columns, given, spelling)
        try:
            return _read(block, schema, "infer"), schema, (spelling,)
        except pa.ArrowInvalid:
            if len(spellings) == 1:
                raise
    shown = _read(block, kinds.to_arrow({name: columns[name] for name in columns.keys() - pinned}), "infer").schema
    schema = typed.spelt_schema(columns, given, "text", shown)
    return _read(block, schema, "infer"), schema, ("text", shown)


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
    values: Sequence[bytes], columns: Columns, given: Columns, rule: Rule, most: int
) -> tuple[pa.BinaryArray, Columns, Refusals]:
    """The texts with pinned columns spelt alike, their columns, and those that are refused."""
    respell = any(typed.holds_pinned(kind, given.get(name)) for name, kind in columns.items())
    united, texts, refused = columns, list(values), {}
    for row, value in enumerate(values):
        try:
            decoded = json.loads(value, object_pairs_hook=_unique, parse_int=_integer, parse_float=Number.of)
            if respell:
                texts[row] = json.dumps(respelt(decoded, columns, given)).encode()
            found = typed.fitted(united, kinds.of_object(decoded), given)
            if found == united:
                continue
            if reason := misfit(found, rule) or kinds.beyond(found, united, most):
                raise Conflict(reason)
            united = found
        except (Conflict, RecursionError) as error:
            refused[row] = str(error) if isinstance(error, Conflict) else "nested too deeply"
    return pa.array(texts, pa.binary()), kinds.held(united), refused


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
