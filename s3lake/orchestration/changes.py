"""Jobs that change what a sink has landed, from the UI and by schedule: `s3lake compact`, `s3lake retention`…

Those that run by schedule or partition do it at once. The others say what they would do until `confirmed` is set.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import dagster as dg
from pydantic import Field

from s3lake.orchestration import names
from s3lake.orchestration.alive import alive
from s3lake.orchestration.catalogue import Catalogue
from s3lake.orchestration.each_topic import each_topic, topics_asked
from s3lake.orchestration.jobs import job_of
from s3lake.orchestration.replays import changed_hour
from s3lake.orchestration.resources import looking, resource
from s3lake.orchestration.schedules import nightly
from s3lake.sink import Sink

if TYPE_CHECKING:
    from s3lake.land.landing import Landing

Change = Callable[[Any], Iterable[tuple[Any, bool]]]
"""What is done to what a sink holds of a topic: what becomes of an hour, and whether anything does."""
_NOTHING_YET = "nothing is changed yet: launch it again with confirmed: true to do it"


class ChangeConfig(dg.Config):
    """Run config of an op that changes what has landed."""

    topics: list[str] = Field([], description="Only these topics of the sink; all without any.")
    first: str = Field("", description="First hour, as 2026-11-20T05 (UTC); all before `last` without it.")
    last: str = Field("", description="Last hour, included; all since `first` without it.")
    confirmed: bool = Field(False, description="Do it. Without it the run only says what it would do.")


class EraseConfig(ChangeConfig):
    """Run config of the op that erases rows. Dagster keeps it, and shows it to everybody who sees the run."""

    where: str = Field(description="Of which rows: a condition over the columns of an object, in DuckDB's SQL.")
    letters: str | None = Field(None, description="Of which dead letters, where they lack the columns of `where`.")


class RestoreConfig(dg.Config):
    """Run config of the op that restores hours into a topic."""

    topic: str = Field(description="That they came from.")
    first: str = Field(description="First hour, as 2026-11-20T05 (UTC).")
    last: str = Field(description="Last hour, included.")
    into: str = Field(description="The topic that records go into; it has to exist.")
    without: list[str] = Field([], description="key, headers or timestamp, where objects lack them.")
    landed_again: bool = Field(False, description="Also into a topic that a sink reads, which lands them once more.")
    confirmed: bool = Field(False, description="Do it. Without it the run only says what it would do.")


def compact_job(catalogue: Catalogue, sink: Sink) -> dg.JobDefinition:
    """Makes few large files of those of an hour, of every topic of `sink`: a partition is an hour."""

    @_op(catalogue, sink, "join_files")
    def join(context: dg.OpExecutionContext) -> None:
        from s3lake.land.change.rounds import compacted

        hour = context.partition_key

        def change(target: Any) -> Iterable[tuple[Any, bool]]:
            return compacted(target, target.hours(hour, hour), yes=True)

        _change(context, catalogue, sink, catalogue.topics[sink.name], change, yes=True)

    return job_of(
        join,
        name=catalogue.name("compact", sink.name),
        partitions_def=catalogue.landed(sink, catalogue.topics[sink.name][0]).partitions_def,
        description=f"Makes few large files of those that hours of sink {sink.name} have: `s3lake compact`.",
    )


def retention_job(catalogue: Catalogue, sink: Sink) -> dg.JobDefinition:
    """Lets the hours of `sink` go that it keeps no longer."""

    @_op(catalogue, sink, "expire")
    def expire_all(context: dg.OpExecutionContext) -> None:
        from s3lake.land.change.rounds import expired_hours

        _change(context, catalogue, sink, catalogue.topics[sink.name], partial(expired_hours, yes=True), yes=True)

    return job_of(
        expire_all,
        name=catalogue.name("retention", sink.name),
        description=f"Lets hours go that sink {sink.name} keeps no longer: `s3lake retention`.",
    )


def daily_retention(
    catalogue: Catalogue, sink: Sink, job: dg.JobDefinition, status: dg.DefaultScheduleStatus
) -> dg.ScheduleDefinition:
    """Every night; `status` is before anybody switches it in the UI."""
    does = f"Lets hours go that sink {sink.name} keeps no longer."
    return nightly(catalogue.name("daily_retention", sink.name), job, 50, does, status)


def reformat_job(catalogue: Catalogue, sink: Sink) -> dg.JobDefinition:
    """Writes hours of `sink` in the form that it has now."""

    @_op(catalogue, sink, "write_anew")
    def write_anew(context: dg.OpExecutionContext, config: ChangeConfig) -> None:
        from s3lake.land.change.rounds import reformatted

        def change(target: Any) -> Iterable[tuple[Any, bool]]:
            return reformatted(target, _hours(target, config), yes=config.confirmed)

        _change(context, catalogue, sink, topics_asked(catalogue, sink, config.topics), change, yes=config.confirmed)

    return job_of(
        write_anew,
        name=catalogue.name("reformat", sink.name),
        description=f"Writes hours of sink {sink.name} in the format, codec, layout and columns that it has now: "
        "`s3lake reformat`. Says what it would do until confirmed is set.",
    )


def erase_job(catalogue: Catalogue, sink: Sink) -> dg.JobDefinition:
    """Takes rows out of hours of `sink`."""

    @_op(catalogue, sink, "take_out_rows")
    def take_out(context: dg.OpExecutionContext, config: EraseConfig) -> None:
        from s3lake.land.change.condition import Condition
        from s3lake.land.change.erase import Person
        from s3lake.land.change.rounds import erased

        letters = Condition(config.letters, "letters") if config.letters else None
        person = Person(Condition(config.where, "where"), letters)

        def change(target: Any) -> Iterable[tuple[Any, bool]]:
            return erased(target, _hours(target, config), person, yes=config.confirmed)

        _change(context, catalogue, sink, topics_asked(catalogue, sink, config.topics), change, yes=config.confirmed)

    return job_of(
        take_out,
        name=catalogue.name("erase", sink.name),
        description=f"Takes rows out of hours of sink {sink.name}: `s3lake erase`. Says what it would do until "
        "confirmed is set. Dagster keeps what a run was asked: erase by a condition that names nobody, or by the "
        "command.",
    )


def restore_job(catalogue: Catalogue, sink: Sink) -> dg.JobDefinition:
    """Produces the records of hours of `sink` into a topic."""

    @_op(catalogue, sink, "produce")
    def produce(context: dg.OpExecutionContext, config: RestoreConfig) -> None:
        (topic,) = topics_asked(catalogue, sink, [config.topic])

        def restore_topic(_: str) -> None:
            _restore(context, catalogue, looking(context.resources, catalogue.keys, sink, topic), config)

        with alive(context):
            each_topic(context, [topic], restore_topic, allow_retries=False)

    return job_of(
        produce,
        name=catalogue.name("restore", sink.name),
        description=f"Produces the records of hours of sink {sink.name} into a topic, exactly once: `s3lake restore`. "
        "Says what it would do until confirmed is set; launched again it goes on where it stopped.",
    )


def _restore(context: dg.OpExecutionContext, catalogue: Catalogue, lander: "Landing", config: RestoreConfig) -> None:
    from s3lake.land.change.restore import Restore, permitted, restore

    permitted(catalogue.config.sinks, config.into, config.without, landed_again=config.landed_again)
    target = lander.target.require_exactly_once()
    wanted = Restore(target, target.hours(config.first, config.last), config.into, config.without)
    if not wanted.hours or not wanted.planned.records:
        context.log.info("nothing to restore")
        return
    if not config.confirmed:
        context.log.info(f"{lander.topic} {wanted.planned}")
        context.log.info("nothing is produced yet: launch it again with confirmed: true to do it")
        return
    brokers, planned = resource(context.resources, catalogue.keys.kafka).reader, wanted.planned

    def advance(done: int) -> None:
        context.log.info(f"{lander.topic}: {done:,} of {planned.records:,} records are in topic {config.into}")

    context.log.info(f"{lander.topic} {restore(wanted, brokers.bootstrap_servers, brokers.properties, advance)}")


def _op(catalogue: Catalogue, sink: Sink, name: str) -> Callable[[Callable[..., None]], dg.OpDefinition]:
    return dg.op(
        name=catalogue.name(name, sink.name),
        tags={names.SINK: catalogue.tag(sink)},
        required_resource_keys={catalogue.keys.kafka, catalogue.keys.s3},
    )


def _hours(target: Any, config: ChangeConfig) -> list[str]:
    hours: list[str] = target.hours(config.first or None, config.last or None)
    return hours


def _change(
    context: dg.OpExecutionContext,
    catalogue: Catalogue,
    sink: Sink,
    topics: Sequence[str],
    change: Change,
    *,
    yes: bool,
) -> None:
    """Change what is landed of topics, and tell the assets of each hour that is another now; or only say it."""

    def change_topic(topic: str) -> None:
        lander = looking(context.resources, catalogue.keys, sink, topic)
        for outcome, possible in change(lander.target.require_exactly_once()):
            context.log.info(f"{topic} {outcome}")
            changed = yes and possible and not outcome.obstacle
            for event in changed_hour(context, catalogue, lander, outcome.hour, 1) if changed else ():
                context.log_event(event)

    with alive(context):
        each_topic(context, topics, change_topic, allow_retries=False)
    if not yes:
        context.log.info(_NOTHING_YET)
