"""A check of every hour: was it sealed soon after its end? It reads Dagster's event log alone.

Dagster's own builder for partitions (`build_time_partition_freshness_checks`) is superseded, looks at the last one
alone, fails for a sink whose first hour is not over, and needs a run each time; its `FreshnessPolicy` asks when an
asset was last materialised, of whatever hour, so that a rewrite of an old hour would hide that the last one is missing.
"""

import warnings
from collections.abc import Iterator, Sequence

import dagster as dg

from s3lake import hours
from s3lake.orchestration import names
from s3lake.orchestration.catalogue import Catalogue
from s3lake.orchestration.sealed import announced_contents
from s3lake.sink import Sink
from s3lake.text.quantities import format_duration

NAME = "sealed_in_time"
INTERVAL_S = 300
_MOST = 48
_NEVER = "9999"  # after every hour


def in_time_checks(catalogue: Catalogue, sink: Sink) -> dg.AssetChecksDefinition:
    """The check of each topic of `sink`, in one step: for whoever wants to look at hours again."""
    sealed = [catalogue.sealed(sink, topic) for topic in catalogue.topics[sink.name]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.PreviewWarning)  # checks with partitions
        specs = [
            dg.AssetCheckSpec(NAME, asset=spec.key, description=_description(sink), partitions_def=spec.partitions_def)
            for spec in sealed
        ]

    @dg.multi_asset_check(name=catalogue.name("in_time", sink.name), specs=specs, can_subset=True)
    def check(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckEvaluation | dg.Output[None]]:
        tags = context.run.tags
        first = tags.get(names.RANGE_START) or tags.get(names.PARTITION) or sink.start
        last = tags.get(names.RANGE_END) or tags.get(names.PARTITION) or _NEVER
        hours_due = hours.latest(hours.between(first, last, _due_hours(sink)), _MOST)
        for one in sorted(context.selected_asset_check_keys):
            yield from _evaluations(context.instance, sink, one.asset_key, hours_due)
        for output in sorted(context.op_execution_context.selected_output_names):
            yield dg.Output(None, output_name=output)

    return check


def in_time_sensor(catalogue: Catalogue, sink: Sink, status: dg.DefaultSensorStatus) -> dg.SensorDefinition:
    """Evaluate the check of each hour once, when its time is over; the cursor is the last hour of all topics."""
    topics = {topic: dg.AssetCheckKey(catalogue.sealed_key(sink, topic), NAME) for topic in catalogue.topics[sink.name]}

    @dg.sensor(
        name=catalogue.name("in_time", sink.name),
        minimum_interval_seconds=INTERVAL_S,
        default_status=status,
        description=f"Evaluates for each hour of sink {sink.name}, {format_duration(sink.sealed.within)} after its "
        "end, whether it is sealed. Starts no runs: the run that seals an hour later evaluates it again.",
    )
    def sense(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        due, last = _due_hours(sink), context.cursor or ""
        try:
            new = hours.latest(hours.between(hours.shift(last, 1), _NEVER, due) if last else due, _MOST)
        except ValueError:
            new = hours.latest(due, _MOST)  # another version's cursor
        before = {(key, hour) for key, hour, _ in _already_reported(context.instance, list(topics.values()), new)}
        events = [
            evaluation
            for topic, key in topics.items()
            for evaluation in _evaluations(
                context.instance, sink, key.asset_key, sorted(catalogue.within(sink, topic, new))
            )
            if (key, evaluation.partition) not in before
        ]
        missed = sum(not evaluation.passed for evaluation in events)
        looked = f"{len(events)} hours of topics are evaluated, {missed} were not sealed in time"
        nothing = f"no hour is new since {last}: each is evaluated {format_duration(sink.sealed.within)} after its end"
        return dg.SensorResult(asset_events=events, skip_reason=looked if events else nothing, cursor=max([last, *new]))

    return sense


def report_late_hours(
    instance: dg.DagsterInstance, sink: Sink, events: Sequence[dg.AssetMaterialization]
) -> list[dg.AssetCheckEvaluation]:
    """Return new evaluations of hours that are sealed now and were not in time: they turn green."""
    if not events:
        return []
    key = dg.AssetCheckKey(events[0].asset_key, NAME)
    sealed = [str(event.partition) for event in events]
    return [
        _evaluation(sink, key.asset_key, hour, passed=True)
        for _, hour, passed in _already_reported(instance, [key], sealed)
        if hour and not passed
    ]


def _already_reported(
    instance: dg.DagsterInstance, keys: Sequence[dg.AssetCheckKey], hours_wanted: Sequence[str]
) -> list[tuple[dg.AssetCheckKey, str | None, bool]]:
    """Return the checks and hours that Dagster has an evaluation of already, and whether the last one passed.

    Dagster keeps one evaluation of a check and partition that is of no run, and refuses another.
    """
    if not hours_wanted:
        return []
    infos = instance.event_log_storage.get_asset_check_partition_info(keys, partition_keys=hours_wanted)
    return [(info.check_key, info.partition_key, info.latest_execution_status.value == "SUCCEEDED") for info in infos]


def _evaluations(
    instance: dg.DagsterInstance, sink: Sink, key: dg.AssetKey, hours_due: Sequence[str]
) -> list[dg.AssetCheckEvaluation]:
    sealed = announced_contents(instance, key, hours_due)
    return [_evaluation(sink, key, hour, passed=hour in sealed) for hour in hours_due]


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


def _description(sink: Sink) -> str:
    return f"Passes when the hour is sealed, by {format_duration(sink.sealed.within)} after its end at the latest."
