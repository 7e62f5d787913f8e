"""Avro: files that fastavro reads, blocks of a size that compression can work with."""

import io
import json
import uuid
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3lake.index.store.upload import Spill
from s3lake.records.encode import FileFormat, prepare_rows
from s3lake.records.encode.avro_file import AvroEncoder
from s3lake.records.encode.avro_rows import encode_rows
from s3lake.records.schema.avro.write_schema import write_schema
from s3lake.records.schema.columns.details import NAME
from s3lake_tests.records.encode.tables import EVERYTHING, batches, plain_rows
from s3lake_tests.records.encode.written_files import VERBS, written

CODECS = ["none", "deflate", "snappy", "bzip2", "xz", "zstd"]
NULLS = pa.RecordBatch.from_pylist([{}] * 3, EVERYTHING)


def read(data: bytes) -> list[dict[str, Any]]:
    return list(fastavro.reader(io.BytesIO(data)))


def blocks(data: bytes) -> list[Any]:
    return list(fastavro.block_reader(io.BytesIO(data)))


def batch(**columns: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def datum(array: pa.Array) -> list[str]:
    return [value.hex(" ") for value in encode_rows(batch(a=array)).to_pylist()]


@pytest.mark.parametrize("precision", range(1, 39))
def test_every_precision_holds_its_largest_number(precision: int) -> None:
    largest = pa.array([10**precision - 1, 1 - 10**precision], pa.decimal128(precision, 0))
    assert [row["a"] for row in read(written(FileFormat("avro", "none"), [batch(a=largest)]))] == largest.to_pylist()


def test_uuids_in_lists_are_texts() -> None:
    ids = pa.array([uuid.UUID(int=1), None], pa.uuid())
    text = b"00000000-0000-0000-0000-000000000001"
    assert datum(pa.ListArray.from_arrays([0, 2], ids)) == ["02 04 02 48 " + text.hex(" ") + " 00 00"]


def test_a_list_under_a_null_is_not_written() -> None:
    array = pa.ListArray.from_arrays([0, 2, 4], pa.array([1, 2, 3, 4]), mask=pa.array([True, False]))
    assert datum(array) == ["00", "02 04 02 06 02 08 00"]


def test_fields_under_a_null_record_are_not_written() -> None:
    array = pa.StructArray.from_arrays([pa.array([1, 2])], ["x"], mask=pa.array([True, False]))
    assert datum(array) == ["00", "02 02 04"]


@pytest.mark.parametrize(
    ("metadata", "name", "namespace"),
    [
        (None, "ConnectDefault", "io.confluent.connect.avro"),
        ({NAME: b"com.acme.Order"}, "Order", "com.acme"),
        ({NAME: b"Order"}, "Order", None),
    ],
)
def test_the_record_has_the_name_of_the_schema(metadata: Any, name: str, namespace: str | None) -> None:
    schema = write_schema(pa.schema([("a", pa.int64())], metadata=metadata))
    assert (schema["name"], schema.get("namespace")) == (name, namespace)


def test_records_never_share_a_name() -> None:
    leaf = pa.struct([("x", pa.int64())])
    schema = pa.schema([("a_b", pa.struct([("c", leaf)])), ("a", pa.struct([("b_c", leaf)]))], metadata={NAME: b"R"})
    first, second = write_schema(schema)["fields"]
    assert first["type"][1]["fields"][0]["type"][1]["name"] == "R_a_b_c"
    assert second["type"][1]["fields"][0]["type"][1]["name"] == "R_a_b_c2"
    fastavro.parse_schema(write_schema(schema))


@pytest.mark.parametrize(("codec", "stored"), [("none", "null"), ("zstd", "zstandard"), ("xz", "xz")])
def test_the_header_has_codec_and_schema(codec: str, stored: str) -> None:
    reader = fastavro.reader(io.BytesIO(written(FileFormat("avro", codec), [NULLS])))
    assert reader.metadata["avro.codec"] == stored
    assert json.loads(reader.metadata["avro.schema"]) == write_schema(EVERYTHING)


def numbers(count: int) -> pa.RecordBatch:
    return batch(a=pa.array([f"{number:098}" for number in range(count)]))  # 101 bytes each


def test_blocks_are_about_64_kib_before_compression() -> None:
    found = blocks(written(FileFormat("avro", "deflate"), [numbers(3000)]))
    assert [block.num_records for block in found] == [649, 649, 649, 649, 404]


def test_datums_wait_on_disk_for_the_same_block_when_memory_is_short() -> None:
    spill, out = Spill(), list[bytes]()
    encoder = AvroEncoder(FileFormat("avro", "snappy"), out.append, spill)
    for _ in range(300):
        encoder.write(numbers(10))
        assert encoder.memory <= encoder.pending < 2**16
        encoder.relieve()
        assert encoder.memory == 0
    encoder.close()
    spill.close()
    assert [block.num_records for block in blocks(b"".join(out))] == [649, 649, 649, 649, 404]


def test_draining_writes_a_block_and_the_file_goes_on() -> None:
    out: list[bytes] = []
    encoder = AvroEncoder(FileFormat("avro", "none"), out.append, Spill())
    for count in (2, 3):
        encoder.write(numbers(count))
        encoder.drain()
        assert (encoder.pending, encoder.memory) == (0, 0)
        assert blocks(b"".join(out))[-1].num_records == count
    encoder.drain()
    encoder.close()
    assert len(read(b"".join(out))) == 5


def test_a_record_larger_than_a_block_is_a_block() -> None:
    large = batch(a=pa.array(["x" * 200_000, "y", "z" * 200_000]))
    data = written(FileFormat("avro", "zstd"), [large])
    assert [block.num_records for block in blocks(data)] == [1, 2]
    assert read(data) == large.to_pylist()


def test_two_files_have_two_sync_markers() -> None:
    one, other = (written(FileFormat("avro", "none"), [numbers(1)]) for _ in range(2))
    assert one[-16:] != other[-16:]
    assert one[:-16].count(one[-16:]) == 1


def test_a_batch_without_rows_adds_nothing() -> None:
    form = FileFormat("avro", "none")
    assert written(form, [NULLS.slice(0, 0)]) == b""
    assert len(read(written(form, [NULLS, NULLS.slice(0, 0)]))) == 3


@given(batches(EVERYTHING), st.lists(st.sampled_from(VERBS), max_size=3))
def test_every_row_comes_back(payloads: list[pa.RecordBatch], verbs: list[str]) -> None:
    expected = plain_rows(payloads)
    for codec in CODECS:
        assert read(written(FileFormat("avro", codec), payloads, verbs)) == expected, codec


@given(batches(EVERYTHING))
def test_batches_can_be_prepared_before_they_are_split(payloads: list[pa.RecordBatch]) -> None:
    form, payload = FileFormat("avro", "snappy"), payloads[0]
    ready = prepare_rows(form, payload)
    assert read(written(form, [ready.slice(0, 1), ready.take(pa.array([0])), ready.slice(1)])) == plain_rows(
        [payload.slice(0, 1), payload]
    )
    assert prepare_rows(form, ready) is ready
