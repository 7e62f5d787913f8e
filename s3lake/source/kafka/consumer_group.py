"""The consumer group of a sink: a copy of how far it is, for those who look at lag there. s3lake never reads it."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, field

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicPartition

from s3lake.source.kafka.answers import GROUP_REFUSALS
from s3lake.source.kafka.offsets import KafkaOffsets

_log = logging.getLogger(__name__)
_TRANSIENT = {
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
}
_PAUSE_S = 0.1
_TIMEOUT_S = 5.0  # within which the brokers have taken the offsets
_refused: set[tuple[str, str]] = set()  # brokers and groups for which this process has logged a refusal


@dataclass(frozen=True)
class ConsumerGroup:
    """The group `s3lake-<sink>`. Its offsets are set from outside, which brokers allow while it has no members.

    Attributes:
        name: the name of the group.
        properties: the configuration's properties, see `s3lake.source.kafka.client_properties`.
    """

    name: str
    bootstrap_servers: str
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)

    def publish(self, topics: Mapping[str, Mapping[int, int]]) -> None:
        """Set the offsets of topics in one request. If the brokers refuse, a warning is logged."""
        published = [TopicPartition(topic, *one) for topic, offsets in topics.items() for one in offsets.items()]
        if not published or (self.bootstrap_servers, self.name) in _refused:
            return
        deadline = time.monotonic() + _TIMEOUT_S
        # Not a retry of tenacity: each request gets the rest of the one deadline, and errors are values.
        while (error := self._answer(published, deadline)) is not None:
            if error.code() not in _TRANSIENT or time.monotonic() + _PAUSE_S >= deadline:
                self._warn(next(iter(topics)) if len(topics) == 1 else f"{len(topics)} topics", error)
                return
            time.sleep(_PAUSE_S)

    def _answer(self, published: list[TopicPartition], deadline: float) -> KafkaError | None:
        """Return why the brokers did not take the offsets, None if they did."""
        remaining_s = max(0.1, deadline - time.monotonic())
        try:
            admin = KafkaOffsets(self.bootstrap_servers, self.properties).admin
            group = [ConsumerGroupTopicPartitions(self.name, published)]
            asked = admin.alter_consumer_group_offsets(group, request_timeout=remaining_s)
            answers = asked[self.name].result(remaining_s + 0.25).topic_partitions
        except KafkaException as error:
            refusal: KafkaError = error.args[0]
            return refusal
        except FutureTimeoutError:
            return KafkaError(KafkaError._TIMED_OUT)
        return next((one.error for one in answers if one.error is not None), None)

    def _warn(self, topic: str, error: KafkaError) -> None:
        remedy = ""
        if error.code() in GROUP_REFUSALS:
            _refused.add((self.bootstrap_servers, self.name))
            remedy = (
                f": allow this user Read on group {self.name} and on topic {topic}, or set publish_offsets: false. "
                "This is logged once a process"
            )
        elif error.code() == KafkaError.UNKNOWN_MEMBER_ID:
            remedy = ": a consumer is a member of that group; stop it, or give it another group"
        _log.warning(
            "offsets of %s are not published to consumer group %s (%s: %s)%s; landing does not need them",
            *(topic, self.name, error.name(), error.str(), remedy),
        )
