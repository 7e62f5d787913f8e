"""Tiles: the offsets of an hour. That chains of them overlap nowhere is I4 and I5 of `index/commit/invariants.py`."""

from collections.abc import Iterator
from typing import Any

import pytest

from s3lake.errors import DataLossError, KafkaUnavailableError
from s3lake.index.plan import tile as tiles
from s3lake.index.plan.tile import NOTHING, UNKNOWN_END, Tile, TileRange, find_landed_offsets
from s3lake.source.offsets import LogRange, TopicOffsets

FIVE, SIX, SEVEN, NINE = "2026-11-20T05", "2026-11-20T06", "2026-11-20T07", "2026-11-20T09"


def kafka(**ranges: tuple[int, int, int, int]) -> TopicOffsets:
    """A topic: `p0=(low, end, at, next)` and so on."""
    return TopicOffsets("topic-1", {int(name[1:]): LogRange(*ends) for name, ends in ranges.items()})


def opened(
    hour: str, snapshot: TopicOffsets, before: Tile | None = None, after: Tile | None = None, **how: Any
) -> Tile:
    return tiles.open_tile(hour, snapshot, before, after, **{"earliest": False, **how})


# -------------------------------------------------------------------------------------------------------------- opening

OPENED: dict[str, tuple[str, Tile | None, Tile | None, tuple[int, int, int, int], TileRange]] = {
    "the first begins at its hour's first record, and is open": (FIVE, None, None, (10, 90, 40, 70), TileRange(40, 40)),
    "the next hour begins where the one before ends, whatever the timestamps are": (
        *(SIX, Tile(FIVE, {0: TileRange(10, 30, 50)}), None, (0, 90, 60, 80), TileRange(50, 50)),
    ),
    "after a gap it begins at its own first record": (
        *(NINE, Tile(FIVE, {0: TileRange(10, 50, 50)}), None, (0, 90, 60, 80), TileRange(60, 60)),
    ),
    "after a gap it never begins before the end of the one before": (
        *(NINE, Tile(FIVE, {0: TileRange(10, 50, 50)}), None, (0, 90, 30, 80), TileRange(50, 50)),
    ),
    "just before another it ends where that begins": (
        *(FIVE, None, Tile(SIX, {0: TileRange(50, 60)}), (0, 90, 30, 40), TileRange(30, 30, 50)),
    ),
    "with a gap after it, it ends at the following hour's first record": (
        *(FIVE, None, Tile(NINE, {0: TileRange(50, 60)}), (0, 90, 30, 40), TileRange(30, 30, 40)),
    ),
    "it never reaches into a later one": (
        *(FIVE, None, Tile(NINE, {0: TileRange(50, 60)}), (0, 90, 60, 80), TileRange(50, 50, 50)),
    ),
    "between two adjacent ones it is what they leave": (
        *(
            SIX,
            Tile(FIVE, {0: TileRange(0, 20, 20)}),
            Tile(SEVEN, {0: TileRange(50, 60)}),
            (0, 90, 70, 80),
            TileRange(20, 20, 50),
        ),
    ),
    "a topic-partition that the one before does not name begins at 0": (
        *(SIX, Tile(FIVE, {}), None, (0, 9, 5, 7), TileRange(0, 0)),
    ),
    "a topic-partition that the one after does not name is empty": (
        *(FIVE, None, Tile(SIX, {}), (0, 9, 5, 7), TileRange(0, 0, 0)),
    ),
}


@pytest.mark.parametrize(("hour", "before", "after", "log", "span"), OPENED.values(), ids=OPENED)
def test_a_tile_is_opened_between_its_neighbours(
    hour: str, before: Tile | None, after: Tile | None, log: tuple[int, int, int, int], span: TileRange
):
    tile = opened(hour, kafka(p0=log), before, after)
    assert (tile.hour, tile.partitions) == (hour, {0: span})


def test_the_first_tile_begins_at_the_log_start_or_where_a_topic_partition_is_set_to_begin():
    log = (10, 90, 40, 70)
    tile = opened(FIVE, kafka(p0=log, p1=log, p2=(0, 90, 40, 70)), earliest=True, begins={0: 20, 1: 5})

    assert tile.partitions == {0: TileRange(20, 20), 1: TileRange(10, 10), 2: TileRange(0, 0)}
    after_another = opened(SIX, kafka(p0=(0, 90, 60, 80)), Tile(FIVE, {0: TileRange(10, 50, 50)}), begins={0: 70})
    assert after_another.partitions == {0: TileRange(50, 50)}


def test_a_tile_has_the_epochs_of_the_leaders_that_report_them():
    snapshot = TopicOffsets("topic-1", {0: LogRange(0, 9, 0, 9, epoch=4), 1: LogRange(0, 9, 0, 9)})

    assert opened(FIVE, snapshot).epochs == {0: 4}
    assert tiles.collect_epochs(snapshot, [0, 7]) == {0: 4}


def test_a_topic_partition_of_a_neighbour_that_kafka_leaves_out_is_requested_again():
    for neighbour in (
        {"before": Tile(FIVE, {1: TileRange(0, 20, 20)})},
        {"after": Tile(SEVEN, {1: TileRange(20, 20)})},
    ):
        with pytest.raises(KafkaUnavailableError, match="topic-partition 1 is in the index, and missing"):
            opened(SIX, kafka(p0=(0, 90, 30, 80)), **neighbour)


def test_names_that_are_burnt_beyond_a_tiles_end_are_burnt_in_the_next_one():
    before = Tile(FIVE, {0: TileRange(0, 5, 5), 1: TileRange(0, 5, 5)}, burnt={0: 7, 1: 5})

    assert opened(SIX, kafka(p0=(0, 9, 0, 9), p1=(0, 9, 0, 9)), before).burnt == {0: 7}
    assert opened(SIX, kafka(p0=(0, 9, 0, 9)), Tile(FIVE, {0: NOTHING})).burnt == {}


def test_names_are_burnt_up_to_where_the_last_attempt_had_read():
    assert tiles.is_burnt({0: 7}, {0: (6, 9), 1: (0, 3)})
    assert not tiles.is_burnt({0: 7}, {0: (7, 9), 1: (0, 3)})
    assert not tiles.is_burnt({}, {0: (0, 9)})


@pytest.mark.parametrize(
    ("burnt", "ends", "after"),
    [
        ({0: 7}, {0: 5, 1: 3}, {0: 7, 1: 3}),
        ({0: 0}, {1: 3}, {0: 0, 1: 3}),
        ({0: 5, 1: 2}, {1: 3}, {0: 5, 1: 3}),
        ({}, {0: 0}, {0: 0}),
    ],
)
def test_each_attempt_that_is_given_up_burns_more_names(
    burnt: dict[int, int], ends: dict[int, int], after: dict[int, int]
):
    assert tiles.extend_burnt(burnt, ends) == after


def test_an_unknown_end_becomes_the_present_log_end_in_the_next_tile():
    before = Tile(FIVE, {0: TileRange(0, 5, 5), 1: TileRange(0, 5, 5)}, burnt={0: UNKNOWN_END, 1: 7})

    assert opened(SIX, kafka(p0=(0, 9, 0, 9), p1=(0, 9, 0, 9)), before).burnt == {0: 9, 1: 7}
    assert opened(SIX, kafka(p0=(0, 9, 0, 9), p1=(0, 9, 0, 9)), before, recreated=True).burnt == before.burnt


def test_an_unknown_end_stays_unknown_if_kafka_does_not_name_its_topic_partition():
    before = Tile(FIVE, {0: TileRange(0, 5, 5)}, burnt={1: UNKNOWN_END})

    assert opened(SIX, kafka(p0=(0, 9, 0, 9)), before).burnt == {1: UNKNOWN_END}


def test_names_of_a_former_topic_are_burnt_up_to_the_end_of_its_last_tile():
    former = Tile(
        FIVE, {0: TileRange(0, 4, 9), 1: TileRange(0, 7), 2: TileRange(0, 9, 4), 3: TileRange(0, 3, 3)}, burnt={3: 8}
    )

    assert opened(SIX, kafka(p0=(0, 9, 0, 9)), former=former, earliest=True).burnt == {0: 9, 1: 7, 2: 9, 3: 8}


def test_an_open_tile_with_a_successor_is_not_an_index_of_s3lake():
    with pytest.raises(DataLossError, match=r"^a tile with a successor is open: the index was changed by hand or"):
        opened(SIX, kafka(p0=(0, 9, 0, 9)), Tile(FIVE, {0: TileRange(0, 0)}))


# -------------------------------------------------------------------------------------------------------------- closing


def test_a_tile_is_closed_at_the_following_hours_first_record_and_takes_in_new_topic_partitions():
    shut = tiles.close_tile(Tile(FIVE, {0: TileRange(10, 20)}, rev=3), kafka(p0=(0, 90, 10, 70), p1=(0, 9, 0, 4)))

    assert (shut.partitions, shut.rev) == ({0: TileRange(10, 20, 70), 1: TileRange(0, 0, 4)}, 4)
    assert (shut.closed, shut.landed) == (True, False)


def test_a_tile_is_never_closed_below_what_it_has_landed():
    shut = tiles.close_tile(Tile(FIVE, {0: TileRange(10, 80)}), kafka(p0=(0, 90, 10, 70)))

    assert (shut.partitions, shut.landed) == ({0: TileRange(10, 80, 80)}, True)


def test_a_topic_partition_that_kafka_leaves_out_is_not_cut_off():
    with pytest.raises(
        KafkaUnavailableError,
        match=r"^topic-partition 1 is in the index, and missing in what the brokers report of its topic now: "
        r"their metadata is out of date\. The next run asks again$",
    ):
        tiles.close_tile(Tile(FIVE, {0: TileRange(10, 20), 1: TileRange(0, 4)}), kafka(p0=(0, 90, 10, 70)))


def test_an_open_tile_takes_in_new_topic_partitions_from_0_and_changes_only_then():
    grown = tiles.add_partitions(Tile(FIVE, {0: TileRange(10, 20)}, rev=3), kafka(p0=(0, 90, 10, 70), p1=(2, 9, 5, 7)))

    assert (grown.partitions, grown.rev) == ({0: TileRange(10, 20), 1: TileRange(0, 0)}, 4)
    assert tiles.add_partitions(grown, kafka(p0=(0, 90, 10, 70))) is grown


def test_a_committed_offset_never_goes_back():
    tile = Tile(FIVE, {0: TileRange(10, 20), 1: TileRange(0, 5), 2: TileRange(0, 0)})

    assert tiles.advance_committed(tile, {0: 15, 1: 8}) == {
        0: TileRange(10, 20),
        1: TileRange(0, 8),
        2: TileRange(0, 0),
    }


def test_intervals_that_touch_or_overlap_are_one_within_their_topic_partition():
    intervals = [(0, 7, 9), (0, 5, 7), (5, 9, 12), (5, 6, 8), (6, 7, 8)]
    assert tiles.join_offset_ranges(intervals) == ((0, 5, 9), (5, 6, 8), (5, 9, 12), (6, 7, 8))


# --------------------------------------------------------------------------------------------------------------- states


@pytest.mark.parametrize(
    ("change", "complete"),
    [
        ({}, True),
        ({"pending": "c1"}, False),
        ({"garbage": ("c1",)}, False),
        ({"partitions": {0: TileRange(0, 4, 5)}}, False),
        ({"partitions": {0: TileRange(0, 5)}}, False),
        ({"partitions": {}}, False),
    ],
)
def test_a_tile_is_complete_if_no_writer_needs_to_come_back(change: dict[str, Any], complete: bool):
    assert Tile(FIVE, {0: TileRange(0, 5, 5)}).revise(**change).complete is complete


# ------------------------------------------------------------------------------------------- how far a topic is landed


def tile(hour: int, *spans: tuple[int, int, int | None]) -> Tile:
    return Tile(f"2026-01-05T{hour:02}", {number: TileRange(*span) for number, span in enumerate(spans)})


REACHED = {
    "the committed offset of the newest tile": ([tile(10, (50, 70, None)), tile(9, (0, 50, 50))], {0: 70}),
    "not that of tiles that are opened ahead of it": (
        [tile(11, (90, 90, None)), tile(10, (50, 70, 90)), tile(9, (0, 50, 50))],
        {0: 70},
    ),
    "whatever is landed later of an earlier hour": ([tile(10, (50, 70, None)), tile(5, (0, 20, 20))], {0: 70}),
    "of each topic-partition its own newest commit": (
        [tile(11, (90, 95, None), (40, 40, None)), tile(10, (50, 90, 90), (20, 30, 40)), tile(9, (0, 50, 50))],
        {0: 95, 1: 30},
    ),
    "where the first tile begins if nothing is landed": ([tile(10, (50, 50, None)), tile(9, (7, 7, 50))], {0: 7}),
}


@pytest.mark.parametrize(("newest_first", "offsets"), REACHED.values(), ids=REACHED)
def test_a_topic_is_landed_up_to(newest_first: list[Tile], offsets: dict[int, int]) -> None:
    assert find_landed_offsets(newest_first) == offsets


@pytest.mark.parametrize(
    ("needed", "offsets"),
    [
        ([tile(10, (50, 50, None)), tile(9, (0, 50, 50))], {0: 50}),
        ([tile(10, (50, 50, None), (7, 7, None)), tile(9, (0, 50, 50))], {0: 50, 1: 7}),
        ([tile(10, (50, 60, None), (7, 7, None)), tile(9, (0, 50, 50), (0, 5, 7))], {0: 60, 1: 5}),
        ([tile(10, (50, 60, None), (0, 3, None))], {0: 60, 1: 3}),
    ],
    ids=[
        "one that is landed is the last",
        "though a newer one names more",
        "each is landed in one",
        "and in the first",
    ],
)
def test_no_more_tiles_are_read_than_it_takes(needed: list[Tile], offsets: dict[int, int]) -> None:
    def read() -> Iterator[Tile]:
        yield from needed
        raise AssertionError("a tile was read for nothing")

    assert find_landed_offsets(read()) == offsets
