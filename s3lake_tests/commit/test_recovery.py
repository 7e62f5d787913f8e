"""The steps of recovery, each alone: what becomes of the tile, and what is asked of the store."""

import dataclasses
from types import SimpleNamespace

import msgspec
import pytest

from s3lake.commit import recovery
from s3lake.commit.index import File, Manifest, Read, TopicIndex
from s3lake.plan.tile import Span, Tile
from s3lake.store import COMMIT
from s3lake.store.memory import MemoryStore

FIVE = "2026-11-20T05"
NOW_MS = 1_700_000_010_000


class Noted(MemoryStore):
    """Notes what uploads are ended."""

    def __init__(self) -> None:
        super().__init__()
        self.ended: list[str] = []

    def abort_upload(self, key: str, upload: str) -> None:
        self.ended.append(key)
        super().abort_upload(key, upload)


@pytest.fixture
def index() -> TopicIndex:
    return TopicIndex(Noted(), ".indexes/events", "orders")


@pytest.fixture(autouse=True)
def now(monkeypatch: pytest.MonkeyPatch) -> None:
    time = SimpleNamespace(time=lambda: NOW_MS / 1000, monotonic=lambda: 0.0, sleep=lambda _: None)
    monkeypatch.setattr(recovery, "time", time)


def file(key: str) -> File:
    return File(key, f"upload of {key}", (), 0, 0, 4, 5, 50)


def manifest(commit: str, *keys: str, **more: object) -> Manifest:
    return Manifest(commit, "orders", FIVE, {0: Read(0, 5)}, tuple(map(file, keys)), **more)  # type: ignore[arg-type]


def test_a_commit_that_is_published_leaves_no_foreign_object_in_the_tile(index: TopicIndex):
    tile = Tile(FIVE, {0: Span(0, 5, 0)}, pending="new", foreign=("orders/a.json",))

    assert recovery.forward(index, tile, manifest("new")).foreign == ()


@pytest.mark.parametrize(
    ("begun_ms", "took_ms"),
    [(NOW_MS - 2_500, 2_500), (NOW_MS, 0), (NOW_MS + 1, 0), (0, msgspec.UNSET)],
    ids=["two seconds and a half ago", "now", "by a clock that goes before", "nobody knows when"],
)
def test_a_tile_says_how_long_its_newest_commit_took(begun_ms: int, took_ms: object, index: TopicIndex):
    tile = Tile(FIVE, {0: Span(0, 5, 0)}, pending="new", took_ms=7)

    assert recovery.forward(index, tile, manifest("new", begun_ms=begun_ms)).took_ms == took_ms


def test_who_lost_the_race_to_settle_and_made_nothing_visible_leaves_the_tile_alone(index: TopicIndex):
    stale = Tile(FIVE, {0: Span(0, 5, 0)}, pending="new")
    index.create(index.tile_key(FIVE), stale.changed(pending=None))

    assert recovery.finish(index, stale, '"of before"', manifest("new", "a")) is None
    assert index.existing_tile(FIVE)[0].garbage == ()


def test_of_a_commit_that_the_newest_one_replaced_no_upload_is_looked_for(index: TopicIndex):
    for each in (manifest("first", "a"), manifest("gone", "b"), manifest("last", "c", replaces=("old",))):
        index.record(each)
    index.record(manifest("old", "d"))
    tile = Tile(FIVE, {0: Span(0, 5, 5)}, commits=("first", "last"), garbage=("gone", "old"))
    index.create(index.tile_key(FIVE), tile)
    recovery.sweep(index, FIVE)

    assert index.store.ended == ["b"]  # type: ignore[attr-defined]
