"""What a landing tells while it works."""

from typing import Any

import pytest

from s3lake.errors import RecordError
from s3lake.index.commit.documents import Manifest
from s3lake.index.commit.protocol import Attempt
from s3lake.land.hour.landing import land, rewrite
from s3lake.land.topic.observer import LandedHour
from s3lake.land.topic.topic_sink import TopicSink
from s3lake_tests.land import at_hand
from s3lake_tests.land.unstaged import FIRST, SECOND, THIRD, UnstagedTopic


class RecordedCalls:
    """All calls of an observer, in order."""

    def __init__(self) -> None:
        self.lines: list[Any] = []

    def hour_planned(self, hour: str, offsets: int, batches: int) -> None:
        self.lines.append(("planned", hour, offsets, batches))

    def batch_committed(self, manifest: Manifest) -> None:
        self.lines.append(("committed", manifest.hour, sum(read.landed for read in manifest.partitions.values())))

    def hour_merged(self, hour: str, outcome: str) -> None:
        self.lines.append(("merged", hour, outcome))

    def table_followed(self, outcome: str, *, behind: bool) -> None:
        self.lines.append(("followed", outcome, behind))

    def hour_landed(self, landed: LandedHour) -> None:
        self.lines.append(("done", landed.tile.hour, landed.new))


def test_observers_see_the_plan_of_an_hour_then_its_commits_then_its_end() -> None:
    target = UnstagedTopic(batch_records=4).target()
    observer = RecordedCalls()
    land(target, [FIRST, SECOND], observer)
    for hour in (FIRST, SECOND):
        assert [line for line in observer.lines if line[1] == hour] == [
            ("planned", hour, 10, 3),
            *[("committed", hour, records) for records in (4, 4, 2)],
            ("done", hour, 3),
        ]
    assert [line[1] for line in observer.lines if line[0] == "done"] == [FIRST, SECOND]


def test_an_hour_of_which_nothing_is_left_is_done_without_a_plan() -> None:
    world = UnstagedTopic()
    land(world.target(), [FIRST, SECOND])
    target = world.target()
    observer = RecordedCalls()
    land(target, [FIRST, SECOND], observer)
    assert observer.lines == [("done", FIRST, 0), ("done", SECOND, 0)]


def test_the_hour_under_way_is_done_for_this_run_when_what_was_there_is_landed() -> None:
    target = UnstagedTopic().target(now_minute=130)
    observer = RecordedCalls()
    (landed,) = land(target, [THIRD], observer)
    assert observer.lines == [("planned", THIRD, 10, 1), ("committed", THIRD, 10), ("done", THIRD, 1)]
    assert not landed.tile.closed


def test_observers_see_visible_commits_when_an_error_ends_the_run() -> None:
    target = UnstagedTopic().target()
    observer = RecordedCalls()

    def refuse(attempt: Attempt) -> None:
        if attempt.tile.hour == SECOND:
            raise RecordError("refused")

    target.before = refuse
    with pytest.raises(RecordError):
        land(target, [FIRST, SECOND, THIRD], observer)
    assert observer.lines == [("planned", FIRST, 10, 1), ("planned", SECOND, 10, 1), ("committed", FIRST, 10)]


def test_an_hour_that_another_writer_was_faster_with_is_done_in_the_end() -> None:
    world = UnstagedTopic()
    target = world.target()
    observer = RecordedCalls()

    def overtake(attempt: Attempt) -> None:
        if attempt.tile.hour == FIRST:
            target.before = lambda _: None
            land(world.target(), [FIRST])

    target.before = overtake
    landed = land(target, [FIRST, SECOND], observer)
    assert [line for line in observer.lines if line[0] != "planned"] == [
        ("committed", SECOND, 10),
        ("done", SECOND, 1),
        ("done", FIRST, 0),
    ]
    assert [one.tile.hour for one in landed] == [FIRST, SECOND]


# -------------------------------------------------------------------------------------------------------------- the log


def logged(target: TopicSink, caplog: pytest.LogCaptureFixture, *hours: str) -> list[str]:
    """The lines of a landing that has no other observer."""
    with caplog.at_level("INFO", "s3lake.land"):
        land(target, hours)
    return caplog.messages


def test_each_line_of_the_log_names_sink_and_topic(caplog: pytest.LogCaptureFixture) -> None:
    world = at_hand.TopicInMemory(batch_records=2).produce(0, *[b'{"id":1}'] * 5)
    lines = logged(world.target(), caplog, FIRST)
    assert [line.split(f"events orders {FIRST}: ") for line in lines] == [
        ["", "5 offsets in 3 micro-batches"],
        *([["", f"landed {records}, 1 file"] for records in ("2 records", "2 records", "1 record")]),
        ["", "3 commits of 3 files became one of 1"],
    ]


def test_a_commit_in_the_log_and_its_hour_count_the_same_files(caplog: pytest.LogCaptureFixture) -> None:
    world = at_hand.TopicInMemory(sidecars={"keys": "json"}, errors={"tolerance": "all", "retry_interval": 0})
    world.produce(0, b'{"id":1}', b"no json")
    target = world.target()
    _, committed = logged(target, caplog, FIRST)
    sums = target.report(FIRST).sums
    assert (sums.files, sums.dead_files) == (2, 1)
    assert committed.endswith("landed 1 record, 2 files")


def test_an_hour_with_a_record_that_is_stamped_ahead_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    world = at_hand.TopicInMemory().produce(0, b'{"id":1}')
    world.produce(24 * 365, b'{"id":2}')
    world.produce(1, b'{"id":3}')
    *_, warning = logged(world.target(), caplog, FIRST)
    assert warning.startswith(f"events orders {FIRST}: offset 1 of partition 0 is stamped 2027-11-20T00:01:00Z: later")
    assert caplog.records[-1].levelname == "WARNING"


# ---------------------------------------------------------------------------------------------------------------- merge

UNJOINABLE = {"type": "csv", "header": False}


def merged(now_minute: float = 600, **settings: Any) -> RecordedCalls:
    """Return the calls for an hour of five records in commits of two."""
    world = at_hand.TopicInMemory(batch_records=2, **settings).produce(0, *[b'{"id":1}'] * 5)
    target = world.target(now_minute)
    observer = RecordedCalls()
    land(target, [FIRST], observer)
    return observer


def test_an_hour_of_several_commits_is_done_when_they_are_merged() -> None:
    assert merged().lines[-2:] == [("merged", FIRST, "3 commits of 3 files became one of 1"), ("done", FIRST, 4)]


def test_an_hour_whose_files_cannot_be_joined_is_done_and_the_reason_is_reported() -> None:
    *_, outcome, done = merged(format=UNJOINABLE).lines
    words = "its small files stay: of CSV without header lines each file may have columns of its own"
    assert (outcome, done) == (("merged", FIRST, words), ("done", FIRST, 3))


@pytest.mark.parametrize(("now_minute", "settings"), [(600, {"flush": {"merge": False}}), (30, {"format": UNJOINABLE})])
def test_an_hour_under_way_and_one_of_a_sink_that_merges_none_keep_their_commits(
    now_minute: float, settings: dict[str, Any]
) -> None:
    assert [line[0] for line in merged(now_minute, **settings).lines] == ["planned", *["committed"] * 3, "done"]


# ---------------------------------------------------------------------------------------------------------------- table


@pytest.fixture
def world() -> at_hand.TopicInMemory:
    """A sink whose table follows, and hours of two commits and of one."""
    world = at_hand.TopicInMemory(batch_records=2).produce(0, b"1", b"2", b"3")
    world.produce(1, b"4")
    world.table = at_hand.RecordingTable(world.store)
    return world


def test_the_table_is_brought_to_all_hours_of_a_run_first_and_then_to_each_whose_commits_changed(
    world: at_hand.TopicInMemory,
) -> None:
    land(world.target(), [FIRST, SECOND])
    followed = [hours for hours, _ in world.table.followed]
    assert followed == [(FIRST, SECOND), (FIRST,), (FIRST,), (FIRST,), (SECOND,)]


def test_a_snapshot_is_reported_after_the_commit_that_it_follows(world: at_hand.TopicInMemory) -> None:
    target = world.target()
    observer = RecordedCalls()
    land(target, [FIRST], observer)
    assert [line for line in observer.lines if line[0] != "planned"] == [
        ("committed", FIRST, 2),
        ("followed", "snapshot 1", False),
        ("followed", "snapshot 2", False),
        ("committed", FIRST, 1),
        ("followed", "snapshot 3", False),
        ("merged", FIRST, "2 commits of 2 files became one of 1"),
        ("followed", "snapshot 4", False),
        ("done", FIRST, 3),
    ]


def test_the_table_follows_a_rewrite_and_that_is_reported(world: at_hand.TopicInMemory) -> None:
    land(world.target(), [FIRST])
    target = world.target()
    observer = RecordedCalls()
    rewrite(target, FIRST, observer)
    assert ("followed", "snapshot 5", False) in observer.lines
    assert len(world.table.followed[-1][1]) == 2


def test_a_table_that_cannot_follow_is_reported_and_all_is_landed(world: at_hand.TopicInMemory) -> None:
    world.table.away = range(1, 99)
    target = world.target()
    observer = RecordedCalls()
    (landed,) = land(target, [FIRST], observer)
    assert landed.tile.complete
    assert set(observer.lines) >= {("followed", "the catalog is away", True)}
    assert "followed" in [line[0] for line in observer.lines][-3:]
