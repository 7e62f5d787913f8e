"""Apply a chain to a batch of which some keys or values have a schema.

Records with the same schemas go through the steps together. A step that has no form for them, because it changes
neither key nor value, gets their records one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s3lake.records.convert.read import value_checks
from s3lake.records.convert.read.converters import CONVERTERS
from s3lake.records.convert.read.keys_and_values import Column, Gathering, Numbers
from s3lake.records.convert.read.wire_format import group_by_number
from s3lake.records.encode.json_texts import make_encoder
from s3lake.records.schema.columns.types import Struct
from s3lake.records.transform.chain.chain import Chain, Link
from s3lake.records.transform.chain.header_column import append_headers, read_headers, replace_column
from s3lake.records.transform.chain.one_by_one import Transformed, apply_links, encode_changed_side, list_timestamps
from s3lake.records.transform.step import group_values
from s3lake.records.transform.step.record import Record, Step
from s3lake.records.transform.step.record_values import NOT_READ, Header, Side, TransformError, decode_side
from s3lake.records.transform.step.schema_group import Group, Typed
from s3lake.text.masking import strip_values

_SIDES: tuple[Side, ...] = ("key", "value")


class _Piece(NamedTuple):
    """Records after the chain.

    Attributes:
        rows: the rows in the batch before it.
        batch: the batch as it is after it: null for a row without a value.
        typed: sides with a schema.
    """

    rows: Numbers
    batch: pa.RecordBatch
    typed: Mapping[str, Typed]


class _Opened(NamedTuple):
    """A key or value without a schema, in a group of which the other side has one: as Kafka has it, and decoded."""

    raw: bytes | None
    decoded: Any


@dataclass(frozen=True)
class TypedRun:
    """A chain and a batch.

    Attributes:
        batch: the batch as Kafka has it.
        plain: the columns of the batch, with JSON for what has no schema.
        columns: the sides that are read with their schemas.
    """

    chain: Chain
    batch: pa.RecordBatch
    plain: pa.RecordBatch
    columns: Mapping[str, Column]
    topic: str
    wallclock_ms: int

    def apply(self, readable: Numbers, refused: dict[int, str]) -> Transformed:
        """Apply the chain to the rows that could be read. Adds to `refused`."""
        codes = [self._list_codes(side)[readable] for side in _SIDES]
        without = np.logical_and.reduce([of_side < 0 for of_side in codes])
        pieces: list[_Piece] = []
        if without.any():
            rows = readable[without]
            done = apply_links(self.chain, self.plain.take(pa.array(rows)), {}, self.topic, self.wallclock_ms)
            refused |= {int(rows[row]): reason for row, reason in done.refused.items()}
            batch = done.batch
            for side in self.columns:
                if side not in self.chain.writes:
                    batch = replace_column(batch, side, self.batch.column(side).take(pa.array(rows).take(done.rows)))
            pieces.append(_Piece(rows[done.rows.to_numpy()], batch, {}))
        marks = reduce(
            lambda one, other: one * (len(readable) + 2) + other + 1, codes, np.zeros(len(readable), np.int64)
        )
        for _, places in group_by_number(np.where(without, -1, marks)):
            pieces += self._run_group(readable[places], refused)
        filtered = self.batch.num_rows - sum(len(piece.rows) for piece in pieces) - len(refused)
        return self._join(pieces, refused, filtered)

    def _list_codes(self, side: str) -> Numbers:
        """Return which schema each row has, -1 for none."""
        column = self.columns.get(side)
        return np.full(self.batch.num_rows, -1) if column is None or column.schemas is None else column.schemas.codes

    def _run_group(self, rows: Numbers, refused: dict[int, str]) -> list[_Piece]:
        """Apply all steps to rows with the same schemas."""
        kafka = self.batch if len(rows) == self.batch.num_rows else self.batch.take(pa.array(rows))
        reads, writes = self.chain.reads, self.chain.writes
        headers = read_headers(kafka.column("headers")) if "headers" in reads else None
        if headers is None and "headers" in writes:
            headers = [[] for _ in rows]
        topics = [self.topic] * len(rows) if "topic" in writes else None
        opened: dict[Side, dict[int, _Opened]] = {}
        sides: dict[Side, Typed | list[Any] | None] = dict.fromkeys(_SIDES)
        lost = dict[int, str]()
        for side in _SIDES:
            typed = self._open_typed(side, rows)
            if typed is None and side not in reads | writes and not (side == "value" and "tombstone" in reads):
                continue
            if typed is None:
                opened[side] = self._open_plain(side, rows, lost)
                sides[side] = [opened[side][row].decoded for row in rows.tolist()]
            else:
                sides[side] = typed
        refused |= lost
        group = Group(rows, kafka, self.topic, self.wallclock_ms, topics, headers, sides["key"], sides["value"])
        groups = [group.split(np.isin(rows, list(lost)))[1] if lost else group]
        for link in self.chain.links:
            groups = [changed for each in groups if len(each) for changed in self._apply_link(link, each, refused)]
        return [self._close(each, opened) for each in groups if len(each)]

    def _open_typed(self, side: Side, rows: Numbers) -> Typed | None:
        schemas = self.columns[side].schemas if side in self.columns else None
        if schemas is None or (code := int(schemas.codes[rows[0]])) < 0:
            return None
        array, at = schemas.arrays[code], schemas.at[rows]
        if not np.array_equal(at, np.arange(len(array))):
            array = array.take(pa.array(at))
        return Typed(schemas.distinct[code], array)

    def _open_plain(self, side: Side, rows: Numbers, lost: dict[int, str]) -> dict[int, _Opened]:
        """Decode what has no schema. Adds rows that cannot be decoded to `lost`."""
        if side not in self.chain.reads:
            if side == "key":
                return dict.fromkeys(rows.tolist(), _Opened(None, NOT_READ))
            nulls = self.batch.column(side).take(pa.array(rows)).is_null().to_pylist()
            pairs = zip(rows.tolist(), nulls, strict=True)
            return {row: _Opened(None, None if null else NOT_READ) for row, null in pairs}
        opened: dict[int, _Opened] = {}
        converter, values = self._get_converter(side), self.plain.column(side).take(pa.array(rows))
        is_written = side in self.chain.writes and CONVERTERS[converter].gives == "json"
        repeated = value_checks.find_repeated_names(values) if is_written else {}
        lost |= {int(rows[place]): f"the {side}: {reason}" for place, reason in repeated.items()}
        for row, raw in zip(rows.tolist(), values.to_pylist(), strict=True):
            try:
                opened[row] = _Opened(raw, decode_side(raw, converter))
            except TransformError as refusal:
                lost[row] = f"the {side}: {refusal}"
                opened[row] = _Opened(raw, None)
        return opened

    def _get_converter(self, side: Side) -> str:
        """Return the converter of keys or values without a schema."""
        return "json" if side in self.columns else self.chain.key if side == "key" else self.chain.value

    def _apply_link(self, link: Link, group: Group, refused: dict[int, str]) -> list[Group]:
        """Apply one step to a group, or to the records that a predicate selects. Adds to `refused`."""
        step = link.step
        deciding = step.reads if step.decided_by is None else {step.decided_by}
        described = any(isinstance(getattr(group, side), Typed) for side in _SIDES if side in deciding)
        if step.typed is None or not described:
            return self._apply_each(link, group, refused)
        others: list[Group] = []
        if step.predicate is not None:
            selects, negate = step.predicate.apply, step.negate
            mask = np.array([selects(record) is not negate for record in self._list_records(group)], np.bool_)
            group, rest = group.split(mask)
            others = [rest]
        if not len(group):
            return others
        changed, reasons = step.typed(group)
        refused |= {row: f"{link.label}: {reason}" for row, reason in reasons.items()}
        return [*others, *changed]

    def _list_records(self, group: Group) -> Iterator[Record]:
        """Yield the records of a group; of keys and values with a schema they show only whether they are null."""
        record = Record(self.topic, self.wallclock_ms)
        stamps = list_timestamps(group.kafka)
        places = (group.kafka.column(name).to_pylist() for name in ("partition", "offset"))
        sides = (
            _mark_nulls(side) if isinstance(side, Typed) else repeat(NOT_READ) if side is None else side
            for side in (group.key, group.value)
        )
        topics = repeat(self.topic) if group.topics is None else group.topics
        headers_of = repeat([]) if group.headers is None else group.headers
        columns = zip(stamps, *places, *sides, topics, headers_of, strict=False)
        for record.timestamp, record.partition, record.offset, record.key, record.value, topic, headers in columns:
            record.topic, record.headers = topic, list(headers)
            yield record

    def _apply_each(self, link: Link, group: Group, refused: dict[int, str]) -> list[Group]:
        """Apply a step to each record of a group. Return the records that are left. Adds to `refused`.

        What it changes has no schema after it, although it may have had one.
        """
        step = link.step
        decoded = {side: _decode_typed(group, side, step) for side in _SIDES if side in step.reads}
        kept: list[int] = []
        topics, headers = list[str](), list[list[Header]]()
        after: dict[Side, list[Any]] = {side: [] for side in _SIDES if side in step.writes}
        described = [side for side in after if isinstance(getattr(group, side), Typed)]
        same: list[bool] = []
        for place, record in enumerate(self._list_records(group)):
            for side, of_side in decoded.items():
                setattr(record, side, of_side[place])
            try:
                if step.apply(record):
                    continue
            except TransformError as refusal:
                refused[int(group.rows[place])] = f"{link.label}: {refusal}"
                continue
            except (ArithmeticError, ValueError) as error:
                refused[int(group.rows[place])] = f"{link.label}: {strip_values(str(error))}"
                continue
            kept.append(place)
            topics.append(record.topic)
            headers.append(record.headers)
            for side, of_side in after.items():
                of_side.append(getattr(record, side))
            same.append(all(getattr(record, side) is decoded[side][place] for side in described))
        left = group.take(np.array(kept, np.int64))
        left = replace(
            left,
            topics=None if left.topics is None else topics,
            headers=None if left.headers is None else headers,
        )
        for side, of_side in after.items():
            if side not in described:
                left = left.with_side(side, of_side)
        if not described or all(same):
            return [left]
        unchanged, changed = left.split(np.array(same, np.bool_))
        for side in described:
            of_side = after[side]
            changed = changed.with_side(side, [one for one, kept_it in zip(of_side, same, strict=True) if not kept_it])
        return [unchanged, changed]

    def _close(self, group: Group, opened: Mapping[Side, Mapping[int, _Opened]]) -> _Piece:
        """Return the records of a group as a batch, and their sides with a schema."""
        batch, typed, writes = group.kafka, dict[str, Typed](), self.chain.writes
        for side in _SIDES:
            whole = getattr(group, side)
            if isinstance(whole, Typed):
                typed[side] = whole
            if side not in writes:
                continue
            if isinstance(whole, Typed):
                column = _show_typed(side, whole, batch.column(side))
            else:
                before = (
                    [opened[side].get(row, _Opened(None, NOT_READ)) for row in group.rows.tolist()]
                    if side in opened
                    else []
                )
                column = self._encode_plain(side, whole, before)
            batch = replace_column(batch, side, column)
        if "headers" in writes:
            column = batch.column("headers")
            base = pa.nulls(len(group), column.type) if "headers" in self.chain.reads else column
            batch = replace_column(batch, "headers", append_headers(base, group.headers or []))
        if group.topics is not None:
            batch = batch.append_column("topic", pa.array(group.topics, pa.string()))
        return _Piece(group.rows, batch, typed)

    def _encode_plain(self, side: Side, after: Sequence[Any], before: Sequence[_Opened]) -> pa.BinaryArray:
        converter = self._get_converter(side)
        opened = before or [_Opened(None, NOT_READ)] * len(after)
        pairs = zip(after, opened, strict=True)
        return pa.array(
            [encode_changed_side(value, one.decoded, one.raw, converter) for value, one in pairs], pa.binary()
        )

    def _join(self, pieces: Sequence[_Piece], refused: dict[int, str], filtered: int) -> Transformed:
        """Put the pieces together, in the order of the batch."""
        if not pieces:
            empty = self.plain.slice(0, 0)
            if "topic" in self.chain.writes:
                empty = empty.append_column("topic", pa.array([], pa.string()))
            return Transformed(empty, pa.array([], pa.int64()), refused, filtered, self._make_columns(empty, [], []))
        rows = np.concatenate([piece.rows for piece in pieces])
        if len(pieces) == 1:
            batch, places = pieces[0].batch, [np.arange(len(rows))]
        else:
            order = np.argsort(rows, kind="stable")
            ranks = np.empty_like(order)
            ranks[order] = np.arange(len(order))
            table = pa.Table.from_batches([piece.batch for piece in pieces]).combine_chunks()
            batch = table.to_batches()[0].take(pa.array(order)) if len(rows) else pieces[0].batch
            places = np.split(ranks, np.cumsum([len(piece.rows) for piece in pieces])[:-1])
            rows = rows[order]
        return Transformed(batch, pa.array(rows), refused, filtered, self._make_columns(batch, pieces, places))

    def _make_columns(
        self, batch: pa.RecordBatch, pieces: Sequence[_Piece], places: Sequence[Numbers]
    ) -> dict[str, Column]:
        """Return the sides as conversion takes them: with a schema that they had, or got."""
        columns: dict[str, Column] = {}
        for side in _SIDES:
            if side not in self.columns and not any(side in piece.typed for piece in pieces):
                continue
            if not self.chain.tabular and side not in self.chain.writes:
                continue  # conversion reads what Kafka has: files of bytes hold that
            gathering = Gathering(batch.num_rows)
            for piece, at in zip(pieces, places, strict=True):
                if side in piece.typed:
                    typed = piece.typed[side]
                    gathering.add(typed.schema, at, typed.array, keep_nulls=True)
            converter = self.chain.key_converter if side == "key" else self.chain.value_converter
            left_out = self.columns[side].left_out if side in self.columns else {}
            columns[side] = Column(converter, batch.column(side), gathering.finish(), left_out, is_checked=False)
        return columns


def _mark_nulls(typed: Typed) -> list[Any]:
    return [NOT_READ if valid else None for valid in typed.array.is_valid().to_pylist()]


def _decode_typed(group: Group, side: Side, step: Step) -> list[Any]:
    """Return what a step reads of keys or values: of structs only the field that it asks for, if it names one."""
    whole = getattr(group, side)
    if not isinstance(whole, Typed):
        return list(whole)
    array, type = whole.array, whole.schema.type
    if step.field is not None and isinstance(type, Struct):
        index = array.type.get_field_index(step.field)
        if index < 0:
            return [{} if valid else None for valid in array.is_valid().to_pylist()]
        inner = whole.schema.detail.inner if whole.schema.detail is not None else ()
        detail = inner[index] if index < len(inner) else None
        column = group_values.to_numbered_values(array.field(index), type.fields[step.field], detail)
        rows = zip(column, array.is_valid().to_pylist(), strict=True)
        return [{step.field: value} if valid else None for value, valid in rows]
    return group_values.to_numbered_values(array, type, whole.schema.detail)


def _show_typed(side: Side, typed: Typed, raw: pa.BinaryArray) -> pa.BinaryArray:
    """Return the column of Kafka's bytes after the chain: null where the value is. Keys are JSON, for layouts.

    Of values, `convert` makes JSON where they are looked at.
    """
    nulls = typed.array.is_null()
    if side == "key":
        return pc.if_else(nulls, pa.scalar(None, pa.binary()), make_encoder(typed.schema.type)(typed.array))
    if not raw.null_count and not typed.array.null_count:
        return raw
    return pc.if_else(nulls, pa.scalar(None, pa.binary()), pc.fill_null(raw, b""))
