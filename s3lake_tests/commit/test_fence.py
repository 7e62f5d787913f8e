"""Fencing: a commit that is given up becomes garbage of its tile, unless it is the tile's own."""

import pytest

from s3lake.commit.index import TopicIndex
from s3lake.commit.recovery import fence
from s3lake.plan.tile import Span, Tile
from s3lake.store.memory import MemoryStore

FIVE = "2026-11-20T05"


@pytest.fixture
def index() -> TopicIndex:
    index = TopicIndex(MemoryStore(), ".indexes/events", "orders")
    tile = Tile(FIVE, {0: Span(0, 5)}, commits=("landed",), pending="begun", garbage=("g1", "g2"))
    index.create(index.tile_key(FIVE), tile)
    return index


def test_a_commit_that_is_fenced_comes_last_of_the_garbage_once_and_the_tile_changes_each_time(index: TopicIndex):
    assert fence(index, FIVE, "gone")
    assert fence(index, FIVE, "g1")

    tile, _ = index.existing_tile(FIVE)
    assert tile.garbage == ("g2", "gone", "g1")
    assert tile.rev == 2


@pytest.mark.parametrize("commit", ["landed", "begun"])
def test_a_commit_that_the_tile_has_as_its_own_is_not_fenced(index: TopicIndex, commit: str):
    assert fence(index, FIVE, commit) is False
    assert index.existing_tile(FIVE)[0].rev == 0


def test_an_hour_without_a_tile_has_nothing_to_fence(index: TopicIndex):
    assert fence(index, "2026-11-20T06", "gone") is False
