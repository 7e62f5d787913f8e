"""What a sink's rows are: one batch of a topic-partition to what the encoders write, and why a record is refused."""

from __future__ import annotations

import functools
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s3lake.records.convert.fit.contract import Contract
from s3lake.records.convert.fit.schema_projection import SchemaProjector
from s3lake.records.convert.read import value_checks
from s3lake.records.convert.read.converters import CONVERTERS, ConverterRequest
from s3lake.records.convert.read.json import object_columns
from s3lake.records.convert.read.json.object_columns import TableRows
from s3lake.records.convert.read.keys_and_values import Column, RecordEnvelope, Rows, read_column
from s3lake.records.convert.read.value_checks import Refusals
from s3lake.records.convert.read.wire_format import group_by_id
from s3lake.records.convert.rows import headers, lines, sidecars, tables
from s3lake.records.convert.rows.parts_by_schema import Part, Streams, merge_parts
from s3lake.records.convert.rows.tables import TableShape
from s3lake.records.encode.formats import FORMATS
from s3lake.records.schema.columns.limits import Limits, Rule
from s3lake.records.schema.columns.types import Columns, fields_of
from s3lake.records.schema.columns.union import merge_columns
from s3lake.records.schema.registry.connection import Connection


@dataclass
class Converted:
    """One batch after conversion, and before that what is found of it so far.

    Attributes:
        columns: of a table; those passed united with what the batch showed.
        parts: the kept rows, one part per schema.
        refused: row -> why.
        skipped: number of rows without a value, which are left out.
        seen: columns of rows that brought their own schema.
        shared: the parts, `key` or `value`, whose columns all files of a commit share: ones that some row has without
            a schema, and all in CSV, whose types only the index has.
        forbidden: rows that fail the micro-batch, whatever is tolerated, and why.
        broken: how many of the refused lack a required field or break a rule.
        dropped: path of a field that was left out -> of how many records.
        filled: path of a field that got a default -> in how many records.
        large: paths of columns in which records without a schema have integers beyond 2^53.
    """

    columns: Columns
    parts: tuple[Part, ...] = ()
    refused: Refusals = field(default_factory=dict)
    skipped: int = 0
    seen: Columns = field(default_factory=dict)
    shared: set[str] = field(default_factory=set)
    forbidden: Refusals = field(default_factory=dict)
    broken: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    filled: Counter[str] = field(default_factory=Counter)
    large: set[str] = field(default_factory=set)

    def refuse(self, rows: Rows, reasons: Refusals) -> Rows:
        """Note why some of the rows are refused. Return the others."""
        self.refused |= rows.by_batch_row(reasons)
        return rows.drop(reasons)


@dataclass(frozen=True)
class Conversion:
    """A sink's conversion, as plain values: Spark's closures carry it to the workers.

    Attributes:
        declared: columns whose types the user declares.
        keys, headers: formats of the sidecars.
        apart: whether records without a value land apart, with their sidecars only.
        keyed: whether the layout reads keys.
        valued: whether it reads values.
        max_columns: a record whose new fields would make more is refused.
        contract: what values have to be; by itself they can be anything.
        integral: path of a column that stays one of integers -> why.
        table: what the sink's table asks of columns; empty without a table.
        integers_of_table: paths of its columns of integers when the micro-batch began.
        null_to_default: the sides, `key` and `value`, whose nulls become the defaults of their schemas.
        connect_properties: whether Avro's files keep the properties of schemas that only Connect reads.
        exact: whether numbers that are times by their schema are columns of times.
        time_path: the field of values whose time the layout reads; empty if it reads none.
        compatibility: which files a record with a schema goes into: `none`, of that; `forward`, of one that lacks some
            of its fields; `backward` and `full`, of one that has them all.
    """

    key: str
    value: str
    format: str
    nulls: str
    envelope: RecordEnvelope | None = None
    declared: Columns = field(default_factory=dict)
    keys: str | None = None
    headers: str | None = None
    apart: bool = False
    registry: Connection | None = None
    keyed: bool = False
    valued: bool = True
    max_columns: int = sys.maxsize
    contract: Contract = field(default_factory=Contract)
    connect_properties: bool = True
    compatibility: str = "none"
    integral: Mapping[str, str] = field(default_factory=dict)
    table: Rule = ""
    integers_of_table: tuple[str, ...] = ()
    null_to_default: tuple[str, ...] = ()
    exact: bool = False
    time_path: tuple[str, ...] = ()

    @property
    def projector(self) -> SchemaProjector | None:
        """The memory of a task for its files' schemas; None if each schema has files of its own."""
        if self.compatibility == "none" or self._shape is None:
            return None
        return SchemaProjector(is_forward=self.compatibility == "forward")

    @functools.cached_property
    def needs(self) -> frozenset[str]:
        """Kafka columns beyond partition, offset, timestamp and value: of `key` and `headers`."""
        fields = self.envelope.fields if self.envelope else ()
        needed = {"key": "key" in fields or self.keys or self.keyed, "headers": "headers" in fields or self.headers}
        return frozenset(name for name, is_needed in needed.items() if is_needed)

    @property
    def has_columns(self) -> bool:
        """True if files have columns that grow with the data."""
        shape = self._shape
        return shape is not None and bool(shape.spread or shape.json_parts)

    @property
    def fixed_columns(self) -> Columns | None:
        """Columns of files that do not grow; None if they do, and for text formats."""
        shape = self._shape
        return None if shape is None or self.has_columns else shape.fixed

    def of_values(self, columns: Columns) -> Columns:
        """The columns of files that are fields of values."""
        shape = self._shape
        if shape is None or shape.spread is None:
            return fields_of(columns.get("value"))
        return columns if shape.spread == "value" else {}

    def of_parts(self, parts: Collection[str], columns: Columns) -> Columns:
        """The columns that hold such parts, `key` or `value`, of records."""
        spread = self._shape is not None and self._shape.spread
        return {name: type for name, type in columns.items() if (spread or name) in parts}

    @functools.cached_property
    def _shape(self) -> TableShape | None:
        """The columns of the files; None if the data is text."""
        envelope = self.envelope
        spec = FORMATS[self.format]
        if not spec.tabular or (envelope and spec.rule == "flat"):
            return None
        parts = envelope.fields if envelope else ("value",)
        converters = {"key": self.key, "value": self.value}
        alone = envelope is None or envelope.bare
        return TableShape(
            spread=parts[0]
            if alone and parts[0] in converters and CONVERTERS[converters[parts[0]]].gives == "json"
            else None,
            parts=parts,
            converters=converters,
            declared=self.declared,
            limits=Limits(self.table or spec.rule, self.max_columns, self.integral),
            envelope=envelope,
        )

    def __call__(
        self,
        batch: pa.RecordBatch,
        columns: Columns,
        projector: SchemaProjector | None = None,
        changed: Mapping[str, Column] | None = None,
    ) -> Converted:
        """Convert one batch of records.

        Args:
            columns: the recorded ones.
            projector: what the task remembers.
            changed: keys or values that a chain has read and changed, with their schemas.
        """
        rows, refused, left_out = self._read(batch, changed or {})
        converted = Converted(columns, refused=refused, dropped=Counter(rows.value.left_out))
        if rows.key is not None:
            converted.dropped.update({f"key:{path}": count for path, count in rows.key.left_out.items()})
        if projector is not None:
            value, lost, converted.filled = projector.project(rows.value)
            rows, converted.dropped = replace(rows, value=value), converted.dropped + lost
        if self.contract.looks_at_values:
            broken = self.contract.find_broken(rows.value.data, refused)
            converted.refused, converted.broken = refused | broken, len(broken)
        shape = self._shape
        json_parts = shape.json_parts if shape else ()
        is_csv = shape is not None and shape.limits.rule == "flat"
        parts = []
        for group in self._groups(rows.drop(left_out | converted.refused.keys())):
            converted.shared.update(part for part in json_parts if is_csv or group.column(part).is_plain)
            part = self._convert_group(group, converted)
            parts += [] if part is None else [part]
        converted.parts = merge_parts(parts)
        converted.skipped = len(left_out) if self.nulls == "skip" else 0
        return converted

    def _read(self, batch: pa.RecordBatch, changed: Mapping[str, Column]) -> tuple[Rows, Refusals, set[int]]:
        """Read a batch with its converters. Return its rows, refused ones, and ones left out as null."""
        shape = self._shape
        tabular = shape is not None
        typed_keys = self.keys is not None and FORMATS[self.keys].tabular
        spliced = shape is not None and shape.limits.rule == "avro" and shape.spread == "value"
        spliced = spliced and self.compatibility == "none"
        texts = self.valued or not tabular or self.contract.looks_at_values
        unchecked = not texts and not self.contract.compares_fields and shape is not None and shape.spread == "value"
        request = ConverterRequest(
            tabular, texts, spliced, unchecked, self.registry, "value" in self.null_to_default, self.exact
        )
        value, refused = self._read_side("value", batch, request, changed)
        if "value" in changed and self.format == "bytes":  # its files hold the JSON of values that a chain changed
            batch = batch.set_column(batch.schema.get_field_index("value"), "value", value.data)
        left_out: set[int] = set()
        if value.data.null_count and self.nulls != "write":
            left_out = set(pc.indices_nonzero(value.data.is_null()).to_pylist()) - refused.keys()
            if self.nulls == "fail":
                refused |= dict.fromkeys(left_out, "the value is null (nulls: fail)")
        others: list[Refusals] = []
        key = None
        if "key" in self.needs:
            texts = bool(self.keyed or self.keys) or not tabular
            asked = replace(
                request,
                tabular=tabular or typed_keys,
                texts=texts,
                spliced=False,
                unchecked=False,
                null_to_default="key" in self.null_to_default,
            )
            key, wrong = self._read_side("key", batch, asked, changed)
            others.append({row: f"key: {reason}" for row, reason in wrong.items()})
            if self.keys:
                others.append(sidecars.check_keys(self.keys, key))
        if self.headers or (shape is not None and shape.is_flat and "headers" in shape.parts):
            others.append(headers.check_texts(batch.column("headers")))
        if self.envelope and self.format == "csv":
            others.append(lines.check_csv_values(self.envelope, value))
        for reasons in others:
            refused = {row: reason for row, reason in reasons.items() if row not in left_out} | refused
        return Rows(batch, value, key), refused, left_out

    def _read_side(
        self, part: str, batch: pa.RecordBatch, request: ConverterRequest, changed: Mapping[str, Column]
    ) -> tuple[Column, Refusals]:
        """Return the keys or values of a batch, as its chain left them if it changed them, and refused ones."""
        if part in changed:
            column, refused = changed[part].finish(texts=request.texts, spliced=request.spliced)
        else:
            converter = self.key if part == "key" else self.value
            column, refused = read_column(converter, batch.column(part), request)
        return column if self.connect_properties else column.without_connect_properties(), refused

    def _groups(self, rows: Rows) -> Iterator[Rows]:
        """Yield rows with one schema each; lines only by the schemas of their keys, if these go into typed files."""
        if not len(rows):
            return
        has_typed_keys = self.keys is not None and FORMATS[self.keys].tabular
        by = [rows.value, rows.key] if self._shape is not None else [rows.key if has_typed_keys else None]
        codes = [column.schemas.codes + 1 for column in by if column is not None and column.schemas]
        if self.apart:  # records without a value have sidecars only
            codes.append(rows.value.data.is_null().to_numpy(zero_copy_only=False).astype(np.int64))
        if all((one == one[0]).all() for one in codes):
            yield rows
        else:
            marks = functools.reduce(lambda one, other: one * (len(other) + 2) + other, codes)
            yield from (rows.take(pa.array(group, pa.int64())) for _, group in group_by_id(marks))

    def _convert_group(self, rows: Rows, converted: Converted) -> Part | None:
        """Convert rows of one schema. Return None if none is left. Adds to `converted` what they lose and show."""
        if self.keys:
            keys, lost = sidecars.write_keys(self.keys, rows, self.max_columns)
            rows = replace(converted.refuse(rows, lost), key_stream=keys)
        if not len(rows):
            return None
        words: Mapping[str, str] = {}
        streams: Streams = {}
        is_data = not self.apart or rows.value.data.null_count < len(rows)
        if is_data:
            if self._shape is None:
                streams["data"] = self._texts(rows)
            else:
                rows, table = self._tabulate(self._shape, rows, converted)
                streams |= {} if table.batch is None else {"data": table.batch}
                words = table.words
        if not len(rows):
            return None
        if rows.key_stream is not None:
            streams["keys"] = rows.key_stream
        if self.headers:
            streams["headers"] = sidecars.write_headers(self.headers, rows)
        return Part(
            rows.numbers,
            streams,
            values=rows.value.data if CONVERTERS[self.value].wrapped and self.valued else None,
            names=rows.value.schemas.names() if rows.value.schemas else None,
            keys=rows.column("key").data if self.keyed else None,
            words=words,
            times=rows.value.times(self.time_path),
        )

    def _tabulate(self, shape: TableShape, rows: Rows, converted: Converted) -> tuple[Rows, TableRows]:
        """Make a table of rows, held to the contract. Return the rows that it has."""
        compares = self.contract.compares_fields and bool(self.contract.columns)
        recorded = converted.columns
        has_schema = rows.value.schema is not None
        table = None if compares and has_schema else tables.read(shape, rows, recorded)
        if compares and (table is None or table.columns != recorded or table.refused):
            result = self.contract.find_departures(rows.value, self.declared)
            if result is not None:
                converted.forbidden |= rows.by_batch_row(result.forbidden)
                converted.dropped.update(result.dropped)
                converted.refused |= rows.by_batch_row(result.refused)
                rows = replace(rows, value=result.column).drop(result.refused.keys() | result.forbidden.keys())
            table = tables.read(shape, rows, recorded)
        assert table is not None, "without a contract it is read at once"
        converted.columns, converted.seen = table.columns, merge_columns(converted.seen, table.seen)
        converted.large |= table.large
        nothing = dict.fromkeys(range(len(rows)), object_columns.NOTHING) if table.batch is None else {}
        return converted.refuse(rows, nothing | table.refused), table

    def _texts(self, rows: Rows) -> pa.BinaryArray:
        if self.envelope is not None:
            return lines.write_lines(self.envelope, self.format, rows)
        if self.format == "bytes":
            return _fill_nulls(rows.kafka.column("value"))
        if self.format == "text":
            return value_checks.replace_line_breaks(_fill_nulls(rows.value.data))
        return rows.value.as_json()


def _fill_nulls(values: pa.BinaryArray) -> pa.BinaryArray:
    return pc.fill_null(values, b"") if values.null_count else values
