"""The rows of landed files, as a reader has them."""

import datetime
import json
from typing import Any

from s3lake.lake.objects import ObjectShape, read_batches, spark_columns
from s3lake.records.schema.columns.types import PLACEHOLDER
from s3lake_tests.lake.verify.world import VerifiedTopic


def read_landed_rows(world: VerifiedTopic) -> list[dict[str, Any]]:
    """The rows of all files, as JSON has them, without nulls."""
    (manifest,) = world.manifests.values()
    rows = []
    for file in (one for one in manifest.files if one.stream == "data"):
        body = world.store.objects[file.key][0]
        if world.sink.format.type == "json":
            rows += [json.loads(line) for line in body.splitlines()]
        else:
            shape = ObjectShape.from_manifest(manifest)
            for each in read_batches(shape, body, file.key, spark_columns.build_read_schema(shape)):
                rows += each.to_pylist(maps_as_pydicts="strict")
    return [without_nulls(row) for row in rows]


def without_nulls(value: Any) -> Any:
    match value:
        case dict():
            return {name: without_nulls(inner) for name, inner in value.items() if inner is not None}
        case list():
            return list(map(without_nulls, value))
        case datetime.datetime():
            return int(value.timestamp() * 1000)
    return value


def leave_out_placeholders(value: Any) -> Any:
    """A value without placeholders and nulls."""
    match value:
        case dict():
            return {
                name: leave_out_placeholders(one)
                for name, one in value.items()
                if one is not None and name != PLACEHOLDER
            }
        case list():
            return list(map(leave_out_placeholders, value))
    return value
