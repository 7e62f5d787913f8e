"""Each change beside another writer, who takes away what it is about to read."""

import pytest

from s3lake.errors import DataLossError, FencedError
from s3lake.land.maintenance.compact import compact
from s3lake.land.maintenance.condition import Condition
from s3lake.land.maintenance.erase import EraseConditions, erase, plan_erase
from s3lake.land.maintenance.reformat import reformat
from s3lake.land.target import retry_fenced
from s3lake_tests.land.maintenance.held import Overtaken, holding
from s3lake_tests.land.maintenance.parts import Parts
from s3lake_tests.land.maintenance.test_merge import values
from s3lake_tests.land.maintenance.test_reformat import changed
from s3lake_tests.verify.world import HOUR

THIRD = {"json": EraseConditions(Condition("contains(value, '3')")), "parquet": EraseConditions(Condition("id = 3"))}


def landed(format: str) -> Parts:
    world = Parts(format={"type": format}, flush={"count": 2})
    world.land(*values(1, 2, 3))
    world.land(*values(4))
    world.write_index()
    return world


@pytest.mark.parametrize("format", ["json", "parquet"])
@pytest.mark.parametrize("change", ["erase", "compact", "reformat"])
def test_what_another_writer_has_taken_away_is_looked_for_where_it_is_now(change: str, format: str) -> None:
    world = landed(format)
    other = holding(world)
    store = Overtaken(world.store, lambda: compact(other, HOUR))
    if change == "reformat":
        changed(world, format={"type": format, "codec": "gzip"})
    own = holding(world, store)  # type: ignore[arg-type]
    {
        "erase": lambda: erase(own, HOUR, THIRD[format]),
        "compact": lambda: compact(own, HOUR),
        "reformat": lambda: reformat(own, HOUR),
    }[change]()
    report = world.verified()
    assert (report.clean, report.landed) == (True, 3 if change == "erase" else 4), report.differences
    assert {file.key for one in holding(world).manifests(HOUR) or [] for file in one.files} == world.bodies().keys()
    assert world.store.uploads == {}


def test_an_object_that_is_gone_although_its_commit_is_listed_stays_a_loss() -> None:
    world = landed("json")
    lost, *_ = world.bodies()
    del world.store.objects[lost]
    with pytest.raises(DataLossError, match="is gone"):
        erase(holding(world), HOUR, THIRD["json"])


def test_what_would_be_erased_is_looked_for_again_too() -> None:
    world = landed("json")
    other = holding(world)
    store = Overtaken(world.store, lambda: compact(other, HOUR))
    plan = plan_erase(holding(world, store), HOUR, THIRD["json"])  # type: ignore[arg-type]
    assert plan is not None
    assert [one.key in world.bodies() for one in plan.objects] == [True]


def test_it_gives_up_where_others_are_always_faster() -> None:
    tries = []

    def change() -> None:
        tries.append(len(tries) + 1)
        raise FencedError("another writer was first")

    with pytest.raises(FencedError):
        retry_fenced(change)()
    assert tries == [1, 2, 3, 4, 5]
