"""Files of the package with a value of each type, for readers that others wrote."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from s3lake_tests.lake.verify.staged_records import stage_records
from s3lake_tests.lake.verify.world import VerifiedTopic


def write_sample_file(
    directory: Path, format: Mapping[str, Any], columns: Mapping[str, str], values: Mapping[str, Any]
) -> Path:
    """Write a record with these values, one of nulls, and one without any field. Return their file."""
    records = [{"n": 1, **values}, {"n": 2, **dict.fromkeys(values)}, {"n": 3}]
    return write_record_file(directory, format, columns, records)


def write_record_file(
    directory: Path, format: Mapping[str, Any], columns: Mapping[str, str], records: Sequence[Mapping[str, Any]]
) -> Path:
    """Land records, whose values are JSON, and return the one file of them."""
    world = VerifiedTopic(format=dict(format), columns=dict(columns), nulls="write")
    stage_records(world, [(b"k", json.dumps(record).encode(), []) for record in records])
    (manifest,) = world.manifests.values()
    (file,) = manifest.files
    path = directory / f"file.{format['type']}"
    path.write_bytes(world.store.objects[file.key][0])
    return path
