"""What should be landed and is not: hours without a tile, tiles that are not complete, the rest of the open hour.

It is computed from Kafka's answers to timestamps, not from what planning would do: a pipeline that stopped, or never
ran, leaves no trace in the index.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

from s3lake import hours
from s3lake.index.commit.documents import TopicHead
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.index.plan.hour_grid import Grid
from s3lake.index.plan.tile import NOTHING, Tile, TileRange
from s3lake.lake.verify.differences import NotLanded
from s3lake.text.quantities import format_count

if TYPE_CHECKING:
    from s3lake.config.model import Sink
    from s3lake.lake.verify.log import Log

Offsets = Mapping[int, int]
"""An offset per topic-partition."""
Intervals = dict[int, tuple[int, int]]
"""`[first, end)` per topic-partition that has any."""

_NO_TOPIC = "Kafka has no such topic"


def find_not_landed(sink: Sink, index: TopicIndex, log: Log, head: TopicHead, grid: Grid) -> Iterator[NotLanded]:
    """Yield everything of the grid that should be landed by now and is not, in order."""
    check = _HourCheck(sink, index, log, head, grid)
    rest = [one for hour in check.listed if hour in grid and (one := check.check_tile(hour))]
    yield from sorted([*rest, *check.find_missing_hours()], key=attrgetter("first"))


class _HourCheck:
    """The check of one topic. Kafka's answers are kept, so that each is requested once."""

    def __init__(self, sink: Sink, index: TopicIndex, log: Log, head: TopicHead, grid: Grid) -> None:
        self.listed = hours.expand(head.hours)
        self._sink, self._index, self._log, self._head, self._grid = sink, index, log, head, grid
        now = log.snapshot(index.topic, grid.present)
        self._exists = now.exists
        self._low = {partition: one.log_start for partition, one in now.partitions.items()}
        self._end = {partition: one.log_end for partition, one in now.partitions.items()}
        self._edges: dict[str, Offsets] = {}
        # The offsets of a topic that was deleted have no relation to the present one's.
        self._other = bool(head.topic_id) and now.topic_id != head.topic_id

    def check_tile(self, hour: str) -> NotLanded | None:
        """Return what a tile lacks; None if it is complete, or of a topic that was given up."""
        tile = self._read_tile(hour)
        if tile is None or tile.complete or (self._head.since is not None and hour < self._head.since):
            return None
        rest = {} if self._other else self._find_rest(tile)
        if not rest and not tile.pending and self._grid.is_current(hour):
            return None
        return self._make_not_landed(hour, hour, rest, _describe_state(tile))

    def find_missing_hours(self) -> Iterator[NotLanded]:
        """Yield hours of the grid without a tile: each that has offsets, and the others as ranges."""
        have = set(self.listed)
        for begin, last in hours.ranges(hour for hour in self._grid.due_hours(self._head.since) if hour not in have):
            gap = list(hours.span(begin, last))
            empty: list[str] = []
            for hour, intervals in zip(gap, self._split_gap(gap), strict=True):
                if not intervals:
                    empty += [] if self._grid.is_current(hour) else [hour]
                    continue
                yield from self._make_empty(empty)
                empty = []
                yield self._make_not_landed(hour, hour, intervals, "no tile")
            yield from self._make_empty(empty)

    def _make_empty(self, gap: Sequence[str]) -> Iterator[NotLanded]:
        if gap:
            yield self._make_not_landed(gap[0], gap[-1], {}, "no tile" if self._exists else _NO_TOPIC)

    def _make_not_landed(self, first: str, last: str, intervals: Intervals, state: str) -> NotLanded:
        expired = sum(
            max(0, min(end, self._low.get(partition, 0)) - start) for partition, (start, end) in intervals.items()
        )
        return NotLanded(self._index.topic, first, last, intervals, state, expired, self._grid.is_current(first))

    def _find_rest(self, tile: Tile) -> Intervals:
        spans: dict[int, TileRange] = dict(tile.partitions)
        if not tile.closed:
            spans = {partition: TileRange(0, 0) for partition in self._end} | spans
        ends = self._find_ends(Tile(tile.hour, spans))
        return _make_intervals({partition: span.committed for partition, span in spans.items()}, ends)

    def _find_ends(self, tile: Tile) -> Offsets:
        """Return where a tile ends; an open one ends where its hour does, never before what is committed."""
        if all(span.end is not None for span in tile.partitions.values()):
            return {partition: span.end or 0 for partition, span in tile.partitions.items()}
        edge = self._find_edge(hours.shift(tile.hour, 1))
        return {
            partition: max(span.committed, edge.get(partition, 0)) if span.end is None else span.end
            for partition, span in tile.partitions.items()
        }

    def _split_gap(self, gap: Sequence[str]) -> list[Intervals]:
        """Return the offsets of consecutive hours without a tile, as landing would cut them between its neighbours."""
        at = bisect.bisect(self.listed, gap[0])
        before = self._find_neighbour(self.listed[at - 1 : at] if at else ())
        after = self._find_neighbour(self.listed[at : at + 1])
        floor = self._find_ends(before) if before else {}
        ceiling = (
            {partition: after.partitions.get(partition, NOTHING).start for partition in self._end} if after else {}
        )
        inside = {
            partition: (floor.get(partition, 0), ceiling.get(partition, end)) for partition, end in self._end.items()
        }

        def clamp(edge: Offsets) -> Offsets:
            return {one: max(low, min(edge.get(one, low), high)) for one, (low, high) in inside.items()}

        begin, end = clamp(self._find_edge(gap[0])), clamp(self._find_edge(hours.shift(gap[-1], 1)))
        if before is not None and hours.shift(before.hour, 1) == gap[0]:
            begin = {one: low for one, (low, _) in inside.items()}
        elif before is None and self._sink.from_ == "earliest" and gap[0] == self._sink.start:
            begin = clamp(self._low)
        if after is not None and hours.shift(gap[-1], 1) == after.hour:
            end = {one: max(high, begin[one]) for one, (_, high) in inside.items()}

        def split(hours_left: Sequence[str], begin: Offsets, end: Offsets) -> list[Intervals]:
            if len(hours_left) == 1 or begin == end:  # edges never go back: there is nothing between equal ones
                return [_make_intervals(begin, end), *({} for _ in hours_left[1:])]
            half = len(hours_left) // 2
            middle = clamp(self._find_edge(hours_left[half]))
            return [*split(hours_left[:half], begin, middle), *split(hours_left[half:], middle, end)]

        return split(gap, begin, end)

    def _find_neighbour(self, listed: Sequence[str]) -> Tile | None:
        """Return the tile next to a gap; None if it was cut from another topic than the present one."""
        of_present = [hour for hour in listed if not self._other and (self._head.since or "") <= hour]
        return self._read_tile(of_present[0]) if of_present else None

    def _find_edge(self, hour: str) -> Offsets:
        """Return the first offset of `hour` or later; offsets ahead of the clock belong to the present."""
        if hour > self._grid.present:
            return self._end
        if hour not in self._edges:
            self._edges[hour] = self._log.find_offset_since(self._index.topic, hours.start_ms(hour))
        return self._edges[hour]

    def _read_tile(self, hour: str) -> Tile | None:
        stored = self._index.tile(hour)
        if stored is None:  # unless it is being created it is missing, which is a difference of its own
            return self._head.new if self._head.new is not None and self._head.new.hour == hour else None
        return stored[0]


def _make_intervals(begin: Offsets, end: Offsets) -> Intervals:
    return {one: (begin[one], end[one]) for one in sorted(begin) if end.get(one, 0) > begin[one]}


def _describe_state(tile: Tile) -> str:
    if tile.pending is not None:
        return f"commit {tile.pending} is pending"
    if not tile.landed:
        return "closed, not complete" if tile.closed else "open"
    return f"{format_count(len(tile.garbage), 'commits')} still to be swept"
