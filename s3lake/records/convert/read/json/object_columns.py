"""JSON objects to the columns of a table: one row per record, never shifted.

Arrow's reader takes a whole batch at once. Records of which it cannot be sure, and types that JSON lacks (dates,
decimals, UUIDs, maps, narrow numbers), are read one by one, exactly. Columns grow by what records show; a declared
column never does, and neither does one whose type JSON lacks: a value that does not fit it refuses its record.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal as Number
from operator import attrgetter
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple, Optional
from uuid import UUID

import msgspec
import pyarrow as pa

from s3lake.records.convert.read import arrays, value_checks
from s3lake.records.convert.read.arrays import Build, Misfit
from s3lake.records.convert.read.json.exact_integers import find_large_columns
from s3lake.records.convert.read.json.inferred_types import LARGE, decode_checked_json, infer_type, widen
from s3lake.records.convert.read.json.object_blocks import Block, is_foreign, make_block
from s3lake.records.convert.read.json.unplaced_fields import (
    NOTHING_UNPLACED,
    UnplacedField,
    UnplacedFields,
    place_object,
)
from s3lake.records.convert.read.value_checks import Refusals, list_others
from s3lake.records.schema.columns.arrow_types import arrow_type
from s3lake.records.schema.columns.changes import find_column_type
from s3lake.records.schema.columns.limits import HAS_LARGE, NO_LIMITS, Limits, Rule, explain_unsupported
from s3lake.records.schema.columns.types import (
    UNKNOWN,
    Columns,
    Decimal,
    List,
    Map,
    Primitive,
    Struct,
    Type,
    Unknown,
    fields_of,
    fold,
)
from s3lake.records.schema.columns.union import Conflict, check_column_limit, drop_empty, merge_columns

NOTHING = "the object holds nothing, and no column is known yet: declare columns, or use format json"
NOT_AN_OBJECT = "the value is not a JSON object, which a table needs: use format json, or wrap it by HoistField$Value"
"""Why a row is refused that no column could hold."""

_FIRST = 100
"""Records that are looked at before the others are compared with the columns that these have shown."""
_FLOAT = 3.4028235677973362e38  # the largest number that is rounded to a float, as Java's 3.4028235E38 is
_DECODED: dict[Primitive, Any] = {
    Primitive.BOOL: bool,
    Primitive.INT32: Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)],
    Primitive.INT64: Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)],
    Primitive.FLOAT: int | Annotated[float, msgspec.Meta(ge=-_FLOAT, le=_FLOAT)],
    Primitive.STRING: str,
    Primitive.BINARY: bytes,
    Primitive.UUID: UUID,
}
"""What a value of a column is decoded as; times are numbers or texts."""

_NO_COLUMNS: Columns = {}


class TableRows(NamedTuple):
    """Rows of a table.

    Attributes:
        batch: given columns first; it lacks the refused rows. None if nothing can be written of the others.
        columns: those recorded before, united with what is in rows without a schema of their own.
        refused: row -> why.
        large: paths of columns in which rows without a schema have integers beyond 2^53.
        seen: columns of rows that have a schema.
        words: descriptions of columns, from the schemas of rows.
        unplaced: row of the values -> its fields that no column holds, if the row is in the batch.
    """

    batch: pa.RecordBatch | None
    columns: Columns
    refused: Refusals
    large: frozenset[str] = frozenset()
    seen: Columns = _NO_COLUMNS
    words: Mapping[str, str] = MappingProxyType({})
    unplaced: UnplacedFields = NOTHING_UNPLACED


@dataclass(frozen=True)
class _Recorded:
    """Columns before a batch is read, and what follows from them alone.

    Attributes:
        columns: declared ones, and the recorded ones that fit next to them.
        united: recorded ones, united with `columns`.
        block: reads whole batches; None if Arrow cannot.
        pinned: reads of an object only the fields that never follow the data; None if there are none.
    """

    columns: Columns
    declared: Columns
    united: Columns
    block: Block | None
    pinned: _ObjectReader | None


def read_objects(
    values: pa.BinaryArray,
    columns: Columns,
    declared: Columns | None = None,
    limits: Limits = NO_LIMITS,
    *,
    checked: bool = True,
) -> TableRows:
    """Read rows of `values`, none of which is null. They passed the JSON gate if they are `checked`.

    No integer is rounded: if its column does not hold it exactly, its row is refused. If a column would become one of
    doubles while the values have integers beyond 2^53 there, it stays one of integers, and fractions are refused.
    """
    declared = declared or {}
    recorded = _compile(tuple(columns.items()), tuple(declared.items()), limits.rule)
    if recorded.block is not None:
        batch = recorded.block.read_at_once(values, checked=checked)
        if batch is not None:
            return TableRows(batch, recorded.united, {}, frozenset(find_large_columns(batch)))
    rows = _read_by_first(values, columns, declared, limits, checked=checked)
    if rows is not None:
        return rows
    refused: Refusals = {}
    if not checked:
        refused, values = value_checks.check_json(values), value_checks.replace_line_breaks(values)
    refused = value_checks.find_repeated_names(values) | refused  # of which Arrow's reader is never sure
    texts = values.to_pylist()
    while True:
        look = _Look(texts, recorded, limits, dict(refused))
        look.find_columns()
        if recorded.block is not None:
            recorded.block.note_nulls(look.columns)
        wider = drop_empty(look.columns)
        if not wider:  # a file without columns cannot hold rows
            return TableRows(None, columns, dict.fromkeys(range(len(values)), NOTHING) | look.refused)
        placed, unplaced = look.place(wider)
        batch = None
        if wider != recorded.columns or look.refused or unplaced:
            kept = list_others(len(values), look.refused)
            some = pa.array(placed, pa.binary()) if unplaced else values
            some = some if kept is None else some.take(kept)
            block = _compile(tuple(wider.items()), tuple(declared.items()), limits.rule).block
            if block is not None:
                block.note_nulls(look.columns)
                batch = block.read(some, "ignore")
        lost = look.find_rounded_columns() if batch is None else None
        if not lost:
            break
        limits = replace(limits, integral={**dict.fromkeys(lost, HAS_LARGE), **limits.integral})
    refused = look.refused
    if batch is None:
        batch, more = _make_reader(Struct(wider)).read(placed, look.rows)
        refused |= more
    large = frozenset(find_large_columns(batch)) | look.find_large_doubles()
    unplaced = {row: fields for row, fields in unplaced.items() if row not in refused}
    united = merge_columns(columns, wider)
    return TableRows(batch if batch.num_rows else None, united, refused, large, unplaced=unplaced)


def _read_by_first(
    values: pa.BinaryArray, columns: Columns, declared: Columns, limits: Limits, *, checked: bool
) -> TableRows | None:
    """Read rows of which all but the first ones surely fit the columns that those show. Return None for others."""
    first = read_objects(values[:_FIRST], columns, declared, limits, checked=checked) if len(values) > _FIRST else None
    if first is None or first.batch is None or first.columns == columns:
        return None
    block = _compile(tuple(first.columns.items()), tuple(declared.items()), limits.rule).block
    others = None if block is None else block.read_at_once(values[_FIRST:], checked=checked)
    if others is None or others.schema != first.batch.schema:
        return None
    (batch,) = pa.Table.from_batches([first.batch, others]).combine_chunks().to_batches()
    return first._replace(batch=batch, large=first.large | frozenset(find_large_columns(others)))


def read_values(texts: Sequence[bytes | None], type: Type) -> tuple[pa.Array, Refusals]:
    """Return an array of JSON texts that fit the type, null for missing ones, and why each of the others does not."""
    fields = fields_of(type)
    columns = fields or {"value": type}
    objects = texts
    if fields and None in texts:
        objects = [b"{}" if text is None else text for text in texts]
    elif not fields:
        objects = [b'{"value":%s}' % (b"null" if text is None else text) for text in texts]
    batch, _, refused, *_ = read_objects(pa.array(objects, pa.binary()), {}, columns)
    if batch is None:
        return pa.array([], arrow_type(type)), refused
    if not fields:
        return batch.column(0), refused
    is_missing = pa.array([text is None for row, text in enumerate(texts) if row not in refused])
    return pa.StructArray.from_arrays(batch.columns, fields=list(batch.schema), mask=is_missing), refused


def _merge_declared(columns: Columns, declared: Columns, rule: Rule) -> Columns:
    # What the user declares beats what is recorded; the recorded columns of another format may not fit this one.
    merged = dict(declared)
    for name, type in columns.items():
        if explain_unsupported({name: type}, rule) is None:
            try:
                merged |= widen({name: merged.get(name, UNKNOWN)}, {name: type}, declared)
            except Conflict:
                merged[name] = declared[name]
    return merged


@functools.lru_cache(maxsize=64)
def _compile(columns: tuple[tuple[str, Type], ...], declared: tuple[tuple[str, Type], ...], rule: Rule) -> _Recorded:
    fixed = dict(declared)
    types = _merge_declared(dict(columns), fixed, rule)

    def of_leaf(leaf: Primitive | Decimal | Unknown) -> Type:
        return leaf if is_foreign(leaf) else UNKNOWN

    pinned = drop_empty({name: fold(type, of_leaf, List, Struct, Map) for name, type in types.items()}) | fixed
    united = merge_columns(dict(columns), types)
    return _Recorded(types, fixed, united, make_block(types), _make_reader(Struct(pinned)) if pinned else None)


# One by one


@dataclass(frozen=True)
class _ObjectReader:
    """Reads texts as values of one type, each by itself, and makes an array of them."""

    type: Struct
    decode: Callable[[bytes], Any]
    build: Build

    def read(self, texts: Sequence[bytes], rows: Sequence[int]) -> tuple[pa.RecordBatch, Refusals]:
        """Read these rows. Return a batch of the fitting ones, and why each of the others does not fit."""
        objects, refused = [], Refusals()
        for row in rows:
            try:
                objects.append(self.decode(texts[row]))
            except (msgspec.DecodeError, RecursionError) as error:
                refused[row] = self._explain(error)
        kept = [row for row in rows if row not in refused] if refused else rows
        array, misfits = arrays.build_each(self.build, objects)
        refused |= {kept[at]: reason for at, reason in misfits.items()}
        return pa.RecordBatch.from_struct_array(array), refused

    def require_fit(self, text: bytes) -> None:
        """Raise Conflict if a text has a field that does not fit."""
        _, refused = self.read([text], [0])
        if refused:
            raise Conflict(refused[0])

    def _explain(self, error: Exception) -> str:
        """Return which field does not fit; no message quotes a value."""
        if isinstance(error, RecursionError):
            return "nested too deeply"
        path = str(error).partition(" - at `$.")[2].rstrip("`").replace("[...]", "[]")
        type = find_column_type(self.type.fields, path)
        return str(error) if type is None else str(Misfit(type, path))


@functools.lru_cache(maxsize=256)
def _make_reader(type: Struct, *, is_strict: bool = False) -> _ObjectReader:
    """Return a reader of objects with these fields or some of them.

    A strict one refuses other fields, and integers beyond 2^53 in columns of doubles: such objects are looked at.
    """

    def of_leaf(leaf: Primitive | Decimal | Unknown) -> tuple[Any, Build]:
        decoded: Any = _DECODED.get(leaf, int | str) if isinstance(leaf, Primitive) else None
        if isinstance(leaf, Decimal):
            decoded = Number
        elif leaf is Primitive.DOUBLE:
            decoded = Annotated[int, msgspec.Meta(ge=-LARGE, le=LARGE)] | float if is_strict else int | float
        return decoded, arrays.make_leaf(leaf)

    def of_list(item: tuple[Any, Build]) -> tuple[Any, Build]:
        decoded, build = item
        return list[Optional[decoded]], arrays.make_list(build)  # type: ignore[valid-type]  # noqa: UP045

    def of_map(value: tuple[Any, Build]) -> tuple[Any, Build]:
        decoded, build = value
        return dict[str, Optional[decoded]], arrays.make_map(build)  # type: ignore[valid-type]  # noqa: UP045

    def of_struct(fields: dict[str, tuple[Any, Build]]) -> tuple[Any, Build]:
        names = {name: f"f{at}" for at, name in enumerate(fields)}  # names of fields need be no names of Python's
        record = msgspec.defstruct(
            "Record",
            [(names[name], Optional[decoded], None) for name, (decoded, _) in fields.items()],  # noqa: UP045
            rename={short: name for name, short in names.items()},
            forbid_unknown_fields=is_strict,
            gc=False,
        )
        gets = {name: (attrgetter(names[name]), build) for name, (_, build) in fields.items()}
        return record, arrays.make_struct_builder(gets)

    decoded, build = fold(type, of_leaf, of_list, of_struct, of_map)
    return _ObjectReader(type, msgspec.json.Decoder(decoded).decode, build)


class _Look:
    """JSON objects that do not fit the columns are looked at one by one.

    Attributes:
        columns: those recorded, united with what the objects showed that were looked at.
        refused: row -> why.
    """

    def __init__(self, texts: Sequence[bytes], recorded: _Recorded, limits: Limits, refused: Refusals) -> None:
        self.columns, self.limits, self.refused = recorded.columns, limits, refused
        self._texts, self._recorded = texts, recorded
        self._large: set[str] = set()
        self._unfitting: Sequence[int] = ()

    @property
    def rows(self) -> Sequence[int]:
        return [row for row in range(len(self._texts)) if row not in self.refused]

    def find_columns(self) -> None:
        """Look at every object that does not fit the columns, which grow by what the ones before it showed."""
        self._unfitting = self._find_unfitting(self.rows)
        left, count = self._unfitting, _FIRST
        while left:
            for row in left[:count]:
                self._look(row)
            left, count = self._find_unfitting(left[count:]), 2 * count

    def find_rounded_columns(self) -> frozenset[str]:
        """Return the paths of columns that became doubles, and would round integers that are there.

        Looks at integers, too, that fitted before their column became one of doubles.
        """
        if self.columns != self._recorded.columns:
            for row in self._find_unfitting(self.rows):
                self._look(row)
        recorded = self._recorded.columns
        return frozenset(
            path for path in self.find_large_doubles() if find_column_type(recorded, path) != Primitive.DOUBLE
        )

    def find_large_doubles(self) -> frozenset[str]:
        """Return the paths of columns of doubles in which there are integers beyond 2^53, without declared ones."""
        declared = self._recorded.declared
        inferred = (path for path in self._large if find_column_type(declared, path) is None)
        return frozenset(path for path in inferred if find_column_type(self.columns, path) == Primitive.DOUBLE)

    def place(self, columns: Columns) -> tuple[Sequence[bytes], UnplacedFields]:
        """Return the texts as the columns of a file hold them, and the fields of each row that they do not hold."""
        texts, unplaced = list(self._texts), dict[int, frozenset[UnplacedField]]()
        has_new = columns != self._recorded.columns
        rows = self.rows if has_new else [row for row in self._unfitting if row not in self.refused]
        for row in self._find_unfitting(rows, columns):
            texts[row], fields = place_object(texts[row], columns, self._recorded.declared)
            if fields:
                unplaced[row] = fields
        return texts, unplaced

    def _look(self, row: int) -> None:
        recorded, text, large = self._recorded, self._texts[row], set[str]()
        try:
            value = decode_checked_json(text)
            if not isinstance(value, dict):
                raise Conflict(NOT_AN_OBJECT)
            if recorded.pinned is not None:  # first of all: a refused record must not leave columns behind
                placed, _ = place_object(text, fields_of(recorded.pinned.type), recorded.declared)
                recorded.pinned.require_fit(placed)
            seen = fields_of(infer_type(value, large=large))
            if reason := explain_unsupported(seen, self.limits.rule):  # whatever columns there are
                raise Conflict(reason)
            wider = widen(self.columns, seen, recorded.declared, integral=self.limits.integral)
            if wider != self.columns:
                if reason := explain_unsupported(wider, self.limits.rule) or check_column_limit(
                    wider, self.columns, self.limits.most
                ):
                    raise Conflict(reason)
                self.columns = wider
            self._large |= large
        except Conflict as error:
            self.refused[row] = str(error)

    def _find_unfitting(self, rows: Sequence[int], columns: Columns | None = None) -> Sequence[int]:
        columns = self.columns if columns is None else columns
        if not columns or not rows:
            return rows
        decode, unfitting = _make_reader(Struct(columns), is_strict=True).decode, []
        for row in rows:
            try:
                decode(self._texts[row])
            except (msgspec.DecodeError, RecursionError):
                unfitting.append(row)
        return unfitting
