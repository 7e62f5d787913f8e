"""Records of exactly the offsets that were planned, read by librdkafka inside the task that lands them.

Spark plans and runs the tasks; records never pass its JVM. A reader sees committed records only. It is done when it has
seen the last offset of its range or one behind it, or when the brokers report that the log goes no further: ranges may
end in transaction markers, aborted records and compacted gaps, which are never delivered.
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import pyarrow as pa

from s3lake.errors import ConfigurationError, KafkaUnavailableError, TransientError
from s3lake.source.kafka.client_properties import REMEDY, ErrorLog, to_librdkafka
from s3lake.source.kafka.columns import choose_take
from s3lake.source.kafka.librdkafka import MOST, Consumer, KafkaRequestError
from s3lake.source.record_batches import OffsetRange

FIRST_ROWS = 100
"""Rows of a task's first batch, before the size of records is known: more arrive while a batch is taken."""
BATCH_BYTES = 16 * 2**20
QUEUE_BYTES = 32 * 2**20
"""How much librdkafka reads ahead at most, in addition to the current batch."""

SILENCE_S = 30.0
"""How long nothing may come before the brokers are asked whether they are there; they have as long for an answer."""

_INTRODUCED_MS = 2000
_WAIT_MS = 100  # short, because a gap at a range's end is waited out
SILENCES = 20
"""How many silences a range may have: gigabytes of aborted records are read without a word."""

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
    "topic.metadata.propagation.max.ms": "10000",  # a topic that was planned exists, or was deleted
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

_GONE = {"UNKNOWN_TOPIC_OR_PART", "UNKNOWN_TOPIC_ID", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION"}


@dataclass(frozen=True)
class KafkaReader:
    """The cluster as a task reaches it: plain values that travel to workers.

    Attributes:
        properties: the configuration's properties, secrets included: see `s3lake.source.kafka.client_properties`.
    """

    bootstrap_servers: str
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def consumer_settings(self) -> dict[str, str]:
        """Librdkafka's properties of a reader.

        Raises:
            ConfigurationError: a property has a meaning for Java's client only.
        """
        properties = to_librdkafka(self.properties)
        return {**_DEFAULTS, **properties, **_FIXED, "bootstrap.servers": self.bootstrap_servers}

    def batches(self, topic: str, ranges: Iterable[OffsetRange], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """See `Reader.batches`.

        Raises:
            KafkaUnavailableError: the brokers did not answer in time.
            TransientError: Kafka expired what was being read, or the topic was deleted: planning again reports which.
            ConfigurationError: the brokers refuse to let this user read.
        """
        settings = tuple(sorted(self.consumer_settings.items()))
        rows = FIRST_ROWS
        for number, part in enumerate(ranges):
            reading = _RangeReader(settings, self.bootstrap_servers, topic, part, rows)
            if number == 0:
                reading.locate_topic()
            yield from reading.batches(columns)
            rows = reading.rows


@functools.lru_cache(maxsize=4)
def get_consumer(pid: int, settings: tuple[tuple[str, str], ...]) -> tuple[Consumer, ErrorLog]:  # noqa: ARG001
    """Return the consumer of this process (`pid`: none survives a fork) with these settings, and the log of its errors.

    It is kept, so that a warm worker keeps its connections.
    """
    log = ErrorLog(dict(settings))
    return Consumer(dict(settings), log.record), log


class _RangeReader:
    """One range on its way.

    Attributes:
        rows: the number of rows that the next batch may have. Each batch costs, so the next range begins with it too.
    """

    def __init__(
        self, settings: tuple[tuple[str, str], ...], servers: str, topic: str, range: OffsetRange, rows: int
    ) -> None:
        self.rows = rows
        self._consumer, self._log = get_consumer(os.getpid(), settings)
        self._settings, self._servers = settings, servers
        self._topic, self._range = topic, range
        self._next = range.start

    def locate_topic(self) -> None:
        """Let the client ask for the topic's leaders now: for a topic that is only assigned it asks a second later."""
        with suppress(KafkaRequestError):  # reading meets the same, and tells what it means
            self._consumer.read_log_end(self._topic, self._range.partition, _INTRODUCED_MS)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        if self._log.name in _GONE:
            self._log.clear()  # another topic was
        self._assign()
        take, silent, asked = choose_take(), time.monotonic(), 0
        try:
            while self._next < self._range.end:
                is_silent = True
                with self._consumer.poll(min(self.rows, self._range.end - self._next), _WAIT_MS) as messages:
                    while messages:
                        remaining = self._range._replace(start=self._next)
                        batch, self._next, size = take(messages, remaining, columns, BATCH_BYTES)
                        if batch is not None:
                            is_silent = False
                            self.rows = max(1, min(MOST, BATCH_BYTES * batch.num_rows // max(1, size)))
                            yield batch
                        elif messages:
                            self._handle_error(*messages.take_error())
                if not is_silent:
                    silent, asked = time.monotonic(), 0
                elif self._log.name in _GONE:
                    self._handle_error(self._log.name, self._log.text)
                elif time.monotonic() - silent >= SILENCE_S:
                    asked += 1
                    self._check_brokers(asked)
                    if asked == 1:
                        self._renew_client()
                    silent = time.monotonic()
            self._log.clear()  # only now is it over: some of it is reported once, and not for every range
        finally:
            self._consumer.unassign()

    def _assign(self) -> None:
        self._consumer.assign(self._topic, self._range.partition, self._next)

    def _renew_client(self) -> None:
        """Continue with a new client, because the log has records and this one gets none.

        One that has read a topic of this name which was deleted may ignore where the present one is: the epoch of its
        leader is lower, so librdkafka (2.16) takes the brokers' answer for an outdated one, and never asks for records.
        """
        self._consumer.close()
        get_consumer.cache_clear()
        self._consumer, self._log = get_consumer(os.getpid(), self._settings)
        self.locate_topic()
        self._assign()

    def _handle_error(self, name: str, text: str) -> None:
        where = f"topic {self._topic!r}, partition {self._range.partition}"
        if name == "GROUP_AUTHORIZATION_FAILED":  # there is no group to be let into
            return
        if name == "_AUTO_OFFSET_RESET":
            raise TransientError(
                f"{where}: Kafka has no record at offset {self._next} any more: it expired, or the log was cut off, "
                "while it was being read; planning again"
            )
        if name in _GONE:
            raise TransientError(f"{where} is not there any more: {text}; planning again")
        if name in ("TOPIC_AUTHORIZATION_FAILED", "_AUTHENTICATION"):
            raise ConfigurationError(
                f"Kafka at {self._servers} does not let this user read {where}: {name}: {text}. To go "
                "on: allow it to Read and Describe the topic, or correct kafka.properties"
            )
        # Whatever librdkafka gives up on, such as a corrupt batch, it would go on behind.
        raise TransientError(
            f"{where}, offset {self._next}: Kafka's answer cannot be read: {name}: {text}; nothing of "
            "this micro-batch is visible. If this stays so, the log is damaged there"
        )

    def _check_brokers(self, asked: int) -> None:
        """Nothing came for long: whether the brokers are there, and have what was planned."""
        silent = (
            f"Kafka at {self._servers} did not give the records of topic {self._topic!r}, partition "
            f"{self._range.partition}, from offset {self._next} on within {asked * SILENCE_S:g} s"
        )
        try:
            end = self._consumer.read_log_end(self._topic, self._range.partition, round(SILENCE_S * 1000))
        except KafkaRequestError as error:
            raise KafkaUnavailableError(f"{silent}: {error}{self._log}. {REMEDY}") from None
        if end < self._range.end or asked >= SILENCES:
            raise KafkaUnavailableError(f"{silent}; {self._range.end} was planned, the log ends at {end}{self._log}")
