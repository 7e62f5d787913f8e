"""What is planned of an hour whose committed objects are to be made anew, without Kafka: merges and replays."""

from collections.abc import Callable

import pytest

from s3lake.commit.index import File, Manifest, Read, TopicIndex
from s3lake.commit.merge import begin_merge
from s3lake.commit.protocol import Attempt
from s3lake.commit.recovery import Pace
from s3lake.commit.replay import begin_replay
from s3lake.plan.batch import Batch
from s3lake.plan.tile import Span, Tile
from s3lake.store.memory import MemoryStore

FIVE = "2026-11-20T05"
A = Manifest("a", "orders", FIVE, {0: Read(0, 5, 4), 1: Read(7, 8, 1)}, expired=((0, 4, 5),))
B = Manifest("b", "orders", FIVE, {0: Read(5, 9, 3)}, expired=((0, 5, 6),))
GONE = Manifest("gone", "orders", FIVE, {}, (File("orders/gone", "u", (), 0, 0, 0, 1, 1),))
Begin = Callable[[TopicIndex, Pace], Attempt | None]
WHOLE = Batch({0: (0, 9), 1: (7, 8)}, {}, ((0, 4, 6),))
OF_A, OF_B = Batch({0: (0, 5), 1: (7, 8)}, {}, ((0, 4, 5),)), Batch({0: (5, 9)}, {}, ((0, 5, 6),))
BEGUN = {
    "a merge": (lambda index, pace: begin_merge(index, FIVE, [A, B], pace), WHOLE, (A, B), "merge"),
    "another reason": (lambda index, pace: begin_merge(index, FIVE, [B], pace, reason="erase"), OF_B, (B,), "erase"),
    "a replay": (lambda index, pace: begin_replay(index, A, pace), OF_A, (A,), "replay"),
}


@pytest.fixture
def index() -> TopicIndex:
    index = TopicIndex(MemoryStore(), ".indexes/events", "orders")
    for manifest in (A, B, GONE):
        index.record(manifest)
    tile = Tile(FIVE, {0: Span(0, 9, 9), 1: Span(7, 8, 8)}, commits=("a", "b"), garbage=("gone",))
    index.create(index.tile_key(FIVE), tile)
    return index


@pytest.mark.parametrize(("begin", "batch", "replaced", "reason"), BEGUN.values(), ids=BEGUN)
def test_it_covers_what_its_commits_did_takes_their_place_and_says_why(
    begin: Begin, batch: Batch, replaced: tuple[Manifest, ...], reason: str, index: TopicIndex
):
    attempt = begin(index, Pace(parallel=2))

    assert attempt is not None
    assert (attempt.batch, attempt.known, attempt.reason) == (batch, replaced, reason)
    assert attempt.replaces == tuple(manifest.id for manifest in replaced)
    assert attempt.suffix == f"~{attempt.commit[:12]}"
    assert (attempt.tile, attempt.etag) == index.existing_tile(FIVE)
    assert attempt.tile.garbage == ()


def test_a_commit_that_the_hour_has_no_more_is_not_replayed(index: TopicIndex):
    assert begin_replay(index, GONE) is None
