"""What Spark has landed, changed on real parts: verify finds each record, or that it was erased."""

from s3lake.land.change.committed_dead_letters import ReasonFilter
from s3lake.land.change.condition import Condition
from s3lake.land.change.erase import EraseConditions, erase_hour
from s3lake.land.change.replay import replay
from s3lake.land.hour.landing import land
from s3lake_tests.kit.lake import AFTER, START, Lake, assert_all_landed, at, values
from s3lake_tests.land.change.parts import run_change


def test_an_hour_is_compacted_reformatted_freed_of_some_rows_and_expires(lake: Lake) -> None:
    topic = lake.topic(partitions=2)
    for partition in (0, 1):
        lake.produce(topic, [*values(300, first=1000 * partition), b"no JSON t1"], at(START, 5), partition)
    settings = "errors: {tolerance: all}, flush: {count: 50}"
    target = lake.target(topic, settings, AFTER)
    land(target, [START])
    run_change("compact", target.require_exactly_once(), START)
    assert len(lake.objects()) == 4
    target = lake.target(topic, f"{settings}, format: {{type: parquet}}", AFTER)
    assert run_change("reformat", target.require_exactly_once(), START).blocker == ""
    report = lake.verify(target)
    assert (report.clean, report.landed, report.dead_letters) == (True, 600, 2), report.differences
    person = EraseConditions(Condition("type = 't1'"), Condition("contains(value, 't1')"))
    assert erase_hour(target.require_exactly_once(), START, person).records == 202
    report = lake.verify(target)
    assert (report.clean, report.landed, report.dead_letters) == (True, 400, 0), report.differences
    run_change("retention", target.require_exactly_once(), START)
    assert (lake.objects(), lake.uploads()) == ([], [])
    report = lake.verify(target)
    assert report.clean, report.differences
    assert [one.erased for one in report.checked] == [301, 301]
    assert land(target, [START])[0].tile.complete
    assert lake.objects() == []


def test_dead_letters_land_once_the_sink_accepts_them(lake: Lake) -> None:
    topic = lake.filled([b'{"at": %d}' % at(START, 5), b'{"id": 1}', b"no JSON"], at(START, 5))
    by_time = '{template: "{topic}/{time:yyyy-MM-dd}/{partition}-{offset}", time: {source: field, field: at}}'
    (landed,) = land(lake.target(topic, f"layout: {by_time}, errors: {{tolerance: all}}", AFTER), [START])
    assert (landed.sums.landed, landed.sums.dead) == (1, 2)
    loose = lake.target(topic, 'layout: {template: "{topic}/{partition}-{offset}"}, errors: {tolerance: all}', AFTER)
    (done,) = replay(loose, START, ReasonFilter())
    assert (done.chosen, done.landed) == (2, 1)
    report = lake.verify(loose)
    assert (report.differences, report.landed, report.dead_letters) == ((), 2, 1)
    assert lake.uploads() == []


def test_the_small_commits_of_a_closed_hour_become_one_file_of_each_output_partition(lake: Lake) -> None:
    topic, settings = lake.topic(partitions=2), "layout: {partition_by: [type]}, format: {type: parquet}"
    for number in range(3):
        for partition in (0, 1):
            lake.produce(topic, values(50, first=number * 100 + partition * 50), at(START, 5 + number), partition)
        land(lake.target(topic, settings, at(START, 6 + number)), [START])
    target = lake.target(topic, settings, AFTER)
    (landed,) = land(target, [START])
    files = [file for manifest in landed.manifests for file in manifest.files]
    assert (len(landed.tile.commits), landed.tile.complete, landed.new) == (1, True, 1)
    assert sorted((file.partition, file.records) for file in files) == [(0, 50)] * 3 + [(1, 50)] * 3
    assert_all_landed(lake, target, 300)
