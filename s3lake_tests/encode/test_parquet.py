"""Parquet: rows come back, row groups are bounded in memory and never cut short by a lack of it."""

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s3lake.encode.parquet import ParquetEncoder
from s3lake.store.upload import Spill

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


class File:
    def __init__(self, codec: str = "zstd", level: int | None = None, row_group_bytes: int = 10**6) -> None:
        self.out: list[bytes] = []
        self.spill = Spill()
        self.encoder = ParquetEncoder(self.out.append, codec, level, self.spill, row_group_bytes)

    def closed(self) -> pq.ParquetFile:
        self.encoder.close()
        self.spill.close()
        return pq.ParquetFile(io.BytesIO(b"".join(self.out)))


@pytest.mark.parametrize(
    ("codec", "stored"), [("none", "UNCOMPRESSED"), ("gzip", "GZIP"), ("snappy", "SNAPPY"), ("zstd", "ZSTD")]
)
def test_rows_come_back_whatever_the_codec(codec: str, stored: str) -> None:
    file = File(codec)
    file.encoder.write(batch(row(1), row(2)))
    read = file.closed()
    assert read.read().to_pylist() == [row(1), row(2)]
    assert read.metadata.row_group(0).column(0).compression == stored


@pytest.mark.parametrize(("codec", "level"), [("gzip", 9), ("zstd", 19)])
def test_a_level_is_passed_on(codec: str, level: int) -> None:
    file = File(codec, level)
    file.encoder.write(batch(row(1)))
    assert file.closed().read().to_pylist() == [row(1)]


def test_types_are_parquets_own() -> None:
    file = File()
    file.encoder.write(batch(row(1)))
    read = file.closed()
    assert not (read.metadata.metadata or {}).get(b"ARROW:schema")
    assert read.schema_arrow.field("at").type == SCHEMA.field("at").type


def test_files_have_statistics_and_dictionaries() -> None:
    file = File()
    file.encoder.write(batch(row(1), row(7)))
    column = file.closed().metadata.row_group(0).column(0)
    assert (column.statistics.min, column.statistics.max) == (1, 7)
    assert column.has_dictionary_page


def test_a_row_group_is_written_when_it_is_full() -> None:
    file = File(row_group_bytes=1000)
    for first in range(0, 100, 10):
        file.encoder.write(batch(*map(row, range(first, first + 10))))
        assert file.encoder.pending < 1000
    read = file.closed()
    assert 1 < read.num_row_groups < 10
    assert read.read()["id"].to_pylist() == list(range(100))


def test_without_memory_rows_wait_on_disk_for_the_same_row_group() -> None:
    file = File()
    for first in range(0, 100, 10):
        file.encoder.write(batch(*map(row, range(first, first + 10))))
        file.encoder.relieve()
        assert file.encoder.memory == 0
    assert file.out == []
    read = file.closed()
    assert read.num_row_groups == 1
    assert read.read().to_pylist() == list(map(row, range(100)))


def test_rows_on_disk_count_for_the_size_of_a_row_group() -> None:
    file = File(row_group_bytes=1000)
    for first in range(0, 100, 10):
        file.encoder.write(batch(*map(row, range(first, first + 10))))
        file.encoder.relieve()
    read = file.closed()
    assert 1 < read.num_row_groups < 10
    assert read.read()["id"].to_pylist() == list(range(100))


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


_rows = st.fixed_dictionaries(
    {
        "id": st.none() | st.integers(-(2**63), 2**63 - 1),
        "name": st.none() | st.text(st.characters(codec="utf-8"), max_size=5),
        "tags": st.none() | st.lists(st.none() | st.sampled_from(["", "a", "ü"]), max_size=3),
        "at": st.none()
        | st.fixed_dictionaries({"x": st.none() | st.floats(allow_nan=False), "ok": st.none() | st.booleans()}),
    }
)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.lists(_rows, min_size=1, max_size=4), st.sampled_from(["", "relieve", "drain"])),
        min_size=1,
        max_size=4,
    ),
    st.integers(1, 400),
)
def test_every_row_comes_back(writes: list[tuple[list[dict[str, Any]], str]], row_group_bytes: int) -> None:
    file = File(row_group_bytes=row_group_bytes)
    for rows, then in writes:
        file.encoder.write(batch(*rows))
        if then:
            getattr(file.encoder, then)()
    assert file.closed().read().to_pylist() == [row for rows, _ in writes for row in rows]
