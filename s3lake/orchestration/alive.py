"""That a run works: a tag of the run that says when it was last seen to.

A run whose code server died with it stays *Started* for Dagster, whoever watches it. The tag is in Dagster's own
storage, so it outlives every process, costs no request of S3, and comes with the runs that a sensor asks for anyway.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg
from dagster._core.storage.dagster_run import FINISHED_STATUSES, RunRecord

from s3lake import hours
from s3lake.orchestration import names

EVERY_S = 10.0
SILENT_MS = 45_000
"""Four beats. A run that is thought dead too early is fenced; one that is thought alive too long holds its topic."""
FIRST_MS = 60_000
"""Of a run that a sensor asked for: from its start to its first beat. Its process has imported everything by then."""
_ENDED = "ended"
_MOST_FAILURES = 30
_beating: set[str] = set()


@contextmanager
def alive(context: dg.AssetExecutionContext | dg.OpExecutionContext) -> Iterator[None]:
    """Tell that the run works, from here to its end, and by which error it failed where trying again cannot help."""
    instance, run_id = context.instance, context.run.run_id
    earlier = {names.REFUSED: ""} if names.REFUSED in context.run.tags else {}  # of the run that this one is again
    _tell(instance, run_id, {names.BEAT: _now(), **earlier})
    if run_id not in _beating and not instance.is_ephemeral:
        _beating.add(run_id)
        threading.Thread(target=_beat, args=(instance, run_id), name="s3lake-alive", daemon=True).start()
    try:
        yield
    except dg.Failure as failure:
        if "error" in failure.metadata:  # of those that land
            _tell(instance, run_id, {names.REFUSED: str(failure.metadata["error"].value)})
        raise
    finally:
        # Of a run with a process for each step the others go on without one that tells.
        if context.job_def.executor_def.name != dg.in_process_executor.name:
            _beating.discard(run_id)
            _tell(instance, run_id, {names.BEAT: _ENDED})


def silent(record: RunRecord, now_ms: int) -> str | None:
    """Since when a run that Dagster calls started says nothing any more; None where it works, or never said anything.

    Args:
        record: of the run.
        now_ms: the clock; of another machine than the run's it may differ by seconds.
    """
    run = record.dagster_run
    started_ms = int((record.start_time or record.create_timestamp.timestamp()) * 1000)
    beat = run.tags.get(names.BEAT, "")
    if beat == _ENDED:
        return None
    if beat.isdigit() and int(beat) >= started_ms:  # a run that was started again has its predecessor's tags
        quiet_ms = now_ms - int(beat)
        return f"said nothing for {quiet_ms // 1000} s" if quiet_ms >= SILENT_MS else None
    ours = names.SINK in run.tags and now_ms - started_ms >= FIRST_MS
    return f"has said nothing since its start {FIRST_MS // 1000} s ago" if ours else None


def _beat(instance: dg.DagsterInstance, run_id: str) -> None:
    failures = 0
    while failures < _MOST_FAILURES:
        time.sleep(EVERY_S)
        if run_id not in _beating:
            return
        try:
            run = instance.get_run_by_id(run_id)
            if run is None or run.status in FINISHED_STATUSES:
                break
            instance.add_run_tags(run_id, {names.BEAT: _now()})
            failures = 0
        except Exception:  # the storage is away for a while, and that is no reason to be thought dead
            failures += 1
    _beating.discard(run_id)


def _tell(instance: dg.DagsterInstance, run_id: str, tags: dict[str, str]) -> None:
    if instance.has_run(run_id):
        instance.add_run_tags(run_id, tags)


def _now() -> str:
    return str(hours.now_ms())
