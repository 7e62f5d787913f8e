"""Commands that change landed hours by commits that replace others. Kafka is not read."""

from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from s3lake.cli.output import ProgressLine, emit, print_text
from s3lake.cli.request import NOT_DONE, Outcome, Request
from s3lake.errors import ConfigurationError
from s3lake.text.quantities import parse_duration, parse_size

if TYPE_CHECKING:
    from s3lake.land.change.hour_change import HourChange
    from s3lake.land.topic.topic_sink import TopicSink


def run_compact(
    request: Request,
    size: Annotated[str, typer.Option(help="About the size of the new files; larger files stay.")] = "512MB",
) -> None:
    """Merge the small files of landed hours into larger ones; does not read Kafka."""
    from s3lake.land.change.compact import compact_hours

    file_size = int(_parse("--size", size, parse_size))
    _change(request, lambda target, hours: compact_hours(target, hours, yes=request.yes, size=file_size))


def run_erase(
    request: Request,
    where: Annotated[
        str, typer.Option(metavar="SQL", help="Which rows: a condition over the columns of an object, for DuckDB.")
    ],
    dead_letters: Annotated[
        str | None,
        typer.Option(metavar="SQL", help="Which dead letters, if they lack the columns that --where names."),
    ] = None,
) -> None:
    """Delete matching rows from landed hours, key and header files, and dead letters.

    Kafka keeps its records, and a bucket with versions keeps versions.
    """
    from s3lake.land.change.condition import Condition
    from s3lake.land.change.erase import EraseConditions, erase_hours

    conditions = EraseConditions(
        Condition(where), Condition(dead_letters, "--dead-letters") if dead_letters is not None else None
    )
    _change(request, lambda target, hours: erase_hours(target, hours, conditions, yes=request.yes))


def run_reformat(request: Request) -> None:
    """Write landed hours again in the present format and layout.

    Codec and columns are also the sink's present ones.
    """
    from s3lake.land.change.reformat import reformat_hours

    _change(request, lambda target, hours: reformat_hours(target, hours, yes=request.yes))


def run_retention(
    request: Request,
    older_than: Annotated[
        str | None,
        typer.Option(metavar="AGE", help="For example 30d after the end of an hour; default: the sink's `retention`."),
    ] = None,
) -> None:
    """Delete hours past their retention.

    Objects, index and table lose them together.
    """
    from s3lake.config.model.sink_settings import SHORTEST_RETENTION_S
    from s3lake.land.change.retention import expire_hours

    age = None if older_than is None else _parse("--older-than", older_than, parse_duration)
    if age is not None and age < SHORTEST_RETENTION_S:  # 30 is 30 seconds, and days are meant
        raise ConfigurationError(f"--older-than {older_than}: expected at least 1h, with its unit, for example 30d")
    _change(request, lambda target, _: expire_hours(target, yes=request.yes, older_than_s=age))


def _change(request: Request, change: Callable[["TopicSink", list[str]], Iterator["HourChange"]]) -> None:
    """Print, or with --yes do, what `change` yields for each hour."""

    def plan(target: "TopicSink") -> Iterator[Outcome]:
        target.require_exactly_once()
        for result in change(target, target.hours(request.first, request.last)):
            yield Outcome(asdict(result), str(result), result.is_possible)

    request.change(plan, list(request.targets(tables=True)))


def _parse(option: str, text: str, read: Callable[[str], Any]) -> float:
    try:
        return float(read(text))
    except ValueError as error:
        raise ConfigurationError(f"{option} {text}: {error}") from None


def run_restore(
    request: Request,
    into: Annotated[str, typer.Option(metavar="TOPIC", help="The topic to produce into; it has to exist.")],
    without: Annotated[
        list[str] | None, typer.Option(help="key, headers or timestamp: restore without it, if objects lack it.")
    ] = None,
    landed_again: Annotated[
        bool, typer.Option("--landed-again", help="Allow a topic that a sink reads, which lands the records again.")
    ] = False,
) -> None:
    """Produce landed records into a topic.

    Key, value, headers, timestamp and topic-partition are the same. If it is interrupted, the same command continues:
    a reader of committed data gets each record exactly once.
    """
    from s3lake.land.change.restore import Restore, require_allowed
    from s3lake.land.change.restore import restore_records as produce

    request.require("first", "last")
    config = request.load()
    if config.kafka is None:
        raise ConfigurationError("restore produces into Kafka, and this configuration has no `kafka`")
    require_allowed(config.sinks, into, without or (), landed_again=landed_again)
    target = request.target(config).require_exactly_once()
    restoration = Restore(target, target.hours(request.first, request.last), into, without or ())
    if not restoration.hours or not restoration.planned.records:
        print_text(request.as_json, "nothing to restore")
        return
    outcome = restoration.planned
    if request.yes:
        progress = ProgressLine(f"restore {target.topic}: records", outcome.records, quiet=request.as_json)
        outcome = produce(restoration, config.kafka.bootstrap_servers, config.kafka.properties, progress)
    name = {"sink": target.sink.name, "topic": target.topic}
    row = {**name, **asdict(outcome), "finished": request.yes, "summary": str(outcome)}
    emit(request.as_json, row, "{sink} {topic} {summary}".format_map)
    if not request.yes:
        print_text(request.as_json, NOT_DONE)
