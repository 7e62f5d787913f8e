"""Text files: a file is its framing and its records, however they came; compressed, it is one stream to its readers."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3lake.records.encode import FileFormat
from s3lake.records.encode.text_file import TextEncoder
from s3lake_tests.kit.codecs import COMPRESSED, TEXT_CODECS, decompress
from s3lake_tests.records.encode.written_files import LINES, VERBS, records, written

ARRAY = ("[\n", ",\n", "\n]")
NO_FINAL_NEWLINE = ("", "\n", "")


def form(codec: str = "none", framing: tuple[str, str, str] | None = LINES, type: str = "json") -> FileFormat:
    return FileFormat(type, codec, framing=framing)


def opened(form: FileFormat) -> tuple[TextEncoder, list[bytes]]:
    out: list[bytes] = []
    return TextEncoder(form, out.append), out


@pytest.mark.parametrize(
    ("framing", "file"),
    [
        (LINES, b'{"a":1}\n{"a":2}\n3\n'),
        (ARRAY, b'[\n{"a":1},\n{"a":2},\n3\n]'),
        (NO_FINAL_NEWLINE, b'{"a":1}\n{"a":2}\n3'),
        (("<", "", ">"), b'<{"a":1}{"a":2}3>'),
        (("", "", ""), b'{"a":1}{"a":2}3'),
        (("→", "·", "·"), '→{"a":1}·{"a":2}·3·'.encode()),
    ],
)
def test_a_file_is_its_framing_and_its_records(framing: tuple[str, str, str], file: bytes) -> None:
    assert written(form(framing=framing), [records(b'{"a":1}', b'{"a":2}', b"3")]) == file
    assert written(form(framing=framing), [records(b'{"a":1}'), records(b'{"a":2}', b"3")]) == file


@pytest.mark.parametrize("record", [b"\x00\xff\n", b""])
def test_bytes_without_framing_are_the_record_as_it_is(record: bytes) -> None:
    assert written(form(framing=None, type="bytes"), [records(record)]) == record


@pytest.mark.parametrize("codec", COMPRESSED)
def test_compressed_an_empty_payload_is_a_whole_stream_of_nothing(codec: str) -> None:
    data = written(form(codec, None, "bytes"), [records(b"")])
    assert data != b""
    assert decompress(codec, data) == b""


def test_a_file_without_records_is_empty() -> None:
    assert written(form(), []) == written(form("gzip"), []) == written(form(framing=ARRAY), [records()]) == b""


def test_a_slice_is_only_its_rows() -> None:
    assert written(form(), [records(b"a", b"b", b"c").slice(1, 1)]) == b"b\n"


# When bytes come out


def test_plain_records_come_out_at_once() -> None:
    encoder, out = opened(form())
    encoder.write(records(b"a", b"b"))
    assert out == [b"a\nb\n"]
    assert (encoder.pending, encoder.memory) == (0, 0)


def test_a_closing_that_is_still_to_come_is_pending() -> None:
    encoder, out = opened(form(framing=ARRAY))
    assert encoder.pending == 0
    encoder.write(records(b"1", b"2"))
    assert len(b"".join(out)) + encoder.pending == len(b"[\n1,\n2\n]")
    assert encoder.memory == 0


@pytest.mark.parametrize("codec", COMPRESSED)
def test_compressed_records_wait_for_a_megabyte(codec: str) -> None:
    encoder, out = opened(form(codec))
    encoder.write(records(b"x" * 99))
    assert (out, encoder.pending, encoder.memory) == ([], 100, 100)
    encoder.write(records(b"x" * 999_999))
    assert out != []
    assert encoder.pending == 0
    assert encoder.memory >= (0 if codec == "gzip" else 2**18)  # the open compressor, which gzip has not


@pytest.mark.parametrize("codec", COMPRESSED)
@pytest.mark.parametrize("verb", ["drain", "relieve"])
def test_after_draining_nothing_is_held_and_the_file_goes_on(codec: str, verb: str) -> None:
    encoder, out = opened(form(codec))
    for value in (b"a", b"b", b"c"):
        encoder.write(records(value))
        getattr(encoder, verb)()
        assert (encoder.pending, encoder.memory) == (0, 0)
        assert decompress(codec, b"".join(out)).endswith(value + b"\n")
    encoder.close()
    assert decompress(codec, b"".join(out)) == b"a\nb\nc\n"


@pytest.mark.parametrize("framing", [LINES, NO_FINAL_NEWLINE])
def test_closing_a_drained_file_adds_nothing(framing: tuple[str, str, str]) -> None:
    encoder, out = opened(form("gzip", framing))
    encoder.write(records(b"a"))
    encoder.drain()
    before = b"".join(out)
    encoder.close()
    assert b"".join(out) == before


@pytest.mark.parametrize(("codec", "low", "high"), [("gzip", 1, 9), ("zstd", 1, 19)])
def test_a_level_is_passed_on(codec: str, low: int, high: int) -> None:
    text = records(*(b'{"id":%d,"of":%d}' % (number, number % 97) for number in range(5000)))
    sizes = [len(written(FileFormat("json", codec, level, framing=LINES), [text])) for level in (low, high)]
    assert sizes[1] < sizes[0]


@pytest.mark.parametrize("codec", TEXT_CODECS)
@given(
    framing=st.tuples(*[st.sampled_from(["", "\n", ",\n", "[", "é"])] * 3),
    batches=st.lists(st.lists(st.binary(max_size=9), min_size=1, max_size=4), min_size=1, max_size=5),
    verbs=st.lists(st.sampled_from(VERBS), max_size=5),
)
def test_a_file_is_the_same_whatever_batches_drains_and_reliefs(
    codec: str, framing: tuple[str, str, str], batches: list[list[bytes]], verbs: list[str]
) -> None:
    opening, between, closing = (part.encode() for part in framing)
    data = written(form(codec, framing), [records(*batch) for batch in batches], verbs)
    assert decompress(codec, data) == opening + between.join(record for batch in batches for record in batch) + closing


def test_framed_snappy_cuts_its_chunks_at_64_kib() -> None:
    text = b"x" * 150_000
    assert decompress("snappy_framed", written(form("snappy_framed"), [records(text)])) == text + b"\n"


def test_gzip_is_a_row_of_members_of_a_megabyte_of_text() -> None:
    data = written(form("gzip"), [records(b"x" * 600_000)] * 4)
    assert data.count(b"\x1f\x8b\x08") == 2
    assert gzip.decompress(data) == (b"x" * 600_000 + b"\n") * 4
