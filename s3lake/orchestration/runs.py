"""Whether another run of a sink and topic may be asked for, by what became of those before."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import dagster as dg
from dagster._core.storage.dagster_run import (
    NOT_FINISHED_STATUSES,  # Dagster's own list, queued ones included
    RunRecord,
)
from dagster._core.storage.tags import WILL_RETRY_TAG

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
    if instance.get_run_records(dg.RunsFilter(tags=ours, statuses=list(NOT_FINISHED_STATUSES)), limit=1):
        return "a run that was asked for is under way; what it lands decides what is due next"
    last = next(iter(instance.get_run_records(dg.RunsFilter(tags=ours), limit=1)), None)
    if last is None or last.dagster_run.status == dg.DagsterRunStatus.SUCCESS:
        return None
    run = last.dagster_run
    error = run.tags.get(names.REFUSED)
    refused = Refused(error, lambda: run.tags.get(names.STATE) == _state(run, state)) if error else None
    return after(last, now_ms, refused, at_once=run.run_id in ended)


def started(instance: dg.DagsterInstance) -> Sequence[RunRecord]:
    """Return the runs that have started and not ended: asked for apart, however long the queue of a backfill is."""
    return instance.get_run_records(dg.RunsFilter(statuses=STARTED), limit=_MOST_STARTED)


@dataclass(frozen=True)
class Refused:
    """What trying again cannot help with; `is_same` says whether what it met is as it was."""

    error: str
    is_same: Callable[[], bool]


def after(last: RunRecord, now_ms: int, refused: Refused | None, *, at_once: bool) -> str | None:
    """Why no run may be asked for now, after one that did not succeed.

    Args:
        last: the run.
        refused: why it failed for good.
        at_once: it was dead and ended by the sensor itself.
    """
    run = last.dagster_run
    since_ms = now_ms - int((last.end_time or last.update_timestamp.timestamp()) * 1000)
    name = f"run {run.run_id[:8]}"
    if run.tags.get(WILL_RETRY_TAG) == "true" and (at_once or since_ms < SOON_MS):
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
