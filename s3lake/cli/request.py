"""The options that commands share, in groups, and the request that a command receives them as."""

import functools
import inspect
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from s3lake import hours
from s3lake.cli.output import FAILED, INPUT, emit, err, print_text, tell
from s3lake.config.variable_names import DIALECT, LOCATION, NAME, WORKER
from s3lake.errors import ConfigurationError, IncompleteError, S3LakeError

if TYPE_CHECKING:
    from s3lake.config.draft import LoadedConfig
    from s3lake.config.model import Config, Sink, Spark
    from s3lake.land.spark.opened_spark import OpenedSpark
    from s3lake.land.topic.topic_sink import TopicSink

Group = Mapping[str, Any]
"""Options that belong together: the attribute of `Request` that each sets, and its type for Typer."""
Text = str | None


def _text(*names: str, **settings: Any) -> Any:
    return Annotated[Text, typer.Option(*names, show_default=False, **settings)]


READING: Group = {
    "dialect": _text(
        "--dialect", help="native, lenses, confluent, aiven or iggy, if the content does not show it.", envvar=DIALECT
    ),
    "name": _text("--name", help="The connector's name, if its file does not contain it.", envvar=NAME),
    "worker": _text(
        "--worker",
        metavar="FILE",
        help="The .properties file of the Kafka Connect worker: its converters apply if the connector sets none.",
        envvar=WORKER,
    ),
}
SOURCE: Group = {
    "config": Annotated[
        Text,
        typer.Argument(
            metavar="CONFIG",
            help="A file, a directory or an http(s) address, in any dialect.",
            envvar=LOCATION,
            show_default=False,
        ),
    ],
    **READING,
}
SINK: Group = {"sink": _text("--sink", help="Only this sink.")}
ROUTES: Group = {**SINK, "topic": _text("--topic", help="Only this topic.")}
HOURS: Group = {
    "first": _text("--from", metavar="H", help="First hour, for example 2026-11-20T05 (UTC)."),
    "last": _text("--to", metavar="H", help="Last hour, included."),
}
JSON: Group = {"as_json": Annotated[bool, typer.Option("--json", help="Print one JSON document per line.")]}
CHANGE: Group = {
    "yes": Annotated[bool, typer.Option("--yes", help="Do it. Without it, only print what would be done.")],
    **JSON,
}
_OPTIONS = {"sink": "--sink NAME", "topic": "--topic NAME", "first": "--from H", "last": "--to H"}


class Outcome(NamedTuple):
    """Something that a command has done with --yes, or would do.

    Attributes:
        row: the outcome for `--json`, by the names of its fields.
        summary: the outcome as a sentence for people.
        possible: False if something prevents it, which the summary names.
    """

    row: Mapping[str, Any]
    summary: str
    possible: bool = True


@dataclass(frozen=True)
class Request:
    """The values of the groups' options on the command line."""

    config: str | None = None
    dialect: str | None = None
    name: str | None = None
    worker: str | None = None
    sink: str | None = None
    topic: str | None = None
    first: str | None = None
    last: str | None = None
    yes: bool = False
    as_json: bool = False

    def __post_init__(self) -> None:
        """Check the range of hours.

        Raises:
            ConfigurationError: an hour is not valid, or the first is later than the last.
        """
        require_hours(self.first, self.last)

    def require(self, *names: str) -> None:
        """Raise ConfigurationError if one of these options is not given."""
        missing = [_OPTIONS[name] for name in names if getattr(self, name) is None]
        if missing:
            raise ConfigurationError(f"{' and '.join(missing)} missing: this command never changes everything")

    def read(self, *, to_land: bool = True) -> "LoadedConfig":
        """Read the configuration. `to_land`: it must contain all that landing needs."""
        from s3lake.config.load import load_configuration

        options = {NAME: self.name, WORKER: self.worker}
        environment = {**os.environ, **{variable: text for variable, text in options.items() if text}}
        return load_configuration(self.config, self.dialect, environment, to_land=to_land)

    def load(self, *, to_land: bool = True) -> "Config":
        """Read the configuration, and print how many notices there are: `check` prints them, once and in full."""
        loaded = self.read(to_land=to_land)
        if loaded.notices:
            what, it = ("a notice", "it") if len(loaded.notices) == 1 else (f"{len(loaded.notices)} notices", "them")
            err.print(f"the configuration has {what}: `s3lake check` prints {it}")
        return loaded.config

    def sinks(self, config: "Config") -> "list[Sink]":
        """Return the sinks that `--sink` selects.

        Raises:
            ConfigurationError: the configuration has no such sink.
        """
        names = [sink.name for sink in config.sinks]
        if self.sink is not None and self.sink not in names:
            raise ConfigurationError(f"--sink {self.sink}: unknown sink; the configuration has {', '.join(names)}")
        return [sink for sink in config.sinks if self.sink in (None, sink.name)]

    def targets(
        self, config: "Config | None" = None, *, fail_fast: bool = False, tables: bool = False
    ) -> Iterator["TopicSink"]:
        """Open the target of each selected sink and topic.

        Args:
            config: what was loaded before; None to load it now.
            fail_fast: True to give up within seconds, for commands that only look.
            tables: select also what only the indexes of the sinks have: tables of assets, and topics that match an
                expression and that Kafka has no longer.

        Raises:
            ConfigurationError: nothing is selected.
            SourceUnavailableError: the source does not return the topics that an expression matches.
        """
        from s3lake.index.commit.documents import TABLE
        from s3lake.land.topic.open_topic_sink import open_stores, open_topic_sink, s3_connection
        from s3lake.orchestration.sink_topics import ask_matching_topics, find_topics_of_sinks
        from s3lake.source.sources import open_source

        config = config or self.load()
        sinks, timeout_s = self.sinks(config), 3.0 if fail_fast else 5.0
        topics = find_topics_of_sinks(config, ask_matching_topics(sinks, open_source(config, timeout_s).offsets))
        selected = [(sink, topic) for sink in sinks for topic in topics[sink.name] if self.topic in (None, topic)]
        spark = functools.partial(start_spark, config.spark, quiet=self.as_json)

        def open_target(sink: "Sink", topic: str) -> "TopicSink":
            return open_topic_sink(config, sink, topic, spark=spark, fail_fast=fail_fast, timeout_s=timeout_s)

        is_empty = True
        for sink, topic in selected:
            is_empty = False
            yield open_target(sink, topic)
        for sink in sinks if tables else ():
            store = open_stores(s3_connection(config, sink), fail_fast=fail_fast)(sink.bucket)
            for name in store.list_steps(f"{sink.index_root}/"):
                if name not in topics[sink.name] and self.topic in (None, name):
                    target = open_target(sink, name)
                    head = target.index.head()
                    if head is not None and (head[0].topic_id == TABLE or sink.reads(name)):
                        is_empty = False
                        yield target
        if is_empty:
            names = ", ".join(sorted({topic for sink in sinks for topic in topics[sink.name]})) or "none yet"
            option = f"--topic {self.topic}: " if self.topic else ""
            raise ConfigurationError(f"{option}no such topic is landed; topics of {self.sink or 'all sinks'}: {names}")

    def target(self, config: "Config | None" = None) -> "TopicSink":
        """Return the only selected target.

        Raises:
            ConfigurationError: several are selected.
        """
        first, *others = self.targets(config)
        if others:
            names = ", ".join(f"{target.sink.name} {target.topic}" for target in (first, *others))
            raise ConfigurationError(f"--sink and --topic must select one topic of one sink, and select {names}")
        return first

    def each(self, work: Callable[["TopicSink"], None], targets: Sequence["TopicSink"] | None = None) -> None:
        """Call `work` for each selected target. One that fails is reported, the others go on.

        Raises:
            typer.Exit: exit code 3 if one has failed; 2 if all have, and trying again does not help.
        """
        targets = list(self.targets()) if targets is None else targets
        errors = []
        for target in targets:
            try:
                work(target)
            except S3LakeError as error:
                errors.append(error)
                err.print(f"{target.sink.name} {target.topic}: {type(error).__name__}: {error}")
        if errors:
            wrong = len(errors) == len(targets) and all(
                isinstance(error, ConfigurationError | IncompleteError) for error in errors
            )
            raise typer.Exit(INPUT if wrong else FAILED)

    def change(
        self,
        plan: Callable[["TopicSink"], Iterator[Outcome]],
        targets: Sequence["TopicSink"] | None = None,
        nothing: str = "nothing to change",
    ) -> None:
        """Print each outcome of each selected target. `plan` acts only if `yes` is set."""
        count = 0

        def work(target: "TopicSink") -> None:
            nonlocal count
            for row, summary, possible in plan(target):
                count += possible
                name = {"sink": target.sink.name, "topic": target.topic}
                emit(
                    self.as_json,
                    {**name, **row, "done": self.yes and possible, "summary": summary},
                    "{sink} {topic} {summary}".format_map,
                )

        self.each(work, targets)
        if not count:
            print_text(self.as_json, nothing)
        elif not self.yes:
            print_text(self.as_json, NOT_DONE)


def start_spark(settings: "Spark", *, quiet: bool = False) -> "OpenedSpark":
    """Return what the jobs of this process run in, and report its start on standard error, unless `quiet`."""
    from s3lake.land.spark import open_spark
    from s3lake.land.spark.starting import is_started, tell_start

    if quiet or is_started():
        return open_spark(settings)
    with tell_start(tell):
        return open_spark(settings)


NOT_DONE = "nothing is changed yet: --yes does it"


def print_notices(loaded: "LoadedConfig") -> None:
    """Print the notices of a configuration to standard error."""
    for notice in loaded.notices:
        err.print(f"notice: {notice}")


def require_hours(first: str | None, last: str | None = None) -> None:
    """Raise ConfigurationError if one of these is not an hour, or the first is later than the last."""
    try:
        hours.require_range(first, last)
    except ValueError as error:
        raise ConfigurationError(str(error)) from None


def command(
    app: typer.Typer, *groups: Group, name: str | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a function as a command: it receives the options of `groups` as a `Request`, then its own."""

    def register(work: Callable[..., None]) -> Callable[..., None]:
        shared = {option: annotation for group in groups for option, annotation in group.items()}
        _, *own = inspect.signature(work).parameters.values()

        @functools.wraps(work)
        def run(**values: Any) -> None:
            work(Request(**{option: values.pop(option) for option in shared}), **values)

        parameters = [
            Parameter(option, Parameter.KEYWORD_ONLY, default=getattr(Request, option), annotation=annotation)
            for option, annotation in shared.items()
        ]
        # CONFIG comes before the command's own arguments, as in s3lake test CONFIG CASES.
        parameters[1 if "config" in shared else 0 : 0] = [each.replace(kind=Parameter.KEYWORD_ONLY) for each in own]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        app.command(name)(run)
        return run

    return register
