"""Every type that a column can have, through everything that meets columns."""

import json
from typing import Any

import pytest

from s3lake.lake.objects import ObjectShape, read_batches, spark_columns
from s3lake.land.request import stage_values
from s3lake.records.schema.columns import grammar
from s3lake.records.schema.columns.types import Primitive, Struct, from_document
from s3lake_tests.conftest import short_id
from s3lake_tests.lake.verify.staged_records import stage_records
from s3lake_tests.lake.verify.world import VerifiedTopic
from s3lake_tests.land.unstaged import UnstagedTopic as Unstaged
from s3lake_tests.sample_values import NESTED, SAMPLES

LANDED = [
    pytest.param(text, format, envelope, id=f"{text} in {format}{' envelope' if envelope else ''}")
    for text in SAMPLES
    for format in ("parquet", "avro", "csv")
    for envelope in ((None, {}) if format != "csv" else (None,))
    if not (format == "csv" and text.startswith(NESTED))
]


def test_no_primitive_type_is_left_out() -> None:
    assert SAMPLES.keys() >= set(map(str, Primitive))


@pytest.mark.parametrize("envelope", [None, {}], ids=["plain", "envelope"])
@pytest.mark.parametrize("text", SAMPLES)
def test_a_second_micro_batch_finds_it_recorded(text: str, envelope: dict[str, Any] | None) -> None:
    value = {"c": grammar.parse_type(text)}
    recorded = {"value": Struct(value)} if envelope is not None else value
    target = Unstaged(format={"type": "parquet"}, columns={"c": text}, envelope=envelope).target()
    stage_values.refuse_other_types(target.sink, target.topic, recorded)


@pytest.mark.parametrize("value", ["int64", "string", {"list": "int64"}, {"map": "double"}], ids=short_id)
def test_a_second_micro_batch_finds_values_that_are_no_objects_recorded(value: Any) -> None:
    target = Unstaged(format={"type": "parquet"}, columns={"c": "date"}, envelope={}).target()
    stage_values.refuse_other_types(target.sink, target.topic, from_document({"value": value}))


@pytest.mark.parametrize(("text", "format", "envelope"), LANDED)
def test_a_value_of_every_type_is_encoded_verified_and_read_back(
    text: str, format: str, envelope: dict[str, Any] | None
) -> None:
    world = VerifiedTopic(format={"type": format}, columns={"c": text}, envelope=envelope, nulls="write")
    values = [json.dumps({"n": 1, "c": SAMPLES[text]}).encode(), b'{"n":2,"c":null}', b'{"n":3}']
    stage_records(world, [(b"k", value, []) for value in values])
    report = world.verify()
    assert report.clean, report.differences
    assert (report.landed, report.dead_letters) == (3, 0)
    (manifest,) = world.manifests.values()
    (file,) = manifest.files
    assert manifest.columns
    shape = ObjectShape.from_manifest(manifest)
    body = world.store.objects[file.key][0]
    found = list(read_batches(shape, body, file.key, spark_columns.build_read_schema(shape)))
    rows = [row for batch in found for row in batch.to_pylist()]
    cells = [(row["value"] if envelope is not None else row)["c"] for row in rows]
    assert [cell is None for cell in cells] == [False, True, True]
