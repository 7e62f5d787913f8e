"""A check of every hour: was it sealed soon after its end? It reads Dagster's event log alone.

Dagster's `FreshnessPolicy` asks when an asset was last materialised, of whatever hour, so that a rewrite of an old hour
would hide that the last one is missing; its builder for partitions looks at the last one alone and needs a run each.
"""

import warnings
from collections.abc import Iterator, Sequence

import dagster as dg

from s3lake import hours
from s3lake.config.model import Sink
from s3lake.orchestration import dagster_names
from s3lake.orchestration.catalog import Catalog
from s3lake.orchestration.sealed_hours import announced_contents
from s3lake.text.quantities import format_count, format_duration

NAME = "sealed_in_time"
INTERVAL_S = 300
_MAX_HOURS = 48
_NEVER = "9999"  # after every hour


def in_time_checks(catalog: Catalog, sink: Sink) -> dg.AssetChecksDefinition:
    """Define the check of each topic of `sink`, as one step: for looking at hours again."""
    description = (
        f"Fails when the hour is not sealed {format_duration(sink.sealed.within)} after its end. "
        "Passes as soon as a run seals it; if it was sealed without a run, execute the check."
    )
    sealed = [catalog.specs(sink, topic).sealed for topic in catalog.topics[sink.name]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.PreviewWarning)  # checks with partitions
        specs = [
            dg.AssetCheckSpec(NAME, asset=spec.key, description=description, partitions_def=spec.partitions_def)
            for spec in sealed
        ]

    @dg.multi_asset_check(name=catalog.name("in_time", sink.name), specs=specs, can_subset=True)
    def check(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckEvaluation | dg.Output[None]]:
        first, last = dagster_names.find_range(context.run.tags) or (sink.start, _NEVER)
        requested = hours.latest(hours.clip_ranges(first, last, _due_hours(sink)), _MAX_HOURS)
        for key in sorted(context.selected_asset_check_keys):
            yield from _evaluate(context.instance, sink, key.asset_key, requested)
        for output in sorted(context.op_execution_context.selected_output_names):
            yield dg.Output(None, output_name=output)

    return check


def in_time_sensor(catalog: Catalog, sink: Sink, status: dg.DefaultSensorStatus) -> dg.SensorDefinition:
    """Define the sensor that evaluates the check of each hour once; its cursor is the last hour of all topics.

    Dagster takes one evaluation without a run of each hour, so an hour that is announced a minute after it stays red.
    The sensors of topics need a tick to announce what was landed without Dagster: the first tick of this one waits.
    """
    keys = {topic: catalog.specs(sink, topic).sealed.key for topic in catalog.topics[sink.name]}
    within = format_duration(sink.sealed.within)

    @dg.sensor(
        name=catalog.name("in_time", sink.name),
        minimum_interval_seconds=INTERVAL_S,
        default_status=status,
        description=f"Evaluates for each hour of sink {sink.name}, {within} after its end, whether it is sealed. "
        "Starts no runs: the run that seals an hour later evaluates it again.",
    )
    def sense(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        due = _due_hours(sink)
        if not context.cursor:  # hours that landed before this sensor was on are announced meanwhile
            past = hours.latest(due, _MAX_HOURS)
            wait = f"the first tick evaluates nothing, the next one {format_count(len(past), 'past hours')}"
            return dg.SensorResult(skip_reason=wait, cursor=hours.shift(past[0] if past else sink.start, -1))
        last = context.cursor
        new = hours.latest(hours.clip_ranges(hours.shift(last, 1), _NEVER, due), _MAX_HOURS)
        before = {(key, hour) for key, hour, _ in _find_evaluations(context.instance, list(keys.values()), new)}
        events = [
            evaluation
            for topic, key in keys.items()
            for evaluation in _evaluate(context.instance, sink, key, sorted(catalog.within(sink, topic, new)))
            if (key, evaluation.partition) not in before
        ]
        missed = sum(not evaluation.passed for evaluation in events)
        evaluated = f"evaluated {format_count(len(events), 'hours')} of topics, {missed} of them not sealed in time"
        nothing = f"no hour is new since {last}: each is evaluated {within} after its end"
        reason = evaluated if events else nothing
        return dg.SensorResult(asset_events=events, skip_reason=reason, cursor=max([last, *new]))

    return sense


def report_late_hours(
    instance: dg.DagsterInstance, sink: Sink, events: Sequence[dg.AssetMaterialization]
) -> list[dg.AssetCheckEvaluation]:
    """Return new evaluations of hours that are sealed now and were not in time: they turn green."""
    over = _due_hours(sink)  # an hour is evaluated when its time is over, so before that Dagster need not be asked
    sealed = [str(event.partition) for event in events if hours.in_ranges(str(event.partition), over)]
    if not sealed:
        return []
    key = events[0].asset_key
    return [
        _evaluation(sink, key, hour, passed=True)
        for _, hour, passed in _find_evaluations(instance, [key], sealed)
        if hour and not passed
    ]


def _find_evaluations(
    instance: dg.DagsterInstance, keys: Sequence[dg.AssetKey], requested: Sequence[str]
) -> list[tuple[dg.AssetKey, str | None, bool]]:
    """Return the assets and hours that Dagster has an evaluation of already, and whether the last one passed.

    Dagster keeps one evaluation of a check and partition that is of no run, and refuses another.
    """
    if not requested:
        return []
    checks = [dg.AssetCheckKey(key, NAME) for key in keys]
    return [
        (info.check_key.asset_key, info.partition_key, info.latest_execution_status.value == "SUCCEEDED")
        for info in instance.event_log_storage.get_asset_check_partition_info(checks, partition_keys=requested)
    ]


def _evaluate(
    instance: dg.DagsterInstance, sink: Sink, key: dg.AssetKey, requested: Sequence[str]
) -> list[dg.AssetCheckEvaluation]:
    sealed = announced_contents(instance, key, requested)
    return [_evaluation(sink, key, hour, passed=hour in sealed) for hour in requested]


def _evaluation(sink: Sink, key: dg.AssetKey, hour: str, *, passed: bool) -> dg.AssetCheckEvaluation:
    deadline_s = hours.end_ms(hour) / 1000 + sink.sealed.within
    return dg.AssetCheckEvaluation(
        asset_key=key,
        check_name=NAME,
        passed=passed,
        severity=dg.AssetCheckSeverity.ERROR,
        metadata={"due": dg.MetadataValue.timestamp(deadline_s)},
        partition=hour,
        blocking=False,
    )


def _due_hours(sink: Sink) -> list[hours.Range]:
    """Return the range of hours since the sink's start whose time is over."""
    last = hours.shift(hours.key_of_ms(hours.now_ms() - int(sink.sealed.within * 1000)), -1)
    return [(sink.start, last)] if sink.start <= last else []
