"""docs/scale.md and docs/costs.md count as many requests to S3 as are sent."""

import re

import pytest

from s3lake.index.store import trial
from s3lake.index.store.s3_store import S3Store
from s3lake.index.store.upload import PART_BYTES
from s3lake.land.hour.landing import land
from s3lake.land.topic.topic_sink import TopicSink
from s3lake_tests.docs.documents import ROOT
from s3lake_tests.kit.lake import Lake, at, values

TEN, ELEVEN, TWELVE = "2026-01-05T10", "2026-01-05T11", "2026-01-05T12"
PARTITIONS, COMMITS = 4, 12


def read_numbers(what: str) -> list[int]:
    """The numbers of a row of the table in scale.md."""
    page = (ROOT / "docs/scale.md").read_text("utf-8")
    [row] = re.findall(rf"^\| {re.escape(what)}.*\| (.*) \|$", page, re.MULTILINE)
    return [int(number) for number in re.findall(r"\d+", row)]


def count_requests(target: TopicSink) -> int:
    """The requests that a landing has sent."""
    return sum(target.requests.values())


def produce(lake: Lake, topic: str, hour: str, minutes: int) -> None:
    """Ten records in each topic-partition."""
    for partition in range(PARTITIONS):
        lake.produce(topic, values(10), at(hour, minutes), partition)


def land_at(lake: Lake, topic: str, hour: str, now_ms: int) -> int:
    """Land an hour as a command does, and return its requests."""
    target = lake.target(topic, f"start: {TEN}", now_ms)
    land(target, [hour])
    return count_requests(target)


def test_a_file_is_one_part_up_to_the_size_that_the_page_names() -> None:
    assert read_numbers("a data file")[-1] * 2**20 == PART_BYTES


@pytest.mark.slow("thirteen landings and a merge, whose requests are counted; test_landing.py counts a commit")
def test_an_hour_of_small_commits_and_its_merge_cost_what_the_pages_count(lake: Lake) -> None:
    file, commit = read_numbers("a data file")[0], read_numbers("a commit")[0]
    opening = range(read_numbers("a new hour")[0], read_numbers("a new hour")[1] + 1)
    topic = lake.topic(PARTITIONS)
    produce(lake, topic, TEN, 5)
    land_at(lake, topic, TEN, at(ELEVEN, 6))  # which tests the store, and begins the topic
    sent = []
    for number in range(COMMITS):
        produce(lake, topic, ELEVEN, 5 * number)
        sent.append(land_at(lake, topic, ELEVEN, at(ELEVEN, 5 * number + 4)))
    small = commit + PARTITIONS * file
    assert sent[1:] == [small] * (COMMITS - 1)
    assert sent[0] - small in opening
    assert land_at(lake, topic, ELEVEN, at(ELEVEN, 59)) == read_numbers("a landing that finds nothing new")[-1]

    merging = land_at(lake, topic, ELEVEN, at(TWELVE, 6))
    [each] = re.findall(r"this needs ([\d.]+) requests for each", (ROOT / "docs/costs.md").read_text("utf-8"))
    assert merging == float(each) * COMMITS * PARTITIONS
    a_small_file = read_numbers("the merge of the small files of an hour")[0]
    assert round(merging / (COMMITS * PARTITIONS)) == a_small_file


def test_the_trial_of_a_store_has_the_requests_that_the_page_names(lake: Lake) -> None:
    first, other = read_numbers("the [test of the store]")
    for sink, expected in (("a", first), ("b", other)):
        store = S3Store(lake.connection, lake.bucket)
        trial.ensure_tried(store, f".indexes/{sink}", f"{sink}/")
        assert sum(store.requests.values()) == expected
