"""The table that Spark's SQL computes over: a micro-batch's records with the fields that the SQL names, and no others.

A sink with expressions or a filter has two stages in Spark. `Tabulate` is the first: transforms, then the named fields
as typed columns. A field may have another type in each record, so each has a column for each kind of value, and
`__shape` selects the one that a record uses: a record's result never depends on its neighbours. The second stage, the
pipeline's, puts what Spark computed into the value. Every record comes through, refused and filtered ones with a mark,
so that counts and dead letters are whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from s3lake.records.convert.read import value_checks
from s3lake.records.convert.read.value_checks import Refusals
from s3lake.records.record_timestamps import to_epoch_ms
from s3lake.records.transform.chain.apply import apply_chain
from s3lake.records.transform.sql.query import Path, Query, find, read_fields
from s3lake.source.record_batches import HEADERS

if TYPE_CHECKING:
    from s3lake.records.transform.chain.chain import Chain

CELLS: dict[str, Any] = {"b": pa.bool_(), "i": pa.int64(), "d": pa.float64(), "s": pa.string(), "j": pa.string()}
"""A field's columns, by suffix: for truth values, integers, other numbers, texts, and JSON of lists and objects."""
SCALARS = {"BOOLEAN": "b", "BIGINT": "i", "DOUBLE": "d", "STRING": "s"}
NULL = "VOID"
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1
_MOST_MS = _LARGEST // 1000
_SPARK_TIMESTAMP = pa.timestamp("us", "UTC")
RAW: dict[str, Any] = {"key": pa.binary(), "headers": HEADERS}
KEY: Path = ("_key",)

Excluded = Mapping[tuple[int, int], str]
"""The reason why SQL fails on a record, by its topic-partition and offset."""


@dataclass(frozen=True)
class Tabulate:
    """First stage: records as rows of a table, for SQL.

    Attributes:
        key, value: converters, after transforms.
        query: the sink's SQL.
        chain: transforms, which come before SQL.
        wallclock_ms: the micro-batch's time, epoch milliseconds.
        carried: Kafka columns that the second stage needs as they are.
        excluded: records that are known to fail in SQL.
    """

    topic: str
    key: str
    value: str
    query: Query
    chain: Chain | None = None
    wallclock_ms: int = 0
    carried: tuple[str, ...] = ()
    excluded: Excluded = field(default_factory=dict)

    @property
    def leaves(self) -> tuple[Path, ...]:
        """Fields that have columns: of the value, and the key if it is JSON and the SQL reads it."""
        reads_key = self.key == "json" and "_key" in self.query.meta
        return (*self.query.leaves, KEY) if reads_key else self.query.leaves

    @property
    def names(self) -> tuple[str, ...]:
        """The leaves as shapes name them."""
        return tuple(map(".".join, self.leaves))

    @property
    def schema(self) -> pa.Schema:
        """Columns of the table."""
        leaves = [(f"__{number}{suffix}", type) for number in range(len(self.leaves)) for suffix, type in CELLS.items()]
        return pa.schema(
            [
                *leaves,
                ("_key", pa.binary() if self.key == "bytes" else pa.string()),
                ("_headers", pa.map_(pa.string(), pa.string())),
                ("_topic", pa.string()),
                ("_partition", pa.int32()),
                ("_offset", pa.int64()),
                ("_timestamp", _SPARK_TIMESTAMP),
                ("__timestamp", pa.int64()),
                ("__original", pa.binary()),
                ("__value", pa.binary()),
                ("__dropped", pa.bool_()),
                ("__refused", pa.string()),
                ("__shape", pa.string()),
                *((f"__{name}", type) for name, type in RAW.items() if name in self.carried),
            ]
        )

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the table; `mapInArrow` calls this."""
        for batch in batches:
            if batch.num_rows:
                yield self._build(batch, *self._transform(batch))

    def _transform(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, Refusals, pa.BooleanArray]:
        """Return the batch after the chain, row by row as before, why rows are refused, and which are dropped.

        Refused and dropped rows are null.
        """
        total = batch.num_rows
        if self.chain is None:
            return batch, {}, pa.repeat(pa.scalar(False), total)
        done = apply_chain(self.chain, batch, self.topic, self.wallclock_ms)
        places: list[int | None] = [None] * total
        for place, row in enumerate(done.rows.to_pylist()):
            places[row] = place
        dropped = [place is None and row not in done.refused for row, place in enumerate(places)]
        return done.batch.take(pa.array(places, pa.int64())), done.refused, pa.array(dropped, pa.bool_())

    def _build(
        self, original: pa.RecordBatch, batch: pa.RecordBatch, refused: Refusals, dropped: pa.BooleanArray
    ) -> pa.RecordBatch:
        values, total = batch.column("value"), original.num_rows
        key = batch.column("key") if "key" in batch.schema.names else pa.nulls(total, pa.binary())
        if self.excluded:
            places = zip(original.column("partition").to_pylist(), original.column("offset").to_pylist(), strict=True)
            rows = {row: self.excluded[place] for row, place in enumerate(places) if place in self.excluded}
            refused = rows | refused
        for column, converter in ((values, self.value), (key, self.key)):
            if converter in value_checks.CHECKS:
                refused = value_checks.CHECKS[converter](column) | refused
        leaves, shapes = self._read_leaves(values, key, refused)
        schema = self.schema
        columns = {
            **{f"__{number}{suffix}": cells[suffix] for number, cells in enumerate(leaves) for suffix in CELLS},
            "_key": key if self.key == "bytes" else _to_text(key, refused),
            "_headers": _read_headers(batch),
            "_topic": batch.column("topic") if "topic" in batch.schema.names else [self.topic] * total,
            "_partition": original.column("partition"),
            "_offset": original.column("offset"),
            "_timestamp": self._to_spark(original.column("timestamp"), refused),
            "__timestamp": to_epoch_ms(original.column("timestamp")),
            "__original": original.column("value"),
            "__value": values,
            "__dropped": dropped,
            "__refused": [refused.get(row) for row in range(total)],
            "__shape": shapes,
            **{f"__{name}": batch.column(name) for name in RAW if name in self.carried},
        }
        cells = [(columns[column.name], column.type) for column in schema]
        arrays = [each if isinstance(each, pa.Array) else pa.array(each, type) for each, type in cells]
        return pa.record_batch(arrays, schema=schema)

    def _to_spark(self, timestamps: pa.TimestampArray, refused: Refusals) -> pa.Array:
        """Return timestamps of Spark, null beyond them. Adds rows to `refused` if the SQL needs theirs."""
        milliseconds = to_epoch_ms(timestamps)
        fits = pc.and_(pc.greater_equal(milliseconds, -_MOST_MS), pc.less_equal(milliseconds, _MOST_MS))
        if "_timestamp" in self.query.meta:
            for row in pc.indices_nonzero(pc.fill_null(pc.invert(fits), False)).to_pylist():
                refused.setdefault(
                    row,
                    f"_timestamp is {milliseconds[row]}: Spark's timestamps are at most {_MOST_MS} milliseconds; "
                    "correct the unit of the producer's timestamps, or leave _timestamp out of the SQL",
                )
        return pc.if_else(fits, timestamps, pa.scalar(None, timestamps.type)).cast(_SPARK_TIMESTAMP)

    def _read_leaves(
        self, values: pa.BinaryArray, key: pa.BinaryArray, refused: Refusals
    ) -> tuple[list[dict[str, list[Any]]], list[str]]:
        """Return each leaf's cells by suffix, and each row's shape. Adds rows to `refused`."""
        total, paths = len(values), self.leaves
        leaves: list[dict[str, list[Any]]] = [{suffix: [None] * total for suffix in CELLS} for _ in paths]
        shapes = [""] * total
        if not paths:
            return leaves, shapes
        names: dict[tuple[str, ...], str] = {}
        for row, (value, record_key) in enumerate(zip(values.to_pylist(), key.to_pylist(), strict=True)):
            if row in refused:
                continue
            try:
                fields = read_fields(value, self.value)
                types = []
                for number, path in enumerate(paths):
                    encoded = record_key if path is KEY else find(fields, path)
                    suffix, type, cell = read_cell(encoded)
                    types.append(type)
                    if suffix:
                        leaves[number][suffix][row] = cell
            except (ValueError, OverflowError, RecursionError) as error:
                refused[row] = (
                    str(error) if isinstance(error, ValueError) else "a number too large, or nested too deeply"
                )
                continue
            shape = tuple(types)
            if shape not in names:
                names[shape] = msgspec.json.encode(dict(zip(self.names, shape, strict=True))).decode()
            shapes[row] = names[shape]
        return leaves, shapes


def _to_text(values: pa.Array, refused: Refusals) -> pa.Array:
    """Return values as text. Those of refused rows are null, because they need not be UTF-8."""
    if refused:
        kept = pa.array([row not in refused for row in range(len(values))], pa.bool_())
        values = pc.if_else(kept, values, pa.scalar(None, pa.binary()))
    return values.cast(pa.string())


def _read_headers(batch: pa.RecordBatch) -> list[list[tuple[str, str | None]] | None]:
    """Return the last value of each header as text; one that is not UTF-8 is null."""
    if "headers" not in batch.schema.names:
        return [None] * batch.num_rows
    rows: list[list[tuple[str, str | None]] | None] = []
    for headers in batch.column("headers").to_pylist():
        texts: dict[str, str | None] = {}
        for header in headers or ():
            texts[header["key"]] = _decode(header["value"])
        rows.append(list(texts.items()))
    return rows


def _decode(data: bytes | None) -> str | None:
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError:
        return None


def read_cell(encoded: Any) -> tuple[str, str, Any]:
    """Return the column, the type and the cell of a field's JSON value; no column if it is missing or null.

    Raises:
        ValueError: the items of a list have different types, or an integer would be rounded.
    """
    value = None if encoded is None else msgspec.json.decode(encoded)
    if value is None:
        return "", NULL, None
    type = _find_type(value)
    if isinstance(value, list | dict):
        return "j", _write_type(type), bytes(encoded).decode()
    return SCALARS[type], type, float(value) if type == "DOUBLE" else value


def _find_type(value: Any) -> Any:
    """Return the type of a value: a name, a list with the type of its items, or an object's types by field."""
    match value:
        case None:
            return NULL
        case bool():
            return "BOOLEAN"
        case int():
            if _SMALLEST <= value <= _LARGEST:
                return "BIGINT"
            return _require_double(value)
        case float():
            return "DOUBLE"
        case str():
            return "STRING"
        case list():
            item: Any = NULL
            for element in value:
                item = _unite(item, _find_type(element))
            if item == "DOUBLE":
                for element in value:
                    _require_double(element)
            return [item]
        case _:
            return {name: _find_type(inner) for name, inner in value.items()}


def _require_double(value: Any) -> str:
    """Return DOUBLE. Raise ValueError for an integer that a double would round."""
    if isinstance(value, int) and int(float(value)) != value:
        raise ValueError("an integer that SQL would round to a double: BIGINT has 64 bits, and a double 53")
    return "DOUBLE"


def _unite(left: Any, right: Any) -> Any:
    """Return the type of two items of a list."""
    if left == right or right == NULL:
        return left
    if left == NULL:
        return right
    if isinstance(left, list) and isinstance(right, list):
        return [_unite(left[0], right[0])]
    if isinstance(left, dict) and isinstance(right, dict):
        return {name: _unite(left.get(name, NULL), right.get(name, NULL)) for name in {**left, **right}}
    if {str(left), str(right)} == {"BIGINT", "DOUBLE"}:
        return "DOUBLE"
    raise ValueError(f"a list has items of different types, {_write_type(left)} and {_write_type(right)}")


def _write_type(type: Any) -> str:
    if isinstance(type, list):
        return f"ARRAY<{_write_type(type[0])}>"
    if isinstance(type, dict):
        return f"STRUCT<{', '.join(f'{quote(name)}: {_write_type(inner)}' for name, inner in type.items())}>"
    return "STRING" if type == NULL else str(type)


def quote(name: str) -> str:
    """Return a name as Spark's SQL takes any."""
    return "`" + name.replace("`", "``") + "`"
