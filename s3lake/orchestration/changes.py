"""Jobs that change what a sink has landed, from the UI and by schedule: `s3lake compact`, `s3lake retention`."""

import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import dagster as dg

from s3lake.orchestration import names
from s3lake.orchestration.alive import alive
from s3lake.orchestration.catalogue import Catalogue
from s3lake.orchestration.each_topic import each_topic
from s3lake.orchestration.replays import changed_hour
from s3lake.orchestration.resources import looking
from s3lake.sink import Sink

Change = Callable[[Any], Iterable[tuple[str, object, bool]]]
"""What is done to what a sink holds of a topic: hour, what is to be said of it, and whether it has changed."""


def compact_job(catalogue: Catalogue, sink: Sink) -> dg.JobDefinition:
    """Makes few large files of those of an hour, of every topic of `sink`: a partition is an hour."""

    def compacted(hour: str, holding: Any) -> Iterable[tuple[str, object, bool]]:
        from s3lake.land.change.compact import compact, compactions

        for plan in compactions(holding, holding.hours(hour, hour)):
            yield hour, plan if plan.obstacle else compact(holding, hour), not plan.obstacle

    @dg.op(
        name=catalogue.name("join_files", sink.name),
        tags={names.SINK: catalogue.tag(sink)},
        required_resource_keys={catalogue.keys.kafka, catalogue.keys.s3},
    )
    def join(context: dg.OpExecutionContext) -> None:
        _change(context, catalogue, sink, partial(compacted, context.partition_key))

    @dg.job(
        name=catalogue.name("compact", sink.name),
        executor_def=dg.in_process_executor,
        partitions_def=catalogue.landed(sink, catalogue.topics[sink.name][0]).partitions_def,
        description=f"Makes few large files of those that hours of sink {sink.name} have: `s3lake compact`.",
    )
    def job() -> None:
        join()

    return job


def retention_job(catalogue: Catalogue, sink: Sink) -> dg.JobDefinition:
    """Lets the hours of `sink` go that it keeps no longer."""

    def expired_hours(holding: Any) -> Iterable[tuple[str, object, bool]]:
        from s3lake.land.change.retention import expire, expired, kept_s

        for plan in expired(holding, holding.hours(), kept_s(holding, None), int(time.time() * 1000)):
            yield plan.hour, plan if plan.obstacle else expire(holding, plan.hour), not plan.obstacle

    @dg.op(
        name=catalogue.name("expire", sink.name),
        tags={names.SINK: catalogue.tag(sink)},
        required_resource_keys={catalogue.keys.kafka, catalogue.keys.s3},
    )
    def expire_all(context: dg.OpExecutionContext) -> None:
        _change(context, catalogue, sink, expired_hours)

    @dg.job(
        name=catalogue.name("retention", sink.name),
        executor_def=dg.in_process_executor,
        description=f"Lets hours go that sink {sink.name} keeps no longer: `s3lake retention`.",
    )
    def job() -> None:
        expire_all()

    return job


def daily_retention(
    catalogue: Catalogue, sink: Sink, job: dg.JobDefinition, status: dg.DefaultScheduleStatus
) -> dg.ScheduleDefinition:
    """Every night; `status` is before anybody switches it in the UI."""
    return dg.ScheduleDefinition(
        name=catalogue.name("daily_retention", sink.name),
        job=job,
        cron_schedule="50 3 * * *",
        execution_timezone="UTC",
        default_status=status,
        description=f"Lets hours go that sink {sink.name} keeps no longer.",
    )


def _change(context: dg.OpExecutionContext, catalogue: Catalogue, sink: Sink, change: Change) -> None:
    """Change what is landed of every topic, and tell the assets of each hour that is another now."""
    from s3lake.land.change.holding import Holding

    def change_topic(topic: str) -> None:
        lander = looking(context.resources, catalogue.keys, sink, topic)
        for hour, outcome, changed in change(Holding.of(lander)):
            context.log.info(f"{topic} {outcome}")
            for event in changed_hour(context, catalogue, lander, hour, 1) if changed else ():
                context.log_event(event)

    with alive(context):
        each_topic(context, catalogue.topics[sink.name], change_topic, allow_retries=False)
