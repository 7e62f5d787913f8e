"""Check that Kafka's topic and its log are the ones that the index was made from."""

from collections.abc import Mapping

from s3lake.errors import ConfigurationError, DataLossError
from s3lake.index.commit.documents import TABLE, TopicHead
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.index.plan.tile import Tile
from s3lake.source.offsets import Offsets, TopicOffsets


def ask_kafka(index: TopicIndex, offsets: Offsets, head: TopicHead, hour: str) -> TopicOffsets:
    """Ask Kafka for the offsets around `hour`, of the topic that the index was made from.

    Raises:
        DataLossError: the topic was deleted, or is another one.
        KafkaUnavailableError: the brokers did not answer in time.
    """
    kafka = offsets.snapshot(index.topic, hour, existed=bool(head.topic_id))
    require_same_topic(index, head, kafka)
    return kafka


def require_same_topic(index: TopicIndex, head: TopicHead, kafka: TopicOffsets) -> None:
    """Refuse a topic that was deleted, or deleted and created again.

    Raises:
        DataLossError: Kafka's topic is another one than the index was cut from.
    """
    if head.topic_id == TABLE:
        raise ConfigurationError(
            f"topic {index.topic!r}: the index of this sink holds tables of this name that an asset handed in; land "
            "the topic by another sink"
        )
    if head.topic_id and not kafka.exists:
        raise DataLossError(
            f"topic {index.topic!r} was deleted: the index was cut from topic id {head.topic_id}, Kafka has none; "
            "create it again, or take it out of topics"
        )
    if head.topic_id and kafka.topic_id != head.topic_id:
        raise DataLossError(
            f"topic {index.topic!r} was created again: the index was cut from topic id {head.topic_id}, Kafka has "
            f"{kafka.topic_id}; to go on with the present topic run `s3lake index accept --topic {index.topic}`"
        )


def require_same_log(index: TopicIndex, offsets: Offsets, tile: Tile, kafka: TopicOffsets) -> None:
    """Refuse a log with other records at the offsets that the tile landed.

    Kafka is asked only where another leader was elected since.

    Raises:
        DataLossError: records wait at offsets, which the error names, and would never be landed.
    """
    cut = find_truncated_offsets(index, offsets, tile, kafka)
    if cut:
        ranges = ", ".join(
            f"topic-partition {partition}: offsets {at} to {tile.partitions[partition].committed - 1}"
            for partition, at in cut.items()
        )
        raise DataLossError(
            f"topic {index.topic!r}: a leader was elected that lacked records which are landed, and what it has at "
            f"their offsets was written since and is not landed ({ranges}). The landed files are the only copy of the "
            f"former records. To land the new ones next to them run `s3lake index accept --topic {index.topic}`"
        )


def find_truncated_offsets(index: TopicIndex, offsets: Offsets, tile: Tile, kafka: TopicOffsets) -> Mapping[int, int]:
    """Per topic-partition of the tile whose log was cut below what is committed: where."""
    reached = {}
    for partition, epoch in tile.epochs.items():
        log, committed = kafka.partitions.get(partition), tile.partitions[partition].committed
        if log is not None and log.epoch not in (None, epoch) and committed > log.log_start:
            reached[partition] = (committed, epoch)
    cut = offsets.find_truncations(index.topic, reached) if reached else {}
    return {partition: max(at, kafka.partitions[partition].log_start) for partition, at in sorted(cut.items())}
