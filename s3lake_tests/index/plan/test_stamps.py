"""Timestamps outside of the hour that a record is from."""

import pytest

from s3lake import hours
from s3lake.index.plan import stamps
from s3lake.index.plan import tile as tiles
from s3lake.index.plan.tile import Tile, TileRange
from s3lake.source.offsets import LogRange, TopicOffsets

FIVE, SIX = "2026-11-20T05", "2026-11-20T06"
NOW_MS = hours.end_ms(FIVE)
IN_2199_MS = 7_226_582_400_000


def kafka(*logs: LogRange) -> TopicOffsets:
    return TopicOffsets("topic-1", dict(enumerate(logs)))


def log(stamp_ms: int | None) -> LogRange:
    """A log whose first record after the hour is offset 10, with this timestamp."""
    return LogRange(0, 90, 5, 10, next_stamp_ms=stamp_ms)


@pytest.mark.parametrize(
    ("stamp_ms", "ahead"),
    [(None, False), (NOW_MS, False), (NOW_MS + 3_600_000, False), (NOW_MS + 3_600_001, True), (IN_2199_MS, True)],
)
def test_a_stamp_is_ahead_if_it_is_more_than_an_hour_later_than_the_clock(stamp_ms: int | None, ahead: bool) -> None:
    assert stamps.find_stamps_ahead(kafka(log(None), log(stamp_ms)), NOW_MS) == ({1: (10, stamp_ms)} if ahead else {})


def test_a_tile_notes_what_is_stamped_ahead_when_it_is_opened_and_closed() -> None:
    noted = {0: (10, IN_2199_MS)}
    opened = tiles.open_tile(FIVE, kafka(log(IN_2199_MS)), None, None, earliest=False, stamped_ahead=noted)
    assert opened.stamped_ahead == noted
    tile = Tile(FIVE, {0: TileRange(5, 7), 1: TileRange(5, 7)}, rev=3, stamped_ahead={0: (10, IN_2199_MS)})
    shut = tiles.close_tile(tile, kafka(log(None), log(None)), {1: (10, IN_2199_MS)})
    assert (shut.rev, shut.stamped_ahead) == (4, {0: (10, IN_2199_MS), 1: (10, IN_2199_MS)})


def test_an_open_tile_changes_once_when_a_stamp_ahead_is_seen_first() -> None:
    tile, snapshot = Tile(FIVE, {0: TileRange(5, 7)}, rev=3), kafka(log(IN_2199_MS))
    noted = tiles.add_partitions(tile, snapshot, {0: (10, IN_2199_MS)})
    assert (noted.rev, noted.stamped_ahead) == (4, {0: (10, IN_2199_MS)})
    assert tiles.add_partitions(noted, snapshot, {0: (10, IN_2199_MS)}) is noted


def test_only_the_first_tile_counts_the_offsets_before_it() -> None:
    snapshot = kafka(LogRange(3, 90, 40, 70), LogRange(0, 9, 0, 9), LogRange(0, 9, 1, 9))
    assert tiles.open_tile(FIVE, snapshot, None, None, earliest=False).before_start == {0: 37, 2: 1}

    snapshot, before = kafka(LogRange(3, 90, 40, 70)), Tile(FIVE, {0: TileRange(10, 20, 20)})
    assert tiles.open_tile(FIVE, snapshot, None, None, earliest=True).before_start == {}
    assert tiles.open_tile(SIX, snapshot, before, None, earliest=False).before_start == {}


def test_a_warning_names_offset_topic_partition_and_date() -> None:
    (warning,) = stamps.find_notices(Tile(FIVE, {0: TileRange(5, 7)}, stamped_ahead={0: (10, IN_2199_MS)}))
    assert warning == (
        "offset 10 of partition 0 is stamped 2199-01-01T00:00:00Z: later hours cannot be told apart, so they may be "
        "empty and their records in another hour; correct the producer's clock or unit, and let the topic refuse such "
        "records (message.timestamp.after.max.ms)"
    )


def test_a_warning_names_how_many_offsets_are_before_the_start() -> None:
    (warning,) = stamps.find_notices(Tile(FIVE, {0: TileRange(5, 7)}, before_start={0: 1_000, 2: 5}))
    assert warning == (
        f"1,005 offsets are before {FIVE}, where landing starts, and are not landed (1,000 of partition 0, 5 of "
        "partition 2): their records are stamped earlier, or by a producer that writes another unit than milliseconds, "
        "or Kafka has no records there, because it compacted them or a transaction was aborted. A sink with an earlier "
        "start, or with from: earliest, lands the records that there are"
    )


@pytest.mark.parametrize(
    ("epoch_ms", "text"),
    [
        (1_795_478_431_999, "2026-11-24T00:00:31Z"),
        (1_795_478_431_000_000, "58866-06-12T08:36:40Z"),
    ],
)
def test_a_stamp_is_a_date_and_a_time(epoch_ms: int, text: str) -> None:
    assert stamps.format_stamp(epoch_ms) == text
