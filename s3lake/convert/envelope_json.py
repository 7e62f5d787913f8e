"""The styles `record` and `iggy` as JSON: one object per record."""

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from s3lake.convert import headers, json_text, moments
from s3lake.convert.cells import Rows
from s3lake.convert.envelope import Envelope
from s3lake.convert.json_text import Piece


def record_lines(envelope: Envelope, rows: Rows) -> pa.BinaryArray:
    """`{"key":…,"value":…,"headers":{…},"metadata":{…}}`, members in the order of the envelope's fields."""
    pieces: list[Piece] = []
    order = None
    for position, field in enumerate(envelope.fields):
        pieces.append((b"," if position else b"{") + b'"' + field.encode() + b'":')
        match field:
            case "headers":
                objects, order = headers.as_maps(rows.headers)
                pieces.append(objects)
            case "metadata":
                pieces += _metadata(envelope, rows)
            case _:
                pieces.append(rows.column(field).as_json())
    for field in ("key", "value"):
        if field in envelope.fields and rows.column(field).of.gives == "bytes":
            pieces.append(_flag(field, rows.column(field).data))
    pieces += [] if order is None else [order]
    return json_text.joined(*pieces, b"}")


def iggy_lines(envelope: Envelope, rows: Rows) -> pa.BinaryArray:
    """The Iggy S3 sink's line; without metadata and headers the payload alone. No headers are no member."""
    payload = rows.value.as_json()
    pieces: list[Piece] = []
    order = None
    if "metadata" in envelope.fields:
        names = b'","stream":%s,"topic":%s,"partition_id":' % (
            msgspec.json.encode(envelope.printed_stream),
            msgspec.json.encode(envelope.printed_topic),
        )
        pieces += [b',"offset":', json_text.numbers(rows.offsets), b',"timestamp":"', moments.seconds(rows.timestamps)]
        pieces += [names, json_text.numbers(rows.kafka.column("partition"))]
    if "headers" in envelope.fields:
        objects, order = headers.as_maps(rows.headers)
        has_some = pc.not_equal(objects, pa.scalar(b"{}", pa.binary()))
        pieces.append(pc.if_else(has_some, json_text.joined(b',"headers":', objects), pa.scalar(b"", pa.binary())))
    if "value" in envelope.fields:
        if not pieces:
            return payload
        pieces += [b',"payload":', payload]
    members = json_text.joined(*pieces, *([] if order is None else [order]))
    return json_text.joined(pc.binary_replace_slice(members, 0, 1, b"{"), b"}")


def _metadata(envelope: Envelope, rows: Rows) -> list[Piece]:
    return [
        *(
            b'{"topic":%s,"partition":' % msgspec.json.encode(envelope.topic),
            json_text.numbers(rows.kafka.column("partition")),
        ),
        *(b',"offset":', json_text.numbers(rows.offsets)),
        *(b',"timestamp":', json_text.numbers(rows.timestamps), b"}"),
    ]


def _flag(field: str, data: pa.BinaryArray) -> Piece:
    """Lenses marks base64, where there is any."""
    flag = b',"%sIsArray":true' % field.encode()
    return pc.if_else(data.is_valid(), pa.scalar(flag), pa.scalar(b"")) if data.null_count else flag
