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
from s3lake.store import COMMIT
from s3lake.store import upload as uploads
from s3lake.store.memory import MemoryStore
from s3lake.store.upload import Spill, Upload, stage_object
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


def begun(store: MemoryStore, spill: Spill) -> Upload:
    return Upload(store, "key", {COMMIT: "c1"}, spill)


def parts(store: MemoryStore) -> list[int]:
    """Sizes of the parts of the one upload."""
    (upload,) = store.uploads.values()
    return [len(upload.parts[number]) for number in sorted(upload.parts)]


def body(store: MemoryStore, upload: Upload) -> bytes:
    identity, etags = upload.finish("key")
    assert store.complete_upload("key", identity, etags) == "completed"
    return store.objects["key"][0]


def test_a_small_object_is_one_part(spill: Spill) -> None:
    store = MemoryStore()
    upload = begun(store, spill)
    upload.write(b"a")
    upload.write(b"b")
    assert (upload.size, upload.buffered, store.uploads) == (2, 2, {})
    assert body(store, upload) == b"ab"


def test_an_empty_object_is_one_empty_part(spill: Spill) -> None:
    store = MemoryStore()
    upload = begun(store, spill)
    upload.finish("key")
    assert parts(store) == [0]


def test_a_full_part_is_sent_at_once(spill: Spill) -> None:
    store = MemoryStore()
    upload = begun(store, spill)
    upload.write(b"x" * PART_BYTES)
    assert parts(store) == [PART_BYTES]
    assert upload.buffered == 0


@pytest.mark.parametrize("writes", [[3 * PART_BYTES + 1], [PART_BYTES - 1, 2, PART_BYTES], [2_000] * 40, [PART_BYTES]])
def test_all_parts_but_the_last_are_large(writes: list[int], spill: Spill) -> None:
    store = MemoryStore()
    upload = begun(store, spill)
    for size in writes:
        upload.write(b"x" * size)
        assert upload.buffered < PART_BYTES
    upload.finish("key")
    sizes = parts(store)
    assert sum(sizes) == upload.size == sum(writes)
    assert all(size >= PART_BYTES for size in sizes[:-1])
    assert sizes[-1] > 0


def test_a_part_is_as_large_as_s3_wants_it() -> None:
    assert SENT_BYTES >= SMALLEST


def test_a_multiple_of_a_part_has_no_empty_part(spill: Spill) -> None:
    store = MemoryStore()
    upload = begun(store, spill)
    upload.write(b"x" * (2 * PART_BYTES))
    upload.finish("key")
    assert parts(store) == [PART_BYTES, PART_BYTES]


def test_an_upload_carries_its_commit(spill: Spill) -> None:
    store = MemoryStore()
    upload = begun(store, spill)
    upload.write(b"a")
    body(store, upload)
    assert store.objects["key"][1].metadata == {COMMIT: "c1"}


def test_an_aborted_upload_is_gone(spill: Spill) -> None:
    store = MemoryStore()
    upload = begun(store, spill)
    upload.write(b"x" * PART_BYTES)
    upload.abort()
    assert store.uploads == {}


def test_aborting_what_has_not_begun_asks_nothing_of_the_store(spill: Spill) -> None:
    store = CountedStore()
    begun(store, spill).abort()
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


def test_what_waited_for_its_key_is_sent_in_whole_parts(spill: Spill) -> None:
    store = MemoryStore()
    upload = Upload(store, None, {}, spill)
    for size in (PART_BYTES + 7, PART_BYTES - 9, 5):
        upload.write(b"x" * size)
    upload.finish("key")
    assert parts(store) == [PART_BYTES, PART_BYTES, 3]
    assert [sorted(upload.parts) for upload in store.uploads.values()] == [[1, 2, 3]]
    assert upload.buffered == 0


def test_an_object_is_staged_as_a_whole_with_its_size() -> None:
    store = MemoryStore()

    def fill(write: Callable[[bytes], None], spill: Spill) -> None:
        write(b"abc")
        write(spill.take(spill.add(b"de")))

    staged = stage_object(store, "key", {COMMIT: "c1"}, fill)
    assert staged.size == 5
    assert store.complete_upload("key", staged.upload, staged.parts) == "completed"
    assert store.objects["key"][0] == b"abcde"


def test_what_went_wrong_is_told_and_not_that_the_upload_could_not_be_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object) -> None:
        raise StoreUnavailableError("no answer")

    def fill(write: Callable[[bytes], None], _: Spill) -> None:
        write(b"x" * PART_BYTES)
        raise ValueError("no JSON")

    store = MemoryStore()
    monkeypatch.setattr(store, "abort_upload", away)
    with pytest.raises(ValueError, match="no JSON"):
        stage_object(store, "key", {}, fill)


def test_what_is_spilled_is_in_no_buffer(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_spilled_bytes_are_not_in_memory_and_not_lost(spill: Spill) -> None:
    store = MemoryStore()
    upload = begun(store, spill)
    for piece in (b"one ", b"two ", b"three"):
        upload.write(piece)
        upload.spill()
        assert upload.buffered == 0
    assert upload.size == 13
    assert body(store, upload) == b"one two three"


def test_spilled_bytes_fill_a_part(spill: Spill) -> None:
    store = MemoryStore()
    upload = begun(store, spill)
    upload.write(b"a" * (PART_BYTES - 1))
    upload.spill()
    upload.write(b"b")
    assert parts(store) == [PART_BYTES]


def test_spilling_nothing_makes_no_file(spill: Spill) -> None:
    store = MemoryStore()
    upload = begun(store, spill)
    upload.spill()
    assert body(store, upload) == b""


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


@given(st.lists(st.tuples(st.integers(0, 40), st.booleans()), max_size=20))
def test_every_byte_arrives_in_order(writes: list[tuple[int, bool]]) -> None:
    store = MemoryStore()
    with pytest.MonkeyPatch.context() as patch, closing(Spill()) as disk:
        patch.setattr(uploads, "PART_BYTES", 16)
        upload = begun(store, disk)
        expected = b""
        for number, (size, spill) in enumerate(writes):
            data = bytes([number]) * size
            expected += data
            upload.write(data)
            assert upload.buffered < 16
            if spill:
                upload.spill()
        identity, etags = upload.finish("key")
    assert all(size >= 16 for size in parts(store)[:-1])
    store.complete_upload("key", identity, etags)
    assert store.objects["key"][0] == expected


def test_without_a_key_nothing_is_sent_and_little_is_held(spill: Spill) -> None:
    store = MemoryStore()
    upload = Upload(store, None, {COMMIT: "c1"}, spill)
    written = b""
    for number in range(5):
        upload.write(bytes([number]) * 18_000)
        written += bytes([number]) * 18_000
        assert upload.buffered < PART_BYTES
    assert store.uploads == {}
    assert body(store, upload) == written


def test_an_object_that_a_full_directory_cannot_hold_leaves_nothing_behind(full: Path) -> None:
    store = MemoryStore()

    def fill(write: Callable[[bytes], None], spill: Spill) -> None:
        write(b"x" * PART_BYTES)
        assert parts(store) == [PART_BYTES]
        spill.add(b"y" * 600_000)
        spill.add(b"z" * 600_000)

    with pytest.raises(LocalDiskError, match=rf"600,000 bytes more have to wait in {full}, which has 0 left .*TMPDIR"):
        stage_object(store, "key", {COMMIT: "c1"}, fill)
    assert (store.uploads, store.objects) == ({}, {})


def test_a_directory_that_can_only_be_read_is_named_with_the_way_out(closed: Path) -> None:
    store = MemoryStore()
    with pytest.raises(
        LocalDiskError, match=rf"nothing can be written to {closed} \(Read-only .*point TMPDIR elsewhere"
    ):
        stage_object(store, "key", {COMMIT: "c1"}, lambda _, spill: spill.add(b"y") and None)
    assert (store.uploads, store.objects) == ({}, {})


def test_where_there_is_no_directory_at_all_those_that_were_tried_are_named(
    tmp_path: Path, spill: Spill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr("tempfile._candidate_tempdir_list", lambda: [str(tmp_path / "none")])
    with pytest.raises(LocalDiskError, match=rf"No usable temporary directory found in .*{tmp_path}/none.*TMPDIR"):
        spill.add(b"y")
