"""A sink's transforms run again on Kafka's records: the one part that verify shares with the writer.

No other module of verify imports this one before a commit was transformed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import chain, groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from s3lake.lake.verify.decoded_values import Decoded, MapValue, Pairs, PlainJson, SinglePrecision, Uuid
from s3lake.lake.verify.log import Records, to_records
from s3lake.records.transform.chain.apply import apply_chain
from s3lake.records.transform.chain.chain import Chain
from s3lake.source.record_batches import KAFKA_SCHEMA

if TYPE_CHECKING:
    from s3lake.config.model import Sink
    from s3lake.records.convert.read.keys_and_values import Column
    from s3lake.records.schema.columns.details import Detail

_MAP_ENTRY = "io.confluent.connect.avro.MapEntry"


class Transforms:
    """The transforms of a sink, as the commit of a topic-partition ran them.

    Attributes:
        needs: the parts of records, next to their values, that transforms look at or change.
    """

    def __init__(
        self, sink: Sink, topic: str, clocks: Sequence[tuple[int, int]], *, as_bytes: bool, tabular: bool
    ) -> None:
        """Prepare the chain.

        Args:
            clocks: the times of micro-batches: `(end, epoch milliseconds)`, in order, for offsets below `end`.
            as_bytes: whether files hold values as bytes: of values with a schema, their JSON.
            tabular: whether they hold columns.
        """
        self._as_bytes = as_bytes
        converter = sink.converter
        connection = converter.registry.connection if converter.registry else None
        self._chain = Chain(
            sink.transforms_as_data,
            converter.key,
            converter.value,
            connection,
            tabular=tabular,
            null_to_default=converter.null_to_default,
            exact=converter.times == "exact",
        )
        self._topic, self._clocks = topic, clocks
        self.needs = self._chain.needs

    def apply(self, records: Records) -> tuple[Records, dict[int, str]]:
        """Return the records after the transforms, in order, and by offset why one is refused.

        Those that a transform filters out, or refuses, are left out.
        """
        ends = [end for end, _ in self._clocks]
        parts: list[Records] = []
        refused: dict[int, str] = {}
        numbered = [(min(bisect_right(ends, offset), len(ends) - 1), row) for row, offset in enumerate(records.offsets)]
        for clock, run in groupby(numbered, key=itemgetter(0)):
            own = records.select([row for _, row in run])
            done = apply_chain(self._chain, _to_batch(own), self._topic, self._clocks[clock][1])
            refused |= {own.offsets[row]: why for row, why in done.refused.items()}
            parts.append(self._decode(to_records(records.partition, done.batch), done.columns))
        columns = zip(*(part[1:] for part in parts), strict=True)
        return Records(records.partition, *(list(chain.from_iterable(column)) for column in columns)), refused

    def _decode(self, records: Records, columns: Mapping[str, Column]) -> Records:
        """Return records with the keys and values that have a schema decoded by it."""
        sides: dict[str, Sequence[Any]] = {"value": records.values, "key": records.keys}
        for side, column in columns.items():
            # Files of lines have JSON, and files of bytes any value, as the chain left it.
            as_text = (not self._chain.tabular and column.converter == "json") or (side == "value" and self._as_bytes)
            sides[side] = column.finish(texts=True)[0].data.to_pylist() if as_text else _decode_column(column)
        return records._replace(values=sides["value"], keys=sides["key"])


def _decode_column(column: Column) -> list[Any]:
    """Return values decoded by their schemas, others as JSON, and None for null."""
    texts = column.data.to_pylist()
    if column.schemas is None:
        return [None if text is None else PlainJson(text) for text in texts]
    pairs = zip(column.schemas.distinct, column.schemas.arrays, strict=True)
    is_connect = column.converter == "connect_json"  # lines have maps of other keys than texts as pairs then
    by_schema = [[_read_cell(cell, schema.detail if is_connect else None) for cell in array] for schema, array in pairs]
    decoded: list[Any] = []
    for text, code, at in zip(texts, column.schemas.codes.tolist(), column.schemas.at.tolist(), strict=True):
        if code < 0:
            decoded.append(None if text is None else PlainJson(text))
        else:
            cell = by_schema[code][at]
            decoded.append(None if cell is None else Decoded(cell))
    return decoded


def _read_cell(cell: pa.Scalar, detail: Detail | None) -> Any:
    """Return a cell of a column as `verify.values` has decoded values; `detail` tells maps of Connect from lists."""
    if not cell.is_valid:
        return None
    of, type, inner = pa.types, cell.type, detail.inner if detail is not None else ()
    if of.is_struct(type):
        pairs = zip(cell.items(), inner or [None] * type.num_fields, strict=True)
        return {name: _read_cell(part, each) for (name, part), each in pairs}
    item = inner[0] if inner else None
    if of.is_map(type):
        return MapValue({entry["key"].as_py(): _read_cell(entry["value"], item) for entry in cell.values})
    if of.is_list(type):
        cells = [_read_cell(each, item) for each in cell.values]
        is_map = item is not None and item.name == _MAP_ENTRY
        return Pairs([(entry["key"], entry["value"]) for entry in cells]) if is_map else cells
    if of.is_float32(type):
        return SinglePrecision(cell.as_py())
    if of.is_timestamp(type) or of.is_time(type) or of.is_date(type):
        return cell.value  # the number: Python has no nanoseconds, and no year 10000
    return Uuid(cell.as_py()) if isinstance(cell, pa.UuidScalar) else cell.as_py()


def _to_batch(records: Records) -> pa.RecordBatch:
    columns: dict[str, Sequence[object]] = {
        "partition": [records.partition] * len(records.offsets),
        "offset": records.offsets,
        "timestamp": records.timestamps,
        "value": records.values,
    }
    if records.keys:
        columns["key"] = records.keys
    if records.headers:
        columns["headers"] = [[{"key": name, "value": value} for name, value in row] or None for row in records.headers]
    fields = [KAFKA_SCHEMA.field(name) for name in columns]
    arrays = [pa.array(columns[field.name], field.type) for field in fields]
    return pa.record_batch(arrays, schema=pa.schema(fields))
