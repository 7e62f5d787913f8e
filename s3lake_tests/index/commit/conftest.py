"""A world with one topic-partition, in which actors run one after the other unless a test orders otherwise."""

from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from s3lake.index.commit.topic_index import TopicIndex
from s3lake_tests.index.commit.bucket import PACE
from s3lake_tests.index.commit.works import materialise
from s3lake_tests.index.commit.world import World
from s3lake_tests.kit.stores import CountedStore


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Between two tries of the index: what would have been slept."""
    slept: list[float] = []
    monkeypatch.setattr("s3lake.index.commit.topic_index.time", SimpleNamespace(sleep=slept.append))
    return slept


@pytest.fixture
def index() -> TopicIndex:
    """An empty index, in a bucket that counts requests."""
    return TopicIndex(CountedStore(), ".indexes/events", "orders", pace=PACE)


@pytest.fixture
def world() -> Iterator[World]:
    """Four records in hour 0, one in hour 1; it is minute 5."""
    with World(partitions=1) as world:
        world.kafka.produce(0, 1, 2, 3, 4, 61)
        yield world


@pytest.fixture
def ten_landed() -> Iterator[World]:
    """Ten records of topic-partition 0 and two of 1 in hour 0, landed while it lasts."""
    with World(partitions=2, mute=("I4", "I5")) as world:
        world.kafka.produce(0, *[1] * 10)
        world.kafka.produce(1, 1, 2)
        world.do("A", materialise(0), chunk=9)
        yield world
