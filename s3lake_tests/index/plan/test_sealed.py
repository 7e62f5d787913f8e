"""Sealed: whether hours meet, and whether everything that was read of one is accounted for."""

from typing import Any

import pytest

from s3lake.index.plan import sealed
from s3lake.index.plan.sealed import compute_wait_quantile_s
from s3lake.index.plan.tile import Sums, Tile, TileRange, Wait

FIVE, SIX, SEVEN = "2026-11-20T05", "2026-11-20T06", "2026-11-20T07"


def test_gaps_between_two_tiles_are_counted_from_0_when_one_lacks_the_topic_partition():
    earlier = Tile(FIVE, {0: TileRange(0, 5, 5), 1: TileRange(0, 3, 3), 3: TileRange(0, 2)})
    following = Tile(SIX, {0: TileRange(7, 7), 2: TileRange(4, 4), 3: TileRange(2, 2)})

    assert sealed.count_gaps(earlier, following) == {0: 2, 1: -3, 2: 4, 3: 2}
    assert list(sealed.count_gaps(Tile(FIVE, {9: TileRange(0, 0, 0)}), Tile(SIX, {3: TileRange(0, 0)}))) == [3, 9]


@pytest.mark.parametrize(
    ("hour", "start", "meets"), [(SIX, 5, True), (SIX, 6, False), (SIX, 4, False), (SEVEN, 6, True), (SEVEN, 4, False)]
)
def test_hours_meet_without_overlap_and_without_a_gap_where_they_are_adjacent(hour: str, start: int, meets: bool):
    assert sealed.is_seamless(Tile(FIVE, {0: TileRange(0, 5, 5)}), Tile(hour, {0: TileRange(start, start)})) is meets


LANDED = Tile(FIVE, {0: TileRange(10, 20, 20), 1: TileRange(5, 8, 8)}, expired=((0, 10, 12),))
ACCOUNTED = {"offsets": 13, "records": 7, "read": 9, "landed": 6, "skipped": 1, "dead": 1, "erased": 1, "expired": 2}


def sums(**changes: int) -> Sums:
    return Sums(**{**ACCOUNTED, **changes})


def test_offsets_that_hold_no_record_are_those_neither_read_nor_expired():
    assert sealed.count_without_record(LANDED, sums()) == 2


@pytest.mark.parametrize(
    "changes",
    [{}, {"filtered": 1, "landed": 5, "records": 6}, {"read": 11, "skipped": 3}, {"expired": 0, "offsets": 11}],
    ids=[
        "every record read is somewhere",
        "one was filtered out",
        "all offsets hold records",
        "offsets were given up when it was created again",
    ],
)
def test_an_hour_is_explained_if(changes: dict[str, int]):
    assert sealed.is_explained(LANDED, sums(**changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"read": 8},
        {"read": 10},
        {"landed": 5, "records": 6},
        {"skipped": 0},
        {"erased": 2},
        {"dead": 2, "records": 8},
        {"records": 6},
        {"offsets": 12},
        {"offsets": 14},
        {"expired": 0},
        {"read": 12, "skipped": 4},
    ],
)
def test_an_hour_is_not_explained_where_a_sum_is_off(changes: dict[str, Any]):
    assert not sealed.is_explained(LANDED, sums(**changes))


def test_other_commits_are_other_content():
    assert sealed.digest_commits(["a", "b"]) == "3554d2b8a1e34099053865de8576d146"
    assert sealed.digest_commits(["b", "a"]) != sealed.digest_commits(["a", "b"])


# ----------------------------------------------------------------------------------------- how long records had waited


@pytest.mark.parametrize(("share", "seconds"), [(0.5, 5.0), (0.95, 9.5), (1.0, 10.0)])
def test_records_of_one_commit_arrived_evenly(share: float, seconds: float) -> None:
    assert compute_wait_quantile_s([Wait(1000, 0, 10_000)], share) == seconds
    assert compute_wait_quantile_s([Wait(1000, 20_000, 30_000)], share) == 20 + seconds


def test_a_wait_quantile_weighs_each_commit_by_its_records() -> None:
    waits = [Wait(90, 1_000, 1_000), Wait(10, 60_000, 60_000)]
    assert [compute_wait_quantile_s(waits, share) for share in (0.5, 0.89, 0.95, 1.0)] == [1.0, 1.0, 60.0, 60.0]
    assert (
        compute_wait_quantile_s([Wait(1, 0, 0), Wait(1, 1_000, 1_000)], 0.75)
        == compute_wait_quantile_s([Wait(1, 1_000, 2_000)], 0)
        == 1.0
    )
    assert compute_wait_quantile_s([], 0.5) is compute_wait_quantile_s([Wait(0, 5, 5)], 0.5) is None
