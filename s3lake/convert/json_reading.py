"""JSON objects read at once by pyarrow, and those that it cannot read with the others one by one.

If all objects fit the columns, pyarrow reads them, and nothing else looks at them. Else every object that does not fit
is looked at by itself, which shows new columns, and the others are read at once: an odd one makes no other dearer.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as pyarrow_json

from s3lake.convert.gate import Refusals, joined, rest
from s3lake.convert.json_columns import JsonColumns, fitted, json_columns, spelt_schema
from s3lake.convert.json_probes import strict_decoder
from s3lake.convert.json_values import Number, respelt
from s3lake.convert.limits import Limits, misfit
from s3lake.convert.pinned import converted
from s3lake.convert.schemas import Numbers
from s3lake.schema.json import of_object
from s3lake.schema.types import Columns
from s3lake.schema.unite import Conflict, beyond, held

_FIRST = 100
"""Odd records that are looked at before the others are compared with the columns that these have shown."""

_STRAYS = 64
"""Records among which one that cannot be read with the others is not searched any further."""

_SHOWING = 20
"""Records that show how dates and times are spelt."""

_Unexpected = Literal["error", "ignore"]
"""What pyarrow does with fields that are not in the columns."""


def read_texts(
    values: pa.BinaryArray, recorded: JsonColumns, limits: Limits, *, is_odd: bool = False
) -> tuple[pa.RecordBatch | None, Columns, Refusals]:
    """Read JSON objects, of which some are known to be odd if `is_odd`.

    Returns:
        The rows of those that are not refused, their columns, and why the others are refused.
    """
    if not is_odd:
        try:
            return read_fitting(values, recorded), recorded.columns, {}
        except pa.ArrowInvalid:
            pass
    return _read_apart(values, recorded, limits)


def _read_apart(
    values: pa.BinaryArray, recorded: JsonColumns, limits: Limits
) -> tuple[pa.RecordBatch | None, Columns, Refusals]:
    """Read JSON objects of which some are odd: only these are looked at one by one, the others are read at once."""
    odd = _OddRows(values.to_pylist(), recorded, limits)
    odd.look_for_columns()
    recorded.note_nulls(odd.columns)
    apart = set(odd.texts) if recorded.pinned else set[int]()
    while True:
        columns = json_columns(held(odd.columns), recorded.given)
        if not columns.columns:
            return None, {}, odd.refused
        ordinary = rest(len(values), apart | odd.refused.keys())
        rows = np.arange(len(values)) if ordinary is None else ordinary.to_numpy()
        pieces, strays = _read_in_parts(values, rows, columns)
        for row in strays:
            odd.look(row)
        apart.update(strays)
        if held(odd.columns) == columns.columns:
            break
    rows = np.array(sorted(apart - odd.refused.keys()), np.int64)
    if len(rows):
        texts = pa.array([odd.texts[row] for row in rows.tolist()], pa.binary())
        pieces.append((rows, _parse(texts, columns, "ignore", respelt=True)))
    if not pieces:
        return None, columns.columns, odd.refused
    table = pa.Table.from_batches([batch for _, batch in pieces]).combine_chunks()
    order = np.argsort(np.concatenate([rows for rows, _ in pieces]))
    if len(pieces) > 1:
        table = table.take(pa.array(order))
    return table.combine_chunks().to_batches()[0], columns.columns, odd.refused


def _read_in_parts(
    values: pa.BinaryArray, rows: Numbers, columns: JsonColumns
) -> tuple[list[tuple[Numbers, pa.RecordBatch]], list[int]]:
    """Read rows at once, halved until only few remain that cannot be read so: the parts that can, and these few.

    All of them fit the columns, so fields that are not in these hold nothing.
    """
    parts: list[tuple[Numbers, pa.RecordBatch]] = []
    strays: list[int] = []
    waiting = [rows] if len(rows) else []
    while waiting:
        some = waiting.pop()
        try:
            parts.append((some, _parse(values.take(pa.array(some)), columns, "ignore")))
        except pa.ArrowInvalid:
            if len(some) <= _STRAYS:
                strays += some.tolist()
            else:
                waiting += np.array_split(some, 2)
    return parts, strays


class _OddRows:
    """JSON objects that are looked at one by one.

    Attributes:
        columns: those recorded, united with what the objects showed that were looked at.
        texts: row -> its text with pinned columns spelt alike.
        refused: row -> why.
    """

    def __init__(self, texts: Sequence[bytes], recorded: JsonColumns, limits: Limits) -> None:
        self.columns = recorded.columns
        self.texts: dict[int, bytes] = {}
        self.refused: Refusals = {}
        self._all, self._recorded, self._limits = texts, recorded, limits

    def look_for_columns(self) -> None:
        """Look at every object that does not fit the columns, which grow by what the ones before it showed."""
        left, count = self._unfitting(range(len(self._all))), _FIRST
        while left:
            for row in left[:count]:
                self.look(row)
            left, count = self._unfitting(left[count:]), 2 * count

    def look(self, row: int) -> None:
        """Take in the columns of an object and its text, or refuse it."""
        recorded, limits, text = self._recorded, self._limits, self._all[row]
        try:
            decoded = json.loads(text, object_pairs_hook=_unique, parse_int=_integer, parse_float=Number.of)
            if recorded.pinned:
                text = json.dumps(respelt(decoded, recorded.columns, recorded.given)).encode()
            wider = fitted(self.columns, of_object(decoded), recorded.given, integral=limits.integral)
            if wider != self.columns:
                if reason := misfit(wider, limits.rule) or beyond(wider, self.columns, limits.most):
                    raise Conflict(reason)
                self.columns = wider
            self.texts[row] = text
        except (Conflict, RecursionError) as error:
            self.refused[row] = str(error) if isinstance(error, Conflict) else "nested too deeply"

    def _unfitting(self, rows: Sequence[int]) -> Sequence[int]:
        if self._recorded.has_map or not self.columns:  # maps are read one by one
            return rows
        decode, unfitting = strict_decoder(self.columns), []
        for row in rows:
            try:
                decode(self._all[row])
            except (msgspec.DecodeError, RecursionError):
                unfitting.append(row)
        return unfitting


def _integer(digits: str) -> int | float:
    # Python refuses to read thousands of digits; far fewer are beyond a double.
    return int(digits) if len(digits) < 400 else float(digits)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise Conflict(f"field {twice!r} is given twice")
    return found


def read_fitting(values: pa.BinaryArray, recorded: JsonColumns) -> pa.RecordBatch | None:
    """Read objects that have no fields but the columns', and such as were always null; None if there are no objects.

    Raises:
        pa.ArrowInvalid: some object is odd.
    """
    if not recorded.columns:
        raise pa.ArrowInvalid("no column is known")
    return _parse(values, recorded, "error") if len(values) else None


def _parse(
    values: pa.BinaryArray, recorded: JsonColumns, unexpected: _Unexpected, *, respelt: bool = False
) -> pa.RecordBatch:
    """Read values all at once. Raise ArrowInvalid if some of them cannot be read in this way."""
    if not respelt and recorded.has_map:
        raise pa.ArrowInvalid("maps are read one by one")
    if not respelt and recorded.decimals is not None and not recorded.decimals(values):
        raise pa.ArrowInvalid("some decimal would overflow, or is no plain number")
    schema = recorded.arrow
    if recorded.pinned:
        schema = spelt_schema(recorded.columns, None if respelt else _decode_first(values))
    nulls = [(name, pa.null()) for name in recorded.nulls] if unexpected == "error" else []
    table = _read(joined(values), pa.schema([*schema, *nulls]), unexpected).select(schema.names)
    if any(map(_has_infinity, table.columns)):
        raise pa.ArrowInvalid("an integer is beyond a double")
    if table.num_rows != len(values):
        raise pa.ArrowInvalid(f"{len(values)} values gave {table.num_rows} rows")
    batch = table.combine_chunks().to_batches()[0]
    if not recorded.pinned:
        return batch
    arrays = [
        converted(array, type) if name in recorded.pinned else array
        for array, (name, type) in zip(batch.columns, recorded.columns.items(), strict=True)
    ]
    return pa.record_batch(arrays, schema=recorded.arrow)


def _decode_first(values: pa.BinaryArray) -> list[Any]:
    try:
        return [*map(msgspec.json.decode, values[:_SHOWING].to_pylist())]
    except (msgspec.DecodeError, RecursionError):
        raise pa.ArrowInvalid("some value is no JSON, or nests deeply") from None


def _has_infinity(column: Any) -> bool:
    # JSON has no infinity: pyarrow makes it of integers with hundreds of digits.
    if pa.types.is_floating(column.type):
        return pc.any(pc.is_inf(column)).as_py() is True
    if pa.types.is_list(column.type):
        return _has_infinity(pc.list_flatten(column))
    if pa.types.is_struct(column.type):
        return any(map(_has_infinity, column.flatten()))  # all fields at once: one by one each costs all of them
    return False


def _read(block: pa.Buffer, schema: pa.Schema, unexpected: _Unexpected) -> pa.Table:
    return pyarrow_json.read_json(
        pa.BufferReader(block),
        # One block: types inferred block by block could differ. No threads: Spark has given this task its core.
        read_options=pyarrow_json.ReadOptions(use_threads=False, block_size=block.size + 1),
        parse_options=pyarrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior=unexpected),
    )
