"""Commands about a configuration: what it means, and what it would write."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from s3lake.cli import reach, rows
from s3lake.cli.options import (
    ConfigArgument,
    DialectOption,
    JsonOption,
    NameOption,
    ObservedOption,
    SinkOption,
    StrictOption,
    WorkerOption,
    beside,
    load,
    notices,
    sinks_named,
)
from s3lake.cli.terminal import DIFFERENCES, FAILED, INPUT, err, print_json, print_table, say, tell, trying, write
from s3lake.config import load as configuration
from s3lake.config import native
from s3lake.config.draft import Loaded
from s3lake.sink import Config


def check(
    config: ConfigArgument = None,
    dialect: DialectOption = None,
    name: NameOption = None,
    worker: WorkerOption = None,
    strict: StrictOption = False,
    observed: ObservedOption = False,
    connect: Annotated[
        bool,
        typer.Option("--connect", help="Also try Kafka, schema registries, the buckets and what may be done there."),
    ] = False,
    everything: Annotated[bool, typer.Option("--all", help="Show settings that have their defaults as well.")] = False,
    as_json: JsonOption = False,
) -> None:
    """What a configuration comes to: its sinks, what it sets and where that was read from, and what is doubtful."""
    from s3lake.source.kafka.properties import client_properties
    from s3lake.source.opening import opener

    loaded = configuration.loaded(config, dialect, beside(name, worker, strict, observed), to_land=connect)
    effective = loaded.config.model_dump(mode="json", by_alias=True)
    if as_json:
        print_json(effective)
    for sink in loaded.config.sinks:
        summary = rows.sink_row(sink)
        if as_json:
            print_json(summary)
            continue
        table = Table(title=f"sink {sink.name}", title_justify="left", show_header=False, box=None, pad_edge=False)
        for name, value in summary.items():
            if name != "sink":
                table.add_row(name, escape(rows.shown(value)))
        print_table(table)
    if not as_json:
        _print_settings(loaded, everything=everything)
    for notice in [*map(str, loaded.notices), *rows.doubts(loaded.config)]:
        tell(as_json, {"notice": notice}, "notice: {notice}".format_map)
    if loaded.config.kafka is not None:
        client_properties(loaded.config.kafka.properties)  # raises where librdkafka cannot be told what they mean
    elif loaded.config.source is not None:
        opener(loaded.config.source.type)  # raises where no package brings it
    if connect:
        failed = False
        for group in reach.attempts(loaded.config):
            outcome = "ok"
            notices: Sequence[str] = ()
            for what, attempt in group:
                with trying(what, quiet=as_json):
                    outcome, notices = reach.outcome(attempt) if outcome == "ok" else (reach.UNTRIED, ())
                failed = failed or outcome != "ok"
                tell(as_json, {"check": what, "outcome": outcome}, "{check}: {outcome}".format_map)
                for notice in notices:
                    tell(as_json, {"notice": notice}, "notice: {notice}".format_map)
        if failed:
            raise typer.Exit(FAILED)


def _print_settings(loaded: Loaded, *, everything: bool) -> None:
    """What was set, and what a connector's defaults set otherwise than ours; or everything."""
    effective, ours = _settings(loaded.config), _settings(_of_defaults(loaded.config))
    table = Table(box=None, pad_edge=False, title="settings", title_justify="left")
    for column in ("setting", "value", "read from"):
        table.add_column(column, no_wrap=True)
    for path, value in effective.items():
        place = loaded.origins.get(path)
        if place is None and not everything and ours.get(path) == value:
            continue
        source = "default" if place is None else f"{place} {place.key}".rstrip()
        table.add_row(escape(".".join(map(str, path))), escape(rows.shown(value)), escape(source))
    print_table(table)


def _settings(config: Config) -> dict[tuple[str | int, ...], Any]:
    return dict(rows.settings(config.model_dump(mode="json", by_alias=True)))


def _of_defaults(config: Config) -> Config:
    """The same sinks with nothing set but what has no default."""
    where = config.model_dump(
        include={"kafka": {"bootstrap_servers"}, "source": {"type", "address"}}, exclude_none=True
    )
    required = {"name", "topics", "topics_regex", "bucket", "start"}
    sinks = [sink.model_dump(include=required, exclude_defaults=True) for sink in config.sinks]
    # Without their prefixes sinks may be in each other's way: each is validated by itself.
    (first, *others) = (Config.model_validate({**where, "sinks": [sink]}) for sink in sinks)
    return first.model_copy(update={"sinks": (first.sinks[0], *(other.sinks[0] for other in others))})


def convert(
    config: ConfigArgument = None,
    dialect: DialectOption = None,
    name: NameOption = None,
    worker: WorkerOption = None,
    strict: StrictOption = False,
    observed: ObservedOption = False,
) -> None:
    """The same configuration as native YAML; what is secret becomes a variable."""
    write(as_native(config, dialect, beside(name, worker, strict, observed)))


def as_native(config: str | None, dialect: str | None, beside: Mapping[str, str]) -> str:
    """A configuration as native YAML; what has to be said of it is told."""
    read = configuration.loaded(config, dialect, beside, to_land=False)
    notices(read)
    text, variables, unkept = native.rewritten(read.config, read.references)
    for variable, place in variables.items():
        err.print(f"notice: {place} is secret: set {variable} where this file is read", markup=False)
    for notice in unkept:
        err.print(f"notice: {notice}", markup=False)
    return text


def preview(
    records: Annotated[
        Path, typer.Option("--records", metavar="FILE", help="JSON lines: topic, partition, offset, key, value …")
    ],
    config: ConfigArgument = None,
    dialect: DialectOption = None,
    name: NameOption = None,
    worker: WorkerOption = None,
    strict: StrictOption = False,
    observed: ObservedOption = False,
    sink: SinkOption = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Write the objects below DIR.")] = None,
    as_json: JsonOption = False,
) -> None:
    """The objects that given records would become, without Kafka and without S3."""
    from s3lake.land.preview import preview as previewed
    from s3lake.land.preview.records import read

    loaded = load(config, dialect, beside(name, worker, strict, observed), to_land=False)
    of_topic: dict[str, list[Any]] = {}
    for record in read(records):
        of_topic.setdefault(record.topic, []).append(record)
    routes = [(route, topic) for route in sinks_named(loaded, sink) for topic in sorted(of_topic) if route.reads(topic)]
    for topic in sorted(of_topic.keys() - {topic for _, topic in routes}):
        err.print(f"{records}: no sink takes topic {topic!r}", markup=False)
    if of_topic and not routes:
        raise typer.Exit(INPUT)
    if not of_topic:
        say(as_json, f"nothing to preview: {records} holds no record")
    previews = [(route, previewed(route, topic, of_topic[topic], spark=loaded.spark)) for route, topic in routes]
    several = len({route.bucket for route, _ in previews}) > 1
    for route, object in sorted(
        ((route, object) for route, result in previews for object in result.objects), key=lambda pair: pair[1].file.key
    ):
        tell(as_json, rows.preview_row(object), rows.preview_line)
        if out is not None:
            _write_below(out / route.bucket if several else out, object.file.key, object.body)
    for _, result in previews:
        for refusal in result.refusals:
            sys.stderr.write(json.dumps(asdict(refusal)) + "\n")
    if any(result.failed for _, result in previews):
        raise typer.Exit(DIFFERENCES)


def _write_below(directory: Path, key: str, body: bytes) -> None:
    path = directory / key.lstrip("/")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(body)
