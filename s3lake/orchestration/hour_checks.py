"""Checks of landed hours, from the index and Kafka's offsets, without Spark.

They report; nothing that must stop a commit is left to them. A run that landed hours checks these hours, a run of the
checks alone without a partition checks every hour.
"""

import functools
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import dagster as dg

from s3lake import hours
from s3lake.config.model import Sink
from s3lake.errors import S3LakeError
from s3lake.index.commit.documents import DEAD_LETTERS, TopicHead, collect_files
from s3lake.index.commit.sealing import Sealing
from s3lake.index.commit.sums import Commits
from s3lake.index.plan import due, sealed
from s3lake.index.plan.stamps import describe_stamps_ahead
from s3lake.index.plan.tile import Tile, TileRange
from s3lake.land.topic.observer import LandedHour
from s3lake.orchestration import red_hours
from s3lake.orchestration.catalog import Catalog
from s3lake.orchestration.hour_metadata import dead_share
from s3lake.orchestration.private_dagster import AssetCheckEvaluationTargetMaterializationData
from s3lake.orchestration.sealed_hours import announced_contents, seal_events
from s3lake.orchestration.sealed_in_time import report_late_hours
from s3lake.text.quantities import format_count

if TYPE_CHECKING:
    from s3lake.land.many_topics.quiet_topics import QuietTopic
    from s3lake.land.topic.topic_sink import TopicSink

OF_OFFSETS = "offsets_contiguous"
NAMES = (OF_OFFSETS, "rows_equal_offsets", "lag", "dead_letters")
_FILES = 10


def names_of(sink: Sink) -> tuple[str, ...]:
    """Return the names of a sink's checks: `table` is only for a sink that has one."""
    return NAMES if sink.table is None else (*NAMES, "table")


def build_check_specs(sink: Sink, landed: dg.AssetSpec) -> list[dg.AssetCheckSpec]:
    """Build the specs of an asset's checks, which the op that lands it makes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.PreviewWarning)  # checks with partitions are a preview of Dagster's
        return [
            dg.AssetCheckSpec(
                name, asset=landed.key, description=_CHECKS[name][1], partitions_def=landed.partitions_def
            )
            for name in names_of(sink)
        ]


def check_hours(
    instance: dg.DagsterInstance,
    catalog: Catalog,
    target: "TopicSink",
    requested: Sequence[str],
    checks: Sequence[str] | None = None,
) -> list[dg.AssetCheckEvaluation | dg.AssetMaterialization]:
    """Check hours of a topic of a sink, which are materialised; all if none are `requested`.

    Returns:
        Evaluations of `checks` (all if None), then the events of hours that are sealed and were not announced as they
        are now. Dagster's own AssetCheckResult has no partition in a run of several.
    """
    sealing = Sealing(target.index, *(target.index.head() or (TopicHead(), "")))
    chosen = requested or hours.expand(sealing.head.hours)
    names = names_of(target.sink) if checks is None else checks
    table_lag = _find_table_lag(target, chosen) if "table" in names else {}
    specs = catalog.specs(target.sink, target.topic)
    key = specs.landed.key
    evaluations: list[dg.AssetCheckEvaluation] = []
    for hour in chosen:
        state = HourState(target, key, hour, sealing, table_lag.get(hour))
        evaluations += _evaluate(state, names, _find_materialisation(instance, key, hour))
    announced = announced_contents(instance, specs.sealed.key, chosen)
    return [*evaluations, *_announce(instance, catalog, target, sealing, chosen, announced)]


def check_quiet_hours(
    instance: dg.DagsterInstance, catalog: Catalog, topics: "Sequence[QuietTopic]"
) -> Iterator[dg.AssetCheckEvaluation | dg.AssetMaterialization]:
    """Check the hours without a record that a run has closed and materialised, and announce the sealed ones.

    All checks are made. Evaluations of checks that pass because there is no record are not yielded: an event costs more
    than closing the hour. What one of them finds is yielded, and so is each evaluation of `offsets_contiguous`.
    """
    keys = {topic: catalog.key(topic.target.sink, topic.target.topic) for topic in topics}
    newest = {
        record.asset_entry.asset_key: record.asset_entry.last_materialization_record
        for record in instance.get_asset_records(list(keys.values()))
    }
    for topic, key in keys.items():
        target, sealing = topic.target, topic.sealing
        requested = [landed.tile.hour for landed in topic.closed]
        for hour in requested:
            record = newest.get(key)
            is_newest = record is not None and record.partition_key == hour
            materialisation = _to_target(record) if record and is_newest else _find_materialisation(instance, key, hour)
            state = HourState(target, key, hour, sealing)
            for evaluation in _evaluate(state, names_of(target.sink), materialisation):
                if evaluation.check_name == OF_OFFSETS or not evaluation.passed:
                    yield evaluation
        yield from _announce(instance, catalog, target, sealing, requested, {})


def _evaluate(
    state: "HourState", names: Sequence[str], materialisation: AssetCheckEvaluationTargetMaterializationData | None
) -> Iterator[dg.AssetCheckEvaluation]:
    """Make the checks of these names of an hour."""
    for name in names:
        result = _CHECKS[name][0](state)
        yield dg.AssetCheckEvaluation(
            asset_key=state.asset,
            check_name=name,
            passed=result.passed,
            description=result.description,
            severity=result.severity,
            metadata=result.metadata,
            target_materialization_data=materialisation,
            partition=state.hour,
            blocking=False,
        )


def _announce(
    instance: dg.DagsterInstance,
    catalog: Catalog,
    target: "TopicSink",
    sealing: Sealing,
    requested: Sequence[str],
    announced: Mapping[str, str],
) -> list[dg.AssetCheckEvaluation | dg.AssetMaterialization]:
    """Return the events of sealed hours that were not announced as they are, and evaluations of late ones of them."""
    events = seal_events(catalog, target, sealing, requested, announced, target.clock())
    return [*events, *report_late_hours(instance, target.sink, events)]


@dataclass(frozen=True)
class HourState:
    """The state of an hour, read when it is first needed; `behind` is how its table differs from the index."""

    target: "TopicSink"
    asset: dg.AssetKey
    hour: str
    sealing: Sealing
    behind: str | None = None

    @functools.cached_property
    def landed(self) -> LandedHour:
        """The hour in the index; with an empty tile if it has none."""
        tile = self.sealing.tile(self.hour) or Tile(self.hour, {})
        return LandedHour(tile, Commits(self.target.index, self.hour, tile.commits), 0)

    @functools.cached_property
    def tile(self) -> Tile:
        """The hour's tile; if it has none, what it would be if nothing of the hour were landed."""
        if self.landed.tile.partitions:
            return self.landed.tile
        logs = self.target.offsets.snapshot(self.target.topic, self.hour).partitions
        return Tile(
            self.hour,
            {partition: TileRange(log.hour_start, log.hour_start, log.hour_end) for partition, log in logs.items()},
        )


def _check_offsets(state: HourState) -> dg.AssetCheckResult:
    landed = bool(state.landed.tile.partitions)
    waiting = 0 if landed else sum((span.end or 0) - span.start for span in state.tile.partitions.values())
    wrong = {
        f"{tile.hour} to {after.hour}": {str(number): gap for number, gap in sealed.count_gaps(tile, after).items()}
        for tile, after in (state.sealing.neighbours(state.tile) if landed else ())
        if not sealed.is_seamless(tile, after)
    }
    incomplete = state.landed.tile.closed and not state.landed.tile.complete
    ahead = describe_stamps_ahead(state.landed.tile.stamped_ahead)
    passed = not wrong and not incomplete and not waiting and not ahead
    return dg.AssetCheckResult(
        passed=passed,
        description=None if passed else red_hours.explain_offsets(state.landed.tile, wrong, waiting, ahead),
        severity=dg.AssetCheckSeverity.ERROR if wrong or incomplete else dg.AssetCheckSeverity.WARN,
        metadata={
            "landed": dg.MetadataValue.bool(landed),
            "complete": dg.MetadataValue.bool(state.landed.tile.complete),
            "offsets_not_landed": waiting,
            "wrong_edges": dg.MetadataValue.json(wrong),
            **({"stamped_ahead": dg.MetadataValue.text("\n".join(ahead))} if ahead else {}),
        },
    )


def _check_rows(state: HourState) -> dg.AssetCheckResult:
    tile, sums = state.landed.tile, state.landed.sums
    offsets = sum(span.committed - span.start for span in tile.partitions.values())
    passed = sealed.is_explained(tile, sums)
    # Markers, aborted and compacted records have offsets, and no record for a reader of committed data.
    without_record = sealed.count_without_record(tile, sums)
    return dg.AssetCheckResult(
        passed=passed,
        description=None if passed else red_hours.explain_rows(offsets, sums, without_record),
        severity=dg.AssetCheckSeverity.ERROR,
        metadata={"offsets": offsets, "records": sums.read, "offsets_without_record": without_record},
    )


def _check_lag(state: HourState) -> dg.AssetCheckResult:
    target, tile = state.target, state.tile
    ends = {} if tile.closed else {one: end for one, (_, end) in target.offsets.log_ranges(target.topic).items()}
    behind = due.count_backlog(tile, ends)
    patience_ms, late = int(2 * target.sink.flush.interval * 1000), False
    if behind:
        now = target.clock()
        age = due.Age(now, patience_ms, state.landed.sums.landed_ms, seen_ms=now)
        since = target.offsets.find_offset_since(target.topic, now - patience_ms)
        late = due.is_overdue(tile, {one: first for one, first in since.items() if one in behind}, age)
    return dg.AssetCheckResult(
        passed=not late,
        description=red_hours.explain_lag(sum(behind.values()), patience_ms / 1000) if late else None,
        severity=dg.AssetCheckSeverity.WARN,
        metadata={
            "lag": sum(behind.values()),
            "lag_by_topic_partition": dg.MetadataValue.json({str(one): count for one, count in behind.items()}),
        },
    )


def _check_dead_letters(state: HourState) -> dg.AssetCheckResult:
    sums = state.landed.sums
    metadata: dict[str, Any] = {"dead_letters": sums.dead, "share": dead_share(sums)}
    if sums.dead:
        bucket = state.target.store.bucket
        keys = [file.key for file in collect_files(state.landed.manifests, DEAD_LETTERS)]
        metadata["files"] = dg.MetadataValue.json([f"s3://{bucket}/{key}" for key in keys[:_FILES]])
    exceeded = state.target.sink.errors.threshold.is_exceeded(sums.dead, sums.read)
    description = None
    if exceeded:
        sink, asset = state.target.sink, f"{state.asset.to_user_string()}_dead_letters"
        description = red_hours.explain_dead_letters(sink, sums, state.landed.manifests, asset)
    return dg.AssetCheckResult(
        passed=not exceeded, description=description, severity=dg.AssetCheckSeverity.WARN, metadata=metadata
    )


def _find_table_lag(target: "TopicSink", chosen: Sequence[str]) -> dict[str, str]:
    """Return the hours in which the table differs from the index, and how."""
    if target.table is None:
        return {}
    try:
        differences = list(target.table.find_differences(chosen))
    except S3LakeError as error:
        return dict.fromkeys(chosen, str(error))
    remedy = "the next run of the hour or `s3lake table sync` brings it to the index"
    return {
        each.hour: f"the table lacks {format_count(len(each.added), 'commits')}, and has {len(each.removed):,} "
        f"that are replaced: {remedy}"
        for each in differences
    }


def _check_table(state: HourState) -> dg.AssetCheckResult:
    metadata = {"table": getattr(state.target.table, "name", ""), **({"behind": state.behind} if state.behind else {})}
    return dg.AssetCheckResult(
        passed=state.behind is None,
        description=state.behind,
        severity=dg.AssetCheckSeverity.WARN,
        metadata=metadata,
    )


def _find_materialisation(
    instance: dg.DagsterInstance, key: dg.AssetKey, hour: str
) -> AssetCheckEvaluationTargetMaterializationData | None:
    """Return the materialisation that is checked: without it Dagster takes the result for one of an earlier one."""
    newest = dg.AssetRecordsFilter(asset_key=key, asset_partitions=[hour])
    for record in instance.fetch_materializations(newest, limit=1).records:
        return _to_target(record)
    return None


def _to_target(record: dg.EventLogRecord) -> AssetCheckEvaluationTargetMaterializationData:
    return AssetCheckEvaluationTargetMaterializationData(
        storage_id=record.storage_id, run_id=record.run_id, timestamp=record.timestamp
    )


_CHECKS: dict[str, tuple[Callable[[HourState], dg.AssetCheckResult], str]] = {
    OF_OFFSETS: (
        _check_offsets,
        "Passes when the hour begins where the hour before ends, ends where the next one begins, and is complete if "
        "it is closed.",
    ),
    "rows_equal_offsets": (
        _check_rows,
        "Passes when each record that was read is a row, a dead letter, or counted as skipped, filtered or erased.",
    ),
    "lag": (_check_lag, "Passes when no record of the hour has waited for twice the flush interval."),
    "dead_letters": (
        _check_dead_letters,
        "Passes when no more records of the hour were refused than errors.threshold allows: by default none.",
    ),
    "table": (_check_table, "Passes when the table lists the commits that the index has of the hour."),
}
