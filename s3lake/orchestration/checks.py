"""Checks: what can be said of the landed hours from the index and Kafka's offsets, without Spark.

They report; nothing that must stop a commit is left to them. A run that landed hours checks those, a run of the checks
alone every hour.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import dagster as dg

from s3lake import hours
from s3lake.orchestration import names
from s3lake.orchestration.resources import landing
from s3lake.sink import Sink

if TYPE_CHECKING:
    from s3lake.landing import LandedHour, Landing

NAMES = ("offsets_contiguous", "rows_equal_offsets", "lag", "dead_letters")


def sink_checks(sink: Sink, topic: str) -> dg.AssetChecksDefinition:
    """The checks of one sink asset, in one step."""
    key = names.sink_key(sink, topic)

    @dg.multi_asset_check(
        name=names.identifier("check", sink.name, topic),
        specs=[dg.AssetCheckSpec(name, asset=key, description=_DESCRIPTIONS[name]) for name in NAMES],
        can_subset=True,
    )
    def check(
        context: dg.AssetCheckExecutionContext, kafka: dg.ResourceParam[Any], s3: dg.ResourceParam[Any]
    ) -> Iterator[dg.AssetCheckResult]:
        lander = landing(sink, topic, kafka, s3, spark=None)
        wanted = _hours_of(context)
        found = lander.index.head()
        existing = hours.expand(found[0].hours) if found else []
        landed = [lander.report(hour) for hour in existing if wanted is None or wanted[0] <= hour <= wanted[1]]
        seen = _Seen(lander, existing, landed)
        for selected in context.selected_asset_check_keys:
            yield _CHECKS[selected.name](seen, selected)

    return check


@dataclass(frozen=True)
class _Seen:
    """What the checks look at: every hour that has a tile, and what the index says of those that are checked."""

    lander: "Landing"
    existing: Sequence[str]
    landed: Sequence["LandedHour"]


def _contiguous(seen: _Seen, key: dg.AssetCheckKey) -> dg.AssetCheckResult:
    broken = []
    for one, following in pairwise(seen.landed):
        if hours.shift(one.tile.hour, 1) == following.tile.hour:
            ends = {partition: span.end for partition, span in one.tile.partitions.items()}
            starts = {partition: span.start for partition, span in following.tile.partitions.items()}
            broken += [one.tile.hour for partition, start in starts.items() if ends.get(partition, 0) != start]
    missing = (
        [hour for hour in hours.span(seen.existing[0], seen.existing[-1]) if hour not in set(seen.existing)]
        if seen.existing
        else []
    )
    incomplete = [one.tile.hour for one in seen.landed if one.tile.closed and not one.tile.complete]
    return _result(
        key,
        not broken and not incomplete,
        hours_with_gap=sorted(set(broken)),
        incomplete_hours=incomplete,
        hours_never_opened=missing,
    )


def _explained(seen: _Seen, key: dg.AssetCheckKey) -> dg.AssetCheckResult:
    wrong, offsets, records, without = [], 0, 0, 0
    for one in seen.landed:
        expired = sum(end - start for _, start, end in one.tile.expired)
        reads = [read for manifest in one.manifests for read in manifest.partitions.values()]
        covered = sum(span.committed - span.start for span in one.tile.partitions.values())
        rows = sum(file.records for manifest in one.manifests for file in manifest.files)
        accounted = all(read.read == read.landed + read.skipped + read.dead for read in reads)
        if not accounted or rows != sum(read.landed + read.dead for read in reads):
            wrong.append(one.tile.hour)
        if covered != sum(read.end - read.start for read in reads):
            wrong.append(one.tile.hour)
        offsets += covered
        records += sum(read.read for read in reads)
        without += covered - expired - sum(read.read for read in reads)
    return _result(
        key,
        not wrong and without >= 0,
        hours_that_differ=sorted(set(wrong)),
        offsets=offsets,
        records=records,
        # Transaction markers, aborted and compacted records have offsets, and no record for a reader of committed data.
        offsets_without_record=without,
    )


def _lag(seen: _Seen, key: dg.AssetCheckKey) -> dg.AssetCheckResult:
    last = seen.lander.index.tile(seen.existing[-1]) if seen.existing else None
    ends = {partition: end for partition, (_, end) in seen.lander.offsets.ranges(seen.lander.topic).items()}
    spans = last[0].partitions if last else {}
    behind = {p: end - spans[p].committed if p in spans else end for p, end in ends.items()}
    since = seen.lander.offsets.first_since(
        seen.lander.topic, seen.lander.clock() - int(2 * seen.lander.sink.flush.interval * 1000)
    )
    late = [p for p, first in since.items() if first > (spans[p].committed if p in spans else 0)]
    return _result(key, not late, lag=sum(behind.values()), topic_partitions_behind=sorted(late))


def _dead(seen: _Seen, key: dg.AssetCheckKey) -> dg.AssetCheckResult:
    counts = {
        one.tile.hour: sum(read.dead for manifest in one.manifests for read in manifest.partitions.values())
        for one in seen.landed
    }
    found = {hour: dead for hour, dead in counts.items() if dead}
    return _result(key, not found, dead_letters=sum(found.values()), hours=found)


def _result(key: dg.AssetCheckKey, passed: bool, **metadata: Any) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        passed=passed,
        asset_key=key.asset_key,
        check_name=key.name,
        severity=dg.AssetCheckSeverity.ERROR if key.name in NAMES[:2] else dg.AssetCheckSeverity.WARN,
        metadata={
            name: value if isinstance(value, int) else dg.MetadataValue.json(value) for name, value in metadata.items()
        },
    )


def _hours_of(context: dg.AssetCheckExecutionContext) -> tuple[str, str] | None:
    """The hours that this run landed."""
    tags = context.run.tags
    first = tags.get(names.RANGE_START) or tags.get(names.PARTITION)
    return (first, tags.get(names.RANGE_END) or first) if first else None


_CHECKS = {"offsets_contiguous": _contiguous, "rows_equal_offsets": _explained, "lag": _lag, "dead_letters": _dead}
_DESCRIPTIONS = {
    "offsets_contiguous": "Hours share their edges, and closed hours are landed as a whole.",
    "rows_equal_offsets": "Every record read is a row, a dead letter or a skipped null; other offsets hold no record.",
    "lag": "No record has waited for twice the flush interval.",
    "dead_letters": "No record was refused.",
}
