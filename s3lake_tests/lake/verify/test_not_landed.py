"""What should be landed and is not is named with its hours and offsets: a pipeline that stopped is not clean."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3lake import hours
from s3lake.index.commit.documents import TopicHead
from s3lake.index.plan import tile as planning
from s3lake.index.plan.tile import Tile, TileRange
from s3lake.lake.verify import NotLanded
from s3lake.source.offsets import LogRange, TopicOffsets
from s3lake_tests.lake.verify.world import HOUR, NEXT, TOPIC, VerifiedTopic

VALUES = [b'{"n":%d}' % n for n in range(8)]


def hour(number: int) -> str:
    """The hours of the grid, from 0."""
    return hours.shift(HOUR, number)


def at(number: int, minutes: float = 0) -> int:
    """A moment of an hour of the grid."""
    return hours.start_ms(hour(number)) + int(minutes * 60_000)


def named(world: VerifiedTopic, **more: object) -> dict[tuple[str, str], dict[int, tuple[int, int]]]:
    """Hours that lack something, with what they lack."""
    return {(one.first, one.last): dict(one.offsets) for one in world.verify(**more).unlanded}


@pytest.fixture
def world() -> VerifiedTopic:
    """Four records in hour 0, three in hour 2, one in hour 4; nothing is landed."""
    world = VerifiedTopic()
    for number, values in ((0, VALUES[:4]), (2, VALUES[4:7]), (4, VALUES[7:])):
        world.log.add(values, timestamp=at(number, 5))
    return world


def test_a_sink_that_never_ran_has_landed_nothing_of_all_hours(world: VerifiedTopic) -> None:
    assert named(world, now_ms=at(9, 30)) == {
        (hour(0), hour(0)): {0: (0, 4)},
        (hour(1), hour(1)): {},
        (hour(2), hour(2)): {0: (4, 7)},
        (hour(3), hour(3)): {},
        (hour(4), hour(4)): {0: (7, 8)},
        (hour(5), hour(8)): {},
    }
    report = world.verify(now_ms=at(4, 30))
    assert (report.not_landed, report.compared, report.clean, report.allow_current_hour().clean) == (8, 0, False, False)


def test_a_topic_without_any_document_in_the_index_is_looked_at_too(world: VerifiedTopic) -> None:
    world.write_index()
    world.store.delete(world.index.head_key)
    world.write_index = lambda: None  # type: ignore[method-assign]
    assert world.verify(now_ms=at(4, 30)).not_landed == 8


def test_a_topic_that_kafka_does_not_have_is_reported(world: VerifiedTopic) -> None:
    world.log.topic_id = ""
    world.log.end.clear()
    (one,) = world.verify(now_ms=at(2, 30)).unlanded
    assert (one.first, one.last, one.state) == (hour(0), hour(1), "Kafka has no such topic")


def test_only_hours_asked_for_are_named(world: VerifiedTopic) -> None:
    assert named(world, now_ms=at(4, 30), first=hour(1), last=hour(2)) == {
        (hour(1), hour(1)): {},
        (hour(2), hour(2)): {0: (4, 7)},
    }
    assert named(world, now_ms=at(4, 30), first=hour(4)) == {(hour(4), hour(4)): {0: (7, 8)}}
    assert list(named(world, now_ms=at(4, 30), last=hour(0))) == [(hour(0), hour(0))]
    assert named(world, now_ms=at(4, 30), first=hour(-9), last=hour(-1)) == {}
    assert named(world, now_ms=at(4, 30), first=hour(5), last=hour(9)) == {}


def test_an_hour_between_two_tiles_lacks_the_offsets_between_them(world: VerifiedTopic) -> None:
    world.span(0, 4, 4)
    world.commit("c1", [world.lines("c1", VALUES[:4], 0)])
    world.tiles[hour(3)] = Tile(hour(3), {0: TileRange(7, 7, 7)})
    world.tiles[hour(4)] = Tile(hour(4), {0: TileRange(7, 7, 8)})
    assert named(world, now_ms=at(5, 10)) == {
        (hour(1), hour(1)): {},
        (hour(2), hour(2)): {0: (4, 7)},
        (hour(4), hour(4)): {0: (7, 8)},
    }


def test_late_records_of_a_gap_count_for_the_hour_that_would_get_them() -> None:
    world = VerifiedTopic()
    world.log.add(VALUES[:2], timestamp=at(0, 5))
    world.log.add(VALUES[2:4], timestamp=at(0, 50))  # behind the edge of the tile: late
    world.log.add(VALUES[4:5], timestamp=at(1, 1))
    world.commit("c1", [world.lines("c1", VALUES[:2], 0)])
    assert named(world, now_ms=at(1, 30)) == {(hour(1), hour(1)): {0: (2, 5)}}


def test_a_closed_tile_lacks_what_is_not_committed(world: VerifiedTopic) -> None:
    world.span(0, 3, 4)
    world.commit("c1", [world.lines("c1", VALUES[:3], 0)])
    world.span(0, 3, 4)
    report = world.verify(last=HOUR, now_ms=at(4, 30))
    (one,) = report.unlanded
    assert (one.offsets, one.state, one.count) == ({0: (3, 4)}, "closed, not complete", 1)
    assert not report.allow_current_hour().clean


def test_the_open_tile_lacks_what_has_arrived_since_up_to_the_end_of_the_log() -> None:
    world = VerifiedTopic()
    world.landed(VALUES[:3])
    world.span(0, 3, None)
    assert world.verify(now_ms=at(0, 30)).clean
    world.log.add(VALUES[3:], timestamp=at(0, 29))
    world.log.add([b"1"], partition=1, timestamp=at(0, 29))
    report = world.verify(now_ms=at(0, 30))
    (one,) = report.unlanded
    assert (one.offsets, one.state, one.under_way) == ({0: (3, 8), 1: (0, 1)}, "open", True)
    assert not report.clean
    assert report.allow_current_hour().clean
    assert report.allow_current_hour().not_landed == 6


def test_an_open_tile_whose_grace_is_over_is_never_allowed() -> None:
    world = VerifiedTopic()
    world.landed(VALUES)
    world.span(0, 8, None)
    world.log.add([b"next"], timestamp=at(1, 1))
    assert named(world, now_ms=at(1, 4)) == {(hour(1), hour(1)): {0: (8, 9)}}
    assert world.verify(now_ms=at(1, 4)).allow_current_hour().clean
    assert named(world, now_ms=at(1, 5)) == {(hour(0), hour(0)): {}, (hour(1), hour(1)): {0: (8, 9)}}
    assert not world.verify(now_ms=at(1, 5)).allow_current_hour().clean


def test_an_open_tile_ends_where_its_hour_does_once_later_records_are_there() -> None:
    world = VerifiedTopic()
    world.landed(VALUES[:3])
    world.span(0, 3, None)
    world.log.add(VALUES[3:5], timestamp=at(0, 59))
    world.log.add(VALUES[5:], timestamp=at(2, 1))
    assert named(world, now_ms=at(2, 30)) == {
        (hour(0), hour(0)): {0: (3, 5)},
        (hour(1), hour(1)): {},
        (hour(2), hour(2)): {0: (5, 8)},
    }


@pytest.mark.parametrize(
    ("changes", "state"),
    [({"pending": "c9"}, "commit c9 is pending"), ({"garbage": ("c8",)}, "1 commit still to be swept")],
)
def test_a_tile_that_is_not_finished_is_reported_with_its_state(changes: dict[str, object], state: str) -> None:
    world = VerifiedTopic()
    world.landed(VALUES)
    world.tiles[HOUR] = msgspec.structs.replace(world.tiles[HOUR], **changes)
    report = world.verify(last=HOUR, now_ms=at(3))
    assert [(one.state, one.offsets) for one in report.unlanded] == [(state, {})]
    assert not report.clean


def test_offsets_that_kafka_no_longer_has_are_counted_as_expired() -> None:
    world = VerifiedTopic()
    world.landed(VALUES[:2])
    world.log.add(VALUES[2:6], timestamp=at(1, 1))
    world.log.add(VALUES[6:], timestamp=at(2, 1))
    world.log.expire(5)
    report = world.verify(now_ms=at(3, 30))
    assert [(one.first, one.offsets, one.expired) for one in report.unlanded] == [
        (hour(1), {0: (2, 6)}, 3),
        (hour(2), {0: (6, 8)}, 0),
    ]


def test_the_first_hour_of_a_sink_from_earliest_has_all_that_was_before(world: VerifiedTopic) -> None:
    late = VerifiedTopic(start=hour(2))
    late.log = world.log
    assert named(late, now_ms=at(2, 30)) == {(hour(2), hour(2)): {0: (4, 8)}}
    earliest = VerifiedTopic(start=hour(2), **{"from": "earliest"})
    earliest.log = world.log
    assert named(earliest, now_ms=at(2, 30)) == {(hour(2), hour(2)): {0: (0, 8)}}


def test_hours_before_a_connector_stopped_or_a_topic_was_given_up_are_not_due(world: VerifiedTopic) -> None:
    world.since = hour(2)
    assert list(named(world, now_ms=at(4, 30))) == [(hour(2), hour(2)), (hour(3), hour(3)), (hour(4), hour(4))]


def test_tiles_of_a_former_topic_are_not_compared_with_the_present_topics_offsets(world: VerifiedTopic) -> None:
    world.tiles[HOUR] = Tile(HOUR, {0: TileRange(0, 50, 60)})
    world.log.topic_id = "two"
    assert named(world, now_ms=at(2, 30)) == {
        (hour(0), hour(0)): {},
        (hour(1), hour(1)): {},
        (hour(2), hour(2)): {0: (4, 8)},
    }


def test_a_tile_that_is_being_created_counts_as_a_tile(world: VerifiedTopic) -> None:
    new = Tile(HOUR, {0: TileRange(0, 0, None)})
    world.write_index()
    head = TopicHead(topic_id="one", hours=((HOUR, HOUR),), new=new)
    world.store.put(world.index.head_key, msgspec.json.encode(head))
    world.write_index = lambda: None  # type: ignore[method-assign]
    found = world.verify(last=NEXT, now_ms=at(4, 30)).unlanded
    assert [(one.first, one.state, one.offsets) for one in found] == [
        (hour(0), "open", {0: (0, 4)}),
        (hour(1), "no tile", {}),
    ]


def test_offsets_that_are_not_landed_have_their_place_in_words() -> None:
    one = NotLanded(TOPIC, HOUR, HOUR, {0: (0, 42_000), 3: (7, 772)}, "no tile", 9, under_way=False)
    assert str(one) == (
        f"not landed: verified {HOUR}: 42,765 offsets, no tile, 9 of them expired; partition 0: 0 to 41999, partition "
        "3: 7 to 771"
    )
    many = NotLanded(TOPIC, HOUR, NEXT, {}, "no tile", 0, under_way=False)
    assert str(many) == f"not landed: verified {HOUR} to {NEXT}: 0 offsets, no tile"


def test_a_year_without_records_costs_few_requests(world: VerifiedTopic, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    find_offset_since = world.log.find_offset_since

    def counted(topic: str, epoch_ms: int) -> object:
        asked.append(epoch_ms)
        return find_offset_since(topic, epoch_ms)

    monkeypatch.setattr(world.log, "find_offset_since", counted)
    assert world.verify(now_ms=at(8760)).not_landed == 8
    assert len(asked) < 60


@given(
    stamps=st.lists(st.integers(0, 5 * 60), max_size=12),
    tiles=st.sets(st.integers(0, 4)),
    now=st.integers(4 * 60, 5 * 60),
)
def test_every_offset_of_the_grid_is_landed_or_named_once(stamps: list[int], tiles: set[int], now: int) -> None:
    """Whatever hours have a tile, nothing committed: every offset is in exactly one tile, or hour without one."""
    world = VerifiedTopic()
    for minute in stamps:
        world.log.add([b"1"], timestamp=at(0, minute))
    end = len(stamps)

    def kafka(number: int) -> TopicOffsets:
        edges = [world.log.find_offset_since(TOPIC, at(one)).get(0, 0) for one in (number, number + 1)]
        return TopicOffsets("one", {0: LogRange(0, end, *edges)} if stamps else {})

    before: Tile | None = None
    for number in sorted(tiles):
        if before is not None:
            before = planning.close_tile(before, kafka(max(other for other in tiles if other < number)))
            world.tiles[before.hour] = before
        before = planning.open_tile(hour(number), kafka(number), before, None, earliest=False)
        world.tiles[before.hour] = before
    found = [pair for one in world.verify(now_ms=at(0, now)).unlanded for pair in one.offsets.values()]
    covered = [offset for first, last in found for offset in range(first, last)]
    assert sorted(covered) == list(range(end))


# What timestamps keep out of their hours


def test_offsets_before_the_first_tile_are_counted_as_long_as_kafka_has_them() -> None:
    world = VerifiedTopic()
    world.log.add(VALUES[:5], timestamp=5)  # a producer that stamps in seconds
    world.landed(VALUES[5:])
    report = world.verify()
    assert (report.clean, report.compared) == (True, 3)
    assert [notice.split(":")[0] for notice in report.notices] == [
        f"5 offsets are before {HOUR}, where landing starts, and are not landed (5 of partition 0)"
    ]
    world.log.expire(2)
    assert world.verify().notices[0].startswith("3 offsets")
    world.since = HOUR  # a connector landed them
    assert world.verify().notices == ()


def test_a_record_that_is_stamped_far_ahead_is_named_once() -> None:
    world = VerifiedTopic()
    world.landed(VALUES[:4])
    world.log.add([VALUES[4]], timestamp=at(0) * 1000)
    for number in (1, 2):
        world.span(4, 4, 4, hour=hour(number))
    notices = world.verify(last=hour(2)).notices
    assert [notice.split(": ")[0] for notice in notices] == ["offset 4 of partition 0 is stamped 58856-01-24T08:00:00Z"]
