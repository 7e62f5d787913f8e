"""Arguments and options that commands share, and what they stand for."""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from s3lake import hours
from s3lake.cli.terminal import err
from s3lake.config import load as configuration
from s3lake.config.connectors.observed import OBSERVED
from s3lake.config.connectors.worker import WORKER
from s3lake.config.dialects import NAME, STRICT
from s3lake.config.draft import Loaded
from s3lake.errors import ConfigurationError
from s3lake.sink import Config, Sink

if TYPE_CHECKING:
    from s3lake.land.landing import Landing

CONFIG = "A file, a directory or an http(s) address, in any dialect."
ConfigArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="CONFIG",
        help=CONFIG,
        envvar="S3LAKE_CONFIG",
        show_default=False,
    ),
]
DialectOption = Annotated[
    str | None,
    typer.Option(
        "--dialect",
        help="native, lenses, confluent, aiven or iggy, where the content does not tell.",
        envvar="S3LAKE_DIALECT",
        show_default=False,
    ),
]
NameOption = Annotated[
    str | None,
    typer.Option("--name", help="The connector, where its file does not name it.", envvar=NAME, show_default=False),
]
WorkerOption = Annotated[
    str | None,
    typer.Option(
        "--worker",
        metavar="FILE",
        help="The .properties of Kafka Connect's worker, whose converters hold where a connector names none.",
        envvar=WORKER,
        show_default=False,
    ),
]
StrictOption = Annotated[
    bool,
    typer.Option("--strict", help="Refuse settings that nothing reads, and keys that are given twice.", envvar=STRICT),
]
ObservedOption = Annotated[
    bool,
    typer.Option(
        "--observed",
        help="As the connector does, where its document says otherwise: to go on in a bucket that it has written.",
        envvar=OBSERVED,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON document a line.")]
SinkOption = Annotated[str | None, typer.Option("--sink", help="Only this sink.")]
TopicOption = Annotated[str | None, typer.Option("--topic", help="Only this topic.")]
FromOption = Annotated[str | None, typer.Option("--from", metavar="H", help="First hour, as 2026-11-20T05 (UTC).")]
ToOption = Annotated[str | None, typer.Option("--to", metavar="H", help="Last hour, included.")]
OpenOption = Annotated[bool, typer.Option("--allow-open", help="Records of the hour under way may wait to be landed.")]


def load(
    location: str | None, dialect: str | None = None, beside: Mapping[str, str] | None = None, *, to_land: bool = True
) -> Config:
    """The configuration; what has to be said of it is told."""
    loaded = configuration.loaded(location, dialect, beside, to_land=to_land)
    notices(loaded)
    return loaded.config


def beside(name: str | None, worker: str | None, strict: bool, observed: bool) -> dict[str, str]:
    """The environment with what options say beside a connector's file."""
    flags = {STRICT: "true" if strict else None, OBSERVED: "true" if observed else None}
    options = {NAME: name, WORKER: worker, **flags}
    return {**os.environ, **{variable: text for variable, text in options.items() if text}}


def notices(loaded: Loaded) -> None:
    """Tell what has to be said of settings that were accepted."""
    for notice in loaded.notices:
        err.print(f"notice: {notice}", markup=False)


def sinks_named(config: Config, name: str | None) -> list[Sink]:
    names = [one.name for one in config.sinks]
    if name is not None and name not in names:
        raise ConfigurationError(f"--sink {name}: there is no such sink; the configuration has {', '.join(names)}")
    return [one for one in config.sinks if name in (None, one.name)]


def routes(
    config: Config, sink: str | None = None, topic: str | None = None, *, hasty: bool = False
) -> Iterator["Landing"]:
    """Every sink and topic that the options leave; `hasty` ones only look, and give up within seconds."""
    from s3lake.orchestration.resources import S3Resource, SparkResource, landing, source_of
    from s3lake.orchestration.topics import topics_of

    sinks_named(config, sink)
    everything = [(config.sink(name), one) for name, topics in topics_of(config).items() for one in topics]
    chosen = [(route, one) for route, one in everything if sink in (None, route.name) and topic in (None, one)]
    if not chosen:
        topics = ", ".join(sorted({one for route, one in everything if sink in (None, route.name)})) or "none yet"
        asked = f"--topic {topic}: " if topic else ""
        raise ConfigurationError(f"{asked}no such topic is landed; those of {sink or 'all sinks'} are: {topics}")
    kafka, s3, spark = (
        source_of(config, 3.0 if hasty else 5.0),
        S3Resource(config.s3),
        SparkResource(config.spark),
    )
    for route, name in chosen:
        yield landing(route, name, kafka, s3, spark, hasty=hasty)


def no_hours(landings: Sequence["Landing"], present: str) -> ConfigurationError:
    """What is wrong with a range of hours in which no sink has one."""
    starts = ", ".join(dict.fromkeys(f"{lander.sink.name} at {lander.sink.start}" for lander in landings))
    return ConfigurationError(f"no sink has an hour in this range: they begin {starts}, and now it is {present}")


def in_order(first: str | None, last: str | None) -> None:
    """Refuse what is no range of hours, open at either side."""
    try:
        for hour in (first, last):
            if hour is not None:
                hours.parse(hour)
    except ValueError as error:
        raise ConfigurationError(str(error)) from None
    if first is not None and last is not None and first > last:
        raise ConfigurationError(f"--from {first} is later than --to {last}")
