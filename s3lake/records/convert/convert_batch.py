"""Convert one batch of a topic-partition to what the encoders write, and give the reason why a record is refused."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s3lake.records.convert.conversion import Conversion
from s3lake.records.convert.fit.schema_projection import SchemaProjector
from s3lake.records.convert.read import value_checks
from s3lake.records.convert.read.converters import CONVERTERS, ConverterRequest
from s3lake.records.convert.read.json import object_columns
from s3lake.records.convert.read.json.object_columns import TableRows
from s3lake.records.convert.read.keys_and_values import Column, Numbers, Rows, read_column
from s3lake.records.convert.read.value_checks import Refusals
from s3lake.records.convert.read.wire_format import group_by_number
from s3lake.records.convert.rows import headers, lines, sidecars, tables
from s3lake.records.convert.rows.parts_by_schema import Part, Streams, merge_parts
from s3lake.records.convert.rows.tables import TableShape
from s3lake.records.encode.formats import FORMATS
from s3lake.records.schema.columns.types import Columns
from s3lake.records.schema.columns.union import merge_columns


@dataclass(frozen=True)
class ConvertedBatch:
    """One batch after conversion.

    Attributes:
        columns: the columns of a table: the recorded ones united with what the batch showed.
        parts: the kept rows, one part per schema.
        refused: the reason for each refused row of the batch.
        skipped: the number of rows without a value, which are left out.
        seen: the columns of rows that brought their own schema.
        shared: the parts, `key` or `value`, whose columns all files of a commit share: ones that some row has without
            a schema, and all in CSV, whose types only the index has.
        forbidden: the reason for each row that fails the micro-batch, whatever is tolerated.
        broken: the number of refused rows that lack a required field or break a rule.
        fields_left_out: the number of records for each path of a field that was left out.
        fields_filled: the number of records for each path of a field that got a default.
        large: the paths of columns in which records without a schema have integers beyond 2^53.
    """

    columns: Columns
    parts: tuple[Part, ...]
    refused: Refusals
    skipped: int
    seen: Columns
    shared: frozenset[str]
    forbidden: Refusals
    broken: int
    fields_left_out: Counter[str]
    fields_filled: Counter[str]
    large: frozenset[str]


class _ReadBatch(NamedTuple):
    """A batch after its converters: refused rows have a reason, and `left_out` are rows whose value is null."""

    rows: Rows
    refused: Refusals
    left_out: set[int]


class _TabulatedRows(NamedTuple):
    """Rows of one schema as a table.

    Attributes:
        rows: the rows that the table has.
        table: the table, and what reading it showed.
        refused, forbidden: reasons by the row of the batch.
        fields_left_out: the number of rows for each path of a field that the contract leaves out, or no column holds.
    """

    rows: Rows
    table: TableRows
    refused: Refusals
    forbidden: Refusals
    fields_left_out: Counter[str]


@dataclass(frozen=True)
class _ConvertedGroup:
    """Rows of one schema after conversion; its attributes are as in `ConvertedBatch`.

    Attributes:
        part: the kept rows; None if none is left.
    """

    part: Part | None
    columns: Columns
    refused: Refusals
    forbidden: Refusals = field(default_factory=dict)
    seen: Columns = field(default_factory=dict)
    fields_left_out: Counter[str] = field(default_factory=Counter)
    large: frozenset[str] = frozenset()


def convert_batch(
    conversion: Conversion,
    batch: pa.RecordBatch,
    columns: Columns,
    projector: SchemaProjector | None = None,
    changed: Mapping[str, Column] | None = None,
) -> ConvertedBatch:
    """Convert one batch of records.

    Args:
        conversion: the sink's conversion.
        batch: the records as Kafka has them.
        columns: the recorded columns.
        projector: the memory of the task for its files' schemas, which learns the schemas of the batch.
        changed: keys or values that a chain has read and changed, with their schemas.
    """
    rows, refused, left_out = _read_batch(conversion, batch, changed or {})
    fields_left_out, filled = Counter(rows.value.left_out), Counter[str]()
    if rows.key is not None:
        fields_left_out += Counter({f"key:{path}": count for path, count in rows.key.left_out.items()})
    if projector is not None:
        value, lost, filled = projector.project(rows.value)
        rows, fields_left_out = replace(rows, value=value), fields_left_out + lost
    contract, shape = conversion.contract, conversion.shape
    broken = contract.find_broken(rows.value.data, refused) if contract.looks_at_values else {}
    refused = refused | broken
    json_parts = shape.json_parts if shape else ()
    is_csv = shape is not None and shape.limits.rule == "flat"
    shared: set[str] = set()
    groups: list[_ConvertedGroup] = []
    rows, wider, with_json = rows.drop(left_out | refused.keys()), columns, 0
    for group in _split_by_schema(conversion, rows):
        plain = [part for part in json_parts if group.column(part).is_plain]
        shared.update(json_parts if is_csv else plain)
        with_json += bool(plain)
        converted = _convert_group(conversion, group, wider)
        wider = converted.columns
        groups.append(converted)
    if with_json > 1 and wider != columns:
        wider = _find_columns_in_order(conversion, rows, columns)
    return ConvertedBatch(
        columns=wider,
        parts=merge_parts([group.part for group in groups if group.part is not None]),
        refused={**refused, **_merge(group.refused for group in groups)},
        skipped=len(left_out) if conversion.nulls == "skip" else 0,
        seen=functools.reduce(merge_columns, (group.seen for group in groups), {}),
        shared=frozenset(shared),
        forbidden=_merge(group.forbidden for group in groups),
        broken=len(broken),
        fields_left_out=sum((group.fields_left_out for group in groups), fields_left_out),
        fields_filled=filled,
        large=frozenset[str]().union(*(group.large for group in groups)),
    )


def _merge(reasons: Iterable[Refusals]) -> Refusals:
    return {row: reason for some in reasons for row, reason in some.items()}


def _read_batch(conversion: Conversion, batch: pa.RecordBatch, changed: Mapping[str, Column]) -> _ReadBatch:
    """Read a batch with its converters."""
    shape = conversion.shape
    tabular = shape is not None
    typed_keys = conversion.keys is not None and FORMATS[conversion.keys].tabular
    spliced = shape is not None and shape.limits.rule == "avro" and shape.spread == "value"
    spliced = spliced and conversion.compatibility == "none"
    texts = conversion.valued or not tabular or conversion.contract.looks_at_values
    unchecked = not texts and not conversion.contract.compares_fields and shape is not None and shape.spread == "value"
    request = ConverterRequest(
        tabular, texts, spliced, unchecked, conversion.registry, "value" in conversion.null_to_default, conversion.exact
    )
    value, refused = _read_side(conversion, "value", batch, request, changed)
    if "value" in changed and conversion.format == "bytes":  # its files hold the JSON of values that a chain changed
        batch = batch.set_column(batch.schema.get_field_index("value"), "value", value.data)
    left_out: set[int] = set()
    if value.data.null_count and conversion.nulls != "write":
        left_out = set(pc.indices_nonzero(value.data.is_null()).to_pylist()) - refused.keys()
        if conversion.nulls == "fail":
            refused |= dict.fromkeys(left_out, "the value is null (nulls: fail)")
    others: list[Refusals] = []
    key = None
    if "key" in conversion.needs:
        texts = bool(conversion.keyed or conversion.keys) or not tabular
        asked = replace(
            request,
            tabular=tabular or typed_keys,
            texts=texts,
            spliced=False,
            unchecked=False,
            null_to_default="key" in conversion.null_to_default,
        )
        key, wrong = _read_side(conversion, "key", batch, asked, changed)
        others.append({row: f"key: {reason}" for row, reason in wrong.items()})
        if conversion.keys:
            others.append(sidecars.check_keys(conversion.keys, key))
    if conversion.headers or (shape is not None and shape.is_flat and "headers" in shape.parts):
        others.append(headers.check_texts(batch.column("headers")))
    if conversion.envelope and conversion.format == "csv":
        others.append(lines.check_csv_values(conversion.envelope, value))
    for reasons in others:
        refused = {row: reason for row, reason in reasons.items() if row not in left_out} | refused
    return _ReadBatch(Rows(batch, value, key), refused, left_out)


def _read_side(
    conversion: Conversion,
    part: str,
    batch: pa.RecordBatch,
    request: ConverterRequest,
    changed: Mapping[str, Column],
) -> tuple[Column, Refusals]:
    """Return the keys or values of a batch, as its chain left them if it changed them, and refused ones."""
    if part in changed:
        column, refused = changed[part].finish(texts=request.texts, spliced=request.spliced)
    else:
        converter = conversion.key if part == "key" else conversion.value
        column, refused = read_column(converter, batch.column(part), request)
    return column if conversion.connect_properties else column.without_connect_properties(), refused


def _split_by_schema(conversion: Conversion, rows: Rows) -> Iterator[Rows]:
    """Yield rows with one schema each; lines only by the schemas of their keys, if these go into typed files."""
    if not len(rows):
        return
    marks = _mark_schemas(conversion, rows)
    if marks is None:
        yield rows
    else:
        yield from (rows.take(pa.array(group, pa.int64())) for _, group in group_by_number(marks))


def _find_columns_in_order(conversion: Conversion, rows: Rows, columns: Columns) -> Columns:
    """Return the columns that rows show in their order: one schema after the other, a later row could decide."""
    marks = _mark_schemas(conversion, rows)
    assert marks is not None, "else they have one schema"
    starts = [0, *(np.flatnonzero(np.diff(marks)) + 1).tolist(), len(rows)]
    for start, end in pairwise(starts):
        some = rows.take(pa.array(np.arange(start, end), pa.int64()))
        columns = _convert_group(conversion, some, columns).columns
    return columns


def _mark_schemas(conversion: Conversion, rows: Rows) -> Numbers | None:
    """Return a number for each row that is the same for rows of the same schemas. Return None if all have the same."""
    has_typed_keys = conversion.keys is not None and FORMATS[conversion.keys].tabular
    by = [rows.value, rows.key] if conversion.shape is not None else [rows.key if has_typed_keys else None]
    codes = [column.schemas.codes + 1 for column in by if column is not None and column.schemas]
    if conversion.apart:  # records without a value have sidecars only
        codes.append(rows.value.data.is_null().to_numpy(zero_copy_only=False).astype(np.int64))
    if all((one == one[0]).all() for one in codes):
        return None
    return functools.reduce(lambda one, other: one * (len(other) + 2) + other, codes)


def _convert_group(conversion: Conversion, rows: Rows, columns: Columns) -> _ConvertedGroup:
    """Convert rows of one schema, which are read with the columns of the rows before them."""
    refused: Refusals = {}
    if conversion.keys:
        keys, lost = sidecars.write_keys(conversion.keys, rows, conversion.max_columns)
        refused = rows.by_batch_row(lost)
        rows = replace(rows.drop(lost), key_stream=keys)
    streams: Streams = {}
    tabulated = None
    is_data = not conversion.apart or rows.value.data.null_count < len(rows)
    if len(rows) and is_data and conversion.shape is None:
        streams["data"] = _make_texts(conversion, rows)
    elif len(rows) and is_data and conversion.shape is not None:
        tabulated = _tabulate(conversion, conversion.shape, rows, columns)
        rows, refused = tabulated.rows, refused | tabulated.refused
        streams |= {} if tabulated.table.batch is None else {"data": tabulated.table.batch}
    part = _make_part(conversion, rows, streams, tabulated.table.words if tabulated else {}) if len(rows) else None
    if tabulated is None:
        return _ConvertedGroup(part, columns, refused)
    table = tabulated.table
    return _ConvertedGroup(
        part, table.columns, refused, tabulated.forbidden, table.seen, tabulated.fields_left_out, frozenset(table.large)
    )


def _make_part(conversion: Conversion, rows: Rows, data: Streams, words: Mapping[str, str]) -> Part:
    """Return rows with their data, sidecars, and what the layout asks for."""
    streams = dict(data)
    if rows.key_stream is not None:
        streams["keys"] = rows.key_stream
    if conversion.headers:
        streams["headers"] = sidecars.write_headers(conversion.headers, rows)
    return Part(
        rows.numbers,
        streams,
        values=rows.value.data if CONVERTERS[conversion.value].wrapped and conversion.valued else None,
        names=rows.value.schemas.names() if rows.value.schemas else None,
        keys=rows.column("key").data if conversion.keyed else None,
        words=words,
        times=rows.value.times(conversion.time_path),
    )


def _tabulate(conversion: Conversion, shape: TableShape, rows: Rows, recorded: Columns) -> _TabulatedRows:
    """Make a table of rows, held to the contract."""
    contract = conversion.contract
    compares = contract.compares_fields and bool(contract.columns)
    has_schema = rows.value.schema is not None
    refused, forbidden, fields_left_out = Refusals(), Refusals(), Counter[str]()
    table = None if compares and has_schema else tables.make_table(shape, rows, recorded)
    if compares and (table is None or table.columns != recorded or table.refused or table.unplaced):
        result = contract.find_departures(rows.value, conversion.declared)
        if result is not None:
            refused, forbidden = rows.by_batch_row(result.refused), rows.by_batch_row(result.forbidden)
            fields_left_out = Counter(result.fields_left_out)
            rows = replace(rows, value=result.column).drop(result.refused.keys() | result.forbidden.keys())
        table = tables.make_table(shape, rows, recorded)
    assert table is not None, "without a contract it is read at once"
    if table.batch is not None:
        fields_left_out.update(field.counted_path for fields in table.unplaced.values() for field in fields)
    nothing = dict.fromkeys(range(len(rows)), object_columns.NOTHING) if table.batch is None else {}
    lost = nothing | table.refused
    return _TabulatedRows(rows.drop(lost), table, refused | rows.by_batch_row(lost), forbidden, fields_left_out)


def _make_texts(conversion: Conversion, rows: Rows) -> pa.BinaryArray:
    if conversion.envelope is not None:
        return lines.write_lines(conversion.envelope, conversion.format, rows)
    if conversion.format == "bytes":
        return _fill_nulls(rows.kafka.column("value"))
    if conversion.format == "text":
        return value_checks.replace_line_breaks(_fill_nulls(rows.value.data))
    return rows.value.as_json()


def _fill_nulls(values: pa.BinaryArray) -> pa.BinaryArray:
    return pc.fill_null(values, b"") if values.null_count else values
