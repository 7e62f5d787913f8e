"""Files written for the tests, and readers of their compression that share nothing with the writer."""

import gzip
import io
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import zstandard

from s3lake.encode import FileFormat, encoder
from s3lake.store.upload import Spill

LINES = ("", "\n", "\n")
VERBS = ("", "drain", "relieve")


def written(form: FileFormat, payloads: Iterable[Any], verbs: Iterable[str] = (), *, chunk: int = 10**6) -> bytes:
    """The file of the payloads; after each, the encoder does what the verb of its place says."""
    out: list[bytes] = []
    spill = Spill()
    file = encoder(form, out.append, spill, chunk=chunk)
    said = iter(verbs)
    for payload in payloads:
        file.write(payload)
        if verb := next(said, ""):
            getattr(file, verb)()
    file.close()
    spill.close()
    return b"".join(out)


def inflated(codec: str, data: bytes) -> bytes:
    """What a reader of the codec reads."""
    if codec == "gzip":
        return gzip.decompress(data)
    if codec == "zstd":
        return zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data), read_across_frames=True).read()
    return unframed(data) if codec == "snappy_framed" else data


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
