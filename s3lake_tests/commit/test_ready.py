"""Step 1 of a write where the hour's tile is not there."""

from types import SimpleNamespace

import pytest

from s3lake.commit.documents import TopicHead
from s3lake.commit.index import TopicIndex
from s3lake.commit.protocol import ready
from s3lake.errors import MissingDocumentError
from s3lake.plan.tile import Span, Tile
from s3lake.store.memory import MemoryStore

FIVE = "2026-11-20T05"
TILE = Tile(FIVE, {0: Span(0, 0)})


@pytest.fixture
def index() -> TopicIndex:
    return TopicIndex(MemoryStore(), ".indexes/events", "orders")


def test_a_tile_that_was_announced_and_not_written_is_written(index: TopicIndex):
    tile, etag = ready(index, FIVE, head=TopicHead(new=TILE))

    assert (tile, etag) == index.existing_tile(FIVE)
    assert tile == TILE


@pytest.mark.parametrize("head", [None, TopicHead(), TopicHead(new=Tile("2026-11-20T06", {}))])
def test_a_tile_that_was_not_announced_last_is_missing(head: TopicHead | None, index: TopicIndex):
    with pytest.raises(MissingDocumentError, match=r"T05\.json is not there"):
        ready(index, FIVE, head=head)
    assert list(index.store.list("")) == []


def test_a_tile_that_shows_late_is_taken(index: TopicIndex, monkeypatch: pytest.MonkeyPatch):
    late = SimpleNamespace(sleep=lambda seconds: seconds and index.create(index.tile_key(FIVE), TILE))
    monkeypatch.setattr("s3lake.commit.index.time", late)

    assert ready(index, FIVE)[0] == TILE
