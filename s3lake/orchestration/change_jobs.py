"""Jobs that change what has landed, each for a whole configuration: `s3lake clean`, `compact`, `erase` and the others.

A run reports what it would do, and does it if its config has `confirmed: true`: YAML reads the key `yes` as a boolean.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import dagster as dg
from pydantic import Field

from s3lake import hours
from s3lake.config.model import Sink
from s3lake.errors import S3LakeError
from s3lake.orchestration.catalog import Catalog, Route
from s3lake.orchestration.heartbeat import keep_beating
from s3lake.orchestration.hour_checks import check_hours
from s3lake.orchestration.hour_metadata import hour_events
from s3lake.orchestration.jobs import one_op_job
from s3lake.orchestration.landing_run import log_start
from s3lake.orchestration.resource_connections import open_spark_of_run, open_topic
from s3lake.text.quantities import format_count

if TYPE_CHECKING:
    from s3lake.land.change.hour_change import HourChange
    from s3lake.land.topic.topic_sink import TopicSink

_NOTHING_YET = "nothing is changed yet: launch it again with confirmed: true to do it"


class ChangeConfig(dg.Config):
    """Run config of a job that changes what has landed."""

    sink: str = Field("", description="Only this sink; without it all sinks.")
    topics: list[str] = Field([], description="Only these topics; without them all topics.")
    confirmed: bool = Field(False, description="Do it. Without it the run only reports what it would do.")


class HoursConfig(ChangeConfig):
    """Run config of a job that changes hours."""

    from_: str = Field("", alias="from", description="First hour, as 2026-11-20T05 (UTC); without it the first one.")
    to: str = Field("", description="Last hour, included; without it the last one.")


class EraseConfig(HoursConfig):
    """Run config of the job that erases rows. Dagster stores it, and shows it to everybody who can see the run."""

    where: str = Field(description="The condition for rows over the columns of an object, in DuckDB's SQL.")
    dead_letters: str | None = Field(None, description="The condition for dead letters without the columns of `where`.")


class ReplayConfig(HoursConfig):
    """Run config of the job that replays dead letters."""

    reason: str | None = Field(None, description="Only dead letters whose stage and reason contain this text.")


class RestoreConfig(dg.Config):
    """Run config of the job that restores hours into a topic."""

    sink: str = Field(description="The sink that landed them.")
    topic: str = Field(description="The topic that they came from.")
    from_: str = Field(alias="from", description="First hour, as 2026-11-20T05 (UTC).")
    to: str = Field(description="Last hour, included.")
    into: str = Field(description="The topic that the records are produced into; it has to exist.")
    without: list[str] = Field([], description="key, headers or timestamp, if the objects lack them.")
    landed_again: bool = Field(False, description="Also into a topic that a sink reads, which lands them again.")
    confirmed: bool = Field(False, description="Do it. Without it the run only reports what it would do.")

    @property
    def topics(self) -> list[str]:
        return [self.topic]


Outcome = tuple[object, str | None]
"""What is logged, and the hour that has changed, if one has: its events are stored."""


@dataclass(frozen=True)
class ChangeJob:
    """A change: `description` is that of its job, `work` does it for one topic, or only reports what it would do.

    `applies` returns whether a sink can be changed in this way, `allow_retries` allows Dagster to run a failed step
    again.
    """

    name: str
    description: str
    work: "Callable[[Catalog, TopicSink, Any], Iterable[Outcome]]"
    config: type[Any]
    applies: Callable[[Sink], bool] = lambda sink: sink.exactly_once
    needs_spark: bool = False
    allow_retries: bool = False


def _select(target: "TopicSink", config: Any) -> "tuple[TopicSink, list[str]]":
    """Return the topic of a sink, and its hours that the config names."""
    return target.require_exactly_once(), target.hours(config.from_ or None, config.to or None)


def _to_outcomes(changes: "Iterable[HourChange]", config: Any) -> Iterator[Outcome]:
    return ((change, change.hour if config.confirmed and change.is_possible else None) for change in changes)


def _clean(_: Catalog, target: "TopicSink", config: Any) -> Iterable[Outcome]:
    removed: Sequence[object] = target.clean(dry_run=not config.confirmed)
    return [(leftover, None) for leftover in removed or ["nothing to remove"]]


def _compact(_: Catalog, target: "TopicSink", config: Any) -> Iterable[Outcome]:
    from s3lake.land.change.compact import compact_hours

    return _to_outcomes(compact_hours(*_select(target, config), yes=config.confirmed), config)


def _reformat(_: Catalog, target: "TopicSink", config: Any) -> Iterable[Outcome]:
    from s3lake.land.change.reformat import reformat_hours

    return _to_outcomes(reformat_hours(*_select(target, config), yes=config.confirmed), config)


def _expire(_: Catalog, target: "TopicSink", config: Any) -> Iterable[Outcome]:
    from s3lake.land.change.retention import expire_hours

    return _to_outcomes(expire_hours(target.require_exactly_once(), yes=config.confirmed), config)


def _erase(_: Catalog, target: "TopicSink", config: Any) -> Iterable[Outcome]:
    from s3lake.land.change.condition import Condition
    from s3lake.land.change.erase import EraseConditions, erase_hours

    dead_letters = Condition(config.dead_letters, "dead_letters") if config.dead_letters else None
    conditions = EraseConditions(Condition(config.where, "where"), dead_letters)
    return _to_outcomes(erase_hours(*_select(target, config), conditions, yes=config.confirmed), config)


def _replay(_catalog: Catalog, target: "TopicSink", config: Any) -> Iterable[Outcome]:
    from s3lake.land.change.committed_dead_letters import ReasonFilter, hours_of
    from s3lake.land.change.replay import replay

    chosen, dry_run = ReasonFilter(config.reason), not config.confirmed
    for tile, _ in list(hours_of(target, config.from_, config.to)):
        commits = 0
        for replayed in replay(target, tile.hour, chosen, dry_run=dry_run):
            yield f"{tile.hour}: {replayed}", None
            commits += replayed.commit is not None
        if commits:
            yield f"{tile.hour}: replaced {format_count(commits, 'commits')}", tile.hour


def _restore(catalog: Catalog, target: "TopicSink", config: Any) -> Iterable[Outcome]:
    from s3lake.land.change.restore import Restore, require_allowed, restore_records

    require_allowed(catalog.config.sinks, config.into, config.without, landed_again=config.landed_again)
    restoration = Restore(*_select(target, config), config.into, config.without)
    kafka, log = catalog.config.kafka, dg.get_dagster_logger()
    assert kafka is not None, "the job is defined for Kafka only"

    def advance(done: int) -> None:
        log.info(f"{target.topic}: {done:,} of {restoration.planned.records:,} records are in topic {config.into}")

    if not restoration.hours or not restoration.planned.records:
        yield "nothing to restore", None
        return
    yield restoration.planned, None
    if config.confirmed:
        yield restore_records(restoration, kafka.bootstrap_servers, kafka.properties, advance), None


CHANGES = (
    ChangeJob(
        "clean",
        "Removes what interrupted runs left behind: `s3lake clean`.",
        _clean,
        ChangeConfig,
        applies=lambda _: True,
        allow_retries=True,
    ),
    ChangeJob("compact", "Merges the small files of hours into large ones: `s3lake compact`.", _compact, HoursConfig),
    ChangeJob(
        "reformat",
        "Writes hours again in the format, codec, layout and columns that their sink has now: `s3lake reformat`.",
        _reformat,
        HoursConfig,
    ),
    ChangeJob(
        "erase",
        "Deletes rows from hours: `s3lake erase`. Dagster stores the config of a run: use a condition without "
        "names of people, or the command.",
        _erase,
        EraseConfig,
    ),
    ChangeJob(
        "retention",
        "Deletes hours that are older than `retention` of their sink: `s3lake retention`.",
        _expire,
        ChangeConfig,
        applies=lambda sink: sink.exactly_once and sink.retention is not None,
    ),
    ChangeJob(
        "replay",
        "Lands dead letters after all, into the hours that they belong to, exactly once: `s3lake dead-letters replay`. "
        "A record that is refused again stays one, with its new reason.",
        _replay,
        ReplayConfig,
        applies=lambda sink: sink.errors.tolerance == "all",
        needs_spark=True,
    ),
    ChangeJob(
        "restore",
        "Produces the records of hours into a topic, exactly once: `s3lake restore`. Launched again, it continues "
        "where it stopped.",
        _restore,
        RestoreConfig,
    ),
)


def change_jobs(catalog: Catalog) -> dict[str, dg.JobDefinition]:
    """Return, by the name of the change, the job of each one that can be done to a sink of the configuration."""
    sinks = [catalog.config.sink(name) for name, topics in catalog.topics.items() if topics]
    return {
        change.name: _change_job(catalog, change)
        for change in CHANGES
        if any(change.applies(sink) for sink in sinks) and (change.name != "restore" or catalog.config.kafka)
    }


def _change_job(catalog: Catalog, change: ChangeJob) -> dg.JobDefinition:
    name = catalog.own_name(change.name)

    def work(context: dg.OpExecutionContext, config: Any) -> None:
        opening = partial(open_spark_of_run, context.resources, catalog)
        spark = log_start(opening, context.log, sql=False) if change.needs_spark else None
        errors: list[S3LakeError] = []
        with keep_beating(context):
            for route in _requested_routes(catalog, change, config):
                try:
                    target = open_topic(context.resources, catalog, *route, spark=spark)
                    _report(context, catalog, target, change.work(catalog, target, config))
                except S3LakeError as error:  # the other topics are changed all the same
                    context.log.error(f"sink {route.sink.name}, topic {route.topic}: {error}")
                    errors.append(error)
        if errors:
            raise dg.Failure(str(errors[0]), allow_retries=change.allow_retries) from errors[0]
        if not config.confirmed:
            context.log.info(_NOTHING_YET)

    work.__annotations__["config"] = change.config  # Dagster reads the schema of the config from there
    needed = catalog.own_resource_keys("s3", *(["spark"] if change.needs_spark else []))
    op = dg.op(name=f"{name}_op", required_resource_keys=needed)(work)
    return one_op_job(
        op, name=name, description=f"{change.description} Reports what it would do until it is confirmed."
    )


def _report(context: dg.OpExecutionContext, catalog: Catalog, target: "TopicSink", outcomes: Iterable[Outcome]) -> None:
    """Log each outcome of a topic. Store the events of hours that have changed, with checks and sealed content."""
    for outcome, hour in outcomes:
        context.log.info(f"{target.sink.name} {target.topic} {outcome}")
        if hour is not None:
            for event in hour_events(catalog, target, target.report(hour, 1)):
                context.log_event(event)
            for result in check_hours(context.instance, catalog, target, [hour]):
                context.log_event(result)  # type: ignore[arg-type]  # it takes evaluations too


def _requested_routes(catalog: Catalog, change: ChangeJob, config: Any) -> list[Route]:
    """Return the topics of the sinks that the run config names. Raise Failure if one cannot be changed in this way."""
    try:
        hours.require_range(getattr(config, "from_", "") or None, getattr(config, "to", "") or None)
    except ValueError as error:
        raise dg.Failure(f"from, to: {error}", allow_retries=False) from None
    routes = [route for route in catalog.routes if change.applies(route.sink)]
    sinks = sorted({route.sink.name for route in routes})
    if config.sink and config.sink not in sinks:
        raise _refusal("sink", config.sink, f"a sink that {change.name} can change", sinks)
    routes = [route for route in routes if config.sink in ("", route.sink.name)]
    topics = sorted({route.topic for route in routes})
    for topic in config.topics:
        if topic not in topics:
            raise _refusal("topics", topic, f"a topic of {f'sink {config.sink}' if config.sink else 'a sink'}", topics)
    return [route for route in routes if not config.topics or route.topic in config.topics]


def _refusal(key: str, value: str, expected: str, allowed: Sequence[str]) -> dg.Failure:
    return dg.Failure(f"{key}: {value!r} is not {expected}; expected one of {', '.join(allowed)}", allow_retries=False)
