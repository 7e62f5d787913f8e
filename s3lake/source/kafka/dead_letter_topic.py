"""The dead letter topic: refused records in Kafka again, with the headers that Kafka Connect's own would have.

At least once, where the dead letters in the bucket are exactly once: a task produces before it reports that it is done,
so a crash may repeat records and cannot lose one. Workers import this module; confluent_kafka only when there is
something to produce.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from s3lake.errors import ConfigurationError, KafkaUnavailableError
from s3lake.records.encode.dead_letter_lines import ERROR, DeadLetter
from s3lake.source.kafka.client_properties import ErrorLog, hide_secrets, to_librdkafka
from s3lake.text.quantities import format_count

if TYPE_CHECKING:
    from confluent_kafka import Producer

    from s3lake.config.model import Sink

_PREFIX = "__connect.errors."
_DEFAULTS = {
    "message.max.bytes": "1000000000",  # the broker judges: it has taken these records once
    "partitioner": "murmur2_random",  # as Java's clients, Connect's among them
    "linger.ms": "5",
    "client.id": "s3lake",
}
_DURABLE = {"acks": "all", "enable.idempotence": "true", "log_level": "0"}
_CREATE_S = 10.0  # within which the topic is created
_existing: set[tuple[str, str]] = set()  # brokers and topics that this process has asked for, or created

Header = tuple[str, str | bytes | None]


@dataclass(frozen=True)
class DeadLetterTarget:
    """The topic for a sink's refused records of one topic, as plain values.

    Attributes:
        name: the name of the topic that gets the dead letters.
        topic: the name of the topic that the records come from.
        connector: what context headers call the sink.
        context_headers: whether there are any.
        replication_factor: the number of replicas if the topic has to be created; -1 for the brokers' default.
        properties: the configuration's properties, secrets included: see `s3lake.source.kafka.client_properties`.
        timeout_s: the time within which the brokers accept a record, in seconds.
    """

    name: str
    topic: str
    connector: str
    bootstrap_servers: str
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    context_headers: bool = False
    replication_factor: int = 3
    timeout_s: float = 60.0

    @classmethod
    def from_sink(
        cls, sink: Sink, topic: str, bootstrap_servers: str, properties: Mapping[str, str]
    ) -> DeadLetterTarget | None:
        """Build the dead letter topic of `sink`. Return None if it has none."""
        setting = sink.errors.dead_letter_topic
        if setting is None:
            return None
        return cls(
            name=setting.name,
            topic=topic,
            connector=sink.name,
            bootstrap_servers=bootstrap_servers,
            properties=dict(properties),
            context_headers=setting.context_headers,
            replication_factor=setting.replication_factor,
        )

    def create_if_missing(self) -> None:
        """Create the topic if there is none. A process asks once.

        Raises:
            ConfigurationError: the brokers refuse to create it.
            KafkaUnavailableError: they did not answer in time.
        """
        from s3lake.source.kafka.offsets import KafkaOffsets

        if (self.bootstrap_servers, self.name) not in _existing:
            offsets = KafkaOffsets(self.bootstrap_servers, self.properties)
            if not offsets.log_ranges(self.name):
                create(offsets.admin, self.name, self.replication_factor)
            _existing.add((self.bootstrap_servers, self.name))

    def check(self) -> None:
        """Ask the brokers whether they would create the topic if there is none. Creates nothing.

        Raises:
            ConfigurationError: the brokers would refuse to create it.
            KafkaUnavailableError: they did not answer in time.
        """
        from s3lake.source.kafka.offsets import KafkaOffsets

        offsets = KafkaOffsets(self.bootstrap_servers, self.properties)
        if not offsets.log_ranges(self.name):
            create(offsets.admin, self.name, self.replication_factor, only_validate=True)

    def build_headers(self, dead_letter: DeadLetter) -> list[Header]:
        """Return the headers of the refused record, and the context if `context_headers` is set."""
        own = [(header["key"], header["value"]) for header in dead_letter.headers or ()]
        if not self.context_headers:
            return own
        context = {
            "topic": dead_letter.topic,
            "partition": str(dead_letter.partition),
            "offset": str(dead_letter.offset),
            "connector.name": self.connector,
            "task.id": "0",
            "stage": dead_letter.stage,
            "class.name": f"s3lake.{dead_letter.stage}",
            "exception.class.name": f"s3lake.errors.{ERROR}",
            "exception.message": dead_letter.message,
        }
        # A record that was refused before keeps its first context, as in Connect.
        names = {name for name, _ in own}
        return own + [(_PREFIX + name, text.encode()) for name, text in context.items() if _PREFIX + name not in names]


class DeadLetterProducer:
    """Refused records of one task on their way to the dead letter topic; connects when it first sends."""

    def __init__(self, topic: DeadLetterTarget, producer: Producer | None = None) -> None:
        self._topic = topic
        self._waiting: list[DeadLetter] = []
        self._producer = producer
        self._error = ""
        self._log = ErrorLog(topic.properties)

    def add(self, dead_letter: DeadLetter) -> None:
        """Note one record, which `send` will produce."""
        self._waiting.append(dead_letter)

    def send(self) -> None:
        """Produce what is noted, and wait until the brokers have all of it.

        Raises:
            KafkaUnavailableError: they did not take one of the records.
            ConfigurationError: librdkafka does not take the properties.
        """
        if not self._waiting:
            return
        if self._producer is None:
            self._producer = make_producer(self._topic, self._log)
        for dead_letter in self._waiting:
            self._produce(self._producer, dead_letter)
        remaining = self._producer.flush(self._topic.timeout_s + 1)  # librdkafka itself gives up at the timeout
        if remaining or self._error:
            raise self._unavailable(self._error or f"{format_count(remaining, 'records')} got no answer")
        self._waiting.clear()

    def _produce(self, producer: Producer, dead_letter: DeadLetter) -> None:
        from confluent_kafka import KafkaException

        deadline = time.monotonic() + self._topic.timeout_s
        while not self._error:
            try:
                producer.produce(
                    self._topic.name,
                    dead_letter.value,
                    dead_letter.key,
                    headers=self._topic.build_headers(dead_letter),
                    timestamp=max(0, dead_letter.timestamp_ms),  # 0 is now, for one without a time
                    on_delivery=self._keep_error,
                )
            except BufferError:  # the queue is full: records have to go before others can come
                if time.monotonic() >= deadline:
                    raise self._unavailable("the queue stayed full") from None
                producer.poll(0.1)
                continue
            except KafkaException as error:
                raise self._unavailable(f"{error.args[0].name()}: {error.args[0].str()}") from None
            producer.poll(0)
            return

    def _keep_error(self, error: Any, _: Any) -> None:
        if error is not None and not self._error:
            self._error = f"{error.name()}: {error.str()}"

    def _unavailable(self, why: str) -> KafkaUnavailableError:
        return KafkaUnavailableError(
            f"dead letter topic {self._topic.name!r}: Kafka at {self._topic.bootstrap_servers} did not take refused "
            f"records of topic {self._topic.topic!r}: {why}{self._log}. Nothing of this micro-batch is visible. Check "
            "that the brokers are up, that this user may Write to the topic, and that its max.message.bytes is at "
            "least the source topic's."
        )


def make_producer(topic: DeadLetterTarget, log: ErrorLog) -> Producer:
    """Make a producer that answers for every record.

    Raises:
        ConfigurationError: librdkafka does not take the properties.
    """
    from confluent_kafka import KafkaException, Producer

    settings: dict[str, Any] = {**_DEFAULTS, **to_librdkafka(topic.properties), **_DURABLE}
    settings |= {
        "message.timeout.ms": str(round(topic.timeout_s * 1000)),
        "bootstrap.servers": topic.bootstrap_servers,
        "error_cb": log.record_error,
    }
    try:
        return Producer(settings)
    except KafkaException as error:
        reason = hide_secrets(error.args[0].str(), topic.properties)
        raise ConfigurationError(
            f"kafka.properties: librdkafka, which writes dead letters, refuses them: {reason}"
        ) from None


def create(admin: Any, name: str, replication_factor: int, *, only_validate: bool = False) -> None:
    """Create the topic with one topic-partition, as Kafka Connect does. One that exists stays as it is.

    Args:
        only_validate: ask the brokers whether they would, and create nothing.

    Raises:
        ConfigurationError: the brokers refuse.
        KafkaUnavailableError: they did not answer in time.
    """
    from confluent_kafka import KafkaError, KafkaException
    from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]

    unauthorized = "allow this user to Create it, or create the topic yourself"
    remedies = {
        KafkaError.INVALID_REPLICATION_FACTOR: "set errors.dead_letter_topic.replication_factor to at most the number "
        "of brokers (errors.deadletterqueue.topic.replication.factor), or create the topic yourself",
        KafkaError.TOPIC_AUTHORIZATION_FAILED: unauthorized,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED: unauthorized,
        KafkaError.POLICY_VIOLATION: "create the topic yourself, as the brokers' policy wants it",
        KafkaError.TOPIC_EXCEPTION: "name another topic",
    }
    topics = [NewTopic(name, 1, replication_factor)]
    asked = admin.create_topics(topics, operation_timeout=_CREATE_S, validate_only=only_validate)
    try:
        asked[name].result(_CREATE_S + 1)
    except KafkaException as error:
        code, message = error.args[0].code(), error.args[0].str()
        if code == KafkaError.TOPIC_ALREADY_EXISTS:
            return
        if code in remedies:
            raise ConfigurationError(
                f"dead letter topic {name!r} cannot be created: {message}. To go on: {remedies[code]}."
            ) from None
        raise KafkaUnavailableError(f"dead letter topic {name!r} could not be created: {message}") from None
    except TimeoutError:
        raise KafkaUnavailableError(f"dead letter topic {name!r} could not be created: no answer") from None
