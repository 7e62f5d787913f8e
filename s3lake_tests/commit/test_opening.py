"""Opening and closing hours, request by request."""

from types import SimpleNamespace

import pytest

from s3lake.commit import opening
from s3lake.plan.tile import UNKNOWN_END, Span
from s3lake.source.offsets import TopicOffsets
from s3lake_tests.commit.kafka import hour, ms
from s3lake_tests.commit.test_traces import completes
from s3lake_tests.commit.works import materialise
from s3lake_tests.commit.world import World


def test_a_tile_that_shows_late_is_settled_and_closed_before_the_next_one_is_cut(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    world.do("A", materialise(0), until=completes).crash()
    head, etag = world.index.head()
    world.index.swap(world.index.head_key, head.changed(new=None), etag)  # as after another tile's creation
    key = world.index.tile_key(hour(0))
    hidden = {key: world.bucket.objects.pop(key)}
    late = SimpleNamespace(sleep=lambda seconds: seconds and world.bucket.objects.update(hidden))
    monkeypatch.setattr("s3lake.commit.index.time", late)
    opening.open_hour(world.index, world.kafka, hour(1))

    assert world.index.existing_tile(hour(0))[0].partitions == {0: Span(0, 5, 5)}
    assert world.index.existing_tile(hour(1))[0].partitions == {0: Span(5, 5)}


def test_kafka_is_told_whether_the_topic_was_there_before(world: World, monkeypatch: pytest.MonkeyPatch):
    told: list[bool] = []

    def snapshot(topic: str, hour: str, *, known: bool = False) -> TopicOffsets:
        told.append(known)
        return type(world.kafka).snapshot(world.kafka, topic, hour)

    monkeypatch.setattr(world.kafka, "snapshot", snapshot)
    opening.open_hour(world.index, world.kafka, hour(0))
    opening.open_hour(world.index, world.kafka, hour(1))

    assert told == [False, True, True]


def test_a_tile_that_was_announced_is_written_before_another_is_announced(world: World):
    opening.open_hour(world.index, world.kafka, hour(0))
    announced = opening.open_hour(world.index, world.kafka, hour(2))
    del world.bucket.objects[world.index.tile_key(hour(2))]  # as when its creator died before it wrote it
    opening.open_hour(world.index, world.kafka, hour(1))

    assert announced is not None
    assert announced.new is not None
    assert world.index.existing_tile(hour(2))[0] == announced.new


@pytest.mark.parametrize(
    ("since", "burnt"), [(None, {0: 5}), (hour(0), {0: UNKNOWN_END})], ids=["whole", "created again"]
)
def test_names_that_nobody_knows_the_end_of_are_burnt_to_the_end_of_a_log_that_was_never_shorter(
    since: str | None, burnt: object, world: World
):
    world.minute = 65
    world.do("A", materialise(0))
    tile, etag = world.index.existing_tile(hour(0))
    world.index.swap_tile(tile.changed(burnt={0: UNKNOWN_END}), etag)
    head, etag = world.index.head()
    world.index.swap(world.index.head_key, head.changed(since=since), etag)
    opening.open_hour(world.index, world.kafka, hour(1))

    assert world.index.existing_tile(hour(1))[0].burnt == burnt


def test_closing_an_hour_notes_a_record_that_is_stamped_ahead_of_the_clock(world: World):
    world.kafka.logs[0].stamps = [ms(5), ms(7 * 24 * 60), ms(6), ms(65)]
    opening.open_hour(world.index, world.kafka, hour(0), now_ms=ms(10))
    opening.open_hour(world.index, world.kafka, hour(1), now_ms=ms(70))

    assert world.index.existing_tile(hour(0))[0].stamped_ahead == {0: (1, ms(7 * 24 * 60))}
    assert world.index.existing_tile(hour(1))[0].stamped_ahead == {0: (1, ms(7 * 24 * 60))}


def test_an_hour_of_the_past_notes_no_record_of_a_later_one(world: World):
    world.kafka.logs[0].stamps = [ms(5), ms(7 * 24 * 60)]
    opening.open_hour(world.index, world.kafka, hour(0), now_ms=ms(8 * 24 * 60))
    opening.open_hour(world.index, world.kafka, hour(1), now_ms=ms(8 * 24 * 60))

    assert world.index.existing_tile(hour(0))[0].stamped_ahead == {}
