"""The marker of a sealed hour: written once, renewed by other content, never over another program's object."""

import json

import pytest

from s3lake.config.model.marker import build_marker_key
from s3lake.errors import ForeignObjectError, StoreConflictError
from s3lake.index.commit.documents import File, Manifest
from s3lake.index.commit.sealed_marker import CONTENT, build_marker_body, renew_existing_marker, renew_marker
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.index.plan.sealed import digest_commits
from s3lake.index.plan.tile import Tile, TileRange
from s3lake.index.store.memory import MemoryStore
from s3lake_tests.kit.sinks import make_sink
from s3lake_tests.kit.stores import CountedStore

KEY = "raw/orders/date=2026-01-05/hour=10/_SUCCESS"
TILE = Tile("2026-01-05T10", {0: TileRange(5, 9, 9)}, rev=4, commits=("a",))
REWRITTEN = Tile("2026-01-05T10", {0: TileRange(5, 9, 9)}, rev=7, commits=("b",))


def beaten_by(monkeypatch: pytest.MonkeyPatch, tile: Tile, body: bytes) -> None:
    """The next one that writes it comes second: another process has renewed it just before."""
    put = MemoryStore.put

    def beaten(self: MemoryStore, key: str, late: bytes, **how: object) -> str | None:
        monkeypatch.undo()
        renew_marker(self, KEY, tile, body)
        return put(self, key, late, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(MemoryStore, "put", beaten)


def test_a_marker_is_written_once() -> None:
    store = CountedStore()
    assert renew_marker(store, KEY, TILE, b"")
    assert store.requests == {"head": 1, "put": 1}
    assert not renew_marker(store, KEY, TILE, b"")
    assert store.requests["put"] == 1
    assert store.objects[KEY][0] == b""


def test_a_marker_is_left_when_the_tile_at_hand_is_older() -> None:
    store = MemoryStore()
    renew_marker(store, KEY, REWRITTEN, b"2")
    assert not renew_marker(store, KEY, TILE, b"1")
    assert store.objects[KEY][0] == b"2"


def test_a_marker_without_its_revision_is_renewed() -> None:
    store = MemoryStore()
    store.put(KEY, b"1", metadata={CONTENT: "other"})
    assert renew_marker(store, KEY, TILE, b"2")
    assert store.objects[KEY][0] == b"2"


def test_the_newer_marker_stays_when_two_writers_renew_it_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    renew_marker(store, KEY, Tile("2026-01-05T10", {}, rev=1, commits=("x",)), b"0")
    beaten_by(monkeypatch, REWRITTEN, b"2")
    assert not renew_marker(store, KEY, TILE, b"1")
    assert store.objects[KEY][0] == b"2"


def test_an_object_of_another_program_stays_and_is_reported() -> None:
    store = MemoryStore()
    store.put(KEY, b"theirs")
    with pytest.raises(ForeignObjectError, match="was not written by s3lake: move the object away"):
        renew_marker(store, KEY, TILE, b"")
    assert store.objects[KEY][0] == b"theirs"


def test_two_that_write_it_at_once_write_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    beaten_by(monkeypatch, TILE, b"")
    assert not renew_marker(store, KEY, TILE, b"")
    assert CONTENT in store.objects[KEY][1].metadata


def test_a_store_that_never_writes_a_marker_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemoryStore, "put", lambda *_, **__: None)
    with pytest.raises(StoreConflictError, match="is being written by others"):
        renew_marker(MemoryStore(), KEY, TILE, b"")


def test_a_list_names_every_object_with_rows_bytes_and_offsets() -> None:
    files = (File("d/1", "u", (), 0, 5, 7, 3, 300), File("l/1", "u", (), 0, 8, 8, 1, 50, stream="dead_letters"))
    body = json.loads(build_marker_body("objects", "orders", TILE, [Manifest("a", "orders", TILE.hour, {}, files)]))
    objects = body.pop("objects")
    assert body == {"topic": "orders", "hour": "2026-01-05T10", "offsets": {"0": [5, 9]}}
    assert list(objects[0]) == ["key", "kind", "rows", "bytes", "partition", "first_offset", "last_offset"]
    assert [(*one.values(),) for one in objects] == [
        ("d/1", "data", 3, 300, 0, 5, 7),
        ("l/1", "dead_letters", 1, 50, 0, 8, 8),
    ]


def test_success_reads_no_manifest() -> None:
    assert build_marker_body("success", "orders", TILE, iter(lambda: pytest.fail("it was read"), 0)) == b""


def test_after_a_change_of_the_hour_the_marker_that_is_there_is_renewed_and_none_is_made(index: TopicIndex) -> None:
    sink = make_sink(sealed={"marker": "objects"})
    key = build_marker_key(sink, "orders", TILE.hour)
    assert key is not None
    objects = index.store.objects
    renew_existing_marker(index, make_sink(), REWRITTEN)
    assert not index.store.requests
    renew_existing_marker(index, sink, REWRITTEN)
    assert not objects

    renew_marker(index.store, key, TILE, b"1")
    files = (File("d/2", "u", (), 0, 5, 8, 4, 300),)
    index.create(index.manifest_key(TILE.hour, "b"), Manifest("b", "orders", TILE.hour, {}, files))
    renew_existing_marker(index, sink, REWRITTEN)
    body = json.loads(objects[key][0])
    assert (body["topic"], body["hour"], [one["key"] for one in body["objects"]]) == ("orders", TILE.hour, ["d/2"])
    assert objects[key][1].metadata[CONTENT] == digest_commits(REWRITTEN.commits)

    index.store.requests.clear()
    renew_existing_marker(index, sink, REWRITTEN)
    assert index.store.requests == {"head": 1}
