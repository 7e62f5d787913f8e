"""What verify reads of Kafka: the committed records of given offsets, as any read_committed consumer gets them.

Nothing is committed to a consumer group. The client is librdkafka, as in landing; the loop that reads is verify's own.
"""

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType  # type: ignore[attr-defined]

from s3lake.errors import ConfigurationError, KafkaUnavailableError
from s3lake.lake.verify.log import UNREADABLE, Headers, LogStartMovedError, Records
from s3lake.source.kafka.client_properties import ErrorLog, to_librdkafka
from s3lake.source.kafka.offsets import KafkaOffsets

_MOST = 10_000
_MOST_BYTES = 32_000_000
_INTRODUCED_S = 2.0
_EXPIRED = {KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE}
_REFUSED = {KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.GROUP_AUTHORIZATION_FAILED}


class KafkaLog:
    """`Log` of a real cluster.

    Args:
        properties: the configuration's properties, see `s3lake.source.kafka.client_properties`.
        patience_s: how long reading goes on without a record or an end before it is given up.
    """

    def __init__(self, bootstrap_servers: str, properties: Mapping[str, str], patience_s: float = 30.0) -> None:
        self._servers, self._patience_s = bootstrap_servers, patience_s
        self._client: dict[str, Any] = {**to_librdkafka(properties), "bootstrap.servers": bootstrap_servers}
        offsets = KafkaOffsets(bootstrap_servers, properties, timeout_s=patience_s)
        self.snapshot, self.find_offset_since = offsets.snapshot, offsets.find_offset_since
        self._open: Any = None
        self._compacted: dict[str, bool] = {}
        self._log = ErrorLog(self._client)

    def __enter__(self) -> "KafkaLog":
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    def is_compacted(self, topic: str) -> bool:
        """See `Log.is_compacted`; a user who may not read the topic's settings gets no for an answer."""
        if topic not in self._compacted:
            resource = ConfigResource(ResourceType.TOPIC, topic)
            admin = AdminClient(self._client, logger=self._log)
            try:
                settings = admin.describe_configs([resource], request_timeout=self._patience_s)[resource].result()
                self._compacted[topic] = "compact" in (settings["cleanup.policy"].value or "")
            except KafkaException:
                self._compacted[topic] = False
        return self._compacted[topic]

    def read(self, topic: str, ranges: Mapping[int, tuple[int, int]], parts: Collection[str] = ()) -> Iterator[Records]:
        ends = {partition: end for partition, (start, end) in ranges.items() if start < end}
        if not ends:
            return
        positions = {partition: ranges[partition][0] for partition in ends}
        consumer = self._open_consumer()
        with suppress(KafkaException):  # reading meets the same, and tells what it means
            consumer.list_topics(topic, timeout=_INTRODUCED_S)  # of one that is only assigned it asks a second later
        consumer.assign([TopicPartition(topic, *start) for start in positions.items()])
        try:
            most, last_answer = _MOST // 10, time.monotonic()
            while ends:
                remaining = sum(end - positions[partition] for partition, end in ends.items())
                messages = consumer.consume(max(1, min(most, remaining)), timeout=0.1)
                batches: dict[int, list[Any]] = {}
                ended: set[int] = set()
                for message in messages:
                    if message.error() is not None:
                        self._check_error(message, ends, ended)
                    elif message.partition() in ends:
                        batches.setdefault(message.partition(), []).append(message)
                if batches or ended:
                    last_answer = time.monotonic()
                elif time.monotonic() - last_answer > self._patience_s:
                    because = f": {self._log.text}" if self._log.text else ""
                    waiting = (f"partition {partition} up to {end}" for partition, end in sorted(ends.items())[:5])
                    raise KafkaUnavailableError(
                        f"Kafka at {self._servers} gave no record of topic {topic!r} for {self._patience_s:g} s"
                        f"{because}; still to come: {', '.join(waiting)}. Check that the brokers are up and that their "
                        "leaders can be reached from here."
                    )
                size = 0
                for partition, batch in batches.items():
                    end, positions[partition] = ends[partition], batch[-1].offset() + 1
                    if batch[-1].offset() >= end - 1:
                        ended.add(partition)
                        batch = [message for message in batch if message.offset() < end]
                    if batch:
                        records = _to_records(partition, batch, parts)
                        size += sum(map(len, filter(None, records.values)))
                        yield records
                if batches:
                    # Messages are large or small: what is held at once shall be neither.
                    most = max(1, min(_MOST, _MOST_BYTES * len(messages) // max(1, size)))
                for partition in ended:
                    del ends[partition]
                if ended and ends:
                    consumer.incremental_unassign([TopicPartition(topic, partition) for partition in ended])
        finally:
            consumer.unassign()

    def _open_consumer(self) -> Any:
        if self._open is None:
            settings: dict[str, Any] = {
                **self._client,
                "group.id": "s3lake-verify",  # must be given; this consumer never joins it
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "auto.offset.reset": "error",
                # A range may end in transaction markers, behind which no record ever comes.
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 10,
                "queued.max.messages.kbytes": 32_768,
                "error_cb": self._log.record_error,
            }
            self._open = Consumer(settings, logger=self._log)
        return self._open

    def _check_error(self, message: Any, ends: Mapping[int, int], ended: set[int]) -> None:
        error, partition = message.error(), message.partition()
        if error.code() == KafkaError._PARTITION_EOF:
            if partition in ends and message.offset() >= ends[partition]:
                ended.add(partition)
        elif error.code() in _EXPIRED:
            raise LogStartMovedError(error.str())
        elif error.code() in _REFUSED:
            raise ConfigurationError(
                f"Kafka at {self._servers} does not let this user read: {error.str()}. To go on: allow Read on the "
                "topic."
            )
        else:
            self._log.record_error(error)


def _to_records(partition: int, messages: Sequence[Any], parts: Collection[str]) -> Records:
    return Records(
        partition,
        [message.offset() for message in messages],
        [message.timestamp()[1] for message in messages],
        [message.value() for message in messages],
        [message.key() for message in messages] if "key" in parts else (),
        _read_headers(messages) if "headers" in parts else (),
    )


def _read_headers(messages: Sequence[Any]) -> list[Headers]:
    """Decode headers, each message's once: a second look at a name that is not UTF-8 crashes the process.

    So does a first look by Python's own call (see the reader), but not by `map`.
    """
    headers: list[Headers] = []
    remaining = iter(messages)
    while len(headers) < len(messages):
        try:
            headers.extend(map(Message.headers, remaining))  # type: ignore[arg-type]
        except (SystemError, UnicodeDecodeError):
            headers.append(UNREADABLE)
    return [one or () for one in headers]
