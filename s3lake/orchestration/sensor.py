"""Sensors: they read offsets and the index, never records, and request runs of what is due.

A sensor is a set of topics of sinks: `kafka_<topic>` is one topic in each sink that lands it alone, `sink_<sink>` all
topics that a sink lands together. A tick is the same for one topic and for a thousand; only the form of a run differs.
"""

import hashlib
import json
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import chain
from typing import Any

import dagster as dg

from s3lake import hours
from s3lake.config.model import Sink
from s3lake.errors import S3LakeError, TransientError
from s3lake.orchestration import dagster_names, runs, sensor_memory
from s3lake.orchestration.catalog import Catalog, Route
from s3lake.orchestration.due_hours import INTERVAL_S, at_the_latest
from s3lake.orchestration.resource_connections import open_topic
from s3lake.orchestration.runs import SinkRuns
from s3lake.orchestration.sensor_memory import Observed
from s3lake.orchestration.tick import RouteState, Tick
from s3lake.source import sources
from s3lake.text import expressions
from s3lake.text.quantities import format_count

OBSERVE_EVERY_MS = 300_000
OBSERVED_PER_TICK = 4
"""So a tick costs the same however many topics there are; a hundred that grow are each observed every 13 minutes."""
MAX_TOPICS = 1_000
"""Topics of one run that lands topics together."""
_MAX_ALONE = 10
"""Topics that failed in a run of several, and are landed alone: requests of one tick."""
_SHOWN = 3
"""Topics whose states a tick reports one by one."""

# Dagster warns of its own call when it gives resources to the op job of a sensor; s3lake sets no owners.
warnings.filterwarnings("ignore", "Parameter `owners` of initializer `SensorDefinition", dg.BetaWarning)


def topic_sensor(
    catalog: Catalog, topic: str, sinks: Sequence[Sink], jobs: Mapping[str, Any], status: dg.DefaultSensorStatus
) -> dg.SensorDefinition:
    """Return the sensor `kafka_<topic>`: it requests what is due of the topic, a run for each of the sinks.

    `jobs` are by sink: one job for all sinks would need them to have one start and one backfill policy.
    """
    routes = [Route(sink, topic) for sink in sinks]
    return _sensor(
        catalog,
        lambda _, __: routes,
        name=catalog.name("kafka", topic),
        jobs=[jobs[sink.name] for sink in sinks],
        default_status=status,
        description=f"Requests runs that land topic {topic} into {' and '.join(sink.name for sink in sinks)}.",
    )


def group_sensor(
    catalog: Catalog,
    sink: Sink,
    jobs: Sequence[Any],
    observed_elsewhere: Collection[str],
    status: dg.DefaultSensorStatus,
) -> dg.SensorDefinition:
    """Return the sensor `sink_<sink>`: it requests what is due of all topics of the sink, as one run.

    `jobs` are the one that lands topics together, and the one that lands a topic by its asset. Topics that match
    `topics_regex` since the code location was loaded are landed too.
    """
    assets = frozenset(catalog.topics[sink.name])

    def find_routes(context: dg.SensorEvaluationContext, offsets: Any) -> Sequence[Route]:
        known_routes = sensor_memory.decode_memory(context.cursor).routes
        try:
            others = [] if sink.topics_regex is None else [topic for topic in offsets.topics() if sink.reads(topic)]
        except expressions.PatternTimeoutError as error:
            raise dg.Failure(f"topics_regex: {error}") from None
        matching = assets.union(others)
        for topic in sorted(matching - assets):
            if f"{sink.name}/{topic}" not in known_routes:
                context.log.warning(
                    f"topic {topic} matches topics_regex of sink {sink.name} and is landed from now on; reload the "
                    "code location to give it assets"
                )
        return [Route(sink, topic) for topic in sorted(matching)]

    return _sensor(
        catalog,
        find_routes,
        observed_elsewhere,
        together=True,
        name=catalog.name("sink", sink.name),
        jobs=jobs,
        default_status=status,
        description=f"Lands the topics of sink {sink.name}, many in one run.",
    )


def _sensor(
    catalog: Catalog,
    find_routes: Callable[[dg.SensorEvaluationContext, Any], Sequence[Route]],
    observed_elsewhere: Collection[str] = (),
    *,
    together: bool = False,
    **definition: Any,
) -> dg.SensorDefinition:
    @dg.sensor(
        required_resource_keys=catalog.own_resource_keys("s3"), minimum_interval_seconds=INTERVAL_S, **definition
    )
    def sense(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        offsets = sources.open_source(catalog.config).offsets
        now_ms, memory = hours.now_ms(), sensor_memory.decode_memory(context.cursor)
        try:
            routes = find_routes(context, offsets)
            ends = offsets.log_ends({route.topic for route in routes})  # one request, which is answered or fails soon
        except S3LakeError as error:
            raise dg.Failure(str(error)) from error
        tick = Tick(
            instance=context.instance,
            catalog=catalog,
            routes=routes,
            ends=ends,
            memory=memory,
            now_ms=now_ms,
            together=together,
            runs={
                route.sink.name: SinkRuns(
                    context.instance, catalog, route.sink, now_ms, None if together else route.topic
                )
                for route in routes[: 1 if together else None]
            },
            open=lambda route: open_topic(context.resources, catalog, *route, fail_fast=True),
        )
        memory.observed = {topic: memory.observed[topic] for topic in ends if topic in memory.observed}
        memory.routes = {f"{route.sink.name}/{route.topic}": tick.recall(route) for route in routes}
        states = tick.look_at_routes()
        absent = [route for route in routes if not ends.get(route.topic)]
        missing = tick.look_at_absent(absent)
        due = [state for state in states if state.span]
        group = [state for state in due if not state.alone][:MAX_TOPICS]
        alone = [state for state in due if state.alone][:_MAX_ALONE]
        requested = [*group, *alone]
        _report_errors(context, routes, states, missing, requested)
        for state in requested:
            tick.remember_request(state)
        memory.ticked_ms = now_ms
        observations = _observe(tick, states, observed_elsewhere)  # which the cursor remembers
        return dg.SensorResult(
            run_requests=_run_requests(catalog, group, alone, context),
            skip_reason=None if requested else "; ".join([*_describe(tick, states, absent), *map(str, missing)]),
            cursor=sensor_memory.encode_memory(memory),
            asset_events=[*chain.from_iterable(state.sealed for state in states), *observations],
        )

    return sense


def _report_errors(
    context: dg.SensorEvaluationContext,
    routes: Sequence[Route],
    states: Sequence[RouteState],
    missing: Sequence[S3LakeError],
    requested: Sequence[RouteState],
) -> None:
    """Log the errors of a tick. Fail it if all topics failed: a failed tick keeps neither cursor nor events."""
    errors = [state.error for state in states if state.error is not None]
    for state in states:
        if state.error is not None:
            context.log.error(f"sink {state.route.sink.name}, topic {state.route.topic}: {state.error}")
    for error in missing:
        context.log.error(str(error))
    transient = all(isinstance(error, TransientError) for error in errors)
    if errors and len(errors) == len(states) and (transient or len(errors) == len(routes)):
        raise dg.Failure(str(errors[0])) from errors[0]
    if missing and not requested and all(state.in_turn and not state.sealed for state in states):
        raise dg.Failure(str(missing[0])) from missing[0]


def _run_requests(
    catalog: Catalog, group: Sequence[RouteState], alone: Sequence[RouteState], context: dg.SensorEvaluationContext
) -> list[dg.RunRequest]:
    """Return one run for all topics of the group, and one for each topic that is landed alone.

    They have no run keys: Dagster resumes an interrupted tick by the ids of its runs.
    """
    for why, count in Counter(state.why for state in group).most_common():
        context.log.info(f"{format_count(count, 'topics')}: {why}")
    for state in alone:
        context.log.info(f"{state.route.sink.name} {state.route.topic}: {' to '.join(state.span or ())}: {state.why}")
    requests = [_request_alone(catalog, state) for state in alone]
    return [*([_request_group(catalog, group)] if group else []), *requests]


def _request_alone(catalog: Catalog, state: RouteState) -> dg.RunRequest:
    (sink, topic), (first, last) = state.route, state.span or ("", "")
    return dg.RunRequest(
        job_name=catalog.name("land", sink.name),
        asset_selection=[catalog.key(sink, topic)],
        asset_check_keys=[],  # the run makes the checks of whole hours by itself
        tags={
            **dagster_names.range_tags(first, last),
            dagster_names.SINK: catalog.tag(sink),
            dagster_names.TOPIC: topic,
            dagster_names.REASON: state.word,
        },
    )


def _request_group(catalog: Catalog, states: Sequence[RouteState]) -> dg.RunRequest:
    sink, topics = states[0].route.sink, defaultdict[str, list[str]](list)
    for state in states:
        topics["..".join(state.span or ())].append(state.route.topic)
    ((word, _),) = Counter(state.word for state in states).most_common(1)
    return dg.RunRequest(
        job_name=runs.group_job_name(catalog, sink),
        run_config=runs.group_config(catalog, sink, topics),
        tags={**runs.group_tags(catalog, sink, [state.route.topic for state in states]), dagster_names.REASON: word},
    )


def _describe(tick: Tick, states: Sequence[RouteState], absent: Sequence[Route]) -> list[str]:
    """Return why nothing is requested."""
    if tick.together and not states and any(sink_runs.is_waiting for sink_runs in tick.runs.values()):
        return ["a run of this sink waits to begin"]
    if len(tick.routes) <= _SHOWN:
        texts = [f"{route.sink.name}: topic {route.topic} does not exist yet" for route in absent]
        topics = {route.topic for route in tick.routes}
        for state in states:
            begin = state.route.sink.name if len(topics) == 1 else f"{state.route.sink.name} {state.route.topic}"
            texts += [f"{begin}: {state.why}"] if state.why else []
        return texts or ["nothing is due"]
    waiting = [route for route in tick.routes if tick.ends.get(route.topic) and tick.waiting(route) > 0]
    first_ms = min((min(tick.due_ms(route), tick.recall(route).look_at_ms) for route in waiting), default=0)
    first = f"the first are {at_the_latest(first_ms)}" if first_ms > tick.now_ms else "nothing is due"
    reasons = Counter(state.why for state in states if state.must_wait)
    return [
        f"{len(tick.routes) - len(absent)} topics, records wait in {len(waiting)}; {first}",
        *(f"{count} of them: {why}" for why, count in reasons.most_common(_SHOWN)),
    ]


def _observe(
    tick: Tick, states: Sequence[RouteState], observed_elsewhere: Collection[str]
) -> list[dg.AssetObservation]:
    """Observe some of the topics that have changed: storing events costs more than all else."""
    memory, lags = tick.memory, defaultdict[str, dict[str, int]](dict)
    for route in tick.routes:
        if tick.ends.get(route.topic) and tick.recall(route).landed >= 0:
            lags[route.topic][route.sink.name] = tick.waiting(route)
    for state in states:
        if state.lag is not None:
            lags[state.route.topic][state.route.sink.name] = state.lag
    due: list[tuple[int, str]] = []
    for topic, ends in tick.ends.items():
        last = memory.observed.get(topic, Observed())
        changed = last.ends != ends or any(last.lags.get(sink, lag) != lag for sink, lag in lags[topic].items())
        if ends and topic not in observed_elsewhere and changed and tick.now_ms - last.ms >= OBSERVE_EVERY_MS:
            due.append((last.ms, topic))
    events = []
    for _, topic in sorted(due)[:OBSERVED_PER_TICK]:
        ends, last = tick.ends[topic], memory.observed.get(topic, Observed())
        events.append(_observation(tick.catalog, topic, ends, lags[topic], last, tick.now_ms))
        memory.observed[topic] = Observed(tick.now_ms, dict(ends), lags[topic])
    return events


def _observation(
    catalog: Catalog,
    topic: str,
    ends: Mapping[int, int],
    lags: Mapping[str, int],
    last: Observed,
    now_ms: int,
) -> dg.AssetObservation:
    new = sum(ends.values()) - sum(last.ends.get(partition, 0) for partition in ends)
    seconds = (now_ms - last.ms) / 1000
    version = hashlib.sha256(json.dumps(sorted(ends.items())).encode()).hexdigest()
    return dg.AssetObservation(
        catalog.topic_spec(topic).key,
        metadata={
            "end_offsets": dg.MetadataValue.json({str(partition): end for partition, end in sorted(ends.items())}),
            "offsets": sum(ends.values()),
            "records_per_second": round(new / seconds, 3) if last.ends and seconds > 0 else 0.0,
            **({"lag": max(lags.values())} if lags else {}),
            **({f"lag of {sink}": lag for sink, lag in lags.items()} if len(lags) > 1 else {}),
        },
        tags={dagster_names.DATA_VERSION: version[:32]},
    )
