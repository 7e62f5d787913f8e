"""Hours of one topic of a sink that are due, why, and when: from Kafka's ends, the index and the sensor's memory."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property
from typing import TYPE_CHECKING

from s3lake import hours
from s3lake.config.model import Sink
from s3lake.index.plan import due
from s3lake.index.plan.tile import Sums
from s3lake.orchestration.catalog import Catalog
from s3lake.orchestration.sensor_memory import RouteMemory

if TYPE_CHECKING:
    from s3lake.index.commit.documents import TopicHead
    from s3lake.index.plan.tile import Tile
    from s3lake.land.topic.topic_sink import TopicSink

INTERVAL_S = 30
TILES_PER_TICK = 240
SECOND_LOOKS_PER_TICK = 1


@dataclass(frozen=True)
class TopicView:
    """A topic of a sink, as a tick has read it.

    Attributes:
        head: None if nothing is landed yet.
        etag: the ETag of the head.
        tiles: the tiles of the hours that may be due, and of the newest hour.
        ends: end offset per topic-partition in Kafka.
    """

    target: "TopicSink"
    head: "TopicHead | None"
    etag: str
    tiles: "Sequence[Tile]"
    ends: Mapping[int, int]
    memory: RouteMemory
    now_ms: int

    @cached_property
    def open_tile(self) -> "Tile | None":
        """The tile of the newest hour if that hour is open."""
        latest = self.head.hours[-1][1] if self.head and self.head.hours else None
        return next((tile for tile in self.tiles if tile.hour == latest and not tile.closed), None)

    @property
    def sums(self) -> Sums:
        """The sums of the open tile."""
        return self.open_tile.sums if self.open_tile else Sums()


@dataclass(frozen=True)
class HoursDue:
    """Hours that are to be landed now.

    Attributes:
        why: None if there are no such hours.
        lag: offsets that wait in the tiles that were read; None if there are no tiles.
        waiting: what waits, and until when, as a sentence.
    """

    hours: Set[str]
    why: due.DueReason | None
    lag: int | None
    waiting: str


def hours_due(catalog: Catalog, view: TopicView) -> HoursDue:
    """Return what the index and Kafka's ends make due."""
    sink, memory, now_ms, tiles = view.target.sink, view.memory, view.now_ms, view.tiles
    policy = due.Policy(sink.start, int(sink.close_grace * 1000), sink.flush.count, sink.flush.size)
    lag = sum(sum(due.count_backlog(tile, view.ends).values()) for tile in tiles) if tiles else None
    unswept = {tile.hour for tile in tiles if tile.landed and tile.pending is None and tile.garbage}
    if now_ms - (memory.swept_ms if sink.table is not None else 0) < hours.HOUR_MS:
        tiles = [tile for tile in tiles if tile.hour not in unswept]  # without its catalog a run could not sweep them
    elif unswept:
        memory.swept_ms = now_ms
    latest = view.head.hours[-1][1] if view.head and view.head.hours else None
    over = due.list_unopened_hours(latest, policy, now_ms, sink.hours_per_run)
    chosen = {*due.list_incomplete_hours(tiles, now_ms, policy.grace_ms), *over}
    why, due_ms = due.HOUR_OVER if over else due.INCOMPLETE if chosen else None, None
    if view.open_tile is not None and view.open_tile.hour not in chosen:
        flush, due_ms = _flush_reason(view, view.open_tile, policy)
        if flush is not None:
            chosen.add(view.open_tile.hour)
            why = why or flush
    waiting = "1 offset waits" if lag == 1 else f"{lag or 'no'} offsets wait"
    waiting += f"; {at_the_latest(due_ms)}" if due_ms is not None else ""
    within = catalog.within(sink, view.target.topic, chosen)
    return HoursDue(within, why if within else None, lag, waiting)


def _flush_reason(view: TopicView, tile: "Tile", policy: due.Policy) -> tuple[due.DueReason | None, int | None]:
    """Return why the open tile is due now, and when what waits in it is due at the latest."""
    target, now_ms = view.target, view.now_ms
    end_ms = hours.end_ms(tile.hour)
    if due.is_hour_over(tile.hour, now_ms, policy.grace_ms - closing_soon_ms(target.sink)):
        return None, end_ms + policy.grace_ms
    behind = due.count_backlog(tile, view.ends)
    if behind and now_ms >= end_ms:  # open for late records; others wait for the next hour's tile
        following = target.offsets.find_offset_since(target.topic, end_ms)
        behind = due.count_backlog(
            tile, {number: min(end, following.get(number, end)) for number, end in view.ends.items()}
        )
    if not behind:
        return None, None
    since_ms, interval_ms = view.memory.waiting_since_ms or now_ms, max_wait_ms(target.sink)
    # What came after the last request waits since then, however long its run took to land what was there.
    age = due.Age(now_ms, interval_ms, min(tile.sums.landed_ms, since_ms), since_ms)
    # If the times of landing and of seeing decide, Kafka need not be asked for the records' own.
    since = {} if due.clock_decides(age) else target.offsets.find_offset_since(target.topic, now_ms - interval_ms)
    waiting = due.Waiting(
        records=sum(behind.values()),
        bytes=int(sum(behind.values()) * mean_size(tile.sums)),
        partitions=len(behind),
        overdue=due.is_overdue(tile, {partition: since.get(partition, 0) for partition in behind}, age),
    )
    return due.find_flush_reason(waiting, policy), min(end_ms + policy.grace_ms, since_ms + interval_ms)


def mean_size(sums: Sums) -> float:
    """Return the mean size of a record as stored, in bytes; 0 if nothing is known."""
    return sums.bytes / sums.records if sums.records else 0.0


def read_due_tiles(target: "TopicSink", head: "TopicHead", memory: RouteMemory, *, again: bool = True) -> "list[Tile]":
    """Read the tiles that are not known to be complete, the newest of a long list; the last one; and some in turn.

    A tile that is missing, for example because a lifecycle rule expires the index with the objects, is left out.
    """
    rest = hours.without(head.hours, memory.complete)
    complete = hours.without(head.hours, rest)
    chosen = {*hours.latest(rest, TILES_PER_TICK), *hours.latest(head.hours, 1)}
    if again:
        second = hours.earliest(_later(complete, memory.looked_again), SECOND_LOOKS_PER_TICK)
        memory.looked_again = second[-1] if second else ""
        chosen.update(second)
    tiles = [tile for hour in sorted(chosen) if (tile := target.index.announced_tile(head, hour))]
    incomplete = hours.ranges(tile.hour for tile in tiles if not tile.complete)
    memory.complete = hours.without(hours.merge_ranges([*complete, *hours.ranges(chosen)]), incomplete)
    return tiles


def closing_soon_ms(sink: Sink) -> int:
    """Return how long before an hour is closed nothing of it is requested: the closing run lands what is left."""
    return int(min(sink.close_grace, max(INTERVAL_S, sink.flush.interval / 3)) * 1000)


def max_wait_ms(sink: Sink) -> int:
    """Return how long records wait before they are due: with the next tick it would exceed `flush.interval`."""
    return max(0, int((sink.flush.interval - INTERVAL_S) * 1000))


def at_the_latest(due_ms: int) -> str:
    """Return the phrase for when a tick will request what is due at `due_ms`."""
    moment = datetime.fromtimestamp(due_ms / 1000 + INTERVAL_S, timezone.utc)
    return f"due at {moment:%H:%M:%S} UTC at the latest"


def _later(among: "Sequence[hours.Range]", hour: str) -> "Sequence[hours.Range]":
    return hours.clip_ranges(hours.shift(hour, 1), among[-1][1], among) if hour and among else among
