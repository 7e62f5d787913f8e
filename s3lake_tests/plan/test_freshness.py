"""How long records had waited, from what is known of each commit."""

import pytest

from s3lake.commit.documents import Read
from s3lake.commit.sums import waited
from s3lake.plan.freshness import Wait, quantile_s


@pytest.mark.parametrize(("share", "seconds"), [(0.5, 5.0), (0.95, 9.5), (1.0, 10.0)])
def test_records_of_one_commit_arrived_evenly(share: float, seconds: float) -> None:
    assert quantile_s([Wait(1000, 0, 10_000)], share) == seconds
    assert quantile_s([Wait(1000, 20_000, 30_000)], share) == 20 + seconds


def test_of_several_commits_each_counts_with_its_records() -> None:
    waits = [Wait(90, 1_000, 1_000), Wait(10, 60_000, 60_000)]
    assert [quantile_s(waits, share) for share in (0.5, 0.89, 0.95, 1.0)] == [1.0, 1.0, 60.0, 60.0]


def test_a_commit_all_of_whose_records_waited_longer_has_none_that_waited_so_long() -> None:
    assert quantile_s([Wait(1, 0, 0), Wait(1, 1_000, 1_000)], 0.75) == 1.0
    assert quantile_s([Wait(1, 1_000, 2_000)], 0) == 1.0


def test_without_records_there_is_none() -> None:
    assert quantile_s([], 0.5) is None
    assert quantile_s([Wait(0, 5, 5)], 0.5) is None


def test_a_commits_records_waited_since_their_timestamps() -> None:
    reads = [Read(0, 9, read=5, oldest_ms=1_000, newest_ms=4_000), Read(0, 9, read=3, oldest_ms=3_000, newest_ms=6_000)]
    assert waited(reads, 10_000) == (Wait(8, 4_000, 9_000),)


def test_a_timestamp_in_the_future_has_not_waited() -> None:
    assert waited([Read(0, 1, read=1, oldest_ms=20_000, newest_ms=20_000)], 10_000) == (Wait(1, 0, 0),)


def test_records_without_a_timestamp_are_not_counted() -> None:
    assert waited([Read(0, 1, read=1)], 10_000) == ()
