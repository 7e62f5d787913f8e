"""Avro container files: blocks of about 64 KiB before compression, so that compression has something to work with."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa

from s3lake.records.encode.avro_rows import encode_rows
from s3lake.records.encode.codecs import compress_block
from s3lake.records.encode.column_bytes import ENCODED, offsets_of, wrap_encoded
from s3lake.records.encode.formats import FileFormat
from s3lake.records.schema.avro.write_schema import write_schema

if TYPE_CHECKING:
    from s3lake.records.encode import Disk

_BLOCK = 2**16
_MAGIC = b"Obj\x01"
_SYNC_BYTES = 16
_CODECS = {"none": "null", "zstd": "zstandard"}


def encode_datums(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Encode the datums of `batch`, with the schema that goes with them."""
    if ENCODED in (batch.schema.metadata or {}):
        return batch
    return wrap_encoded(encode_rows(batch), json.dumps(write_schema(batch.schema), separators=(",", ":")).encode())


class AvroEncoder:
    """Collects datums into blocks; without memory they wait on disk, so that no block is cut short."""

    def __init__(self, form: FileFormat, out: Callable[[bytes], None], disk: Disk, _chunk: int = _BLOCK) -> None:
        self._out, self._disk = out, disk
        self._codec, self._level = form.codec, form.level
        self._sync = b""
        self._spilled: list[tuple[int, int]] = []
        self._buffered = bytearray()
        self._records = 0
        self.pending = 0

    @property
    def memory(self) -> int:
        return len(self._buffered)

    def write(self, payload: pa.RecordBatch) -> None:
        if not len(payload):
            return
        payload = encode_datums(payload)
        if not self._sync:
            self._sync = os.urandom(_SYNC_BYTES)
            facts = {b"avro.codec": _CODECS.get(self._codec, self._codec).encode()}
            facts[b"avro.schema"] = payload.schema.metadata[ENCODED]
            pairs = b"".join(_long(len(text)) + text for pair in facts.items() for text in pair)
            self._out(_MAGIC + _long(len(facts)) + pairs + _long(0) + self._sync)
        records = payload.column(0)
        starts, data = offsets_of(records), records.buffers()[2]
        first = 0
        while first < len(records):
            # The record that fills a block is its last one.
            end = min(len(records), int(starts.searchsorted(int(starts[first]) + _BLOCK - self.pending)))
            block = data[int(starts[first]) : int(starts[end])].to_pybytes()
            self._buffered += block
            self._records += end - first
            self.pending += len(block)
            if self.pending >= _BLOCK:
                self.drain()
            first = end

    def drain(self) -> None:
        if not self._records:
            return
        block = b"".join([*map(self._disk.take, self._spilled), self._buffered])
        stored = compress_block(block, self._codec, self._level)
        self._out(_long(self._records) + _long(len(stored)) + stored + self._sync)
        self._spilled.clear()
        self._buffered.clear()
        self._records = self.pending = 0

    def relieve(self) -> None:
        if self._buffered:
            self._spilled.append(self._disk.add(bytes(self._buffered)))
            self._buffered.clear()

    def close(self) -> None:
        self.drain()


class AvroJoiner:
    """Blocks of several files of one schema and codec, copied as they are stored."""

    def __init__(self, out: Callable[[bytes], None], beginning: bytes) -> None:
        """`beginning` is what each of the files begins with, up to its synchronization marker."""
        self._out = out
        self._sync = os.urandom(_SYNC_BYTES)
        out(beginning + self._sync)

    def add(self, body: BinaryIO) -> int:
        beginning(body)
        sync, records = body.read(_SYNC_BYTES), 0
        while (count := _number(body)) is not None:
            size = _number(body) or 0
            block, mark = body.read(size), body.read(_SYNC_BYTES)
            if len(block) < size or mark != sync:
                raise ValueError("a block of the Avro file does not end with its marker")
            self._out(_long(count) + _long(size) + block + self._sync)
            records += count
        return records

    def close(self) -> None:
        """See `Joiner.close`."""


def beginning(body: BinaryIO) -> bytes:
    """Return the beginning of a file up to its synchronization marker: its schema and its codec."""
    if body.read(len(_MAGIC)) != _MAGIC:
        raise ValueError("it is not an Avro file")
    while pairs := _number(body):
        for _ in range(2 * pairs):
            body.seek(_number(body) or 0, os.SEEK_CUR)
    end = body.tell()
    body.seek(0)
    return body.read(end)


def _number(body: BinaryIO) -> int | None:
    """An integer as Avro encodes it; None at the end of the file."""
    encoded, shift = 0, 0
    while byte := body.read(1):
        encoded |= (byte[0] & 0x7F) << shift
        shift += 7
        if byte[0] < 0x80:
            return encoded >> 1 ^ -(encoded & 1)
    return None


def _long(number: int) -> bytes:
    """An integer that is not negative, as Avro encodes it."""
    rest, encoded = number << 1, bytearray()
    while rest > 0x7F:
        encoded.append(rest & 0x7F | 0x80)
        rest >>= 7
    encoded.append(rest)
    return bytes(encoded)
