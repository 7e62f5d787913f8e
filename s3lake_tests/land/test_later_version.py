"""What a later version of s3lake has written is refused before anything of this one is written."""

import json
from collections.abc import Callable

import pytest

from s3lake.errors import DataLossError
from s3lake.land.landing import land, rewrite
from s3lake.land.target import TopicSink
from s3lake_tests.land.at_hand import FIRST, SECOND, THIRD, World


def grown() -> tuple[World, TopicSink]:
    """Two hours of columns, the second one open."""
    world = World(format={"type": "parquet"})
    for number in (0, 1):
        world.produce(number, b'{"id": 1}')
    landing = world.landing(now_minute=70)
    land(landing, [FIRST, SECOND])
    return world, landing


def test_fields_that_a_later_version_adds_to_the_index_are_read_past() -> None:
    world, landing = grown()
    for key, (body, _) in list(world.store.objects.items()):
        if key.startswith(landing.index.root) and key.endswith(".json"):
            world.store.put(key, json.dumps({**json.loads(body), "added later": {"id": "in words"}}).encode())
    world.produce(1, b'{"id": 2, "more": 1}')
    open_hour, _ = land(world.landing(now_minute=130), [SECOND, THIRD])
    assert (open_hour.sums.landed, open_hour.tile.complete) == (2, True)


CHANGES: dict[str, Callable[[TopicSink], object]] = {
    "land": lambda landing: land(landing, [SECOND, THIRD]),
    "rewrite": lambda landing: rewrite(landing, SECOND),
    "clean": lambda landing: landing.clean(),
    "change what has landed": lambda landing: landing.require_exactly_once().hours(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_downgrade_is_refused_with_the_reason_before_anything_is_written(change: str) -> None:
    world, landing = grown()
    key = landing.index.head_key  # which a later version changes first
    world.store.put(key, json.dumps({**json.loads(world.store.objects[key][0]), "version": 2}).encode())
    world.produce(1, b'{"id": 2, "more": 1}')
    before = dict(world.store.objects)
    with pytest.raises(DataLossError, match=f"{key} has version 2, this s3lake knows 1: upgrade s3lake"):
        CHANGES[change](world.landing())
    assert world.store.objects == before
    assert not world.store.uploads
