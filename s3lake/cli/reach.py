"""What `check --connect` tries: that everything a configuration names answers, and lets us do what landing does."""

import functools
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from s3lake import hours
from s3lake.errors import ConfigurationError, S3LakeError
from s3lake.sink import Config, Sink
from s3lake.store import COMMIT, Store

if TYPE_CHECKING:
    from s3lake.source.offsets import Offsets

Attempt = tuple[str, Callable[[], Sequence[str] | None]]
"""What is tried, and how; it may return notices."""
UNTRIED = "not tried, after what failed before it"


def attempts(config: Config) -> Iterator[Sequence[Attempt]]:
    """Everything to try, in the order in which a run would meet it; of a group what follows needs what precedes."""
    from s3lake.source.opening import opened
    from s3lake.store.connection import S3Connection
    from s3lake.store.probe import probe
    from s3lake.store.s3 import S3Store

    source = opened(config)
    yield [
        (source.place, functools.partial(_check_answers, source.offsets)),
        ("topics", functools.partial(check_topics, config.sinks, source.offsets, hours.now_ms())),
    ]
    for sink in config.sinks:
        if sink.converter.registry is not None and sink.converter.registry.url:
            yield [(f"registry {sink.converter.registry.url} of sink {sink.name}", functools.partial(_registry, sink))]
    for sink in config.sinks:
        # Who asks wants to know how it is now.
        connection = replace(S3Connection.of(config.s3_of(sink)), patience_s=0)
        store, place = S3Store(connection, sink.bucket), f"{sink.index.prefix}/{sink.name}"
        where = f"bucket {sink.bucket} of sink {sink.name}"
        group: list[Attempt] = [(where, functools.partial(_some_key, store, f"{place}/"))]
        if sink.exactly_once:
            group.append((f"conditional writes in {where}", functools.partial(probe, store, place, sink.root)))
        group.append((f"uploads in {where}", functools.partial(_upload, store, f"{sink.root}.probe/{uuid.uuid4()}")))
        yield group


def outcome(attempt: Callable[[], Sequence[str] | None]) -> tuple[str, Sequence[str]]:
    """Return `ok`, or why it failed; and the notices."""
    try:
        return "ok", attempt() or ()
    except S3LakeError as error:
        return str(error), ()


def _check_answers(offsets: "Offsets") -> None:
    offsets.topics()


def check_topics(sinks: Sequence[Sink], offsets: "Offsets", now_ms: int) -> list[str]:
    """Ask for the offsets of all topics. Return notices about those that are landed otherwise than one expects.

    Raises:
        ConfigurationError: a topic does not exist and its sink does not wait for it, or the source refuses to answer.
        SourceUnavailableError: the source did not answer in time.
    """
    from s3lake.land.missing import describe_missing
    from s3lake.source.offsets import matching

    known, missing, notices = offsets.topics(), list[str](), list[str]()
    for sink in sinks:
        topics = sink.topics if sink.topics_regex is None else matching(offsets, sink.topics_regex)
        if not topics:
            notices.append(f"sink {sink.name}: topics_regex {sink.topics_regex} matches no topic yet")
        for topic in topics:
            found = _find_topic_notices(sink, topic, offsets, now_ms)
            if found is not None:
                notices += found
            elif sink.missing_topic == "wait":
                notices.append(f"{describe_missing(sink, topic, known)} It waits (missing_topic: wait)")
            else:
                missing.append(describe_missing(sink, topic, known))
    if missing:
        raise ConfigurationError(f"{' '.join(missing)} Correct topics, create them, or set missing_topic: wait")
    return notices


def _find_topic_notices(sink: Sink, topic: str, offsets: "Offsets", now_ms: int) -> list[str] | None:
    """Return notices about the timestamps of a topic's records; None if the topic does not exist."""
    from s3lake.plan.stamps import AHEAD_MS, describe_before_start, describe_stamps_ahead, find_stamps_ahead

    kafka = offsets.snapshot(topic, hours.key_of_ms(now_ms + AHEAD_MS))
    if not kafka.exists:
        return None
    found = describe_stamps_ahead(find_stamps_ahead(kafka, now_ms))
    if sink.from_ == "start" and hours.start_ms(sink.start) <= now_ms:
        since = offsets.first_since(topic, hours.start_ms(sink.start))
        counts = {number: since.get(number, log.low) - log.low for number, log in kafka.partitions.items()}
        found += describe_before_start(sink.start, {number: count for number, count in counts.items() if count > 0})
    return [f"sink {sink.name}: topic {topic!r}: {text}" for text in found]


def _registry(sink: Sink) -> None:
    from s3lake.schema.registry import UnknownSchema, client

    assert sink.converter.registry is not None
    with suppress(UnknownSchema):  # then it has answered, which is all that was asked
        client(sink.converter.registry.connection).schema(1)


def _some_key(store: Store, prefix: str) -> None:
    # A listing knows a bucket that is not there; the head of an object does not tell which of both is missing.
    next(iter(store.list(prefix)), None)


def _upload(store: Store, key: str) -> None:
    """Begin an upload where data goes, send a part, and drop both: nothing becomes visible."""
    upload = store.create_upload(key, {COMMIT: "check"})
    try:
        store.upload_part(key, upload, 1, b"x")
    except S3LakeError:
        with suppress(S3LakeError):  # what went wrong first is what is told
            store.abort_upload(key, upload)
        raise
    store.abort_upload(key, upload)
