"""The codecs of text files, by libraries or code that the package does not use for them."""

import gzip
import io

import cramjam
import pyarrow as pa
import zstandard

from s3lake.encode.formats import FORMATS

TEXT_CODECS = FORMATS["text"].codecs
COMPRESSED = TEXT_CODECS[1:]


def compress(codec: str, text: bytes) -> bytes:
    """Compress a text file as one stream."""
    match codec:
        case "none":
            return text
        case "gzip":
            return gzip.compress(text)
        case "zstd":
            return bytes(pa.compress(text, codec="zstd", asbytes=True))
        case "snappy_framed":
            return bytes(cramjam.snappy.compress(text))
    raise NotImplementedError(codec)


def decompress(codec: str, data: bytes) -> bytes:
    """Read all streams of a text file as one text."""
    match codec:
        case "none":
            return data
        case "gzip":
            return gzip.decompress(data)
        case "zstd":
            return zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data), read_across_frames=True).read()
        case "snappy_framed":
            return unframed(data)
    raise NotImplementedError(codec)


def unframed(data: bytes) -> bytes:
    """Snappy's framing format, read by its specification: every chunk's checksum is looked at."""
    assert data.startswith(b"\xff\x06\x00\x00sNaPpY")
    found, position = [], 0
    while position < len(data):
        kind, length = data[position], int.from_bytes(data[position + 1 : position + 4], "little")
        body = data[position + 4 : position + 4 + length]
        position += 4 + length
        if kind == 0xFF:
            assert body == b"sNaPpY"
            continue
        assert kind in (0, 1)
        block = body[4:] if kind == 1 else _snappy(body[4:])
        assert len(block) <= 65536
        checksum = _crc32c(block)
        masked = ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF
        assert int.from_bytes(body[:4], "little") == masked
        found.append(block)
    return b"".join(found)


def _snappy(block: bytes) -> bytes:
    size = shift = at = 0
    while True:
        size |= (block[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if block[at - 1] < 0x80:
            return bytes(pa.Codec("snappy").decompress(block, size, asbytes=True))


def _table() -> list[int]:
    values = list(range(256))
    for _ in range(8):
        values = [value >> 1 ^ (0x82F63B78 if value & 1 else 0) for value in values]
    return values


_CRC32C = _table()


def _crc32c(data: bytes) -> int:
    checksum = 0xFFFFFFFF
    for byte in data:
        checksum = _CRC32C[(checksum ^ byte) & 0xFF] ^ checksum >> 8
    return checksum ^ 0xFFFFFFFF
