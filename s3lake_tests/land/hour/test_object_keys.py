"""Object keys as landing makes them: of routed topics, of fields of a registry's records, and after a slash."""

from pathlib import Path
from typing import Any

import pytest

from s3lake.config.model import Sink
from s3lake.index.store.memory import MemoryStore
from s3lake.land.hour.landing import land
from s3lake.land.preview import preview
from s3lake.land.request.in_process_tasks import KafkaRecord
from s3lake_tests.config import bases
from s3lake_tests.kit.lake import START, at
from s3lake_tests.kit.plugins import install_package
from s3lake_tests.records.schema.registry.server import SchemaRegistry, framed
from s3lake_tests.source.inline import inline, verified

TRANSFORMS = "org.apache.kafka.connect.transforms"
REGEX = {"type": f"{TRANSFORMS}.RegexRouter", "options": {"regex": "(.*)\\.raw", "replacement": "clean-$1"}}
BY_DAY = {
    "type": f"{TRANSFORMS}.TimestampRouter",
    "options": {"topic.format": "${topic}-${timestamp}", "timestamp.format": "yyyyMMdd"},
}
DAY = 86_400_000


def keys(topic: str, *records: tuple[int, bytes | None, bytes], **settings: Any) -> list[str]:
    """The keys of objects of records that have a timestamp, a key and a value."""
    base = {"name": "s", "topics": (topic,), "bucket": "lake", "start": "2026-11-20T00", "errors": {"tolerance": "all"}}
    rows = [KafkaRecord(topic, 0, offset, *record, ()) for offset, record in enumerate(records)]
    return [one.file.key for one in preview(Sink.model_validate({**base, **settings}), topic, rows).objects]


def routed(*transforms: Any, **settings: Any) -> list[str]:
    return keys("orders.raw", (0, b"k", b"1"), (DAY, b"k", b"{"), (DAY, b"k", b"3"), transforms=transforms, **settings)


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        ({}, "clean-orders/date=1970-01-01/hour=00/0-000000000000.json"),
        ({"template": None}, "clean-orders/0/000000000000.json"),
        ({"partition_by": ["_partition"]}, "clean-orders/partition=0/clean-orders(0_000000000000).json"),
        ({"template": "x/{topic}+{partition}+{offset}"}, "x/clean-orders+0+0.json"),
    ],
)
def test_a_key_has_the_name_that_a_router_gives_and_dead_letters_the_topics_own(
    layout: dict[str, Any], expected: str
) -> None:
    assert routed(REGEX, layout=layout)[:2] == ["_dead_letters/s/orders.raw/0/000000000001.json", expected]


def test_the_name_that_a_router_gives_may_depend_on_the_record() -> None:
    assert routed(REGEX, BY_DAY)[1:] == [
        "clean-orders-19700101/date=1970-01-01/hour=00/0-000000000000.json",
        "clean-orders-19700102/date=1970-01-02/hour=00/0-000000000002.json",
    ]


def test_a_transform_that_makes_json_of_keys_makes_their_fields_known() -> None:
    to_key = {"type": f"{TRANSFORMS}.ValueToKey", "options": {"fields": "id"}}
    settings = {"transforms": [to_key], "layout": {"partition_by": ["_key.id"]}}
    assert keys("t", (0, b"k", b'{"id":7}'), **settings) == ["t/id=7/t(0_000000000000).json"]


@pytest.mark.parametrize(
    ("layout", "key"),
    [
        ({"partition_by": ["_key.id"]}, "t/id=5/t(0_000000000000).parquet"),
        ({"partition_by": ["_value.a"]}, "t/a=1/t(0_000000000000).parquet"),
        ({"template": "{topic}/{key:id}/{field:a}/{partition}+{offset}"}, "t/5/1/0+0.parquet"),
    ],
)
def test_fields_of_keys_and_values_of_a_registry_are_in_object_keys(
    layout: dict[str, Any], key: str, registry: SchemaRegistry
) -> None:
    of_keys = registry.add({"type": "record", "name": "Key", "fields": [{"name": "id", "type": "int"}]})
    of_values = registry.add({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]})
    converter = {"key": "avro", "value": "avro", "registry": {"url": registry.url}}
    record = (0, framed(of_keys, b"\x0a"), framed(of_values, b"\2"))
    assert keys("t", record, layout=layout, format={"type": "parquet"}, converter=converter) == [key]


def test_a_prefix_of_aivens_that_begins_with_a_slash_is_landed_and_verified(tmp_path: Path) -> None:
    topic = tmp_path / "logs" / "demo"
    topic.mkdir(parents=True)
    (topic / "0.txt").write_text(f"{at(START)} {{}}\n{at(START, 60)} {{}}\n")
    with install_package(tmp_path / "packages", "lines_source", "[s3lake.sources]\nlines = lines_source:LinesSource\n"):
        changes: dict[str, str | None] = {
            "bootstrap.servers": None,
            "s3lake.start": START,
            "s3lake.source.type": "lines",
            "s3lake.source.options.directory": str(tmp_path / "logs"),
            "aws.s3.prefix": "/raw/{{topic}}/",
        }
        config = bases.load(bases.AIVEN, changes).config
        store = MemoryStore("lake")
        target = inline(config, "demo", store, lambda: at(START, 90))
        land(target, [START])
        assert [key for key in store.objects if not key.startswith(".indexes/")] == [
            "/raw/demo/demo-0-00000000000000000000.gz"
        ]
        assert verified(config, target).clean
