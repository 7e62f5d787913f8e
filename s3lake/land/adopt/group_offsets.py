"""The connector's consumer group: what it committed to Kafka, and whether the connector runs still."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, field
from typing import Any, Protocol

from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
)
from confluent_kafka.admin import AdminClient

from s3lake.errors import ConfigurationError, KafkaUnavailableError
from s3lake.source.kafka.answers import GROUP_REFUSALS
from s3lake.source.kafka.client_properties import to_librdkafka

_STOPPED = {ConsumerGroupState.EMPTY, ConsumerGroupState.DEAD}
_AGAIN = {
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.UNSTABLE_OFFSET_COMMIT,
}
_TIMEOUT_S = 10.0  # within which a question is answered or fails
_PAUSE_S = 0.1


@dataclass(frozen=True)
class GroupOffsets:
    """A consumer group.

    Attributes:
        offsets: the next offset to read of each topic-partition of one topic.
        running: its state, where it is not an empty group; empty where it is.
    """

    offsets: Mapping[int, int] = field(default_factory=dict)
    running: str = ""


class Groups(Protocol):
    """The source of consumer groups: Kafka, or a fake one in tests."""

    def read(self, name: str, topic: str) -> GroupOffsets:
        """The group `name` and its offsets of `topic`; one without offsets where there is no such group."""
        ...


class KafkaGroups:
    """`Groups` of a real cluster.

    Args:
        properties: the configuration's properties, see `s3lake.source.kafka.client_properties`.
    """

    def __init__(self, bootstrap_servers: str, properties: Mapping[str, str] = {}) -> None:
        self.bootstrap_servers = bootstrap_servers
        self._settings: dict[str, Any] = {
            "client.id": "s3lake",
            "log_level": 0,
            **to_librdkafka(properties),
            "bootstrap.servers": bootstrap_servers,
        }

    def read(self, name: str, topic: str) -> GroupOffsets:
        """See `Groups.read`.

        Raises:
            KafkaUnavailableError: the brokers did not answer in time.
            ConfigurationError: the brokers refuse to answer.
        """
        client = AdminClient(self._settings)
        deadline = time.monotonic() + _TIMEOUT_S
        described = self._ask(
            name, deadline, lambda left: client.describe_consumer_groups([name], request_timeout=left)
        )
        if described is None:
            return GroupOffsets()
        groups = [ConsumerGroupTopicPartitions(name)]
        committed = self._ask(
            name,
            deadline,
            lambda left: client.list_consumer_group_offsets(groups, require_stable=True, request_timeout=left),
        )
        of_topic = [one for one in (committed.topic_partitions if committed else ()) if one.topic == topic]
        for partition in of_topic:
            if partition.error is not None:
                raise self._unavailable(name, f"partition {partition.partition}: {partition.error.str()}")
        offsets = {one.partition: one.offset for one in of_topic if one.offset >= 0}
        state = described.state
        running = "" if state in _STOPPED else f"{state.name.lower()}, {len(described.members)} members"
        return GroupOffsets(offsets, running)

    def _ask(self, name: str, deadline: float, question: Callable[[float], Mapping[str, Future[Any]]]) -> Any:
        """Return the answer, None if the group does not exist; asked again while the group's coordinator changes."""
        # Not a retry of tenacity: the deadline is shared by two questions, and each request gets the rest of it.
        while True:
            left = max(0.1, deadline - time.monotonic())
            try:
                return question(left)[name].result(left + 0.25)
            except KafkaException as error:
                refusal: KafkaError = error.args[0]
                if refusal.code() == KafkaError.GROUP_ID_NOT_FOUND:
                    return None
                if refusal.code() in GROUP_REFUSALS:
                    raise ConfigurationError(
                        f"Kafka at {self.bootstrap_servers} refuses to tell of group {name!r}: {refusal.str()}. Allow "
                        "this user to Describe the group"
                    ) from None
                why = f"{refusal.name()}: {refusal.str()}"
                if refusal.code() in _AGAIN and time.monotonic() + _PAUSE_S < deadline:
                    time.sleep(_PAUSE_S)
                    continue
            except FutureTimeoutError:
                why = "no answer"
            raise self._unavailable(name, why)

    def _unavailable(self, name: str, why: str) -> KafkaUnavailableError:
        return KafkaUnavailableError(
            f"Kafka at {self.bootstrap_servers} did not tell of group {name!r} within {_TIMEOUT_S:g} s: {why}. "
            "Check that the brokers are up and can be reached from here"
        )
