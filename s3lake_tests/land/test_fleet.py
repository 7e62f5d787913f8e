"""Many topics landed together on real parts: one Spark job, a commit each; test_fleet_together.py tries the rest."""

from functools import partial
from typing import Any

import pytest

from s3lake.land import fleet
from s3lake.land.landing import Landing
from s3lake.land.observer import LandedHour
from s3lake_tests.lake import START, Lake, at, values

AFTER = at("2026-01-06T00")


class Topics:
    """Topics of a lake, landed together."""

    def __init__(self, lake: Lake, count: int) -> None:
        self.lake = lake
        self.topics = [lake.topic() for _ in range(count)]
        for number, topic in enumerate(self.topics):
            lake.produce(topic, values(80 + number), at(START, 5))

    def landing(self, topic: str) -> Landing:
        return self.lake.landing(topic, "flush: {count: 5000}", AFTER)

    def land(self) -> list[list[LandedHour]]:
        works = [partial(self.landing(topic).land, [START]) for topic in self.topics]
        return [outcome.result(300) for outcome in fleet.Fleet(works, self.lake.session).outcomes]

    def assert_all_landed(self) -> None:
        for number, topic in enumerate(self.topics):
            report = self.lake.verify(self.landing(topic))
            assert (report.differences, report.landed) == ((), 80 + number)


@pytest.mark.slow("a case more of a fleet, which test_fleet_together.py tries in memory")
def test_the_small_ranges_of_twenty_topics_are_one_spark_job_and_one_commit_each(lake: Lake) -> None:
    topics = Topics(lake, 20)
    tracker = lake.session().sparkContext.statusTracker()
    before = set(tracker.getJobIdsForGroup(None))
    assert [(one.tile.hour, one.new, len(one.tile.commits)) for (one,) in topics.land()] == [(START, 1, 1)] * 20
    assert len(set(tracker.getJobIdsForGroup(None)) - before) == 1
    topics.assert_all_landed()


def test_where_the_shared_job_fails_each_topic_has_one_of_its_own(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task that takes its worker along would fail all topics, again and again."""
    monkeypatch.setattr("s3lake.land.fleet._shared_out", lambda *_: [[_exit]])
    topics = Topics(lake, 3)
    topics.land()
    topics.assert_all_landed()


def _exit() -> Any:
    raise SystemExit(9)
