"""Parts of a record as they stand in JSON: keys and values by their converter, headers, times."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from s3lake.objects.parts import bytes_of, text_of
from s3lake.objects.shape import BYTES, TEXT
from s3lake.verify import connect, digest, projection

Part = Callable[[Any], Any]

JSON, CONNECT = "json", "connect_json"
"""How a key or a value is told that is neither text nor bytes; `CONNECT` brings its schema."""

AVRO, JSON_SCHEMA, PROTOBUF = "avro", "json_schema", "protobuf"
"""Those with the id of their schema before them, which `framed` tells as `CONNECT`."""


def of_kafka(converter: str, *, base64_decimals: bool = False) -> Part:
    """How a key or a value of Kafka is compared with its text in a file."""
    meaning: Part = partial(connect.meaning, base64_decimals=base64_decimals)
    readers: dict[str, Part] = {JSON: compact, CONNECT: meaning, TEXT: bytes.decode, BYTES: bytes}
    read = readers[converter]
    nothing = b"null" if converter == JSON else None

    def part(value: bytes | None) -> Any:
        if value is None:
            return nothing
        try:
            return read(value)
        except digest.BAD:
            return projection.misfit(value)

    return part


def of_text(converter: str) -> Part:
    """How the JSON text of a key or a value is compared; raises a `ValueError` or the like where it is none."""
    readers: dict[str, Part] = {
        JSON: compact,
        CONNECT: lambda text: connect.plain(connect.exactly(text)),
        TEXT: text_of,
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


def instant(text: bytes | msgspec.Raw) -> int | None:
    """Milliseconds since 1970 of a text."""
    written = text_of(text)
    return None if written is None else projection.ticks(1000, written)
