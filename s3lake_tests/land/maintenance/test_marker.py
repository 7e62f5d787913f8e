"""The list of an hour's objects beside its data, `_objects.json`, after each change of the hour."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from s3lake.commit.marker import body_of, renew
from s3lake.commit.sums import Commits
from s3lake.land.maintenance.compact import compact
from s3lake.land.maintenance.condition import Condition
from s3lake.land.maintenance.erase import EraseConditions, erase
from s3lake.land.maintenance.reformat import reformat
from s3lake.land.maintenance.retention import expire
from s3lake.land.target import TopicSink
from s3lake.sink.marker import key
from s3lake_tests.land.maintenance.held import Died, Dying, holding
from s3lake_tests.land.maintenance.parts import Parts
from s3lake_tests.verify.world import HOUR

BY_USER = {"template": "{topic}/{hour:yyyy-MM-dd-HH}/{field:user}-{partition}-{offset}"}
ALICE = EraseConditions(Condition("contains(CAST(rows AS VARCHAR), 'alice')"))


def sealed(**sink: Any) -> Parts:
    """An hour in two commits, whose marker lists its objects; their keys say whose records they hold."""
    world = Parts(sealed={"marker": "objects"}, layout=BY_USER, **sink)
    world.land(b'{"user":"alice","n":1}', b'{"user":"bob","n":2}')
    world.land(b'{"user":"bob","n":3}')
    world.write_index()
    tile, _ = world.index.existing_tile(HOUR)
    renew(world.store, marker(world), tile, body(world))
    return world


def marker(world: Parts) -> str:
    found = key(world.sink, world.index.topic, HOUR)
    assert found is not None
    return found


def body(world: Parts) -> bytes:
    """What the marker has to hold now."""
    tile, _ = world.index.existing_tile(HOUR)
    return body_of("objects", world.index.topic, tile, Commits(world.index, HOUR, tile.commits))


def stands(world: Parts) -> bytes:
    found = world.store.get(marker(world))
    assert found is not None
    return found.body


def test_it_names_no_key_of_a_person_who_was_erased() -> None:
    world = sealed()
    assert b"alice" in stands(world)
    erase(holding(world), HOUR, ALICE)
    assert b"alice" not in stands(world)
    assert stands(world) == body(world)


@pytest.mark.parametrize(
    ("change", "sink"),
    [
        (lambda held: compact(held, HOUR), {}),
        (lambda held: expire(held, HOUR), {}),
        (lambda held: reformat(held, HOUR), {"format": {"type": "json", "codec": "gzip"}}),
    ],
    ids=["compact", "retention", "reformat"],
)
def test_it_lists_the_objects_that_there_are_after_a_change(
    change: Callable[[TopicSink], object], sink: dict[str, Any]
) -> None:
    world = sealed()
    before = stands(world)
    if sink:
        world.sink = world.sink.model_validate({**world.sink.model_dump(by_alias=True, exclude_unset=True), **sink})
    change(holding(world))
    assert stands(world) != before
    listed = {one["key"] for one in msgspec.json.decode(stands(world))["objects"]}
    assert listed == set(world.bodies()) - {marker(world)}


def test_wherever_an_erasure_dies_the_next_one_renews_it() -> None:
    for at in range(1, 200):
        world = sealed()
        try:
            erase(holding(world, Dying(world.store, at, after=True)), HOUR, ALICE)  # type: ignore[arg-type]
        except Died:
            erase(holding(world), HOUR, ALICE)
            assert b"alice" not in stands(world)
        else:
            break


def test_an_hour_without_one_gets_none() -> None:
    world = sealed()
    world.store.delete(marker(world))
    erase(holding(world), HOUR, ALICE)
    assert world.store.get(marker(world)) is None
