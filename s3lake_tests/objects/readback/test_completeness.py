"""Which hours may be read: those that hold every record that Kafka had for them."""

import msgspec
import pytest

from s3lake import hours
from s3lake.commit.index import TopicIndex
from s3lake.errors import IncompleteError
from s3lake.objects.readback import completeness
from s3lake.plan.tile import Span, Tile
from s3lake.store.memory import MemoryStore
from s3lake_tests import indexes

NINE, TEN, ELEVEN, NOON = "2026-01-05T09", "2026-01-05T10", "2026-01-05T11", "2026-01-05T12"
REMEDY = (
    "Materialise these hours first; to read what there is all the same, give the input (AssetIn) "
    'metadata={"allow_incomplete": True}'
)


def landed(hour: str) -> Tile:
    return Tile(hour, {0: Span(0, 10, 10), 1: Span(5, 5, 5)}, commits=("c",))


def index_of(*tiles: Tile) -> TopicIndex:
    index = TopicIndex(MemoryStore("lake"), ".indexes/events", "orders")
    indexes.write(index, *tiles)
    return index


def refused(index: TopicIndex, wanted: list[str] | None) -> str:
    with pytest.raises(IncompleteError) as error:
        completeness.refuse(completeness.tiles(index, wanted), "topic orders in sink events")
    return str(error.value)


@pytest.mark.parametrize("wanted", [[TEN], [NINE, TEN], None], ids=["one", "several", "all that there are"])
def test_hours_of_which_everything_is_landed_are_taken(wanted: list[str] | None) -> None:
    completeness.refuse(completeness.tiles(index_of(landed(NINE), landed(TEN)), wanted), "orders")


@pytest.mark.parametrize("more", [{"pending": "d"}, {"garbage": ("d",)}], ids=["rewritten", "cleaned up"])
def test_an_hour_that_is_being_rewritten_or_cleaned_up_has_all_its_records(more: dict[str, object]) -> None:
    tile = msgspec.structs.replace(landed(TEN), **more)
    completeness.refuse(completeness.tiles(index_of(tile), [TEN]), "orders")


def test_hours_without_a_tile_are_named_as_ranges() -> None:
    assert refused(index_of(landed(TEN)), [*hours.span(NINE, NOON)]) == (
        "topic orders in sink events: 3 of 4 hours are not complete, so that what would be read is not all that Kafka "
        f"had: {NINE} never landed; {ELEVEN} to {NOON} never landed. {REMEDY}"
    )


def test_an_hour_whose_tile_was_announced_and_never_written_was_never_landed() -> None:
    index = index_of(landed(TEN))
    index.store.delete(index.tile_key(TEN))
    assert f": {TEN} never landed. " in refused(index, [TEN])


def test_of_an_hour_half_landed_it_is_said_how_much_is_missing() -> None:
    half = Tile(TEN, {0: Span(1000, 1700, 3000), 1: Span(0, 0, 500)})
    assert f": {TEN} lacks 1,800 of 2,500 offsets. " in refused(index_of(landed(NINE), half), [NINE, TEN])


def test_an_open_hour_is_not_complete_even_where_nothing_waits() -> None:
    still_open = Tile(TEN, {0: Span(0, 1234)})
    assert f": {TEN} is still open, 1,234 offsets landed so far. " in refused(index_of(still_open), [TEN])


def test_hours_of_several_kinds_are_named_in_order() -> None:
    index = index_of(Tile(NINE, {0: Span(0, 5, 10)}), landed(TEN), Tile(NOON, {0: Span(20, 20)}))
    told = refused(index, [*hours.span(NINE, NOON)])
    assert f": {NINE} lacks 5 of 10 offsets; {ELEVEN} never landed; {NOON} is still open, 0 offsets landed" in told


def test_of_a_long_list_the_first_twenty_are_named() -> None:
    half = [Tile(hour, {0: Span(0, 5, 10)}) for hour in hours.span("2026-01-05T00", "2026-01-06T23")]
    told = refused(index_of(*half), None)
    assert "2026-01-05T19 lacks 5 of 10 offsets; and 28 more. " in told
    assert "48 of 48 hours" in told


def test_where_nothing_was_ever_landed_there_is_nothing_to_read() -> None:
    index = TopicIndex(MemoryStore("lake"), ".indexes/events", "orders")
    assert "no hour was ever landed" in refused(index, None)
    assert f"{TEN} never landed" in refused(index, [TEN])
