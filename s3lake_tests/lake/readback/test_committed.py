"""Only hours are read that hold every record that Kafka had for them."""

import msgspec
import pytest

from s3lake import hours
from s3lake.errors import IncompleteError
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.index.plan.tile import Tile, TileRange
from s3lake.index.store.memory import MemoryStore
from s3lake.lake.readback.committed import read_complete_tiles
from s3lake_tests.kit import indexes
from s3lake_tests.lake.verify.world import VerifiedTopic

NINE, TEN, ELEVEN, NOON = "2026-01-05T09", "2026-01-05T10", "2026-01-05T11", "2026-01-05T12"
SINK = VerifiedTopic().sink


def landed(hour: str) -> Tile:
    return Tile(hour, {0: TileRange(0, 10, 10), 1: TileRange(5, 5, 5)}, commits=("c",))


def index_of(*tiles: Tile) -> TopicIndex:
    index = TopicIndex(MemoryStore("lake"), ".indexes/events", "orders")
    if tiles:
        indexes.write_tiles(index, *tiles)
    return index


def refusal(index: TopicIndex, wanted: list[str] | None) -> str:
    with pytest.raises(IncompleteError) as error:
        read_complete_tiles(index, SINK, wanted)
    assert wanted is None or list(read_complete_tiles(index, SINK, wanted, allow_incomplete=True)) == wanted
    return str(error.value)


@pytest.mark.parametrize("wanted", [[TEN], [NINE, TEN], None], ids=["one", "several", "all that there are"])
@pytest.mark.parametrize("more", [{}, {"pending": "d"}, {"garbage": ("d",)}], ids=["", "rewritten", "cleaned up"])
def test_hours_of_which_everything_is_landed_are_taken(more: dict[str, object], wanted: list[str] | None) -> None:
    index = index_of(landed(NINE), msgspec.structs.replace(landed(TEN), **more))
    assert list(read_complete_tiles(index, SINK, wanted)) == (wanted or [NINE, TEN])


def test_hours_without_a_tile_are_named_as_ranges() -> None:
    assert refusal(index_of(landed(TEN)), [*hours.span(NINE, NOON)]) == (
        "topic orders in sink events: 3 of 4 hours are not complete, so that what would be read is not all that Kafka "
        f"had: {NINE} never landed; {ELEVEN} to {NOON} never landed. Materialise these hours first; to read what there "
        'is all the same, pass allow_incomplete=True, or metadata={"allow_incomplete": True} of an AssetIn'
    )


def test_an_hour_whose_tile_was_announced_and_never_written_was_never_landed() -> None:
    index = index_of(landed(TEN))
    index.store.delete(index.tile_key(TEN))
    assert f": {TEN} never landed. " in refusal(index, [TEN])


def test_hours_of_several_kinds_are_named_in_order_with_what_they_lack() -> None:
    half, still_open = {0: TileRange(1000, 1700, 3000), 1: TileRange(0, 0, 500)}, {0: TileRange(20, 1254)}
    index = index_of(Tile(NINE, half), landed(TEN), Tile(NOON, still_open))
    assert (
        f": {NINE} lacks 1,800 of 2,500 offsets; {ELEVEN} never landed; {NOON} is still open, 1,234 offsets landed so "
        "far. "
    ) in refusal(index, [*hours.span(NINE, NOON)])


def test_the_error_names_the_first_twenty_of_a_long_list() -> None:
    half = [Tile(hour, {0: TileRange(0, 5, 10)}) for hour in hours.span("2026-01-05T00", "2026-01-06T23")]
    report = refusal(index_of(*half), None)
    assert "2026-01-05T19 lacks 5 of 10 offsets; and 28 more. " in report
    assert "48 of 48 hours" in report


def test_an_index_without_an_hour_has_nothing_to_read() -> None:
    assert "no hour was ever landed" in refusal(index_of(), None)
