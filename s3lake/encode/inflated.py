"""Decompression of text files, block by block: several gzip members, zstd frames or snappy streams are one file."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, BinaryIO

BLOCK = 2**20
_SNAPPY_BEGINS, _COMPRESSED, _PLAIN, _FIRST_SKIPPABLE = 0xFF, 0x00, 0x01, 0x80


def blocks(body: BinaryIO, codec: str = "none") -> Iterator[bytes]:
    """The text of a file, a megabyte or so at a time."""
    if codec == "snappy_framed":
        yield from _unframed(body)
        return
    with _stream(body, codec) as text:
        while block := text.read(BLOCK):
            yield block


def _stream(body: BinaryIO, codec: str) -> AbstractContextManager[Any]:
    if codec == "gzip":
        return gzip.GzipFile(fileobj=body)
    if codec == "zstd":
        import zstandard

        return zstandard.ZstdDecompressor().stream_reader(body, read_across_frames=True, closefd=False)
    return nullcontext(body)


def _unframed(body: BinaryIO) -> Iterator[bytes]:
    """Snappy's framing format: cramjam takes a whole file at once, whatever its size."""
    from cramjam import snappy

    while head := body.read(4):
        chunk_type, size = head[0], int.from_bytes(head[1:4], "little")
        chunk = body.read(size)
        if len(head) < 4 or len(chunk) < size:
            raise ValueError("the snappy stream breaks off")
        if chunk_type in (_COMPRESSED, _PLAIN):  # after a checksum of four bytes
            yield bytes(snappy.decompress_raw(chunk[4:])) if chunk_type == _COMPRESSED else chunk[4:]
        elif chunk_type != _SNAPPY_BEGINS and chunk_type < _FIRST_SKIPPABLE:
            raise ValueError(f"the snappy stream has a chunk of the unknown kind {chunk_type:#x}")
