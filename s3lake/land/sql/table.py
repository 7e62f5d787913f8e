"""The table that Spark's SQL projects and filters: records of a micro-batch as rows of typed columns.

A sink with SQL has two stages in Spark. `Tabulate` is the first: transforms, then values as columns. Spark's SQL makes
JSON of the projected row, and the second stage, the pipeline's, takes that for the record's value. Every record comes
through, refused and filtered ones with a mark, so that counts and dead letters are whole.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from s3lake.convert import gate, table
from s3lake.convert.gate import Refusals
from s3lake.convert.limits import Limits
from s3lake.land.task.outcomes import Grown
from s3lake.schema.arrow import arrow_type
from s3lake.schema.changes import type_at
from s3lake.schema.types import Columns, Primitive, Struct, fields_of, to_document
from s3lake.transform.sql import Query

if TYPE_CHECKING:
    from s3lake.transform.chain import Chain

VALUE = "__value"
"""The column that holds the value's fields."""

RAW: dict[str, Any] = {
    "key": pa.binary(),
    "headers": pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
}

Excluded = Mapping[int, Mapping[int, str]]
"""Topic-partition -> offset -> why SQL fails on this record."""


@dataclass(frozen=True)
class Tabulate:
    """First stage: records as rows of a table, for SQL.

    Attributes:
        key, value: converters, after transforms.
        source: what was seen so far of `value`, a struct, and of `key`; a value that is no object is a struct of one
            field `value`.
        query: what is asked; fields that it names and that were not seen yet are null texts.
        chain: transforms, which come before SQL.
        wallclock_ms: the micro-batch's time, epoch milliseconds.
        carried: Kafka columns that the second stage needs as they are.
        excluded: records that are known to fail in SQL.
        looking: give only the columns that are seen.
        max_columns: a record whose new fields would make more is refused.
        integral: path of a column of `source` that stays one of integers -> why.
    """

    topic: str
    key: str
    value: str
    source: Columns
    query: Query
    chain: Chain | None = None
    wallclock_ms: int = 0
    carried: tuple[str, ...] = ()
    excluded: Excluded = field(default_factory=dict)
    looking: bool = False
    max_columns: int = sys.maxsize
    integral: Mapping[str, str] = field(default_factory=dict)

    @property
    def fields(self) -> Columns:
        """Columns of the value, as SQL sees them."""
        if self.value != "json":
            return {"value": Primitive.BINARY if self.value == "bytes" else Primitive.STRING}
        columns: Columns = dict(fields_of(self.source.get("value")))
        for path in sorted(self.query.paths):
            _add(columns, path)
        return columns or {"value": Primitive.STRING}

    @property
    def schema(self) -> pa.Schema:
        """Columns of the table."""
        plain = Primitive.BINARY if self.key == "bytes" else Primitive.STRING
        key = self.source.get("key", plain) if self.key == "json" else plain
        return pa.schema(
            [
                (VALUE, arrow_type(Struct(self.fields))),
                ("_key", arrow_type(key)),
                ("_headers", pa.map_(pa.string(), pa.string())),
                ("_topic", pa.string()),
                ("_partition", pa.int32()),
                ("_offset", pa.int64()),
                ("_timestamp", pa.timestamp("us", "UTC")),
                ("__original", pa.binary()),
                ("__dropped", pa.bool_()),
                ("__null", pa.bool_()),
                ("__refused", pa.string()),
                ("__grown", pa.binary()),
                *((f"__{name}", type) for name, type in RAW.items() if name in self.carried),
            ]
        )

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """What `mapInArrow` runs."""
        source, first, grown = self.source, None, self.looking
        large = set[str]()
        for batch in batches:
            if not batch.num_rows:
                continue
            first = first or (batch.column("partition")[0].as_py(), batch.column("offset")[0].as_py())
            transformed, refused, dropped = self._transformed(batch)
            rows, now, seen = self._rows(batch, transformed, refused, dropped, source)
            large |= {path for path in seen - self.integral.keys() if type_at(self.source, path) != "double"}
            grown, source = grown or now != source or bool(large), now
            if not grown:
                yield rows
        if grown and first is not None:
            mark = msgspec.json.encode(Grown(*first, to_document(source), source=True, large=tuple(sorted(large))))
            columns = [pa.array([mark if one.name == "__grown" else None], one.type) for one in self.schema]
            yield pa.record_batch(columns, schema=self.schema)

    def _transformed(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, Refusals, pa.BooleanArray]:
        """The batch after the chain, row by row as before: refused and dropped rows are null; and which are dropped."""
        total = batch.num_rows
        if self.chain is None:
            return batch, {}, pa.repeat(pa.scalar(False), total)
        done = self.chain(batch, self.topic, self.wallclock_ms)
        if done.rows is None:
            return done.batch, done.refused, pa.repeat(pa.scalar(False), total)
        places = _places(done.rows.to_pylist(), total)
        dropped = [place is None and row not in done.refused for row, place in enumerate(places)]
        return done.batch.take(pa.array(places, pa.int64())), done.refused, pa.array(dropped, pa.bool_())

    def _rows(
        self,
        original: pa.RecordBatch,
        batch: pa.RecordBatch,
        transformed: Refusals,
        dropped: pa.BooleanArray,
        source: Columns,
    ) -> tuple[pa.RecordBatch, Columns, frozenset[str]]:
        values, total = batch.column("value"), original.num_rows
        excluded = self.excluded.get(original.column("partition")[0].as_py(), {})
        offsets = original.column("offset").to_pylist() if excluded else []
        refused = {row: excluded[offset] for row, offset in enumerate(offsets) if offset in excluded} | transformed
        key = batch.column("key") if "key" in batch.schema.names else pa.nulls(total, pa.binary())
        parsed: Any = None
        large = frozenset[str]()
        if self.value == "json":
            refused |= gate.json_refusals(values)
        elif self.value == "string":
            refused |= gate.text_refusals(values)
        if self.key == "json":
            refused |= gate.json_refusals(key)
        elif self.key == "string":
            refused |= gate.text_refusals(key)
        kept = [row for row in range(total) if row not in refused]
        if self.value == "json" or self.key == "json":
            wrapped = [self._wrapped(values[row].as_py(), key[row].as_py()) for row in kept]
            limits = Limits(most=self.max_columns, integral=self.integral)
            parsed, source, conflicts, large = table.read_objects(pa.array(wrapped, pa.binary()), source, limits=limits)
            refused |= {kept[row]: reason for row, reason in conflicts.items()}
            kept = [row for position, row in enumerate(kept) if position not in conflicts]
        places = pa.array(_places(kept, total), pa.int64())
        schema = self.schema
        columns = {
            VALUE: self._value(parsed, places, values, schema.field(VALUE).type),
            "_key": self._key(parsed, places, key, schema.field("_key").type),
            "_headers": _headers(batch, schema.field("_headers").type),
            "_topic": batch.column("topic") if "topic" in batch.schema.names else pa.array([self.topic] * total),
            "_partition": original.column("partition"),
            "_offset": original.column("offset"),
            "_timestamp": original.column("timestamp"),
            "__original": original.column("value"),
            "__dropped": dropped,
            "__null": values.is_null(),
            "__refused": pa.array([refused.get(row) for row in range(total)], pa.string()),
            "__grown": pa.nulls(total, pa.binary()),
            **{f"__{name}": batch.column(name) for name in RAW if name in self.carried},
        }
        return pa.record_batch([columns[name] for name in schema.names], schema=schema), source, large

    def _wrapped(self, value: bytes | None, key: bytes | None) -> bytes:
        parts = []
        if self.value == "json" and value is not None:
            value = value.replace(b"\n", b" ").replace(b"\r", b" ")  # a raw newline stands between tokens only
            is_object = value.lstrip(b" \t").startswith(b"{")
            parts.append(b'"value":' + (value if is_object else b'{"value":' + value + b"}"))
        if self.key == "json" and key is not None:
            parts.append(b'"key":' + key.replace(b"\n", b" ").replace(b"\r", b" "))
        return b"{" + b",".join(parts) + b"}"

    def _value(self, parsed: Any, places: pa.Array, values: pa.Array, target: pa.DataType) -> pa.Array:
        if self.value != "json":
            text = _text(values, places) if self.value == "string" else values
            return pa.StructArray.from_arrays([text], fields=list(target))
        have = parsed.column("value").take(places) if parsed is not None and "value" in parsed.schema.names else None
        return _fitted(have, target, len(places))

    def _key(self, parsed: Any, places: pa.Array, key: pa.Array, target: pa.DataType) -> pa.Array:
        if self.key == "bytes":
            return key
        if self.key == "string":
            return _text(key, places)
        have = parsed.column("key").take(places) if parsed is not None and "key" in parsed.schema.names else None
        return _fitted(have, target, len(places))


def _add(columns: Columns, path: tuple[str, ...]) -> None:
    """A field that is not known yet, as a text that is null."""
    name, *rest = path
    present = columns.get(name)
    if not rest:
        columns.setdefault(name, Primitive.STRING)
    elif present is None or fields_of(present):
        deeper = dict(fields_of(present))
        _add(deeper, tuple(rest))
        columns[name] = Struct(deeper)


def _places(kept: list[int], total: int) -> list[int | None]:
    """Where each row is among the kept ones; None for the others."""
    places: list[int | None] = [None] * total
    for position, row in enumerate(kept):
        places[row] = position
    return places


def _text(values: pa.Array, places: pa.Array) -> pa.Array:
    """Values as text, those of refused rows null: they may be no UTF-8."""
    return pc.if_else(places.is_valid(), values, pa.scalar(None, pa.binary())).cast(pa.string())


def _fitted(have: pa.Array | None, target: pa.DataType, total: int) -> pa.Array:
    """A column in the wanted type, of which it may lack fields."""
    if have is None:
        return pa.nulls(total, target)
    if not pa.types.is_struct(target) or have.type == target:
        return have.cast(target)
    fields = []
    for target_field in target:
        known = have.type.get_field_index(target_field.name) >= 0
        fields.append(_fitted(pc.struct_field(have, target_field.name) if known else None, target_field.type, total))
    return pa.StructArray.from_arrays(fields, fields=list(target), mask=have.is_null())


def _headers(batch: pa.RecordBatch, target: pa.DataType) -> pa.Array:
    """The last value of each header as text; one that is no UTF-8 is null."""
    if "headers" not in batch.schema.names:
        return pa.nulls(batch.num_rows, target)
    rows = []
    for headers in batch.column("headers").to_pylist():
        texts: dict[str, str | None] = {}
        for header in headers or ():
            texts[header["key"]] = _utf8(header["value"])
        rows.append(list(texts.items()))
    return pa.array(rows, target)


def _utf8(data: bytes | None) -> str | None:
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError:
        return None
