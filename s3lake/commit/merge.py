"""Merge: commits of a landed hour become one, made of their committed objects, under new names."""

from collections.abc import Iterable, Sequence
from itertools import chain

from s3lake.commit.index import Manifest, TopicIndex
from s3lake.commit.protocol import Attempt, attempt, ready
from s3lake.commit.recovery import PACE, Pace
from s3lake.plan import tile as tiles
from s3lake.plan.batch import Batch

REASON = "merge"


def begin_merge(
    index: TopicIndex, hour: str, replaced: Sequence[Manifest], pace: Pace = PACE, *, reason: str = REASON
) -> Attempt | None:
    """Step 1 and the plan of a merge; None where the hour is not complete, or is not made of these commits any more.

    Kafka is not asked: what it still has of these records does not matter, nor whether the topic is still the same.
    Readers of the index switch from old to new at one compare-and-swap, as with a rewrite.

    Args:
        index: the index of the sink and topic.
        hour: an hour that has a tile.
        replaced: manifests of commits that follow each other.
        pace: of the recovery that step 1 may need.
        reason: see `Manifest`.

    Raises:
        MissingDocumentError: the tile is gone.
    """
    tile, etag = ready(index, hour, pace)
    commits, intervals = tuple(manifest.id for manifest in replaced), united(replaced)
    if not tile.complete or intervals is None or not set(commits) <= set(tile.commits):
        return None
    batch = Batch(
        intervals, reads={}, expired=tiles.joined(chain.from_iterable(manifest.expired for manifest in replaced))
    )
    return attempt(tile, etag, batch, renamed=True, replaces=commits, reason=reason, known=tuple(replaced))


def spans(manifests: Iterable[Manifest]) -> list[tuple[int, int, int]]:
    """Each commit's interval of each topic-partition, in order: topic-partition, start and end."""
    reads = chain.from_iterable(manifest.partitions.items() for manifest in manifests)
    return sorted((partition, read.start, read.end) for partition, read in reads)


def united(manifests: Iterable[Manifest]) -> dict[int, tuple[int, int]] | None:
    """What commits cover together, per topic-partition; None where something between them is not theirs."""
    united: dict[int, tuple[int, int]] = {}
    for partition, start, end in spans(manifests):
        first, last = united.get(partition, (start, start))
        if start != last:
            return None
        united[partition] = (first, end)
    return united
