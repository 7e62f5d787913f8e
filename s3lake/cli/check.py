"""The command that validates a configuration, and with --connect everything that it names."""

import functools
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from s3lake import hours
from s3lake.cli.output import FAILED, emit, err, format_cell, print_json, print_table, print_text
from s3lake.cli.request import Request
from s3lake.config.draft import LoadedConfig
from s3lake.config.model import Config, Sink
from s3lake.errors import ConfigurationError, S3LakeError
from s3lake.index.store import COMMIT, Store
from s3lake.records.convert.read.converters import CONVERTERS
from s3lake.text.quantities import format_duration, format_size

if TYPE_CHECKING:
    from s3lake.index.store.connection import S3Connection
    from s3lake.lake.forwarding.destination import Destination
    from s3lake.source.offsets import Offsets

Attempt = tuple[str, Callable[[], Sequence[str] | None]]
"""What is tried, and how; it may return notices."""
UNTRIED = "not tried, because an earlier check failed"


def run_check(
    request: Request,
    strict: Annotated[bool, typer.Option("--strict", help="Refuse a configuration that has notices.")] = False,
    connect: Annotated[
        bool,
        typer.Option(
            "--connect",
            help="Also try all that a run needs: Kafka, S3, registries, tables, destinations. Nothing is left behind.",
        ),
    ] = False,
    everything: Annotated[bool, typer.Option("--all", help="Show settings with default values too.")] = False,
) -> None:
    """Validate a configuration; show effective settings, where each came from, and warnings."""
    from s3lake.lake.forwarding.destination import open_forwards
    from s3lake.source.kafka.client_properties import to_librdkafka
    from s3lake.source.sources import find_opener

    as_json, loaded = request.as_json, request.read(to_land=connect)
    notices = [*map(str, loaded.notices), *find_suspicious_settings(loaded.config)]
    if strict and notices:
        raise ConfigurationError("\n".join(notices))
    if as_json:
        print_json(loaded.config.model_dump(mode="json", by_alias=True))
    for sink in loaded.config.sinks:
        row = describe_sink(sink)
        if as_json:
            print_json(row)
        else:
            print_table(("", ""), [pair for pair in row.items() if pair[0] != "sink"], f"sink {sink.name}")
    if not as_json:
        _print_settings(loaded, everything=everything)
        _print_without_effect(loaded, everything=everything)
    _print_notices(notices, as_json=as_json)
    if loaded.config.kafka is not None:
        to_librdkafka(loaded.config.kafka.properties)  # raises if librdkafka does not know them
    elif loaded.config.source is not None:
        find_opener(loaded.config.source.type)  # raises if no package brings it
    for sink in loaded.config.sinks:
        open_forwards(sink)  # raises if a destination refuses its options; no server is asked
    if connect and not _connect(loaded.config, as_json=as_json):
        raise typer.Exit(FAILED)


def _connect(config: Config, *, as_json: bool) -> bool:
    """Try everything that the configuration names. Return whether all of it succeeded."""
    succeeded = True
    for group in connection_checks(config):
        outcome = "ok"
        notices: Sequence[str] = ()
        for what, attempt in group:
            with err.status(f"{what} …"):  # it may take seconds; shown on a terminal only
                outcome, notices = try_connection(attempt) if outcome == "ok" else (UNTRIED, ())
            succeeded = succeeded and outcome == "ok"
            emit(as_json, {"check": what, "outcome": outcome}, "{check}: {outcome}".format_map)
            _print_notices(notices, as_json=as_json)
    return succeeded


def _print_notices(notices: Sequence[str], *, as_json: bool) -> None:
    for notice in notices:
        emit(as_json, {"notice": notice}, "notice: {notice}".format_map)


def _print_settings(loaded: LoadedConfig, *, everything: bool) -> None:
    """Print what was set, and where a connector's default differs from ours; or everything."""
    effective, changed = _settings_of(loaded.config), _settings_of(loaded.config, exclude_defaults=True)
    rows, origins = [], loaded.origins
    for path, value in effective.items():
        place = origins.get(path)
        if everything or place is not None or path in changed:
            default = "default of the connector" if path in changed and loaded.connectors else "default"
            source = default if place is None else f"{place} {place.key}".rstrip()
            source = f"placeholder: {source} is not set" if place in loaded.placeholders else source
            rows.append((".".join(map(str, path)), format_cell(value) or "none", source))
    print_table(("setting", "value", "read from"), rows, "settings")


def _print_without_effect(loaded: LoadedConfig, *, everything: bool) -> None:
    """Print the known settings that have no effect here: in one line, or each with its reason."""
    if everything and loaded.without_effect:
        rows = [(notice.place.key, notice.message, str(notice.place)) for notice in loaded.without_effect]
        print_table(("without effect here", "because", "read from"), rows, "")
    elif loaded.without_effect:
        keys = dict.fromkeys(notice.place.key for notice in loaded.without_effect)
        print_text(False, f"without effect here: {', '.join(keys)} (--all says why)")


def _settings_of(config: Config, *, exclude_defaults: bool = False) -> Mapping[tuple[str | int, ...], Any]:
    return dict(_leaves(config.model_dump(mode="json", by_alias=True, exclude_defaults=exclude_defaults)))


def _leaves(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _leaves(inner, (*path, name))
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for position, inner in enumerate(value):
            yield from _leaves(inner, (*path, position))
    else:
        yield path, value


def describe_sink(sink: Sink) -> dict[str, Any]:
    """Return a sink in short: topics, an example of a key, format, when files are closed, stages."""
    from s3lake.land import binding

    landed = sink.after_transforms
    rule = binding.key_rule(landed, sink.topics[0] if sink.topics else "TOPIC", hour_ms=hours.start_ms(sink.start))
    flush = sink.flush
    limits = [format_size(flush.size), f"at latest after {format_duration(flush.interval)}"]
    if flush.count is not None:
        limits.insert(0, f"{flush.count} records")
    if flush.span is not None:
        limits.append(f"records less than {format_duration(flush.span)} apart")
    return {
        "sink": sink.name,
        "topics": [str(topic) for topic in sink.topics or (sink.topics_regex,)],
        "bucket": sink.bucket,
        "key": rule.example(),
        "format": " ".join([sink.format.type, sink.format.codec, *(["envelope"] if sink.envelope else [])]),
        "flush": limits,
        "stages": _stages(sink),
        "exactly_once": sink.exactly_once,
        **({"forwards": [forward.key for forward in sink.forwards]} if sink.forwards else {}),
    }


def _stages(sink: Sink) -> list[str]:
    """Return what happens to a record, in order; SQL needs a second Spark stage."""
    from s3lake.land import binding

    stages = ["read (Spark)"]
    if sink.transforms:
        chain = binding.chain(sink)
        reads = "reads keys and values" if {"key", "value"} & (chain.reads | chain.writes) else "headers only"
        stages.append(f"{len(sink.transforms)} transforms ({reads}, Arrow stage)")
    if sink.sql is not None:
        stages.append("SQL (a Spark stage of its own)")
    return [
        *stages,
        f"convert {sink.after_transforms.converter.value}",
        "lay out",
        f"encode {sink.format.type}",
        "stage, commit",
    ]


def find_suspicious_settings(config: Config) -> list[str]:
    """Return a warning for each setting that is valid but probably a mistake."""
    from s3lake.land import binding

    warnings = []
    for sink in config.sinks:
        if not sink.topics and sink.topics_regex is None:
            warnings.append(f"sink {sink.name}: it has no topics: only tables that assets return land there")
        if sink.transforms:
            chain = binding.chain(sink)
            warnings += [f"sink {sink.name}: {notice}" for notice in chain.notices]
            if chain.nulls_from and sink.nulls == "skip":
                warnings.append(
                    f"sink {sink.name}: {chain.nulls_from} makes records without a value, which nulls: skip leaves "
                    "out: set nulls: write, or let it keep the values"
                )
        if sink.layout.template and sink.layout.time.source == "wallclock" and "{time:" in sink.layout.template:
            warnings.append(
                f"sink {sink.name}: directories are named after the time of landing: a rewrite or a backfill gives "
                "other keys; layout.time.source record gives the same ones"
            )
        converter = sink.after_transforms.converter.value
        brings_schemas = CONVERTERS[converter].enveloped or (converter == "json_schema" and sink.converter.registry)
        if sink.columns and brings_schemas:
            warnings.append(
                f"sink {sink.name}: columns are for values that come without a schema: {converter} takes the types of "
                "the others from their schemas; converter.times exact makes Debezium's times columns of times"
            )
        if sink.sealed.within <= sink.close_grace:
            within, grace = format_duration(sink.sealed.within), format_duration(sink.close_grace)
            warnings.append(
                f"sink {sink.name}: sealed.within {within} is over before close_grace {grace}: every hour will be late"
            )
        if not sink.exactly_once:
            warnings.append(f"sink {sink.name}: exactly_once is off: a crash can leave objects that are written again")
        if sink.flush.size < 5_000_000 and sink.flush.count != 1:
            size = format_size(sink.flush.size)
            warnings.append(f"sink {sink.name}: flush.size {size} makes small files, which cost requests")
    return warnings


def connection_checks(config: Config) -> Iterator[Sequence[Attempt]]:
    """Yield groups of attempts in the order of a run; in a group an attempt needs the ones before it."""
    from s3lake.index.store.connection import S3Connection
    from s3lake.index.store.s3 import S3Store
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
            yield [(f"dead letter topic {name} of sink {sink.name}", functools.partial(_check_letters, config, sink))]
    for sink in config.sinks:
        if sink.converter.registry is not None and sink.converter.registry.url:
            yield [(f"registry {sink.converter.registry.url} of sink {sink.name}", functools.partial(_ask, sink))]
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
    from s3lake.land.checks import describe_missing
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


def _ask(sink: Sink) -> None:
    from s3lake.records.schema.registry import get_client

    assert sink.converter.registry is not None
    get_client(sink.converter.registry.connection).check()


def _check_letters(config: Config, sink: Sink) -> None:
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
    # A listing fails if the bucket does not exist; the head of an object does not say which of both is missing.
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
