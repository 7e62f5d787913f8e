"""Which hours the index calls sealed, and up to which hour all of them are."""

import msgspec
import pytest

from s3lake import hours
from s3lake.index.commit import sealing
from s3lake.index.commit.documents import TopicHead, Watermark
from s3lake.index.commit.sealing import Sealing
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.index.plan.tile import Sums, Tile, TileRange
from s3lake_tests.kit.stores import CountedStore

START = "2026-01-05T08"
EIGHT, NINE, TEN, ELEVEN = hours.span(START, "2026-01-05T11")


class IndexOfHours:
    """An index of hours of ten records each, all as it should be unless given otherwise."""

    def __init__(self, count: int = 4) -> None:
        self.store = CountedStore()
        self.index = TopicIndex(self.store, ".indexes/events", "orders")
        self.head = TopicHead(hours=((START, hours.shift(START, count - 1)),))
        for number in range(count):
            self.write(self.tile(number))
        self.store.requests.clear()

    def tile(self, number: int, **changes: object) -> Tile:
        first = 10 * number
        sums = Sums(offsets=10, read=10, landed=10, files=1, records=10, bytes=100)
        tile = Tile(
            hours.shift(START, number), {0: TileRange(first, first + 10, first + 10)}, commits=("c",), sums=sums
        )
        return msgspec.structs.replace(tile, **changes)

    def write(self, *tiles: Tile) -> None:
        for tile in tiles:
            self.store.put(self.index.tile_key(tile.hour), msgspec.json.encode(tile))

    @property
    def head(self) -> TopicHead:
        """`topic.json`."""
        stored = self.index.head()
        assert stored is not None
        return stored[0]

    @head.setter
    def head(self, head: TopicHead) -> None:
        self.store.put(self.index.head_key, msgspec.json.encode(head))

    @property
    def sealing(self) -> Sealing:
        stored = self.index.head()
        assert stored is not None
        return Sealing(self.index, *stored)


@pytest.fixture
def world() -> IndexOfHours:
    return IndexOfHours()


class TestHour:
    @pytest.mark.parametrize(
        ("changes", "why"),
        [
            ({"partitions": {0: TileRange(10, 15)}}, "it is not complete"),
            ({"pending": "d"}, "it is not complete"),
            ({"garbage": ("d",)}, "it is not complete"),
            ({"partitions": {0: TileRange(11, 20, 20)}}, f"the edges of {EIGHT} and {NINE} do not meet"),
            ({"partitions": {0: TileRange(10, 21, 21)}}, f"the edges of {NINE} and {TEN} do not meet"),
            ({"sums": Sums(offsets=10, read=10, landed=9, records=9)}, "its files do not explain its offsets"),
        ],
    )
    def test_that_is_not_sealed_has_a_reason(self, changes: dict[str, object], why: str, world: IndexOfHours) -> None:
        world.write(world.tile(1, **changes))
        assert world.sealing.flaw(NINE) == why

    def test_that_the_head_does_not_name_is_not_asked_for(self, world: IndexOfHours) -> None:
        world.write(world.tile(4))
        assert world.sealing.tile("2026-01-05T12") is None

    def test_an_hour_is_judged_without_a_request_when_its_tiles_are_at_hand(self, world: IndexOfHours) -> None:
        at_hand = Sealing(world.index, world.head).with_tiles(world.tile(number) for number in range(3))
        world.store.requests.clear()
        assert at_hand.flaw(NINE) is None
        assert world.store.requests == {}

    def test_the_hour_before_is_not_read_when_the_edge_to_it_was_compared_already(self, world: IndexOfHours) -> None:
        tiles = [world.tile(number) for number in (1, 2)]
        compared = Sealing(world.index, world.head, compared=NINE).with_tiles(tiles)
        world.store.requests.clear()
        assert compared.flaw(NINE) is None
        assert world.store.requests == {}

    def test_an_hour_of_a_recreated_topic_stays_sealed_when_the_topic_is_recreated_again(
        self, world: IndexOfHours
    ) -> None:
        world.head = world.head.revise(since=ELEVEN, earlier=(TEN,))
        world.write(
            world.tile(2, partitions={0: TileRange(0, 10, 10)}), world.tile(3, partitions={0: TileRange(0, 10, 10)})
        )
        assert [world.sealing.flaw(hour) for hour in (NINE, TEN, ELEVEN)] == [None] * 3

    def test_the_first_of_a_topic_that_was_created_again_has_to_meet_the_next(self, world: IndexOfHours) -> None:
        world.head = world.head.revise(since=NINE)
        world.write(world.tile(2, partitions={0: TileRange(21, 30, 30)}))
        assert world.sealing.flaw(NINE) == f"the edges of {NINE} and {TEN} do not meet"


class TestWatermark:
    @pytest.mark.parametrize(
        ("pending", "since", "start", "watermark"),
        [
            (None, None, START, ELEVEN),
            (2, None, START, NINE),
            (1, None, START, START),
            (None, None, "2026-01-05T06", None),
            (0, NINE, "2026-01-05T06", ELEVEN),
        ],
        ids=["all are", "until one is not", "the first", "hours since the start lack a tile", "a connector stopped"],
    )
    def test_is_the_last_hour_such_that_all_up_to_it_are_sealed(
        self, pending: int | None, since: str | None, start: str, watermark: str | None, world: IndexOfHours
    ) -> None:
        world.head = world.head.revise(since=since)
        if pending is not None:
            world.write(world.tile(pending, pending="d"))
        assert world.sealing.upto(start) == watermark

    def test_is_none_where_the_first_hour_is_not(self, world: IndexOfHours) -> None:
        world.write(world.tile(0, pending="d"))
        assert world.sealing.upto(START) is None
        assert world.sealing.move(START) is None
        assert world.head.sealed is None

    def test_is_none_where_there_is_no_hour(self, world: IndexOfHours) -> None:
        world.head = TopicHead()
        assert world.sealing.upto(START) is None

    def test_is_moved_on_from_where_it_was_noted(self, world: IndexOfHours) -> None:
        world.write(world.tile(2, pending="d"))
        assert world.sealing.move(START) == NINE
        world.write(world.tile(2))
        world.store.requests.clear()
        assert world.sealing.move(START) == ELEVEN
        assert world.store.requests["get"] <= 4  # the topic with its note, two hours, and the one before them
        assert world.sealing.watermark(START) == ELEVEN

    def test_is_known_after_it_was_moved_and_can_be_moved_on_without_a_look_at_the_topic(
        self, world: IndexOfHours
    ) -> None:
        sealing = world.sealing
        world.write(world.tile(2, pending="d"))
        assert sealing.move(START) == sealing.watermark(START) == NINE
        world.write(world.tile(2))
        assert Sealing(world.index, sealing.head, sealing.etag).move(START) == world.sealing.watermark(START) == ELEVEN

    def test_never_goes_back_while_an_hour_is_rewritten(self, world: IndexOfHours) -> None:
        world.sealing.move(START)
        world.write(world.tile(1, pending="d"))
        assert world.sealing.move(START) == ELEVEN

    def test_the_watermark_stays_when_another_process_has_opened_an_hour_meanwhile(self, world: IndexOfHours) -> None:
        behind = world.sealing
        world.head = world.head.revise(hours=((START, "2026-01-05T12"),))
        assert behind.move(START) == ELEVEN
        assert behind.watermark(START) is None
        assert (world.head.sealed, world.head.hours) == (None, ((START, "2026-01-05T12"),))
        assert world.sealing.move(START) == ELEVEN
        assert world.sealing.watermark(START) == ELEVEN

    def test_that_has_not_moved_is_not_written(self, world: IndexOfHours) -> None:
        world.sealing.move(START)
        world.store.requests.clear()
        world.sealing.move(START)
        assert world.store.requests["put"] == 0

    def test_a_watermark_is_computed_again_when_the_start_differs(self, world: IndexOfHours) -> None:
        world.head = world.head.revise(sealed=Watermark(NINE, TEN))
        assert world.sealing.watermark(START) is None
        assert world.sealing.move(START) == ELEVEN
        assert world.sealing.watermark(START) == ELEVEN

    def test_the_watermark_of_a_long_history_moves_in_steps(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sealing, "WATERMARK_TILES", 3)
        world = IndexOfHours(8)
        assert world.sealing.move(START) == TEN
        assert world.sealing.move(START) == "2026-01-05T13"
        assert world.sealing.move(START) == "2026-01-05T15"
