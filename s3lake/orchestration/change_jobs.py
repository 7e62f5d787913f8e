"""Jobs that change what has landed, each for a whole configuration: `s3lake clean`, `compact`, `erase` and the others.

A run reports what it would do, and does it if its config says `confirmed: true`: YAML reads the key `yes` as a boolean.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import dagster as dg
from pydantic import Field

from s3lake.errors import S3LakeError
from s3lake.orchestration.catalog import Catalog, Route
from s3lake.orchestration.checks import check_hours
from s3lake.orchestration.connections import open_topic, spark_session
from s3lake.orchestration.heartbeat import keep_beating
from s3lake.orchestration.hour_metadata import hour_events
from s3lake.orchestration.jobs import one_op_job
from s3lake.orchestration.landing_run import log_start
from s3lake.sink import Sink

if TYPE_CHECKING:
    from s3lake.land.landing import Landing
    from s3lake.land.maintenance.replace import HourChange

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

    where: str = Field(description="Which rows: a condition over the columns of an object, in DuckDB's SQL.")
    letters: str | None = Field(None, description="Which dead letters, if they lack the columns of `where`.")


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


@dataclass(frozen=True)
class Run:
    """A run of a change job."""

    context: dg.OpExecutionContext
    catalog: Catalog
    config: Any

    def apply(self, landing: "Landing", outcomes: "Iterable[HourChange]") -> None:
        """Log the outcome of each hour, and store the events of the hours that have changed."""
        for outcome in outcomes:
            self.context.log.info(f"{landing.sink.name} {landing.topic} {outcome}")
            if self.config.confirmed and outcome.is_possible:
                self.store_events(landing, outcome.hour, 1)

    def store_events(self, landing: "Landing", hour: str, new: int) -> None:
        """Store the events of an hour that `new` commits have changed: also its checks, and its new sealed content."""
        instance = self.context.instance
        for event in hour_events(self.catalog, landing, landing.report(hour, new)):
            self.context.log_event(event)
        for result in check_hours(instance, self.catalog, landing, [hour]):
            self.context.log_event(result)  # type: ignore[arg-type]  # it takes evaluations too

    def hours(self, target: Any) -> list[str]:
        """Return the hours of the topic that the config names."""
        hours: list[str] = target.hours(self.config.from_ or None, self.config.to or None)
        return hours


@dataclass(frozen=True)
class Change:
    """A change: `description` is that of its job, `work` does or reports it for one topic.

    `applies` returns whether a sink can be changed in this way, `allow_retries` allows Dagster to run a failed step
    again.
    """

    name: str
    description: str
    work: "Callable[[Run, Landing], None]"
    config: type[Any]
    applies: Callable[[Sink], bool] = lambda sink: sink.exactly_once
    needs_spark: bool = False
    allow_retries: bool = False


def _clean(run: Run, landing: "Landing") -> None:
    removed = landing.clean(dry_run=not run.config.confirmed)
    for leftover in removed:
        run.context.log.info(f"{landing.sink.name} {landing.topic} {leftover}")
    if not removed:
        run.context.log.info(f"{landing.sink.name} {landing.topic}: nothing to remove")


def _compact(run: Run, landing: "Landing") -> None:
    from s3lake.land.maintenance.compact import compact_hours

    target = landing.target.require_exactly_once()
    run.apply(landing, compact_hours(target, run.hours(target), yes=run.config.confirmed))


def _reformat(run: Run, landing: "Landing") -> None:
    from s3lake.land.maintenance.reformat import reformat_hours

    target = landing.target.require_exactly_once()
    run.apply(landing, reformat_hours(target, run.hours(target), yes=run.config.confirmed))


def _expire(run: Run, landing: "Landing") -> None:
    from s3lake.land.maintenance.retention import expire_hours

    run.apply(landing, expire_hours(landing.target.require_exactly_once(), yes=run.config.confirmed))


def _erase(run: Run, landing: "Landing") -> None:
    from s3lake.land.maintenance.condition import Condition
    from s3lake.land.maintenance.erase import EraseConditions, erase_hours

    config, target = run.config, landing.target.require_exactly_once()
    letters = Condition(config.letters, "letters") if config.letters else None
    conditions = EraseConditions(Condition(config.where, "where"), letters)
    run.apply(landing, erase_hours(target, run.hours(target), conditions, yes=config.confirmed))


def _replay(run: Run, landing: "Landing") -> None:
    from s3lake.land.maintenance.dead_letters import ReasonFilter, hours_of
    from s3lake.land.maintenance.replay import replay

    config = run.config
    for tile, _ in hours_of(landing.index, config.from_, config.to or "9"):
        new = 0
        chosen, target = ReasonFilter(config.reason), landing.target
        for replayed in replay(target, tile.hour, chosen, landing.spark, dry_run=not config.confirmed):
            new += replayed.commit is not None
            run.context.log.info(f"{landing.sink.name} {landing.topic}, hour {tile.hour}: {replayed}")
        if new:
            run.store_events(landing, tile.hour, new)


def _restore(run: Run, landing: "Landing") -> None:
    from s3lake.land.maintenance.restore import Restore, permitted, restore

    config, log = run.config, run.context.log
    permitted(run.catalog.config.sinks, config.into, config.without, landed_again=config.landed_again)
    target = landing.target.require_exactly_once()
    restoration = Restore(target, run.hours(target), config.into, config.without)
    planned = restoration.planned
    if not restoration.hours or not planned.records:
        log.info("nothing to restore")
    elif not config.confirmed:
        log.info(f"{landing.topic} {planned}")
    else:
        kafka = run.catalog.config.kafka
        assert kafka is not None, "the job is defined for Kafka only"

        def advance(done: int) -> None:
            log.info(f"{landing.topic}: {done:,} of {planned.records:,} records are in topic {config.into}")

        log.info(f"{landing.topic} {restore(restoration, kafka.bootstrap_servers, kafka.properties, advance)}")


CHANGES = (
    Change(
        "clean",
        "Removes what interrupted runs left behind: `s3lake clean`.",
        _clean,
        ChangeConfig,
        applies=lambda _: True,
        allow_retries=True,
    ),
    Change("compact", "Merges the small files of hours into large ones: `s3lake compact`.", _compact, HoursConfig),
    Change(
        "reformat",
        "Writes hours again in the format, codec, layout and columns that their sink has now: `s3lake reformat`.",
        _reformat,
        HoursConfig,
    ),
    Change(
        "erase",
        "Deletes rows from hours: `s3lake erase`. Dagster stores the config of a run: use a condition without "
        "names of people, or the command.",
        _erase,
        EraseConfig,
    ),
    Change(
        "retention",
        "Deletes hours that are older than `retention` of their sink: `s3lake retention`.",
        _expire,
        ChangeConfig,
        applies=lambda sink: sink.exactly_once and sink.retention is not None,
    ),
    Change(
        "replay",
        "Lands dead letters after all, into the hours that they belong to, exactly once: `s3lake dead-letters replay`. "
        "A record that is refused again stays one, with its new reason.",
        _replay,
        ReplayConfig,
        applies=lambda sink: sink.errors.tolerance == "all",
        needs_spark=True,
    ),
    Change(
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


def _change_job(catalog: Catalog, change: Change) -> dg.JobDefinition:
    name = catalog.own_name(change.name)

    def work(context: dg.OpExecutionContext, config: Any) -> None:
        run = Run(context, catalog, config)
        session = partial(spark_session, context.resources, catalog)
        spark = log_start(session, context.log, sql=False) if change.needs_spark else None
        errors: list[S3LakeError] = []
        with keep_beating(context):
            for route in _requested_routes(catalog, change, config):
                try:
                    change.work(run, open_topic(context.resources, catalog, *route, spark=spark))
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


def _requested_routes(catalog: Catalog, change: Change, config: Any) -> list[Route]:
    """Return the topics of the sinks that the run config names. Raise Failure if one cannot be changed in this way."""
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
