"""Steps 3 to 6 on a store in memory: what a commit reads, what it leaves, and its errors."""

import threading
import time
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from s3lake.errors import ConfigurationError, FencedError, ForeignObjectError, StoreConflictError, StoreUnavailableError
from s3lake.index.commit import recovery
from s3lake.index.commit.documents import File, FileForm, Manifest, Read, RefusalReason, ReplayedDeadLetters
from s3lake.index.commit.protocol import Attempt, Committed, Staged, commit_attempt, commit_attempt_at_once
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.index.plan.batch import Batch
from s3lake.index.plan.tile import Tile, TileRange, Wait
from s3lake.index.store import COMMIT
from s3lake.index.store.memory import MemoryStore

FIVE = "2026-11-20T05"
Way = Callable[[TopicIndex, Attempt, Staged], Committed]


def planned(index: TopicIndex, tile: Tile, *replaced: Manifest) -> Attempt:
    """An attempt at offsets 0 to 4 of topic-partition 0, on `tile` as it is in the index."""
    index.create(index.tile_key(FIVE), tile)
    ids = tuple(manifest.id for manifest in replaced)
    return Attempt("new", *index.existing_tile(FIVE), Batch({0: (0, 5)}, {}), "~new", ids, replaced_manifests=replaced)


def staged(store: MemoryStore, *keys: str) -> Staged:
    files = []
    for key in keys:
        upload = store.create_upload(key, {COMMIT: "new"})
        files.append(File(key, upload, (store.upload_part(key, upload, 1, b"x"),), 0, 0, 4, 5, 1))
    return Staged(tuple(files), {0: Read(0, 5, read=5, landed=5)})


@pytest.mark.parametrize("way", [commit_attempt, commit_attempt_at_once])
def test_replaced_objects_are_deleted_without_reading_a_manifest_that_is_at_hand(way: Way, index: TopicIndex):
    store = index.store
    store.put("orders/old", b"x", metadata={COMMIT: "old"})
    old = Manifest(
        "old", "orders", FIVE, {0: Read(0, 5, read=5, landed=5)}, (File("orders/old", "u", (), 0, 0, 4, 5, 1),)
    )
    kept = Manifest("kept", "orders", FIVE, {0: Read(5, 7, read=2)})
    for manifest in (old, kept):
        index.record(manifest)
    attempt = planned(index, Tile(FIVE, {0: TileRange(0, 7, 7)}, commits=("old", "kept")), old)
    store.calls.clear()
    committed = way(index, attempt, staged(store, "orders/new"))

    tile, _ = index.existing_tile(FIVE)
    assert committed == (index.manifest(FIVE, "new"), tile)
    assert (tile.commits, tile.garbage, tile.sums.read) == (("kept", "new"), (), 7)
    assert list(store.list("orders/")) == ["orders/new"]
    assert (("get", index.manifest_key(FIVE, "old")) in store.calls) == (way is commit_attempt_at_once)


@pytest.mark.parametrize("way", [commit_attempt, commit_attempt_at_once])
def test_a_commit_that_replaces_nothing_leaves_garbage_to_others(way: Way, index: TopicIndex):
    attempt = planned(index, Tile(FIVE, {0: TileRange(0, 0)}, garbage=("deleted",)))

    assert way(index, attempt, staged(index.store, "orders/new")).tile.garbage == ("deleted",)


def test_a_commit_that_nobody_disturbs_reads_nothing_but_its_manifest(index: TopicIndex):
    attempt = planned(index, Tile(FIVE, {0: TileRange(0, 0)}))
    files = staged(index.store, "orders/new")
    index.store.calls.clear()
    commit_attempt(index, attempt, files)

    manifest, tile = index.manifest_key(FIVE, "new"), index.tile_key(FIVE)
    assert index.store.calls == [
        ("put", manifest),
        ("get", manifest),
        ("put", tile),
        ("complete_upload", "orders/new"),
        ("put", tile),
    ]


def test_a_commit_is_not_fenced_when_another_process_finished_it_before_the_lost_answer_was_missed(
    index: TopicIndex, monkeypatch: pytest.MonkeyPatch
):
    attempt = planned(index, Tile(FIVE, {0: TileRange(0, 0)}))
    files, put = staged(index.store, "orders/new"), index.store.put

    def lose_the_answer(key: str, body: bytes, **how: Any) -> None:
        put(key, body, **how)
        if key == index.tile_key(FIVE):
            monkeypatch.undo()
            recovery.settle_pending_commit(index, FIVE)
            raise StoreUnavailableError("no answer")

    monkeypatch.setattr(index.store, "put", lose_the_answer)
    committed = commit_attempt(index, attempt, files)

    assert committed.tile == index.existing_tile(FIVE)[0]
    assert (committed.manifest.id, committed.tile.commits) == ("new", ("new",))
    assert [key for name, key in index.store.calls if name == "complete_upload"] == ["orders/new"]


def test_a_commit_is_settled_when_its_tile_changes_while_it_finishes(
    index: TopicIndex, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(recovery, "finish_pending_commit", lambda *_: monkeypatch.undo())
    attempt = planned(index, Tile(FIVE, {0: TileRange(0, 0)}))

    assert commit_attempt(index, attempt, staged(index.store, "orders/new")).manifest.id == "new"
    assert index.existing_tile(FIVE)[0].commits == ("new",)


def test_a_tile_that_is_deleted_while_it_is_finished_fences(index: TopicIndex, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(recovery, "finish_pending_commit", lambda *_: index.store.delete(index.tile_key(FIVE)))
    attempt = planned(index, Tile(FIVE, {0: TileRange(0, 0)}))

    with pytest.raises(FencedError, match="commit new of orders 2026-11-20T05 was rolled back"):
        commit_attempt(index, attempt, staged(index.store))


def test_a_tile_that_was_deleted_before_fences(index: TopicIndex):
    attempt = planned(index, Tile(FIVE, {0: TileRange(0, 0)}))
    index.store.delete(index.tile_key(FIVE))

    with pytest.raises(FencedError, match=r"first \(revision \?, commit None\); nothing of commit new is visible"):
        commit_attempt(index, attempt, staged(index.store, "orders/new"))
    assert list(index.store.list_uploads("")) == []


def test_a_commit_that_meets_a_foreign_object_is_swept_and_names_it(index: TopicIndex):
    index.store.put("orders/b", b"theirs")
    attempt = planned(index, Tile(FIVE, {0: TileRange(0, 0)}))

    with pytest.raises(ForeignObjectError, match=r"s3://[^ ]*/orders/b was not written by this sink"):
        commit_attempt(index, attempt, staged(index.store, "orders/a", "orders/b", "orders/c"))
    tile, _ = index.existing_tile(FIVE)
    assert (tile.foreign, tile.garbage, tile.commits) == (("orders/b",), (), ())
    assert list(index.store.list("orders/")) == ["orders/b"]
    assert list(index.store.list_uploads("")) == []


def test_the_key_that_two_files_have_is_named(index: TopicIndex):
    attempt = planned(index, Tile(FIVE, {0: TileRange(0, 0)}))

    with pytest.raises(ConfigurationError, match="have the key b: "):
        commit_attempt(index, attempt, staged(index.store, "a", "b", "b"))


@pytest.mark.parametrize("way", [commit_attempt, commit_attempt_at_once])
def test_staged_files_are_dropped_when_their_manifest_cannot_be_written(
    way: Way, index: TopicIndex, monkeypatch: pytest.MonkeyPatch
):
    def refuse(_: Manifest) -> None:
        raise StoreConflictError("refused")

    monkeypatch.setattr(index, "record", refuse)
    attempt = planned(index, Tile(FIVE, {0: TileRange(0, 0)}))

    with pytest.raises(StoreConflictError, match="refused"):
        way(index, attempt, staged(index.store, "orders/new"))
    assert list(index.store.list_uploads("")) == []


def test_staged_files_are_dropped_one_at_a_time_when_the_pace_of_the_index_is_so(
    index: TopicIndex, monkeypatch: pytest.MonkeyPatch
):
    threads: set[int] = set()
    abort = index.store.abort_upload
    attempt = planned(index, Tile(FIVE, {0: TileRange(0, 0)}))
    files = staged(index.store, "orders/a", "orders/b")
    index.store.put(index.manifest_key(FIVE, "new"), b"{}")
    monkeypatch.setattr(index.store, "abort_upload", lambda *one: (threads.add(threading.get_ident()), abort(*one)))

    assert index.pace.parallel == 1
    with pytest.raises(StoreConflictError, match="nothing of commit new is visible"):
        commit_attempt(index, attempt, files)
    assert threads == {threading.get_ident()}
    assert list(index.store.list_uploads("")) == []


def test_a_manifest_has_all_that_was_planned_and_staged(index: TopicIndex):
    index.create(index.tile_key(FIVE), Tile(FIVE, {0: TileRange(0, 0)}))
    batch = Batch({0: (0, 5), 1: (7, 7)}, {}, ((0, 4, 5),), epochs={0: 3})
    attempt = Attempt("new", *index.existing_tile(FIVE), batch, reason="merge", begun_ms=17)
    form = FileForm("json", "avro", key="avro", codec="zstd")
    read = Read(
        0, 0, oldest_ms=1, newest_ms=2, read=5, landed=4, dead=1, fields_left_out={"a": 1}, fields_filled={"b": 2}
    )
    more = Staged(
        (),
        {0: read},
        form=form,
        nulls="keep",
        columns={"id": "int64"},
        waits=(Wait(5, 1, 2),),
        refusal_reasons=(RefusalReason("value", "deleted", 1, 0, 3),),
        taken=(ReplayedDeadLetters("old", 1, ((0, 0, 1),)),),
        clocks=((0, 5, 17),),
    )
    before_ms = int(time.time() * 1000)
    manifest, _ = commit_attempt(index, attempt, more)

    assert before_ms <= manifest.created_ms <= int(time.time() * 1000)
    assert msgspec.structs.replace(manifest, created_ms=0) == Manifest(
        "new",
        "orders",
        FIVE,
        {0: msgspec.structs.replace(read, end=5), 1: Read(7, 7)},
        expired=((0, 4, 5),),
        form=form,
        nulls="keep",
        columns={"id": "int64"},
        begun_ms=17,
        epochs={0: 3},
        reason="merge",
        waits=(Wait(5, 1, 2),),
        refusal_reasons=(RefusalReason("value", "deleted", 1, 0, 3),),
        taken=(ReplayedDeadLetters("old", 1, ((0, 0, 1),)),),
        clocks=((0, 5, 17),),
    )


def test_records_that_are_new_have_waited_until_the_commit(index: TopicIndex):
    attempt = planned(index, Tile(FIVE, {0: TileRange(0, 0)}))
    manifest, _ = commit_attempt(index, attempt, Staged((), {0: Read(0, 5, read=5, oldest_ms=1, newest_ms=2)}))

    assert manifest.waits == (Wait(5, manifest.created_ms - 2, manifest.created_ms - 1),)


class TestAtOnce:
    """With `exactly_once: false`."""

    @pytest.mark.parametrize(
        ("taken", "why"), [(b"x", "another attempt's file is there"), (None, "its upload vanished")]
    )
    def test_names_of_its_offsets_are_burnt_where_one_of_its_files_could_not_be_made_visible(
        self, taken: bytes | None, why: str, index: TopicIndex
    ):
        attempt = planned(index, Tile(FIVE, {0: TileRange(0, 0), 1: TileRange(0, 0)}, burnt={0: 3, 1: 9}))
        files = staged(index.store, "orders/a", "orders/b")
        if taken is None:
            index.store.abort_upload("orders/b", files.files[1].upload)
        else:
            index.store.put("orders/b", taken)

        with pytest.raises(FencedError, match=f"commit new of orders {FIVE}: {why}; 1 of its objects are visible"):
            commit_attempt_at_once(index, attempt, files)
        assert index.existing_tile(FIVE)[0].burnt == {0: 5, 1: 9}
