"""Runs of a sink: the topics that they land, when another one may be requested, and why the last one failed."""

import logging
import threading
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timezone
from functools import cached_property
from itertools import chain
from typing import Any

import dagster as dg

from s3lake.config.model import Sink
from s3lake.orchestration import dagster_names
from s3lake.orchestration.catalog import Catalog
from s3lake.orchestration.heartbeat import is_working, silence_of

SOON_MS = 60_000
LATE_MS = 600_000
"""After a failed run the next one is requested after SOON_MS, after each further one twice as late, up to LATE_MS."""
STARTED = [dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING]
WAITING = [dg.DagsterRunStatus.QUEUED, dg.DagsterRunStatus.NOT_STARTED]
_UNSUCCESSFUL = [dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]
WILL_RETRY = "dagster/will_retry"
"""The tag of a failed run that Dagster starts again."""
_FAILED_FOR_MS = 4_200_000
_MAX_STARTED, _MAX_WAITING, _MAX_FAILED = 500, 200, 500
_MAX_SHOWN, _MAX_SUCCEEDED = 50, 20


def group_job_name(catalog: Catalog, sink: Sink) -> str:
    """Return the name of the job that lands topics of a sink together."""
    return catalog.name("land_together", sink.name)


def group_op_name(catalog: Catalog, sink: Sink) -> str:
    """Return the name of its op."""
    return f"{group_job_name(catalog, sink)}_op"


def group_config(catalog: Catalog, sink: Sink, topics_by_range: Mapping[str, Iterable[str]]) -> dict[str, Any]:
    """Return the config of a run that lands topics together, by range of hours."""
    hours = {span: sorted(topics) for span, topics in topics_by_range.items()}
    return {"ops": {group_op_name(catalog, sink): {"config": {"hours": hours}}}}


def group_tags(catalog: Catalog, sink: Sink, topics: Collection[str]) -> dict[str, str]:
    """Return the tags of a run that lands `topics` together."""
    return {dagster_names.SINK: catalog.tag(sink), dagster_names.GROUP: str(len(topics))}


def find_topics_of_run(catalog: Catalog, sink: Sink, run: dg.DagsterRun) -> frozenset[str]:
    """Return the topics of `sink` that a run lands, also if no sensor requested it."""
    if requested := _requested_topics(catalog, sink, run):
        return frozenset(requested)
    if run.job_name == catalog.name("land", sink.name) and not run.asset_selection:
        return frozenset(catalog.topics[sink.name])
    routes = [catalog.route(key) for key in run.asset_selection or ()]
    return frozenset(route.topic for route in routes if route is not None and route.sink.name == sink.name)


class SinkRuns:
    """The runs of a sink that matter to one tick of its sensor, read when they are first needed."""

    def __init__(
        self, instance: dg.DagsterInstance, catalog: Catalog, sink: Sink, now_ms: int, topic: str | None = None
    ) -> None:
        """Look at runs of all topics of `sink`, or of one `topic`."""
        self._instance, self._catalog, self._sink, self._now_ms = instance, catalog, sink, now_ms
        self._tags = {dagster_names.SINK: catalog.tag(sink), **({dagster_names.TOPIC: topic} if topic else {})}
        self._ended: set[str] = set()
        self._reading = threading.RLock()  # topics are looked at in threads

    def run_of(self, topic: str) -> str | None:
        """Return a text that names the run that lands the topic or waits to do so; None if there is none.

        A silent run is ended first: it would hold the topic's pool, and one of the runs that may work at once, for as
        long as Dagster's monitoring lets it. If it works after all, it is fenced.
        """
        with self._reading:
            run_id = self._unfinished.get(topic)
        return run_id and f"run {run_id[:8]} has not ended; what it lands decides what is due next"

    @cached_property
    def is_waiting(self) -> bool:
        """True if a run that lands topics together waits to begin."""
        name = group_job_name(self._catalog, self._sink)
        return any(record.dagster_run.job_name == name for record in self._waiting)

    def has_landed(self, topic: str, first: str, last: str) -> bool:
        """Return whether a run that lands topics together has landed these hours of the topic, and succeeded."""
        with self._reading:
            return topic in self._succeeded.get(f"{first}..{last}", ())

    def failures(self, topic: str, landed_ms: int) -> Sequence[dg.RunRecord]:
        """Return the runs that failed the topic and ended after it was landed last, the latest first."""
        with self._reading:
            return [record for record in self._failed.get(topic, ()) if _ended_ms(record) > landed_ms]

    def is_to_land_alone(self, failures: Sequence[dg.RunRecord]) -> bool:
        """Return whether one of these runs failed this very topic: alone, Dagster shows its hours as failed."""
        tags = [record.dagster_run.tags for record in failures]
        return any(dagster_names.TOPIC in one or one.get(dagster_names.FAILED) for one in tags)

    def reason_to_wait(self, failures: Sequence[dg.RunRecord]) -> str | None:
        """Return why no run may be requested now, after these that did not succeed; None if one may."""
        if not failures:
            return None
        run, since_ms = failures[0].dagster_run, self._now_ms - _ended_ms(failures[0])
        name, at_once = f"run {run.run_id[:8]}", run.run_id in self._ended
        if run.tags.get(WILL_RETRY) == "true" and (at_once or since_ms < SOON_MS):
            return f"{name} did not succeed; Dagster starts it again"
        is_canceled = run.status == dg.DagsterRunStatus.CANCELED
        pause_ms = LATE_MS if is_canceled else min(LATE_MS, SOON_MS << len(failures) - 1)
        if at_once or since_ms >= pause_ms:
            return None
        is_unstarted = failures[0].start_time is None
        outcome = "was canceled" if is_canceled else "could not be started" if is_unstarted else "did not succeed"
        return f"{name} {outcome}; the next request is {pause_ms // SOON_MS} min after its end"

    @cached_property
    def _waiting(self) -> Sequence[dg.RunRecord]:
        # Only what sensors request has these tags: the queue of a backfill may be long.
        return self._instance.get_run_records(dg.RunsFilter(statuses=WAITING, tags=self._tags), limit=_MAX_WAITING)

    @cached_property
    def _unfinished(self) -> Mapping[str, str]:
        """Runs by topic. Ends the silent ones."""
        runs: dict[str, str] = {}
        # Waiting runs are queried apart: the queue of a backfill may be long.
        started = self._instance.get_run_records(dg.RunsFilter(statuses=STARTED), limit=_MAX_STARTED)
        for record in [*started, *self._waiting]:
            run = record.dagster_run
            topics = find_topics_of_run(self._catalog, self._sink, run)
            works = run.status != dg.DagsterRunStatus.STARTED or is_working(record, self._now_ms)
            silence = None if works else silence_of(record, self._now_ms)
            if topics and silence:
                end_run(self._instance, run, silence)
                self._ended.add(run.run_id)
            elif works or dagster_names.SINK in run.tags:  # else its present steps are not ours
                runs |= dict.fromkeys(topics, run.run_id)
        return runs

    @cached_property
    def _succeeded(self) -> Mapping[str, Collection[str]]:
        """The topics of the last runs that have succeeded, by the hours that these have landed."""
        filters = dg.RunsFilter(tags=self._tags, statuses=[dg.DagsterRunStatus.SUCCESS])
        topics = defaultdict[str, set[str]](set)
        for record in self._instance.get_run_records(filters, limit=_MAX_SUCCEEDED):
            for span, of_span in _requested_by_span(self._catalog, self._sink, record.dagster_run).items():
                topics[span].update(of_span)
        return topics

    @cached_property
    def _failed(self) -> Mapping[str, Sequence[dg.RunRecord]]:
        """The runs by topic that failed it lately, the latest first."""
        since = datetime.fromtimestamp((self._now_ms - _FAILED_FOR_MS) / 1000, timezone.utc)
        filters = dg.RunsFilter(tags=self._tags, statuses=_UNSUCCESSFUL, updated_after=since)
        failed = defaultdict[str, list[dg.RunRecord]](list)
        for record in self._instance.get_run_records(filters, limit=_MAX_FAILED):
            run = record.dagster_run
            # A run of several topics names the failed ones, unless its process crashed.
            for topic in run.tags.get(dagster_names.FAILED, "").split() or find_topics_of_run(
                self._catalog, self._sink, run
            ):
                failed[topic].append(record)
        return failed


def end_run(instance: dg.DagsterInstance, run: dg.DagsterRun, silence: str) -> None:
    """End a run whose process has crashed."""
    instance.report_run_failed(run, f"The run {silence}: its process, its code server or its machine has stopped.")
    if instance.event_log_storage.supports_global_concurrency_limits:
        instance.event_log_storage.free_concurrency_slots_for_run(run.run_id)


def _requested_topics(catalog: Catalog, sink: Sink, run: dg.DagsterRun) -> Collection[str]:
    """Return the topics of a run that a sensor requested, by its config or its tags."""
    if run.job_name != group_job_name(catalog, sink):
        ours = run.tags.get(dagster_names.SINK) == catalog.tag(sink) and dagster_names.TOPIC in run.tags
        return [run.tags[dagster_names.TOPIC]] if ours else []
    return set(chain.from_iterable(_requested_by_span(catalog, sink, run).values()))


def _requested_by_span(catalog: Catalog, sink: Sink, run: dg.DagsterRun) -> Mapping[str, Collection[str]]:
    """Return the topics of a run that lands topics together, by range of hours."""
    config: Any = run.run_config
    try:
        return {
            span: [*topics] for span, topics in config["ops"][group_op_name(catalog, sink)]["config"]["hours"].items()
        }
    except (LookupError, TypeError, AttributeError):
        return {}


def _ended_ms(record: dg.RunRecord) -> int:
    return int((record.end_time or record.update_timestamp.timestamp()) * 1000)


def last_failure(instance: dg.DagsterInstance, sink: str, topic: str, after_ms: int) -> str | None:
    """Return the run that failed last to land the topic, and its error; None if none did since `after_ms`.

    Runs are found by the sink's name, whatever prefix its configuration has in Dagster.
    """
    tags = {
        tag for _, tags in instance.get_run_tags([dagster_names.SINK]) for tag in tags if tag.rpartition("/")[2] == sink
    }
    if not tags:
        return None
    since = datetime.fromtimestamp(after_ms / 1000, timezone.utc)
    failed = dg.RunsFilter(
        tags={dagster_names.SINK: sorted(tags)}, statuses=[dg.DagsterRunStatus.FAILURE], updated_after=since
    )
    for record in instance.get_run_records(failed, limit=_MAX_SHOWN):  # the latest first
        if record.start_time is None:
            error = _read_start_error(instance, record.dagster_run) if _is_of(record.dagster_run, topic) else None
        else:
            error = _error(instance, record.dagster_run, topic)
        if error is not None:
            return f"run {record.dagster_run.run_id[:8]}: {error}"
    return None


def _is_of(run: dg.DagsterRun, topic: str) -> bool:
    """Return whether a run was requested for a topic, alone or with others."""
    if dagster_names.TOPIC in run.tags:
        return run.tags[dagster_names.TOPIC] == topic
    ops: Any = run.run_config.get("ops", {})
    hours = [op.get("config", {}).get("hours", {}) for op in ops.values() if isinstance(op, Mapping)]
    return any(topic in topics for of_run in hours for topics in of_run.values())


def _read_start_error(instance: dg.DagsterInstance, run: dg.DagsterRun) -> str:
    """Return why a run could not be started: the launcher, or the code server that it asked, failed."""
    reasons = list[str]()
    for entry in instance.all_logs(run.run_id):
        event = entry.dagster_event
        if event is None:
            continue
        error = getattr(event.event_specific_data, "error", None)
        if error is not None:
            reasons.append(str(error.message).strip())
        elif event.is_failure and event.message:
            reasons.append(event.message)
    return f"it could not be started: {(reasons or ['its launcher gives no reason'])[0]}"


def _error(instance: dg.DagsterInstance, run: dg.DagsterRun, topic: str) -> str | None:
    """Return the error by which a run failed the topic; None if the run did not fail this topic."""
    alone = dagster_names.TOPIC in run.tags
    if alone and run.tags[dagster_names.TOPIC] != topic:
        return None
    begin, errors = f"{topic}: ", list[str]()
    for entry in instance.all_logs(run.run_id):
        event = entry.dagster_event
        if event is not None and event.event_type_value == dg.DagsterEventType.STEP_FAILURE.value:
            failure = event.step_failure_data
            description = failure.user_failure_data.description if failure.user_failure_data else None
            errors.append(description or str(failure.error_display_string).strip())
        elif not alone and int(entry.level) >= logging.ERROR and entry.user_message.startswith(begin):
            return entry.user_message.removeprefix(begin)
    return (errors[-1] if errors else "its process ended before its work did") if alone else None


def read_last_failures(after_ms: Mapping[tuple[str, str], int]) -> dict[tuple[str, str], str]:
    """Return the `last_failure` of each sink and topic that has one, from the instance of `DAGSTER_HOME`."""
    with dg.DagsterInstance.get() as instance:
        failures = {route: last_failure(instance, *route, since_ms) for route, since_ms in after_ms.items()}
    return {route: failure for route, failure in failures.items() if failure is not None}
