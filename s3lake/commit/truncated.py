"""Truncated: a log that an unclean leader election cut below what is committed, where other records stand now."""

from collections.abc import Mapping

from s3lake.commit.index import TopicIndex
from s3lake.errors import DataLossError
from s3lake.plan.tile import Tile
from s3lake.source.offsets import Offsets, Snapshot


def same_log(index: TopicIndex, offsets: Offsets, tile: Tile, kafka: Snapshot) -> None:
    """Refuse a log in which other records stand where the tile's were landed from.

    Kafka is asked only where another leader was elected since.

    Raises:
        DataLossError: with the offsets at which records wait that would never be landed.
    """
    cut = cut_below(index, offsets, tile, kafka)
    if cut:
        ranges = ", ".join(
            f"topic-partition {one}: offsets {at} to {tile.partitions[one].committed - 1}" for one, at in cut.items()
        )
        raise DataLossError(
            f"topic {index.topic!r}: a leader was elected that lacked records which are landed, and what it has at "
            f"their offsets was written since and is not landed ({ranges}). The landed files are the only copy of the "
            f"former records. To land the new ones beside them run `s3lake index accept --topic {index.topic}`"
        )


def cut_below(index: TopicIndex, offsets: Offsets, tile: Tile, kafka: Snapshot) -> Mapping[int, int]:
    """Per topic-partition of the tile whose log was cut below what is committed: where."""
    reached = {}
    for partition, epoch in tile.epochs.items():
        log, committed = kafka.partitions.get(partition), tile.partitions[partition].committed
        if log is not None and log.epoch not in (None, epoch) and committed > log.low:
            reached[partition] = (committed, epoch)
    cut = offsets.cut(index.topic, reached) if reached else {}
    return {partition: max(at, kafka.partitions[partition].low) for partition, at in sorted(cut.items())}
