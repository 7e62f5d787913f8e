"""Buckets that earlier states of s3lake have left: read, landed on and verified by the present one.

`README.md` beside this says what each holds, and `make.py` makes them.
"""

import json
from collections.abc import Callable

import pytest

from s3lake.errors import DataLossError
from s3lake.land.landing import Landing
from s3lake_tests.lake import START, Lake, at
from s3lake_tests.land.at_hand import FIRST, SECOND, THIRD, World
from s3lake_tests.upgrades import make

STATES = sorted(path.parent.name for path in make.HERE.glob("*/metadata.json"))
AFTER = at("2026-01-05T12")


def restored(lake: Lake, state: str, name: str) -> str:
    """A bucket as the state left it, and its topic as it was; Kafka gives the topic an id of its own."""
    topic = make.topic_of(state, name)
    metadata = json.loads((make.HERE / state / "metadata.json").read_text())
    for key in metadata:
        body = (make.HERE / state / "bucket" / key).read_bytes()
        lake.client.put_object(Bucket=lake.bucket, Key=key, Body=body, Metadata=metadata[key])
    lake.topic(2, topic)
    make.produce(lake, topic, make.landed() + make.pending())
    key = f".indexes/events/{topic}/topic.json"
    head = json.loads(lake.body(key))
    head["topic_id"] = lake.offsets.snapshot(topic, START).topic_id
    lake.client.put_object(Bucket=lake.bucket, Key=key, Body=json.dumps(head).encode())
    return topic


@pytest.mark.slow("an earlier state of the index; goes with its readers")
@pytest.mark.parametrize("name", make.SINKS)
@pytest.mark.parametrize("state", STATES)
def test_what_an_earlier_state_left_is_read_landed_on_and_verified(lake: Lake, state: str, name: str) -> None:
    topic = restored(lake, state, name)
    landing = lake.landing(topic, make.SINKS[name], AFTER)
    assert [landing.report(hour).sums.landed for hour in (make.EIGHT, make.NINE)] == [20, 22]
    before = lake.verify(landing)
    assert (before.missing, before.duplicated, before.differences) == (0, 0, ())

    lake.produce(topic, [make.body(9)], at(make.TEN, 50))
    (ten,) = landing.land([make.TEN])  # what its writer left pending is finished first
    assert (ten.sums.landed, ten.sums.dead, ten.tile.complete, ten.tile.pending) == (11, 2, True, None)
    landing.rewrite(make.NINE)
    after = lake.verify(landing)
    assert after.clean
    assert (after.landed, after.skipped, after.dead_letters, after.missing, after.duplicated) == (53, 2, 2, 0, 0)


# What a later version has written, before anything of this one is


def grown() -> tuple[World, Landing]:
    """Two hours of columns, the second one open."""
    world = World(format={"type": "parquet"})
    for number in (0, 1):
        world.produce(number, b'{"id": 1}')
    landing = world.landing(now_minute=70)
    landing.land([FIRST, SECOND])
    return world, landing


def test_fields_that_a_later_version_adds_to_the_index_are_read_past() -> None:
    world, landing = grown()
    for key, (body, _) in list(world.store.objects.items()):
        if key.startswith(landing.index.root) and key.endswith(".json"):
            world.store.put(key, json.dumps({**json.loads(body), "added later": {"id": "in words"}}).encode())
    world.produce(1, b'{"id": 2, "more": 1}')
    open_hour, _ = world.landing(now_minute=130).land([SECOND, THIRD])
    assert (open_hour.sums.landed, open_hour.tile.complete) == (2, True)


CHANGES: dict[str, Callable[[Landing], object]] = {
    "land": lambda landing: landing.land([SECOND, THIRD]),
    "rewrite": lambda landing: landing.rewrite(SECOND),
    "clean": lambda landing: landing.clean(),
    "change what has landed": lambda landing: landing.target.require_exactly_once().hours(),
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
