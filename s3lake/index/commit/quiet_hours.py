"""Hours without a record: close the last hour and open the next one, with one read and two writes.

These are the steps of `close_hour` and `open_hour`, in their order, with three requests instead of nine (docs/design/
commit.md, quiet hours). A tile that `topic.json` announces can be created by any process, so nothing has to create it
while its hour has no record: it is created when it is closed, as it is then.
"""

from dataclasses import dataclass

from s3lake import hours
from s3lake.index.commit.documents import TABLE, TopicHead, Watermark
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.index.plan import sealed
from s3lake.index.plan import tile as tiles
from s3lake.index.plan.tile import NOTHING, Tile
from s3lake.source.offsets import TopicOffsets


@dataclass(frozen=True)
class QuietHour:
    """An hour without a record that was closed, and the hour after it, which was opened.

    Attributes:
        closed: the tile of the hour.
        opened: the tile of the next hour, which `topic.json` announces. It may not be created yet.
        head: `topic.json`, with both.
        etag: the ETag of `topic.json`.
    """

    closed: Tile
    opened: Tile
    head: TopicHead
    etag: str

    @property
    def is_sealed(self) -> bool:
        """True if the watermark of `topic.json` shows that the hour is sealed."""
        return self.head.sealed is not None and self.head.sealed.upto == self.closed.hour


def find_last_tile(head: TopicHead) -> Tile | None:
    """Return the tile of the last hour as it was announced. Return None if that hour cannot be closed as a quiet one.

    This is the case for tables, if the topic was created again, and if an earlier hour was opened after the last one.
    """
    tile = head.new
    if tile is None or tile.closed or not head.topic_id or head.topic_id == TABLE:
        return None
    is_last = head.hours[-1][1] == tile.hour and (head.since is None or head.since <= tile.hour)
    return tile if is_last else None


def close_quiet_hour(
    index: TopicIndex, head: TopicHead, etag: str, kafka: TopicOffsets, *, start: str
) -> QuietHour | None:
    """Close the last hour of a topic, which has no record, and open the hour after it.

    Return None if the hour may have a record, or if another process was first. Then `open_hour` and
    `begin_micro_batch` do the work, whatever was written here.

    Args:
        index: the index of the sink and topic.
        head: `topic.json`.
        etag: the ETag of `topic.json`.
        kafka: the offsets around the last hour, which were asked after `topic.json` was read.
        start: the first hour of the sink.
    """
    tile = find_last_tile(head)
    if tile is None or not _has_nothing_new(head, tile, kafka):
        return None
    closed = tiles.close_tile(tile, kafka)
    is_new = index.create(index.tile_key(tile.hour), closed)
    if not is_new and not _close_created_tile(index, tile, closed):
        return None
    following = hours.shift(tile.hour, 1)
    # It begins where the closed hour ends, and no record is stamped later: the offsets around that hour are enough.
    opened = tiles.open_tile(following, kafka, closed, None, earliest=False, recreated=head.since is not None)
    changed = head.revise(
        hours=tuple(hours.merge_ranges([*head.hours, (following, following)])),
        new=opened,
        # The tile is as it was announced, next to an hour that was sealed then, so its first offsets need no look.
        sealed=_move_watermark(head, closed, opened, start) if is_new else head.sealed,
    )
    changed_etag = index.swap(index.head_key, changed, etag)
    return QuietHour(closed, opened, changed, changed_etag) if changed_etag is not None else None


def _has_nothing_new(head: TopicHead, tile: Tile, kafka: TopicOffsets) -> bool:
    """Return whether the log ends where the tile starts, under the same leaders, without a record of a later hour.

    Otherwise records may have been landed, wait to be landed, or be stamped ahead, or a log may be truncated.
    """
    if kafka.topic_id != head.topic_id or not tile.partitions.keys() <= kafka.partitions.keys():
        return False
    return all(
        log.log_end == tile.partitions.get(partition, NOTHING).start
        and log.hour_end == log.log_end
        and log.next_stamp_ms is None
        and log.epoch in (None, tile.epochs.get(partition, log.epoch))
        for partition, log in kafka.partitions.items()
    )


def _close_created_tile(index: TopicIndex, announced: Tile, closed: Tile) -> bool:
    """Close a tile that was created before. Return False if it is not as announced, or another process changes it."""
    stored = index.tile(announced.hour)
    return stored is not None and stored[0] == announced and index.swap_tile(closed, stored[1]) is not None


def _move_watermark(head: TopicHead, closed: Tile, opened: Tile, start: str) -> Watermark | None:
    """Return the watermark with the closed hour, if the hours before it are sealed."""
    since = max(start, head.since or start)
    before = head.sealed.upto if head.sealed is not None and head.sealed.since == since else None
    follows = closed.hour == since or before == hours.shift(closed.hour, -1)
    if follows and closed.complete and sealed.is_seamless(closed, opened) and sealed.is_explained(closed, closed.sums):
        return Watermark(since, closed.hour)
    return head.sealed
