"""Stream compression of the text formats."""

import zlib
from typing import Protocol

_ZSTD = 3


class Compressor(Protocol):
    """What zlib's and zstandard's compression objects have in common."""

    def compress(self, data: bytes, /) -> bytes:
        """Take bytes, give those that are ready."""
        ...

    def flush(self) -> bytes:
        """End the stream."""
        ...


def memory(codec: str, level: int | None) -> int:
    """Bytes that an open compression object takes."""
    if codec == "gzip":
        return 2**18
    if codec == "zstd":
        import zstandard

        parameters = zstandard.ZstdCompressionParameters.from_level(_ZSTD if level is None else level)
        return int(parameters.estimated_compression_context_size())
    return 0


def compressor(codec: str, level: int | None) -> Compressor | None:
    """A compression object, None for `none`. gzip's header carries no time, so equal input gives equal files."""
    if codec == "gzip":
        return zlib.compressobj(6 if level is None else level, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    if codec == "zstd":
        import zstandard

        return zstandard.ZstdCompressor(level=_ZSTD if level is None else level, write_checksum=True).compressobj()
    return None
