"""The index's documents, and conditional writes whose answers are lost (rule R4)."""

import json

import msgspec
import pytest

from s3lake.errors import DataLossError, MissingDocumentError, ReplacedError, StoreConflictError, StoreUnavailableError
from s3lake.index.commit.documents import File, Manifest, Read, Recorded, TopicHead, collect_files
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.index.plan.tile import Tile, TileRange
from s3lake.index.store import Document
from s3lake.index.store.memory import MemoryStore

HOUR = "2026-11-20T05"
TILE = Tile(
    HOUR,
    {0: TileRange(100, 250), 12: TileRange(0, 7, 9)},
    rev=12,
    commits=("c1", "c2"),
    pending="c3",
    garbage=("c0",),
    burnt={0: 300},
    expired=((0, 90, 100),),
    foreign=("data/x",),
)


class Flaky(MemoryStore):
    """A store whose next PUT goes wrong in the way of `trouble`."""

    trouble = ""

    def put(self, key: str, body: bytes, *, if_match: str | None = None, if_absent: bool = False) -> str | None:
        trouble, self.trouble = self.trouble, ""
        if trouble == "timeout, not done":
            raise StoreUnavailableError("no answer")
        if trouble == "conflict":
            raise StoreConflictError("another request is under way")
        if trouble == "untrue":
            return None
        etag = super().put(key, body, if_match=if_match, if_absent=if_absent)
        if trouble == "timeout, done":
            raise StoreUnavailableError("no answer")
        if trouble == "answer lost":
            return super().put(key, body, if_match=if_match, if_absent=if_absent)
        return etag


@pytest.fixture
def store() -> Flaky:
    return Flaky("lake")


@pytest.fixture
def index(store: Flaky) -> TopicIndex:
    return TopicIndex(store, "_s3lake/orders-sink", "orders")


# ---------------------------------------------------------------------------------------------------------------- names


def test_every_document_has_its_place(index: TopicIndex):
    assert index.head_key == "_s3lake/orders-sink/orders/topic.json"
    assert index.columns_key == "_s3lake/orders-sink/orders/schema.json"
    assert index.tile_key(HOUR) == "_s3lake/orders-sink/orders/2026-11-20T05.json"
    assert index.manifest_key(HOUR, "c1") == "_s3lake/orders-sink/orders/2026-11-20T05/c1.json"


def test_a_tile_is_plain_json(index: TopicIndex, store: Flaky):
    index.create(index.tile_key(HOUR), TILE)

    assert index.tile(HOUR)[0] == TILE
    document = json.loads(store.get(index.tile_key(HOUR)).body)
    assert document.pop("sums")["landed"] == 0
    assert document == {
        "took_ms": 0,
        "version": 1,
        "rev": 12,
        "hour": "2026-11-20T05",
        "partitions": {
            "0": {"start": 100, "committed": 250, "end": None},
            "12": {"start": 0, "committed": 7, "end": 9},
        },
        "commits": ["c1", "c2"],
        "pending": "c3",
        "garbage": ["c0"],
        "burnt": {"0": 300},
        "epochs": {},
        "expired": [[0, 90, 100]],
        "stamped_ahead": {},
        "before_start": {},
        "foreign": ["data/x"],
    }


def test_a_topic_without_a_head_has_no_tiles(index: TopicIndex):
    assert list(index.tiles()) == []


def test_tiles_come_by_hour_and_only_those_of_the_head(index: TopicIndex):
    index.create(
        index.head_key, TopicHead(hours=(("2026-11-20T05", "2026-11-20T06"), ("2026-11-20T09", "2026-11-20T09")))
    )
    for hour in ("2026-11-20T09", "2026-11-20T06", "2026-11-20T05", "2026-11-20T07"):
        index.create(index.tile_key(hour), Tile(hour, {}))

    assert [tile.hour for tile in index.tiles()] == ["2026-11-20T05", "2026-11-20T06", "2026-11-20T09"]


def test_a_tile_that_is_announced_and_not_created_comes_as_it_was_announced(index: TopicIndex):
    announced = Tile("2026-11-20T06", {0: TileRange(250, 250)})
    head = TopicHead(hours=((HOUR, "2026-11-20T07"),), new=announced)
    index.create(index.head_key, head)
    index.create(index.tile_key(HOUR), TILE)

    assert list(index.tiles()) == [TILE, announced]
    assert list(index.newest(head)) == [announced, TILE]


def test_a_tile_that_is_announced_is_created_once(index: TopicIndex, store: Flaky, monkeypatch: pytest.MonkeyPatch):
    head = TopicHead(hours=((HOUR, HOUR),), new=TILE)
    index.create_announced_tile(head)
    assert index.existing_tile(HOUR)[0] == TILE

    monkeypatch.setattr(store, "put", lambda *_, **__: pytest.fail("it is there"))
    index.create_announced_tile(head)


def test_manifests_of_an_hour_are_listed_with_or_without_a_tile(index: TopicIndex, store: Flaky):
    for commit in ("c2", "c1"):
        index.create(index.manifest_key(HOUR, commit), Manifest(commit, "orders", HOUR, {}))
    store.put(index.manifest_key(HOUR, "c1").replace(".json", ".swept"), b"{}")
    index.create(index.manifest_key("2026-11-20T06", "c3"), Manifest("c3", "orders", "2026-11-20T06", {}))

    assert index.manifest_ids(HOUR) == ["c1", "c2"]


# -------------------------------------------------------------------------------------------------------------- refused


@pytest.mark.parametrize("document", [TILE, TopicHead(), Manifest("c1", "orders", HOUR, {}), Recorded({})])
def test_a_document_of_a_newer_version_is_refused(document: msgspec.Struct, index: TopicIndex, store: Flaky):
    key, read = {
        Tile: (index.tile_key(HOUR), lambda: index.tile(HOUR)),
        TopicHead: (index.head_key, index.head),
        Manifest: (index.manifest_key(HOUR, "c1"), lambda: index.manifest(HOUR, "c1")),
        Recorded: (index.columns_key, index.columns),
    }[type(document)]
    store.put(key, msgspec.json.encode(msgspec.structs.replace(document, version=2)))

    with pytest.raises(DataLossError, match=f"s3://lake/{key} has version 2, this s3lake knows 1: upgrade s3lake"):
        read()


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff\xfe", b'{"hour": 5, "partitions": {}}'])
def test_a_foreign_document_is_refused_with_its_key(body: bytes, index: TopicIndex, store: Flaky):
    store.put(index.tile_key(HOUR), body)

    with pytest.raises(DataLossError, match=f"s3://lake/{index.tile_key(HOUR)} is not an index document of s3lake"):
        index.tile(HOUR)


# --------------------------------------------------------------------------------------------------- conditional writes


def create_and_swap(index: TopicIndex, store: Flaky, trouble: str) -> None:
    """Write a tile and change it, both in trouble: it is there, and changed, in the end."""
    store.trouble = trouble
    assert index.create(index.tile_key(HOUR), TILE)
    _, etag = index.tile(HOUR)
    store.trouble = trouble
    assert index.swap_tile(TILE.revise(pending=None), etag) == index.tile(HOUR)[1]
    assert index.tile(HOUR)[0] == TILE.revise(pending=None)


@pytest.mark.parametrize("trouble", ["answer lost", "timeout, done"])
def test_a_write_that_was_carried_out_is_recognised_though_its_answer_was_lost(
    trouble: str, index: TopicIndex, store: Flaky, pauses: list[float]
):
    create_and_swap(index, store, trouble)
    assert pauses == []


@pytest.mark.parametrize("trouble", ["conflict", "untrue"])
def test_a_write_that_is_refused_though_its_condition_holds_is_sent_again(
    trouble: str, index: TopicIndex, store: Flaky, pauses: list[float]
):
    create_and_swap(index, store, trouble)
    assert pauses == [0.1, 0.1]


def test_a_write_without_an_answer_that_was_not_carried_out_is_not_sent_again(
    index: TopicIndex, store: Flaky, pauses: list[float]
):
    store.trouble = "timeout, not done"

    with pytest.raises(StoreUnavailableError, match="no answer"):
        index.create(index.tile_key(HOUR), TILE)
    assert (index.tile(HOUR), pauses) == (None, [])


def test_a_writer_loses_a_conflict_with_an_earlier_one(index: TopicIndex, store: Flaky):
    index.create(index.tile_key(HOUR), TILE)
    _, etag = index.tile(HOUR)
    index.swap_tile(TILE.revise(burnt={}), etag)

    store.trouble = "conflict"
    assert index.swap_tile(TILE.revise(pending=None), etag) is None
    store.trouble = "conflict"
    assert not index.create(index.tile_key(HOUR), TILE)


def test_a_write_that_is_refused_without_end_ends(index: TopicIndex, store: Flaky, pauses: list[float], monkeypatch):
    monkeypatch.setattr(store, "put", lambda *_, **__: None)

    with pytest.raises(
        StoreConflictError, match=r"PutObject s3://lake/\S+T05.json was refused 5 times in 7.6 s although its condition"
    ):
        index.create(index.tile_key(HOUR), TILE)
    assert pauses == [0.1, 0.5, 2.0, 5.0]


def test_a_document_that_the_index_names_is_looked_for_again_before_it_is_called_missing(
    index: TopicIndex, store: Flaky, pauses: list[float], monkeypatch
):
    index.create(index.tile_key(HOUR), TILE)
    get, untrue = store.get, iter([None, None])
    monkeypatch.setattr(store, "get", lambda key: next(untrue, get(key)))

    assert index.existing_tile(HOUR)[0] == TILE
    assert pauses == [0.1, 0.5]


@pytest.mark.parametrize("late", [0, 2], ids=["at once", "late"])
def test_a_listed_manifest_is_the_one_that_was_recorded(late: int, index: TopicIndex, store: Flaky, monkeypatch):
    manifest = Manifest("c1", "orders", HOUR, {0: Read(0, 5)})
    index.record(manifest)
    get, untrue = store.get, iter([None] * late)
    monkeypatch.setattr(store, "get", lambda key: next(untrue, get(key)))

    assert index.read_listed(HOUR, "c1") == manifest


def test_a_listed_manifest_that_is_missing_is_named_with_what_is_known_of_it(index: TopicIndex, pauses: list[float]):
    with pytest.raises(
        MissingDocumentError,
        match=r"T05/c1.json is not there, although \S+T05.json names it; .*asked 5 times.* or the document was deleted",
    ):
        index.read_listed(HOUR, "c1")
    assert pauses == [0.1, 0.5, 2.0, 5.0]


def test_a_commit_that_was_replaced_while_it_was_looked_at_is_not_called_missing(
    index: TopicIndex, pauses: list[float]
):
    index.create(index.tile_key(HOUR), TILE.revise(commits=("c2",)))

    with pytest.raises(ReplacedError, match=r"commit c1 of \S+ \S+ was replaced .* look at the hour again"):
        index.read_listed(HOUR, "c1")
    assert pauses == []


def test_a_document_damaged_on_its_way_is_read_again(index: TopicIndex, store: Flaky, monkeypatch):
    index.create(index.tile_key(HOUR), TILE)
    get, damaged = store.get, iter([Document(b'{"hour', '"x"')])
    monkeypatch.setattr(store, "get", lambda key: next(damaged, None) or get(key))

    assert index.tile(HOUR)[0] == TILE


def test_tiles_of_the_present_topic_come_the_newest_first_and_are_read_when_asked_for(index: TopicIndex):
    head = TopicHead(
        hours=(("2026-11-20T03", "2026-11-20T05"), ("2026-11-20T07", "2026-11-20T09")), since="2026-11-20T04"
    )
    for at in ("03", "04", "05", "07", "09"):
        index.create(index.tile_key(f"2026-11-20T{at}"), Tile(f"2026-11-20T{at}", {}))
    newest = index.newest(head)

    assert next(newest).hour == "2026-11-20T09"
    index.create(index.tile_key("2026-11-20T08"), Tile("2026-11-20T08", {}))
    assert [tile.hour[-2:] for tile in newest] == ["08", "07", "05", "04"]


@pytest.mark.parametrize("shown", [None, b"{}"], ids=["none", "another"])
def test_a_manifest_counts_as_written_only_once_the_store_shows_it(
    shown: bytes | None, index: TopicIndex, store: Flaky, monkeypatch: pytest.MonkeyPatch
):
    def put(key: str, *_: object, **__: object) -> str:
        if shown is not None:
            MemoryStore.put(store, key, shown)
        return '"e"'

    monkeypatch.setattr(store, "put", put)

    with pytest.raises(StoreConflictError, match="shows another document there or none; nothing of commit c1"):
        index.record(Manifest("c1", "orders", HOUR, {}))


# Files of many commits


DATA, MORE = (File(key, "u", (), 0, 0, 0, 1, 1) for key in ("a", "b"))
DEAD_LETTERS = File("c", "u", (), 0, 0, 0, 1, 1, stream="dead_letters")
COMMITS = [
    Manifest("1", "orders", "2026-11-20T05", {}, (DATA, DEAD_LETTERS)),
    Manifest("2", "orders", "2026-11-20T05", {}, (MORE,)),
]


def test_files_come_in_the_order_of_their_commits_all_or_those_of_some_kinds():
    assert collect_files(COMMITS) == [DATA, DEAD_LETTERS, MORE]
    assert collect_files(COMMITS, "data") == [DATA, MORE]
    assert collect_files(COMMITS, "dead_letters", "data") == [DATA, DEAD_LETTERS, MORE]
    assert collect_files(COMMITS, "sidecar") == []
