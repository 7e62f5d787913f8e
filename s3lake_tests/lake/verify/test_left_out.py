"""Records that lost a field on purpose, or got a default, are as they should be; what else differs is found."""

import json
from typing import Any

import pytest

from s3lake.lake.objects import ObjectShape, read_batches, spark_columns
from s3lake.records.schema.columns.types import Columns, List, Primitive, Struct
from s3lake_tests.kit.avro_messages import datum, record
from s3lake_tests.lake.verify.staged_records import stage_records
from s3lake_tests.lake.verify.world import VerifiedTopic
from s3lake_tests.records.schema.registry.server import framed, serving

INT, TEXT = Primitive.INT64, Primitive.STRING
KNOWN: Columns = {"id": INT, "to": Struct({"zip": TEXT}), "items": List(Struct({"sku": TEXT}))}
VALUES: list[Any] = [
    {"id": 1, "to": {"zip": "a"}, "items": [{"sku": "x"}]},
    {"id": 2, "note": "n", "to": {"zip": "b", "street": "s"}, "items": [{"sku": "x", "n": 1}, {"sku": "y"}]},
    {"id": "three", "to": "home", "items": [{"sku": 5}]},
    {"id": 4, "items": None, "note": None},
]
DROP = {"on_new_field": "drop", "on_type_change": "drop"}
OLD = record(("id", "long"), ("to", record(("zip", "string"), name="a.To")))
NEW = record(("id", "long"), ("to", record(("zip", "string"), ("street", ["null", "string"]), name="a.To")))
NEW["fields"].append({"name": "note", "type": "string", "default": "none"})


def rows(world: VerifiedTopic) -> list[dict[str, Any]]:
    (manifest,) = world.manifests.values()
    shape = ObjectShape.from_manifest(manifest)
    types = spark_columns.build_read_schema(shape)
    bodies = [(file, world.store.objects[file.key][0]) for file in manifest.files]
    return [
        row
        for file, body in bodies
        for batch in read_batches(shape, body, file.key, types)
        for row in batch.to_pylist()
    ]


def missing_and_duplicated(world: VerifiedTopic) -> tuple[int, int]:
    checked = world.verify().checked[0]
    return checked.missing, checked.duplicated


@pytest.mark.parametrize("envelope", [None, {}], ids=["plain", "envelope"])
@pytest.mark.parametrize("format", ["parquet", "avro"])
def test_fields_that_a_contract_drops_are_not_missing(format: str, envelope: dict[str, Any] | None) -> None:
    world = VerifiedTopic(format={"type": format}, schema=DROP, envelope=envelope)
    stage_records(
        world,
        [(None, json.dumps(value).encode(), []) for value in VALUES],
        KNOWN if envelope is None else {"value": Struct(KNOWN)},
    )
    (manifest,) = world.manifests.values()
    assert manifest.counts.fields_left_out == {
        "note": 1,
        "to.street": 1,
        "items[].n": 1,
        "id": 1,
        "to": 1,
        "items[].sku": 1,
    }
    report = world.verify()
    assert (report.differences, report.landed) == ((), 4)
    world.log.add([json.dumps({"id": 5, "items": [{"sku": "z"}, {"sku": "z"}]}).encode()])
    world.log.records[0][0] = (world.log.records[0][0][0], json.dumps({"items": []}).encode())
    assert missing_and_duplicated(world) == (1, 1)


@pytest.mark.parametrize("compatibility", ["backward", "forward"])
@pytest.mark.parametrize("format", ["parquet", "avro"])
def test_fields_that_a_schema_fills_or_drops_are_not_missing(format: str, compatibility: str) -> None:
    with serving() as registry:
        world = VerifiedTopic(
            format={"type": format},
            schema={"compatibility": compatibility},
            converter={"value": "avro", "registry": {"url": registry.url}},
        )
        old, new = registry.add(OLD), registry.add(NEW)
        before = [framed(old, datum(OLD, {"id": number, "to": {"zip": "a"}})) for number in range(2)]
        later = framed(new, datum(NEW, {"id": 9, "to": {"zip": "b", "street": "s"}, "note": "n"}))
        stage_records(world, [(None, value, []) for value in (*before, later)])
        (manifest,) = world.manifests.values()
        report = world.verify()
        assert (report.differences, report.landed, len(manifest.files)) == ((), 3, 1)
        changed = framed(old, datum(OLD, {"id": 7, "to": {"zip": "a"}}))
        world.log.records[0][0] = (world.log.records[0][0][0], changed)
        assert missing_and_duplicated(world) == (1, 1)
    if compatibility == "backward":
        assert (manifest.counts.fields_left_out, manifest.counts.fields_filled) == ({}, {"note": 2})
        assert [row["note"] for row in rows(world)] == ["none", "none", "n"]
    else:
        assert (manifest.counts.fields_left_out, manifest.counts.fields_filled) == ({"note": 1, "to.street": 1}, {})
