"""In time: a check of every hour that it was sealed soon after its end, from Dagster's event log alone.

Dagster's own builder for partitions (`build_time_partition_freshness_checks`) is superseded, looks at the last one
alone, fails for a sink whose first hour is not over, and needs a run each time; its `FreshnessPolicy` asks when an
asset was last materialised, of whatever hour, so that a rewrite of an old hour would hide that the last one is missing.
"""

from collections.abc import Iterator, Sequence

import dagster as dg
import msgspec
from dagster._utils.warnings import disable_dagster_warnings

from s3lake import hours
from s3lake.orchestration import names
from s3lake.orchestration.catalogue import Catalogue
from s3lake.orchestration.sealed import announced
from s3lake.sink import Sink
from s3lake.text.quantities import duration_text

NAME = "sealed_in_time"
INTERVAL_S = 300
_MOST = 48
_NEVER = "9999"  # after every hour


class Cursor(msgspec.Struct):
    """What the sensor remembers; advice.

    Attributes:
        upto: the last hour that was looked at.
        late: per topic, hours that were not sealed in time and are not sealed yet.
    """

    upto: str = ""
    late: dict[str, list[str]] = {}


def in_time_checks(catalogue: Catalogue, sink: Sink) -> dg.AssetChecksDefinition:
    """The check of each topic of `sink`, in one step: for whoever wants to look at hours again."""
    sealed = [catalogue.sealed(sink, topic) for topic in catalogue.topics[sink.name]]
    with disable_dagster_warnings():  # checks with partitions are a preview of Dagster's
        specs = [
            dg.AssetCheckSpec(NAME, asset=spec.key, description=_description(sink), partitions_def=spec.partitions_def)
            for spec in sealed
        ]

    @dg.multi_asset_check(name=catalogue.name("in_time", sink.name), specs=specs, can_subset=True)
    def check(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckEvaluation | dg.Output[None]]:
        tags = context.run.tags
        first = tags.get(names.RANGE_START) or tags.get(names.PARTITION) or sink.start
        last = tags.get(names.RANGE_END) or tags.get(names.PARTITION) or _NEVER
        hours_due = hours.latest(hours.between(first, last, _due(sink)), _MOST)
        for one in sorted(context.selected_asset_check_keys):
            yield from _evaluations(context.instance, sink, one.asset_key, hours_due)
        for output in sorted(context.op_execution_context.selected_output_names):
            yield dg.Output(None, output_name=output)

    return check


def in_time_sensor(catalogue: Catalogue, sink: Sink, status: dg.DefaultSensorStatus) -> dg.SensorDefinition:
    """Looks at each hour of every topic once its time is over, and again at those that were late."""
    topics = catalogue.topics[sink.name]
    keys = {topic: dg.AssetCheckKey(catalogue.sealed_key(sink, topic), NAME) for topic in topics}

    @dg.sensor(
        name=catalogue.name("in_time", sink.name),
        minimum_interval_seconds=INTERVAL_S,
        default_status=status,
        asset_selection=dg.AssetSelection.checks(*keys.values()),
        description=f"{_description(sink)} A run is started for hours alone that are sealed after their time was over.",
    )
    def sense(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        cursor = _cursor(context.cursor)
        due = _due(sink)
        new = hours.latest(hours.between(hours.shift(cursor.upto, 1), _NEVER, due) if cursor.upto else due, _MOST)
        events: list[dg.AssetCheckEvaluation] = []
        late: dict[str, list[str]] = {}
        mended: dict[str, list[dg.AssetCheckKey]] = {}
        reported = _reported(context.instance, list(keys.values()), new)
        for topic in topics:
            before = cursor.late.get(topic, [])
            key, wanted = keys[topic], catalogue.within(sink, topic, {*before, *new})
            for evaluation in _evaluations(context.instance, sink, key.asset_key, sorted(wanted)):
                hour = str(evaluation.partition)
                if not evaluation.passed:
                    late.setdefault(topic, []).append(hour)
                elif hour in before:
                    mended.setdefault(hour, []).append(key)
                if hour not in before and (key, hour) not in reported:
                    events.append(evaluation)
        upto = new[-1] if new else cursor.upto
        runs = [
            dg.RunRequest(run_key=f"sealed {hour}: {checks}", asset_check_keys=checks, tags={names.PARTITION: hour})
            for hour, checks in sorted(mended.items())
        ]
        cursor_text = msgspec.json.encode(Cursor(upto, late)).decode()
        return dg.SensorResult(asset_events=events, run_requests=runs, cursor=cursor_text)

    return sense


def _reported(
    instance: dg.DagsterInstance, keys: Sequence[dg.AssetCheckKey], hours_new: Sequence[str]
) -> set[tuple[dg.AssetCheckKey, str | None]]:
    """What was said already, by a tick that ended before its cursor was kept, or by a run.

    Dagster keeps one evaluation of a check and partition that is of no run, and refuses another.
    """
    if not hours_new:
        return set()
    infos = instance.event_log_storage.get_asset_check_partition_info(keys, partition_keys=hours_new)
    return {(info.check_key, info.partition_key) for info in infos}


def _evaluations(
    instance: dg.DagsterInstance, sink: Sink, key: dg.AssetKey, hours_due: Sequence[str]
) -> Iterator[dg.AssetCheckEvaluation]:
    there = announced(instance, key, hours_due)
    for hour in hours_due:
        yield dg.AssetCheckEvaluation(
            asset_key=key,
            check_name=NAME,
            passed=hour in there,
            severity=dg.AssetCheckSeverity.ERROR,
            metadata={"due": dg.MetadataValue.timestamp(_deadline_ms(sink, hour) / 1000)},
            partition=hour,
            blocking=False,
        )


def _due(sink: Sink) -> list[hours.Range]:
    """Hours since the sink's start whose time is over."""
    last = hours.shift(hours.key_of_ms(hours.now_ms() - int(sink.sealed.within * 1000)), -1)
    return [(sink.start, last)] if sink.start <= last else []


def _deadline_ms(sink: Sink, hour: str) -> int:
    return hours.end_ms(hour) + int(sink.sealed.within * 1000)


def _description(sink: Sink) -> str:
    return f"Passes when the hour is sealed, by {duration_text(sink.sealed.within)} after its end at the latest."


def _cursor(text: str | None) -> Cursor:
    try:
        cursor = msgspec.json.decode(text or "{}", type=Cursor)
        return cursor if not cursor.upto or hours.parse(cursor.upto) else Cursor()
    except (msgspec.MsgspecError, ValueError):
        return Cursor()  # another version's
