"""Compression: streams for the text formats, blocks for Avro. Parquet compresses its own pages."""

from __future__ import annotations

import bz2
import lzma
import zlib
from typing import Protocol

import pyarrow as pa

DEFAULT_LEVELS = {"gzip": 6, "zstd": 3, "deflate": 6, "xz": 6, "brotli": 8}
"""Levels where none is given: the libraries' own differ (Arrow's gzip takes 9)."""

_LEAST_DICTIONARY = 4096
_SNAPPY_STREAM = b"\xff\x06\x00\x00sNaPpY"


class Compressor(Protocol):
    """What zlib's and zstandard's compression objects have in common."""

    def compress(self, data: bytes, /) -> bytes:
        """Take bytes, give those that are ready."""
        ...

    def flush(self) -> bytes:
        """End the stream."""
        ...


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
    if codec in ("gzip", "snappy_framed"):
        return 2**18
    if codec == "zstd":
        import zstandard

        parameters = zstandard.ZstdCompressionParameters.from_level(_level(codec, level))
        return int(parameters.estimated_compression_context_size())
    return 0


def compressor(codec: str, level: int | None) -> Compressor | None:
    """A compression object, None for `none`. gzip's header carries no time, so equal input gives equal files."""
    if codec == "gzip":
        return _deflating(_level(codec, level), 16 + zlib.MAX_WBITS)
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
        stream = _deflating(_level(codec, level), -zlib.MAX_WBITS)
        return stream.compress(block) + stream.flush()
    if codec == "bzip2":
        return bz2.compress(block)
    if codec == "xz":
        # A preset's own dictionary is up to 64 MiB, and ten times that in memory, for blocks of 64 KiB.
        size = max(_LEAST_DICTIONARY, len(block))
        filters = [{"id": lzma.FILTER_LZMA2, "preset": _level(codec, level), "dict_size": size}]
        return lzma.compress(block, format=lzma.FORMAT_XZ, filters=filters)
    return block


def _deflating(level: int, window: int) -> Compressor:
    from zlib_ng import zlib_ng

    return zlib_ng.compressobj(level, zlib.DEFLATED, window)


def _level(codec: str, level: int | None) -> int:
    return DEFAULT_LEVELS[codec] if level is None else level
