"""Metrics of every sink and topic, of which offsets and the newest tiles are read, never messages."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Protocol, TypeVar

from s3lake import hours
from s3lake.errors import DataLossError, S3LakeError, TransientError
from s3lake.index.commit.sealing import Sealing
from s3lake.index.plan import due
from s3lake.index.plan.tile import Tile, find_landed_offsets
from s3lake.source.offsets import Lag

if TYPE_CHECKING:
    from s3lake.config.model import Sink
    from s3lake.index.commit.topic_index import TopicIndex
    from s3lake.source.offsets import Offsets

A = TypeVar("A")
_log = logging.getLogger(__name__)
TILES = 3
"""The newest tiles of each topic that a scrape reads."""


@dataclass(frozen=True)
class TopicProgress:
    """How far a topic is, by the index.

    Attributes:
        reached: the end of what is landed of each topic-partition.
        tiles: the newest tiles, the newest first.
        incomplete: hours that are over and not complete: of `tiles`, or after them.
        sealed: the last hour up to which all are sealed; None if there is none.
        unsealed: hours that are over and after `sealed`.
    """

    reached: dict[int, int] = field(default_factory=dict)
    tiles: tuple[Tile, ...] = ()
    incomplete: int = 0
    sealed: str | None = None
    unsealed: int = 0

    @property
    def newest(self) -> Tile | None:
        """The newest tile."""
        return self.tiles[0] if self.tiles else None

    @property
    def complete(self) -> Tile | None:
        """The newest tile that is complete."""
        return next((tile for tile in self.tiles if tile.complete), None)

    @property
    def last_commit(self) -> tuple[int, int] | None:
        """When the last commit was made and how long it took, both in milliseconds."""
        commits = [(tile.sums.landed_ms, tile.took_ms) for tile in self.tiles if tile.commits]
        return max(commits, default=None)


@dataclass(frozen=True)
class Measured:
    """One look at a sink and topic: a part that did not answer is None, and `errors` has the reason."""

    progress: TopicProgress | None
    waiting: Lag | None
    errors: dict[str, S3LakeError]


def read_progress(target: LandedTopic, limit: int = TILES) -> TopicProgress:
    """Read how far a topic is, from its `limit` newest tiles. Raise S3LakeError if the store does not answer."""
    now_ms, grace_ms = target.clock(), int(target.sink.close_grace * 1000)
    last_over = hours.shift(hours.key_of_ms(now_ms - grace_ms), -1)
    stored, start = target.index.head(), target.sink.start
    if stored is None:
        missing = _count_hours(start, last_over)
        return TopicProgress(incomplete=missing, unsealed=missing)
    head = stored[0]
    tiles = tuple(islice(target.index.newest(head), limit))
    sealed = Sealing(target.index, head).watermark(start)
    first = hours.shift(head.hours[-1][1], 1) if head.hours else start
    begin = max(start, head.since or start)
    return TopicProgress(
        reached=find_landed_offsets(tiles),
        tiles=tiles,
        incomplete=_count_hours(first, last_over)
        + sum(not tile.complete and due.is_hour_over(tile.hour, now_ms, grace_ms) for tile in tiles),
        sealed=sealed,
        unsealed=_count_hours(hours.shift(sealed, 1) if sealed else begin, last_over),
    )


def _count_hours(first: str, last: str) -> int:
    return hours.count([(first, last)]) if first <= last else 0


def read_waiting(target: LandedTopic, progress: TopicProgress) -> Lag:
    """Read what Kafka has beyond what is landed. Raise S3LakeError if it does not answer, or the topic was deleted."""
    sink = target.sink
    begin_ms = 0 if sink.from_ == "earliest" else hours.start_ms(sink.start)
    waiting = target.offsets.lag(target.topic, progress.reached, begin_ms=begin_ms, now_ms=target.clock())
    if not waiting.ends and (progress.reached or sink.missing_topic == "fail"):
        raise DataLossError(f"topic {target.topic!r} does not exist in Kafka")
    return waiting


class LandedTopic(Protocol):
    """A sink and topic, with all that metrics read of it: `land.topic.topic_sink.TopicSink` is one."""

    @property
    def sink(self) -> Sink:
        """The sink."""

    @property
    def topic(self) -> str:
        """The topic."""

    @property
    def index(self) -> TopicIndex:
        """The index of the topic in the sink's bucket."""

    @property
    def offsets(self) -> Offsets:
        """The questions to the topic's source."""

    @property
    def clock(self) -> Callable[[], int]:
        """Gives epoch milliseconds."""

    @property
    def requests(self) -> Counter[str]:
        """S3 requests so far, by operation."""


class Looks:
    """Looks at sinks and topics side by side. A part that does not answer is not asked again for each topic."""

    def __init__(self) -> None:
        self._failed: dict[tuple[str, str], S3LakeError] = {}

    def measure(self, target: LandedTopic, limit: int = TILES) -> Measured:
        """Look at a sink and topic; see `read_progress` for `limit`."""
        errors: dict[str, S3LakeError] = {}
        progress = self._ask("s3", target.sink.bucket, partial(read_progress, target, limit), errors)
        # Kafka is asked also if S3 does not answer, to report whether it is up.
        waiting = self._ask("kafka", "", partial(read_waiting, target, progress or TopicProgress()), errors)
        return Measured(progress, None if progress is None else waiting, errors)

    def _ask(self, part: str, place: str, question: Callable[[], A], errors: dict[str, S3LakeError]) -> A | None:
        failed = self._failed.get((part, place))
        if failed is not None:
            errors[part] = failed
            return None
        try:
            return question()
        except S3LakeError as error:
            if isinstance(error, TransientError):
                self._failed[part, place] = error
            _log.warning("%s: %s", part, error)
            errors[part] = error
            return None
