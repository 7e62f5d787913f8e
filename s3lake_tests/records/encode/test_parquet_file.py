"""Parquet: rows come back, row groups are bounded in memory and never cut short by a lack of it."""

import io
import uuid
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3lake.index.store.upload import Spill
from s3lake.records.encode import FileFormat
from s3lake.records.encode.parquet_file import ParquetEncoder
from s3lake_tests.records.encode.tables import EVERYTHING, batches, plain_rows
from s3lake_tests.records.encode.written_files import VERBS, written

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("tags", pa.list_(pa.string())),
        ("at", pa.struct([("x", pa.float64()), ("ok", pa.bool_())])),
    ]
)


def batch(*rows: dict[str, Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(rows), SCHEMA)


def row(id: int) -> dict[str, Any]:
    return {"id": id, "name": f"name {id}", "tags": ["a", None], "at": {"x": id / 2, "ok": None}}


@pytest.fixture(scope="module")
def duckdb() -> Iterator[Any]:
    import duckdb  # a tenth of a second, in all that collect

    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


class File:
    def __init__(self, codec: str = "zstd", level: int | None = None, row_group_bytes: int = 10**6) -> None:
        self.out: list[bytes] = []
        self.spill = Spill()
        self.encoder = ParquetEncoder(FileFormat("parquet", codec, level), self.out.append, self.spill, row_group_bytes)

    def closed(self) -> pq.ParquetFile:
        self.encoder.close()
        self.spill.close()
        return pq.ParquetFile(io.BytesIO(b"".join(self.out)))


def rows_of(data: bytes) -> list[dict[str, Any]]:
    return plain_rows(pq.read_table(io.BytesIO(data)).to_batches())


CODECS = ["none", "snappy", "gzip", "zstd", "lz4", "brotli"]


@pytest.mark.parametrize("codec", CODECS)
def test_a_file_names_its_codec(codec: str) -> None:
    file = File(codec)
    file.encoder.write(batch(row(1), row(2)))
    stored = file.closed().metadata.row_group(0).column(0).compression
    assert stored == {"none": "UNCOMPRESSED"}.get(codec, codec.upper())


@pytest.mark.parametrize(
    ("codec", "low", "default", "high"), [("gzip", 1, 6, 9), ("zstd", 1, 1, 19), ("brotli", 1, 8, 11)]
)
def test_a_level_is_passed_on_and_has_a_default(codec: str, low: int, default: int, high: int) -> None:
    bodies = []
    for level in (low, high, default, None):
        file = File(codec, level)
        file.encoder.write(batch(*map(row, range(3000))))
        assert file.closed().metadata.num_rows == 3000
        bodies.append(b"".join(file.out))
    assert len(bodies[0]) != len(bodies[1])
    assert bodies[2] == bodies[3]


def test_types_are_parquets_own() -> None:
    file = File()
    file.encoder.write(batch(row(1)))
    read = file.closed()
    assert not (read.metadata.metadata or {}).get(b"ARROW:schema")
    assert read.schema_arrow.field("at").type == SCHEMA.field("at").type


@given(batches(EVERYTHING))
def test_duckdb_reads_every_type(
    duckdb: Any, tmp_path_factory: pytest.TempPathFactory, payloads: list[pa.RecordBatch]
) -> None:
    path = tmp_path_factory.getbasetemp() / "all.parquet"
    for codec in CODECS:
        path.write_bytes(written(FileFormat("parquet", codec), payloads))
        found = duckdb.read_parquet(str(path))
        rows = [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]
        assert rows == plain_rows(payloads), codec


def test_uuids_in_lists_are_read_back() -> None:
    ids = pa.array([uuid.UUID(int=1), None, uuid.UUID(int=2)], pa.uuid())
    payload = pa.RecordBatch.from_arrays([pa.ListArray.from_arrays([0, 2, 3], ids)], names=["ids"])
    data = written(FileFormat("parquet", "zstd"), [payload, payload.slice(1)], ["relieve"])
    read = pq.read_table(io.BytesIO(data))
    assert read["ids"].to_pylist() == [[uuid.UUID(int=1), None], [uuid.UUID(int=2)], [uuid.UUID(int=2)]]


def test_files_have_statistics_and_dictionaries() -> None:
    file = File()
    file.encoder.write(batch(row(1), row(7)))
    column = file.closed().metadata.row_group(0).column(0)
    assert (column.statistics.min, column.statistics.max) == (1, 7)
    assert column.has_dictionary_page


def test_only_columns_whose_values_come_again_have_a_dictionary() -> None:
    rows = [
        {"id": at, "name": f"name {at % 50}", "tags": [f"tag {at}", "b"], "at": {"x": at / 2, "ok": at % 2 == 0}}
        for at in range(10_000)
    ]
    maps = pa.array([[("a", at), ("b", at)] for at in range(10_000)], pa.map_(pa.string(), pa.int64()))
    lists = pa.array([[{"n": at % 9, "u": at}] for at in range(10_000)])
    file = File()
    file.encoder.write(batch(*rows).append_column("by", maps).append_column("of", lists))
    group = file.closed().metadata.row_group(0)
    columns = [group.column(at) for at in range(group.num_columns)]
    assert {column.path_in_schema: column.has_dictionary_page for column in columns} == {
        "id": False,
        "name": True,
        "tags.list.element": True,
        "at.x": False,
        "at.ok": False,
        "by.key_value.key": True,
        "by.key_value.value": True,
        "of.list.element.n": True,
        "of.list.element.u": False,
    }


@pytest.mark.parametrize("are_on_disk", [False, True])
def test_a_row_group_is_written_when_it_is_full(are_on_disk: bool) -> None:
    file = File(row_group_bytes=1000)
    for first in range(0, 100, 10):
        file.encoder.write(batch(*map(row, range(first, first + 10))))
        assert file.encoder.pending < 1000
        if are_on_disk:
            file.encoder.relieve()
    read = file.closed()
    assert 1 < read.num_row_groups < 10
    assert read.read()["id"].to_pylist() == list(range(100))


def test_rows_wait_on_disk_for_the_same_row_group_when_memory_is_short() -> None:
    file = File()
    for first in range(0, 100, 10):
        file.encoder.write(batch(*map(row, range(first, first + 10))))
        file.encoder.relieve()
        assert file.encoder.memory == 0
    assert file.out == []
    read = file.closed()
    assert read.num_row_groups == 1
    assert read.read().to_pylist() == list(map(row, range(100)))


def test_a_small_slice_does_not_keep_its_batch_in_memory() -> None:
    file = File()
    pool = pa.default_memory_pool()
    before = pool.bytes_allocated()
    large = batch(*map(row, range(20_000)))
    size = pool.bytes_allocated() - before
    file.encoder.write(large.slice(5000, 3))
    del large
    assert pool.bytes_allocated() - before < size / 100
    assert file.closed().read()["id"].to_pylist() == [5000, 5001, 5002]


def test_the_memory_of_small_batches_counts_their_overhead() -> None:
    file = File()
    file.encoder.write(batch(row(1)))
    assert file.encoder.memory > file.encoder.pending + 1000


def test_a_batch_without_rows_adds_nothing() -> None:
    form = FileFormat("parquet", "none")
    assert written(form, [batch()]) == b""
    assert rows_of(written(form, [batch(row(1)), batch()])) == [row(1)]


@given(batches(EVERYTHING), st.lists(st.sampled_from(VERBS), max_size=3), st.integers(1, 400))
def test_every_row_comes_back(payloads: list[pa.RecordBatch], verbs: list[str], chunk: int) -> None:
    expected = plain_rows(payloads)
    for codec in CODECS:
        data = written(FileFormat("parquet", codec), payloads, verbs, chunk=chunk)
        assert rows_of(data) == expected, codec
