"""Which files become one, and which hours may be merged at all, where it is just so."""

from typing import Any

import pytest

from s3lake.land.maintenance.compact import CompactOptions, find_blocker, plan_outputs
from s3lake_tests.land.maintenance.parts import Parts
from s3lake_tests.land.maintenance.test_merge import values
from s3lake_tests.verify.world import TOPIC


def two(**sink: Any) -> Parts:
    """Two commits of a file of two records each."""
    world = Parts(**sink)
    world.land(*values(1, 2))
    world.land(*values(3, 4), renamed=True)
    return world


def stands_in_the_way(world: Parts) -> str:
    return find_blocker(world.sink, TOPIC, list(world.manifests.values()))


@pytest.mark.parametrize(("size", "count", "made"), [(0, 0, 1), (-1, 0, 2), (0, -1, 2)])
def test_a_pack_may_be_just_as_large_as_its_rule_says(size: int, count: int, made: int) -> None:
    manifests = list(two().manifests.values())
    both = sum(file.bytes for manifest in manifests for file in manifest.files)
    assert len(plan_outputs(manifests, CompactOptions(both + size, 4 + count))) == made


def test_each_pack_is_counted_from_nothing() -> None:
    world = two()
    world.land(*values(5, 6))
    world.land(*values(7, 8))
    manifests = list(world.manifests.values())
    size = manifests[0].files[0].bytes
    assert [len(sources) for sources in plan_outputs(manifests, CompactOptions(2 * size, 4))] == [2, 2]


@pytest.mark.parametrize("format", [{"type": "json"}, {"type": "csv", "header": True}], ids=lambda form: form["type"])
def test_files_with_the_mark_of_their_commit_and_without_may_be_one(format: dict[str, Any]) -> None:
    assert stands_in_the_way(two(format=format)) == ""


def test_dead_letters_stand_in_no_way() -> None:
    world = Parts()
    world.land(b"no JSON", *values(1))
    world.land(*values(2))
    assert stands_in_the_way(world) == ""


def test_names_that_say_the_last_time_alone_stand_in_the_way() -> None:
    world = two(layout={"template": "{topic}/{partition}-{offset}-{max_timestamp}"})
    assert stands_in_the_way(world) == "its names say timestamps of records, which are not known any more"
