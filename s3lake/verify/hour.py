"""One hour: the index against itself, then its commits' parts of every topic-partition, in one pass over Kafka."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import chain

from s3lake import hours
from s3lake.plan.tile import Tile
from s3lake.source.offsets import LogRange, TopicOffsets
from s3lake.verify import index_checks
from s3lake.verify.comparison import Comparison, VerifyContext
from s3lake.verify.report import Difference, Kind, NotChecked, PartitionReport, add_counts

Advance = Callable[[int], None]
"""Called with how many more offsets are done."""

_NO_LOG = LogRange(0, 0, 0, 0)


def compare_hour(
    context: VerifyContext, tile: Tile, kafka: TopicOffsets | None, advance: Advance
) -> tuple[list[PartitionReport], list[Difference]]:
    """Compare a tile with Kafka, up to what is committed; `kafka` is None if the topic was deleted since."""
    index = context.index
    differences: list[Difference] = []

    def report(what: Kind, partition: int | None, text: str) -> None:
        differences.append(Difference(what, index.topic, tile.hour, partition, text))

    manifests, replaces = [], index_checks.replaces_files(context.sink)
    for commit in tile.commits:
        manifest = index.manifest(tile.hour, commit)
        if manifest is None:
            report("index", None, f"the manifest of commit {commit} is gone")
        else:
            index_checks.check_manifest(manifest, tile, index.topic, report, replaces=replaces)
            manifests.append(manifest)
    if len(manifests) == len(tile.commits):
        for text in index_checks.find_unlisted(index.store, tile.hour, manifests, is_alone=tile.hour != context.since):
            report("unlisted", None, text)
    parts: dict[int, list[Comparison]] = {partition: [] for partition in sorted(tile.partitions)}
    for commit_range in index_checks.find_commit_ranges(tile, manifests, report):
        log = kafka.partitions.get(commit_range.partition, _NO_LOG) if kafka else None
        part = Comparison(context, commit_range, log, hours.start_ms(tile.hour), report)
        part.read_objects()
        parts.setdefault(commit_range.partition, []).append(part)
    _read_kafka(context, parts, advance)
    return [_compare_partition(tile.hour, partition, own) for partition, own in parts.items()], differences


def _read_kafka(context: VerifyContext, parts: dict[int, list[Comparison]], advance: Advance) -> None:
    ranges = {partition: span for partition, own in parts.items() if (span := _find_span(own))}
    positions = {partition: start for partition, (start, _) in ranges.items()}
    needs = frozenset().union(*(part.needs for partition in ranges for part in parts[partition]))
    for records in context.log.read(context.index.topic, ranges, needs) if ranges else ():
        for part in parts[records.partition]:
            own = records.in_range(*part.window)
            if own.offsets:
                part.add_records(own)
        reached = records.offsets[-1] + 1
        advance(reached - positions[records.partition])
        positions[records.partition] = reached
    for partition, (_, end) in ranges.items():
        advance(end - positions[partition])


def _find_span(parts: Iterable[Comparison]) -> tuple[int, int] | None:
    windows = [part.window for part in parts if part.window[0] < part.window[1]]
    return (windows[0][0], windows[-1][1]) if windows else None


def _compare_partition(hour: str, partition: int, parts: Sequence[Comparison]) -> PartitionReport:
    counts = add_counts([part.compare() for part in parts])
    not_checked = _join(chain.from_iterable(part.not_checked for part in parts))
    return PartitionReport(hour=hour, partition=partition, not_checkable=not_checked, **counts)


def _join(parts: Iterable[NotChecked]) -> tuple[NotChecked, ...]:
    """Join neighbouring offsets that are not compared for the same reason."""
    joined: list[NotChecked] = []
    for part in parts:
        before = joined[-1] if joined else None
        if before is not None and replace(before, first=before.end, end=part.end) == part:
            joined[-1] = replace(before, end=part.end)
        else:
            joined.append(part)
    return tuple(joined)
