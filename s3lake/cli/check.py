"""The command that validates a configuration, and with --connect everything that it names."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any

import typer

from s3lake import hours
from s3lake.cli.output import FAILED, emit, err, format_cell, print_json, print_table, print_text
from s3lake.cli.request import Request
from s3lake.errors import ConfigurationError
from s3lake.text.quantities import format_count, format_duration, format_size

if TYPE_CHECKING:
    from s3lake.config.draft import LoadedConfig
    from s3lake.config.model import Config, Sink

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
    spark: Annotated[
        bool, typer.Option("--spark", help="With --connect: also start Spark's session, and run a job in it.")
    ] = False,
    everything: Annotated[bool, typer.Option("--all", help="Show settings with default values too.")] = False,
) -> None:
    """Validate a configuration; show effective settings, where each came from, and warnings."""
    from s3lake.lake.forwarding.destination import open_forwards
    from s3lake.source.kafka.client_properties import to_librdkafka
    from s3lake.source.sources import find_opener

    if spark and not connect:
        raise ConfigurationError("--spark is an option of --connect: give both")
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
    if connect and not _connect(loaded.config, with_spark=spark, as_json=as_json):
        raise typer.Exit(FAILED)


def _connect(config: "Config", *, with_spark: bool, as_json: bool) -> bool:
    """Try everything that the configuration names. Return whether all of it succeeded."""
    from s3lake.cli.connection_checks import check_spark, connection_checks, try_connection

    succeeded, groups = True, connection_checks(config)
    if with_spark:
        groups = chain(groups, [[(f"Spark at {config.spark.master}", partial(check_spark, config.spark))]])
    for group in groups:
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


def _print_settings(loaded: "LoadedConfig", *, everything: bool) -> None:
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


def _print_without_effect(loaded: "LoadedConfig", *, everything: bool) -> None:
    """Print the known settings that have no effect here: in one line, or each with its reason."""
    if everything and loaded.without_effect:
        rows = [(notice.place.key, notice.message, str(notice.place)) for notice in loaded.without_effect]
        print_table(("without effect here", "because", "read from"), rows, "")
    elif loaded.without_effect:
        keys = dict.fromkeys(notice.place.key for notice in loaded.without_effect)
        print_text(False, f"without effect here: {', '.join(keys)} (--all shows why)")


def _settings_of(config: "Config", *, exclude_defaults: bool = False) -> Mapping[tuple[str | int, ...], Any]:
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


def describe_sink(sink: "Sink") -> dict[str, Any]:
    """Return a sink in short: topics, an example of a key, format, when files are closed, stages."""
    from s3lake.land.request import stage_values

    landed = sink.after_transforms
    rule = stage_values.build_key_layout(
        landed, sink.topics[0] if sink.topics else "TOPIC", hour_ms=hours.start_ms(sink.start)
    )
    flush = sink.flush
    limits = [format_size(flush.size), f"at latest after {format_duration(flush.interval)}"]
    if flush.count is not None:
        limits.insert(0, format_count(flush.count, "records"))
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


def _stages(sink: "Sink") -> list[str]:
    """Return what happens to a record, in order; SQL needs a second Spark stage."""
    from s3lake.land.request import stage_values

    stages = ["read (Spark)"]
    if sink.transforms:
        chain = stage_values.build_chain(sink)
        reads = "reads keys and values" if {"key", "value"} & (chain.reads | chain.writes) else "headers only"
        stages.append(f"{format_count(len(sink.transforms), 'transforms')} ({reads}, Arrow stage)")
    if sink.sql is not None:
        stages.append("SQL (a Spark stage of its own)")
    return [
        *stages,
        f"convert {sink.after_transforms.converter.value}",
        "lay out",
        f"encode {sink.format.type}",
        "stage, commit",
    ]


def find_half_days(sink: "Sink") -> str | None:
    """Return the pattern of an hour of twelve in object keys, if no pattern has the half of the day."""
    from s3lake.records.layout.pieces import DateElement, Hour, TimeElement
    from s3lake.text.dates.pattern_letters import split_pattern

    letters = {
        piece.pattern: {part.letter for part in split_pattern(piece.pattern, pairs=not isinstance(piece, DateElement))}
        for piece in sink.layout.pieces
        if isinstance(piece, DateElement | Hour | TimeElement)
    }
    if {"a", "H", "k"} & set().union(*letters.values()):
        return None
    return next((pattern for pattern, used in letters.items() if used & {"h", "K"}), None)


def find_suspicious_settings(config: "Config") -> list[str]:
    """Return a warning for each setting that is valid but probably a mistake."""
    from s3lake.land.request import stage_values
    from s3lake.records.convert.read.converters import CONVERTERS

    warnings = []
    for sink in config.sinks:
        if not sink.topics and sink.topics_regex is None:
            warnings.append(f"sink {sink.name}: it has no topics: only tables that assets return land there")
        if sink.transforms:
            chain = stage_values.build_chain(sink)
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
        if pattern := find_half_days(sink):
            warnings.append(
                f"sink {sink.name}: {pattern!r} has an hour of twelve and no half of the day (a), so 3 and 15 o'clock "
                "have one directory: write HH, or add a"
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
