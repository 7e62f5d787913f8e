"""Streaming uploads: parts as S3 wants them, one part in memory, the rest on disk when memory is short."""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import IO, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3lake.errors import LocalDiskError, StoreUnavailableError
from s3lake.index.store import COMMIT
from s3lake.index.store import upload as uploads
from s3lake.index.store.memory import MemoryStore
from s3lake.index.store.upload import Spill, Upload, stage_object
from s3lake_tests.kit.stores import CountedStore

SMALLEST = 5 * 2**20
SENT_BYTES = uploads.PART_BYTES
PART_BYTES = 2**16  # what is done with a part does not depend on its size


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "PART_BYTES", PART_BYTES)


@pytest.fixture
def spill() -> Iterator[Spill]:
    with closing(Spill()) as disk:
        yield disk


def parts(store: MemoryStore) -> list[int]:
    """Sizes of the parts of the upload, if there is one."""
    return [len(upload.parts[number]) for upload in store.uploads.values() for number in sorted(upload.parts)]


@pytest.mark.parametrize("key", ["key", None])
@pytest.mark.parametrize(
    "writes",
    [[], [1, 1], [PART_BYTES], [2 * PART_BYTES], [3 * PART_BYTES + 1], [PART_BYTES - 1, 2, PART_BYTES], [2_000] * 40],
)
def test_a_full_part_is_sent_once_there_is_a_key_and_the_rest_at_the_end(
    key: str | None, writes: list[int], spill: Spill
) -> None:
    store = MemoryStore()
    upload = Upload(store, key, {COMMIT: "c1"}, spill)
    for size in writes:
        upload.write(b"x" * size)
        assert upload.buffered < PART_BYTES
    full, rest = divmod(sum(writes), PART_BYTES)
    assert parts(store) == [PART_BYTES] * (full if key else 0)
    staged = upload.finish("key")
    assert parts(store) == [PART_BYTES] * full + [rest] * (rest > 0 or full == 0)
    assert store.complete_upload("key", *staged) == "completed"
    assert (upload.size, upload.buffered) == (sum(writes), 0)
    assert store.objects["key"][1].metadata == {COMMIT: "c1"}


def test_the_bytes_that_wait_in_memory_are_counted(spill: Spill) -> None:
    upload = Upload(MemoryStore(), "key", {}, spill)
    upload.write(b"abc")
    upload.write(b"de")
    assert upload.buffered == 5


def test_a_part_is_as_large_as_s3_wants_it() -> None:
    assert SENT_BYTES >= SMALLEST


def test_aborting_what_has_not_begun_asks_nothing_of_the_store(spill: Spill) -> None:
    store = CountedStore()
    Upload(store, "key", {}, spill).abort()
    assert not store.requests


def test_an_upload_that_got_its_key_late_and_failed_is_aborted(spill: Spill, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> str:
        raise StoreUnavailableError("no answer")

    store = MemoryStore()
    monkeypatch.setattr(store, "upload_part", refuse)
    upload = Upload(store, None, {}, spill)
    upload.write(b"x")
    with pytest.raises(StoreUnavailableError):
        upload.finish("key")
    upload.abort()
    assert store.uploads == {}


def test_an_object_is_staged_as_a_whole_with_its_size() -> None:
    store = MemoryStore()

    def fill(write: Callable[[bytes], None], spill: Spill) -> None:
        write(b"abc")
        write(spill.take(spill.add(b"de")))

    staged = stage_object(store, "key", {COMMIT: "c1"}, fill)
    assert staged.size == 5
    assert store.complete_upload("key", staged.upload, staged.parts) == "completed"
    assert store.objects["key"][0] == b"abcde"


def test_a_failed_abort_does_not_hide_the_error_of_the_upload(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object) -> None:
        raise StoreUnavailableError("no answer")

    def fill(write: Callable[[bytes], None], _: Spill) -> None:
        write(b"x" * PART_BYTES)
        raise ValueError("no JSON")

    store = MemoryStore()
    monkeypatch.setattr(store, "abort_upload", away)
    with pytest.raises(ValueError, match="no JSON"):
        stage_object(store, "key", {}, fill)


def test_spilled_bytes_are_not_buffered(monkeypatch: pytest.MonkeyPatch) -> None:
    """One would keep what a full disk refused, and refuse to be closed."""
    opened: list[IO[bytes]] = []
    temporary = tempfile.TemporaryFile

    def remembered(**how: Any) -> IO[bytes]:
        opened.append(temporary(**how))
        return opened[0]

    monkeypatch.setattr(tempfile, "TemporaryFile", remembered)
    with closing(Spill()) as disk:
        disk.add(b"0123456789")
        assert os.fstat(opened[0].fileno()).st_size == 10


def test_one_spill_serves_many_uploads(spill: Spill) -> None:
    store = MemoryStore()
    many = {f"key {number}": Upload(store, f"key {number}", {}, spill) for number in range(20)}
    for turn in range(3):
        for key, upload in many.items():
            upload.write(f"{key}, {turn}\n".encode())
            upload.spill()
    for key, upload in many.items():
        store.complete_upload(key, *upload.finish(key))
        assert store.objects[key][0].decode() == "".join(f"{key}, {turn}\n" for turn in range(3))


@given(st.lists(st.tuples(st.integers(0, 40), st.booleans()), max_size=20), st.sampled_from(["key", None]))
def test_every_byte_arrives_in_order(writes: list[tuple[int, bool]], key: str | None) -> None:
    store = MemoryStore()
    with pytest.MonkeyPatch.context() as patch, closing(Spill()) as disk:
        patch.setattr(uploads, "PART_BYTES", 16)
        upload = Upload(store, key, {}, disk)
        expected = b""
        for number, (size, spill) in enumerate(writes):
            data = bytes([number]) * size
            expected += data
            upload.write(data)
            if spill:
                upload.spill()
            assert upload.buffered < (1 if spill else 16)
        staged = upload.finish("key")
    assert all(size >= 16 for size in parts(store)[:-1])
    store.complete_upload("key", *staged)
    assert store.objects["key"][0] == expected


def test_an_object_that_a_full_directory_cannot_hold_leaves_nothing_behind(full: Path) -> None:
    store = MemoryStore()

    def fill(write: Callable[[bytes], None], spill: Spill) -> None:
        write(b"x" * PART_BYTES)
        assert parts(store) == [PART_BYTES]
        spill.add(b"y" * 600_000)
        spill.add(b"z" * 600_000)

    with pytest.raises(
        LocalDiskError, match=rf"600,000 bytes more have to wait in {full}, which has 0 left .*, or raise memory_budget"
    ):
        stage_object(store, "key", {COMMIT: "c1"}, fill)
    assert (store.uploads, store.objects) == ({}, {})


def test_a_directory_that_can_only_be_read_is_named_with_the_way_out(closed: Path) -> None:
    store = MemoryStore()
    with pytest.raises(
        LocalDiskError,
        match=rf"nothing can be written to {closed} \(Read-only .*point TMPDIR elsewhere, or raise memory_budget",
    ):
        stage_object(store, "key", {COMMIT: "c1"}, lambda _, spill: spill.add(b"y") and None)
    assert (store.uploads, store.objects) == ({}, {})


def test_the_tried_directories_are_named_when_no_temporary_directory_is_usable(
    tmp_path: Path, spill: Spill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr("tempfile._candidate_tempdir_list", lambda: [str(tmp_path / "none")])
    with pytest.raises(LocalDiskError, match=rf"No usable temporary directory found in .*{tmp_path}/none.*TMPDIR"):
        spill.add(b"y")
