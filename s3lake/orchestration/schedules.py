"""Jobs and schedules: the last hour of every topic of a sink, at a minute past its grace."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

import dagster as dg

from s3lake import hours
from s3lake.orchestration import names
from s3lake.sink import Sink


def sink_job(sink: Sink, topics: Sequence[str]) -> Any:
    """Lands hours of every topic of `sink`."""
    return dg.define_asset_job(
        name=names.identifier("land", sink.name),
        selection=[names.sink_key(sink, topic) for topic in topics],
        description=f"Lands every topic of sink {sink.name}.",
    )


def hourly_schedule(sink: Sink, job: Any) -> dg.ScheduleDefinition:
    """Every hour, once the grace of the hour before is over: that hour and the one under way, as one range."""
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
        yield dg.RunRequest(run_key=f"{first}..{last}", tags={names.RANGE_START: first, names.RANGE_END: last})

    return every_hour
