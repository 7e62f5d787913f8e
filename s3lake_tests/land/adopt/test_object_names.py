"""What connectors call their objects: vectors of the references."""

from typing import Any

import pytest

from s3lake.land.adopt.object_names import NamePattern, build_name_pattern
from s3lake_tests.land.adopt.buckets import AIVEN, BY_FIELD, BY_HOUR, CONFLUENT, sink

P = "streamReactorBackups/"
BY_NAME = "{topic}({partition}_{offset:012})"
IGGY = "app_logs/{topic}/{time:yyyy-MM-dd/HH}/{partition:05}-{offset:020}-{last_offset:020}"


def named(topic: str, root: str, template: str, **settings: Any) -> NamePattern | None:
    """The names of a topic's objects by Confluent's, Aiven's and Iggy's layouts, as the dialects read them."""
    return build_name_pattern(sink(root, {"template": template}, **settings), topic, lenses=False)


def lenses(topic: str, root: str = P, **layout: Any) -> NamePattern | None:
    """The names of a topic's objects by the Lenses connector."""
    return build_name_pattern(sink(root, layout), topic, lenses=True)


VECTORS = [
    (lenses("t"), f"{P}t/", {"1/000000000002_0_2.json": (1, 2), "1/000000000000_-1_-1.avro": (1, 0)}),
    (lenses("t"), f"{P}t/", {"000000000001/000000000002_0_2.gz": (1, 2), "1/2.json": (1, 2)}),
    (lenses("t"), f"{P}t/", {"1/000000000200~0a1b2c3d4e5f.json": (1, 200), "1/readme.md": None}),
    (lenses("t"), "", {f"{P}t2/1/2_0_2.json": None, f"other/{P}t/1/2_0_2.json": None}),
    (lenses("t", include_keys=True), f"{P}topic=t/", {"partition=1/000000000002_0_2.json": (1, 2)}),
    (lenses("t", suffix="-my-suffix"), f"{P}t/", {"1/2_101_102-my-suffix.avro": (1, 2)}),
    (lenses("t", ""), "t/", {"0/7.csv": (0, 7)}),
    (lenses("t", padding={"char": "_"}), f"{P}t/", {"__1/____12_0_2.json": (1, 12)}),
    (lenses("t", padding={"type": "right", "char": "x"}), f"{P}t/", {"1xx/12xxx_0_2.json": (1, 12)}),
    (lenses("t", partition_by=("v",)), P, {"name=first/title=[missing]/salary=200.0/t(1_000000000003).json": (1, 3)}),
    (lenses("t", partition_by=("v",)), P, {"2010/04/02/t(000000000001_000000000000).json": (1, 0)}),
    (lenses("t", "p/", partition_by=("v",), suffix="-end"), "p/", {"t/009/t(009_081)-end.json": (9, 81)}),
    (lenses("t", template=BY_NAME), P, {"/t(1_000000000000).json": (1, 0), "t(1_000000000000).json": (1, 0)}),
    (named("t", "topics/", CONFLUENT), "topics/t/partition=", {"12/t+12+0000000009.snappy.parquet": (12, 9)}),
    (named("t", "topics/", CONFLUENT), "topics/t/partition=", {"12/t+12+0000000009": (12, 9)}),
    (named("t", "topics/", CONFLUENT), "topics/t/partition=", {"12/t+12+0000000009.headers.json": (12, 9)}),
    (named("t", "topics/", CONFLUENT), "topics/t/partition=", {"12/t+12+0000000009~0a1b2c3d4e5f.json": (12, 9)}),
    (named("t", "topics/", CONFLUENT), "", {"topics/other/partition=0/t+0+0000000000.json": None}),
    (named("t.avro", "topics/", CONFLUENT), "topics/t.avro/partition=", {"0/t.avro+0+0000000001.avro": (0, 1)}),
    (named("t", "topics/", BY_HOUR), "topics/t/", {"2017/03/t+12+0000000009.json.gz": (12, 9)}),
    (named("t", "topics/", BY_FIELD), "topics/t/type=", {"a/b/t+12+0000000009.json.gz": (12, 9)}),
    (named("logs", "a/", AIVEN), "a/logs-", {"0-1234.gz": (0, 1234), "0-1234": (0, 1234), "extra-0-1234.gz": None}),
    (named("t", "", "{topic}-{partition}-{offset:020}"), "t-", {"0-00000000000000000012.gz": (0, 12)}),
    (named("t", "", "{time:yyyy}/{time:MM}/{topic}-{partition}-{offset}.avro"), "", {"2026/11/t-3-44.avro": (3, 44)}),
    (named("t", "", "{topic}/{partition}/{key}-{offset}"), "t/", {"3/a-b-44": (3, 44)}),
    (named("t", "raw/", IGGY), "raw/app_logs/t/", {f"2024-03-16/14/00001-{7:020}-{99:020}.jsonl": (1, 7)}),
]


@pytest.mark.parametrize(("pattern", "prefix", "keys"), VECTORS)
def test_a_key_has_partition_and_offset_and_only_possible_keys_are_listed(
    pattern: NamePattern, prefix: str, keys: dict[str, tuple[int, int] | None]
) -> None:
    assert {key: pattern.parse(f"{prefix}{key}") for key in keys} == keys
    assert pattern.prefix == prefix or not prefix


@pytest.mark.parametrize("template", ["{key}", "{topic}-{partition}-{key}"])
def test_names_without_an_offset_are_not_read(template: str) -> None:
    assert named("t", "", template, exactly_once=False) is None


@pytest.mark.parametrize("pattern", [lenses("t", ""), lenses("t", "", partition_by=("v",))])
@pytest.mark.parametrize(
    "key", [".indexes/c/.locks/Topic(t)/1.lock", ".temp-upload/Topic(t)/1/3e2a/name=a/t(1_2).json"]
)
def test_the_connectors_own_objects_are_no_data(pattern: NamePattern, key: str) -> None:
    assert pattern.parse(key) is None
