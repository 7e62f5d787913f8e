"""The committed objects, one at a time: whether they are what their commit wrote, and what is in them."""

import base64
import binascii
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from s3lake.commit.index import File
from s3lake.store import COMMIT, Store
from s3lake.verify import shape

_BLOCK = 1 << 20
_ROWS = 10_000
_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}


class Unreadable(Exception):
    """An object is not a file of its format; what came before in it still counts."""


class _Base64(msgspec.Struct, frozen=True):
    base64: str


class _Line(msgspec.Struct, frozen=True):
    topic: str
    partition: int
    offset: int
    value: str | _Base64 | None


@dataclass(frozen=True)
class Letter:
    """A dead letter: whose record it is, and the digest of the value that it carries."""

    topic: str
    partition: int
    offset: int
    digest: bytes


_letter = msgspec.json.Decoder(_Line)


def problems(store: Store, file: File, commit: str) -> tuple[int | None, list[str]]:
    """The object's size, None when it is gone, and what makes it another object than the commit's."""
    head = store.head(file.key)
    if head is None:
        return None, [f"{file.key} of commit {commit} is gone"]
    found = []
    owner = head.metadata.get(COMMIT)
    if owner != commit:
        found.append(f"{file.key} is not commit {commit}'s any more: its metadata {COMMIT} is {owner!r}")
    if head.size != file.bytes:
        found.append(f"{file.key} has {head.size} bytes, the manifest says {file.bytes}")
    return head.size, found


def lines(store: Store, key: str) -> Iterator[list[bytes]]:
    """The lines of an object, decompressed, a block at a time.

    Raises:
        Unreadable: the compression is broken, or the last line is not ended; what came before was given.
    """
    held: list[bytes] = []
    for block in _blocks(_body(store, key), key):
        first, newline, rest = block.partition(b"\n")
        held.append(first)
        if not newline:
            continue
        found = [b"".join(held), *rest.split(b"\n")]
        held = [found.pop()]
        yield found
    last = b"".join(held)
    if last:
        yield [last]
        raise Unreadable(f"{key}: the last line is not ended")


def table(store: Store, key: str) -> tuple[Any, Iterator[Any]]:
    """The schema of a Parquet object and its record batches.

    Raises:
        Unreadable: it is no Parquet file; also while its batches are read.
    """
    try:
        file = pq.ParquetFile(pa.BufferReader(_body(store, key)))
    except (pa.ArrowException, OSError) as error:
        raise Unreadable(f"{key} is no Parquet file: {error}") from None
    return file.schema_arrow, _batches(file, key)


def letters(store: Store, key: str) -> Iterator[Letter | str]:
    """The dead letters of an object; what is wrong with a line where it is none.

    Raises:
        Unreadable: the last line is not ended.
    """
    row = 0
    for block in lines(store, key):
        for line in block:
            try:
                found = _letter.decode(line)
                yield Letter(found.topic, found.partition, found.offset, shape.raw(_bytes(found.value)))
            except (msgspec.DecodeError, UnicodeDecodeError, binascii.Error, ValueError) as error:
                yield f"{key} row {row} is no dead letter: {error}"
            row += 1


def _body(store: Store, key: str) -> bytes:
    found = store.get(key)
    if found is None:
        raise Unreadable(f"{key} is gone")
    return found.body


def _blocks(body: bytes, key: str) -> Iterator[bytes]:
    compression = next((name for ending, name in _COMPRESSIONS.items() if key.endswith(ending)), None)
    if compression is None:
        yield from (body[start : start + _BLOCK] for start in range(0, len(body), _BLOCK))
        return
    try:
        with pa.input_stream(pa.BufferReader(body), compression=compression) as stream:
            while block := stream.read(_BLOCK):
                yield block
    except (pa.ArrowException, OSError) as error:
        raise Unreadable(f"{key} is not whole {compression}: {error}") from None


def _batches(file: Any, key: str) -> Iterator[Any]:
    try:
        yield from file.iter_batches(batch_size=_ROWS)
    except (pa.ArrowException, OSError) as error:
        raise Unreadable(f"{key} cannot be read to its end: {error}") from None


def _bytes(value: str | _Base64 | None) -> bytes | None:
    if isinstance(value, _Base64):
        return base64.b64decode(value.base64, validate=True)
    return None if value is None else value.encode()
