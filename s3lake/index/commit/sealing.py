"""Sealing: which hours of a topic the index calls sealed, and up to which hour all of them are.

`topic.json` notes how far that is, because it would cost too much to read all tiles each time. It is a note of what
tiles contain. A process that announces an hour moves it on, and never back: an hour that is being rewritten was sealed.
"""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from s3lake import hours
from s3lake.index.commit.documents import TopicHead, Watermark
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.index.plan import sealed
from s3lake.index.plan.tile import Tile

WATERMARK_TILES = 48
"""That one look moves the watermark on over; a long history takes a few."""


@dataclass
class Sealing:
    """The hours of one topic, each tile read once.

    Attributes:
        head: `topic.json`.
        etag: its ETag, which is only needed to move the watermark.
        compared: the hour whose first offsets were compared with the end of the hour before already.
    """

    index: TopicIndex
    head: TopicHead
    etag: str = ""
    compared: str | None = None
    _tiles: dict[str, Tile | None] = field(default_factory=dict)

    def with_tiles(self, tiles: Iterable[Tile]) -> "Sealing":
        """Return the same sealing with tiles that need not be read."""
        return replace(self, _tiles={**self._tiles, **{tile.hour: tile for tile in tiles}})

    def tile(self, hour: str) -> Tile | None:
        """The tile of `hour`, also if it is only announced; None if there is none."""
        if hour not in self._tiles:
            is_listed = hours.in_ranges(hour, self.head.hours)
            self._tiles[hour] = self.index.announced_tile(self.head, hour) if is_listed else None
        return self._tiles[hour]

    def flaw(self, hour: str) -> str | None:
        """Return why `hour` is not sealed. Return None if it is sealed."""
        tile = self.tile(hour)
        if tile is None or not tile.complete:
            return "it is not complete"
        for earlier, following in self.neighbours(tile):
            if not sealed.is_seamless(earlier, following):
                return f"the edges of {earlier.hour} and {following.hour} do not meet"
        return None if sealed.is_explained(tile, tile.sums) else "its files do not explain its offsets"

    def neighbours(self, tile: Tile) -> Iterator[tuple[Tile, Tile]]:
        """Yield the tile with the one before and with the one after it, if offsets of the two continue each other."""
        before = hours.before(tile.hour, self.head.hours) if tile.hour != self.compared else None
        after = hours.after(tile.hour, self.head.hours)
        for hour in (before, after):
            other = self.tile(hour) if hour else None
            if other is not None:
                earlier, following = (other, tile) if other.hour < tile.hour else (tile, other)
                if self.head.leads_on(earlier, following):
                    yield earlier, following

    def upto(self, start: str) -> str | None:
        """Compute from the tiles the last hour up to which all since `start` are sealed. Return None if none is."""
        since = self._since(start)
        return self._find_last(since, hours.shift(since, -1), None)

    def watermark(self, start: str) -> str | None:
        """Return the last sealed hour as it was noted. Return None if none was noted."""
        noted = self.head.sealed
        return noted.upto if noted is not None and noted.since == self._since(start) else None

    def move(self, start: str) -> str | None:
        """Move the watermark to the last hour that is sealed now. Return that hour, or None if no hour is sealed."""
        since, noted = self._since(start), self.watermark(start)
        last = self._find_last(since, noted or hours.shift(since, -1), WATERMARK_TILES)
        if last is not None and last != noted:
            # Lost: another process has moved it or opened an hour, and the next one moves it on.
            head = self.head.revise(sealed=Watermark(since, last))
            etag = self.index.swap(self.index.head_key, head, self.etag)
            if etag is not None:
                self.head, self.etag = head, etag
        return last

    def _since(self, start: str) -> str:
        """Return the first hour that counts: a connector landed the earlier ones, or they are of a deleted topic."""
        return max(start, self.head.since or start)

    def _find_last(self, since: str, upto: str, most: int | None) -> str | None:
        last = self.head.hours[-1][1] if self.head.hours else upto
        following = hours.span(hours.shift(upto, 1), last)
        for hour in itertools.islice(following, most):
            if self.flaw(hour) is not None:
                break
            upto = hour
        return upto if upto >= since else None
