"""A log that an unclean election truncates while it is read, so that other records have its offsets."""

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pytest

from s3lake.errors import DataLossError, KafkaUnavailableError
from s3lake.index.commit.operator_decisions import accept_present_log
from s3lake.index.plan.tile import TileRange
from s3lake.land.hour.landing import land, rewrite
from s3lake.source.record_batches import OffsetRange
from s3lake_tests.land.at_hand import FIRST, SECOND, TopicInMemory


class Elected(TopicInMemory):
    """Where `cut` is set another leader begins there before the next records are read, and three more are written."""

    cut: int | None = None

    def read(self, ranges: Iterable[OffsetRange]) -> Iterator[pa.RecordBatch]:
        if self.cut is not None:
            del self.records[self.cut :]
            self.kafka.elect(0, end=self.cut)
            self.cut = None
            self.produce(0, b"7", b"8", b"9")
        return super().read(ranges)


@pytest.fixture
def world() -> Elected:
    """Four records of the first hour are landed, and two are not."""
    world = Elected()
    world.produce(0, b"0", b"1", b"2", b"3")
    land(world.target(30), [FIRST])
    world.produce(0, b"4", b"5")
    return world


def landed(world: TopicInMemory) -> list[bytes]:
    bodies = [body for key, (body, _) in world.store.objects.items() if not key.startswith(world.sink.index.prefix)]
    return sorted(line for body in bodies for line in body.split())


def test_a_cut_below_what_is_landed_refuses_what_was_read(world: Elected) -> None:
    world.cut = 3
    with pytest.raises(DataLossError, match=r"topic-partition 0: offsets 3 to 3\).*index accept"):
        land(world.target(30), [FIRST])
    assert landed(world) == [b"0", b"1", b"2", b"3"]
    assert world.store.uploads == {}

    target = world.target(90)
    accept_present_log(target.index, target.offsets)
    land(world.target(90), [SECOND])
    assert landed(world) == [b"0", b"1", b"2", b"3", b"7", b"8", b"9"]


def test_a_cut_behind_what_is_landed_refuses_what_was_read_and_the_next_run_lands_the_rest(world: Elected) -> None:
    world.cut = 5
    with pytest.raises(KafkaUnavailableError, match=r"topic-partition 0.*cut off at offset 5.*next run"):
        land(world.target(30), [FIRST])
    assert world.store.uploads == {}

    (again,) = land(world.target(30), [FIRST])
    assert again.tile.partitions == {0: TileRange(0, 8)}
    assert landed(world) == [b"0", b"1", b"2", b"3", b"4", b"7", b"8", b"9"]


def test_a_cut_lets_no_rewrite_take_the_place_of_the_only_copy(world: Elected) -> None:
    land(world.target(90), [FIRST])
    world.cut = 3
    with pytest.raises(DataLossError, match="The landed files are the only copy"):
        rewrite(world.target(90), FIRST)
    assert landed(world) == [b"0", b"1", b"2", b"3", b"4", b"5"]


def test_a_cut_that_ends_before_what_was_read_changes_nothing(world: Elected) -> None:
    world.cut = 6
    (hour,) = land(world.target(30), [FIRST])
    assert hour.tile.partitions == {0: TileRange(0, 6)}
    assert landed(world) == [b"0", b"1", b"2", b"3", b"4", b"5"]
