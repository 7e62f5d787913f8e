"""Whether a commit holds all that it takes the place of, counted by the manifests that there are."""

import pytest

from s3lake.commit.index import Manifest, Read, TopicIndex
from s3lake.commit.replacing import must_hold_as_much
from s3lake.commit.sums import Commits
from s3lake.errors import DataLossError
from s3lake.store.memory import MemoryStore

FIVE = "2026-11-20T05"


@pytest.fixture
def replaced() -> Commits:
    """A commit whose manifest is gone, and two of three records each in topic-partition 0, one with two in 1."""
    index = TopicIndex(MemoryStore(), ".indexes/events", "orders")
    index.record(Manifest("a", "orders", FIVE, {0: Read(0, 5, 3)}))
    index.record(Manifest("b", "orders", FIVE, {0: Read(5, 9, 3), 1: Read(0, 2, 2)}))
    return Commits(index, FIVE, ("gone", "a", "b"))


@pytest.mark.parametrize(
    ("reads", "fewer"),
    [
        ({0: Read(0, 9, 5), 1: Read(0, 2, 2)}, "topic-partition 0: 5 of 6"),
        ({0: Read(0, 9, 6)}, "topic-partition 1: 0 of 2"),
        ({1: Read(0, 2, 1)}, "topic-partition 0: 0 of 6, topic-partition 1: 1 of 2"),
    ],
)
def test_fewer_records_than_were_landed_are_refused_with_their_counts(
    reads: dict[int, Read], fewer: str, replaced: Commits
):
    with pytest.raises(DataLossError, match=rf"than were landed \({fewer}\), as after compaction"):
        must_hold_as_much("orders", FIVE, replaced, reads)


def test_as_many_or_more_are_not(replaced: Commits):
    must_hold_as_much("orders", FIVE, replaced, {0: Read(0, 9, 7), 1: Read(0, 2, 2), 2: Read(0, 1, 1)})
