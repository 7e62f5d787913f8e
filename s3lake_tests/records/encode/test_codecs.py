"""Compression: what the standard readers read, equal input gives equal bytes."""

import zlib

import cramjam
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from s3lake.records.encode.codecs import compress_block, compressor, memory
from s3lake.records.encode.formats import CODECS
from s3lake_tests.kit.codecs import COMPRESSED, decompress


def compressed(codec: str, level: int | None, *pieces: bytes) -> bytes:
    stream = compressor(codec, level)
    assert stream is not None
    return b"".join(map(stream.compress, pieces)) + stream.flush()


def test_zstd_has_a_checksum() -> None:
    data = bytearray(compressed("zstd", None, b"one\n" * 100))
    data[-1] ^= 1
    with pytest.raises(zstandard.ZstdError, match="checksum"):
        zstandard.ZstdDecompressor().decompressobj().decompress(bytes(data))


def test_gzip_carries_no_time_and_no_name() -> None:
    header = compressed("gzip", None, b"x")[:10]
    assert header[:4] == b"\x1f\x8b\x08\x00"
    assert header[4:8] == bytes(4)


def test_the_default_levels_are_4_and_3() -> None:
    data = bytes(range(256)) * 40 + b"some text that repeats " * 200
    assert compressed("gzip", None, data) == compressed("gzip", 4, data)
    assert compressed("zstd", None, data) == compressed("zstd", 3, data)


def test_higher_levels_take_more_memory() -> None:
    assert memory("gzip", None) == 0
    assert 2**20 < memory("zstd", None) < memory("zstd", 19)


@pytest.mark.parametrize(("codec", "levels"), [(codec, [None, *(CODECS[codec].levels or ())]) for codec in COMPRESSED])
@given(pieces=st.lists(st.binary(max_size=200), max_size=5))
def test_every_stream_comes_back(codec: str, levels: list[int | None], pieces: list[bytes]) -> None:
    for level in levels:
        assert decompress(codec, compressed(codec, level, *pieces)) == b"".join(pieces)


# Blocks of Avro files, which test_avro.py reads back


TEXT = b"".join(b'{"id":%d,"of":%d}' % (number, number * 7919 % 10_007) for number in range(3000))


def test_a_snappy_block_ends_with_its_checksum() -> None:
    block = compress_block(TEXT, "snappy", None)
    assert bytes(cramjam.snappy.decompress_raw(block[:-4])) == TEXT
    assert int.from_bytes(block[-4:], "big") == zlib.crc32(TEXT)


@pytest.mark.parametrize(
    ("codec", "low", "default", "high"), [("deflate", 1, 4, 9), ("xz", 1, 6, 9), ("zstd", 1, 3, 19)]
)
def test_blocks_have_levels_and_a_default(codec: str, low: int, default: int, high: int) -> None:
    assert compress_block(TEXT, codec, low) != compress_block(TEXT, codec, high)
    assert compress_block(TEXT, codec, None) == compress_block(TEXT, codec, default)
