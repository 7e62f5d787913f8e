"""Commands that change what has landed: each says what it would do, and does it with --yes."""

from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from s3lake.cli.options import (
    ConfigArgument,
    FromOption,
    JsonOption,
    SinkOption,
    ToOption,
    TopicOption,
    in_order,
    load,
    routes,
)
from s3lake.cli.terminal import DIFFERENCES, FAILED, err, progress_bar, say, tell
from s3lake.errors import ConfigurationError, S3LakeError
from s3lake.text.quantities import seconds_of, size_of

if TYPE_CHECKING:
    from s3lake.land.change.holding import Holding

Outcomes = Iterator[tuple[Any, bool]]
"""What becomes of hours, and whether anything does."""
YesOption = Annotated[bool, typer.Option("--yes", help="Do it, and do not only say what would be done.")]


def compact(
    config: ConfigArgument = None,
    sink: SinkOption = None,
    topic: TopicOption = None,
    first: FromOption = None,
    last: ToOption = None,
    size: Annotated[str, typer.Option(help="Of the files that are made, about; larger ones stay.")] = "512MB",
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Make few large files of the files of landed hours: one commit takes the place of others, and Kafka is not asked.

    Without --yes it says what it would do, and ends with exit code 1 where there is something.
    """
    from s3lake.land.change.rounds import compacted

    most = int(_quantity("--size", size, size_of))

    def hours_of(holding: "Holding") -> Outcomes:
        return compacted(holding, holding.hours(first, last), yes=yes, size=most)

    in_order(first, last)
    _change(config, sink, topic, hours_of, yes=yes, as_json=as_json)


def erase(
    where: Annotated[
        str, typer.Option(metavar="SQL", help="Of which rows: a condition over the columns of an object, for DuckDB.")
    ],
    config: ConfigArgument = None,
    sink: SinkOption = None,
    topic: TopicOption = None,
    first: FromOption = None,
    last: ToOption = None,
    letters: Annotated[
        str | None,
        typer.Option(metavar="SQL", help="Of which dead letters, where their columns do not have what --where names."),
    ] = None,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Take rows out of landed hours: of data, of keys and headers beside it, and of dead letters.

    It says what is taken from which object. Kafka keeps what it has, and a bucket with versions keeps versions.
    Without --yes it says what it would do, and ends with exit code 1 where there is something.
    """
    from s3lake.land.change.condition import Condition
    from s3lake.land.change.erase import Person
    from s3lake.land.change.rounds import erased

    person = Person(Condition(where), Condition(letters, "--letters") if letters else None)

    def hours_of(holding: "Holding") -> Outcomes:
        return erased(holding, holding.hours(first, last), person, yes=yes)

    in_order(first, last)
    _change(config, sink, topic, hours_of, yes=yes, as_json=as_json)


def reformat(
    config: ConfigArgument = None,
    sink: SinkOption = None,
    topic: TopicOption = None,
    first: FromOption = None,
    last: ToOption = None,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write landed hours anew in the format, codec, layout and columns that the sink has now, without Kafka.

    Without --yes it says what it would do, and ends with exit code 1 where there is something.
    """
    from s3lake.land.change.rounds import reformatted

    def hours_of(holding: "Holding") -> Outcomes:
        return reformatted(holding, holding.hours(first, last), yes=yes)

    in_order(first, last)
    _change(config, sink, topic, hours_of, yes=yes, as_json=as_json)


def retention(
    config: ConfigArgument = None,
    sink: SinkOption = None,
    topic: TopicOption = None,
    older_than: Annotated[
        str | None,
        typer.Option(metavar="AGE", help="As 30d, counted from the end of an hour; without it the sink's `retention`."),
    ] = None,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Let hours that are too old go: from objects, index and table together.

    Without --yes it says what it would do, and ends with exit code 1 where there is something.
    """
    from s3lake.land.change.rounds import expired_hours

    age = None if older_than is None else _quantity("--older-than", older_than, seconds_of)

    def hours_of(holding: "Holding") -> Outcomes:
        return expired_hours(holding, yes=yes, older_than_s=age)

    _change(config, sink, topic, hours_of, yes=yes, as_json=as_json)


def _change(
    config: str | None,
    sink: str | None,
    topic: str | None,
    hours_of: Callable[["Holding"], Outcomes],
    *,
    yes: bool,
    as_json: bool,
) -> None:
    """Say what would become of hours, or do it.

    Args:
        config: where it is.
        sink: only this one.
        topic: only this one.
        hours_of: gives what becomes of each hour, and does it where that was asked for.
        yes: whether it was.
        as_json: for programs.
    """
    from s3lake.land.change.holding import Holding

    planned = failed = 0
    for lander in routes(load(config), sink, topic):
        name = {"sink": lander.sink.name, "topic": lander.topic}
        try:
            for outcome, possible in hours_of(Holding.of(lander)):
                planned += possible
                row = {**name, **asdict(outcome), "done": possible and yes, "summary": str(outcome)}
                tell(as_json, row, "{sink} {topic} {summary}".format_map)
        except ConfigurationError:
            raise
        except S3LakeError as error:
            failed += 1
            err.print(f"{lander.sink.name} {lander.topic}: {type(error).__name__}: {error}", markup=False)
    if failed:
        raise typer.Exit(FAILED)
    if not planned:
        say(as_json, "nothing to change")
    elif not yes:
        say(as_json, "nothing is changed yet: --yes does it")
        raise typer.Exit(DIFFERENCES)


def _quantity(option: str, text: str, read: Callable[[str], Any]) -> float:
    try:
        return float(read(text))
    except ValueError as error:
        raise ConfigurationError(f"{option} {text}: {error}") from None


def restore(
    into: Annotated[str, typer.Option(metavar="TOPIC", help="Where records go; it has to exist.")],
    sink: Annotated[str, typer.Option(help="The sink that landed them.")],
    topic: Annotated[str, typer.Option(help="The topic that they came from.")],
    first: Annotated[str, typer.Option("--from", metavar="H", help="First hour, as 2026-11-20T05 (UTC).")],
    last: Annotated[str, typer.Option("--to", metavar="H", help="Last hour, included.")],
    config: ConfigArgument = None,
    without: Annotated[
        list[str] | None, typer.Option(help="key, headers or timestamp: restore them without, where objects lack them.")
    ] = None,
    landed_again: Annotated[
        bool, typer.Option("--landed-again", help="Also into a topic that a sink reads, which lands them once more.")
    ] = False,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Produce the records of landed hours into a topic: same key, value, headers, timestamp and topic-partition.

    Stopped anywhere, the same command goes on, and each record is there exactly once for readers of committed data.
    Without --yes it says what it would do, and ends with exit code 1 where there is something.
    """
    from s3lake.land.change.holding import Holding
    from s3lake.land.change.restore import Restore, permitted, restore

    in_order(first, last)
    loaded = load(config)
    if loaded.kafka is None:
        raise ConfigurationError("restore produces into Kafka, and this configuration has no `kafka`")
    permitted(loaded.sinks, into, without or (), landed_again=landed_again)
    (lander,) = routes(loaded, sink, topic)
    holding = Holding.of(lander)
    wanted = Restore(holding, holding.hours(first, last), into, without or ())
    if not wanted.hours or not wanted.planned.records:
        say(as_json, "nothing to restore")
        return
    outcome = wanted.planned
    if yes:
        with progress_bar(f"restore {topic}: records", outcome.records, quiet=as_json) as progress:
            outcome = restore(wanted, loaded.kafka.bootstrap_servers, loaded.kafka.properties, progress)
    row = {"sink": sink, "topic": topic, **asdict(outcome), "finished": yes, "summary": str(outcome)}
    tell(as_json, row, "{sink} {topic} {summary}".format_map)
    if not yes:
        say(as_json, "nothing is produced yet: --yes does it")
        raise typer.Exit(DIFFERENCES)
