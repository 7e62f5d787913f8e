"""Verify: Kafka and the committed objects compared record by record, without the code that landed them.

What a value should look like in a file is worked out here, by code that the writer does not use; what is shared is
listed in `s3lake_tests/test_boundaries.py`. A commit is judged by the settings that its manifest records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from s3lake import hours
from s3lake.errors import ConfigurationError, TransientError
from s3lake.index.commit.documents import TABLE, TopicHead
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.index.plan.hour_grid import Grid
from s3lake.index.plan.stamps import describe_before_start, describe_stamps_ahead, find_stamps_ahead
from s3lake.index.plan.tile import Tile
from s3lake.lake.verify import index_checks
from s3lake.lake.verify.comparison import Comparison, VerifyContext
from s3lake.lake.verify.differences import (
    Difference,
    DifferenceType,
    NotChecked,
    NotLanded,
    PartitionReport,
    VerifyReport,
    add_counts,
    build_report,
    combine_reports,
)
from s3lake.lake.verify.kafka_log import KafkaLog
from s3lake.lake.verify.log import Log, LogStartMovedError, SourceLog
from s3lake.lake.verify.not_landed import find_not_landed
from s3lake.lake.verify.sum_checks import check_sums
from s3lake.source.offsets import LogRange, TopicOffsets
from s3lake.source.sources import open_source

if TYPE_CHECKING:
    from s3lake.config.model import Config, Sink

__all__ = [
    "Advance",
    "Difference",
    "DifferenceType",
    "Log",
    "NotChecked",
    "NotLanded",
    "PartitionReport",
    "VerifyReport",
    "combine_reports",
    "open_log",
    "verify_against",
]

Advance = Callable[[int], None]
"""Called with how many more offsets are done."""

_PATIENCE_S = 30.0
_TRIES = 5
_NO_LOG = LogRange(0, 0, 0, 0)


@contextmanager
def open_log(config: Config) -> Iterator[Log]:
    """Open the log of a configuration's source until the end of the block.

    Kafka is read by code of verify's own. Of another source there is only the reader that tasks use.
    """
    if config.kafka is not None:
        with KafkaLog(config.kafka.bootstrap_servers, config.kafka.properties) as log:
            yield log
    else:
        yield SourceLog(open_source(config, _PATIENCE_S))


def verify_against(
    sink: Sink, index: TopicIndex, log: Log, grid: Grid, advance: Advance = lambda _: None
) -> VerifyReport:
    """Compare what a sink has landed of a topic with its log, and name what it should have landed and has not.

    Args:
        log: the topic's log; it is not closed.
        advance: called with how many more of the committed offsets are compared.

    Raises:
        SourceUnavailableError: the source did not answer, or gave no record for too long.
        StoreUnavailableError: the store did not answer.
        DataLossError: a document of the index cannot be read.
    """
    stored = index.head()
    head = stored[0] if stored else TopicHead()
    if head.topic_id == TABLE:
        raise ConfigurationError(
            f"{index.topic} in sink {sink.name} holds tables that an asset handed in: there is nothing in Kafka to "
            "compare them with"
        )
    listed = hours.expand(head.hours)
    behind = build_report(unlanded=find_not_landed(sink, index, log, head, grid))
    context = VerifyContext(sink, index, log, head.since)
    return combine_reports(
        [*_compare_hours(context, head, [hour for hour in listed if hour in grid], grid.now_ms, advance), behind]
    )


def _compare_hours(
    context: VerifyContext, head: TopicHead, selected: list[str], now_ms: int, advance: Advance
) -> Iterator[VerifyReport]:
    index, before, replaced = context.index, None, False
    for hour, text in index_checks.check_head(head):
        yield _report_difference(index.topic, hour, "index", text)
    for hour in selected:
        tile = index.announced_tile(head, hour)
        if tile is None:
            yield _report_difference(index.topic, hour, "index", "the tile is missing from the index")
            before = None
            continue
        for text in index_checks.check_tile(tile, head, hour):
            yield _report_difference(index.topic, hour, "index", text)
        if before is not None and head.leads_on(before, tile):
            edges = index_checks.check_edges(before, tile)
            yield build_report(
                differences=[Difference(what, index.topic, hour, number, text) for what, number, text in edges]
            )
        # Of the topic that Kafka has now, and not of one that was deleted and given up.
        is_present = head.since is None or hour >= head.since
        kafka = context.log.snapshot(index.topic, hour) if is_present and not replaced else None
        if kafka is not None and kafka.topic_id != head.topic_id:
            now = f"{kafka.topic_id}: it was created again" if kafka.exists else "no such topic"
            text = f"the index was cut from topic id {head.topic_id}, Kafka has {now}"
            text += "; from this hour on nothing can be checked"
            yield _report_difference(index.topic, hour, "kafka", text)
            kafka, replaced = None, True
        if kafka is not None:
            yield build_report(notices=_find_notices(head, tile, kafka, now_ms))
        before, report = _compare_until_stable(context, tile, kafka, advance)
        yield report


def _compare_until_stable(
    context: VerifyContext, tile: Tile, kafka: TopicOffsets | None, advance: Advance
) -> tuple[Tile, VerifyReport]:
    """Compare a tile, again when Kafka expired some of it meanwhile, or a rewrite took its objects away."""
    index = context.index
    # Not a retry of tenacity: each try compares another tile, or asks for newer offsets first.
    for _ in range(_TRIES):
        try:
            checked, differences = _compare_hour(context, tile, kafka, advance)
        except LogStartMovedError:
            kafka = context.log.snapshot(index.topic, tile.hour)
            continue
        now = index.tile(tile.hour) if differences else None
        if now is None or set(tile.commits) <= set(now[0].commits):
            return tile, build_report(checked, differences)
        tile = now[0]
    raise TransientError(f"{index.topic} {tile.hour} changed {_TRIES} times while it was compared; try again")


def _compare_hour(
    context: VerifyContext, tile: Tile, kafka: TopicOffsets | None, advance: Advance
) -> tuple[list[PartitionReport], list[Difference]]:
    """Compare a tile with Kafka, up to what is committed; `kafka` is None if the topic was deleted since."""
    index = context.index
    differences: list[Difference] = []

    def report(type: DifferenceType, detail: str, partition: int | None = None) -> None:
        differences.append(Difference(type, index.topic, tile.hour, partition, detail))

    manifests, replaces = [], index_checks.replaces_files(context.sink)
    for commit in tile.commits:
        manifest = index.manifest(tile.hour, commit)
        if manifest is None:
            report("index", f"the manifest of commit {commit} is missing")
        else:
            index_checks.check_manifest(manifest, commit, tile, index.topic, report, replaces=replaces)
            manifests.append(manifest)
    index_checks.check_expired(tile, manifests, report)
    if len(manifests) == len(tile.commits):
        check_sums(tile.sums, manifests, report)
        for text in index_checks.find_unlisted(index.store, tile.hour, manifests, is_alone=tile.hour != context.since):
            report("unlisted", text)
    parts: dict[int, list[Comparison]] = {partition: [] for partition in sorted(tile.partitions)}
    for commit_range in index_checks.find_commit_ranges(tile, manifests, report):
        log = kafka.partitions.get(commit_range.partition, _NO_LOG) if kafka else None
        own_report = partial(report, partition=commit_range.partition)
        part = Comparison(context, commit_range, log, hours.start_ms(tile.hour), own_report)
        part.read_objects()
        parts.setdefault(commit_range.partition, []).append(part)
    _read_kafka(context, parts, advance)
    checked = []
    for partition, own in parts.items():
        counts = add_counts([part.compare() for part in own])
        not_checked = _join_neighbours(chain.from_iterable(part.not_checked for part in own))
        checked.append(PartitionReport(hour=tile.hour, partition=partition, not_checkable=not_checked, **counts))
    return checked, differences


def _read_kafka(context: VerifyContext, parts: dict[int, list[Comparison]], advance: Advance) -> None:
    ranges: dict[int, tuple[int, int]] = {}
    for partition, own in parts.items():
        windows = [part.window for part in own if part.window[0] < part.window[1]]
        if windows:
            ranges[partition] = windows[0][0], windows[-1][1]
    positions = {partition: start for partition, (start, _) in ranges.items()}
    needs = frozenset().union(*(part.needs for partition in ranges for part in parts[partition]))
    for records in context.log.read(context.index.topic, ranges, needs) if ranges else ():
        for part in parts[records.partition]:
            in_window = records.select_range(*part.window)
            if in_window.offsets:
                part.add_records(in_window)
        reached = records.offsets[-1] + 1
        advance(reached - positions[records.partition])
        positions[records.partition] = reached
    for partition, (_, end) in ranges.items():
        advance(end - positions[partition])


def _join_neighbours(parts: Iterable[NotChecked]) -> tuple[NotChecked, ...]:
    """Join neighbouring offsets that are not compared for the same reason."""
    joined: list[NotChecked] = []
    for part in parts:
        before = joined[-1] if joined else None
        if before is not None and replace(before, first=before.end, end=part.end) == part:
            joined[-1] = replace(before, end=part.end)
        else:
            joined.append(part)
    return tuple(joined)


def _find_notices(head: TopicHead, tile: Tile, kafka: TopicOffsets, now_ms: int) -> list[str]:
    """Return what Kafka's timestamps keep out of the hours that they should be in, as sentences."""
    before_start: dict[int, int] = {}
    if head.since is None and tile.hour == head.hours[0][0]:
        lows = {partition: log.log_start for partition, log in kafka.partitions.items()}
        starts = {partition: span.start for partition, span in tile.partitions.items() if partition in lows}
        before_start = {number: start - lows[number] for number, start in starts.items() if start > lows[number]}
    stamped_ahead = {**tile.stamped_ahead, **find_stamps_ahead(kafka, now_ms)}
    return [*describe_before_start(tile.hour, before_start), *describe_stamps_ahead(stamped_ahead)]


def _report_difference(topic: str, hour: str, what: DifferenceType, text: str) -> VerifyReport:
    return build_report(differences=[Difference(what, topic, hour, None, text)])
