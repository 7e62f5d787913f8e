"""Answers of brokers, as s3lake needs them."""

from confluent_kafka import KafkaError
from confluent_kafka.admin import TopicDescription  # type: ignore[attr-defined]

from s3lake.source.offsets import LogRange

GROUP_REFUSALS = {KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError.TOPIC_AUTHORIZATION_FAILED}
"""Errors of a question about a consumer group that this user may not ask."""


def read_description(description: TopicDescription) -> tuple[str, list[int]]:
    """Return the id and the partitions of a topic."""
    return str(description.topic_id), sorted(partition.id for partition in description.partitions)


def to_log_range(low: int, last: int, at: int, next: int, stamp_ms: int, epoch: int | None) -> LogRange:
    """Return a range; `at` and `next` are the first offsets of an hour and of the next one, -1 if there is none."""
    first, stamp = clamp_offset(at, last), stamp_ms if 0 <= next < last else None
    return LogRange(low, last, first, max(first, clamp_offset(next, last)), epoch, stamp)


def clamp_offset(offset: int, end: int) -> int:
    """Return the end if no record has the timestamp, and never an offset past what readers get to see."""
    return end if offset < 0 else min(offset, end)
