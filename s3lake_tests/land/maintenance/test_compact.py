"""Compacting: the same records in few files, whatever the hour was made of, wherever a process dies."""

from typing import Any

from s3lake.land.maintenance.compact import compact, plan_compact
from s3lake_tests.land.maintenance.held import holding
from s3lake_tests.land.maintenance.parts import Parts
from s3lake_tests.land.maintenance.test_merge import values
from s3lake_tests.verify.world import HOUR, texts


def many(**sink: Any) -> Parts:
    """One commit of three files, and another of two."""
    world = Parts(**{"flush": {"count": 2}, **sink})
    world.land(*values(*range(6)), b"no JSON")
    world.land(*values(*range(6, 10)))
    world.write_index()
    return world


def test_records_that_nothing_separates_are_compared_as_what_they_are_together() -> None:
    framing = {"between": "", "closing": ""}
    world = Parts(format={"type": "bytes", "framing": framing}, converter={"value": "bytes"}, flush={"count": 1})
    world.land(b"", b"ab", b"c")
    world.write_index()
    assert compact(holding(world), HOUR).left == 1
    assert world.verified().clean
    (manifest,) = holding(world).manifests(HOUR) or []
    world.overwrite(manifest.files[0], b"abd", manifest.id)
    assert any("does not hold the records" in text for text in texts(world.verified(), "object"))


def test_one_commit_of_many_files_becomes_one_of_one_file() -> None:
    world = Parts(flush={"count": 2})
    world.land(*values(*range(6)))
    world.write_index()
    plan = plan_compact(holding(world), HOUR)
    assert str(plan) == f"{HOUR}: 3 files of 54 bytes become 1"
    assert str(compact(holding(world), HOUR)) == str(plan)
    assert list(world.bodies().values()) == [b"".join(value + b"\n" for value in values(*range(6)))]
    assert plan_compact(holding(world), HOUR) is None


def test_files_of_the_size_that_is_asked_for_stay() -> None:
    world = Parts(flush={"count": 2})
    world.land(*values(*range(6)))
    world.write_index()
    assert plan_compact(holding(world), HOUR, size=18) is None
    plan = plan_compact(holding(world), HOUR, size=36)
    assert plan is not None
    assert plan.left == 2


def test_what_cannot_be_joined_is_said_and_stays() -> None:
    world = Parts(format={"type": "csv", "header": False}, flush={"count": 1})
    world.land(*values(1, 2))
    world.write_index()
    before = dict(world.store.objects)
    plan = plan_compact(holding(world), HOUR)
    assert "CSV without header lines" in str(plan)
    assert str(compact(holding(world), HOUR)) == str(plan)
    assert world.store.objects == before


def test_objects_of_one_record_each_stay() -> None:
    world = Parts(format={"type": "bytes"}, converter={"value": "bytes"})
    world.land(b"1", b"2")
    world.write_index()
    assert "has one record an object" in str(compact(holding(world), HOUR))
    assert list(world.bodies().values()) == [b"1", b"2"]
    assert world.verified().clean


def test_verify_knows_what_replaced_files_held_when_kafka_does_not() -> None:
    world = many(format={"type": "parquet"})
    compact(holding(world), HOUR)
    world.log.expire(world.log.end[0])
    assert world.verified().clean
    (manifest,) = holding(world).manifests(HOUR) or []
    other = Parts(format={"type": "parquet"})
    other.land(*values(*range(9), 99))
    (body,) = other.bodies().values()
    data = next(file for file in manifest.files if file.kind == "data")
    world.overwrite(data, body, manifest.id)
    assert f"{data.key} does not hold the records of the files that it was made of" in texts(world.verified(), "object")
