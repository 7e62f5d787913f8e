"""Replay: a commit is replaced by one in which some of its dead letters have landed, under new names."""

from s3lake.commit.index import Manifest, TopicIndex
from s3lake.commit.protocol import Attempt, attempt, ready
from s3lake.commit.recovery import PACE, Pace
from s3lake.plan.batch import Batch

REASON = "replay"


def begin_replay(index: TopicIndex, replaced: Manifest, pace: Pace = PACE) -> Attempt | None:
    """Step 1 and the plan of a replay; None where the hour does not have this commit any more.

    It is made of committed objects, so Kafka is not asked, and need not have the records any more. The hour may be
    under way: whoever lands it meanwhile is fenced, or fences this.

    Args:
        index: the index of the sink and topic.
        replaced: what has the dead letters.
        pace: of the recovery that step 1 may need.

    Raises:
        MissingDocumentError: the tile is gone.
    """
    tile, etag = ready(index, replaced.hour, pace)
    if replaced.id not in tile.commits:
        return None
    intervals = {partition: (read.start, read.end) for partition, read in replaced.partitions.items()}
    batch = Batch(intervals, reads={}, expired=replaced.expired)
    return attempt(tile, etag, batch, renamed=True, replaces=(replaced.id,), reason=REASON, known=(replaced,))
