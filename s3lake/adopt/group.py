"""The connector's consumer group: what it committed to Kafka, and whether the connector runs still."""

from __future__ import annotations

import time
from collections.abc import Mapping
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
from s3lake.kafka.properties import client_properties

_STOPPED = {ConsumerGroupState.EMPTY, ConsumerGroupState.DEAD}
_REFUSALS = {KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError.TOPIC_AUTHORIZATION_FAILED}


@dataclass(frozen=True)
class Group:
    """A consumer group.

    Attributes:
        offsets: of one topic, per topic-partition: the next offset to read.
        running: its state, where it is not an empty group; empty where it is.
    """

    offsets: Mapping[int, int] = field(default_factory=dict)
    running: str = ""


class Groups(Protocol):
    """What is asked of Kafka about consumer groups."""

    def of(self, name: str, topic: str) -> Group:
        """The group `name` and its offsets of `topic`; one without offsets where there is no such group."""
        ...


class KafkaGroups:
    """`Groups` of a real cluster.

    Args:
        bootstrap_servers: of the cluster.
        properties: as in the configuration, see `s3lake.kafka.properties`.
        timeout_s: within which a question is answered or fails.
    """

    def __init__(
        self, bootstrap_servers: str, properties: Mapping[str, str] | None = None, timeout_s: float = 10.0
    ) -> None:
        self.bootstrap_servers, self.timeout_s = bootstrap_servers, timeout_s
        self._settings: dict[str, Any] = {
            "client.id": "s3lake",
            "log_level": 0,
            **client_properties(properties or {}),
            "bootstrap.servers": bootstrap_servers,
        }

    def of(self, name: str, topic: str) -> Group:
        """See `Groups.of`.

        Raises:
            KafkaUnavailableError: the brokers did not answer in time.
            ConfigurationError: the brokers refuse to answer.
        """
        client = AdminClient(self._settings)
        deadline = time.monotonic() + self.timeout_s
        described = client.describe_consumer_groups([name], request_timeout=self.timeout_s)[name]
        found = self._result(name, described, deadline)
        if found is None:
            return Group()
        wanted = [ConsumerGroupTopicPartitions(name)]
        listed = client.list_consumer_group_offsets(wanted, require_stable=True, request_timeout=self.timeout_s)[name]
        committed = self._result(name, listed, deadline)
        offsets = {
            one.partition: one.offset
            for one in (committed.topic_partitions if committed else ())
            if one.topic == topic and one.offset >= 0
        }
        running = "" if found.state in _STOPPED else f"{found.state.name.lower()}, {len(found.members)} members"
        return Group(offsets, running)

    def _result(self, name: str, future: Any, deadline: float) -> Any:
        try:
            return future.result(max(0.0, deadline - time.monotonic()) + 0.25)
        except KafkaException as error:
            said: KafkaError = error.args[0]
            if said.code() == KafkaError.GROUP_ID_NOT_FOUND:
                return None
            if said.code() in _REFUSALS:
                raise ConfigurationError(
                    f"Kafka at {self.bootstrap_servers} refuses to tell of group {name!r}: {said.str()}. Allow this "
                    "user to Describe the group"
                ) from None
            why = said.str()
        except FutureTimeoutError:
            why = "no answer"
        raise KafkaUnavailableError(
            f"Kafka at {self.bootstrap_servers} did not tell of group {name!r} within {self.timeout_s:g} s: {why}. "
            "Check that the brokers are up and can be reached from here"
        )
