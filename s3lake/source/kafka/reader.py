"""Records of exactly the offsets that were planned, read by librdkafka inside the task that lands them.

Spark plans and runs the tasks; records never pass its JVM. A reader sees committed records only. It is done when it has
seen the last offset of its range or one behind it, or when the brokers say that the log goes no further: ranges may end
in transaction markers, aborted records and compacted gaps, which are never delivered.
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from s3lake.errors import ConfigurationError, KafkaUnavailableError, TransientError
from s3lake.source.kafka.properties import REMEDY, client_properties, without_secrets
from s3lake.source.records import HEADERS, UNREADABLE, Range

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Message

BATCH_ROWS = 10_000
FIRST_ROWS = 100
"""Of the first batch, while nobody knows how large records are: they keep coming while a batch is taken."""
BATCH_BYTES = 16 * 2**20
QUEUE_BYTES = 32 * 2**20
"""What librdkafka reads ahead, at most, beside the batch that is worked on."""

SILENCE_S = 30.0
"""How long nothing may come before the brokers are asked whether they are there; they have as long for an answer."""

_INTRODUCED_S = 2.0
_WAIT_S = 0.1  # short, because a gap at a range's end is waited out
_SILENCES = 20  # gigabytes of aborted records are read without a word

# What a user's own properties may change, and what they may not.
_DEFAULTS = {
    "client.id": "s3lake",
    "fetch.wait.max.ms": "10",  # else every task waits half a second at its end
    "fetch.queue.backoff.ms": "2",  # the default of a second leaves a fast reader waiting most of its time
    "fetch.message.max.bytes": str(4 * 2**20),
    "fetch.max.bytes": str(16 * 2**20),
    "receive.message.max.bytes": str(2**31 - 1),  # the broker judges how large a message is: it took it once
    "queued.min.messages": "50000",
    "queued.max.messages.kbytes": str(QUEUE_BYTES // 1024),
    "check.crcs": "true",
    "reconnect.backoff.max.ms": "1000",
    "topic.metadata.propagation.max.ms": "10000",  # a topic that was planned is there, or is gone
    "log_level": "0",
}
_FIXED = {
    "group.id": "s3lake",  # librdkafka wants one; nothing is ever committed
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "isolation.level": "read_committed",
    "enable.partition.eof": "true",
    "auto.offset.reset": "error",
    "max.poll.interval.ms": "86400000",  # between two batches files are uploaded
}

_LONGEST_MS = (2**63 - 1) // 1000  # what microseconds can hold; a producer may stamp anything


@dataclass(frozen=True)
class Brokers:
    """The cluster as a task reaches it: plain values that travel to workers.

    Attributes:
        properties: as in the configuration, see `s3lake.source.kafka.properties`; secrets among them.
    """

    bootstrap_servers: str
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def consumer_settings(self) -> dict[str, str]:
        """Librdkafka's properties of a reader.

        Raises:
            ConfigurationError: a property has a meaning for Java's client only.
        """
        properties = client_properties(self.properties)
        return {**_DEFAULTS, **properties, **_FIXED, "bootstrap.servers": self.bootstrap_servers}

    def batches(self, topic: str, ranges: Iterable[Range], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """See `Reader.batches`.

        Raises:
            KafkaUnavailableError: the brokers did not answer in time.
            TransientError: Kafka expired what was being read, or the topic is gone: planning again tells.
            ConfigurationError: the brokers refuse to let this user read.
        """
        settings = tuple(sorted(self.consumer_settings.items()))
        _introduce(_consumer(os.getpid(), settings)[0], topic)
        for part in ranges:
            yield from _Reading(settings, self.bootstrap_servers, topic, part).batches(columns)


class _Trouble:
    """What librdkafka says beside the records: mostly of connections, which it mends by itself."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self.last: KafkaError | None = None
        self._settings = settings

    def __call__(self, error: KafkaError) -> None:
        from confluent_kafka import KafkaError

        if error.code() != KafkaError._ALL_BROKERS_DOWN:  # says nothing that the one before it did not
            self.last = error

    def __str__(self) -> str:
        return f"; {without_secrets(self.last.str(), self._settings)}" if self.last else ""


@functools.lru_cache(maxsize=4)
def _consumer(pid: int, settings: tuple[tuple[str, str], ...]) -> tuple[Consumer, _Trouble]:  # noqa: ARG001
    """One consumer per process (`pid`: none survives a fork) and settings: a warm worker keeps its connections."""
    from confluent_kafka import Consumer, KafkaException

    trouble = _Trouble(dict(settings))
    properties: dict[str, Any] = {**dict(settings), "error_cb": trouble}
    try:
        return Consumer(properties), trouble
    except KafkaException as error:
        reason = without_secrets(error.args[0].str(), dict(settings))
        raise ConfigurationError(f"kafka.properties: librdkafka refuses them: {reason}") from None


def _introduce(consumer: Consumer, topic: str) -> None:
    """Let the client ask where the topic is: of one that is only assigned it asks a second later."""
    from confluent_kafka import KafkaException

    with suppress(KafkaException):  # reading meets the same, and tells what it means
        consumer.list_topics(topic, timeout=_INTRODUCED_S)


class _Reading:
    """One range on its way."""

    def __init__(self, settings: tuple[tuple[str, str], ...], servers: str, topic: str, range: Range) -> None:
        self._consumer, self._trouble = _consumer(os.getpid(), settings)
        self._settings, self._servers = settings, servers
        self._topic, self._range = topic, range
        self._next = range.start

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        if self._trouble.last is not None and self._trouble.last.code() in _gone():
            self._trouble.last = None  # another topic was
        self._assign()
        rows, silent, asked = FIRST_ROWS, time.monotonic(), 0
        try:
            while self._next < self._range.end:
                messages = self._taken(self._consumer.consume(min(rows, self._range.end - self._next), _WAIT_S))
                if messages:
                    rows = max(1, min(BATCH_ROWS, BATCH_BYTES * len(messages) // max(1, sum(map(len, messages)))))
                    yield _batch(messages, self._range.partition, columns)
                    silent, asked = time.monotonic(), 0
                elif self._trouble.last is not None and self._trouble.last.code() in _gone():
                    raise self._meaning(self._trouble.last)
                elif time.monotonic() - silent >= SILENCE_S:
                    asked += 1
                    self._insist(asked)
                    if asked == 1:
                        self._renew_client()
                    silent = time.monotonic()
            self._trouble.last = None  # only now is it over: some of it is said once, and not for every range
        finally:
            self._consumer.unassign()

    def _assign(self) -> None:
        from confluent_kafka import TopicPartition

        self._consumer.assign([TopicPartition(self._topic, self._range.partition, self._next)])

    def _renew_client(self) -> None:
        """Continue with a new client, because the log has records and this one gets none.

        One that has read a topic of this name which was deleted may ignore where the present one is: the epoch of its
        leader is lower, so librdkafka (2.16) takes the brokers' answer for an outdated one, and never asks for records.
        """
        self._consumer.close()
        _consumer.cache_clear()
        self._consumer, self._trouble = _consumer(os.getpid(), self._settings)
        _introduce(self._consumer, self._topic)
        self._assign()

    def _taken(self, messages: list[Message]) -> list[Message]:
        """The records of the range among `messages`; moves on to behind them."""
        records = [message for message in messages if message.error() is None]
        if len(records) < len(messages):
            for message in messages:
                self._heard(message)
        if not records:
            return records
        last = _offset(records[-1])
        self._next = max(self._next, last + 1)
        # Behind a gap at the end of the range come records of the next one.
        return records if last < self._range.end else [one for one in records if _offset(one) < self._range.end]

    def _heard(self, message: Message) -> None:
        from confluent_kafka import KafkaError

        error = message.error()
        if error is None or error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:  # there is no group to be let into
            return
        if error.code() == KafkaError._PARTITION_EOF:
            self._next = max(self._next, _offset(message))
            return
        raise self._meaning(error)

    def _meaning(self, error: KafkaError) -> Exception:
        from confluent_kafka import KafkaError

        where = f"topic {self._topic!r}, partition {self._range.partition}"
        if error.code() == KafkaError._AUTO_OFFSET_RESET:
            return TransientError(
                f"{where}: Kafka has no record at offset {self._next} any more: it expired, or the log was cut off, "
                "while it was being read; planning again"
            )
        if error.code() in _gone():
            return TransientError(f"{where} is not there any more: {error.str()}; planning again")
        if error.code() in (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError._AUTHENTICATION):
            return ConfigurationError(
                f"Kafka at {self._servers} does not let this user read {where}: {error.name()}: {error.str()}. To go "
                "on: allow it to Read and Describe the topic, or correct kafka.properties"
            )
        # Whatever librdkafka gives up on, a corrupt batch say, it would go on behind.
        return TransientError(
            f"{where}, offset {self._next}: Kafka's answer cannot be read: {error.name()}: {error.str()}; nothing of "
            "this micro-batch is visible. If this stays so, the log is damaged there"
        )

    def _insist(self, asked: int) -> None:
        """Nothing came for long: whether the brokers are there, and have what was planned."""
        from confluent_kafka import KafkaException, TopicPartition

        where = TopicPartition(self._topic, self._range.partition)
        silent = (
            f"Kafka at {self._servers} did not give the records of topic {self._topic!r}, partition "
            f"{self._range.partition}, from offset {self._next} on within {asked * SILENCE_S:g} s"
        )
        try:
            _, end = self._consumer.get_watermark_offsets(where, timeout=SILENCE_S)
        except KafkaException as error:
            raise KafkaUnavailableError(f"{silent}: {error.args[0].str()}{self._trouble}. {REMEDY}") from None
        if end < self._range.end or asked >= _SILENCES:
            raise KafkaUnavailableError(
                f"{silent}; {self._range.end} was planned, the log ends at {end}{self._trouble}"
            )


def _gone() -> set[int]:
    from confluent_kafka import KafkaError

    return {
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.UNKNOWN_TOPIC_ID,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError._UNKNOWN_PARTITION,
    }


def _offset(message: Message) -> int:
    return message.offset() or 0  # None is only said of messages that are to be produced


def _batch(messages: list[Message], partition: int, columns: Sequence[str]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([_column(name, messages, partition) for name in columns], names=list(columns))


def _column(name: str, messages: list[Message], partition: int) -> pa.Array:
    match name:
        case "partition":
            return pa.repeat(pa.scalar(partition, pa.int32()), len(messages))
        case "offset":
            return pa.array([message.offset() for message in messages], pa.int64())
        case "timestamp":
            return _timestamps(messages)
        case "value":
            return pa.array([message.value() for message in messages], pa.binary())
        case "key":
            return pa.array([message.key() for message in messages], pa.binary())
    return _headers(messages)


def _timestamps(messages: list[Message]) -> pa.Array:
    stamps = [message.timestamp()[1] for message in messages]
    if max(stamps) > _LONGEST_MS or min(stamps) < -_LONGEST_MS:
        stamps = [max(-_LONGEST_MS, min(stamp, _LONGEST_MS)) for stamp in stamps]
    return pa.array(stamps, pa.timestamp("ms", "UTC")).cast(pa.timestamp("us", "UTC"))


def _headers(messages: list[Message]) -> pa.Array:
    from confluent_kafka import Message

    rows: list[Any] = []
    remaining = iter(messages)
    while len(rows) < len(messages):
        try:
            # Of a name that is not UTF-8 this gives a tuple with a null pointer, and an exception. A warm call by
            # Python 3.11 or later does not look for that, and the process crashes: `map` does. Nor look twice.
            rows.extend(map(Message.headers, remaining))
        except (SystemError, UnicodeDecodeError):
            rows.append(UNREADABLE)
    return pa.array(rows, HEADERS)
