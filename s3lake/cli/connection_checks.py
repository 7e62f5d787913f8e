"""What `s3lake check --connect` tries, in the order of a run. Nothing is left behind."""

import functools
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from s3lake import hours
from s3lake.cli.request import start_spark
from s3lake.config.model import Config, Sink, Spark
from s3lake.errors import ConfigurationError, S3LakeError
from s3lake.index.store import COMMIT, Store
from s3lake.records.convert.read.converters import CONVERTERS

if TYPE_CHECKING:
    from s3lake.index.store.s3_connection import S3Connection
    from s3lake.lake.forwarding.destination import Destination
    from s3lake.source.offsets import Offsets

Attempt = tuple[str, Callable[[], Sequence[str] | None]]
"""What is tried, and how; it may return notices."""


def connection_checks(config: Config) -> Iterator[Sequence[Attempt]]:
    """Yield groups of attempts in the order of a run; in a group an attempt needs the ones before it."""
    from s3lake.index.store.s3_connection import S3Connection
    from s3lake.index.store.s3_store import S3Store
    from s3lake.index.store.trial import ensure_keeps_objects, try_store
    from s3lake.lake.forwarding.destination import open_forwards
    from s3lake.source.sources import open_source

    if config.kafka is not None or config.source is not None:
        source = open_source(config)
        yield [
            (source.place, functools.partial(_check_answers, source.offsets)),
            ("topics", functools.partial(check_topics, config.sinks, source.offsets, hours.now_ms())),
        ]
    for sink in config.sinks:
        if sink.errors.dead_letter_topic is not None and config.kafka is not None:
            name = sink.errors.dead_letter_topic.name
            yield [
                (
                    f"dead letter topic {name} of sink {sink.name}",
                    functools.partial(_check_dead_letter_topic, config, sink),
                )
            ]
    for sink in config.sinks:
        registry = sink.converter.registry
        if registry is not None and registry.url:
            yield [(f"registry {registry.url} of sink {sink.name}", functools.partial(_check_registry, sink))]
    for sink in config.sinks:
        connection = replace(S3Connection.from_settings(config.s3_of(sink)), patience_s=0)  # the user waits
        store, place = S3Store(connection, sink.bucket), sink.index_root
        where = f"bucket {sink.bucket} of sink {sink.name}"
        group: list[Attempt] = [(where, functools.partial(_list_a_key, store, f"{place}/"))]
        if sink.exactly_once:
            group.append((f"conditional writes in {where}", functools.partial(try_store, store, place, sink.root)))
        else:
            group.append((f"metadata in {where}", functools.partial(ensure_keeps_objects, store, sink.root)))
        group.append((f"uploads in {where}", functools.partial(_upload, store, f"{sink.root}.probe/{uuid.uuid4()}")))
        if sink.table is not None:
            group.append((f"table of sink {sink.name}", functools.partial(_check_table, sink, store, connection)))
        for forward, destination in open_forwards(sink):
            what = f"forward {forward.key} of sink {sink.name}: {destination.place}"
            group.append((what, functools.partial(_check_destination, sink, destination, store)))
        yield group


def try_connection(attempt: Callable[[], Sequence[str] | None]) -> tuple[str, Sequence[str]]:
    """Return `ok`, or why the attempt failed; and its notices."""
    try:
        return "ok", attempt() or ()
    except S3LakeError as error:
        return str(error), ()


def _check_answers(offsets: "Offsets") -> None:
    offsets.topics()


def check_topics(sinks: Sequence[Sink], offsets: "Offsets", now_ms: int) -> list[str]:
    """Read the offsets of all topics. Return notices about topics whose records land otherwise than one expects.

    Raises:
        ConfigurationError: a topic does not exist and its sink does not wait for it, or the source refuses to answer.
        SourceUnavailableError: the source did not answer in time.
    """
    from s3lake.land.topic.missing_topic import describe_missing
    from s3lake.source.offsets import match_topics

    existing, missing, notices = offsets.topics(), list[str](), list[str]()
    for sink in sinks:
        topics = sink.topics if sink.topics_regex is None else match_topics(offsets, sink.topics_regex)
        if not topics:
            notices.append(f"sink {sink.name}: topics_regex {sink.topics_regex} matches no topic yet")
        for topic in topics:
            of_topic = _find_topic_notices(sink, topic, offsets, now_ms)
            if of_topic is not None:
                notices += of_topic
            elif sink.missing_topic == "wait":
                notices.append(f"{describe_missing(sink, topic, existing)} It waits (missing_topic: wait)")
            else:
                missing.append(describe_missing(sink, topic, existing))
    if missing:
        raise ConfigurationError(f"{' '.join(missing)} Correct topics, create them, or set missing_topic: wait")
    return notices


def _find_topic_notices(sink: Sink, topic: str, offsets: "Offsets", now_ms: int) -> list[str] | None:
    """Return notices about the timestamps of a topic's records; None if the topic does not exist."""
    from s3lake.index.plan.stamps import AHEAD_MS, describe_before_start, describe_stamps_ahead, find_stamps_ahead

    kafka = offsets.snapshot(topic, hours.key_of_ms(now_ms + AHEAD_MS))
    if not kafka.exists:
        return None
    notices = describe_stamps_ahead(find_stamps_ahead(kafka, now_ms))
    if sink.from_ == "start" and hours.start_ms(sink.start) <= now_ms:
        since = offsets.find_offset_since(topic, hours.start_ms(sink.start))
        counts = {number: since.get(number, log.log_start) - log.log_start for number, log in kafka.partitions.items()}
        notices += describe_before_start(sink.start, {number: count for number, count in counts.items() if count > 0})
    return [f"sink {sink.name}: topic {topic!r}: {text}" for text in notices]


def _check_registry(sink: Sink) -> list[str]:
    """Ask a registry for a schema, and for the subjects of the sink's topics; nothing is registered."""
    from s3lake.records.schema.registry import get_client

    assert sink.converter.registry is not None
    client = get_client(sink.converter.registry.connection)
    client.check()
    subjects = client.list_subjects()
    if subjects is None:
        return [f"sink {sink.name}: the registry does not list its subjects to this user: they are not checked"]
    sides = [side for side in ("key", "value") if CONVERTERS[getattr(sink.converter, side)].asks_registry]
    return [
        f"sink {sink.name}: topic {topic!r}: the registry has no subject {topic}-{side} (TopicNameStrategy), and none "
        f"of a record of the topic (TopicRecordNameStrategy). Either no {side} was produced yet, or converter.registry "
        "is not the producers', or these name their subjects after records alone (RecordNameStrategy)"
        for topic in sink.topics
        for side in sides
        if f"{topic}-{side}" not in subjects and not _has_record_subject(topic, subjects)
    ]


def _has_record_subject(topic: str, subjects: frozenset[str]) -> bool:
    """Return whether a subject is named after a topic and a record, in a key or in a value."""
    sides = (f"{topic}-key", f"{topic}-value")
    return any(subject.startswith(f"{topic}-") and subject not in sides for subject in subjects)


def check_spark(settings: Spark) -> None:
    """Run a job in a session as runs have it.

    Raises:
        ConfigurationError: there is no Java that Spark runs on.
        SparkUnavailableError: the master does not answer, or its workers have another s3lake.
    """
    from s3lake.land.spark.failures import translate_spark_error
    from s3lake.land.spark.opened_spark import run_nothing

    try:
        run_nothing(start_spark(settings, quiet=True))
    except Exception as error:
        raise translate_spark_error(error, f"running a job with spark.master {settings.master}") from None


def _check_dead_letter_topic(config: Config, sink: Sink) -> None:
    """Ask the brokers whether the first refused record could create its topic."""
    from s3lake.source.kafka.dead_letter_topic import DeadLetterTarget

    assert config.kafka is not None, "only Kafka has dead letter topics"
    topic = DeadLetterTarget.from_sink(sink, "", config.kafka.bootstrap_servers, config.kafka.properties)
    assert topic is not None, "the sink has one"
    topic.check()


def _check_table(sink: Sink, store: Store, connection: "S3Connection") -> list[str]:
    from s3lake.lake.readback.committed import open_index
    from s3lake.lake.table.iceberg.iceberg_table import LakeTable

    assert sink.table is not None, "the sink has one"
    topic = sink.topics[0] if sink.topics else "TOPIC"
    return LakeTable(sink, sink.table, open_index(sink, topic, store), connection).check()


def _check_destination(sink: Sink, destination: "Destination", store: Store) -> None:
    """Ask a destination for an hour that it cannot have."""
    from s3lake.lake.forwarding.complete_hour import CompleteHour

    destination.read_content(CompleteHour.without_rows(sink, "s3lake check", sink.start, store))


def _list_a_key(store: Store, prefix: str) -> None:
    # A listing fails if the bucket does not exist; the head of an object does not show which of both is missing.
    next(iter(store.list(prefix)), None)


def _upload(store: Store, key: str) -> None:
    """Begin an upload where data goes, send a part, and abort it: nothing becomes visible."""
    upload = store.create_upload(key, {COMMIT: "check"})
    try:
        store.upload_part(key, upload, 1, b"x")
    except S3LakeError:
        with suppress(S3LakeError):  # the first error is the one to report
            store.abort_upload(key, upload)
        raise
    store.abort_upload(key, upload)
