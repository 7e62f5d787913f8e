"""Verify: Kafka and the committed objects compared record by record, without the code that landed them.

What a value should look like in a file is worked out here, by code that the writer does not use; what is shared is
listed in `s3lake_tests/test_boundaries.py`. A commit is judged by what its manifest says that it was written with.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from s3lake import hours
from s3lake.commit.documents import TABLE, TopicHead
from s3lake.commit.index import TopicIndex
from s3lake.errors import ConfigurationError, TransientError
from s3lake.plan.stamps import describe_before_start, describe_stamps_ahead, find_stamps_ahead
from s3lake.plan.tile import Tile
from s3lake.source.offsets import TopicOffsets
from s3lake.source.opening import open_source
from s3lake.verify.comparison import VerifyContext
from s3lake.verify.hour import Advance, compare_hour
from s3lake.verify.index_checks import check_edges
from s3lake.verify.kafka_log import KafkaLog
from s3lake.verify.log import Log, LogStartMovedError, SourceLog
from s3lake.verify.not_landed import Grid, find_not_landed
from s3lake.verify.report import (
    Difference,
    Kind,
    NotChecked,
    NotLanded,
    PartitionReport,
    Report,
    build_report,
    combine_reports,
)

if TYPE_CHECKING:
    from s3lake.sink import Config, Sink

__all__ = [
    "Difference",
    "Grid",
    "Kind",
    "Log",
    "NotChecked",
    "NotLanded",
    "PartitionReport",
    "Report",
    "combine_reports",
    "open_log",
    "verify_against",
]

_PATIENCE_S = 30.0
_TRIES = 5


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


def verify_against(sink: Sink, index: TopicIndex, log: Log, grid: Grid, advance: Advance = lambda _: None) -> Report:
    """Compare what a sink has landed of a topic with its log, and name what it should have landed and has not.

    Args:
        sink: the sink, as configured now.
        index: of this sink and topic.
        log: of the topic; it is not closed.
        grid: the hours, and the clock.
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
        [*_hours(context, head, [hour for hour in listed if hour in grid], grid.now_ms, advance), behind]
    )


def _hours(
    context: VerifyContext, head: TopicHead, selected: list[str], now_ms: int, advance: Advance
) -> Iterator[Report]:
    index, before, replaced = context.index, None, False
    for hour in selected:
        stored = index.tile(hour)
        if stored is None:
            if not (head.new and head.new.hour == hour):  # else its creation is under way
                yield _report_one(index.topic, hour, "index", "the tile is gone from the index")
            before = None
            continue
        tile = stored[0]
        if before is not None and head.leads_on(before, tile):
            edges = check_edges(before, tile)
            yield build_report(
                differences=[Difference(what, index.topic, hour, number, text) for what, number, text in edges]
            )
        kafka = context.log.snapshot(index.topic, hour) if _is_present(head, hour) and not replaced else None
        if kafka is not None and kafka.topic_id != head.topic_id:
            yield _report_one(index.topic, hour, "kafka", _other_topic(head, kafka))
            kafka, replaced = None, True
        if kafka is not None:
            yield build_report(notices=_find_notices(head, tile, kafka, now_ms))
        before, report = _compare_until_stable(context, tile, kafka, advance)
        yield report


def _compare_until_stable(
    context: VerifyContext, tile: Tile, kafka: TopicOffsets | None, advance: Advance
) -> tuple[Tile, Report]:
    """Compare a tile, again when Kafka expired some of it meanwhile, or a rewrite took its objects away."""
    index = context.index
    for _ in range(_TRIES):
        try:
            checked, differences = compare_hour(context, tile, kafka, advance)
        except LogStartMovedError:
            kafka = context.log.snapshot(index.topic, tile.hour)
            continue
        now = index.tile(tile.hour) if differences else None
        if now is None or set(tile.commits) <= set(now[0].commits):
            return tile, build_report(checked, differences)
        tile = now[0]
    raise TransientError(f"{index.topic} {tile.hour} changed {_TRIES} times while it was compared; try again")


def _find_notices(head: TopicHead, tile: Tile, kafka: TopicOffsets, now_ms: int) -> list[str]:
    """Return what Kafka's timestamps keep out of the hours that they should be in, as sentences."""
    before_start: dict[int, int] = {}
    if head.since is None and tile.hour == head.hours[0][0]:
        lows = {partition: log.log_start for partition, log in kafka.partitions.items()}
        starts = {partition: span.start for partition, span in tile.partitions.items() if partition in lows}
        before_start = {number: start - lows[number] for number, start in starts.items() if start > lows[number]}
    stamped_ahead = {**tile.stamped_ahead, **find_stamps_ahead(kafka, now_ms)}
    return [*describe_before_start(tile.hour, before_start), *describe_stamps_ahead(stamped_ahead)]


def _is_present(head: TopicHead, hour: str) -> bool:
    """Return whether an hour is of the topic that Kafka has now, and not of one that was deleted and given up."""
    return head.since is None or hour >= head.since


def _other_topic(head: TopicHead, kafka: TopicOffsets) -> str:
    now = f"{kafka.topic_id}: it was created again" if kafka.exists else "no such topic"
    return f"the index was cut from topic id {head.topic_id}, Kafka has {now}; from this hour on nothing can be checked"


def _report_one(topic: str, hour: str, what: Kind, text: str) -> Report:
    return build_report(differences=[Difference(what, topic, hour, None, text)])
