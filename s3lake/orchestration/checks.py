"""Checks: what can be said of the landed hours from the index and Kafka's offsets, without Spark.

They report; nothing that must stop a commit is left to them. A run that landed hours checks those, a run of the checks
alone every hour.
"""

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import dagster as dg

from s3lake import hours
from s3lake.orchestration import names
from s3lake.orchestration.resources import landing
from s3lake.orchestration.retries import retried
from s3lake.plan import due
from s3lake.plan.tile import Tile
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
        def results() -> list[dg.AssetCheckResult]:
            seen = _look(landing(sink, topic, kafka, s3, spark=None), _hours_of(context))
            return [_CHECKS[key.name](seen, key) for key in sorted(context.selected_asset_check_keys)]

        yield from retried(results)

    return check


@dataclass(frozen=True)
class _Seen:
    """What the checks look at, read when it is first needed.

    Attributes:
        existing: every hour that has a tile.
        chosen: those that are checked.
        since: first hour of the present topic, where an earlier one of this name was given up.
    """

    lander: "Landing"
    existing: Sequence[str]
    chosen: Sequence[str]
    since: str | None

    @functools.cached_property
    def landed(self) -> list["LandedHour"]:
        """What the index says of the checked hours."""
        return [self.lander.report(hour) for hour in self.chosen]

    @functools.cached_property
    def last(self) -> Tile | None:
        """The last tile, the only one that can be open."""
        found = self.lander.index.tile(self.existing[-1]) if self.existing else None
        return found[0] if found else None

    @property
    def with_neighbours(self) -> list[Tile]:
        """The tiles of the checked hours, and of the hours that have one before and after."""
        if not self.chosen:
            return []
        first, last = self.existing.index(self.chosen[0]), self.existing.index(self.chosen[-1])
        beside = [*self.existing[max(0, first - 1) : first], *self.existing[last + 1 : last + 2]]
        found = [self.lander.index.tile(hour) for hour in beside]
        tiles = [*(one.tile for one in self.landed), *(tile[0] for tile in found if tile)]
        return sorted(tiles, key=lambda tile: tile.hour)


def _look(lander: "Landing", wanted: tuple[str, str] | None) -> _Seen:
    found = lander.index.head()
    existing = hours.expand(found[0].hours) if found else []
    chosen = [hour for hour in existing if wanted is None or wanted[0] <= hour <= wanted[1]]
    return _Seen(lander, existing, chosen, found[0].since if found else None)


def _contiguous(seen: _Seen, key: dg.AssetCheckKey) -> dg.AssetCheckResult:
    broken: list[str] = []
    skipped: list[str] = []
    offsets_skipped = 0
    for one, following in pairwise(seen.with_neighbours):
        if seen.since and one.hour < seen.since <= following.hour:
            continue  # offsets of a topic that was deleted and of the present one
        gaps = _between(one, following)
        if hours.shift(one.hour, 1) == following.hour:
            broken += [one.hour] if any(gaps) else []
            continue
        skipped += [hours.shift(one.hour, 1), hours.shift(following.hour, -1)]
        broken += [one.hour] if min(gaps, default=0) < 0 else []
        offsets_skipped += sum(max(0, gap) for gap in gaps)
    incomplete = [one.tile.hour for one in seen.landed if one.tile.closed and not one.tile.complete]
    return _result(
        key,
        not broken and not incomplete and not offsets_skipped,
        # Nobody has asked for these hours yet: that is said, and is no fault of those that were landed.
        dg.AssetCheckSeverity.ERROR if broken or incomplete else dg.AssetCheckSeverity.WARN,
        hours_with_wrong_edge=broken,
        incomplete_hours=incomplete,
        hours_never_opened=[f"{first} to {last}" for first, last in zip(skipped[::2], skipped[1::2], strict=True)],
        offsets_in_hours_never_opened=offsets_skipped,
    )


def _between(one: Tile, following: Tile) -> list[int]:
    """Offsets between two tiles, per topic-partition; negative where they overlap."""
    ends = {partition: span.end or 0 for partition, span in one.partitions.items()}
    starts = {partition: span.start for partition, span in following.partitions.items()}
    return [starts.get(partition, 0) - ends.get(partition, 0) for partition in {*ends, *starts}]


def _explained(seen: _Seen, key: dg.AssetCheckKey) -> dg.AssetCheckResult:
    wrong, offsets, records, without = [], 0, 0, 0
    for one in seen.landed:
        sums, expired = one.sums, sum(end - start for _, start, end in one.tile.expired)
        given_up = expired - sums.expired  # when the topic was created again
        covered = sum(span.committed - span.start for span in one.tile.partitions.values())
        if (
            sums.read != sums.landed + sums.skipped + sums.dead
            or sums.records != sums.landed + sums.dead
            or covered - given_up != sums.offsets
        ):
            wrong.append(one.tile.hour)
        offsets += covered
        records += sums.read
        without += covered - expired - sums.read
    return _result(
        key,
        not wrong and without >= 0,
        dg.AssetCheckSeverity.ERROR,
        hours_that_differ=wrong,
        offsets=offsets,
        records=records,
        # Transaction markers, aborted and compacted records have offsets, and no record for a reader of committed data.
        offsets_without_record=without,
    )


def _lag(seen: _Seen, key: dg.AssetCheckKey) -> dg.AssetCheckResult:
    lander, tile = seen.lander, seen.last or Tile("", {})
    behind = due.backlog(tile, {one: end for one, (_, end) in lander.offsets.ranges(lander.topic).items()})
    patience_ms, late = int(2 * lander.sink.flush.interval * 1000), False
    if behind:
        now = lander.clock()
        landed_ms = lander.recent(tile).landed_ms
        age = due.Age(now, patience_ms, landed_ms, seen_ms=now)
        late = due.overdue(tile, lander.offsets.first_since(lander.topic, now - patience_ms), age)
    return _result(
        key,
        not late,
        dg.AssetCheckSeverity.WARN,
        lag=sum(behind.values()),
        lag_by_topic_partition={str(one): count for one, count in behind.items()},
    )


def _dead(seen: _Seen, key: dg.AssetCheckKey) -> dg.AssetCheckResult:
    counts = {one.tile.hour: one.sums.dead for one in seen.landed}
    found = {hour: dead for hour, dead in counts.items() if dead}
    return _result(key, not found, dg.AssetCheckSeverity.WARN, dead_letters=sum(found.values()), hours=found)


def _result(
    key: dg.AssetCheckKey, passed: bool, severity: dg.AssetCheckSeverity, **metadata: Any
) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        passed=passed,
        asset_key=key.asset_key,
        check_name=key.name,
        severity=severity,
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
    "offsets_contiguous": "Hours share their edges, none between is left out, and closed hours are landed as a whole.",
    "rows_equal_offsets": "Every record read is a row, a dead letter or a skipped null; other offsets hold no record.",
    "lag": "No record has waited for twice the flush interval.",
    "dead_letters": "No record was refused.",
}
