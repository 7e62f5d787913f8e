"""The hours that a sensor requests."""

from dataclasses import replace

import pytest

from s3lake import hours
from s3lake.index.plan import due
from s3lake.index.plan.tile import Tile, TileRange

HOUR = "2026-01-05T10"
GRACE_MS = 5 * 60_000
MINUTE_MS = 60_000
POLICY = due.Policy(start="2026-01-05T08", grace_ms=GRACE_MS, flush_count=100, flush_bytes=10_000)

LANDED = Tile(HOUR, {0: TileRange(0, 50, 50)}, commits=("a",))
OPEN = Tile(HOUR, {0: TileRange(0, 50)}, commits=("a",))


def at(hour: str, minutes: float = 0) -> int:
    return hours.start_ms(hour) + int(minutes * MINUTE_MS)


class TestIncomplete:
    """An hour with a tile to which a run has to come back."""

    DURING = at(HOUR, 30)

    @pytest.mark.parametrize(
        "tile",
        [
            pytest.param(Tile(HOUR, {0: TileRange(0, 20, 50)}), id="closed before all of it was landed"),
            pytest.param(LANDED.revise(pending="b"), id="a commit is pending"),
            pytest.param(LANDED.revise(garbage=("b",)), id="garbage is left"),
            pytest.param(OPEN.revise(pending="b"), id="open, and a commit is pending"),
            pytest.param(OPEN.revise(garbage=("b",)), id="open, and garbage is left"),
            pytest.param(Tile(HOUR, {0: TileRange(0, 50, 50), 1: TileRange(0, 0, 9)}), id="one topic-partition lags"),
        ],
    )
    def test_is_requested_again_at_once(self, tile: Tile) -> None:
        assert due.list_incomplete_hours([tile], self.DURING, GRACE_MS) == [HOUR]

    def test_a_complete_hour_is_not(self) -> None:
        assert due.list_incomplete_hours([LANDED], at("2026-02-01T00"), GRACE_MS) == []

    def test_an_open_hour_is_when_its_grace_is_over_and_not_before(self) -> None:
        assert due.list_incomplete_hours([OPEN], at(HOUR, 65) - 1, GRACE_MS) == []
        assert due.list_incomplete_hours([OPEN], at(HOUR, 65), GRACE_MS) == [HOUR]


@pytest.mark.parametrize(
    ("last", "now_ms", "expected"),
    [
        pytest.param(None, at(HOUR, 1), ["08", "09", "10"], id="an empty index wants everything since the start"),
        pytest.param(None, at("2026-01-05T07", 59), [], id="and nothing before it"),
        pytest.param(HOUR, at(HOUR, 64), [], id="at the turn the grace is waited for"),
        pytest.param(HOUR, at(HOUR, 65), ["10", "11"], id="after it the hour before and the new one"),
        pytest.param(HOUR, at("2026-01-05T13", 2), ["10", "11", "12", "13"], id="after an outage every hour since"),
        pytest.param("2026-01-05T12", at(HOUR, 30), [], id="a tile of a clock that ran ahead is waited for"),
    ],
)
def test_hours_up_to_now_that_have_no_tile_are_due(last: str | None, now_ms: int, expected: list[str]) -> None:
    assert due.list_unopened_hours(last, POLICY, now_ms) == [f"2026-01-05T{hour}" for hour in expected]


def test_the_oldest_hours_are_due_first() -> None:
    assert due.list_unopened_hours(None, POLICY, at(HOUR, 1), 2) == ["2026-01-05T08", "2026-01-05T09"]


@pytest.mark.parametrize(
    ("tile", "ends", "backlog"),
    [
        pytest.param(OPEN, {0: 80}, {0: 30}, id="up to the log end while the tile is open"),
        pytest.param(
            Tile(HOUR, {0: TileRange(0, 20, 50)}), {0: 80, 1: 7}, {0: 30}, id="up to the edge of a closed one"
        ),
        pytest.param(OPEN, {0: 50, 1: 7}, {1: 7}, id="of a topic-partition that the tile does not name yet"),
        pytest.param(OPEN, {}, {}, id="none of one that Kafka does not name"),
    ],
)
def test_a_backlog_is_counted_per_topic_partition(tile: Tile, ends: dict[int, int], backlog: dict[int, int]) -> None:
    assert due.count_backlog(tile, ends) == backlog


def waiting(records: int = 0, size: int = 0, partitions: int = 1, overdue: bool = False) -> due.Waiting:
    return due.Waiting(records, size, partitions, overdue)


class TestFlush:
    """When the current hour is landed."""

    def test_nothing_waits_nothing_is_due(self) -> None:
        assert due.find_flush_reason(waiting(overdue=True), POLICY) is None

    def test_an_hour_is_due_when_each_topic_partition_has_records_for_a_file(self) -> None:
        assert due.find_flush_reason(waiting(records=199, partitions=2), POLICY) is None
        reason = due.find_flush_reason(waiting(records=200, partitions=2), POLICY)
        assert reason == due.DueReason("count", "200 records wait, flush.count is 100 a topic-partition")
        assert due.find_flush_reason(waiting(records=10**9), replace(POLICY, flush_count=None)) is None

    def test_an_hour_is_due_when_each_topic_partition_has_bytes_for_a_file(self) -> None:
        assert due.find_flush_reason(waiting(records=2, size=19_999, partitions=2), POLICY) is None
        reason = due.find_flush_reason(waiting(records=2, size=20_000, partitions=2), POLICY)
        assert reason == due.DueReason("size", "about 20000 bytes wait, flush.size is 10000 a topic-partition")

    def test_an_hour_is_due_when_a_record_has_waited_for_the_interval(self) -> None:
        assert due.find_flush_reason(waiting(records=1), POLICY) is None
        assert due.find_flush_reason(waiting(records=1, overdue=True), POLICY) == due.WAITED


@pytest.mark.parametrize(
    ("since", "landed", "seen", "overdue"),
    [
        pytest.param(50, None, 0, False, id="records stamped within the interval may wait"),
        pytest.param(51, None, 0, True, id="a record stamped before it may not"),
        pytest.param(51, 9, 0, False, id="whatever the stamps are, the tile is landed once an interval only"),
        pytest.param(51, 10, 0, True, id="and again after it"),
        pytest.param(3, None, 9, False, id="stamps from the future delay a backlog"),
        pytest.param(3, None, 10, True, id="by one interval at most"),
        pytest.param(50, 10, 0, False, id="at the end of an interval the records' own times decide"),
        pytest.param(50, 10, 10, True, id="unless they were seen before it"),
    ],
)
def test_a_record_is_overdue_after_the_flush_interval(
    since: int, landed: float | None, seen: float, overdue: bool
) -> None:
    """`since`: first offset stamped within the interval of ten minutes; `landed`, `seen`: minutes ago."""
    now = at(HOUR, 30)
    landed_ms = 0 if landed is None else now - int(landed * MINUTE_MS)
    age = due.Age(now, 10 * MINUTE_MS, landed_ms, now - int(seen * MINUTE_MS))
    assert due.is_overdue(OPEN, {0: since}, age) is overdue


def test_a_topic_partition_that_the_tile_does_not_name_yet_waits_from_its_first_offset() -> None:
    age = due.Age(at(HOUR, 30), 10 * MINUTE_MS, 0, at(HOUR, 30))
    assert (due.is_overdue(OPEN, {7: 1}, age), due.is_overdue(OPEN, {7: 0}, age)) == (True, False)


def test_hours_are_requested_the_oldest_first_in_ranges_no_longer_than_a_run() -> None:
    long = hours.span("2026-01-05T00", "2026-01-06T01")
    two_days = [("2026-01-05T00", "2026-01-05T23"), ("2026-01-06T00", "2026-01-06T01")]
    assert due.split_into_runs(reversed(list(long)), 24) == two_days
    apart = ["2026-01-05T00", "2026-01-05T02"]
    assert due.split_into_runs(apart, 24) == [(hour, hour) for hour in apart]
    assert due.split_into_runs(hours.span("2026-01-01T00", "2026-01-31T23"), None) == [
        ("2026-01-01T00", "2026-01-31T23")
    ]
    assert due.split_into_runs([], 24) == []
