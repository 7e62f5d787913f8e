"""Stream compression: what the standard readers read, equal input gives equal bytes."""

import gzip

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from s3lake.encode.codecs import compressor, memory


def compressed(codec: str, level: int | None, *pieces: bytes) -> bytes:
    stream = compressor(codec, level)
    assert stream is not None
    return b"".join(map(stream.compress, pieces)) + stream.flush()


def test_none_is_no_compressor() -> None:
    assert compressor("none", None) is None
    assert memory("none", None) == 0


@pytest.mark.parametrize("level", [None, 1, 9])
def test_gzip_is_read_by_gzip(level: int | None) -> None:
    assert gzip.decompress(compressed("gzip", level, b"one\n", b"two\n")) == b"one\ntwo\n"


@pytest.mark.parametrize("level", [None, 1, 19])
def test_zstd_is_read_by_zstandard(level: int | None) -> None:
    data = compressed("zstd", level, b"one\n", b"two\n")
    assert zstandard.ZstdDecompressor().decompressobj().decompress(data) == b"one\ntwo\n"


def test_zstd_has_a_checksum() -> None:
    data = bytearray(compressed("zstd", None, b"one\n" * 100))
    data[-1] ^= 1
    with pytest.raises(zstandard.ZstdError, match="checksum"):
        zstandard.ZstdDecompressor().decompressobj().decompress(bytes(data))


def test_gzip_carries_no_time_and_no_name() -> None:
    header = compressed("gzip", None, b"x")[:10]
    assert header[:4] == b"\x1f\x8b\x08\x00"
    assert header[4:8] == bytes(4)


def test_the_default_levels_are_6_and_3() -> None:
    data = bytes(range(256)) * 40 + b"some text that repeats " * 200
    assert compressed("gzip", None, data) == compressed("gzip", 6, data)
    assert compressed("zstd", None, data) == compressed("zstd", 3, data)


def test_higher_levels_take_more_memory() -> None:
    assert memory("gzip", None) == 2**18
    assert 2**20 < memory("zstd", None) < memory("zstd", 19)


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
@given(pieces=st.lists(st.binary(max_size=200), max_size=5))
def test_every_stream_comes_back(codec: str, pieces: list[bytes]) -> None:
    data = compressed(codec, None, *pieces)
    found = gzip.decompress(data) if codec == "gzip" else zstandard.ZstdDecompressor().decompressobj().decompress(data)
    assert found == b"".join(pieces)
