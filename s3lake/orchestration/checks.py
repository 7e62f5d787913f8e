"""Checks: what can be said of each landed hour from the index and Kafka's offsets, without Spark.

They report; nothing that must stop a commit is left to them. Each is of one hour, and stays as it is until that hour is
looked at again: a run that landed hours checks those, a run of the checks alone without a partition every hour.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import dagster as dg
from dagster._core.definitions.asset_checks.asset_check_evaluation import AssetCheckEvaluationTargetMaterializationData
from dagster._utils.warnings import disable_dagster_warnings

from s3lake import hours
from s3lake.commit.files import files_of
from s3lake.commit.index import TopicHead
from s3lake.commit.sealing import Sealing
from s3lake.commit.sums import Commits
from s3lake.errors import S3LakeError
from s3lake.land.observer import LandedHour
from s3lake.orchestration import names
from s3lake.orchestration.catalogue import Catalogue
from s3lake.orchestration.in_time import sealed_late
from s3lake.orchestration.letters import share
from s3lake.orchestration.resources import looking
from s3lake.orchestration.retries import retried
from s3lake.orchestration.sealed import announcements
from s3lake.plan import due, sealed
from s3lake.plan.stamps import describe_stamps_ahead
from s3lake.plan.tile import Span, Tile
from s3lake.sink import Sink

if TYPE_CHECKING:
    from s3lake.land.landing import Landing

NAMES = ("offsets_contiguous", "rows_equal_offsets", "lag", "dead_letters")
_FILES = 10


def names_of(sink: Sink) -> tuple[str, ...]:
    """The checks of a sink: `table` is of those that have one."""
    return NAMES if sink.table is None else (*NAMES, "table")


def sink_checks(catalogue: Catalogue, sink: Sink, topic: str) -> dg.AssetChecksDefinition:
    """The checks of one sink asset, in one step."""
    keys, landed = catalogue.keys, catalogue.landed(sink, topic)
    with disable_dagster_warnings():  # checks with partitions are a preview of Dagster's
        specs = [
            dg.AssetCheckSpec(
                name, asset=landed.key, description=_DESCRIPTIONS[name], partitions_def=landed.partitions_def
            )
            for name in names_of(sink)
        ]

    @dg.multi_asset_check(
        name=catalogue.name("check", sink.name, topic),
        specs=specs,
        can_subset=True,
        required_resource_keys={keys.kafka, keys.s3},
    )
    def check(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckEvaluation | dg.Output[None]]:
        chosen = sorted(one.name for one in context.selected_asset_check_keys)

        def looked() -> Checked:
            lander = looking(context.resources, keys, sink, topic)
            return checked(context.instance, catalogue, lander, _hours_of(context), chosen)

        found = retried(looked, sink.errors)
        yield from found.evaluations(context.instance)
        for announcement in found.sealed:
            context.op_execution_context.log_event(announcement)
        for output in sorted(context.op_execution_context.selected_output_names):
            yield dg.Output(None, output_name=output)

    return check


def checked(
    instance: dg.DagsterInstance,
    catalogue: Catalogue,
    lander: "Landing",
    wanted: Sequence[str],
    chosen: Sequence[str] | None = None,
) -> "Checked":
    """Look at the hours `wanted`, at every hour where there are none, with the checks `chosen`, all without them."""
    head = lander.index.head()
    sealing = Sealing(lander.index, head[0] if head else TopicHead())
    asked = wanted or hours.expand(sealing.head.hours)
    checks = names_of(lander.sink) if chosen is None else chosen
    behind = _behind(lander, asked) if "table" in checks else {}
    seen = [_Hour(lander, hour, sealing, behind.get(hour)) for hour in asked]
    verdicts = [(name, one.hour, _CHECKS[name](one)) for one in seen for name in checks]
    key = catalogue.key(lander.sink, lander.topic)
    events = announcements(instance, catalogue, lander, sealing, asked, lander.clock())
    return Checked(key, verdicts, [*events, *sealed_late(instance, lander.sink, events)])


@dataclass(frozen=True)
class Checked:
    """Hours of a sink asset after they were looked at.

    Attributes:
        verdicts: by check and hour.
        sealed: events of hours that are sealed now, and evaluations of those that were not in time.
    """

    key: dg.AssetKey
    verdicts: "Sequence[tuple[str, str, Verdict]]"
    sealed: Sequence[Any]

    def evaluations(self, instance: dg.DagsterInstance) -> Iterator[dg.AssetCheckEvaluation]:
        """The verdicts as events. Dagster's own AssetCheckResult knows no partition in a run of several."""
        target = functools.cache(lambda hour: _materialisation(instance, self.key, hour))
        for name, hour, verdict in self.verdicts:
            yield dg.AssetCheckEvaluation(
                asset_key=self.key,
                check_name=name,
                passed=verdict.passed,
                severity=verdict.severity,
                metadata=verdict.metadata,
                target_materialization_data=target(hour),
                partition=hour,
                blocking=False,
            )


@dataclass(frozen=True)
class Verdict:
    """What a check says of an hour."""

    passed: bool
    severity: dg.AssetCheckSeverity
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class _Hour:
    """What the checks look at, read when it is first needed."""

    lander: "Landing"
    hour: str
    sealing: Sealing
    behind: str | None = None

    @functools.cached_property
    def landed(self) -> LandedHour:
        """What the index says of the hour; an empty tile where it has none."""
        tile = self.sealing.tile(self.hour) or Tile(self.hour, {})
        return LandedHour(tile, Commits(self.lander.index, self.hour, tile.commits), 0)

    @functools.cached_property
    def tile(self) -> Tile:
        """The hour's tile; where it has none, what it would be if nothing of the hour were landed."""
        if self.landed.tile.partitions:
            return self.landed.tile
        logs = self.lander.offsets.snapshot(self.lander.topic, self.hour).partitions
        return Tile(self.hour, {partition: Span(log.at, log.at, log.next) for partition, log in logs.items()})


def _contiguous(seen: _Hour) -> Verdict:
    landed = bool(seen.landed.tile.partitions)
    waiting = 0 if landed else sum((span.end or 0) - span.start for span in seen.tile.partitions.values())
    wrong = {
        f"{one.hour} to {following.hour}": {str(number): gap for number, gap in sealed.between(one, following).items()}
        for one, following in (seen.sealing.neighbours(seen.tile) if landed else ())
        if not sealed.meet(one, following)
    }
    incomplete = seen.landed.tile.closed and not seen.landed.tile.complete
    ahead = describe_stamps_ahead(seen.landed.tile.stamped_ahead)
    return Verdict(
        not wrong and not incomplete and not waiting and not ahead,
        dg.AssetCheckSeverity.ERROR if wrong or incomplete else dg.AssetCheckSeverity.WARN,
        {
            "landed": dg.MetadataValue.bool(landed),
            "complete": dg.MetadataValue.bool(seen.landed.tile.complete),
            "offsets_not_landed": waiting,
            "wrong_edges": dg.MetadataValue.json(wrong),
            **({"stamped_ahead": dg.MetadataValue.text("\n".join(ahead))} if ahead else {}),
        },
    )


def _explained(seen: _Hour) -> Verdict:
    tile, sums = seen.landed.tile, seen.landed.sums
    return Verdict(
        sealed.explained(tile, sums),
        dg.AssetCheckSeverity.ERROR,
        {
            "offsets": sum(span.committed - span.start for span in tile.partitions.values()),
            "records": sums.read,
            # Markers, aborted and compacted records have offsets, and no record for a reader of committed data.
            "offsets_without_record": sealed.without_record(tile, sums),
        },
    )


def _lag(seen: _Hour) -> Verdict:
    lander, tile = seen.lander, seen.tile
    ends = {} if tile.closed else {one: end for one, (_, end) in lander.offsets.ranges(lander.topic).items()}
    behind = due.backlog(tile, ends)
    patience_ms, late = int(2 * lander.sink.flush.interval * 1000), False
    if behind:
        now = lander.clock()
        age = due.Age(now, patience_ms, seen.landed.sums.landed_ms, seen_ms=now)
        since = lander.offsets.first_since(lander.topic, now - patience_ms)
        late = due.overdue(tile, {one: first for one, first in since.items() if one in behind}, age)
    return Verdict(
        not late,
        dg.AssetCheckSeverity.WARN,
        {
            "lag": sum(behind.values()),
            "lag_by_topic_partition": dg.MetadataValue.json({str(one): count for one, count in behind.items()}),
        },
    )


def _dead(seen: _Hour) -> Verdict:
    sums = seen.landed.sums
    found: dict[str, Any] = {"dead_letters": sums.dead, "share": round(share(sums.dead, sums.read), 6)}
    if sums.dead:
        bucket = seen.lander.store.bucket
        keys = [file.key for file in files_of(seen.landed.manifests, "dead_letters")]
        found["files"] = dg.MetadataValue.json([f"s3://{bucket}/{key}" for key in keys[:_FILES]])
    exceeded = seen.lander.sink.errors.threshold.is_exceeded(sums.dead, sums.read)
    return Verdict(not exceeded, dg.AssetCheckSeverity.WARN, found)


def _behind(lander: "Landing", asked: Sequence[str]) -> dict[str, str]:
    """Hours in which the table is not what the index says, and why."""
    if lander.table is None:
        return {}
    try:
        found = list(lander.table.differences(asked))
    except S3LakeError as error:
        return dict.fromkeys(asked, str(error))
    remedy = "the next run of the hour or `s3lake table sync` brings it to the index"
    return {
        one.hour: f"{len(one.added)} commits are not in the table, {len(one.gone)} are replaced: {remedy}"
        for one in found
    }


def _table(seen: _Hour) -> Verdict:
    metadata = {"table": getattr(seen.lander.table, "name", ""), **({"behind": seen.behind} if seen.behind else {})}
    return Verdict(seen.behind is None, dg.AssetCheckSeverity.WARN, metadata)


def _hours_of(context: dg.AssetCheckExecutionContext) -> Sequence[str]:
    """The hours that this run is about."""
    tags = context.run.tags
    first = tags.get(names.RANGE_START) or tags.get(names.PARTITION)
    return list(hours.span(first, tags.get(names.RANGE_END) or first)) if first else []


def _materialisation(
    instance: dg.DagsterInstance, key: dg.AssetKey, hour: str
) -> AssetCheckEvaluationTargetMaterializationData | None:
    """The materialisation that the checks look at; without it Dagster takes their verdict for one of an earlier one."""
    wanted = dg.AssetRecordsFilter(asset_key=key, asset_partitions=[hour])
    for record in instance.fetch_materializations(wanted, limit=1).records:
        return AssetCheckEvaluationTargetMaterializationData(
            storage_id=record.storage_id, run_id=record.run_id, timestamp=record.timestamp
        )
    return None


_CHECKS: dict[str, Callable[[_Hour], Verdict]] = {
    "offsets_contiguous": _contiguous,
    "rows_equal_offsets": _explained,
    "lag": _lag,
    "dead_letters": _dead,
    "table": _table,
}
_DESCRIPTIONS = {
    "offsets_contiguous": "Passes when the hour shares its edges with the hours beside it, and is landed as a whole if "
    "it is closed.",
    "rows_equal_offsets": "Passes when every record read is a row, a dead letter or a skipped null; other offsets hold "
    "no record.",
    "lag": "Passes when no record of the hour has waited for twice the flush interval.",
    "dead_letters": "Passes when no more records of the hour were refused than errors.threshold says: none by itself.",
    "table": "Passes when the table lists the commits that the index has of the hour.",
}
