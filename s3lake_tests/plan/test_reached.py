"""How far a topic is landed, as its consumer group is told."""

from collections.abc import Iterator

from s3lake.plan.reached import reached
from s3lake.plan.tile import Span, Tile


def tile(hour: int, *spans: tuple[int, int, int | None]) -> Tile:
    return Tile(f"2026-01-05T{hour:02}", {number: Span(*span) for number, span in enumerate(spans)})


def test_it_is_the_committed_offset_of_the_newest_tile() -> None:
    assert reached([tile(10, (50, 70, None)), tile(9, (0, 50, 50))]) == {0: 70}


def test_tiles_that_are_opened_ahead_of_what_is_landed_do_not_count() -> None:
    assert reached([tile(11, (90, 90, None)), tile(10, (50, 70, 90)), tile(9, (0, 50, 50))]) == {0: 70}


def test_an_earlier_hour_that_is_landed_later_does_not_move_it() -> None:
    newest = tile(10, (50, 70, None))
    assert reached([newest, tile(5, (0, 0, 20))]) == reached([newest, tile(5, (0, 20, 20))]) == {0: 70}


def test_each_topic_partition_is_as_far_as_its_own_newest_commit() -> None:
    tiles = [tile(11, (90, 95, None), (40, 40, None)), tile(10, (50, 90, 90), (20, 30, 40)), tile(9, (0, 50, 50))]
    assert reached(tiles) == {0: 95, 1: 30}


def test_where_nothing_is_landed_it_is_where_the_first_tile_begins() -> None:
    assert reached([tile(10, (50, 50, None)), tile(9, (7, 7, 50))]) == {0: 7}


def test_no_more_tiles_are_read_than_it_takes() -> None:
    def tiles() -> Iterator[Tile]:
        yield tile(10, (50, 50, None))
        yield tile(9, (0, 50, 50))
        raise AssertionError("a tile was read for nothing")

    assert reached(tiles()) == {0: 50}


def test_a_tile_that_is_landed_is_the_last_that_is_read_though_a_newer_one_names_more() -> None:
    def tiles() -> Iterator[Tile]:
        yield tile(10, (50, 50, None), (7, 7, None))
        yield tile(9, (0, 50, 50))
        raise AssertionError("a tile was read for nothing")

    assert reached(tiles()) == {0: 50, 1: 7}


def test_an_older_tile_is_read_where_the_newest_has_not_landed_all_topic_partitions() -> None:
    assert reached([tile(10, (50, 60, None), (7, 7, None)), tile(9, (0, 50, 50), (0, 5, 7))]) == {0: 60, 1: 5}


def test_a_tile_under_way_is_the_last_that_is_read_where_it_has_landed_of_all_topic_partitions() -> None:
    def tiles() -> Iterator[Tile]:
        yield tile(10, (50, 60, None), (0, 3, None))
        raise AssertionError("a tile was read for nothing")

    assert reached(tiles()) == {0: 60, 1: 3}
