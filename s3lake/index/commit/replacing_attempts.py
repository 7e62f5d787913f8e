"""Begin a commit that replaces others: made of their committed objects, or landed again from Kafka."""

from collections.abc import Iterable, Sequence
from itertools import chain

from s3lake import hours
from s3lake.errors import DataLossError, IncompleteError
from s3lake.index.commit.documents import Manifest, TopicHead
from s3lake.index.commit.log_checks import require_same_log
from s3lake.index.commit.protocol import Attempt, create_attempt
from s3lake.index.commit.recovery import prepare_tile
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.index.plan import tile as tiles
from s3lake.index.plan.batch import Batch, plan_rewrite
from s3lake.source.offsets import Offsets

MERGE, REPLAY, REWRITE = "merge", "replay", "rewrite"
"""Reasons in manifests; the reasons of changes are in their modules."""


def begin_replacement(index: TopicIndex, hour: str, replaced: Sequence[Manifest] | None, reason: str) -> Attempt | None:
    """Step 1 and the plan of a commit that is made of the committed objects of others.

    Kafka is not asked: it need not have these records any more, and the topic may be another one. The hour may be
    open: whoever lands it meanwhile is fenced, or fences this attempt. Readers of the index switch from the old
    commits to the new one at one compare-and-swap.

    Args:
        index: the index of the sink and topic.
        hour: an hour that has a tile.
        replaced: manifests of commits that follow each other; None to replace all of the hour, whichever they are.
        reason: see `Manifest`.

    Returns:
        None if the hour does not consist of these commits any more, or if they do not follow each other.

    Raises:
        MissingDocumentError: the store does not show the tile.
    """
    tile, etag = prepare_tile(index, hour)
    if replaced is None:
        spans = tile.partitions.items()
        batch = Batch({number: (span.start, span.end or span.start) for number, span in spans}, reads={})
        # Rows are counted from 0 in every hour: a layout without the hour gives them the same plain names.
        return create_attempt(tile, etag, batch, renamed=True, replaces=tile.commits, reason=reason)
    commits, intervals = tuple(manifest.id for manifest in replaced), merge_offset_ranges(replaced)
    if intervals is None or not set(commits) <= set(tile.commits):
        return None
    expired = tiles.join_offset_ranges(chain.from_iterable(manifest.expired for manifest in replaced))
    batch = Batch(intervals, reads={}, expired=expired)
    return create_attempt(
        tile, etag, batch, renamed=True, replaces=commits, reason=reason, replaced_manifests=tuple(replaced)
    )


def list_offset_ranges(manifests: Iterable[Manifest]) -> list[tuple[int, int, int]]:
    """Return topic-partition, start and end of each commit's offset ranges, in order."""
    reads = chain.from_iterable(manifest.partitions.items() for manifest in manifests)
    return sorted((partition, read.start, read.end) for partition, read in reads)


def merge_offset_ranges(manifests: Iterable[Manifest]) -> dict[int, tuple[int, int]] | None:
    """Merge the commits' offset ranges per topic-partition. Return None if there is a gap between them."""
    merged: dict[int, tuple[int, int]] = {}
    for partition, start, end in list_offset_ranges(manifests):
        first, last = merged.get(partition, (start, start))
        if start != last:
            return None
        merged[partition] = (first, end)
    return merged


def begin_rewrite(index: TopicIndex, offsets: Offsets, head: TopicHead, hour: str) -> Attempt:
    """Step 1 and the plan of a rewrite. Readers of the index switch from old to new at one compare-and-swap.

    Who lists the bucket sees both versions until the old one is swept.

    Raises:
        IncompleteError: the hour is not complete.
        DataLossError: Kafka no longer has all of its records.
    """
    if head.since is not None and hour < head.since:
        reason = "its topic was deleted since, or a connector landed it; the files are all there is"
        raise DataLossError(f"{index.topic} {hour}: {reason}")
    unfinished = f"{index.topic} {hour} is not complete: land it before you rewrite it"
    if not hours.in_ranges(hour, head.hours):
        raise IncompleteError(unfinished)
    tile, etag = prepare_tile(index, hour, head)
    if not tile.landed:
        raise IncompleteError(unfinished)
    require_not_erased(index.topic, tile)
    kafka = offsets.snapshot(index.topic, hour, existed=bool(head.topic_id))
    if head.topic_id and kafka.topic_id != head.topic_id:
        raise DataLossError(f"{index.topic} {hour}: the topic was deleted since; the files are all there is")
    require_same_log(index, offsets, tile, kafka)
    batch = plan_rewrite(tile, kafka)
    if tile.expired or batch.expired:
        raise DataLossError(
            f"{index.topic} {hour}: Kafka has expired some of these records; a rewrite would lose them, so the landed "
            "files stay"
        )
    return create_attempt(tile, etag, batch, renamed=True, replaces=tile.commits, reason=REWRITE)


def require_not_erased(topic: str, tile: tiles.Tile) -> None:
    """Raise a DataLossError if records of an hour were erased: a rewrite would bring back what Kafka has of them."""
    if tile.sums.erased:
        raise DataLossError(
            f"{topic} {tile.hour}: {tile.sums.erased:,} of its records were erased, or expired by retention; a "
            "rewrite from Kafka would bring back what it still has of them, so the landed files stay. `s3lake "
            "reformat` writes them again without Kafka"
        )
