"""Reached: how far a topic is landed, as consumers count, one offset per topic-partition."""

from collections.abc import Iterable

from s3lake.plan.tile import Tile


def reached(newest_first: Iterable[Tile]) -> dict[int, int]:
    """Per topic-partition the end of the furthest interval that is landed: nothing that is landed is at or above it.

    Hours are landed in order, so everything below is landed as well, down to the sink's start, but for hours that
    somebody passed over; that an earlier one of them is landed later does not move it. Where nothing is landed it is
    where the oldest tile begins.

    Args:
        newest_first: the topic's tiles; no more of them are read than it takes.
    """
    reached_offsets: dict[int, int] = {}
    starts: dict[int, int] = {}
    for tile in newest_first:
        for partition, span in tile.partitions.items():
            starts[partition] = span.start
            if partition not in reached_offsets and (tile.landed or span.committed > span.start):
                reached_offsets[partition] = span.committed
        if tile.landed or starts.keys() <= reached_offsets.keys():
            break
    return dict(sorted({**starts, **reached_offsets}.items()))
