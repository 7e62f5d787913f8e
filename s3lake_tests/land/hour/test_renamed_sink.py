"""A sink that gets another name: it refuses to land over its own objects until `index.name` has its former one."""

import pytest

from s3lake.errors import ForeignObjectError
from s3lake.land.hour.landing import land
from s3lake_tests.kit.lake import START, Lake, at, values

FORMER, NEW = "events", "orders"


def test_a_renamed_sink_is_refused_with_the_remedy_and_then_lands_nothing_twice(lake: Lake) -> None:
    topic = lake.filled(values(10), at(START, 5))
    land(lake.target(topic, now_ms=at(START, 30), name=FORMER), [START])
    before = {key: lake.body(key) for key in lake.objects()}
    lake.produce(topic, values(7, first=10), at(START, 40))

    with pytest.raises(ForeignObjectError, match=r"if the sink had another name, set index\.name to that name"):
        land(lake.target(topic, now_ms=at(START, 90), name=NEW), [START])
    assert {key: lake.body(key) for key in lake.objects()} == before
    assert lake.uploads() == []

    renamed = lake.target(topic, f"flush: {{merge: false}}, index: {{name: {FORMER}}}", at(START, 90), NEW)
    (landed,) = land(renamed, [START])
    assert landed.tile.complete
    ranges = [(read.start, read.end) for manifest in landed.manifests for read in manifest.partitions.values()]
    assert ranges == [(0, 10), (10, 17)]
    report = lake.verify(renamed)
    assert (report.differences, report.landed) == ((), 17)
    listed = {file.key for manifest in landed.manifests for file in manifest.files}
    assert listed == set(lake.objects()) > before.keys()
