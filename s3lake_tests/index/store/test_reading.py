"""A committed object read as a file, whatever its size, and never another one in its place."""

import io
import random

import pytest

from s3lake.errors import DataLossError
from s3lake.index.store import COMMIT, reading
from s3lake.index.store.memory import MemoryStore
from s3lake.index.store.reading import open_object
from s3lake_tests.kit.stores import CountedStore

PART_BYTES = 2**19  # more than is read at once, as 32 MiB are


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "PART_BYTES", PART_BYTES)


def landed(store: MemoryStore, body: bytes, commit: str = "c") -> None:
    upload = store.create_upload("a", {COMMIT: commit})
    store.complete_upload("a", upload, [store.upload_part("a", upload, 1, body)])


def test_an_object_can_be_read_at_any_place() -> None:
    store, body = MemoryStore(), random.Random(1).randbytes(3 * PART_BYTES)
    landed(store, body)
    file = open_object(store, "a", len(body), "c")
    for place, count in ((len(body) - 8, 8), (0, 4), (PART_BYTES - 2, 4), (len(body) - 100, 200)):
        file.seek(place)
        assert file.read(count) == body[place : place + count]
    assert (file.seek(-3, io.SEEK_END), file.read()) == (len(body) - 3, body[-3:])


def test_a_small_object_is_one_request() -> None:
    store = CountedStore()
    landed(store, b"abc" * 1000)
    file = open_object(store, "a", 3000, "c")
    file.seek(-8, io.SEEK_END)
    file.read()
    file.seek(0)
    assert file.read() == b"abc" * 1000
    assert store.requests["get"] == 1


@pytest.mark.parametrize(("commit", "size"), [("other", 3), ("c", 4)])
def test_an_object_of_another_commit_or_size_is_not_read(commit: str, size: int) -> None:
    store = MemoryStore()
    landed(store, b"abc", commit)
    with pytest.raises(DataLossError, match=r"s3://memory/a of commit c has 3 of . bytes or is another's"):
        open_object(store, "a", size, "c").read()


def test_a_missing_object_is_not_read() -> None:
    with pytest.raises(DataLossError, match="s3://memory/a of commit c is missing"):
        open_object(MemoryStore(), "a", 3, "c").read()


@pytest.fixture
def blocks(monkeypatch: pytest.MonkeyPatch) -> CountedStore:
    """An object of three blocks of a hundred bytes."""
    monkeypatch.setattr(reading, "PART_BYTES", 100)
    monkeypatch.setattr(reading, "BUFFER_BYTES", 10)
    store = CountedStore()
    landed(store, bytes(range(100)) * 3)
    return store


def test_at_its_end_nothing_is_asked_for(blocks: CountedStore) -> None:
    assert open_object(blocks, "a", 300, "c").read() == bytes(range(100)) * 3
    assert blocks.requests["get"] == 3


def test_two_blocks_are_held_and_the_last_one_stays(blocks: CountedStore) -> None:
    file = open_object(blocks, "a", 300, "c")

    def asked(*numbers: int) -> int:
        for number in numbers:
            file.seek(100 * number + 50)
            assert file.read(4) == bytes((50, 51, 52, 53))
        return blocks.requests["get"]

    assert asked(2, 0, 2, 0) == 2
    assert asked(1, 2, 1) == 3
    assert asked(0) == 4
