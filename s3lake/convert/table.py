"""JSON objects to Arrow columns, one row per record, never shifted.

The columns are the sink's recorded ones. Values with a new field, or with an integer column's first fraction, show
themselves in what pyarrow infers beside the given schema; the caller then starts again with the united columns.
"""

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as pyarrow_json

from s3lake.convert import columns as kinds
from s3lake.convert.columns import Columns, Conflict
from s3lake.convert.gate import Refusals, joined


def read_objects(values: pa.BinaryArray, columns: Columns) -> tuple[pa.RecordBatch | None, Columns, Refusals]:
    """Rows of `values`, which passed the JSON gate and hold no null and no newline.

    Returns:
        The batch in the schema of the united columns (None where every row was refused), those columns, and the rows
        that are refused; the batch lacks them.
    """
    refused = _not_objects(values)
    kept = _without(values, refused)
    try:
        batch, united = _parse(kept, columns)
    except (pa.ArrowInvalid, Conflict):
        united, conflicts = _unite_one_by_one(kept.to_pylist(), columns)
        rows = [row for row in range(len(values)) if row not in refused]
        refused.update({rows[position]: reason for position, reason in conflicts.items()})
        batch, united = _parse(_without(kept, conflicts), united)
    if not united:  # a file without columns cannot hold rows
        return (
            None,
            united,
            dict.fromkeys(range(len(values)), "the object holds nothing, and no column is known yet") | refused,
        )
    return batch, united, refused


def _parse(values: pa.BinaryArray, columns: Columns) -> tuple[pa.RecordBatch | None, Columns]:
    if not len(values):
        return None, columns
    block = joined(values)
    schema = kinds.to_arrow(columns)
    table = _read(block, schema, "infer")
    united = kinds.unite_columns(columns, kinds.from_arrow(table.schema))
    if table.schema != schema:
        # Inferred types serve, inferred arrays do not: strings became timestamps, and lists that begin with a null
        # point outside of their memory (apache/arrow#51305).
        table = _read(block, kinds.to_arrow(united), "ignore")
    if any(map(_has_infinity, table.columns)):
        raise pa.ArrowInvalid("an integer is beyond a double")
    if table.num_rows != len(values):
        raise pa.ArrowInvalid(f"{len(values)} values gave {table.num_rows} rows")
    return (table.combine_chunks().to_batches()[0] if united else None), united


def _has_infinity(column: Any) -> bool:
    # JSON has no infinity: pyarrow makes it of integers with hundreds of digits.
    if pa.types.is_floating(column.type):
        return pc.any(pc.is_inf(column)).as_py() is True
    if pa.types.is_list(column.type):
        return _has_infinity(pc.list_flatten(column))
    if pa.types.is_struct(column.type):
        return any(_has_infinity(pc.struct_field(column, [one])) for one in range(column.type.num_fields))
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
    braces = pc.starts_with(pc.utf8_ltrim(values.cast(pa.string()), characters=" \t\r\n"), "{")
    if pc.all(braces).as_py() is not False:
        return {}
    return {
        row: "the value is no JSON object, which a table needs"
        for row, is_object in enumerate(braces.to_pylist())
        if not is_object
    }


def _unite_one_by_one(values: Sequence[bytes], columns: Columns) -> tuple[Columns, Refusals]:
    united, refused = columns, {}
    for row, value in enumerate(values):
        try:
            decoded = json.loads(value, object_pairs_hook=_unique, parse_int=_integer)
            united = kinds.unite_columns(united, kinds.of_object(decoded))
        except (Conflict, RecursionError) as error:
            refused[row] = str(error) if isinstance(error, Conflict) else "nested too deeply"
    return kinds.held(united), refused


def _integer(digits: str) -> int | float:
    # Python refuses to read thousands of digits; far fewer are beyond a double.
    return int(digits) if len(digits) < 400 else float(digits)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        raise Conflict(f"field {next(name for name in names if names.count(name) > 1)!r} is given twice")
    return found


def _without(values: pa.BinaryArray, refused: Refusals) -> pa.BinaryArray:
    kept = [row for row in range(len(values)) if row not in refused]
    return values.take(pa.array(kept, pa.int64())) if refused else values
