"""Jobs and schedules: every hour the last hour of every topic of a sink, and every day what dead writers left of it."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

import dagster as dg

from s3lake import hours
from s3lake.orchestration import names
from s3lake.orchestration.catalogue import Catalogue
from s3lake.orchestration.each_topic import each_topic
from s3lake.orchestration.fleet_runs import run_config, run_tags
from s3lake.orchestration.jobs import job_of
from s3lake.orchestration.resources import looking
from s3lake.sink import Sink


def sink_job(catalogue: Catalogue, sink: Sink) -> Any:
    """Lands hours of every topic of `sink`."""
    return dg.define_asset_job(
        name=catalogue.name("land", sink.name),
        selection=[catalogue.key(sink, topic) for topic in catalogue.topics[sink.name]],
        # A JVM per step costs more than the steps: one process, one session a run.
        executor_def=dg.in_process_executor,
        description=f"Lands every topic of sink {sink.name}.",
    )


def hourly_schedule(catalogue: Catalogue, sink: Sink, job: Any, together: Sequence[str] = ()) -> dg.ScheduleDefinition:
    """Every hour, once the grace of the hour before is over: that hour and the one under way, as one range.

    Args:
        catalogue: what all is called.
        job: what lands it.
        together: the topics of a fleet, whose job is told in its config what to land.
    """
    topics = catalogue.topics[sink.name]
    minute = min(59, int(sink.close_grace // 60) + 1)

    @dg.schedule(
        name=catalogue.name("hourly", sink.name),
        job=job,
        cron_schedule=f"{minute} * * * *",
        execution_timezone="UTC",
        description=f"Closes and lands the hour before, for sink {sink.name}; the sensors do it sooner.",
    )
    def every_hour(context: dg.ScheduleEvaluationContext) -> Iterator[dg.RunRequest | dg.SkipReason]:
        now = context.scheduled_execution_time
        both = catalogue.within(sink, topics[0], {hours.key(now - timedelta(hours=1)), hours.key(now)})
        due = sorted(hour for hour in both if hour >= sink.start)
        if not due:
            yield dg.SkipReason(f"sink {sink.name} has neither hour: it starts at {sink.start}")
            return
        first, last = due[0], due[-1]
        span = f"{first}..{last}"
        if together:
            yield dg.RunRequest(
                run_key=span,
                run_config=run_config(catalogue, sink, {span: together}),
                tags=run_tags(catalogue, sink, together),
            )
        else:
            yield dg.RunRequest(run_key=span, tags={names.RANGE_START: first, names.RANGE_END: last})

    return every_hour


def clean_job(catalogue: Catalogue, sink: Sink) -> dg.JobDefinition:
    """Removes what dead writers left behind, of every topic of `sink`."""
    keys = catalogue.keys

    @dg.op(name=catalogue.name("remove", sink.name), required_resource_keys={keys.kafka, keys.s3})
    def remove(context: dg.OpExecutionContext) -> None:
        def clean(topic: str) -> None:
            done = looking(context.resources, keys, sink, topic).clean()
            for cleaned in done:
                context.log.info(f"{topic} {cleaned}")
            if not done:
                context.log.info(f"{topic}: nothing to remove")

        each_topic(context, catalogue.topics[sink.name], clean, allow_retries=True)

    return job_of(
        remove,
        name=catalogue.name("clean", sink.name),
        description=f"Removes what dead writers left behind of sink {sink.name}: `s3lake clean`.",
    )


def daily_clean(
    catalogue: Catalogue, sink: Sink, job: dg.JobDefinition, status: dg.DefaultScheduleStatus
) -> dg.ScheduleDefinition:
    """Every night; `status` is before anybody switches it in the UI."""
    does = f"Removes what dead writers left behind of sink {sink.name}."
    return nightly(catalogue.name("daily_clean", sink.name), job, 40, does, status)


def nightly(
    name: str, job: dg.JobDefinition, minute: int, does: str, status: dg.DefaultScheduleStatus
) -> dg.ScheduleDefinition:
    """At a minute past three; `status` is before anybody switches it in the UI."""
    return dg.ScheduleDefinition(
        name=name,
        job=job,
        cron_schedule=f"{minute} 3 * * *",
        execution_timezone="UTC",
        default_status=status,
        description=does,
    )
