"""Jobs and schedules: every hour the last hour of every topic of a sink, and every day what dead writers left of it."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

import dagster as dg

from s3lake import hours
from s3lake.errors import S3LakeError
from s3lake.orchestration import names
from s3lake.orchestration.fleet_runs import run_config, run_tags
from s3lake.orchestration.resources import landing
from s3lake.sink import Sink


def sink_job(sink: Sink, topics: Sequence[str]) -> Any:
    """Lands hours of every topic of `sink`."""
    return dg.define_asset_job(
        name=names.identifier("land", sink.name),
        selection=[names.sink_key(sink, topic) for topic in topics],
        description=f"Lands every topic of sink {sink.name}.",
    )


def hourly_schedule(sink: Sink, job: Any, together: Sequence[str] = ()) -> dg.ScheduleDefinition:
    """Every hour, once the grace of the hour before is over: that hour and the one under way, as one range.

    Args:
        sink: the sink.
        job: what lands it.
        together: the topics of a fleet, whose job is told in its config what to land.
    """
    minute = min(59, int(sink.close_grace // 60) + 1)

    @dg.schedule(
        name=names.identifier("hourly", sink.name),
        job=job,
        cron_schedule=f"{minute} * * * *",
        execution_timezone="UTC",
        description=f"Closes and lands the hour before, for sink {sink.name}; the sensors do it sooner.",
    )
    def every_hour(context: dg.ScheduleEvaluationContext) -> Iterator[dg.RunRequest | dg.SkipReason]:
        now = context.scheduled_execution_time
        first, last = hours.key(now - timedelta(hours=1)), hours.key(now)
        if last < sink.start:
            yield dg.SkipReason(f"sink {sink.name} starts at {sink.start}")
            return
        first = max(first, sink.start)
        span = f"{first}..{last}"
        if together:
            yield dg.RunRequest(
                run_key=span, run_config=run_config(sink, {span: together}), tags=run_tags(sink, together)
            )
        else:
            yield dg.RunRequest(run_key=span, tags={names.RANGE_START: first, names.RANGE_END: last})

    return every_hour


def clean_job(sink: Sink, topics: Sequence[str]) -> dg.JobDefinition:
    """Removes what dead writers left behind, of every topic of `sink`."""
    name = names.identifier("clean", sink.name)

    @dg.op(name=f"remove_{names.identifier(sink.name)}")
    def remove(context: dg.OpExecutionContext, kafka: dg.ResourceParam[Any], s3: dg.ResourceParam[Any]) -> None:
        failed: list[S3LakeError] = []
        for topic in topics:
            try:
                done = landing(sink, topic, kafka, s3, spark=None).clean()
            except S3LakeError as error:  # one topic is no reason to leave the others
                context.log.error(f"topic {topic}: {error}")
                failed.append(error)
                continue
            for one in done:
                context.log.info(f"{topic} {one}")
            if not done:
                context.log.info(f"{topic}: nothing to remove")
        if failed:
            raise dg.Failure(str(failed[0])) from failed[0]

    @dg.job(name=name, description=f"Removes what dead writers left behind of sink {sink.name}: `s3lake clean`.")
    def job() -> None:
        remove()

    return job


def daily_clean(sink: Sink, job: dg.JobDefinition, status: dg.DefaultScheduleStatus) -> dg.ScheduleDefinition:
    """Every night; `status` is before anybody switches it in the UI."""
    return dg.ScheduleDefinition(
        name=names.identifier("daily_clean", sink.name),
        job=job,
        cron_schedule="40 3 * * *",
        execution_timezone="UTC",
        default_status=status,
        description=f"Removes what dead writers left behind of sink {sink.name}.",
    )
