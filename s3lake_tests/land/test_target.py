"""A sink and topic, for what changes landed hours."""

import pytest

from s3lake.errors import ConfigurationError, FencedError
from s3lake.land.target import TopicSink, retry_fenced
from s3lake_tests.land.at_hand import World


def test_the_target_of_a_landing_has_its_index_and_stores() -> None:
    landing = World().landing()
    assert landing.target.require_exactly_once() == TopicSink(landing.sink, landing.index, landing.stores)


def test_a_sink_that_is_not_exactly_once_cannot_be_changed_commit_by_commit() -> None:
    with pytest.raises(ConfigurationError, match="sink events has exactly_once: false"):
        World(exactly_once=False).landing().target.require_exactly_once()


def test_a_topic_that_was_never_landed_has_no_hours() -> None:
    assert World().landing().target.hours() == []


def test_a_change_gives_up_if_others_are_always_faster() -> None:
    tries = []

    @retry_fenced
    def change() -> None:
        tries.append(len(tries) + 1)
        raise FencedError("another writer was first")

    with pytest.raises(FencedError):
        change()
    assert tries == [1, 2, 3, 4, 5]
