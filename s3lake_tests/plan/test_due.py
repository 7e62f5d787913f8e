"""Which hours a sensor asks for."""

from dataclasses import replace

import pytest

from s3lake import hours
from s3lake.plan import due
from s3lake.plan.tile import Span, Tile

HOUR = "2026-01-05T10"
GRACE_MS = 5 * 60_000
MINUTE_MS = 60_000
POLICY = due.Policy(start="2026-01-05T08", grace_ms=GRACE_MS, flush_count=100, flush_bytes=10_000)

LANDED = Tile(HOUR, {0: Span(0, 50, 50)}, commits=("a",))
OPEN = Tile(HOUR, {0: Span(0, 50)}, commits=("a",))


def at(hour: str, minutes: float = 0) -> int:
    return hours.start_ms(hour) + int(minutes * MINUTE_MS)


class TestIncomplete:
    """Hours with a tile that somebody has to come back to."""

    DURING = at(HOUR, 30)

    @pytest.mark.parametrize(
        "tile",
        [
            pytest.param(Tile(HOUR, {0: Span(0, 20, 50)}), id="closed before all of it was landed"),
            pytest.param(LANDED.changed(pending="b"), id="a commit is pending"),
            pytest.param(LANDED.changed(garbage=("b",)), id="garbage is left"),
            pytest.param(OPEN.changed(pending="b"), id="open, and a commit is pending"),
            pytest.param(OPEN.changed(garbage=("b",)), id="open, and garbage is left"),
            pytest.param(Tile(HOUR, {0: Span(0, 50, 50), 1: Span(0, 0, 9)}), id="one topic-partition lags"),
        ],
    )
    def test_is_asked_for_again_at_once(self, tile: Tile) -> None:
        assert due.incomplete([tile], self.DURING, GRACE_MS) == [HOUR]

    def test_a_complete_hour_is_left_alone(self) -> None:
        assert due.incomplete([LANDED], at("2026-02-01T00"), GRACE_MS) == []

    def test_the_hour_under_way_is_not_incomplete(self) -> None:
        assert due.incomplete([OPEN], self.DURING, GRACE_MS) == []

    def test_an_open_hour_is_closed_when_its_grace_is_over_and_not_before(self) -> None:
        assert due.incomplete([OPEN], at(HOUR, 65) - 1, GRACE_MS) == []
        assert due.incomplete([OPEN], at(HOUR, 65), GRACE_MS) == [HOUR]


class TestUnopened:
    """Hours up to now that have no tile."""

    def test_an_empty_index_wants_everything_since_the_start(self) -> None:
        assert due.unopened(None, POLICY, at(HOUR, 1)) == ["2026-01-05T08", "2026-01-05T09", HOUR]

    def test_a_start_in_the_future_wants_nothing(self) -> None:
        assert due.unopened(None, POLICY, at("2026-01-05T07", 59)) == []

    def test_while_the_last_hour_lasts_nothing_is_missing(self) -> None:
        assert due.unopened(HOUR, POLICY, at(HOUR, 59)) == []

    def test_at_the_turn_the_grace_is_waited_for(self) -> None:
        assert due.unopened(HOUR, POLICY, at(HOUR, 64)) == []

    def test_after_the_grace_the_hour_before_and_the_new_one_are_one_range(self) -> None:
        wanted = due.unopened(HOUR, POLICY, at(HOUR, 65))
        assert wanted == [HOUR, "2026-01-05T11"]
        assert due.chunks(wanted, 24) == [(HOUR, "2026-01-05T11")]

    def test_after_an_outage_every_hour_since_is_wanted(self) -> None:
        assert due.unopened(HOUR, POLICY, at("2026-01-05T13", 2)) == [
            HOUR,
            "2026-01-05T11",
            "2026-01-05T12",
            "2026-01-05T13",
        ]

    def test_a_tile_of_a_clock_that_ran_ahead_is_waited_for(self) -> None:
        assert due.unopened("2026-01-05T12", POLICY, at(HOUR, 30)) == []


class TestBacklog:
    def test_counts_up_to_the_log_end_while_the_tile_is_open(self) -> None:
        assert due.backlog(OPEN, {0: 80}) == {0: 30}

    def test_counts_up_to_the_edge_when_it_is_closed(self) -> None:
        assert due.backlog(Tile(HOUR, {0: Span(0, 20, 50)}), {0: 80, 1: 7}) == {0: 30}

    def test_leaves_out_topic_partitions_without_any(self) -> None:
        assert due.backlog(OPEN, {0: 50}) == {}

    def test_knows_a_topic_partition_that_the_tile_does_not_name_yet(self) -> None:
        assert due.backlog(OPEN, {0: 50, 1: 7}) == {1: 7}

    def test_a_topic_partition_that_kafka_does_not_name_has_none(self) -> None:
        assert due.backlog(OPEN, {}) == {}


def waiting(records: int = 0, size: int = 0, partitions: int = 1, overdue: bool = False) -> due.Waiting:
    return due.Waiting(records, size, partitions, overdue)


class TestFlush:
    """When the hour under way is landed."""

    def test_nothing_waits_nothing_is_due(self) -> None:
        assert due.flush_due(waiting(overdue=True), POLICY) is None

    def test_enough_records_for_one_file_of_each_topic_partition(self) -> None:
        assert due.flush_due(waiting(records=199, partitions=2), POLICY) is None
        reason = due.flush_due(waiting(records=200, partitions=2), POLICY)
        assert reason == due.Reason("count", "200 records wait, flush.count is 100 a topic-partition")

    def test_no_number_of_records_is_enough_where_files_have_none(self) -> None:
        policy = replace(POLICY, flush_count=None)
        assert due.flush_due(waiting(records=10**9), policy) is None
        assert due.flush_due(waiting(records=10**9, size=10_000), policy) is not None

    def test_enough_bytes_for_one_file_of_each_topic_partition(self) -> None:
        assert due.flush_due(waiting(records=2, size=19_999, partitions=2), POLICY) is None
        reason = due.flush_due(waiting(records=2, size=20_000, partitions=2), POLICY)
        assert reason == due.Reason("size", "about 20000 bytes wait, flush.size is 10000 a topic-partition")

    def test_a_record_that_has_waited_long_enough(self) -> None:
        assert due.flush_due(waiting(records=1), POLICY) is None
        assert due.flush_due(waiting(records=1, overdue=True), POLICY) == due.WAITED


class TestOverdue:
    """Whether something has waited for the flush interval, here ten minutes."""

    NOW = at(HOUR, 30)

    def overdue(self, since: int, landed: float | None = None, seen: float = 0) -> bool:
        """`since`: first offset stamped within the interval; the others: minutes ago."""
        landed_ms = self.NOW - int(landed * MINUTE_MS) if landed is not None else 0
        age = due.Age(self.NOW, 10 * MINUTE_MS, landed_ms, self.NOW - int(seen * MINUTE_MS))
        return due.overdue(OPEN, {0: since}, age)

    def test_records_stamped_within_the_interval_may_wait(self) -> None:
        assert not self.overdue(since=50)

    def test_a_record_stamped_before_the_interval_may_not(self) -> None:
        assert self.overdue(since=51)

    def test_whatever_stamps_say_the_tile_is_landed_once_an_interval_only(self) -> None:
        assert not self.overdue(since=51, landed=9)
        assert self.overdue(since=51, landed=10)

    def test_stamps_from_the_future_delay_a_backlog_by_one_interval_at_most(self) -> None:
        """Offset 3 is stamped next year: no later offset ever looks older than the interval."""
        assert not self.overdue(since=3, seen=9)
        assert self.overdue(since=3, seen=10)

    def test_at_the_end_of_an_interval_the_records_own_times_decide(self) -> None:
        assert not self.overdue(since=50, landed=10)
        assert self.overdue(since=50, landed=10, seen=10)

    def test_a_topic_partition_that_the_tile_does_not_name_yet_waits_from_its_first_offset(self) -> None:
        assert due.overdue(OPEN, {7: 1}, due.Age(self.NOW, 10 * MINUTE_MS, 0, self.NOW))
        assert not due.overdue(OPEN, {7: 0}, due.Age(self.NOW, 10 * MINUTE_MS, 0, self.NOW))


class TestChunks:
    def test_are_the_oldest_first_and_never_longer_than_a_run(self) -> None:
        wanted = list(hours.span("2026-01-05T00", "2026-01-06T01"))
        assert due.chunks(reversed(wanted), 24) == [
            ("2026-01-05T00", "2026-01-05T23"),
            ("2026-01-06T00", "2026-01-06T01"),
        ]

    def test_do_not_span_hours_that_are_not_wanted(self) -> None:
        assert due.chunks(["2026-01-05T00", "2026-01-05T02"], 24) == [
            ("2026-01-05T00", "2026-01-05T00"),
            ("2026-01-05T02", "2026-01-05T02"),
        ]

    def test_without_a_limit_one_run_takes_all(self) -> None:
        wanted = hours.span("2026-01-01T00", "2026-01-31T23")
        assert due.chunks(wanted, None) == [("2026-01-01T00", "2026-01-31T23")]

    def test_nothing_wanted_nothing_asked(self) -> None:
        assert due.chunks([], 24) == []
