"""Many topics landed together on real parts: one Spark job, a commit each, and errors that stay with their topic."""

import threading
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import pytest

from s3lake.convert.values import Conversion
from s3lake.errors import RecordError, S3LakeError
from s3lake.land import binding
from s3lake.land.fleet import TopicLanding, together
from s3lake.land.landing import Landing
from s3lake.land.observer import LandedHour
from s3lake.land.task.pipeline import Work
from s3lake.sink import Sink
from s3lake_tests.lake import START, Lake, at, values

NINE = "2026-01-05T09"
AFTER = at("2026-01-06T00")
SETTINGS = "flush: {count: 5000}"


class Fleet:
    """Topics of a lake, landed together."""

    def __init__(self, lake: Lake, count: int, settings: str = SETTINGS) -> None:
        self.lake, self.settings = lake, settings
        self.topics = [lake.topic() for _ in range(count)]

    def landing(self, topic: str) -> Landing:
        return self.lake.landing(topic, self.settings, AFTER)

    def land(self, wanted: Sequence[str] = (START,)) -> list[list[LandedHour] | BaseException]:
        topic_landings = [TopicLanding(one, lambda one=one: one.land(wanted)) for one in map(self.landing, self.topics)]
        under_way = together(topic_landings, self.lake.session)
        return [outcome.exception(300) or outcome.result() for outcome in under_way.outcomes]

    def produce(self, records: int = 80, hour: str = START) -> None:
        for number, topic in enumerate(self.topics):
            self.lake.produce(topic, values(records + number), at(hour, 5))

    def assert_all_landed(self, topic: str, records: int) -> None:
        report = self.lake.verify(self.landing(topic))
        assert (report.differences, report.landed) == ((), records)


@pytest.fixture
def fleet(lake: Lake) -> Fleet:
    return Fleet(lake, 20)


def jobs(lake: Lake) -> set[int]:
    return set(lake.session().sparkContext.statusTracker().getJobIdsForGroup(None))


@pytest.mark.slow("a case more of a fleet, which test_fleet_together.py tries in memory")
def test_the_small_ranges_of_twenty_topics_are_one_spark_job_and_one_commit_each(fleet: Fleet) -> None:
    fleet.produce()
    before = jobs(fleet.lake)
    landed = fleet.land()
    assert len(jobs(fleet.lake) - before) == 1
    for number, (topic, hours) in enumerate(zip(fleet.topics, landed, strict=True)):
        assert isinstance(hours, list)
        assert [(one.tile.hour, one.new, len(one.tile.commits), one.sums.landed) for one in hours] == [
            (START, 1, 1, 80 + number)
        ]
        fleet.assert_all_landed(topic, 80 + number)


@pytest.mark.slow("a case more of a fleet, which test_fleet_together.py tries in memory")
def test_several_hours_of_many_topics_are_one_job_each(fleet: Fleet) -> None:
    fleet.produce(10)
    fleet.produce(10, NINE)
    before = jobs(fleet.lake)
    landed = fleet.land([START, NINE])
    assert len(jobs(fleet.lake) - before) == 2
    assert all(isinstance(one, list) and [hour.new for hour in one] == [1, 1] for one in landed)


@pytest.mark.slow("a case more of a fleet, which test_fleet_together.py tries in memory")
def test_a_topic_whose_record_is_refused_fails_alone(fleet: Fleet) -> None:
    fleet.produce()
    poisoned = fleet.topics[7]
    fleet.lake.produce(poisoned, [b"{"], at(START, 6))
    landed = fleet.land()
    failed = [one for one in landed if isinstance(one, BaseException)]
    assert landed[7] is failed[0]
    assert isinstance(failed[0], RecordError)
    assert len(failed) == 1
    assert f"record refused in topic '{poisoned}', partition 0, offset 87" in str(failed[0])
    assert fleet.landing(poisoned).index.tile(START)[0].commits == ()  # type: ignore[index]
    assert fleet.lake.uploads() == []
    for number, topic in enumerate(fleet.topics):
        if topic != poisoned:
            fleet.assert_all_landed(topic, 80 + number)


@pytest.mark.slow("a case more of a fleet, which test_fleet_together.py tries in memory")
def test_a_topic_that_is_not_there_fails_alone(fleet: Fleet) -> None:
    fleet.produce()
    fleet.lake.delete(fleet.topics[3])
    landed = fleet.land()
    assert [number for number, one in enumerate(landed) if isinstance(one, S3LakeError)] == [3]
    assert "does not exist" in str(landed[3])


@pytest.mark.slow("a case more of a fleet, which test_fleet_together.py tries in memory")
def test_a_mistake_in_the_code_that_one_topic_meets_is_no_other_s(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet.produce()
    chosen, made = fleet.topics[2], binding.work

    def of(sink: Sink, topic: str, *args: Any, **settings: Any) -> Work:
        work = made(sink, topic, *args, **settings)
        return (
            replace(
                work,
                conversion=_Broken(
                    **{one.name: getattr(work.conversion, one.name) for one in fields(Conversion) if one.init}
                ),
            )
            if topic == chosen
            else work
        )

    monkeypatch.setattr("s3lake.land.binding.work", of)
    landed = fleet.land()
    assert [number for number, one in enumerate(landed) if isinstance(one, BaseException)] == [2]
    assert str(landed[2]) == f"landing topic {chosen!r}: ZeroDivisionError: of the test"


@pytest.mark.slow("a case more of a fleet, which test_fleet_together.py tries in memory")
def test_a_large_topic_has_a_job_of_its_own(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("s3lake.land.fleet.SMALL", 1_000)
    fleet = Fleet(lake, 5)
    fleet.produce()
    lake.produce(fleet.topics[0], values(2_000), at(START, 6))
    before = jobs(lake)
    landed = fleet.land()
    assert len(jobs(lake) - before) == 2
    assert all(isinstance(one, list) for one in landed)
    fleet.assert_all_landed(fleet.topics[0], 2_080)


def test_where_the_shared_job_fails_each_topic_has_one_of_its_own(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task that takes its worker along would fail all topics, again and again."""
    monkeypatch.setattr("s3lake.land.fleet._shared_out", lambda *_: [[_exit]])
    fleet = Fleet(lake, 3)
    fleet.produce()
    landed = fleet.land()
    assert all(isinstance(one, list) for one in landed)
    for number, topic in enumerate(fleet.topics):
        fleet.assert_all_landed(topic, 80 + number)


class _Broken(Conversion):
    def __call__(self, *_: object) -> Any:
        raise ZeroDivisionError("of the test")


def _exit() -> Any:
    raise SystemExit(9)


@pytest.mark.slow("a case more of a fleet, which test_fleet_together.py tries in memory")
def test_more_topics_than_land_at_once_are_all_landed(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("s3lake.land.fleet.MOST", 3)
    fleet = Fleet(lake, 8)
    fleet.produce()
    before = jobs(lake)
    assert all(isinstance(one, list) for one in fleet.land())
    assert 3 <= len(jobs(lake) - before) <= 8
    assert threading.active_count() < 50


@pytest.mark.slow("a case more of a fleet, which test_fleet_together.py tries in memory")
def test_columns_that_no_sink_has_yet_are_seen_by_one_look_for_all(lake: Lake) -> None:
    fleet = Fleet(lake, 6, "format: {type: parquet}")
    fleet.produce()
    before = jobs(lake)
    assert all(isinstance(one, list) for one in fleet.land())
    assert len(jobs(lake) - before) == 2
    for number, topic in enumerate(fleet.topics):
        fleet.assert_all_landed(topic, 80 + number)


@pytest.mark.slow("a case more of a fleet, which test_fleet_together.py tries in memory")
def test_sinks_with_sql_are_landed_beside_the_others(lake: Lake) -> None:
    fleet = Fleet(lake, 3, "sql: {select: 'id, type'}")
    fleet.produce()
    landed = fleet.land()
    assert [one[0].sums.landed for one in landed if isinstance(one, list)] == [80, 81, 82]
