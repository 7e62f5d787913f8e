"""Transforms of keys and values with a Schema Registry."""

import pytest

from s3lake.land import binding
from s3lake.sink import Sink
from s3lake.transform.batch import apply_chain
from s3lake_tests.convert.records import batch
from s3lake_tests.schema.registry.server import framed, serving


def sink(url: str, *transforms: dict[str, object], **more: object) -> Sink:
    given = {"name": "e", "topics": ("t",), "bucket": "lake", "start": "2026-01-01T00", **more}
    converter = {"value": "avro", "key": "json_schema", "registry": {"url": url}}
    return Sink.model_validate({**given, "converter": converter, "transforms": transforms})


def test_a_value_that_is_changed_becomes_json() -> None:
    rename = {"type": "org.apache.kafka.connect.transforms.ReplaceField$Value", "options": {"renames": "a:b"}}
    with serving() as registry:
        number = registry.add({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]})
        found = sink(registry.url, rename)
        chain = binding.chain(found)
        done = apply_chain(chain, batch(b"broken", framed(number, b"\2"), None, keys=[b"x"] * 3), "t", 0)
    assert done.batch.column("value").to_pylist() == [b'{"b":1}', None]
    assert (done.rows.to_pylist(), list(done.refused)) == ([1, 2], [0])
    assert (found.after_transforms.converter.key, found.after_transforms.converter.value) == ("json_schema", "json")
    assert found.after_transforms.converter.registry == found.converter.registry


def test_what_no_step_looks_at_keeps_its_schema() -> None:
    header = {
        "type": "org.apache.kafka.connect.transforms.InsertHeader",
        "options": {"header": "h", "value.literal": "v"},
    }
    found = sink("http://nowhere", header)
    chain = binding.chain(found)
    assert chain.framed == ()
    assert found.after_transforms.converter == found.converter


def test_sql_is_refused() -> None:
    with pytest.raises(Exception, match="SQL of keys or values that are not text in Kafka is not supported yet"):
        sink("http://nowhere", sql={"select": "*"})
