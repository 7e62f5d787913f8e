"""Many small commits of an open hour, and the hour once it is closed: on real parts."""

from typing import Any

import pytest

from s3lake.land.landing import Landing
from s3lake.land.observer import LandedHour, Run
from s3lake_tests.conftest import slow_after
from s3lake_tests.lake import START, Lake, at, values
from s3lake_tests.land.test_landing import AFTER, assert_all_landed


class Told:
    """What became of an hour's commits."""

    def __init__(self) -> None:
        self.outcomes: list[str] = []
        self.hours: list[LandedHour] = []

    def planned(self, *_: Any) -> None: ...

    def committed(self, _: Any) -> None: ...

    def merged(self, hour: str, outcome: str) -> None:
        self.outcomes.append(f"{hour}: {outcome}")

    def followed(self, outcome: str, *, behind: bool) -> None: ...

    def done(self, landed: LandedHour) -> None:
        self.hours.append(landed)


def landed_often(lake: Lake, topic: str, settings: str, times: int = 4) -> None:
    """The hour while it is open: a commit of 50 records of each of two topic-partitions, again and again."""
    for number in range(times):
        for partition in (0, 1):
            lake.produce(topic, values(50, first=number * 100 + partition * 50), at(START, 5 + number), partition)
        lake.landing(topic, settings, at(START, 6 + number)).land([START])


def closed(lake: Lake, topic: str, settings: str) -> tuple[Landing, Told]:
    """The run that finds the hour closed."""
    landing = lake.landing(topic, settings, AFTER)
    told = Told()
    landing.land([START], Run(told))
    return landing, told


@pytest.mark.parametrize(
    "settings",
    slow_after(
        1,
        "another format, which change/ and merge/test_merge.py try in memory",
        [
            "format: {type: json}",
            "format: {type: json, codec: gzip}",
            "format: {type: json_array, codec: zstd}",
            "format: {type: csv}",
            "format: {type: avro}",
            "format: {type: parquet}",
            "format: {type: json}, sidecars: {keys: parquet, headers: json}",
        ],
    ),
)
def test_a_closed_hour_ends_in_one_file_of_each_topic_partition(lake: Lake, settings: str) -> None:
    topic = lake.topic(partitions=2)
    landed_often(lake, topic, settings)
    landing, told = closed(lake, topic, settings)
    (landed,) = told.hours
    files = [file for manifest in landed.manifests for file in manifest.files if file.kind == "data"]
    assert [(file.partition, file.records) for file in files] == [(0, 200), (1, 200)]
    assert (len(landed.tile.commits), landed.tile.complete, landed.new) == (1, True, 1)
    assert_all_landed(lake, landing, 400)


def test_each_output_partition_of_each_topic_partition_ends_in_one_file(lake: Lake) -> None:
    topic, settings = lake.topic(partitions=2), "layout: {partition_by: [type]}, format: {type: parquet}"
    landed_often(lake, topic, settings)
    landing, told = closed(lake, topic, settings)
    assert told.outcomes == [f"{START}: 4 commits of 24 files became one of 6"]
    assert_all_landed(lake, landing, 400)
