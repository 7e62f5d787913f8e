"""Lines: each record ends in a newline; a drained file goes on as the same stream."""

import gzip
import io

import pyarrow as pa
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from s3lake.encode.lines import LinesEncoder


def lines(*values: bytes) -> pa.BinaryArray:
    return pa.array(values, pa.binary())


def encoded(codec: str, *payloads: pa.BinaryArray) -> bytes:
    out: list[bytes] = []
    encoder = LinesEncoder(out.append, codec, None)
    for payload in payloads:
        encoder.write(payload)
    encoder.close()
    return b"".join(out)


def read(codec: str, data: bytes) -> bytes:
    if codec == "gzip":
        return gzip.decompress(data)
    if codec == "zstd":
        return zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data), read_across_frames=True).read()
    return data


def test_plain_lines_are_the_values_and_newlines() -> None:
    assert encoded("none", lines(b'{"a":1}', b"", b"x"), lines(b"y")) == b'{"a":1}\n\nx\ny\n'


def test_plain_lines_come_out_at_once() -> None:
    out: list[bytes] = []
    encoder = LinesEncoder(out.append, "none", None)
    encoder.write(lines(b"a", b"b"))
    assert out == [b"a\nb\n"]
    assert (encoder.pending, encoder.memory) == (0, 0)


def test_a_slice_is_only_its_rows() -> None:
    assert encoded("none", lines(b"a", b"b", b"c").slice(1, 1)) == b"b\n"


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
def test_equal_lines_make_equal_files(codec: str) -> None:
    assert encoded(codec, lines(b'{"a":1}')) == encoded(codec, lines(b'{"a":1}'))
    assert read(codec, encoded(codec, lines(b'{"a":1}', b'{"a":2}'))) == b'{"a":1}\n{"a":2}\n'


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
def test_compressed_lines_wait_for_a_megabyte(codec: str) -> None:
    out: list[bytes] = []
    encoder = LinesEncoder(out.append, codec, None)
    encoder.write(lines(b"x" * 99))
    assert (out, encoder.pending, encoder.memory) == ([], 100, 100)
    encoder.write(lines(b"x" * 999_999))
    assert out != []
    assert encoder.pending == 0
    assert encoder.memory >= 2**18  # the open compressor


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
@pytest.mark.parametrize("verb", ["drain", "relieve"])
def test_after_draining_nothing_is_held_and_the_file_goes_on(codec: str, verb: str) -> None:
    out: list[bytes] = []
    encoder = LinesEncoder(out.append, codec, None)
    for value in (b"a", b"b", b"c"):
        encoder.write(lines(value))
        getattr(encoder, verb)()
        assert (encoder.pending, encoder.memory) == (0, 0)
        assert read(codec, b"".join(out)).endswith(value + b"\n")
    encoder.close()
    assert read(codec, b"".join(out)) == b"a\nb\nc\n"


def test_a_file_without_lines_is_empty() -> None:
    assert encoded("none") == encoded("gzip") == encoded("zstd") == b""


@pytest.mark.parametrize("codec", ["none", "gzip", "zstd"])
@settings(max_examples=30, deadline=None)
@given(
    payloads=st.lists(st.lists(st.binary(max_size=20).filter(lambda line: b"\n" not in line), min_size=1), max_size=5)
)
def test_every_line_comes_back(codec: str, payloads: list[list[bytes]]) -> None:
    data = read(codec, encoded(codec, *(lines(*payload) for payload in payloads)))
    assert data.split(b"\n")[:-1] == [line for payload in payloads for line in payload]
