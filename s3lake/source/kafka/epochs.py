"""Leader epochs: where a log was truncated, asked by OffsetForLeaderEpoch.

Only a consumer of librdkafka asks that: if it is assigned an offset and an epoch, the leader validates both first.
"""

import re
import time
from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, TopicPartition

from s3lake.errors import KafkaUnavailableError

_END = re.compile(r"broker end offset is (\d+)")
_SETTINGS = {
    "group.id": "s3lake",  # librdkafka wants one; nothing is committed, and no group is joined
    "enable.auto.commit": "false",
    "auto.offset.reset": "error",
    "enable.partition.eof": "true",
    "isolation.level": "read_uncommitted",  # an answer even where nothing but an open transaction follows
    "fetch.max.bytes": "1000",
    "message.max.bytes": "1000",
    "log_level": "0",
}


def find_truncations(
    settings: Mapping[str, str], topic: str, reached: Mapping[int, tuple[int, int]], timeout_s: float
) -> dict[int, int]:
    """See `Offsets.find_truncations`; `settings` are librdkafka's."""
    ends: dict[int, int] = {}
    waiting, reason, deadline = set(reached), "no answer", time.monotonic() + timeout_s
    properties: dict[str, Any] = {**settings, **_SETTINGS, "error_cb": lambda _: None}
    consumer = Consumer(properties)
    try:
        consumer.assign(
            [TopicPartition(topic, one, offset, leader_epoch=epoch) for one, (offset, epoch) in reached.items()]
        )
        while waiting and (left := deadline - time.monotonic()) > 0:
            message = consumer.poll(left)
            if message is None:
                continue
            error, partition = message.error(), message.partition()
            if partition is None:
                continue
            if error is None or error.code() == KafkaError._PARTITION_EOF:
                waiting.discard(partition)
            elif error.code() == KafkaError._AUTO_OFFSET_RESET and "truncation" in error.str():
                end = _END.search(error.str())
                if end is None:
                    raise KafkaUnavailableError(
                        f"topic {topic!r}, partition {partition}: librdkafka found that the log was cut, and not where"
                        f": {error.str()}. Install the confluent-kafka that s3lake was tested with"
                    )
                ends[partition] = int(end[1])
                waiting.discard(partition)
            else:
                reason = error.str()
    finally:
        consumer.close()
    if waiting:
        raise KafkaUnavailableError(
            f"Kafka at {settings['bootstrap.servers']} did not tell within {timeout_s:g} s whether topic {topic!r} "
            f"still has what was landed, after another leader was elected: {reason}. Check that the brokers are up and "
            "that this user may Read the topic"
        )
    return ends
