"""Questions to the brokers, through librdkafka: offsets, never messages, and always an answer or an error in time.

The log end is the last stable offset: what a read_committed reader gets to see. Commit markers carry the broker's
clock, so the marker of a back-dated transaction answers for all later hours (design: architecture.md section 6).
"""

import functools
import os
import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any, TypeVar

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec, TopicMetadata  # type: ignore[attr-defined]

from s3lake import hours
from s3lake.errors import ConfigurationError, KafkaUnavailableError, S3LakeError
from s3lake.source.kafka import epochs
from s3lake.source.kafka.age import oldest_s
from s3lake.source.kafka.log import Log
from s3lake.source.kafka.properties import REMEDY, client_properties, without_secrets
from s3lake.source.offsets import LogRange, Snapshot, Waiting

A = TypeVar("A")

_INTERNAL = re.compile(r"__.+")
_PAUSE_S = 0.1
_SETTINGS = {
    "client.id": "s3lake",
    # The client outlives the brokers' absences, and shall notice within a call that they are back (default: 10 s).
    "reconnect.backoff.max.ms": "1000",
}
_REFUSALS = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.TOPIC_EXCEPTION,
    KafkaError.UNSUPPORTED_VERSION,
}
_GONE = {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.UNKNOWN_TOPIC_ID, KafkaError._UNKNOWN_TOPIC}
# A leader is being elected, or has just begun.
_AGAIN = {
    KafkaError._NOENT,  # librdkafka's own, when no partition has a leader: the topic may just have been deleted
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.OFFSET_NOT_AVAILABLE,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.REPLICA_NOT_AVAILABLE,
    KafkaError.BROKER_NOT_AVAILABLE,
    KafkaError.KAFKA_STORAGE_ERROR,
}


class KafkaOffsets:
    """`Offsets` of a real cluster.

    Objects are cheap: those with the same settings share one client in a process. Every question raises
    KafkaUnavailableError where the brokers do not answer in time, and ConfigurationError where they refuse to at all.

    Args:
        properties: as in the configuration, see `s3lake.source.kafka.properties`.
        timeout_s: within which every method answers or raises.

    Raises:
        ConfigurationError: a property cannot be translated; what librdkafka itself refuses shows at the first question.
    """

    def __init__(
        self, bootstrap_servers: str, properties: Mapping[str, str] | None = None, timeout_s: float = 5.0
    ) -> None:
        self.bootstrap_servers = bootstrap_servers
        self.timeout_s = timeout_s
        self._settings = tuple(sorted({**_SETTINGS, **client_properties(properties or {})}.items()))

    def __repr__(self) -> str:
        return f"KafkaOffsets({self.bootstrap_servers!r}, timeout_s={self.timeout_s})"

    def snapshot(self, topic: str, hour: str, *, known: bool = False) -> Snapshot:
        start, end = OffsetSpec.for_timestamp(hours.start_ms(hour)), OffsetSpec.for_timestamp(hours.end_ms(hour))

        def question(ask: _Asking) -> Snapshot:
            topic_id, partitions = ask.describe(topic, known=known)
            # Before the timestamps: where nobody has one the end stands for it, and that must not have moved on since.
            edges = ask.ends(topic, partitions)
            at, next = ask.stamped_offsets(topic, partitions, start, end)
            if topic_id and ask.describe(topic, known=known)[0] != topic_id:
                # Offsets come without an id: those of a new topic must not go under the id of the old one.
                raise _Again("the topic was deleted and created again meanwhile")
            ranges = {}
            for partition, (low, last) in edges.items():
                first = _clamped(at[partition][0], last)
                offset, stamp_ms = next[partition]
                following = max(first, _clamped(offset, last))
                stamp = stamp_ms if 0 <= offset < last else None
                ranges[partition] = LogRange(low, last, first, following, ask.epochs.get(partition), stamp)
            return Snapshot(topic_id, ranges)

        return self._answer(f"the offsets of topic {topic!r}", question)

    def ranges(self, topic: str) -> Mapping[int, tuple[int, int]]:
        return self._answer(f"the offsets of topic {topic!r}", lambda ask: ask.ends(topic, ask.describe(topic)[1]))

    def ends(self, topics: Collection[str]) -> Mapping[str, Mapping[int, int]]:
        return self._answer(f"the offsets of {len(topics)} topics", lambda ask: ask.ends_of_all(topics))

    def first_since(self, topic: str, epoch_ms: int) -> Mapping[int, int]:
        def question(ask: _Asking) -> Mapping[int, int]:
            _, partitions = ask.describe(topic)
            ends = ask.ends(topic, partitions)
            (since,) = ask.offsets(topic, partitions, OffsetSpec.for_timestamp(epoch_ms))
            return {partition: _clamped(since[partition], end) for partition, (_, end) in ends.items()}

        return self._answer(f"the offsets of topic {topic!r}", question)

    def waiting(self, topic: str, reached: Mapping[int, int], *, begin_ms: int, now_ms: int) -> Waiting:
        def question(ask: _Asking) -> Waiting:
            _, partitions = ask.describe(topic)
            ends = ask.ends(topic, partitions)
            begin = {}
            if not reached and begin_ms:
                (since,) = ask.offsets(topic, partitions, OffsetSpec.for_timestamp(begin_ms))
                begin = {partition: _clamped(since[partition], end) for partition, (_, end) in ends.items()}
            at = {partition: max(low, {**begin, **reached}.get(partition, 0)) for partition, (low, _) in ends.items()}
            behind = {partition: at[partition] for partition, (_, end) in ends.items() if end > at[partition]}
            records = sum(ends[partition][1] - first for partition, first in behind.items())
            oldest = oldest_s(ask, topic, behind, now_ms) if behind else 0.0
            return Waiting(records, oldest, {partition: end for partition, (_, end) in ends.items()})

        return self._answer(f"what waits in topic {topic!r}", question)

    def cut(self, topic: str, reached: Mapping[int, tuple[int, int]]) -> Mapping[int, int]:
        settings = {**dict(self._settings), "bootstrap.servers": self.bootstrap_servers}
        return epochs.cut(settings, topic, reached, self.timeout_s)

    def topics(self) -> list[str]:
        return self._answer("the names of topics", _Asking.names)

    def _answer(self, what: str, question: Callable[["_Asking"], A]) -> A:
        client, log = _client(os.getpid(), self.bootstrap_servers, self._settings)
        asking = _Asking(client, log, self.bootstrap_servers, what, self.timeout_s)
        while True:
            try:
                answer = question(asking)
            except _Again as reason:
                asking.pause(str(reason))
            else:
                # Only now is an earlier outage over: librdkafka says once, and not again with every question, that
                # nobody gives it a token.
                client.poll(0)
                log.last = ""
                return answer


class _Again(Exception):
    """The topic is changing just now: the whole question has to be asked anew."""


class _Gone(_Again):
    """The topic, or a partition that it had a moment ago, is not there (any more)."""


class _Asking:
    """One question: as many requests as it takes, before one deadline."""

    def __init__(self, client: AdminClient, log: Log, servers: str, what: str, timeout_s: float) -> None:
        self._client, self._log, self._servers, self._what = client, log, servers, what
        self._timeout_s = timeout_s
        self._deadline = time.monotonic() + timeout_s
        self.epochs: dict[int, int] = {}  # of the leaders that told the ends

    def describe(self, topic: str, *, known: bool = False) -> tuple[str, list[int]]:
        """Id and partitions of the topic; nothing of both when there is none. A `known` one is waited for."""
        while True:
            asked = self._client.describe_topics(TopicCollection([topic]), request_timeout=self._left())
            try:
                description = self._result(asked[topic])
            except _Gone:
                if not known or time.monotonic() + 5 * _PAUSE_S >= self._deadline:
                    return "", []
                time.sleep(_PAUSE_S)
            else:
                return str(description.topic_id), sorted(partition.id for partition in description.partitions)

    def ends(self, topic: str, partitions: Iterable[int]) -> dict[int, tuple[int, int]]:
        """Log start and last stable offset."""
        low, end = self.offsets(topic, partitions, OffsetSpec.earliest(), OffsetSpec.latest())  # type: ignore[no-untyped-call]
        # Asked at once, answered one after the other: the log start may have gone on past the end of a moment ago.
        return {partition: (low[partition], max(low[partition], end[partition])) for partition in end}

    def offsets(self, topic: str, partitions: Iterable[int], *specs: OffsetSpec) -> list[dict[int, int]]:
        """What is at each of `specs`, for all partitions in one request per broker; -1 where there is nothing."""
        answered = self.stamped_offsets(topic, partitions, *specs)
        return [{one: offset for one, (offset, _) in answers.items()} for answers in answered]

    def stamped_offsets(
        self, topic: str, partitions: Iterable[int], *specs: OffsetSpec
    ) -> list[dict[int, tuple[int, int]]]:
        """Return the offset and the timestamp of the record at each of `specs`; -1 for both if there is none."""
        keys = [TopicPartition(topic, partition) for partition in partitions]
        if not keys:
            return [{} for _ in specs]
        asked = [
            self._client.list_offsets(
                dict.fromkeys(keys, spec),
                isolation_level=IsolationLevel.READ_COMMITTED,
                request_timeout=self._left(),
            )
            for spec in specs
        ]
        answered = [{key.partition: self._result(future) for key, future in answers.items()} for answers in asked]
        if OffsetSpec.latest() in specs:  # type: ignore[no-untyped-call]
            latest = answered[specs.index(OffsetSpec.latest())]  # type: ignore[no-untyped-call]
            self.epochs = {one: info.leader_epoch for one, info in latest.items() if info.leader_epoch is not None}
        return [{one: (info.offset, info.timestamp) for one, info in answers.items()} for answers in answered]

    def ends_of_all(self, topics: Collection[str]) -> dict[str, dict[int, int]]:
        """Last stable offset of every topic-partition, in one request per broker."""
        clear = {name: one.partitions for name, one in self._metadata().items() if one.error is None}
        keys = [TopicPartition(topic, number) for topic in topics for number in clear.get(topic, ())]
        if not keys:
            return {}
        asked = self._client.list_offsets(
            dict.fromkeys(keys, OffsetSpec.latest()),  # type: ignore[arg-type, no-untyped-call]
            isolation_level=IsolationLevel.READ_COMMITTED,
            request_timeout=self._left(),
        )
        found: dict[str, dict[int, int]] = {}
        untold: dict[str, Exception] = {}
        for key, future in asked.items():
            try:
                found.setdefault(key.topic, {})[key.partition] = self._result(future).offset
            except (S3LakeError, _Again) as error:
                untold[key.topic] = error
        if len(untold) == len(found.keys() | untold.keys()):
            raise next(iter(untold.values()))
        return {topic: ends for topic, ends in found.items() if topic not in untold}

    def names(self) -> list[str]:
        """Of the topics that users made."""
        return sorted(name for name in self._metadata() if not _INTERNAL.fullmatch(name))

    def _metadata(self) -> Mapping[str, TopicMetadata]:
        """Of every topic that there is."""
        try:
            return self._client.list_topics(timeout=self._left()).topics
        except KafkaException as error:
            raise self._meaning(error.args[0]) from None

    def pause(self, why: str) -> None:
        """Before asking again."""
        if time.monotonic() + _PAUSE_S >= self._deadline:
            raise self._unavailable(why)
        time.sleep(_PAUSE_S)

    def _left(self) -> float:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise self._unavailable("no answer")
        return left

    def _result(self, future: "Future[Any]") -> Any:
        try:
            # librdkafka keeps the deadline itself; the rest is for its thread to tell.
            return future.result(max(0.0, self._deadline - time.monotonic()) + 0.25)
        except KafkaException as error:
            raise self._meaning(error.args[0]) from None
        except FutureTimeoutError:
            raise self._unavailable("no answer") from None

    def _meaning(self, error: KafkaError) -> Exception:
        if error.code() in _GONE:
            return _Gone(error.str())
        if error.code() in _AGAIN:
            return _Again(error.str())
        if error.code() in _REFUSALS:
            return ConfigurationError(
                f"Kafka at {self._servers} refuses to tell {self._what}: {error.name()}: {error.str()}. To go on: "
                "allow this user to Describe the topic, or correct the topic's name or kafka.properties."
            )
        return self._unavailable(f"{error.name()}: {error.str()}")

    def _unavailable(self, why: str) -> KafkaUnavailableError:
        self._client.poll(0)  # the reason for a connection's end, a wrong password say, is only told there
        because = f"{why}; {self._log.last}" if self._log.last else why
        return KafkaUnavailableError(
            f"Kafka at {self._servers} did not tell {self._what} within {self._timeout_s:g} s: {because}. {REMEDY}."
        )


@functools.lru_cache(maxsize=16)
def _client(pid: int, servers: str, settings: tuple[tuple[str, str], ...]) -> tuple[AdminClient, Log]:  # noqa: ARG001
    """One client per process and settings: Dagster makes resources anew for every tick of a sensor.

    Args:
        pid: of this process, because a client does not survive a fork.
        servers: the bootstrap servers.
        settings: librdkafka's properties.
    """
    log = Log(dict(settings))
    try:
        given: dict[str, Any] = {**dict(settings), "bootstrap.servers": servers, "error_cb": log.error}
        client = AdminClient(given, logger=log)
    except KafkaException as error:
        reason = without_secrets(error.args[0].str(), dict(settings))
        raise ConfigurationError(
            f"kafka.properties: librdkafka refuses them: {reason}. To go on: correct the value, or take out a name "
            "that only Java's client knows."
        ) from None
    return client, log


def _clamped(offset: int, end: int) -> int:
    """Where a timestamp is: at the end when nothing has it, and never past what readers get to see."""
    return end if offset < 0 else min(offset, end)
