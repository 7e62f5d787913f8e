"""The files of a commit: each answer of the store, and what becomes of the file."""

import threading
from time import sleep
from types import SimpleNamespace

import msgspec
import pytest

from s3lake.index.commit import commit_files
from s3lake.index.commit.documents import File, Manifest, Read
from s3lake.index.commit.topic_index import Pace, TopicIndex
from s3lake.index.store import COMMIT


@pytest.fixture(autouse=True)
def now(monkeypatch: pytest.MonkeyPatch) -> None:
    time = SimpleNamespace(time=lambda: 1_700_000_010, monotonic=lambda: 0.0, sleep=lambda _: None)
    monkeypatch.setattr(commit_files, "time", time)


def file(key: str) -> File:
    return File(key, f"upload of {key}", (), 0, 0, 4, 5, 50)


def manifest(commit: str, *keys: str, replacing: bool = False) -> Manifest:
    files = tuple(map(file, keys))
    return Manifest(commit, "orders", "2026-11-20T05", {0: Read(0, 5)}, files, replacing=replacing)


def test_only_dead_letters_of_a_commit_are_deleted_when_its_keys_contain_no_offset(index: TopicIndex):
    files = {"a": file("a"), "b": msgspec.structs.replace(file("b"), stream="dead_letters")}
    for key in ("a", "b"):
        index.store.put(key, b"{}", metadata={COMMIT: "deleted"})
        commit_files.delete_own_object(index.store, manifest("deleted", replacing=True), files[key])

    assert list(index.store.list("")) == ["a"]


def test_an_upload_is_missing_if_another_program_has_an_object_at_its_key(index: TopicIndex):
    index.store.put("a", b"{}", metadata={COMMIT: "another program's"})

    assert commit_files.complete_files(index, manifest("new", "a")) == {"a": "vanished"}


def test_an_upload_that_the_store_refuses_is_not_tried_again(index: TopicIndex, monkeypatch: pytest.MonkeyPatch):
    pauses: list[float] = []
    monkeypatch.setattr(commit_files.time, "sleep", pauses.append)
    monkeypatch.setattr(index.store, "complete_upload", lambda *_, **__: "refused")

    assert commit_files.complete_files(index, manifest("new", "a")) == {"a": "vanished"}
    assert pauses == []


def test_no_more_requests_are_under_way_at_once_than_the_pace_allows():
    threads = commit_files.map_in_parallel(lambda _: sleep(0.01) or threading.get_ident(), range(8), Pace(parallel=2))

    assert len(set(threads)) == 2
