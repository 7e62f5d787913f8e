"""Questions to the brokers, through librdkafka: offsets, never messages, and always an answer or an error in time.

The log end is the last stable offset: what a read_committed reader gets to see. Commit markers carry the broker's
clock, so the marker of a back-dated transaction answers for all later hours.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import TYPE_CHECKING, Any, TypeVar

from confluent_kafka import OFFSET_INVALID, IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec, TopicMetadata  # type: ignore[attr-defined]

from s3lake import hours
from s3lake.errors import ConfigurationError, KafkaUnavailableError, S3LakeError
from s3lake.source.kafka import epochs
from s3lake.source.kafka.answers import clamp_offset, read_description, to_log_range
from s3lake.source.kafka.client_properties import REMEDY, ErrorLog, hide_secrets, to_librdkafka
from s3lake.source.offsets import Lag, TopicOffsets
from s3lake.text.quantities import format_count

if TYPE_CHECKING:
    from s3lake.source.kafka.reader import KafkaReader

A = TypeVar("A")

_EARLIEST, _LATEST = OffsetSpec.earliest(), OffsetSpec.latest()  # type: ignore[no-untyped-call]
_PAUSE_S = 0.1
_SETTINGS = {
    "client.id": "s3lake",
    # The client outlives outages of the brokers, and shall notice within a call that they are back (default: 10 s).
    "reconnect.backoff.max.ms": "1000",
}
_REFUSALS = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.TOPIC_EXCEPTION,
    KafkaError.UNSUPPORTED_VERSION,
}
_MISSING = {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.UNKNOWN_TOPIC_ID, KafkaError._UNKNOWN_TOPIC}
# A leader is being elected, or has just begun.
_TRANSIENT = {
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
_AGES_S = (10, 30, 120, 600, 3_600, 21_600, 86_400, 604_800)
"""Between which the age of a record is looked for."""


class KafkaSource:
    """`Source` of a cluster; `settings` is `kafka` of a configuration."""

    def __init__(self, settings: Mapping[str, Any], timeout_s: float) -> None:
        self._settings = settings
        self.place = f"kafka {settings['bootstrap_servers']}"
        self.offsets = KafkaOffsets(**settings, timeout_s=timeout_s)

    @property
    def reader(self) -> KafkaReader:
        from s3lake.source.kafka.reader import KafkaReader  # and Arrow, which questions do not need

        return KafkaReader(**self._settings)


class KafkaOffsets:
    """`Offsets` of a real cluster.

    Objects are cheap: those with the same settings share one client in a process. Every question raises
    KafkaUnavailableError if the brokers do not answer in time, and ConfigurationError if they refuse to.

    Args:
        properties: the configuration's properties, see `s3lake.source.kafka.client_properties`.
        timeout_s: the time within which each method returns or raises, in seconds.

    Raises:
        ConfigurationError: a property cannot be translated; what librdkafka itself refuses shows at the first question.
    """

    def __init__(
        self, bootstrap_servers: str, properties: Mapping[str, str] | None = None, timeout_s: float = 5.0
    ) -> None:
        self.bootstrap_servers = bootstrap_servers
        self.timeout_s = timeout_s
        self._settings = tuple(sorted({**_SETTINGS, **to_librdkafka(properties or {})}.items()))

    def __repr__(self) -> str:
        return f"KafkaOffsets({self.bootstrap_servers!r}, timeout_s={self.timeout_s})"

    @property
    def admin(self) -> AdminClient:
        """The client that asks, which all objects with the same settings share.

        Raises:
            ConfigurationError: librdkafka refuses the properties.
        """
        return _client(os.getpid(), self.bootstrap_servers, self._settings)[0]

    def snapshot(self, topic: str, hour: str, *, existed: bool = False) -> TopicOffsets:
        start, end = OffsetSpec.for_timestamp(hours.start_ms(hour)), OffsetSpec.for_timestamp(hours.end_ms(hour))

        def question(ask: _Query) -> TopicOffsets:
            topic_id, partitions = ask.describe(topic, existed=existed)
            # Before the timestamps: if none is late enough the end is the answer, which must not have moved on since.
            bounds = ask.read_bounds(topic, partitions)
            at, next = ask.read_stamped_offsets(topic, partitions, start, end)
            if topic_id and ask.describe(topic, existed=existed)[0] != topic_id:
                # Offsets come without an id: a new topic's must not get the id of the old one.
                raise _Retry("the topic was deleted and created again meanwhile")
            ranges = {
                partition: to_log_range(*bound, at[partition][0], *next[partition], ask.epochs.get(partition))
                for partition, bound in bounds.items()
            }
            return TopicOffsets(topic_id, ranges)

        return self._ask(f"the offsets of topic {topic!r}", question)

    def snapshots(self, topics: Collection[str], hour: str) -> Mapping[str, TopicOffsets]:
        specs = OffsetSpec.for_timestamp(hours.start_ms(hour)), OffsetSpec.for_timestamp(hours.end_ms(hour))

        def question(ask: _Query) -> Mapping[str, TopicOffsets]:
            described = ask.describe_many(topics)
            keys = [TopicPartition(topic, number) for topic, (_, numbers) in described.items() for number in numbers]
            # In the order of `snapshot`, and for its reasons.
            answers = [ask.list_many(keys, spec) for spec in (_EARLIEST, _LATEST, *specs)] if keys else []
            offsets = {}
            for topic, (topic_id, numbers) in ask.describe_many(described).items():
                is_answered = all((topic, number) in of for number in numbers for of in answers)
                if is_answered and described[topic] == (topic_id, numbers):
                    ranges = {}
                    for number in numbers:
                        low, last, at, next = (of[topic, number] for of in answers)
                        end = max(low.offset, last.offset)  # see `read_bounds`
                        of_next = next.offset, next.timestamp
                        ranges[number] = to_log_range(low.offset, end, at.offset, *of_next, last.leader_epoch)
                    offsets[topic] = TopicOffsets(topic_id, ranges)
            return offsets

        return self._ask(f"the offsets of {format_count(len(topics), 'topics')}", question)

    def log_ranges(self, topic: str) -> Mapping[int, tuple[int, int]]:
        return self._ask(f"the offsets of topic {topic!r}", lambda ask: ask.read_bounds(topic, ask.describe(topic)[1]))

    def log_ends(self, topics: Collection[str]) -> Mapping[str, Mapping[int, int]]:
        return self._ask(f"the offsets of {format_count(len(topics), 'topics')}", lambda ask: ask.read_log_ends(topics))

    def find_offset_since(self, topic: str, epoch_ms: int) -> Mapping[int, int]:
        def question(ask: _Query) -> Mapping[int, int]:
            _, partitions = ask.describe(topic)
            return ask.find_offset_since(topic, ask.read_bounds(topic, partitions), epoch_ms)

        return self._ask(f"the offsets of topic {topic!r}", question)

    def lag(self, topic: str, reached: Mapping[int, int], *, begin_ms: int, now_ms: int) -> Lag:
        def question(ask: _Query) -> Lag:
            bounds = ask.read_bounds(topic, ask.describe(topic)[1])
            begin = reached
            if not reached and begin_ms:
                begin = ask.find_offset_since(topic, bounds, begin_ms)
            at = {partition: max(low, begin.get(partition, 0)) for partition, (low, _) in bounds.items()}
            behind = {partition: at[partition] for partition, (_, end) in bounds.items() if end > at[partition]}
            records = sum(bounds[partition][1] - first for partition, first in behind.items())
            oldest_s = find_oldest_age_s(ask, topic, behind, now_ms) if behind else 0.0
            return Lag(records, oldest_s, {partition: end for partition, (_, end) in bounds.items()})

        return self._ask(f"what waits in topic {topic!r}", question)

    def find_truncations(self, topic: str, reached: Mapping[int, tuple[int, int]]) -> Mapping[int, int]:
        settings = {**dict(self._settings), "bootstrap.servers": self.bootstrap_servers}
        return epochs.find_truncations(settings, topic, reached, self.timeout_s)

    def topics(self) -> list[str]:
        names = self._ask("the names of topics", _Query.read_metadata)
        return sorted(name for name in names if not re.fullmatch("__.+", name))  # others are Kafka's own

    def _ask(self, what: str, question: Callable[[_Query], A]) -> A:
        client, log = _client(os.getpid(), self.bootstrap_servers, self._settings)
        query = _Query(client, log, self.bootstrap_servers, what, self.timeout_s)
        # Not a retry of tenacity: one deadline is for all requests of a question, and the query keeps it.
        while True:
            try:
                answer = question(query)
            except _Retry as reason:
                query.pause(str(reason))
            else:
                # Only now is an earlier outage over: librdkafka reports once, and not again with every question, that
                # it was not given a token.
                client.poll(0)
                log.clear()
                return answer


class _Retry(Exception):
    """The topic is changing just now: the whole question has to be asked again."""


class _MissingTopic(_Retry):
    """The topic, or a partition that it had a moment ago, is not there (any more)."""


class _Query:
    """One question: as many requests as it takes, before one deadline."""

    def __init__(self, client: AdminClient, log: ErrorLog, servers: str, what: str, timeout_s: float) -> None:
        self._client, self._log, self._servers, self._what = client, log, servers, what
        self._timeout_s = timeout_s
        self._deadline = time.monotonic() + timeout_s
        self.epochs: dict[int, int] = {}  # of the leaders that reported the ends

    def describe(self, topic: str, *, existed: bool = False) -> tuple[str, list[int]]:
        """Return the topic's id and partitions, "" and [] if there is none. One that `existed` is waited for."""
        while True:  # until the deadline of the question, see `_ask`
            asked = self._client.describe_topics(TopicCollection([topic]), request_timeout=self._remaining_s())
            try:
                description = self._await_result(asked[topic])
            except _MissingTopic:
                if not existed or time.monotonic() + 5 * _PAUSE_S >= self._deadline:
                    return "", []
                time.sleep(_PAUSE_S)
            else:
                return read_description(description)

    def describe_many(self, topics: Collection[str]) -> dict[str, tuple[str, list[int]]]:
        """Return the id and the partitions of each topic that exists and can be described just now."""
        asked = self._client.describe_topics(TopicCollection([*topics]), request_timeout=self._remaining_s())
        described = {}
        for topic, future in asked.items():
            with contextlib.suppress(_Retry):
                described[topic] = read_description(self._await_result(future))
        return described

    def list_many(self, keys: list[TopicPartition], spec: OffsetSpec) -> dict[tuple[str, int], Any]:
        """Return what brokers answer at `spec`, by topic and partition. What they do not answer is left out."""
        answered = {}
        for key, future in self._list_offsets(keys, spec).items():
            with contextlib.suppress(_Retry):
                answered[key.topic, key.partition] = self._await_offset(future)
        return answered

    def read_bounds(self, topic: str, partitions: Iterable[int]) -> dict[int, tuple[int, int]]:
        """Return log start and last stable offset."""
        low, end = self.offsets(topic, partitions, _EARLIEST, _LATEST)
        # Asked at once, answered one after the other: the log start may have passed the end of a moment ago.
        return {partition: (low[partition], max(low[partition], end[partition])) for partition in end}

    def find_offset_since(self, topic: str, bounds: Mapping[int, tuple[int, int]], epoch_ms: int) -> dict[int, int]:
        (since,) = self.offsets(topic, bounds, OffsetSpec.for_timestamp(epoch_ms))
        return {partition: clamp_offset(since[partition], end) for partition, (_, end) in bounds.items()}

    def offsets(self, topic: str, partitions: Iterable[int], *specs: OffsetSpec) -> list[dict[int, int]]:
        """Return the offset at each of `specs` by partition, in one request per broker; -1 if there is none."""
        answered = self.read_stamped_offsets(topic, partitions, *specs)
        return [{one: offset for one, (offset, _) in answers.items()} for answers in answered]

    def read_stamped_offsets(
        self, topic: str, partitions: Iterable[int], *specs: OffsetSpec
    ) -> list[dict[int, tuple[int, int]]]:
        """Return the offset and the timestamp of the record at each of `specs`; -1 for both if there is none."""
        keys = [TopicPartition(topic, partition) for partition in partitions]
        if not keys:
            return [{} for _ in specs]
        asked = [self._list_offsets(keys, spec) for spec in specs]
        answered = [{key.partition: self._await_offset(future) for key, future in answers.items()} for answers in asked]
        if _LATEST in specs:
            latest = answered[specs.index(_LATEST)]
            self.epochs = {one: info.leader_epoch for one, info in latest.items() if info.leader_epoch is not None}
        return [{one: (info.offset, info.timestamp) for one, info in answers.items()} for answers in answered]

    def read_log_ends(self, topics: Collection[str]) -> dict[str, dict[int, int]]:
        """Return the last stable offset of every topic-partition, in one request per broker."""
        partitions = {name: one.partitions for name, one in self.read_metadata().items() if one.error is None}
        keys = [TopicPartition(topic, number) for topic in topics for number in partitions.get(topic, ())]
        if not keys:
            return {}
        ends: dict[str, dict[int, int]] = {}
        errors: dict[str, Exception] = {}
        for key, future in self._list_offsets(keys, _LATEST).items():
            try:
                ends.setdefault(key.topic, {})[key.partition] = self._await_offset(future).offset
            except (S3LakeError, _Retry) as error:
                errors[key.topic] = error
        if len(errors) == len(ends.keys() | errors.keys()):
            raise next(iter(errors.values()))
        return {topic: one for topic, one in ends.items() if topic not in errors}

    def _list_offsets(self, keys: list[TopicPartition], spec: OffsetSpec) -> dict[TopicPartition, Future[Any]]:
        return self._client.list_offsets(
            dict.fromkeys(keys, spec),
            isolation_level=IsolationLevel.READ_COMMITTED,
            request_timeout=self._remaining_s(),
        )

    def read_metadata(self) -> Mapping[str, TopicMetadata]:
        """Return the brokers' metadata of all topics, by name."""
        try:
            return self._client.list_topics(timeout=self._remaining_s()).topics
        except KafkaException as error:
            raise self._to_exception(error.args[0]) from None

    def pause(self, why: str) -> None:
        """Wait before the question is asked again."""
        if time.monotonic() + _PAUSE_S >= self._deadline:
            raise self._unavailable(why)
        time.sleep(_PAUSE_S)

    def _remaining_s(self) -> float:
        remaining_s = self._deadline - time.monotonic()
        if remaining_s <= 0:
            raise self._unavailable("no answer")
        return remaining_s

    def _await_result(self, future: Future[Any]) -> Any:
        try:
            # librdkafka keeps the deadline itself; the rest is for its thread to tell.
            return future.result(max(0.0, self._deadline - time.monotonic()) + 0.25)
        except KafkaException as error:
            raise self._to_exception(error.args[0]) from None
        except FutureTimeoutError:
            raise self._unavailable("no answer") from None

    def _await_offset(self, future: Future[Any]) -> Any:
        """Return what a broker answers about an offset: -1 if no record has the timestamp."""
        answer = self._await_result(future)
        if answer.offset == OFFSET_INVALID:  # the connection ended first, and librdkafka (2.16) makes no error of it
            raise _Retry("the connection ended before the answer came")
        return answer

    def _to_exception(self, error: KafkaError) -> Exception:
        if error.code() in _MISSING:
            return _MissingTopic(error.str())
        if error.code() in _TRANSIENT:
            return _Retry(error.str())
        if error.code() in _REFUSALS:
            return ConfigurationError(
                f"Kafka at {self._servers} refuses to tell {self._what}: {error.name()}: {error.str()}. To go on: "
                "allow this user to Describe the topic, or correct the topic's name or kafka.properties."
            )
        return self._unavailable(f"{error.name()}: {error.str()}")

    def _unavailable(self, why: str) -> KafkaUnavailableError:
        self._client.poll(0)  # the reason for a connection's end, such as a wrong password, is only reported there
        return KafkaUnavailableError(
            f"Kafka at {self._servers} did not tell {self._what} within {self._timeout_s:g} s: {why}{self._log}. "
            f"{REMEDY}."
        )


def find_oldest_age_s(ask: _Query, topic: str, behind: Mapping[int, int], now_ms: int) -> float:
    """Return how old the oldest of these records is at least, in seconds, by the offsets of timestamps.

    After a landing most are younger than the first of the ages, which takes one request; else the age is searched among
    the others, and in eighths of the one that fits.
    """

    def count_exceeded(*ages: float) -> int:
        """Return how many of these ages, one after another, the oldest record is older than."""
        specs = [OffsetSpec.for_timestamp(int(now_ms - age * 1000)) for age in ages]
        for count, since in enumerate(ask.offsets(topic, behind, *specs)):
            # The first record stamped then or later comes after one that waits, or there is none at all.
            if not any(since[partition] < 0 or since[partition] > first for partition, first in behind.items()):
                return count
        return len(ages)

    if not count_exceeded(_AGES_S[0]):
        return 0.0
    younger, *older = _AGES_S[count_exceeded(*_AGES_S[1:]) :]
    if not older:
        return younger
    eighths = [younger + (older[0] - younger) * eighth / 8 for eighth in range(8)]
    return eighths[count_exceeded(*eighths[1:])]


@functools.lru_cache(maxsize=16)
def _client(pid: int, servers: str, settings: tuple[tuple[str, str], ...]) -> tuple[AdminClient, ErrorLog]:  # noqa: ARG001
    """One client per process (`pid`: none survives a fork) and settings: Dagster makes resources for every tick."""
    log = ErrorLog(dict(settings))
    try:
        properties: dict[str, Any] = {**dict(settings), "bootstrap.servers": servers, "error_cb": log.record_error}
        client = AdminClient(properties, logger=log)
    except KafkaException as error:
        reason = hide_secrets(error.args[0].str(), dict(settings))
        raise ConfigurationError(
            f"kafka.properties: librdkafka refuses them: {reason}. To go on: correct the value, or take out a name "
            "that only Java's client knows."
        ) from None
    return client, log
