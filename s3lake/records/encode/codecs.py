"""Compression: streams for the text formats, blocks for Avro. Parquet compresses its own pages."""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO, Protocol

import pyarrow as pa

from s3lake.records.encode.formats import CODECS

_BLOCK = 2**20
_LEAST_DICTIONARY = 4096
_SNAPPY_BEGINS, _COMPRESSED, _PLAIN, _FIRST_SKIPPABLE = 0xFF, 0x00, 0x01, 0x80
_SNAPPY_STREAM = b"\xff\x06\x00\x00sNaPpY"


class Compressor(Protocol):
    """The interface of compression objects."""

    def compress(self, data: bytes, /) -> bytes: ...

    def flush(self) -> bytes: ...


class _Gzip:
    """gzip by libdeflate, which compresses a whole text at once: each text becomes a member of the file."""

    def __init__(self, level: int) -> None:
        self._level, self._begun = level, False

    def compress(self, data: bytes, /) -> bytes:
        from deflate import gzip_compress

        self._begun = True
        return bytes(gzip_compress(data, self._level))

    def flush(self) -> bytes:
        return b"" if self._begun else self.compress(b"")


class _FramedSnappy:
    """Snappy's framing format: chunks of at most 64 KiB with a checksum each, so that a stream needs no length."""

    def __init__(self) -> None:
        from cramjam import snappy

        self._stream = snappy.Compressor()
        self._begun = False

    def compress(self, data: bytes, /) -> bytes:
        self._begun = self._begun or bool(data)
        self._stream.compress(data)
        return bytes(self._stream.flush())

    def flush(self) -> bytes:
        # The library writes nothing for nothing, which readers take for a stream that broke off.
        return bytes(self._stream.finish()) if self._begun else _SNAPPY_STREAM


def memory(codec: str, level: int | None) -> int:
    """Bytes that an open compression object takes."""
    if codec == "snappy_framed":
        return 2**18
    if codec == "zstd":
        import zstandard

        parameters = zstandard.ZstdCompressionParameters.from_level(_level(codec, level))
        return int(parameters.estimated_compression_context_size())
    return 0


def compressor(codec: str, level: int | None) -> Compressor | None:
    """A compression object, None for `none`. gzip's header carries no time, so equal input gives equal files."""
    if codec == "gzip":
        return _Gzip(_level(codec, level))
    if codec == "zstd":
        import zstandard

        return zstandard.ZstdCompressor(level=_level(codec, level), write_checksum=True).compressobj()
    return _FramedSnappy() if codec == "snappy_framed" else None


def compress_block(block: bytes, codec: str, level: int | None) -> bytes:
    """One block of an Avro file. Nothing is kept between blocks: thousands of files can be open."""
    if codec == "snappy":
        return bytes(pa.Codec("snappy").compress(block, asbytes=True)) + zlib.crc32(block).to_bytes(4, "big")
    if codec == "zstd":
        return bytes(pa.Codec("zstd", compression_level=_level(codec, level)).compress(block, asbytes=True))
    if codec == "deflate":
        from deflate import deflate_compress

        return bytes(deflate_compress(block, _level(codec, level)))
    if codec == "bzip2":
        return bz2.compress(block)
    if codec == "xz":
        # A preset's own dictionary is up to 64 MiB, and ten times that in memory, for blocks of 64 KiB.
        size = max(_LEAST_DICTIONARY, len(block))
        filters = [{"id": lzma.FILTER_LZMA2, "preset": _level(codec, level), "dict_size": size}]
        return lzma.compress(block, format=lzma.FORMAT_XZ, filters=filters)
    return block


def _level(codec: str, level: int | None) -> int:
    level = CODECS[codec].level if level is None else level
    assert level is not None, f"{codec} has no levels"
    return level


# Text files read back


def decompress(body: BinaryIO, codec: str = "none") -> Iterator[bytes]:
    """Yield the text of a file, about a megabyte at a time: several members, frames or streams are one text."""
    if codec == "snappy_framed":
        yield from _read_snappy_chunks(body)
        return
    text: Any = body
    if codec == "gzip":
        import gzip

        text = gzip.GzipFile(fileobj=body)
    elif codec == "zstd":
        import zstandard

        text = zstandard.ZstdDecompressor().stream_reader(body, read_across_frames=True, closefd=False)
    while block := text.read(_BLOCK):  # what is not closed does not close `body`, which is read again
        yield block


def _read_snappy_chunks(body: BinaryIO) -> Iterator[bytes]:
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
