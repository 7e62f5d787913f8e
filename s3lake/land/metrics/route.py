"""What is measured of one sink and topic: a few requests to S3 and one question to Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from s3lake import hours
from s3lake.commit.sealing import Sealing
from s3lake.errors import DataLossError, S3LakeError
from s3lake.plan import due
from s3lake.plan.reached import reached
from s3lake.plan.tile import Tile
from s3lake.source.offsets import Waiting

if TYPE_CHECKING:
    from s3lake.commit.index import TopicHead
    from s3lake.land.landing import Landing


@dataclass(frozen=True)
class Progress:
    """What the index says of a topic.

    Attributes:
        reached: how far it is landed, per topic-partition.
        newest: the newest tile; None where there is none.
        complete: the newest tile that was seen to be complete; None where none was.
        incomplete: hours whose time and grace are over and that are not complete, those without a tile yet included.
        sealed: the last hour such that all up to it are sealed, as it was noted last; None where none was.
        unread: tiles that this process has not looked at: it reads a few each time, the newest first.
        read: the tiles that were read this time.
    """

    reached: dict[int, int] = field(default_factory=dict)
    newest: Tile | None = None
    complete: Tile | None = None
    incomplete: int = 0
    sealed: str | None = None
    unread: int = 0
    read: tuple[Tile, ...] = ()

    def count_dead_letters(self, first: str) -> int:
        """Return how many records were refused in the hours of `read` from `first` on."""
        sums = [tile.sums for tile in self.read if tile.hour >= first]
        return sum(0 if each is msgspec.UNSET else each.dead for each in sums)


@dataclass
class Route:
    """One sink and topic, and what was seen of its hours before.

    Attributes:
        landing: the sink, the topic, and what reaches them.
        tiles: how many tiles are read at most each time.
        asking: the part that is being asked, `kafka` or `s3`.
    """

    landing: Landing
    tiles: int = 3
    asking: str = "s3"
    _complete: list[hours.Range] = field(default_factory=list, init=False, repr=False)
    _latest: Tile | None = field(default=None, init=False, repr=False)  # of those that are complete
    _open: dict[str, Tile] = field(default_factory=dict, init=False, repr=False)  # as they were when they were read
    _now: list[Tile] = field(default_factory=list, init=False, repr=False)  # read this time

    def progress(self) -> Progress:
        """What the index says now.

        Raises:
            S3LakeError: the store did not answer, or refused.
        """
        now, grace_ms = self.landing.clock(), int(self.landing.sink.close_grace * 1000)
        found = self.landing.index.head()
        if found is None:
            return Progress(incomplete=self._unopened(None, now, grace_ms))
        head = found[0]
        newest = self._read(head)
        late = sum(due.past(hour, now, grace_ms) for hour in self._open)
        last = head.hours[-1][1] if head.hours else None
        unread = hours.count(hours.without(head.hours, self._complete)) - len(self._open)
        return Progress(
            reached=reached(newest),
            newest=newest[0] if newest else None,
            complete=self._latest,
            incomplete=late + self._unopened(last, now, grace_ms),
            sealed=Sealing(self.landing.index, head).watermark(self.landing.sink.start),
            unread=max(0, unread),
            read=tuple(self._now),
        )

    def waiting(self, progress: Progress) -> Waiting:
        """What Kafka has beyond what is landed.

        Raises:
            S3LakeError: the brokers did not answer, or refused, or the topic was deleted.
        """
        sink, offsets = self.landing.sink, self.landing.offsets
        begin_ms = 0 if sink.from_ == "earliest" else hours.start_ms(sink.start)
        waiting = offsets.waiting(self.landing.topic, progress.reached, begin_ms=begin_ms, now_ms=self.landing.clock())
        if not waiting.ends and (progress.reached or sink.missing_topic == "fail"):
            raise DataLossError(f"topic {self.landing.topic!r} does not exist in Kafka")
        return waiting

    def _read(self, head: TopicHead) -> list[Tile]:
        """The newest tiles in a row, as far as they are known; those that were not complete are read again in turn."""
        rest = hours.without(head.hours, self._complete)
        self._open = {hour: tile for hour, tile in self._open.items() if hours.in_ranges(hour, rest)}
        unread = hours.without(rest, hours.ranges(self._open))
        chosen = [*hours.latest(head.hours, 1), *reversed(hours.latest(unread, self.tiles)), *list(self._open)]
        self._now = []
        for hour in list(dict.fromkeys(chosen))[: self.tiles]:
            self._open.pop(hour, None)
            found = self.landing.index.tile(hour)
            self._now += found[:1] if found else ()
            if found is None:  # announced and not written yet, or gone with the objects of its time
                self._complete = self._complete if hour == head.hours[-1][1] else self._known(hour)
            elif found[0].complete:
                self._complete = self._known(hour)
                if self._latest is None or self._latest.hour <= hour:
                    self._latest = found[0]
            else:
                self._open[hour] = found[0]  # the last to be read again
        return list(self._row(head))

    def _row(self, head: TopicHead) -> Iterator[Tile]:
        for hour in reversed(hours.latest(head.hours, hours.count(head.hours))):
            if hour < (head.since or hour):
                return
            if hour in self._open:
                yield self._open[hour]
            elif self._latest is not None and self._latest.hour == hour:
                yield self._latest
                return
            elif hour != head.hours[-1][1]:
                return

    def _known(self, hour: str) -> list[hours.Range]:
        return hours.united([*self._complete, (hour, hour)])

    def _unopened(self, last: str | None, now_ms: int, grace_ms: int) -> int:
        """Hours that are over and have no tile yet."""
        first = self.landing.sink.start if last is None else hours.shift(last, 1)
        final = hours.shift(hours.key_of_ms(now_ms - grace_ms), -1)
        return hours.count([(first, final)]) if first <= final else 0


@dataclass(frozen=True)
class Measured:
    """One look at a route: what is None could not be told; `errors` says which part did not answer, and why."""

    progress: Progress | None
    waiting: Waiting | None
    errors: dict[str, S3LakeError]

    @property
    def last_commit_s(self) -> float | None:
        """How long the last commit of those tiles took."""
        tiles = (self.progress.newest, self.progress.complete) if self.progress else ()
        found = [
            (tile.sums.landed_ms, tile.took_ms)
            for tile in tiles
            if tile and tile.sums is not msgspec.UNSET and tile.took_ms is not msgspec.UNSET
        ]
        return max(found)[1] / 1000 if found else None

    @property
    def last_commit_ms(self) -> int | None:
        """When the last commit of the tiles looked at was made."""
        if self.progress is None:
            return None
        tiles = (self.progress.newest, self.progress.complete)
        return (
            max((tile.sums.landed_ms for tile in tiles if tile and tile.sums is not msgspec.UNSET), default=0) or None
        )
