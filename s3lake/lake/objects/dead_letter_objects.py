"""Dead-letter objects: refused records as JSON lines, one by one, as Kafka had them."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

import msgspec

from s3lake.errors import UnreadableError


class _Base64(msgspec.Struct, frozen=True):
    base64: str


_Bytes = str | _Base64 | None


class _Header(msgspec.Struct, frozen=True):
    name: str
    value: _Bytes


class _Line(msgspec.Struct, frozen=True):
    topic: str
    partition: int
    offset: int
    timestamp: int
    key: _Bytes
    value: _Bytes
    headers: list[_Header]
    stage: str
    message: str


@dataclass(frozen=True)
class StoredDeadLetter:
    """A refused record, and why it was refused.

    Attributes:
        line: the line of the object, without its end.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    stage: str
    message: str
    line: bytes


_decoder = msgspec.json.Decoder(_Line)


def read_dead_letters(body: IO[bytes], key: str) -> Iterator[StoredDeadLetter]:
    """Yield the dead letters of an object, in its order.

    Raises:
        UnreadableError: a line of it is not a dead letter.
    """
    for row, line in enumerate(body):
        try:
            yield parse_dead_letter(line.removesuffix(b"\n"))
        except ValueError as error:
            raise UnreadableError(f"{key} row {row} is not a dead letter: {error}") from None


def parse_dead_letter(line: bytes) -> StoredDeadLetter:
    """Return the dead letter that a line holds.

    Raises:
        ValueError: it is not a dead letter.
    """
    read = _decoder.decode(line)
    return StoredDeadLetter(
        read.topic,
        read.partition,
        read.offset,
        read.timestamp,
        _decode_bytes(read.key),
        _decode_bytes(read.value),
        tuple((header.name, _decode_bytes(header.value)) for header in read.headers),
        read.stage,
        read.message,
        line,
    )


def _decode_bytes(value: _Bytes) -> bytes | None:
    if isinstance(value, _Base64):
        return base64.b64decode(value.base64, validate=True)
    return None if value is None else value.encode()
