"""What a sink's rows are: one batch of a topic-partition to what the encoders write, and why a record is refused."""

from __future__ import annotations

import functools
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s3lake.convert import envelope_table, gate, headers, json_table, lines, sidecars
from s3lake.convert.cells import Rows
from s3lake.convert.contract import Contract
from s3lake.convert.converters import CONVERTERS, ReadRequest
from s3lake.convert.envelope import Envelope
from s3lake.convert.envelope_table import Found, Shape
from s3lake.convert.gate import Refusals, rest
from s3lake.convert.parts import Part, Streams, merge_parts
from s3lake.convert.projection import Standing
from s3lake.convert.schemas import Numbers
from s3lake.encode.formats import FORMATS, Rule
from s3lake.schema.registry import Connection
from s3lake.schema.types import Columns, fields_of
from s3lake.schema.unite import agree


@dataclass(frozen=True)
class Converted:
    """One batch after conversion.

    Attributes:
        parts: the kept rows, one part per schema.
        refused: row -> why.
        skipped: rows left out because their value is null.
        columns: of a table; those passed united with what the batch showed.
        seen: columns of rows that brought their own schema.
        plain: the parts, `key` or `value`, that some row has without a schema.
        forbidden: rows that fail the micro-batch, whatever is tolerated, and why.
        broken: how many of the refused lack a required field or break a rule.
        dropped: path of a field that was left out -> of how many records.
        filled: path of a field that got a default -> in how many records.
        large: paths of columns in which records without a schema have integers beyond 2^53.
    """

    parts: tuple[Part, ...]
    refused: Refusals
    skipped: int
    columns: Columns
    seen: Columns = field(default_factory=dict)
    plain: frozenset[str] = frozenset()
    forbidden: Refusals = field(default_factory=dict)
    broken: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)
    filled: Mapping[str, int] = field(default_factory=dict)
    large: frozenset[str] = frozenset()


@dataclass(frozen=True)
class _Group:
    """Rows of a batch with one schema.

    Attributes:
        numbers: theirs in the batch, None for all in order.
        keys: as their sidecar has them, where there is one.
    """

    numbers: pa.Int64Array | None
    rows: Rows
    keys: Any = None

    def of_batch(self, reasons: Refusals) -> Refusals:
        """Reasons by the rows' numbers in the batch."""
        return reasons if self.numbers is None else {self.numbers[row].as_py(): why for row, why in reasons.items()}

    def without(self, lost: Collection[int]) -> _Group:
        """The other rows."""
        left = rest(len(self.rows), lost)
        if left is None:
            return self
        keys = None if self.keys is None else self.keys.take(left)
        return _Group(left if self.numbers is None else self.numbers.take(left), self.rows.take(left), keys)


@dataclass
class _Losses:
    """What rows of a batch lose, and their large integers: see `values.Converted`."""

    refused: Refusals
    forbidden: Refusals = field(default_factory=dict)
    dropped: Counter[str] = field(default_factory=Counter)
    large: set[str] = field(default_factory=set)


def _group_alike(codes: list[Numbers]) -> list[Numbers] | None:
    """Group rows that have the same of each code, in the order of their first ones; None if all have."""
    if all((one == one[0]).all() for one in codes):
        return None
    marks = functools.reduce(lambda one, other: one * (len(other) + 2) + other, codes)
    _, first, groups = np.unique(marks, return_index=True, return_inverse=True)
    order = np.argsort(groups, kind="stable")
    members = np.split(order, np.cumsum(np.bincount(groups))[:-1])
    return [members[group] for group in np.argsort(first)]


@dataclass(frozen=True)
class Conversion:
    """A sink's conversion, as plain values: Spark's closures carry it to the workers.

    Attributes:
        declared: columns whose types the user declares.
        keys, headers: formats of the sidecars.
        apart: whether records without a value land apart, with their sidecars only.
        registry: where the schemas of keys and values are.
        keyed: whether the layout reads keys.
        valued: whether it reads values.
        max_columns: a record whose new fields would make more is refused.
        contract: what values have to be; None where nothing is asked of them.
        integral: path of a column that stays one of integers -> why.
        table: what the sink's table asks of columns; empty without a table.
        integers_of_table: paths of its columns of integers when the micro-batch began.
        compatibility: which files a record with a schema goes into: `none`, of that; `forward`, of one that lacks some
            of its fields; `backward` and `full`, of one that has them all.
    """

    key: str
    value: str
    format: str
    nulls: str
    envelope: Envelope | None = None
    declared: Columns = field(default_factory=dict)
    keys: str | None = None
    headers: str | None = None
    apart: bool = False
    registry: Connection | None = None
    keyed: bool = False
    valued: bool = True
    max_columns: int = sys.maxsize
    contract: Contract | None = None
    compatibility: str = "none"
    integral: Mapping[str, str] = field(default_factory=dict)
    table: Rule = ""
    integers_of_table: tuple[str, ...] = ()

    @property
    def standing(self) -> Standing | None:
        """What a task remembers of its files' schemas; None where each schema has files of its own."""
        if self.compatibility == "none" or self._shape is None:
            return None
        return Standing(narrow=self.compatibility == "forward")

    @functools.cached_property
    def needs(self) -> frozenset[str]:
        """Kafka columns beyond partition, offset, timestamp and value: of `key` and `headers`."""
        fields = self.envelope.fields if self.envelope else ()
        needed = {"key": "key" in fields or self.keys or self.keyed, "headers": "headers" in fields or self.headers}
        return frozenset(name for name, is_needed in needed.items() if is_needed)

    @property
    def has_columns(self) -> bool:
        """Whether files have columns that grow with the data."""
        shape = self._shape
        return shape is not None and bool(shape.spread or shape.json_parts)

    @property
    def fixed_columns(self) -> Columns | None:
        """Columns of files where they do not grow, None where they do and for text formats."""
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
    def _shape(self) -> Shape | None:
        """What the columns of the files are, None where the data is text."""
        envelope = self.envelope
        spec = FORMATS[self.format]
        if not spec.tabular or (envelope and spec.rule == "flat"):
            return None
        parts = envelope.fields if envelope else ("value",)
        converters = {"key": self.key, "value": self.value}
        alone = envelope is None or envelope.bare
        return Shape(
            spread=parts[0]
            if alone and parts[0] in converters and CONVERTERS[converters[parts[0]]].gives == "json"
            else None,
            parts=parts,
            converters=converters,
            declared=self.declared,
            rule=self.table or spec.rule,
            envelope=envelope,
            most=self.max_columns,
            integral=self.integral,
        )

    def __call__(self, batch: pa.RecordBatch, columns: Columns, standing: Standing | None = None) -> Converted:
        """Convert one batch of records; `columns` are the recorded ones, `standing` is what the task remembers."""
        rows, refused, left_out = self._read(batch)
        dropped, filled = Counter(rows.value.left_out), Counter[str]()
        if standing is not None:
            value, lost, filled = standing.projected(rows.value)
            rows, dropped = replace(rows, value=value), dropped + lost
        broken: Refusals = {}
        if self.contract is not None and self.contract.looks_at_values:
            broken = self.contract.broken(rows.value.data, refused)
        losses = _Losses(refused | broken, dropped=dropped)
        kept = rest(batch.num_rows, left_out | losses.refused.keys())
        parts: list[Part] = []
        seen: Columns = {}
        plain: set[str] = set()
        json_parts = self._shape.json_parts if self._shape else ()
        for group in self._groups(_Group(kept, rows if kept is None else rows.take(kept))):
            plain.update(part for part in json_parts if group.rows.column(part).is_plain)
            part, columns, more = self._part(group, columns, losses)
            seen = agree(seen, more)
            parts.extend([] if part is None else [part])
        skipped = len(left_out) if self.nulls == "skip" else 0
        return Converted(
            merge_parts(parts),
            losses.refused,
            skipped,
            columns,
            seen,
            frozenset(plain),
            losses.forbidden,
            len(broken),
            losses.dropped,
            filled,
            frozenset(losses.large),
        )

    def _read(self, batch: pa.RecordBatch) -> tuple[Rows, Refusals, set[int]]:
        """A batch as its converters have it, the rows that are refused, and those left out for want of a value."""
        shape = self._shape
        tabular = shape is not None
        typed_keys = self.keys is not None and FORMATS[self.keys].tabular
        spliced = shape is not None and shape.rule == "avro" and shape.spread == "value"
        spliced = spliced and self.compatibility == "none"
        texts = self.valued or not tabular or (self.contract is not None and self.contract.looks_at_values)
        unchecked = not texts and self.contract is None and shape is not None and shape.spread == "value"
        request = ReadRequest(tabular, texts, spliced, unchecked, self.registry)
        value, refused = CONVERTERS[self.value].read(batch.column("value"), request)
        left_out: set[int] = set()
        if value.data.null_count and self.nulls != "write":
            left_out = set(pc.indices_nonzero(value.data.is_null()).to_pylist()) - refused.keys()
            if self.nulls == "fail":
                refused |= dict.fromkeys(left_out, "the value is null (nulls: fail)")
        others: list[Refusals] = []
        key = None
        if "key" in self.needs:
            texts = bool(self.keyed or self.keys) or not tabular
            asked = replace(request, tabular=tabular or typed_keys, texts=texts, spliced=False, unchecked=False)
            key, wrong = CONVERTERS[self.key].read(batch.column("key"), asked)
            others.append({row: f"key: {reason}" for row, reason in wrong.items()})
            if self.keys:
                others.append(sidecars.key_refusals(self.keys, key))
        if self.headers or (shape is not None and shape.is_flat and "headers" in shape.parts):
            others.append(headers.text_refusals(batch.column("headers")))
        if self.envelope and self.format == "csv":
            others.append(lines.csv_refusals(self.envelope, value))
        for found in others:
            refused = {row: reason for row, reason in found.items() if row not in left_out} | refused
        return Rows(batch, value, key), refused, left_out

    def _groups(self, every: _Group) -> Iterator[_Group]:
        """Rows with one schema each; lines of text only by the schemas of their keys, if these go into typed files."""
        rows, kept = every.rows, every.numbers
        if not len(rows):
            return
        has_typed_keys = self.keys is not None and FORMATS[self.keys].tabular
        by = [rows.value, rows.key] if self._shape is not None else [rows.key if has_typed_keys else None]
        codes = [column.schemas.codes for column in by if column is not None and column.schemas]
        if self.apart:  # records without a value have sidecars only
            codes.append(rows.value.data.is_null().to_numpy(zero_copy_only=False).astype(np.int64))
        groups = _group_alike(codes)
        if groups is None:
            yield every
            return
        for group in groups:
            at = pa.array(group, pa.int64())
            yield _Group(at if kept is None else kept.take(at), rows.take(at))

    def _part(self, group: _Group, columns: Columns, losses: _Losses) -> tuple[Part | None, Columns, Columns]:
        """Rows of one schema: what is written, and the columns with those seen; `losses` gets what they lose."""
        seen: Columns = {}
        words: Mapping[str, str] = {}
        streams: Streams = {}
        shape = self._shape
        if self.keys:
            keys, lost = sidecars.keys(self.keys, group.rows, self.max_columns)
            losses.refused |= group.of_batch(lost)
            group = replace(group.without(lost), keys=keys)
        if not len(group.rows):
            return None, columns, seen
        is_data = not self.apart or group.rows.value.data.null_count < len(group.rows)
        if is_data and shape is None:
            streams["data"] = self._texts(group.rows)
        elif is_data and shape is not None:
            group, found = self._table(shape, group, columns, losses)
            columns, seen, words = found.columns, found.seen, found.words
            losses.large |= found.large
            lost = found.refused
            if found.batch is None:
                lost = dict.fromkeys(range(len(group.rows)), json_table.NOTHING) | lost
            losses.refused |= group.of_batch(lost)
            group = group.without(lost)
            if found.batch is not None:
                streams["data"] = found.batch
        rows = group.rows
        if not len(rows):
            return None, columns, seen
        if group.keys is not None:
            streams["keys"] = group.keys
        if self.headers:
            streams["headers"] = sidecars.header_lists(self.headers, rows)
        names = rows.value.schemas.names() if rows.value.schemas else None
        schema = names if isinstance(names, str) else None
        values = rows.value.data if CONVERTERS[self.value].wrapped and self.valued else None
        texts = rows.column("key").data if self.keyed else None
        several = names if isinstance(names, pa.Array) else None
        return Part(group.numbers, streams, values, schema, texts, words, several), columns, seen

    def _table(self, shape: Shape, group: _Group, columns: Columns, losses: _Losses) -> tuple[_Group, Found]:
        """Rows as a table, held to the contract."""
        contract = self.contract
        if contract is None or not contract.holds_fields:
            return group, envelope_table.read(shape, group.rows, columns)
        if group.rows.value.schema is None:
            found = envelope_table.read(shape, group.rows, columns)
            if found.columns == columns and not found.refused:
                return group, found
        departed = contract.departed(group.rows.value, self.declared)
        if departed is not None:
            losses.refused |= group.of_batch(departed.refused)
            losses.forbidden |= group.of_batch(departed.forbidden)
            losses.dropped.update(departed.dropped)
            group = replace(group, rows=replace(group.rows, value=departed.column))
            group = group.without(departed.refused.keys() | departed.forbidden.keys())
        return group, envelope_table.read(shape, group.rows, columns)

    def _texts(self, rows: Rows) -> pa.BinaryArray:
        if self.envelope is not None:
            return lines.write_lines(self.envelope, self.format, rows)
        if self.format == "bytes":
            return _filled(rows.kafka.column("value"))
        if self.format == "text":
            return gate.one_line(_filled(rows.value.data))
        return rows.value.as_json()


def _filled(values: pa.BinaryArray) -> pa.BinaryArray:
    return pc.fill_null(values, b"") if values.null_count else values
