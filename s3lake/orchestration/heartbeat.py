"""The heartbeat of a run: a tag with the time when the run last reported that it works.

A run whose code server crashed with it stays *Started* for Dagster. The tag is in Dagster's own storage, so it outlives
every process, costs no request to S3, and comes with the runs that a sensor queries anyway.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg

from s3lake import hours
from s3lake.orchestration import dagster_names

EVERY_S = 10.0
SILENT_MS = 45_000
"""Four beats. A run that is ended too early is fenced; one that is ended too late holds its topic."""
FIRST_MS = 60_000
"""From the start of a run that a sensor requested to its first beat: its process has imported everything by then."""
_ENDED = "ended"
_MAX_FAILURES = 30
beating_runs: set[str] = set()
"""Ids of the runs that a thread of this process reports for."""


@contextmanager
def keep_beating(context: dg.AssetExecutionContext | dg.OpExecutionContext) -> Iterator[None]:
    """Report that the run works until the block ends."""
    instance, run_id = context.instance, context.run.run_id
    earlier = {dagster_names.FAILED: ""} if dagster_names.FAILED in context.run.tags else {}  # of the run it repeats
    set_tags(instance, run_id, {dagster_names.HEARTBEAT: _now(), **earlier})
    if run_id not in beating_runs and not instance.is_ephemeral:
        beating_runs.add(run_id)
        threading.Thread(target=_beat, args=(instance, run_id), name="s3lake-heartbeat", daemon=True).start()
    try:
        yield
    finally:
        # In a run with a process for each step, the other steps work without one that beats.
        if context.job_def.executor_def.name != dg.in_process_executor.name:
            beating_runs.discard(run_id)
            set_tags(instance, run_id, {dagster_names.HEARTBEAT: _ENDED})


def silence_of(record: dg.RunRecord, now_ms: int) -> str | None:
    """Return how long a started run has been silent; None if it works, or if it never reported anything."""
    tags = record.dagster_run.tags
    if tags.get(dagster_names.HEARTBEAT) == _ENDED:
        return None
    started_ms, beat_ms = _read_times(record)
    if beat_ms is not None:
        silent_ms = now_ms - beat_ms
        return f"has been silent for {silent_ms // 1000} s" if silent_ms >= SILENT_MS else None
    ours = dagster_names.SINK in tags and now_ms - started_ms >= FIRST_MS
    return f"has been silent since its start {FIRST_MS // 1000} s ago" if ours else None


def is_working(record: dg.RunRecord, now_ms: int) -> bool:
    """Return whether a started run beats, or has just begun."""
    started_ms, beat_ms = _read_times(record)
    return now_ms - started_ms < FIRST_MS if beat_ms is None else now_ms - beat_ms < SILENT_MS


def _read_times(record: dg.RunRecord) -> tuple[int, int | None]:
    """Return when a run was started, and its last beat since: started again, it has the tags of the first time."""
    started_ms = int((record.start_time or record.create_timestamp.timestamp()) * 1000)
    beat = record.dagster_run.tags.get(dagster_names.HEARTBEAT, "")
    return started_ms, int(beat) if beat.isdigit() and int(beat) >= started_ms else None


def set_tags(instance: dg.DagsterInstance, run_id: str, tags: dict[str, str]) -> None:
    """Set tags of a run, if the instance has the run."""
    if instance.has_run(run_id):
        instance.add_run_tags(run_id, tags)


def _beat(instance: dg.DagsterInstance, run_id: str) -> None:
    failures = 0
    while failures < _MAX_FAILURES:
        time.sleep(EVERY_S)
        if run_id not in beating_runs:
            return
        try:
            run = instance.get_run_by_id(run_id)
            if run is None or run.is_finished:
                break
            instance.add_run_tags(run_id, {dagster_names.HEARTBEAT: _now()})
            failures = 0
        except Exception:  # the storage may be unavailable for a while
            failures += 1
    beating_runs.discard(run_id)


def _now() -> str:
    return str(hours.now_ms())
