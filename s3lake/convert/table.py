"""JSON objects to Arrow columns, one row per record, never shifted.

The columns are the sink's recorded ones, united with what the values show; the caller then starts again with these.
"""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from s3lake.convert import exact_integers, gate
from s3lake.convert.gate import Refusals, rest
from s3lake.convert.json_columns import JsonColumns, fitted, json_columns
from s3lake.convert.json_reading import read_fitting, read_texts
from s3lake.convert.limits import NO_LIMITS, Limits, misfit
from s3lake.encode.formats import Rule
from s3lake.schema.types import UNKNOWN, Columns
from s3lake.schema.unite import Conflict, agree

NOTHING = "the object holds nothing, and no column is known yet"
"""Why a row is refused that no column could hold."""


class Table(NamedTuple):
    """What JSON objects are as rows.

    Attributes:
        batch: given columns first; it lacks the refused rows. None if every row is refused.
        columns: those known before, united with what is in the batch.
        refused: row -> why.
        large: paths of columns in which the values have integers beyond 2^53.
    """

    batch: pa.RecordBatch | None
    columns: Columns
    refused: Refusals
    large: frozenset[str] = frozenset()


def read_objects(
    values: pa.BinaryArray,
    columns: Columns,
    given: Columns | None = None,
    limits: Limits = NO_LIMITS,
    *,
    checked: bool = True,
) -> Table:
    """Read rows of `values`, none of which is null. They passed the JSON gate if they are `checked`.

    No integer is rounded: if its column does not hold it exactly, its row is refused. If a column would become one of
    doubles while the values have integers beyond 2^53 there, it stays one of integers, and fractions are refused.
    """
    given = given or {}
    known = json_columns(_known(columns, given, limits.rule), given)
    batch: pa.RecordBatch | None = None
    united = known.columns
    refused, large = Refusals(), frozenset[str]()
    is_odd = False
    if not checked:
        try:
            batch = _read_unchecked(values, known)
        except pa.ArrowInvalid:
            is_odd = True
        if batch is None:
            refused, values = gate.json_refusals(values), gate.one_line(values)
    while True:
        kept = rest(len(values), refused)
        if batch is None:
            texts = values if kept is None else values.take(kept)
            if lost := _not_objects(texts):
                refused |= _of_all(lost, kept)
                continue
            batch, united, lost = read_texts(texts, known, limits, is_odd=is_odd and kept is None)
            refused |= _of_all(lost, kept)
        if not united:  # a file without columns cannot hold rows
            return Table(None, columns, dict.fromkeys(range(len(values)), NOTHING) | refused)
        if batch is None:
            return Table(None, agree(columns, united), refused, large)
        kept = rest(len(values), refused)
        found = exact_integers.judge(batch, values, kept, united, known)
        large |= found.large
        refused |= found.refused
        if found.integral or found.unsettled:
            batch, limits = None, limits.keep_integers(found.integral)
            continue
        if found.refused:
            rows = range(len(values)) if kept is None else kept.to_pylist()
            batch = batch.filter(pa.array([row not in found.refused for row in rows]))
        return Table(batch if batch.num_rows else None, agree(columns, united), refused, large)


def _of_all(refused: Refusals, kept: pa.Int64Array | None) -> Refusals:
    """Refusals among the kept rows, by the rows' numbers among all."""
    return refused if kept is None else {kept[row].as_py(): reason for row, reason in refused.items()}


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


def _read_unchecked(values: pa.BinaryArray, known: JsonColumns) -> pa.RecordBatch | None:
    """Read objects without the gate; return None if it is in doubt whether all are objects.

    pyarrow's parser is as strict as the gate, but for UTF-8 and for zero bytes, which end its input.

    Raises:
        pa.ArrowInvalid: some object is odd.
    """
    if not gate.are_objects(values) or not gate.lowest_byte(values) or gate.text_refusals(values):
        return None
    return read_fitting(values, known)


def _not_objects(values: pa.BinaryArray) -> Refusals:
    # pyarrow.json crashes the process on a number at the top, so nothing but objects may reach it.
    if gate.all_begin_with(values, b"{"):
        return {}
    braces = pc.starts_with(pc.utf8_ltrim(values.cast(pa.string()), characters=" \t\r\n"), "{")
    return {
        row: "the value is no JSON object, which a table needs"
        for row, is_object in enumerate(braces.to_pylist())
        if not is_object
    }
