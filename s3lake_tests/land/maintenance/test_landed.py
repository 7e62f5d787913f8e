"""What Spark has landed, changed on real parts: verify finds each record, or that it was erased."""

from s3lake.land.maintenance.compact import compact
from s3lake.land.maintenance.condition import Condition
from s3lake.land.maintenance.dead_letters import ReasonFilter
from s3lake.land.maintenance.erase import EraseConditions, erase
from s3lake.land.maintenance.reformat import reformat
from s3lake.land.maintenance.replay import replay
from s3lake.land.maintenance.retention import expire
from s3lake_tests.lake import START, Lake, at, values
from s3lake_tests.land.test_landing import AFTER


def test_an_hour_is_compacted_reformatted_freed_of_some_rows_and_expires(lake: Lake) -> None:
    topic = lake.topic(partitions=2)
    for partition in (0, 1):
        lake.produce(topic, [*values(300, first=1000 * partition), b"no JSON t1"], at(START, 5), partition)
    settings = "errors: {tolerance: all}, flush: {count: 50}"
    landing = lake.landing(topic, settings, AFTER)
    landing.land([START])
    assert compact(landing.target.require_exactly_once(), START).left == len(lake.objects()) == 4
    landing = lake.landing(topic, f"{settings}, format: {{type: parquet}}", AFTER)
    assert reformat(landing.target.require_exactly_once(), START).blocker == ""
    report = lake.verify(landing)
    assert (report.clean, report.landed, report.dead_letters) == (True, 600, 2), report.differences
    person = EraseConditions(Condition("type = 't1'"), Condition("contains(value, 't1')"))
    assert erase(landing.target.require_exactly_once(), START, person).records == 202
    report = lake.verify(landing)
    assert (report.clean, report.landed, report.dead_letters) == (True, 400, 0), report.differences
    expire(landing.target.require_exactly_once(), START)
    assert (lake.objects(), lake.uploads()) == ([], [])
    report = lake.verify(landing)
    assert report.clean, report.differences
    assert [one.erased for one in report.checked] == [301, 301]
    assert landing.land([START])[0].tile.complete
    assert lake.objects() == []


def test_dead_letters_land_once_the_sink_accepts_them(lake: Lake) -> None:
    topic = lake.filled([b'{"at": %d}' % at(START, 5), b'{"id": 1}', b"no JSON"], at(START, 5))
    by_time = '{template: "{topic}/{time:yyyy-MM-dd}/{partition}-{offset}", time: {source: field, field: at}}'
    (landed,) = lake.landing(topic, f"layout: {by_time}, errors: {{tolerance: all}}", AFTER).land([START])
    assert (landed.sums.landed, landed.sums.dead) == (1, 2)
    loose = lake.landing(topic, 'layout: {template: "{topic}/{partition}-{offset}"}, errors: {tolerance: all}', AFTER)
    (done,) = replay(loose.target, START, ReasonFilter(), loose.spark)
    assert (done.chosen, done.landed) == (2, 1)
    report = lake.verify(loose)
    assert (report.differences, report.landed, report.dead_letters) == ((), 2, 1)
    assert lake.uploads() == []
