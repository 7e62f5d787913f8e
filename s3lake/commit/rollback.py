"""Roll back: give up a pending commit that neither its writer nor recovery can finish, by hand and knowingly."""

from dataclasses import dataclass

from s3lake.commit.documents import Manifest
from s3lake.commit.index import TopicIndex
from s3lake.commit.recovery import PACE, Pace, back, sweep
from s3lake.errors import ConfigurationError, DataLossError
from s3lake.plan import tile as tiles
from s3lake.source.offsets import Offsets


@dataclass(frozen=True)
class RolledBack:
    """What became of the pending commit; `offsets` are read from Kafka again, but for those that have `expired`."""

    commit: str
    offsets: int
    expired: int


def roll_back(
    index: TopicIndex,
    offsets: Offsets,
    hour: str,
    *,
    give_up_expired: bool = False,
    dry_run: bool = False,
    pace: Pace = PACE,
) -> RolledBack:
    """Roll the pending commit of `hour` back, whether it could be completed or not, and sweep what it had completed.

    Args:
        index: the index of the sink and topic.
        offsets: asked whether Kafka still has the commit's records.
        hour: the hour whose commit is pending.
        give_up_expired: also where Kafka has expired some of the records; the next run records them as expired.
        dry_run: only return what would be done.
        pace: of the sweeping.

    Raises:
        ConfigurationError: nothing is pending in this hour.
        DataLossError: Kafka has expired some of the commit's records.
    """
    while True:
        stored = index.tile(hour)
        if stored is None or stored[0].pending is None:
            state = "has no tile" if stored is None else "has no pending commit"
            raise ConfigurationError(f"{index.topic} {hour} {state}: there is nothing to roll back")
        tile, etag = stored
        commit = stored[0].pending
        manifest = index.manifest(hour, commit)
        expired = _expired(index, offsets, manifest) if manifest else 0
        if expired and not give_up_expired:
            raise DataLossError(
                f"{index.topic} {hour}: Kafka has expired {expired} offsets that commit {commit} holds; to give "
                "them up say --give-up-expired, and the next run records them as expired"
            )
        reads = manifest.partitions.values() if manifest else ()
        result = RolledBack(commit, sum(read.end - read.start for read in reads), expired)
        if dry_run:
            return result
        if index.swap_tile(back(tile, manifest, ()), etag):
            sweep(index, hour, pace)
            return result


def _expired(index: TopicIndex, offsets: Offsets, manifest: Manifest) -> int:
    """Offsets that only this commit holds; what a rewrite was to replace stays."""
    if manifest.replaces:
        return 0
    logs = offsets.ranges(index.topic)
    return sum(
        max(0, min(read.end, logs.get(partition, (read.end, read.end))[0]) - read.start)
        for partition, read in manifest.partitions.items()
    ) - sum(end - start for _, start, end in tiles.joined(manifest.expired))
