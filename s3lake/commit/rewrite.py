"""Rewrite: land a complete hour once more from Kafka, under new names, in place of its commits."""

from msgspec import UNSET

from s3lake import hours
from s3lake.commit.index import TopicHead, TopicIndex
from s3lake.commit.opening import finish_creation
from s3lake.commit.protocol import Attempt, attempt, ready
from s3lake.commit.recovery import PACE, Pace
from s3lake.commit.truncated import same_log
from s3lake.errors import DataLossError, IncompleteError
from s3lake.plan.batch import whole
from s3lake.source.offsets import Offsets

REASON = "rewrite"


def begin_rewrite(
    index: TopicIndex, offsets: Offsets, head: TopicHead, hour: str, pace: Pace = PACE, *, reason: str = REASON
) -> Attempt:
    """Step 1 and the plan of a rewrite. Readers of the index switch from old to new at one compare-and-swap.

    Who lists the bucket sees both versions until the old one is swept. The `reason` goes into the manifest.

    Raises:
        IncompleteError: the hour is not landed as a whole.
        DataLossError: Kafka no longer has all of its records.
    """
    if head.since is not None and hour < head.since:
        gone = "its topic was deleted since, or a connector landed it; the files are all there is"
        raise DataLossError(f"{index.topic} {hour}: {gone}")
    unfinished = f"{index.topic} {hour} is not landed as a whole: materialise it before rewriting it"
    if not hours.in_ranges(hour, head.hours):
        raise IncompleteError(unfinished)
    finish_creation(index, head)
    tile, etag = ready(index, hour, pace)
    if not tile.landed:
        raise IncompleteError(unfinished)
    if tile.sums is not UNSET and tile.sums.erased:
        raise DataLossError(
            f"{index.topic} {hour}: {tile.sums.erased:,} of its records were erased, or expired by retention; a "
            "rewrite from Kafka would bring back what it still has of them, so the landed files stay. `s3lake "
            "reformat` writes them anew without Kafka"
        )
    kafka = offsets.snapshot(index.topic, hour, known=bool(head.topic_id))
    if head.topic_id and kafka.topic_id != head.topic_id:
        raise DataLossError(f"{index.topic} {hour}: the topic was deleted since; the files are all there is")
    same_log(index, offsets, tile, kafka)
    batch = whole(tile, kafka)
    if tile.expired or batch.expired:
        raise DataLossError(
            f"{index.topic} {hour}: Kafka has expired some of these records; a rewrite would lose them, so the landed "
            "files stay"
        )
    return attempt(tile, etag, batch, renamed=True, replaces=tile.commits, reason=reason)
