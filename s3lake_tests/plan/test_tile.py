"""Tiles: which offsets belong to which hour."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3lake import hours
from s3lake.errors import DataLossError, KafkaUnavailableError
from s3lake.plan import tile as tiles
from s3lake.plan.tile import NOTHING, UNKNOWN_END, Span, Tile, reached
from s3lake.source.offsets import LogRange, Snapshot

FIVE, SIX, SEVEN, NINE = "2026-11-20T05", "2026-11-20T06", "2026-11-20T07", "2026-11-20T09"


def kafka(**ranges: tuple[int, int, int, int]) -> Snapshot:
    """A topic: `p0=(low, end, at, next)` and so on."""
    return Snapshot("topic-1", {int(name[1:]): LogRange(*given) for name, given in ranges.items()})


def opened(hour: str, snapshot: Snapshot, before: Tile | None = None, after: Tile | None = None, **how: Any) -> Tile:
    return tiles.opened(hour, snapshot, before, after, **{"earliest": False, **how})


# -------------------------------------------------------------------------------------------------------------- opening


def test_the_first_tile_begins_at_its_hours_first_record_and_is_open():
    assert opened(FIVE, kafka(p0=(10, 90, 40, 70))).partitions == {0: Span(40, 40, None)}


def test_the_first_tile_begins_at_the_log_start_when_asked_to():
    assert opened(FIVE, kafka(p0=(10, 90, 40, 70)), earliest=True).partitions == {0: Span(10, 10, None)}


def test_a_topic_partition_begins_where_it_is_told_to_and_never_below_its_log_start():
    snapshot = kafka(p0=(10, 90, 40, 70), p1=(10, 90, 40, 70), p2=(0, 90, 40, 70))

    made = opened(FIVE, snapshot, earliest=True, begins={0: 20, 1: 5})

    assert made.partitions == {0: Span(20, 20), 1: Span(10, 10), 2: Span(0, 0)}


def test_where_a_topic_partition_is_told_to_begin_means_nothing_after_another_tile():
    before = Tile(FIVE, {0: Span(10, 50, 50)})

    assert opened(SIX, kafka(p0=(0, 90, 60, 80)), before, begins={0: 70}).partitions == {0: Span(50, 50)}


def test_a_tile_has_the_epochs_of_the_leaders_that_say_them():
    snapshot = Snapshot("topic-1", {0: LogRange(0, 9, 0, 9, epoch=4), 1: LogRange(0, 9, 0, 9)})

    assert opened(FIVE, snapshot).epochs == {0: 4}
    assert tiles.epochs(snapshot, [0, 7]) == {0: 4}


def test_the_next_hours_tile_begins_where_the_one_before_ends_whatever_timestamps_say():
    before = Tile(FIVE, {0: Span(10, 30, 50)})

    assert opened(SIX, kafka(p0=(0, 90, 60, 80)), before).partitions == {0: Span(50, 50, None)}


def test_after_a_gap_a_tile_begins_at_its_own_first_record():
    before = Tile(FIVE, {0: Span(10, 50, 50)})

    assert opened(NINE, kafka(p0=(0, 90, 60, 80)), before).partitions == {0: Span(60, 60, None)}


def test_after_a_gap_a_tile_never_begins_before_the_end_of_the_one_before():
    before = Tile(FIVE, {0: Span(10, 50, 50)})

    assert opened(NINE, kafka(p0=(0, 90, 30, 80)), before).partitions == {0: Span(50, 50, None)}


def test_a_tile_just_before_another_ends_where_that_begins():
    after = Tile(SIX, {0: Span(50, 60, None)})

    assert opened(FIVE, kafka(p0=(0, 90, 30, 40)), None, after).partitions == {0: Span(30, 30, 50)}


def test_a_tile_with_a_gap_after_it_ends_at_the_following_hours_first_record():
    after = Tile(NINE, {0: Span(50, 60, None)})

    assert opened(FIVE, kafka(p0=(0, 90, 30, 40)), None, after).partitions == {0: Span(30, 30, 40)}


def test_a_tile_never_reaches_into_a_later_one():
    after = Tile(NINE, {0: Span(50, 60, None)})

    assert opened(FIVE, kafka(p0=(0, 90, 60, 80)), None, after).partitions == {0: Span(50, 50, 50)}


def test_a_tile_between_two_adjacent_ones_is_what_lies_between_them():
    before, after = Tile(FIVE, {0: Span(0, 20, 20)}), Tile(SEVEN, {0: Span(50, 60, None)})

    assert opened(SIX, kafka(p0=(0, 90, 70, 80)), before, after).partitions == {0: Span(20, 20, 50)}


def test_a_partition_that_the_tile_before_does_not_name_begins_at_0():
    before = Tile(FIVE, {0: Span(0, 20, 20)})

    assert opened(SIX, kafka(p0=(0, 90, 30, 80), p1=(0, 9, 5, 7)), before).partitions[1] == Span(0, 0, None)


def test_a_partition_that_the_tile_after_does_not_name_is_empty():
    after = Tile(SIX, {0: Span(50, 60, None)})

    assert opened(FIVE, kafka(p0=(0, 90, 30, 40), p1=(0, 9, 5, 7)), None, after).partitions[1] == Span(0, 0, 0)


def test_a_partition_of_a_neighbour_that_kafka_leaves_out_is_asked_for_again():
    for beside in ({"before": Tile(FIVE, {1: Span(0, 20, 20)})}, {"after": Tile(SEVEN, {1: Span(20, 20)})}):
        with pytest.raises(KafkaUnavailableError, match="topic-partition 1 is in the index, and missing"):
            opened(SIX, kafka(p0=(0, 90, 30, 80)), **beside)


def test_names_that_are_burnt_beyond_a_tiles_end_are_burnt_in_the_next_one():
    before = Tile(FIVE, {0: Span(0, 5, 5), 1: Span(0, 5, 5)}, burnt={0: 7, 1: 5})

    assert opened(SIX, kafka(p0=(0, 9, 0, 9), p1=(0, 9, 0, 9)), before).burnt == {0: 7}
    assert opened(SIX, kafka(p0=(0, 9, 0, 9)), Tile(FIVE, {0: NOTHING})).burnt == {}


def test_names_end_to_be_burnt_where_the_last_attempt_had_read_to():
    assert tiles.burns({0: 7}, {0: (6, 9), 1: (0, 3)})
    assert not tiles.burns({0: 7}, {0: (7, 9), 1: (0, 3)})
    assert not tiles.burns({}, {0: (0, 9)})


def test_what_is_burnt_grows_with_every_attempt_that_is_given_up():
    assert tiles.burning({0: 7}, {0: 5, 1: 3}) == {0: 7, 1: 3}
    assert tiles.burning({0: 0}, {1: 3}) == {0: 0, 1: 3}


def test_an_end_that_is_not_known_becomes_the_present_log_end_in_the_next_tile():
    before = Tile(FIVE, {0: Span(0, 5, 5), 1: Span(0, 5, 5)}, burnt={0: UNKNOWN_END, 1: 7})

    assert opened(SIX, kafka(p0=(0, 9, 0, 9), p1=(0, 9, 0, 9)), before).burnt == {0: 9, 1: 7}
    assert opened(SIX, kafka(p0=(0, 9, 0, 9), p1=(0, 9, 0, 9)), before, recreated=True).burnt == before.burnt


def test_names_of_a_topic_created_again_are_burnt_up_to_where_the_former_one_was_landed():
    former = Tile(FIVE, {0: Span(0, 20, 20), 1: Span(0, 3, 3)}, burnt={1: 8})

    assert opened(SIX, kafka(p0=(0, 9, 0, 9)), former=former, earliest=True).burnt == {0: 20, 1: 8}


def test_an_open_tile_with_a_successor_is_no_index_of_ours():
    with pytest.raises(DataLossError, match=r"^a tile with a successor is open: the index was changed by hand or"):
        opened(SIX, kafka(p0=(0, 9, 0, 9)), Tile(FIVE, {0: Span(0, 0)}))


# -------------------------------------------------------------------------------------------------------------- closing


def test_a_tile_is_closed_at_the_following_hours_first_record():
    shut = tiles.closed(Tile(FIVE, {0: Span(10, 20)}), kafka(p0=(0, 90, 10, 70)))

    assert shut.partitions == {0: Span(10, 20, 70)}
    assert shut.closed
    assert not shut.landed


def test_a_tile_is_never_closed_below_what_it_has_landed():
    shut = tiles.closed(Tile(FIVE, {0: Span(10, 80)}), kafka(p0=(0, 90, 10, 70)))

    assert shut.partitions == {0: Span(10, 80, 80)}
    assert shut.landed


def test_closing_takes_in_partitions_that_are_new():
    shut = tiles.closed(Tile(FIVE, {0: Span(10, 20)}), kafka(p0=(0, 90, 10, 70), p1=(0, 9, 0, 4)))

    assert shut.partitions[1] == Span(0, 0, 4)


def test_a_partition_that_kafka_leaves_out_is_not_cut_off():
    with pytest.raises(
        KafkaUnavailableError,
        match=r"^topic-partition 1 is in the index, and missing in what the brokers say of the topic just now: "
        r"their metadata is out of date\. The next run asks again$",
    ):
        tiles.closed(Tile(FIVE, {0: Span(10, 20), 1: Span(0, 4)}), kafka(p0=(0, 90, 10, 70)))


def test_closing_is_one_revision():
    assert tiles.closed(Tile(FIVE, {}, rev=3), kafka(p0=(0, 9, 0, 4))).rev == 4


def test_an_open_tile_takes_in_partitions_that_are_new_from_0():
    grown = tiles.extended(Tile(FIVE, {0: Span(10, 20)}, rev=3), kafka(p0=(0, 90, 10, 70), p1=(2, 9, 5, 7)))

    assert grown.partitions == {0: Span(10, 20), 1: Span(0, 0)}
    assert grown.rev == 4


def test_a_tile_that_knows_every_partition_is_not_changed():
    tile = Tile(FIVE, {0: Span(10, 20), 1: Span(0, 0)})

    assert tiles.extended(tile, kafka(p0=(0, 90, 10, 70))) is tile


def test_what_is_committed_never_goes_back():
    tile = Tile(FIVE, {0: Span(10, 20), 1: Span(0, 5)})

    assert tiles.committed(tile, {0: 15, 1: 8}) == {0: Span(10, 20), 1: Span(0, 8)}
    assert tiles.committed(Tile(FIVE, {0: Span(0, 0), 1: Span(0, 0)}), {1: 8}) == {0: Span(0, 0), 1: Span(0, 8)}


def test_intervals_that_touch_or_overlap_are_one_within_their_topic_partition():
    assert tiles.joined([(0, 7, 9), (0, 5, 7), (5, 9, 12), (5, 6, 8), (6, 7, 8)]) == (
        (0, 5, 9),
        (5, 6, 8),
        (5, 9, 12),
        (6, 7, 8),
    )


# --------------------------------------------------------------------------------------------------------------- states


def test_a_tile_without_partitions_is_not_closed():
    assert not Tile(FIVE, {}).closed


@pytest.mark.parametrize(
    ("change", "complete"),
    [
        ({}, True),
        ({"pending": "c1"}, False),
        ({"garbage": ("c1",)}, False),
        ({"partitions": {0: Span(0, 4, 5)}}, False),
        ({"partitions": {0: Span(0, 5)}}, False),
    ],
)
def test_a_tile_is_complete_when_nobody_needs_to_come_back(change: dict, complete: bool):
    assert Tile(FIVE, {0: Span(0, 5, 5)}).changed(**change).complete is complete


# -------------------------------------------------------------------------------------------------------- random chains


@dataclass
class Topic:
    """Logs with any timestamps, in any order, that grow and are cut at the front."""

    logs: dict[int, list[int]] = field(default_factory=lambda: {0: []})
    lows: dict[int, int] = field(default_factory=dict)

    def snapshot(self, number: int) -> Snapshot:
        """The offsets around hour `number`; timestamps are hours, too."""
        return Snapshot("topic-1", {partition: self._range(partition, number) for partition in self.logs})

    def _range(self, partition: int, number: int) -> LogRange:
        log, low = self.logs[partition], self.lows.get(partition, 0)

        def since(hour: int) -> int:
            return next((offset for offset in range(low, len(log)) if log[offset] >= hour), len(log))

        return LogRange(low, len(log), since(number), since(number + 1))


def hour(number: int) -> str:
    return hours.shift(FIVE, number)


@st.composite
def chains(draw: st.DrawFn) -> tuple[list[Tile], Topic, dict[int, int]]:
    """Tiles opened in any order, landed in part, closed as opening demands; and when each partition was added."""
    topic, known, added = Topic(), {}, {0: -1}
    for number in draw(st.lists(st.integers(0, 6), min_size=1, max_size=8)):
        for _ in range(draw(st.integers(0, 2))):
            partition = draw(st.sampled_from(sorted(topic.logs)))
            topic.logs[partition] += draw(st.lists(st.integers(0, 8), max_size=5))
        if draw(st.booleans()) and len(topic.logs) < 3:
            added[len(topic.logs)] = max(known, default=-1)
            topic.logs[len(topic.logs)] = draw(st.lists(st.integers(0, 8), max_size=5))
        if draw(st.booleans()):
            partition = draw(st.sampled_from(sorted(topic.logs)))
            topic.lows[partition] = draw(st.integers(topic.lows.get(partition, 0), len(topic.logs[partition])))
        if number in known:
            continue
        earlier, later = [one for one in known if one < number], [one for one in known if one > number]
        if earlier and not known[max(earlier)].closed:
            known[max(earlier)] = tiles.closed(known[max(earlier)], topic.snapshot(max(earlier)))
        before, after = (known[max(earlier)] if earlier else None), (known[min(later)] if later else None)
        made = opened(hour(number), topic.snapshot(number), before, after, earliest=draw(st.booleans()))
        ends = {
            partition: draw(
                st.integers(
                    span.start, max(span.start, span.end if span.end is not None else len(topic.logs[partition]))
                )
            )
            for partition, span in made.partitions.items()
        }
        known[number] = made.changed(partitions=tiles.committed(made, ends))
    return [known[number] for number in sorted(known)], topic, added


@given(chains())
def test_tiles_are_disjoint_and_adjacent_ones_leave_no_gap(chain):
    found, _, _ = chain
    for earlier, later in pairwise(found):
        assert earlier.closed
        for partition in set(earlier.partitions) | set(later.partitions):
            end = earlier.partitions.get(partition, NOTHING).end
            start = later.partitions.get(partition, NOTHING).start
            assert end <= start
            if hours.shift(earlier.hour, 1) == later.hour:
                assert end == start


@given(chains())
def test_every_tile_is_in_order_and_only_the_last_is_open(chain):
    found, _, _ = chain
    for tile in found:
        for span in tile.partitions.values():
            assert span.start <= span.committed
            assert span.end is None or span.committed <= span.end
    assert all(tile.closed for tile in found[:-1])


@given(chains())
def test_a_partition_added_later_is_covered_from_0(chain):
    found, _, added = chain
    numbers = [next(number for number in range(7) if hour(number) == tile.hour) for tile in found]
    for partition, last in added.items():
        follow = [tile for number, tile in zip(numbers, found, strict=True) if number >= last]
        adjacent = last >= 0 and len(follow) == numbers[-1] - last + 1
        spans = [tile.partitions[partition] for tile in follow if partition in tile.partitions]
        if adjacent and spans:
            assert spans[0].start == 0


@given(chains(), st.data())
def test_closing_again_changes_nothing_of_the_edges(chain, data):
    found, topic, _ = chain
    number = data.draw(st.integers(0, 6))
    shut = tiles.closed(found[-1], topic.snapshot(number)) if not found[-1].closed else found[-1]
    for partition, span in shut.partitions.items():
        was = found[-1].partitions.get(partition, replace_span(span))
        assert (span.start, span.committed) == (was.start, was.committed)
        assert span.end is not None


def replace_span(span: Span) -> Span:
    """What a partition was before it was taken in."""
    return Span(span.start, span.committed)


def test_what_is_burnt_reaches_as_far_as_either_says_and_no_further():
    assert tiles.burning({}, {0: 0, 1: 4}) == {0: 0, 1: 4}
    assert tiles.burning({0: 5, 1: 2}, {1: 3}) == {0: 5, 1: 3}


def test_names_of_a_former_topics_last_tile_may_have_been_used_up_to_its_end():
    former = Tile(FIVE, {0: Span(0, 4, 9), 1: Span(0, 7), 2: Span(0, 9, 4)})

    made = opened(SIX, kafka(p0=(0, 1, 0, 1), p1=(0, 1, 0, 1), p2=(0, 1, 0, 1)), former=former, earliest=True)

    assert made.burnt == {0: 9, 1: 7, 2: 9}


# ------------------------------------------------------------------------------------------- how far a topic is landed


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
