"""What a later version of s3lake has written is refused before anything of this one is written."""

import json
from collections.abc import Callable

import pytest

from s3lake.errors import DataLossError
from s3lake.land.hour.landing import land, rewrite
from s3lake.land.topic.topic_sink import TopicSink
from s3lake_tests.land.at_hand import FIRST, SECOND, THIRD, TopicInMemory


def grown() -> tuple[TopicInMemory, TopicSink]:
    """Two hours of columns, the second one open."""
    world = TopicInMemory(format={"type": "parquet"})
    for number in (0, 1):
        world.produce(number, b'{"id": 1}')
    target = world.target(now_minute=70)
    land(target, [FIRST, SECOND])
    return world, target


def test_fields_that_a_later_version_adds_to_the_index_are_read_past() -> None:
    world, target = grown()
    for key, (body, _) in list(world.store.objects.items()):
        if key.startswith(target.index.root) and key.endswith(".json"):
            world.store.put(key, json.dumps({**json.loads(body), "added later": {"id": "in words"}}).encode())
    world.produce(1, b'{"id": 2, "more": 1}')
    open_hour, _ = land(world.target(now_minute=130), [SECOND, THIRD])
    assert (open_hour.sums.landed, open_hour.tile.complete) == (2, True)


CHANGES: dict[str, Callable[[TopicSink], object]] = {
    "land": lambda target: land(target, [SECOND, THIRD]),
    "rewrite": lambda target: rewrite(target, SECOND),
    "clean": lambda target: target.clean(),
    "change what has landed": lambda target: target.require_exactly_once().hours(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_downgrade_is_refused_with_the_reason_before_anything_is_written(change: str) -> None:
    world, target = grown()
    key = target.index.head_key  # which a later version changes first
    world.store.put(key, json.dumps({**json.loads(world.store.objects[key][0]), "version": 2}).encode())
    world.produce(1, b'{"id": 2, "more": 1}')
    before = dict(world.store.objects)
    with pytest.raises(DataLossError, match=f"{key} has version 2, this s3lake knows 1: upgrade s3lake"):
        CHANGES[change](world.target())
    assert world.store.objects == before
    assert not world.store.uploads
