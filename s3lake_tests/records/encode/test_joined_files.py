"""Joined files: to readers that are not ours, one file with the records of all, in their order."""

import io
from collections.abc import Sequence

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s3lake.index.store.upload import Spill
from s3lake.records.encode import FileFormat
from s3lake.records.encode.background_work import BackgroundWork
from s3lake.records.encode.formats import FORMATS
from s3lake.records.encode.joined_files import open_joiner, read_join_key
from s3lake_tests.conftest import EXAMPLES
from s3lake_tests.kit.codecs import COMPRESSED, TEXT_CODECS, decompress
from s3lake_tests.records.encode.tables import EVERYTHING, batches, plain_rows
from s3lake_tests.records.encode.written_files import LINES, batch, records, written

FRAMINGS = [LINES, ("", "\n", ""), ("[\n", ",\n", "\n]"), ("<", "", ">"), ("→", "·", "·")]


def joined(form: FileFormat, bodies: Sequence[bytes], chunk: int = 10**6) -> bytes:
    """One file of files that are alike; row groups of Parquet have about `chunk` bytes in memory."""
    like, *others = {read_join_key(form, io.BytesIO(body)) for body in bodies}
    assert not others, "they are not alike"
    out: list[bytes] = []
    spill = Spill()
    with BackgroundWork(10**6) as behind:
        file = open_joiner(form, like, out.append, spill, behind, chunk=chunk)
        for body in bodies:
            file.add(io.BytesIO(body))
        file.close()
    spill.close()
    return b"".join(out)


@pytest.mark.parametrize("codec", TEXT_CODECS)
@given(
    st.sampled_from(FRAMINGS),
    st.lists(st.lists(st.binary(max_size=4), min_size=1, max_size=4), min_size=1, max_size=5),
)
def test_joined_texts_are_the_file_that_all_records_make(
    codec: str, framing: tuple[str, str, str], files: list[list[bytes]]
) -> None:
    form = FileFormat("text", codec, framing=framing)
    bodies = [written(form, [records(*values)]) for values in files]
    every = written(form, [records(*(value for values in files for value in values))])
    assert decompress(codec, joined(form, bodies)) == decompress(codec, every)


@pytest.mark.parametrize("codec", COMPRESSED)
def test_compressed_lines_are_joined_as_they_are_stored(codec: str) -> None:
    form = FileFormat("json", codec, framing=LINES)
    bodies = [written(form, [records(b'{"a":%d}' % number)]) for number in range(3)]
    assert joined(form, bodies) == b"".join(bodies)


@pytest.mark.parametrize("codec", TEXT_CODECS)
def test_texts_of_many_blocks_are_joined(codec: str) -> None:
    form = FileFormat("json_array", codec, framing=("[\n", ",\n", "\n]"))
    lines = [b'{"number":%d,"text":"%s"}' % (number, b"x" * 200) for number in range(5000)]
    bodies = [written(form, [records(*lines[:3000])]), written(form, [records(*lines[3000:])])]
    assert decompress(codec, joined(form, bodies)) == b"[\n" + b",\n".join(lines) + b"\n]"


@pytest.mark.parametrize("codec", TEXT_CODECS)
def test_csv_has_one_header_line(codec: str) -> None:
    form = FileFormat("csv", codec, framing=LINES)
    payload = pa.RecordBatch.from_arrays([pa.array([1, 2]), pa.array(['a\n"', None])], names=['i"d\n', "b"])
    bodies = [written(form, [payload.slice(row, 1)]) for row in range(2)]
    assert decompress(codec, joined(form, bodies)) == decompress(codec, written(form, [payload]))


def test_csv_of_other_columns_is_not_alike() -> None:
    form = FileFormat("csv", "none", framing=LINES)
    one, other = written(form, [batch(a=[1])]), written(form, [batch(a=[1], b=[2])])
    assert read_join_key(form, io.BytesIO(one)) != read_join_key(form, io.BytesIO(other))


@pytest.mark.parametrize("broken", [b"[\n1,\n2", b"[\n", b"1\n]"])
def test_a_file_that_is_not_whole_is_not_joined(broken: bytes) -> None:
    form = FileFormat("json_array", "none", framing=("[\n", ",\n", "\n]"))
    with pytest.raises(ValueError, match=r"does not begin with .* and end with"):
        joined(form, [broken])


@pytest.mark.parametrize("codec", FORMATS["avro"].codecs)
@settings(max_examples=10 * EXAMPLES)
@given(batches(EVERYTHING))
def test_joined_avro_has_the_datums_of_all(codec: str, payloads: list[pa.RecordBatch]) -> None:
    form = FileFormat("avro", codec)
    bodies = [written(form, [payload]) for payload in payloads]
    rows = [row for body in bodies for row in fastavro.reader(io.BytesIO(body))]
    found = fastavro.reader(io.BytesIO(joined(form, bodies)))
    assert list(found) == rows
    assert found.codec == fastavro.reader(io.BytesIO(bodies[0])).codec


def test_avro_of_another_schema_or_codec_is_not_alike() -> None:
    snappy, none = FileFormat("avro", "snappy"), FileFormat("avro", "none")
    bodies = [written(snappy, [batch(a=[1])]), written(snappy, [batch(a=["x"])]), written(none, [batch(a=[1])])]
    assert len({read_join_key(snappy, io.BytesIO(body)) for body in bodies}) == 3


def test_avro_that_breaks_off_is_not_joined() -> None:
    form = FileFormat("avro", "none")
    body = written(form, [batch(a=[1, 2, 3])])
    with pytest.raises(ValueError, match="does not end with its marker"):
        joined(form, [body[:-1]])


@given(batches(EVERYTHING), st.sampled_from([1, 3000, 10**6]))
def test_joined_parquet_has_the_rows_of_all(payloads: list[pa.RecordBatch], chunk: int) -> None:
    form = FileFormat("parquet", "zstd")
    bodies = [written(form, [payload]) for payload in payloads]
    whole = pq.ParquetFile(io.BytesIO(joined(form, bodies, chunk)))
    assert plain_rows(whole.read().to_batches()) == plain_rows(payloads)
    assert whole.schema.equals(pq.ParquetFile(io.BytesIO(bodies[0])).schema)


def test_joined_parquet_has_row_groups_of_the_chunk_in_the_order_of_rows() -> None:
    form = FileFormat("parquet", "zstd")

    def file(first: int, count: int) -> bytes:
        numbers = range(first, first + count)
        return written(form, [batch(id=list(numbers), text=[f"text {number % 7}" for number in numbers])])

    whole = joined(form, [file(0, 9000), file(9000, 40), file(9040, 60), file(9100, 9000)], chunk=50_000)
    read = pq.ParquetFile(io.BytesIO(whole))
    assert read.read()["id"].to_pylist() == list(range(18_100))
    assert [read.metadata.row_group(number).num_rows for number in range(read.num_row_groups)] == [9000, 9100]


def test_columns_that_may_not_be_null_are_joined_by_their_rows() -> None:
    form, out = FileFormat("parquet", "zstd"), io.BytesIO()
    required = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    pq.write_table(pa.table([[3, 4]], schema=required), out, compression="zstd")
    whole = pq.ParquetFile(io.BytesIO(joined(form, [out.getvalue()] * 2, chunk=1)))
    assert whole.read()["id"].to_pylist() == [3, 4, 3, 4]
