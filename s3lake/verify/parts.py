"""Parts of a record as they stand in JSON: keys and values by their converter, headers, times."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import msgspec

from s3lake.verify import connect, projection

Part = Callable[[Any], Any]

JSON, CONNECT, TEXT, BYTES = "json", "connect_json", "string", "bytes"
"""How a key or a value is told; `CONNECT` brings its schema."""

AVRO, JSON_SCHEMA = "avro", "json_schema"
"""Those with the id of their schema before them, which `framed` tells as `CONNECT`."""

_text = msgspec.json.Decoder(str | None)
_header = msgspec.json.Decoder(Any)
_BAD = (ValueError, OverflowError, RecursionError, KeyError, TypeError)
"""What texts that are no part of a record lead to."""


def of_kafka(converter: str) -> Part:
    """How a key or a value of Kafka is compared with its text in a file."""
    read = {"json": compact, "connect_json": connect.meaning, "string": bytes.decode, "bytes": bytes}[converter]
    nothing = b"null" if converter == JSON else None

    def part(value: bytes | None) -> Any:
        if value is None:
            return nothing
        try:
            return read(value)
        except _BAD:
            return projection.misfit(value)

    return part


def of_text(converter: str) -> Part:
    """How the JSON text of a key or a value is compared; raises a `ValueError` or the like where it is none."""
    readers: dict[str, Part] = {
        JSON: compact,
        CONNECT: lambda text: connect.plain(connect.exactly(text)),
        TEXT: _text.decode,
        BYTES: bytes_of,
    }
    return readers[converter]


def compact(text: bytes | str | msgspec.Raw) -> bytes:
    """JSON without the space between its tokens, and every token as it is spelled."""
    return msgspec.json.format(text.encode() if isinstance(text, str) else bytes(text), indent=-1)


def in_one_line(value: bytes) -> bytes:
    """A value as a line holds it: a record is one line, so newlines become spaces."""
    if b"\n" in value or b"\r" in value:
        return value.replace(b"\n", b" ").replace(b"\r", b" ")
    return value


def bytes_of(text: bytes | msgspec.Raw) -> bytes | None:
    """Bytes of their base64 in a JSON string."""
    encoded = _text.decode(text)
    return None if encoded is None else base64.b64decode(encoded, validate=True)


def headers_of_map(text: bytes | msgspec.Raw, order: bytes | msgspec.Raw | None) -> list[Any]:
    """Headers of an object name -> value or list of values; `order` has their names where that says too little."""
    headers_by_name: Any = _header.decode(text)
    if not isinstance(headers_by_name, dict):
        return headers_of_list(text)
    values = {name: one if isinstance(one, list) else [one] for name, one in headers_by_name.items()}
    names: Any = [name for name in values for _ in values[name]] if order is None else _header.decode(order)
    left = {name: iter(one) for name, one in values.items()}
    headers = [[name, header_value(next(left[name]))] for name in names]
    if any(True for one in left.values() for _ in one):
        raise ValueError("the order leaves a header out")
    return headers


def headers_of_list(text: bytes | msgspec.Raw) -> list[Any]:
    """Headers of a list of `{"key": …, "value": …}`."""
    listed: Any = _header.decode(text)
    return [[one["key"], header_value(one["value"])] for one in listed or ()]


def header_value(value: Any) -> bytes | None:
    """A header's bytes: its text, or `{"base64": …}`."""
    if value is None:
        return None
    return value.encode() if isinstance(value, str) else base64.b64decode(value["base64"], validate=True)


def instant(text: bytes | msgspec.Raw) -> int | None:
    """Milliseconds since 1970 of a text."""
    written = _text.decode(text)
    return None if written is None else projection.milliseconds(written)
