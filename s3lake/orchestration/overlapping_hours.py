"""Partitions of any time zone as hours in UTC: the partition mapping of an asset that reads a sink's hours.

Dagster's own mapping between partitions of time refuses two time zones.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime, timezone

import dagster as dg

from s3lake.orchestration.private_dagster import (
    AllPartitionsSubset,
    DynamicPartitionsStore,
    PartitionsSubset,
    TimeWindowPartitionsSubset,
    UpstreamPartitionsResult,
    partition_loading_context,
    send_as,
)

_HOUR_S = 3600

Span = tuple[float, float]
"""Seconds since the epoch: the start, and the first moment after the end."""


class OverlappingHours(dg.AllPartitionMapping):
    """Maps partitions of any length and time zone to a sink's hours, which are in UTC: to all whole hours that overlap.

    A local day has its 24 hours, or 23 or 25 when the clocks change. Where a zone is not a number of whole hours from
    UTC, as in India, a day has the hour at each of its ends too, which the neighbouring day has as well.

    A partition follows when all of its hours exist: one that ends within an hour waits for the end of that hour.

    Dagster's daemon and UI know only Dagster's own mappings. To them this one is a mapping of every partition to all
    hours: the asset can be backfilled, and in one backfill with the hours themselves it waits for these.

    Args:
        allow_nonexistent_upstream_partitions: read what there is of a partition that begins before the sink's `start`,
            or is not over, as `TimeWindowPartitionMapping` has it. Without it Dagster refuses such a partition.
    """

    # A NamedTuple's fields are what Dagster sends: there are none, as in the class that the daemon takes this for.
    def __new__(cls, *, allow_nonexistent_upstream_partitions: bool = False) -> "OverlappingHours":
        mapping = super().__new__(cls)
        mapping._allow_nonexistent = allow_nonexistent_upstream_partitions
        return mapping

    _allow_nonexistent: bool

    def validate_partition_mapping(
        self,
        upstream_partitions_def: dg.PartitionsDefinition,
        downstream_partitions_def: dg.PartitionsDefinition | None,
    ) -> None:
        """Check the partitions of both assets.

        Raises:
            DagsterInvalidDefinitionError: one of them has no partitions of time, or the upstream one not hours in UTC.
        """
        _hours_of(upstream_partitions_def)
        _require_windows(downstream_partitions_def)

    def get_upstream_mapped_partitions_result_for_partitions(
        self,
        downstream_partitions_subset: PartitionsSubset | None,
        downstream_partitions_def: dg.PartitionsDefinition | None,
        upstream_partitions_def: dg.PartitionsDefinition,
        current_time: datetime | None = None,
        dynamic_partitions_store: DynamicPartitionsStore | None = None,
    ) -> UpstreamPartitionsResult:
        """Return the hours that overlap the downstream partitions, and which of these hours do not exist."""
        with partition_loading_context(current_time, dynamic_partitions_store):
            _require_windows(downstream_partitions_def)
            hourly = _hours_of(upstream_partitions_def)
            first_s, end_s = _bounds(hourly)
            needed = [_whole_hours(span) for span in _spans(downstream_partitions_subset)]
            there = [(max(begin, first_s), min(end, end_s)) for begin, end in needed]
            outside = [(begin, min(end, first_s)) for begin, end in needed]
            outside += [(max(begin, end_s), end) for begin, end in needed]
            return UpstreamPartitionsResult(
                partitions_subset=_subset(hourly, there),
                required_but_nonexistent_subset=_subset(hourly, () if self._allow_nonexistent else outside),
            )

    def get_downstream_partitions_for_partitions(
        self,
        upstream_partitions_subset: PartitionsSubset,
        upstream_partitions_def: dg.PartitionsDefinition,
        downstream_partitions_def: dg.PartitionsDefinition,
        current_time: datetime | None = None,
        dynamic_partitions_store: DynamicPartitionsStore | None = None,
    ) -> PartitionsSubset:
        """Return the existing partitions that overlap the hours and whose own hours are all over."""
        with partition_loading_context(current_time, dynamic_partitions_store):
            windows = _require_windows(downstream_partitions_def)
            _, end_s = _bounds(_hours_of(upstream_partitions_def))
            first_s, last_end_s = _bounds(windows)
            touched = [
                _partitions_over(windows, (max(begin, first_s), min(end, last_end_s)))
                for begin, end in _spans(upstream_partitions_subset)
                if begin < last_end_s and end > first_s
            ]
            over = (_cut(windows, span, end_s) for span in touched)
            return _subset(windows, [(max(begin, first_s), min(end, last_end_s)) for begin, end in over])

    @property
    def description(self) -> str:
        """The description of the mapping in the UI."""
        return "Each downstream partition depends on all whole hours, in UTC, that overlap it."


# The daemon reads a code location without this package: there it is the class that it extends.
send_as(OverlappingHours, dg.AllPartitionMapping)


def _require_windows(partitions: dg.PartitionsDefinition | None) -> dg.TimeWindowPartitionsDefinition:
    if not isinstance(partitions, dg.TimeWindowPartitionsDefinition):
        raise dg.DagsterInvalidDefinitionError(
            f"OverlappingHours is for an asset with partitions of time, and this one has {partitions or 'none'}: give "
            "it hourly, daily, weekly or monthly partitions"
        )
    return partitions


def _hours_of(partitions: dg.PartitionsDefinition) -> dg.TimeWindowPartitionsDefinition:
    if not (
        isinstance(partitions, dg.TimeWindowPartitionsDefinition)
        and partitions.is_basic_hourly
        and partitions.timezone == "UTC"
    ):
        raise dg.DagsterInvalidDefinitionError(
            f"OverlappingHours maps to hours in UTC, as a sink has them, and the upstream asset has {partitions}"
        )
    return partitions


def _bounds(partitions: dg.TimeWindowPartitionsDefinition) -> Span:
    """Return the span of the partitions that exist now; an empty one if there are none."""
    first, last = partitions.get_first_partition_window(), partitions.get_last_partition_window()
    start_s = partitions.start.timestamp()
    return (first.start.timestamp(), last.end.timestamp()) if first and last else (start_s, start_s)


def _spans(subset: PartitionsSubset | None) -> Iterator[Span]:
    if isinstance(subset, AllPartitionsSubset):
        subset = TimeWindowPartitionsSubset.from_all_partitions_subset(subset)
    assert isinstance(subset, TimeWindowPartitionsSubset)
    for window in subset.included_time_windows:
        yield window.start.timestamp(), window.end.timestamp()


def _whole_hours(span: Span) -> Span:
    return span[0] // _HOUR_S * _HOUR_S, -(-span[1] // _HOUR_S) * _HOUR_S


def _partitions_over(partitions: dg.TimeWindowPartitionsDefinition, span: Span) -> Span:
    """Return the span of the partitions that overlap a span that begins and ends where partitions exist."""
    first = partitions.get_partition_key_for_timestamp(span[0])
    last = partitions.get_partition_key_for_timestamp(span[1], end_closed=True)
    return (
        partitions.start_time_for_partition_key(first).timestamp(),
        partitions.end_time_for_partition_key(last).timestamp(),
    )


def _cut(partitions: dg.TimeWindowPartitionsDefinition, span: Span, hours_end_s: float) -> Span:
    """Leave out the last partitions of a span, if hours of them do not exist yet."""
    begin, end = span
    while begin < end and _whole_hours(span)[1] > hours_end_s:
        last = partitions.get_partition_key_for_timestamp(end, end_closed=True)
        end = partitions.start_time_for_partition_key(last).timestamp()
        span = begin, end
    return span


def _subset(partitions: dg.TimeWindowPartitionsDefinition, spans: Iterable[Span]) -> TimeWindowPartitionsSubset:
    merged: list[Span] = []
    for begin, end in sorted(span for span in spans if span[0] < span[1]):
        if merged and begin <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((begin, end))
    return TimeWindowPartitionsSubset(
        partitions, num_partitions=None, included_time_windows=[_window(span) for span in merged]
    )


def _window(span: Span) -> dg.TimeWindow:
    begin, end = (datetime.fromtimestamp(moment, timezone.utc) for moment in span)
    return dg.TimeWindow(begin, end)
