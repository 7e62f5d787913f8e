"""A commit that is given up: it becomes garbage of its tile, and its names stay burnt."""

import pytest

from s3lake.commit.documents import Manifest, Read
from s3lake.commit.index import TopicIndex
from s3lake.commit.recovery import back, fence
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


def test_names_that_were_burnt_stay_so_when_another_commit_is_rolled_back():
    tile = Tile(FIVE, {0: Span(5, 5), 1: Span(0, 0)}, pending="second", burnt={0: 5, 1: 9})
    given_up = back(tile, Manifest("second", "orders", FIVE, {0: Read(5, 8)}), ())
    assert (given_up.pending, given_up.garbage, given_up.burnt) == (None, ("second",), {0: 8, 1: 9})
