"""What became of the runs of a sink's fleet, topic by topic, read once for all of them.

A run of many topics has few tags: which topics it has stands in its config, and which of them failed, and why, in
observations of their assets.
"""

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property
from typing import Any

import dagster as dg
from dagster._core.storage.dagster_run import RunRecord

from s3lake.errors import TerminalError
from s3lake.orchestration import names, runs
from s3lake.orchestration.alive import silent
from s3lake.orchestration.catalogue import Catalogue
from s3lake.plan.tile import Tile
from s3lake.sink import Sink

_MOST_WAITING = 200
_MOST_FAILED = 50
_MOST_SUCCEEDED = 4
_MOST_KNOWN = 200


def job_name(catalogue: Catalogue, sink: Sink) -> str:
    return catalogue.name("land_together", sink.name)


def op_name(catalogue: Catalogue, sink: Sink) -> str:
    return f"{job_name(catalogue, sink)}_op"


def run_config(catalogue: Catalogue, sink: Sink, topics_by_span: Mapping[str, Iterable[str]]) -> dict[str, Any]:
    """The config of a run that lands topics by range of hours."""
    hours = {span: sorted(topics) for span, topics in topics_by_span.items()}
    return {"ops": {op_name(catalogue, sink): {"config": {"hours": hours}}}}


def run_tags(catalogue: Catalogue, sink: Sink, topics: Collection[str]) -> dict[str, str]:
    """The tags of a run that lands `topics`."""
    return {names.SINK: catalogue.tag(sink), names.FLEET: str(len(topics))}


def topics_of(catalogue: Catalogue, sink: Sink, run: dg.DagsterRun) -> frozenset[str]:
    """The topics of `sink` that a run lands, whatever asked for it."""
    if run.job_name == job_name(catalogue, sink):
        return frozenset(_last_hours(catalogue, sink, run))
    if run.tags.get(names.SINK) == catalogue.tag(sink) and names.TOPIC in run.tags:
        return frozenset({run.tags[names.TOPIC]})
    routes = [catalogue.route(key) for key in run.asset_selection or ()]
    return frozenset(route[1] for route in routes if route is not None and route[0].name == sink.name)


def _last_hours(catalogue: Catalogue, sink: Sink, run: dg.DagsterRun) -> Mapping[str, str]:
    """The last hour of each topic that a run of the fleet lands, by its config."""
    try:
        config: Any = run.run_config
        spans = config["ops"][op_name(catalogue, sink)]["config"]["hours"]
        last: dict[str, str] = {}
        for span, topics in spans.items():
            last |= dict.fromkeys(topics, span.rpartition("..")[2])
        return last
    except (LookupError, TypeError, AttributeError):
        return {}


@dataclass(frozen=True)
class State:
    """Of the configuration and the index from one hour to another, as digests: what a refused record depends on."""

    first: str
    last: str
    sink: str
    tiles: str

    @classmethod
    def of(cls, sink: Sink, first: str, last: str, tiles: Iterable[Tile]) -> "State":
        """The state; complete hours are no part of it."""
        left = sorted((tile.hour, tile.rev) for tile in tiles if first <= tile.hour <= last and not tile.complete)
        return cls(first, last, digest(sink.model_dump_json(by_alias=True)), digest(json.dumps(left)))


def digest(text: str) -> str:
    """Of a text, short."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def failure(key: dg.AssetKey, error: BaseException, state: State | None) -> dg.AssetObservation:
    """What stays on the asset of a topic that failed."""
    metadata: dict[str, Any] = {"error": type(error).__name__, "message": str(error)}
    if isinstance(error, TerminalError) and state is not None:
        metadata |= {"first": state.first, "last": state.last, "sink": state.sink, "tiles": state.tiles}
    return dg.AssetObservation(key, description=f"not landed: {type(error).__name__}", metadata=metadata)


@dataclass(frozen=True)
class _Failure:
    error: str
    state: State | None


class FleetRuns:
    """The runs that matter at one moment."""

    def __init__(self, instance: dg.DagsterInstance, catalogue: Catalogue, sink: Sink, now_ms: int) -> None:
        """Ask for them, and end those that have stopped to say that they work.

        Args:
            instance: where runs are.
            catalogue: what all is called.
            sink: whose fleet it is.
        """
        self._instance, self._catalogue, self._sink, self._now_ms = instance, catalogue, sink, now_ms
        self._ended: set[str] = set()
        self._busy: dict[str, str] = {}
        self.waits = False
        # Those of a backfill that wait may wait for long, and are not tagged.
        queued = dg.RunsFilter(statuses=runs.WAITING, tags={names.SINK: catalogue.tag(sink)})
        for record in [*runs.started(instance), *instance.get_run_records(queued, limit=_MOST_WAITING)]:
            self._under_way(record)
        since = datetime.fromtimestamp((now_ms - runs.REFUSED_MS - runs.CANCELED_MS) / 1000, timezone.utc)
        runs_filter = dg.RunsFilter(
            job_name=job_name(catalogue, sink),
            statuses=[dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED],
            updated_after=since,
        )
        self._failed: dict[str, RunRecord] = {}
        for record in instance.get_run_records(runs_filter, limit=_MOST_FAILED):  # the latest first
            for topic in topics_of(catalogue, sink, record.dagster_run):
                self._failed.setdefault(topic, record)

    def busy(self, topic: str) -> str | None:
        """Which run lands the topic now, or is about to."""
        run_id = self._busy.get(topic)
        return run_id and f"run {run_id[:8]} is under way; what it lands decides what is due next"

    def failed(self, topic: str) -> bool:
        """Whether a run of the fleet that landed it has failed of late, be it that of another topic."""
        return topic in self._failed

    def held(self, topic: str, state: Callable[[str, str], State]) -> str | None:
        """Why no run may be asked for now, after the last one failed the topic.

        Args:
            topic: one that is not `busy`.
            state: as it is now, from one hour to another.
        """
        record = self._failed.get(topic)
        if record is None:
            return None
        run_id, key = record.dagster_run.run_id, self._catalogue.key(self._sink, topic)
        outcomes = _outcomes(self._instance, run_id)
        failed = outcomes.get(key)
        if failed is None and key in outcomes:
            return None  # it was landed, and another topic failed
        at_once, refused = run_id in self._ended, None
        if failed is not None and failed.state is not None:
            before = failed.state
            refused = runs.Refused(failed.error, lambda: state(before.first, before.last) == before)
        return runs.after(record, self._now_ms, refused, at_once=at_once)

    def landed_ms(self, topic: str, hour: str, since_ms: int) -> int | None:
        """When a run of the fleet began that has landed all that the topic then had of `hour`; None without such a run.

        Args:
            topic: one that is not `busy`.
            hour: the last one of the run.
            since_ms: runs that began earlier are another request's.
        """
        for start_ms, last_hours in self._succeeded:
            if start_ms >= since_ms and last_hours.get(topic) == hour:
                return start_ms
        return None

    @cached_property
    def _succeeded(self) -> Sequence[tuple[int, Mapping[str, str]]]:
        """The latest runs of the fleet that have landed all their topics: their starts, and last hours by topic."""
        name = job_name(self._catalogue, self._sink)
        runs_filter = dg.RunsFilter(job_name=name, statuses=[dg.DagsterRunStatus.SUCCESS])
        records = self._instance.get_run_records(runs_filter, limit=_MOST_SUCCEEDED)
        return [
            (int(record.start_time * 1000), _last_hours(self._catalogue, self._sink, record.dagster_run))
            for record in records
            if record.start_time
        ]

    def _under_way(self, record: RunRecord) -> None:
        run = record.dagster_run
        topics = topics_of(self._catalogue, self._sink, run)
        if not topics:
            return
        why = silent(record, self._now_ms) if run.status == dg.DagsterRunStatus.STARTED else None
        if why:
            runs.end(self._instance, run, why)
            self._ended.add(run.run_id)
            return
        self.waits |= run.status in runs.WAITING and run.job_name == job_name(self._catalogue, self._sink)
        self._busy |= dict.fromkeys(topics, run.run_id)


def _outcomes(instance: dg.DagsterInstance, run_id: str) -> Mapping[dg.AssetKey, _Failure | None]:
    """By asset: why it failed, or None where something of it was landed. A run that has ended is read once."""
    outcomes = _known.get(run_id)
    if outcomes is None:
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        outcomes = _known[run_id] = _read(instance, run_id)
    return outcomes


_known: dict[str, Mapping[dg.AssetKey, _Failure | None]] = {}


def _read(instance: dg.DagsterInstance, run_id: str) -> Mapping[dg.AssetKey, _Failure | None]:
    event_types = {dg.DagsterEventType.ASSET_MATERIALIZATION, dg.DagsterEventType.ASSET_OBSERVATION}
    outcomes: dict[dg.AssetKey, _Failure | None] = {}
    for record in instance.get_records_for_run(run_id, of_type=event_types).records:
        entry = record.event_log_entry
        if entry.asset_materialization is not None:
            outcomes.setdefault(entry.asset_materialization.asset_key, None)
        elif entry.asset_observation is not None and "error" in entry.asset_observation.metadata:
            texts = {name: str(value.value) for name, value in entry.asset_observation.metadata.items()}
            state = State(texts["first"], texts["last"], texts["sink"], texts["tiles"]) if "tiles" in texts else None
            outcomes[entry.asset_observation.asset_key] = _Failure(texts["error"], state)
    return outcomes
