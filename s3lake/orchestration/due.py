"""Hours of one topic of a sink that are due, why, and when: from Kafka's ends, the index and the sensor's memory."""

import hashlib
import json
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from s3lake import hours
from s3lake.orchestration.catalogue import Catalogue
from s3lake.orchestration.sensor_memory import RouteMemory
from s3lake.plan import due
from s3lake.plan.tile import Sums
from s3lake.sink import Sink

if TYPE_CHECKING:
    from s3lake.commit.documents import TopicHead
    from s3lake.land.landing import Landing
    from s3lake.plan.tile import Tile

INTERVAL_S = 30
TILES_PER_TICK = 240
SECOND_LOOKS_PER_TICK = 1


@dataclass(frozen=True)
class HoursDue:
    """Hours that are to be landed now.

    Attributes:
        why: None if there are no such hours.
        lag: offsets that wait in the tiles that were read; None if there are no tiles.
        waiting: what waits, and until when, as a sentence.
    """

    hours: Set[str]
    why: due.Reason | None
    lag: int | None
    waiting: str


def hours_due(
    catalogue: Catalogue,
    landing: "Landing",
    head: "TopicHead | None",
    tiles: "Sequence[Tile]",
    ends: Mapping[int, int],
    memory: RouteMemory,
    now_ms: int,
    sums: Sums,
) -> HoursDue:
    """Return what the index and Kafka's ends make due; `sums` are those of the open tile."""
    sink = landing.sink
    policy = due.Policy(sink.start, int(sink.close_grace * 1000), sink.flush.count, sink.flush.size)
    latest = head.hours[-1][1] if head and head.hours else None
    lag = sum(sum(due.backlog(tile, ends).values()) for tile in tiles) if tiles else None
    unswept = {tile.hour for tile in tiles if tile.landed and tile.pending is None and tile.garbage}
    if now_ms - (memory.swept_ms if sink.table is not None else 0) < hours.HOUR_MS:
        tiles = [tile for tile in tiles if tile.hour not in unswept]  # without its catalog a run could not sweep them
    elif unswept:
        memory.swept_ms = now_ms
    over = due.unopened(latest, policy, now_ms, sink.hours_per_run)
    found = {*due.incomplete(tiles, now_ms, policy.grace_ms), *over}
    why, due_ms = due.HOUR_OVER if over else due.INCOMPLETE if found else None, None
    last = next((tile for tile in tiles if tile.hour == latest), None)
    if last is not None and not last.closed and last.hour not in found:
        flush, due_ms = flush_reason(landing, last, ends, policy, memory, now_ms, sums)
        if flush is not None:
            found.add(last.hour)
            why = why or flush
    waiting = f"{lag or 'no'} offsets wait"
    within = catalogue.within(sink, landing.topic, found)
    return HoursDue(
        within, why if within else None, lag, waiting if due_ms is None else f"{waiting}; {at_the_latest(due_ms)}"
    )


def mean_size(sums: Sums) -> float:
    """Return the mean size of a record as stored, in bytes; 0 if nothing is known."""
    return sums.bytes / sums.records if sums.records else 0.0


def flush_reason(
    landing: "Landing",
    tile: "Tile",
    ends: Mapping[int, int],
    policy: due.Policy,
    memory: RouteMemory,
    now_ms: int,
    sums: Sums,
) -> tuple[due.Reason | None, int | None]:
    """Return why the open tile is due now, and when what waits in it is due at the latest."""
    closing_ms, sink = hours.end_ms(tile.hour) + policy.grace_ms, landing.sink
    if due.past(tile.hour, now_ms, policy.grace_ms - closing_soon_ms(sink)):
        return None, closing_ms
    behind = due.backlog(tile, ends)
    if behind and now_ms >= hours.end_ms(tile.hour):  # open for late records; others wait for the next hour's tile
        following = landing.offsets.first_since(landing.topic, hours.end_ms(tile.hour))
        behind = due.backlog(tile, {number: min(end, following.get(number, end)) for number, end in ends.items()})
    if not behind:
        return None, None
    since_ms, interval_ms = memory.waiting_since_ms or now_ms, max_wait_ms(sink)
    age = due.Age(now_ms, interval_ms, sums.landed_ms, since_ms)
    # If the times of landing and of seeing decide, Kafka need not be asked for the records' own.
    since = {} if due.decided(age) else landing.offsets.first_since(landing.topic, now_ms - interval_ms)
    waiting = due.Waiting(
        records=sum(behind.values()),
        bytes=int(sum(behind.values()) * mean_size(sums)),
        partitions=len(behind),
        overdue=due.overdue(tile, {partition: since.get(partition, 0) for partition in behind}, age),
    )
    return due.flush_due(waiting, policy), min(closing_ms, max(sums.landed_ms, since_ms) + interval_ms)


def read_tiles(landing: "Landing", head: "TopicHead", memory: RouteMemory, *, again: bool = True) -> "list[Tile]":
    """Read the tiles that are not known to be complete, the newest of a long list; the last one; and some in turn.

    A tile that is missing, for example because a lifecycle rule expires the index with the objects, is left out.
    """
    rest = hours.without(head.hours, memory.complete)
    known = hours.without(head.hours, rest)
    chosen = {*hours.latest(rest, TILES_PER_TICK), *hours.latest(head.hours, 1)}
    if again:
        second = hours.earliest(_later(known, memory.looked_again), SECOND_LOOKS_PER_TICK)
        memory.looked_again = second[-1] if second else ""
        chosen.update(second)
    tiles = [tile for hour in sorted(chosen) if (tile := _tile(landing, head, hour))]
    incomplete = hours.ranges(tile.hour for tile in tiles if not tile.complete)
    memory.complete = hours.without(hours.united([*known, *hours.ranges(chosen)]), incomplete)
    return tiles


def state_digest(landing: "Landing", first: str, last: str, *, tiles: "Sequence[Tile]") -> str:
    """Return a digest of the configuration and of what the index has of these hours: each landing changes it."""
    revisions = sorted((tile.hour, tile.rev) for tile in tiles if first <= tile.hour <= last)
    return digest(json.dumps([landing.sink.model_dump_json(by_alias=True), revisions]))


def digest(text: str) -> str:
    """Return a short digest of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def closing_soon_ms(sink: Sink) -> int:
    """Return how long before an hour is closed nothing of it is requested: the closing run lands what is left."""
    return int(min(sink.close_grace, max(INTERVAL_S, sink.flush.interval / 3)) * 1000)


def max_wait_ms(sink: Sink) -> int:
    """Return how long records wait before they are due: with the next tick it would exceed `flush.interval`."""
    return max(0, int((sink.flush.interval - INTERVAL_S) * 1000))


def at_the_latest(due_ms: int) -> str:
    """Return a phrase that says when a tick will request what is due at `due_ms`."""
    moment = datetime.fromtimestamp(due_ms / 1000 + INTERVAL_S, timezone.utc)
    return f"due at {moment:%H:%M:%S} UTC at the latest"


def _tile(landing: "Landing", head: "TopicHead", hour: str) -> "Tile | None":
    stored = landing.index.tile(hour)
    if stored is None and head.new is not None and head.new.hour == hour:
        return head.new  # announced and not written yet: its creator crashed, and the next run writes it
    return stored[0] if stored else None


def _later(among: "Sequence[hours.Range]", hour: str) -> "Sequence[hours.Range]":
    return hours.between(hours.shift(hour, 1), among[-1][1], among) if hour and among else among
