"""The style `flat` as text: Aiven's rows, the fields in the order that the sink gives."""

import pyarrow as pa
import pyarrow.compute as pc

from s3lake.convert import headers, json_text, moments
from s3lake.convert.cells import Column, Rows
from s3lake.convert.envelope import Envelope
from s3lake.convert.gate import Refusals
from s3lake.convert.json_text import Piece


def json_lines(envelope: Envelope, rows: Rows) -> pa.BinaryArray:
    """One object per record, or the bare value of the one field."""
    if envelope.bare:
        return _json(rows, envelope.fields[0])
    pieces: list[Piece] = []
    for position, field in enumerate(envelope.fields):
        pieces += [(b"," if position else b"{") + b'"' + field.encode() + b'":', _json(rows, field)]
    return json_text.joined(*pieces, b"}")


def csv_lines(envelope: Envelope, rows: Rows) -> pa.BinaryArray:
    """One line per record, nothing quoted: null is empty."""
    pieces: list[Piece] = []
    for position, field in enumerate(envelope.fields):
        pieces += [b","] if position else []
        pieces.append(pc.fill_null(_csv(rows, field, envelope.value_encoding), b""))
    return json_text.joined(*pieces)


def csv_refusals(envelope: Envelope, value: Column) -> Refusals:
    """Rows whose value would break its line, as nothing is quoted."""
    if "value" not in envelope.fields or envelope.value_encoding != "none" or value.is_json:
        return {}
    breaks = pc.or_(*(pc.greater_equal(pc.find_substring(value.data, mark), 0) for mark in (b"\n", b"\r")))
    reason = "the value holds a line break, which a line without quotes cannot: set envelope.value_encoding to base64"
    return dict.fromkeys(pc.indices_nonzero(pc.fill_null(breaks, False)).to_pylist(), reason)


def _json(rows: Rows, field: str) -> pa.BinaryArray:
    match field:
        case "headers":
            return headers.as_pairs(rows.headers)
        case "offset":
            return json_text.numbers(rows.offsets)
        case "timestamp":
            texts = moments.instants(rows.timestamps)
            return json_text.or_null(json_text.joined(b'"', pc.fill_null(texts, b""), b'"'), texts)
    return rows.column(field).as_json()


def _csv(rows: Rows, field: str, value_encoding: str) -> pa.BinaryArray:
    match field:
        case "headers":
            return headers.as_csv(rows.headers)
        case "offset":
            return rows.offsets.cast(pa.string()).cast(pa.binary())
        case "timestamp":
            return rows.timestamps.cast(pa.string()).cast(pa.binary())
    column = rows.column(field)
    if field == "value" and value_encoding == "none":
        return column.data
    return json_text.base64(column.data if column.of.wrapped else rows.kafka.column(field))
