"""Layouts after keys and values with a Schema Registry."""

import pyarrow as pa
import pytest

from s3lake.land import binding
from s3lake.land.task.outcomes import Done
from s3lake.land.task.pipeline import run
from s3lake.sink import Sink
from s3lake.store.memory import MemoryStore
from s3lake_tests.convert.records import HEADERS, batch
from s3lake_tests.schema.registry.server import framed, serving


@pytest.mark.parametrize(
    ("layout", "key"),
    [
        ({"partition_by": ["_key.id"]}, "id=5"),
        ({"partition_by": ["_value.a"]}, "a=1"),
        ({"template": "{topic}/{key:id}/{field:a}/{partition}+{offset}"}, "t/5/1/3+100"),
    ],
)
def test_fields_of_keys_and_values_stand_in_object_keys(layout: dict[str, object], key: str) -> None:
    with serving() as registry:
        one = registry.add({"type": "record", "name": "Key", "fields": [{"name": "id", "type": "int"}]})
        two = registry.add({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]})
        sink = Sink.model_validate(
            {
                "name": "e",
                "topics": ("t",),
                "bucket": "lake",
                "start": "2026-01-01T00",
                "layout": layout,
                "format": {"type": "parquet"},
                "converter": {"key": "avro", "value": "avro", "registry": {"url": registry.url}},
            }
        )
        store = MemoryStore("lake")
        work = binding.work(
            sink, "t", lambda _: store, commit="c", renamed="", hour_start_ms=0, columns={}, wallclock_ms=0
        )
        records = batch(framed(two, b"\2"), keys=[framed(one, b"\x0a")])
        (outcome,) = run(work, [records.append_column("headers", pa.array([None], HEADERS))])
    assert isinstance(outcome, Done), outcome
    (file,) = outcome.files
    assert key in file.key
