"""Record headers: Kafka's list of names and bytes as JSON, text or columns, a whole batch at a time.

Names may repeat, and their order means something, so nothing here loses either.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from s3lake.records.convert.read import value_checks
from s3lake.records.convert.read.value_checks import Refusals
from s3lake.records.encode import json_texts
from s3lake.records.encode.column_bytes import base64
from s3lake.records.schema.columns.types import List, Primitive, Struct

LIST = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
TEXT_LIST = pa.list_(pa.struct([("key", pa.string()), ("value", pa.string())]))
LIST_TYPE = List(Struct({"key": Primitive.STRING, "value": Primitive.BINARY}))


@dataclass(frozen=True)
class Headers:
    """The headers of all rows one after the other, and where each row's begin."""

    names: pa.BinaryArray
    values: pa.BinaryArray
    offsets: pa.Int32Array

    @classmethod
    def from_column(cls, column: pa.ListArray) -> "Headers":
        """Return the headers of a batch; a row without headers has none, be it null or empty."""
        lengths = pc.fill_null(pc.list_value_length(column), 0)
        ends = pc.cumulative_sum(lengths).cast(pa.int32())
        pairs = pc.list_flatten(column)
        names, values = (pc.struct_field(pairs, [at]).cast(pa.binary()) for at in (0, 1))
        return cls(names, values, pa.concat_arrays([pa.array([0], pa.int32()), ends]))

    def rows(self) -> pa.Array:
        return pc.list_parent_indices(pa.ListArray.from_arrays(self.offsets, self.names))

    def gather(self, texts: pa.BinaryArray, opening: bytes, between: bytes, closing: bytes) -> pa.BinaryArray:
        """One text per row out of one per header."""
        lists = pa.ListArray.from_arrays(self.offsets, texts)
        return json_texts.concat(opening, pc.binary_join(lists, pa.scalar(between, pa.binary())), closing)


def to_lists(column: pa.ListArray) -> pa.ListArray:
    """Headers as a table's column: a list for every row."""
    headers = Headers.from_column(column)
    pairs = pa.StructArray.from_arrays([headers.names.cast(pa.string()), headers.values], fields=list(LIST.value_type))
    return pa.ListArray.from_arrays(headers.offsets, pairs, type=LIST)


def to_json_objects(column: pa.ListArray) -> tuple[pa.BinaryArray, pa.BinaryArray | None]:
    """Headers as JSON objects, name -> text, where a name that is repeated has the list of its texts.

    Returns:
        The objects, and what else the envelope needs to tell the order of all headers: a member `headersOrder` with a
        comma before it, or nothing; None if no row needs it.
    """
    headers = Headers.from_column(column)
    texts = json_texts.quote_or_base64(headers.values)
    objects = headers.gather(json_texts.concat(_quoted_names(headers.names), b":", texts), b"{", b",", b"}")
    repeating = _rows_with_repeats(headers)
    if not repeating:
        return objects, None
    written, orders = objects.to_pylist(), [b""] * len(objects)
    offsets, names, values = headers.offsets.to_pylist(), headers.names.to_pylist(), texts.to_pylist()
    for row in repeating:
        of_row = slice(offsets[row], offsets[row + 1])
        written[row], orders[row] = _with_repeats(names[of_row], values[of_row])
    return pa.array(written, pa.binary()), pa.array(orders, pa.binary()) if any(orders) else None


def to_json_pairs(column: pa.ListArray) -> pa.BinaryArray:
    """Headers as JSON arrays of `{"key", "value"}`."""
    headers = Headers.from_column(column)
    texts = json_texts.concat(
        *(b'{"key":', _quoted_names(headers.names), b',"value":', json_texts.quote_or_base64(headers.values), b"}")
    )
    return headers.gather(texts, b"[", b",", b"]")


def to_csv(column: pa.ListArray) -> pa.BinaryArray:
    """Headers as `name:value;` each, both in base64; nothing for none."""
    headers = Headers.from_column(column)
    values = pc.fill_null(base64(headers.values), b"")
    return headers.gather(json_texts.concat(base64(headers.names), b":", values, b";"), b"", b"", b"")


def to_text_maps(column: pa.ListArray) -> pa.MapArray:
    """Headers as a table's map of texts, in which the last of a name counts; the values passed `check_texts`."""
    headers = Headers.from_column(column)
    names, values = headers.names.cast(pa.string()), headers.values.cast(pa.string())
    plain = pa.MapArray.from_arrays(headers.offsets, names, values)
    if not _rows_with_repeats(headers):
        return plain
    return pa.array([list(dict(row).items()) for row in plain.to_pylist()], plain.type)


def check_texts(column: pa.ListArray) -> Refusals:
    """Return rows with a header whose value is not valid UTF-8."""
    headers = Headers.from_column(column)
    refused = value_checks.check_utf8(headers.values)
    if not refused:
        return {}
    rows, names = headers.rows().to_pylist(), headers.names.to_pylist()
    return {rows[at]: f"header {names[at].decode()!r} is {reason}" for at, reason in reversed(refused.items())}


def _quoted_names(names: pa.BinaryArray) -> pa.BinaryArray:
    # Few names, again and again.
    encoded = names.dictionary_encode()
    return json_texts.quote_strings(encoded.dictionary).take(encoded.indices)


def _rows_with_repeats(headers: Headers) -> list[int]:
    if not len(headers.names):
        return []
    encoded = headers.names.dictionary_encode()
    rows = headers.rows().cast(pa.int64())
    marks = pc.add(pc.multiply(rows, len(encoded.dictionary)), encoded.indices.cast(pa.int64()))
    if pc.count_distinct(marks).as_py() == len(marks):
        return []
    counted = pc.value_counts(marks)
    twice = counted.field(0).filter(pc.greater(counted.field(1), 1))
    return sorted(set(pc.divide(twice, len(encoded.dictionary)).to_pylist()))


def _with_repeats(names: Sequence[bytes], texts: Sequence[bytes]) -> tuple[bytes, bytes]:
    """The object of one row, and its `headersOrder` where the object does not tell the order."""
    by_name: dict[bytes, list[bytes]] = {}
    for name, text in zip(names, texts, strict=True):
        by_name.setdefault(name, []).append(text)
    members = [
        msgspec.json.encode(name.decode()) + b":" + (b"[" + b",".join(many) + b"]" if len(many) > 1 else many[0])
        for name, many in by_name.items()
    ]
    grouped = [name for name, many in by_name.items() for _ in many]
    order = b""
    if grouped != list(names):
        order = b',"headersOrder":' + msgspec.json.encode([name.decode() for name in names])
    return b"{" + b",".join(members) + b"}", order
