"""Jobs that land a sink, and that prune the history of runs; schedules."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

import dagster as dg
from pydantic import Field

from s3lake import hours
from s3lake.config.model import Sink
from s3lake.orchestration import dagster_names, runs
from s3lake.orchestration.catalog import Catalog
from s3lake.orchestration.heartbeat import set_tags
from s3lake.orchestration.landing_run import LandingRun
from s3lake.text.quantities import format_count, format_duration

_TOPICS_SHOWN = 5
RUNS_A_PAGE = 100
"""How many runs are taken from the storage at once."""
_FINISHED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]
_FAILED_HOURS = 24


def land_job(catalog: Catalog, sink: Sink) -> Any:
    """Return the job that lands hours of the topics of `sink`, each topic by its asset."""
    keys = [catalog.key(sink, topic) for topic in catalog.topics[sink.name]]
    return dg.define_asset_job(
        name=catalog.name("land", sink.name),
        # A run makes the checks of whole hours by itself: checks that Dagster plans cost an event each.
        selection=dg.AssetSelection.assets(*keys).without_checks(),
        # A JVM per step costs more than the steps: one process, one session a run.
        executor_def=dg.in_process_executor,
        description=f"Lands every topic of sink {sink.name}.",
    )


def one_op_job(op: dg.OpDefinition, *, name: str, description: str) -> dg.JobDefinition:
    """Return a job that runs `op` in the process of the run: another process would cost more than most of the work."""

    @dg.job(name=name, executor_def=dg.in_process_executor, description=description)
    def job() -> None:
        op()

    return job


class GroupConfig(dg.Config):
    """Run config of the op that lands topics together."""

    hours: dict[str, list[str]] = Field(
        description="Ranges of hours, 2026-11-20T05..2026-11-20T06, each with the topics to land them of."
    )


def parse_group(config: GroupConfig, sink: Sink) -> dict[str, list[str]]:
    hours_by_topic: dict[str, list[str]] = {}
    for span, topics in config.hours.items():
        first, _, last = span.partition("..")
        try:
            hours.require_range(first, last or None)
            requested = list(hours.span(first, last or first))
        except ValueError as error:
            raise dg.Failure(f"hours: {span}: {error}", allow_retries=False) from None
        for topic in topics:
            if not sink.reads(topic):
                raise dg.Failure(f"hours: {span}: sink {sink.name} does not read topic {topic}", allow_retries=False)
            hours_by_topic.setdefault(topic, []).extend(requested)
    return hours_by_topic


def group_job(catalog: Catalog, sink: Sink) -> dg.JobDefinition:
    """Return the job that lands hours of many topics of `sink` together, also of topics that have no assets yet.

    It is one op, with the events of the topics' assets: a step for each of a hundred topics and one for their
    checks would cost more than landing their records.
    """
    assets = frozenset(catalog.topics[sink.name])

    @dg.op(
        name=runs.group_op_name(catalog, sink),
        tags={dagster_names.SINK: catalog.tag(sink)},
        required_resource_keys=catalog.own_resource_keys("s3", "spark"),
    )
    def land(context: dg.OpExecutionContext, config: GroupConfig) -> None:
        hours_by_topic = parse_group(config, sink)
        for topic in sorted(hours_by_topic.keys() - assets):
            context.log.info(
                f"{topic}: matches topics_regex since the code location was loaded; it is landed all the same, and has "
                "assets to look at and to backfill once the location is reloaded"
            )
        failed = LandingRun(context, context.resources, catalog, sink).land_together(hours_by_topic)
        if failed:  # the sensor requests these topics alone next: such a run fails their hours
            set_tags(context.instance, context.run_id, {dagster_names.FAILED: " ".join(sorted(failed))})
            shown = ", ".join(sorted(failed)[:_TOPICS_SHOWN])
            more = f" and {len(failed) - _TOPICS_SHOWN} more" if len(failed) > _TOPICS_SHOWN else ""
            raise dg.Failure(
                f"{len(failed)} of {format_count(len(hours_by_topic), 'topics')} failed, the others are landed: "
                f"{shown}{more}",
                allow_retries=False,
            )

    return one_op_job(
        land,
        name=runs.group_job_name(catalog, sink),
        description=f"Lands what is due of many topics of sink {sink.name} in one run; its sensor requests it.",
    )


def hourly_schedule(catalog: Catalog, sink: Sink, job: Any, together: Sequence[str] = ()) -> dg.ScheduleDefinition:
    """Return the schedule that lands the last hour and the current one, as one range, after the grace of the last one.

    The range begins earlier if runs of the schedule failed to land hours before. `together` are the topics that the one
    op of `job` lands; without them the job has an asset for each topic.
    """
    topics, name = catalog.topics[sink.name], catalog.name("hourly", sink.name)
    minute = min(59, int(sink.close_grace // 60) + 1)

    @dg.schedule(
        name=name,
        job=job,
        cron_schedule=f"{minute} * * * *",
        execution_timezone="UTC",
        description=f"Closes and lands the last hour of sink {sink.name}; the sensors do it sooner.",
    )
    def every_hour(context: dg.ScheduleEvaluationContext) -> Iterator[dg.RunRequest | dg.SkipReason]:
        now = context.scheduled_execution_time
        both = catalog.within(sink, topics[0], {hours.key(now - timedelta(hours=1)), hours.key(now)})
        due = sorted(hour for hour in both if hour >= sink.start)
        if not due:
            yield dg.SkipReason(f"sink {sink.name} has neither hour: it starts at {sink.start}")
            return
        first, last = _first_failed(context.instance, name) or due[0], due[-1]
        span = f"{first}..{last}"
        if together:
            config = runs.group_config(catalog, sink, {span: together})
            yield dg.RunRequest(run_key=span, run_config=config, tags=runs.group_tags(catalog, sink, together))
        else:
            yield dg.RunRequest(run_key=span, tags=dagster_names.range_tags(first, last))

    return every_hour


def _first_failed(instance: dg.DagsterInstance, schedule: str) -> str | None:
    """Return the first hour of the last run of the schedule if that run did not succeed."""
    records = instance.get_run_records(dg.RunsFilter(tags={dagster_names.SCHEDULE: schedule}), limit=1)
    if not records or records[0].dagster_run.status not in (dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED):
        return None
    first, _, last = records[0].dagster_run.tags.get(dagster_names.RUN_KEY, "").partition("..")
    return max(first, hours.shift(last, -_FAILED_HOURS)) if last else None


def nightly_schedule(
    catalog: Catalog,
    name: str,
    job: dg.JobDefinition,
    minute: int,
    status: dg.DefaultScheduleStatus,
    config: Mapping[str, Any] | None = None,
) -> dg.ScheduleDefinition:
    """Return the schedule `s3lake_daily_<name>`: runs a job of one op at `minute` past three UTC, with this config."""
    return dg.ScheduleDefinition(
        name=catalog.own_name("daily", name),
        job=job,
        cron_schedule=f"{minute} 3 * * *",
        execution_timezone="UTC",
        default_status=status,
        run_config={"ops": {f"{job.name}_op": {"config": dict(config)}}} if config else None,
        description=job.description,
    )


def prune_job(catalog: Catalog, jobs: Sequence[Any], age_s: float) -> dg.JobDefinition:
    """Return the job that prunes runs of these jobs and of the catalog's assets, see `prune_runs`."""
    name = catalog.own_name("prune_runs")
    names_of_jobs = {name, *(job.name for job in jobs)}

    @dg.op(name=f"{name}_op")
    def prune(context: dg.OpExecutionContext) -> None:
        before = datetime.now(timezone.utc) - timedelta(seconds=age_s)
        pruned, kept = prune_runs(context.instance, catalog, names_of_jobs, before)
        context.log.info(
            f"deleted {format_count(pruned, 'runs')} from before {before:%Y-%m-%d %H:%M} UTC, kept {kept:,}"
        )

    return one_op_job(
        prune,
        name=name,
        description=f"Deletes runs that ended more than {format_duration(age_s)} ago, with their events, if each asset "
        "and hour that they materialised was materialised again later (`run_history`).",
    )


def prune_runs(
    instance: dg.DagsterInstance, catalog: Catalog, jobs: Collection[str], before: datetime
) -> tuple[int, int]:
    """Delete finished runs that were created before `before`, and whose every materialisation has a later one.

    A run's events are deleted with it, so a run with the last materialisation of an hour is kept. So is each run that
    has materialised an asset of another configuration. Return how many old runs were deleted, and how many were kept.
    """
    newest: dict[dg.AssetKey, Mapping[str, int]] = {}  # by partition
    old = [run for run in _finished_runs(instance, before) if run.job_name in jobs or _lands_ours(catalog, run)]
    replaced = [
        run.run_id
        for run in old
        if all(_is_replaced(instance, newest, record) for record in _materialisations(instance, run.run_id))
    ]
    for run_id in replaced:
        instance.delete_run(run_id)
    return len(replaced), len(old) - len(replaced)


def _finished_runs(instance: dg.DagsterInstance, before: datetime) -> Iterator[dg.DagsterRun]:
    cursor: str | None = None
    finished = dg.RunsFilter(statuses=_FINISHED, created_before=before)
    while records := instance.get_run_records(finished, limit=RUNS_A_PAGE, cursor=cursor):
        yield from (record.dagster_run for record in records)
        cursor = records[-1].dagster_run.run_id


def _lands_ours(catalog: Catalog, run: dg.DagsterRun) -> bool:
    """Return whether a run, as of a backfill, materialises assets of this configuration and no others."""
    selection = run.asset_selection or frozenset()
    return bool(selection) and all(catalog.route(key) for key in selection)


def _materialisations(instance: dg.DagsterInstance, run_id: str) -> Iterator[dg.EventLogRecord]:
    cursor, has_more = None, True
    while has_more:
        page = instance.get_records_for_run(run_id, cursor, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION)
        yield from page.records
        cursor, has_more = page.cursor, page.has_more


def _is_replaced(
    instance: dg.DagsterInstance, newest: dict[dg.AssetKey, Mapping[str, int]], record: dg.EventLogRecord
) -> bool:
    """Return whether the asset and partition of a materialisation were materialised again later."""
    key, partition = record.asset_key, record.partition_key
    if key is None or partition is None:
        return False
    if key not in newest:
        newest[key] = instance.get_latest_storage_id_by_partition(key, dg.DagsterEventType.ASSET_MATERIALIZATION)
    return record.storage_id < newest[key].get(partition, 0)
