"""Records as lines of text: the styles `record` and `iggy` as JSON, and `flat` as JSON or CSV."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s3lake.records.convert.read.keys_and_values import Column, RecordEnvelope, Rows
from s3lake.records.convert.read.value_checks import Refusals
from s3lake.records.convert.rows import headers
from s3lake.records.encode import json_texts
from s3lake.records.encode.column_bytes import base64
from s3lake.records.encode.json_texts import Piece

_YEAR_1, _YEAR_10000 = -62_135_596_800_000, 253_402_300_800_000


def write_lines(envelope: RecordEnvelope, format: str, rows: Rows) -> pa.BinaryArray:
    """Return a line for each record, in the envelope's style."""
    return _STYLES["csv" if format == "csv" else envelope.style](envelope, rows)


def _record(envelope: RecordEnvelope, rows: Rows) -> pa.BinaryArray:
    """`{"key":…,"value":…,"headers":{…},"metadata":{…}}`, members in the order of the envelope's fields."""
    pieces: list[Piece] = []
    order = None
    for position, field in enumerate(envelope.fields):
        pieces.append((b"," if position else b"{") + b'"' + field.encode() + b'":')
        match field:
            case "headers":
                objects, order = headers.to_json_objects(rows.headers)
                pieces.append(objects)
            case "metadata":
                pieces += _metadata(envelope, rows)
            case _:
                pieces.append(rows.column(field).as_json())
    for field in ("key", "value"):
        if field in envelope.fields and rows.column(field).facts.gives == "bytes":
            pieces.append(_flag(field, rows.column(field).data))
    pieces += [] if order is None else [order]
    return json_texts.concat(*pieces, b"}")


def _iggy(envelope: RecordEnvelope, rows: Rows) -> pa.BinaryArray:
    """The Iggy S3 sink's line; without metadata and headers the payload alone. No headers are no member."""
    payload = rows.value.as_json()
    pieces: list[Piece] = []
    order = None
    if "metadata" in envelope.fields:
        names = b'","stream":%s,"topic":%s,"partition_id":' % (
            msgspec.json.encode(envelope.printed_stream),
            msgspec.json.encode(envelope.printed_topic),
        )
        pieces += [
            b',"offset":',
            json_texts.format_integers(rows.offsets),
            b',"timestamp":"',
            _seconds(rows.timestamps),
        ]
        pieces += [names, json_texts.format_integers(rows.kafka.column("partition"))]
    if "headers" in envelope.fields:
        objects, order = headers.to_json_objects(rows.headers)
        has_some = pc.not_equal(objects, pa.scalar(b"{}", pa.binary()))
        pieces.append(pc.if_else(has_some, json_texts.concat(b',"headers":', objects), pa.scalar(b"", pa.binary())))
    if "value" in envelope.fields:
        if not pieces:
            return payload
        pieces += [b',"payload":', payload]
    members = json_texts.concat(*pieces, *([] if order is None else [order]))
    return json_texts.concat(pc.binary_replace_slice(members, 0, 1, b"{"), b"}")


def _metadata(envelope: RecordEnvelope, rows: Rows) -> list[Piece]:
    return [
        *(
            b'{"topic":%s,"partition":' % msgspec.json.encode(envelope.topic),
            json_texts.format_integers(rows.kafka.column("partition")),
        ),
        *(b',"offset":', json_texts.format_integers(rows.offsets)),
        *(b',"timestamp":', json_texts.format_integers(rows.timestamps), b"}"),
    ]


def _flag(field: str, data: pa.BinaryArray) -> Piece:
    """Return the member by which Lenses marks a field as base64; nothing for a null."""
    flag = b',"%sIsArray":true' % field.encode()
    return pc.if_else(data.is_valid(), pa.scalar(flag), pa.scalar(b"")) if data.null_count else flag


def _flat(envelope: RecordEnvelope, rows: Rows) -> pa.BinaryArray:
    """One object per record, or the bare value of the one field."""
    if envelope.bare:
        return _json_of(rows, envelope.fields[0])
    pieces: list[Piece] = []
    for position, field in enumerate(envelope.fields):
        pieces += [(b"," if position else b"{") + b'"' + field.encode() + b'":', _json_of(rows, field)]
    return json_texts.concat(*pieces, b"}")


def _flat_csv(envelope: RecordEnvelope, rows: Rows) -> pa.BinaryArray:
    """One line per record, nothing quoted: null is empty."""
    pieces: list[Piece] = []
    for position, field in enumerate(envelope.fields):
        pieces += [b","] if position else []
        pieces.append(pc.fill_null(_csv_of(rows, field, envelope.value_encoding), b""))
    return json_texts.concat(*pieces)


def check_csv_values(envelope: RecordEnvelope, value: Column) -> Refusals:
    """Rows whose value would break its line, as nothing is quoted."""
    if "value" not in envelope.fields or envelope.value_encoding != "none" or value.is_json:
        return {}
    breaks = pc.or_(*(pc.greater_equal(pc.find_substring(value.data, mark), 0) for mark in (b"\n", b"\r")))
    reason = "the value holds a line break, which a line without quotes cannot: set envelope.value_encoding to base64"
    return dict.fromkeys(pc.indices_nonzero(pc.fill_null(breaks, False)).to_pylist(), reason)


def _json_of(rows: Rows, field: str) -> pa.BinaryArray:
    match field:
        case "headers":
            return headers.to_json_pairs(rows.headers)
        case "offset":
            return json_texts.format_integers(rows.offsets)
        case "timestamp":
            texts = _instants(rows.timestamps)
            return json_texts.set_nulls(json_texts.concat(b'"', pc.fill_null(texts, b""), b'"'), texts)
    return rows.column(field).as_json()


def _csv_of(rows: Rows, field: str, value_encoding: str) -> pa.BinaryArray:
    match field:
        case "headers":
            return headers.to_csv(rows.headers)
        case "offset":
            return rows.offsets.cast(pa.string()).cast(pa.binary())
        case "timestamp":
            return rows.timestamps.cast(pa.string()).cast(pa.binary())
    column = rows.column(field)
    if field == "value" and value_encoding == "none":
        return column.data
    return base64(column.data if column.facts.wrapped else rows.kafka.column(field))


def _instants(milliseconds: pa.Int64Array) -> pa.BinaryArray:
    """Epoch milliseconds as ISO 8601 instants, the fraction only where there is one: `1970-01-01T00:00:01.500Z`."""
    texts = pc.replace_substring_regex(_texts(milliseconds, "ms"), r"\.000$", "")
    return pc.binary_join_element_wise(texts, "Z", "").cast(pa.binary())


def _seconds(milliseconds: pa.Int64Array) -> pa.BinaryArray:
    """Epoch milliseconds as RFC 3339, down to the second: `1970-01-01T00:00:01Z`."""
    whole = pc.floor(pc.divide(milliseconds.cast(pa.float64(), safe=False), 1000)).cast(pa.int64())
    return pc.binary_join_element_wise(_texts(whole, "s"), "Z", "").cast(pa.binary())


def _texts(ticks: pa.Int64Array, unit: str) -> pa.StringArray:
    ends = pc.min_max(ticks).as_py()
    in_a_second = 1000 if unit == "ms" else 1
    low, high = (end // 1000 * in_a_second for end in (_YEAR_1, _YEAR_10000))
    if ends["min"] is not None and not low <= ends["min"] <= ends["max"] < high:
        return _far_texts(ticks, unit)
    return pc.replace_substring(ticks.cast(pa.timestamp(unit)).cast(pa.string()), " ", "T")


def _far_texts(ticks: pa.Int64Array, unit: str) -> pa.StringArray:
    # Nobody's clock, but a producer may stamp a record with any number.
    texts = [None if tick is None else str(np.array(tick, f"datetime64[{unit}]")) for tick in ticks.to_pylist()]
    far = [text and (f"+{text}" if text.index("-", 1) > 4 and text[0] != "-" else text) for text in texts]
    return pa.array(far, pa.string())


_STYLES: dict[str, Callable[[RecordEnvelope, Rows], pa.BinaryArray]] = {
    "record": _record,
    "iggy": _iggy,
    "flat": _flat,
    "csv": _flat_csv,
}
