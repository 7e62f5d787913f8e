"""JSON objects to the columns of a table: one row per record, never shifted.

Arrow's reader takes a whole batch at once. Records of which it cannot be sure, and types that JSON lacks (dates,
decimals, UUIDs, maps, narrow numbers), are read one by one, exactly. Columns grow by what records show; a declared
column never does, and neither does one whose type JSON lacks: a value that does not fit it refuses its record.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal as Number
from operator import attrgetter
from typing import Annotated, Any, Literal, NamedTuple, Optional
from uuid import UUID

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as pyarrow_json

from s3lake.convert import arrays, gate
from s3lake.convert.arrays import Build, Misfit
from s3lake.convert.gate import Refusals, rest
from s3lake.convert.limits import NO_LIMITS, Limits, misfit
from s3lake.encode.formats import Rule
from s3lake.schema.arrow import to_arrow
from s3lake.schema.changes import find_type
from s3lake.schema.types import (
    MOST_LEVELS,
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
    has,
    item_of,
)
from s3lake.schema.unite import Conflict, agree, beyond, held, joined, too_deep, unite

UNREADABLE = re.compile(r'["\\\x00-\x1f]')
"""Characters that msgspec does not take in the name of a field."""
_UNREADABLE_NAME = "its name has a quote, a backslash or a control character: rename it"
NOTHING = "the object holds nothing, and no column is known yet"
"""Why a row is refused that no column could hold."""

_LARGE = 2**53
"""All integers up to here are doubles."""
_FIRST = 100
"""Odd records that are looked at before the others are compared with the columns that these have shown."""
_MOST_NULLS = 100
_SAMPLES = 20
"""Records that show how dates and times are written."""
_INT64 = range(-(2**63), 2**63)
_FLOAT = 3.4028234663852886e38
_INFERRED = frozenset({Primitive.BOOL, Primitive.INT64, Primitive.DOUBLE, Primitive.STRING})
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
_decode_any = msgspec.json.Decoder().decode


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


@dataclass(frozen=True)
class _Known:
    """Columns before a batch is read, and what follows from them alone.

    Attributes:
        arrow: what Arrow's reader reads them with; None if it lacks one of the types.
        times: dates and times, which are written as texts or as numbers.
        pinned: reads of an object only the fields that never follow the data; None if there are none.
        nulls: names of fields that were null in all objects that were looked at; they grow, so that objects with such
            fields are read as fast as others.
    """

    columns: Columns
    declared: Columns
    arrow: pa.Schema | None
    times: Mapping[str, Primitive]
    pinned: _Reader | None
    nulls: set[str] = field(default_factory=set)

    def note_nulls(self, columns: Columns) -> None:
        """Note which of the columns, found in objects, hold nothing but nulls."""
        found = [name for name, type in columns.items() if type == UNKNOWN and name not in self.columns]
        self.nulls.update(found[: _MOST_NULLS - len(self.nulls)])


def read_objects(
    values: pa.BinaryArray,
    columns: Columns,
    declared: Columns | None = None,
    limits: Limits = NO_LIMITS,
    *,
    checked: bool = True,
) -> Table:
    """Read rows of `values`, none of which is null. They passed the JSON gate if they are `checked`.

    No integer is rounded: if its column does not hold it exactly, its row is refused. If a column would become one of
    doubles while the values have integers beyond 2^53 there, it stays one of integers, and fractions are refused.
    """
    declared = declared or {}
    known = _compile(tuple(_merge_declared(columns, declared, limits.rule).items()), tuple(declared.items()))
    if checked or _are_whole_objects(values):
        batch = _read_block(values, known, "error")
        if batch is not None:
            return Table(batch, agree(columns, known.columns), {}, frozenset(_find_large_columns(batch)))
    refused: Refusals = {}
    if not checked:
        refused, values = gate.json_refusals(values), gate.one_line(values)
    texts = values.to_pylist()
    while True:
        look = _Look(texts, known, limits, dict(refused))
        look.find_columns()
        known.note_nulls(look.columns)
        found = held(look.columns)
        if not found:  # a file without columns cannot hold rows
            return Table(None, columns, dict.fromkeys(range(len(values)), NOTHING) | look.refused)
        batch = None
        if found != known.columns or look.refused:
            kept = rest(len(values), look.refused)
            some = values if kept is None else values.take(kept)
            batch = _read_block(some, _compile(tuple(found.items()), tuple(declared.items())), "ignore")
        lost = look.find_rounded_columns() if batch is None else None
        if not lost:
            break
        limits = limits.keep_integers(lost)
    refused = look.refused
    if batch is None:
        batch, more = _make_reader(Struct(found)).read(texts, look.rows)
        refused |= more
    large = frozenset(_find_large_columns(batch)) | look.find_large_doubles()
    return Table(batch if batch.num_rows else None, agree(columns, found), refused, large)


def _merge_declared(columns: Columns, declared: Columns, rule: Rule) -> Columns:
    # What the user declares beats what is recorded; the recorded columns of another format may not fit this one.
    merged = dict(declared)
    for name, type in columns.items():
        if misfit({name: type}, rule) is None:
            try:
                merged |= widen({name: merged.get(name, UNKNOWN)}, {name: type}, declared)
            except Conflict:
                merged[name] = declared[name]
    return merged


@functools.lru_cache(maxsize=64)
def _compile(columns: tuple[tuple[str, Type], ...], declared: tuple[tuple[str, Type], ...]) -> _Known:
    types, given = dict(columns), dict(declared)
    times = {name: type for name, type in columns if isinstance(type, Primitive) and type in arrays.TIMES}
    is_plain = bool(types) and not any(has(type, _is_foreign, maps=True) for name, type in columns if name not in times)
    pinned = held({name: fold(type, _drop_inferred, List, Struct, Map) for name, type in columns}) | given
    arrow, reader = to_arrow(types) if is_plain else None, _make_reader(Struct(pinned)) if pinned else None
    return _Known(types, given, arrow, times, reader)


def _is_foreign(leaf: Primitive | Decimal | Unknown) -> bool:
    """Return whether JSON shows no such type by itself."""
    return leaf != UNKNOWN and leaf not in _INFERRED


def _drop_inferred(leaf: Primitive | Decimal | Unknown) -> Type:
    return leaf if _is_foreign(leaf) else UNKNOWN


# A whole batch at once


def _are_whole_objects(values: pa.BinaryArray) -> bool:
    """Return whether values that have not passed the gate are surely objects, one in each line, if Arrow reads them.

    Its parser is as strict as the gate, but for UTF-8 and for zero bytes, which end its input.
    """
    return gate.are_objects(values) and gate.lowest_byte(values) > 0 and not gate.text_refusals(values)


def _read_block(values: pa.BinaryArray, known: _Known, unexpected: Literal["error", "ignore"]) -> pa.RecordBatch | None:
    """Read objects that have no fields but the known ones, and such as were always null. Return None if in doubt."""
    # A number at the top would crash the process.
    if known.arrow is None or not len(values) or not gate.all_begin_with(values, b"{"):
        return None
    nulls = [(name, pa.null()) for name in known.nulls] if unexpected == "error" else []
    block = gate.joined(values)
    try:
        schema = _find_written_times(values, known) if known.times else known.arrow
        table = pyarrow_json.read_json(
            pa.BufferReader(block),
            # One block: types inferred block by block could differ. No threads: Spark has given this task its core.
            read_options=pyarrow_json.ReadOptions(use_threads=False, block_size=block.size + 1),
            parse_options=pyarrow_json.ParseOptions(
                explicit_schema=pa.schema([*schema, *nulls]), unexpected_field_behavior=unexpected
            ),
        )
        table = table.select(known.arrow.names)
        if table.num_rows != len(values) or any(map(_may_be_rounded, table.columns)):
            return None
        (batch,) = table.combine_chunks().to_batches()
        for name, type in known.times.items():
            at = batch.schema.get_field_index(name)
            batch = batch.set_column(at, known.arrow.field(name), arrays.convert_times(type, batch.column(at)))
    except (ValueError, msgspec.DecodeError, RecursionError):
        return None
    return batch


def _find_written_times(values: pa.BinaryArray, known: _Known) -> pa.Schema:
    """Return the schema with each date or time as text or number, as it is written in the first objects."""
    samples = [*map(_decode_any, values[:_SAMPLES].to_pylist())]
    schema: Any = known.arrow
    for name in known.times:
        is_text = any(isinstance(sample, dict) and isinstance(sample.get(name), str) for sample in samples)
        schema = schema.set(schema.get_field_index(name), pa.field(name, pa.string() if is_text else pa.int64()))
    return schema


def _may_be_rounded(column: Any) -> bool:
    """Return whether there is a double that Arrow may have made of a larger integer: it rounds without a word."""
    if pa.types.is_floating(column.type):
        ends = pc.min_max(column).as_py()
        return ends["min"] is not None and max(-ends["min"], ends["max"]) >= _LARGE
    if pa.types.is_list(column.type):
        return _may_be_rounded(pc.list_flatten(column))
    # All fields at once: one by one each costs all of them.
    return pa.types.is_struct(column.type) and any(map(_may_be_rounded, column.flatten()))


def _find_large_columns(batch: pa.RecordBatch) -> Iterator[str]:
    """Yield the paths of columns of integers of which one is beyond 2^53."""
    waiting = list(zip(batch.schema.names, batch.columns, strict=True))
    for path, column in waiting:
        if pa.types.is_int64(column.type):
            ends = pc.min_max(column).as_py()
            if ends["min"] is not None and max(-ends["min"], ends["max"]) > _LARGE:
                yield path
        elif pa.types.is_struct(column.type):
            names = [joined(path, inner.name) for inner in column.type]
            waiting += zip(names, column.flatten(), strict=True)
        elif pa.types.is_list(column.type):
            waiting.append((f"{path}[]", pc.list_flatten(column)))


# One by one


@dataclass(frozen=True)
class _Reader:
    """Reads texts as values of one type, each by itself, and makes an array of them."""

    type: Struct
    decode: Callable[[bytes], Any]
    build: Build

    def read(self, texts: Sequence[bytes], rows: Sequence[int]) -> tuple[pa.RecordBatch, Refusals]:
        """Read these rows; return those that fit, and why each of the others does not."""
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
        type = find_type(self.type.fields, path)
        return str(error) if type is None else str(Misfit(type, path))


@functools.lru_cache(maxsize=256)
def _make_reader(type: Struct, *, is_strict: bool = False) -> _Reader:
    """Return a reader of objects with these fields or some of them.

    A strict one refuses other fields, and integers beyond 2^53 in columns of doubles: such objects are looked at.
    """

    def of_leaf(leaf: Primitive | Decimal | Unknown) -> tuple[Any, Build]:
        return _choose_decoded(leaf, is_strict), arrays.make_leaf(leaf)

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
        return record, arrays.make_struct(gets)

    decoded, build = fold(type, of_leaf, _decode_list, of_struct, _decode_map)
    return _Reader(type, msgspec.json.Decoder(decoded).decode, build)


def _choose_decoded(leaf: Primitive | Decimal | Unknown, is_strict: bool) -> Any:
    match leaf:
        case Primitive.DOUBLE:
            return Annotated[int, msgspec.Meta(ge=-_LARGE, le=_LARGE)] | float if is_strict else int | float
        case Primitive():
            return _DECODED.get(leaf, int | str)
        case Decimal():
            return Number
    return None


def _decode_list(item: tuple[Any, Build]) -> tuple[Any, Build]:
    decoded, build = item
    return list[Optional[decoded]], arrays.make_list(build)  # type: ignore[valid-type]  # noqa: UP045


def _decode_map(value: tuple[Any, Build]) -> tuple[Any, Build]:
    decoded, build = value
    return dict[str, Optional[decoded]], arrays.make_map(build)  # type: ignore[valid-type]  # noqa: UP045


class _Look:
    """JSON objects that do not fit the columns are looked at one by one.

    Attributes:
        columns: those known, united with what the objects showed that were looked at.
        refused: row -> why.
    """

    def __init__(self, texts: Sequence[bytes], known: _Known, limits: Limits, refused: Refusals) -> None:
        self.columns, self.limits, self.refused = known.columns, limits, refused
        self._texts, self._known = texts, known
        self._large: set[str] = set()

    @property
    def rows(self) -> Sequence[int]:
        """Those that are not refused."""
        return [row for row in range(len(self._texts)) if row not in self.refused]

    def find_columns(self) -> None:
        """Look at every object that does not fit the columns, which grow by what the ones before it showed."""
        left, count = self._find_unfitting(self.rows), _FIRST
        while left:
            for row in left[:count]:
                self._look(row)
            left, count = self._find_unfitting(left[count:]), 2 * count

    def find_rounded_columns(self) -> frozenset[str]:
        """Return the paths of columns that became doubles, and would round integers that are there.

        Looks at integers, too, that fitted before their column became one of doubles.
        """
        if self.columns != self._known.columns:
            for row in self._find_unfitting(self.rows):
                self._look(row)
        recorded = self._known.columns
        return frozenset(path for path in self.find_large_doubles() if find_type(recorded, path) != Primitive.DOUBLE)

    def find_large_doubles(self) -> frozenset[str]:
        """Return the paths of columns of doubles in which there are integers beyond 2^53, without declared ones."""
        declared = self._known.declared
        found = (path for path in self._large if find_type(declared, path) is None)
        return frozenset(path for path in found if find_type(self.columns, path) == Primitive.DOUBLE)

    def _look(self, row: int) -> None:
        known, text, large = self._known, self._texts[row], set[str]()
        try:
            value = _decode_any(text)
            if not isinstance(value, dict):
                raise Conflict("the value is no JSON object, which a table needs")
            if known.pinned is not None:  # first of all: a refused record must not leave columns behind
                known.pinned.require_fit(text)
            seen = fields_of(infer_type(value, large=large))
            wider = widen(self.columns, seen, known.declared, integral=self.limits.integral)
            if wider != self.columns:
                if reason := misfit(wider, self.limits.rule) or beyond(wider, self.columns, self.limits.most):
                    raise Conflict(reason)
                self.columns = wider
            self._large |= large
        except Conflict as error:
            self.refused[row] = str(error)
        except RecursionError:
            self.refused[row] = "nested too deeply"
        except msgspec.DecodeError:  # of JSON that is well formed
            self.refused[row] = "a number is beyond a double"

    def _find_unfitting(self, rows: Sequence[int]) -> Sequence[int]:
        if not self.columns or not rows:
            return rows
        decode, unfitting = _make_reader(Struct(self.columns), is_strict=True).decode, []
        for row in rows:
            try:
                decode(self._texts[row])
            except (msgspec.DecodeError, RecursionError):
                unfitting.append(row)
        return unfitting


def infer_type(value: Any, path: str = "", level: int = 0, large: set[str] | None = None) -> Type:
    """Return the type of a decoded JSON value; a list or object that holds nothing keeps its shape.

    Adds to `large` the paths of integers beyond 2^53. Larger than 64 bits they are doubles.

    Raises:
        Conflict: the elements of a list have nothing in common, a number is beyond a double, or it nests too deeply.
    """
    if level > MOST_LEVELS:
        raise too_deep(path)
    match value:
        case bool():
            return Primitive.BOOL
        case int() if value in _INT64:
            if large is not None and abs(value) > _LARGE:
                large.add(path)
            return Primitive.INT64
        case int() | float():
            if abs(value) > sys.float_info.max:
                raise Conflict(f"field {path!r}: the number is beyond a double")
            if float(value) != value:
                raise Conflict(str(Misfit(Primitive.DOUBLE, path, is_rounded=True)))
            return Primitive.DOUBLE
        case str():
            return Primitive.STRING
        case list():
            item: Type = UNKNOWN
            for element in value:
                item = unite(item, infer_type(element, f"{path}[]", level + 1, large), f"{path}[]")
            return List(item)
        case dict():
            fields = value.items()
            return Struct({name: infer_type(one, joined(path, name), level + 1, large) for name, one in fields})
    return UNKNOWN


def widen(
    known: Columns, seen: Columns, declared: Columns, path: str = "", integral: Mapping[str, str] | None = None
) -> Columns:
    """Return known columns united with what JSON showed. Declared ones, and those that JSON lacks, stay as they are.

    Args:
        integral: path of a column that stays one of integers -> why.

    Raises:
        Conflict: a field's types have nothing in common, or a column that stays one of integers would be of doubles.
    """
    wider = dict(known)
    for name, type in seen.items():
        if name not in known and UNREADABLE.search(name):
            raise Conflict(f"field {joined(path, name)[:80]!r}: {_UNREADABLE_NAME}")
        of_user = declared.get(name, UNKNOWN)
        wider[name] = _widen_type(known.get(name, UNKNOWN), type, of_user, joined(path, name), integral or {})
    return wider


def _widen_type(known: Type, seen: Type, declared: Type, path: str, integral: Mapping[str, str]) -> Type:
    match known, seen:
        case Map(), _:
            return known
        case Primitive() | Decimal(), _ if declared != UNKNOWN or known not in _INFERRED:
            return known
        case ((Struct() | Unknown()), Struct(fields)):
            return Struct(widen(fields_of(known), fields, fields_of(declared), path, integral))
        case ((List() | Unknown()), List(item)):
            return List(_widen_type(item_of(known), item, item_of(declared), f"{path}[]", integral))
        case _, Primitive.DOUBLE if known != Primitive.DOUBLE and path in integral:
            raise Conflict(f"field {path!r} is {seen}, and its column stays one of integers: {integral[path]}")
    return unite(known, seen, path)
