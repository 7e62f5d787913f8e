"""Runs of a sink and topic: whether another one may be requested, and why the last one failed."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

import dagster as dg

from s3lake.orchestration import names
from s3lake.orchestration.alive import silent
from s3lake.orchestration.catalogue import Catalogue
from s3lake.sink import Sink

SOON_MS = 60_000
CANCELED_MS = 600_000
REFUSED_MS = 3_600_000
_MOST_STARTED = 500

STARTED = [dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING]
WAITING = [dg.DagsterRunStatus.QUEUED, dg.DagsterRunStatus.NOT_STARTED]

WILL_RETRY = "dagster/will_retry"
"""The tag of a failed run that Dagster starts again."""
_MOST_FAILED = 50

State = Callable[[str, str], str]
"""Of the configuration and the index from one hour to another, as a digest."""


def held(
    instance: dg.DagsterInstance, catalogue: Catalogue, sink: Sink, topic: str, now_ms: int, state: State
) -> str | None:
    """Why no run may be asked for now: one has not ended, or the last one failed and nothing is different since.

    A run that has stopped to say that it works is ended here: it would hold the topic's pool, and one of the runs that
    may go on at once, for as long as Dagster's monitoring lets it. If it works after all it is fenced.
    """
    ours = {names.SINK: catalogue.tag(sink), names.TOPIC: topic}
    ended = _end_silent(instance, catalogue.key(sink, topic), ours, now_ms)
    if instance.get_run_records(dg.RunsFilter(tags=ours, statuses=[*STARTED, *WAITING]), limit=1):
        return "a run that was asked for is under way; what it lands decides what is due next"
    last = next(iter(instance.get_run_records(dg.RunsFilter(tags=ours), limit=1)), None)
    if last is None or last.dagster_run.status == dg.DagsterRunStatus.SUCCESS:
        return None
    run = last.dagster_run
    error = run.tags.get(names.REFUSED)
    refused = Refused(error, lambda: run.tags.get(names.STATE) == _state(run, state)) if error else None
    return after(last, now_ms, refused, at_once=run.run_id in ended)


def started(instance: dg.DagsterInstance) -> Sequence[dg.RunRecord]:
    """Return the runs that have started and not ended: asked for apart, however long the queue of a backfill is."""
    return instance.get_run_records(dg.RunsFilter(statuses=STARTED), limit=_MOST_STARTED)


@dataclass(frozen=True)
class Refused:
    """What trying again cannot help with; `is_same` says whether what it met is as it was."""

    error: str
    is_same: Callable[[], bool]


def after(last: dg.RunRecord, now_ms: int, refused: Refused | None, *, at_once: bool) -> str | None:
    """Why no run may be asked for now, after one that did not succeed.

    Args:
        last: the run.
        refused: why it failed for good.
        at_once: it was dead and ended by the sensor itself.
    """
    run = last.dagster_run
    since_ms = now_ms - int((last.end_time or last.update_timestamp.timestamp()) * 1000)
    name = f"run {run.run_id[:8]}"
    if run.tags.get(WILL_RETRY) == "true" and (at_once or since_ms < SOON_MS):
        return f"{name} did not succeed; Dagster starts it again"
    if at_once:
        return None
    if run.status == dg.DagsterRunStatus.CANCELED:
        return f"{name} was canceled; asking again 10 minutes after its end" if since_ms < CANCELED_MS else None
    if since_ms < SOON_MS:
        return f"{name} did not succeed; asking again a minute after its end"
    if refused and since_ms < REFUSED_MS and refused.is_same():
        return (
            f"{name} failed with {refused.error}; asking again when the configuration or the index is another, and an "
            "hour after its end"
        )
    return None


def last_failure(instance: dg.DagsterInstance, sink: str, topic: str, after_ms: int) -> str | None:
    """Return the run that failed last to land the topic, and its error; None if none did since `after_ms`."""
    since = datetime.fromtimestamp(after_ms / 1000, timezone.utc)
    failed = dg.RunsFilter(tags={names.SINK: sink}, statuses=[dg.DagsterRunStatus.FAILURE], updated_after=since)
    for record in instance.get_run_records(failed, limit=_MOST_FAILED):  # the latest first
        error = _error(instance, record.dagster_run, topic)
        if error is not None:
            return f"run {record.dagster_run.run_id[:8]}: {error}"
    return None


def _error(instance: dg.DagsterInstance, run: dg.DagsterRun, topic: str) -> str | None:
    """Return the error by which a run failed the topic; None if the run did not fail this topic."""
    alone = names.TOPIC in run.tags
    if alone and run.tags[names.TOPIC] != topic:
        return None
    begin, errors = f"{topic}: ", list[str]()
    for entry in instance.all_logs(run.run_id):
        event = entry.dagster_event
        if event is not None and event.event_type_value == dg.DagsterEventType.STEP_FAILURE.value:
            failure = event.step_failure_data
            said = failure.user_failure_data.description if failure.user_failure_data else None
            errors.append(said or str(failure.error_display_string).strip())
        elif not alone and int(entry.level) >= logging.ERROR and entry.user_message.startswith(begin):
            return entry.user_message.removeprefix(begin)
    return (errors[-1] if errors else "its process ended before its work did") if alone else None


def _state(run: dg.DagsterRun, state: State) -> str | None:
    first, last = run.tags.get(names.RANGE_START), run.tags.get(names.RANGE_END)
    return state(first, last) if first and last else None


def _end_silent(instance: dg.DagsterInstance, key: dg.AssetKey, ours: Mapping[str, str], now_ms: int) -> set[str]:
    """End runs of this asset that are dead; those of backfills hold its pool as well."""
    ended = set()
    for record in started(instance):
        run = record.dagster_run
        why = silent(record, now_ms) if run.status == dg.DagsterRunStatus.STARTED else None
        # What a sensor asked for it tags; not every run says what it was made of.
        asked = not run.asset_selection and ours.items() <= run.tags.items()
        if why and (asked or key in (run.asset_selection or ())):
            end(instance, run, why)
            ended.add(run.run_id)
    return ended


def end(instance: dg.DagsterInstance, run: dg.DagsterRun, why: str) -> None:
    """End a run that is dead."""
    instance.report_run_failed(run, f"The run {why}: its process, its code server or its machine is gone.")
    if instance.event_log_storage.supports_global_concurrency_limits:
        instance.event_log_storage.free_concurrency_slots_for_run(run.run_id)


def read_last_failures(after_ms: Mapping[tuple[str, str], int]) -> dict[tuple[str, str], str]:
    """Return the `last_failure` of each sink and topic that has one, from the instance of `DAGSTER_HOME`."""
    with dg.DagsterInstance.get() as instance:
        failures = {route: last_failure(instance, *route, since_ms) for route, since_ms in after_ms.items()}
    return {route: failure for route, failure in failures.items() if failure is not None}
