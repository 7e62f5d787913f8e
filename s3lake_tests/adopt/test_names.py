"""What connectors call their objects: vectors of the references."""

import pytest

from s3lake.adopt.names import build_name_pattern
from s3lake_tests.adopt.buckets import AIVEN, BY_FIELD, BY_HOUR, CONFLUENT, sink

P = "streamReactorBackups/"


def named(root, template, **settings):
    """The names of Confluent's and Aiven's layouts, as the dialects read them."""
    return sink(root, {"template": template}, **settings), False


def lenses(root, **layout):
    """The names of the Lenses connector."""
    return sink(root, layout), True


def pattern(naming, topic):
    settings, is_lenses = naming
    return build_name_pattern(settings, topic, lenses=is_lenses)


def numbers(naming, topic, key):
    return pattern(naming, topic).parse(key)


@pytest.mark.parametrize(
    ("naming", "topic", "key", "expected"),
    [
        (lenses(P), "myTopic", f"{P}myTopic/1/000000000002_0_2.json", (1, 2)),
        (lenses(P), "myTopic", f"{P}myTopic/1/000000000000_0_0.avro", (1, 0)),
        (lenses(P), "myTopic", f"{P}myTopic/1/000000000000_-1_-1.avro", (1, 0)),
        (lenses(P), "myTopic", f"{P}myTopic/000000000001/000000000002_0_2.json", (1, 2)),
        (lenses(P, include_keys=True), "myTopic", f"{P}topic=myTopic/partition=1/000000000002_0_2.json", (1, 2)),
        (lenses(P), "myTopic", f"{P}myTopic/1/000000000002_0_2.gz", (1, 2)),
        (lenses(P), "myTopic", f"{P}myTopic/1/2.json", (1, 2)),
        (lenses(P, suffix="-my-suffix"), "myTopic", f"{P}myTopic/1/2_101_102-my-suffix.avro", (1, 2)),
        (lenses(P), "myTopic", f"{P}myTopic/1/000000000200~0a1b2c3d4e5f.json", (1, 200)),
        (lenses(""), "myTopic", "myTopic/0/7.csv", (0, 7)),
        (lenses(P, padding={"char": "_"}), "t", f"{P}t/__1/____12_0_2.json", (1, 12)),
        (lenses(P, padding={"type": "right", "char": "x"}), "t", f"{P}t/1xx/12xxx_0_2.json", (1, 12)),
        (lenses(P), "myTopic", f"{P}myTopic/1/readme.md", None),
        (lenses(P), "myTopic", f"{P}myTopic2/1/2_0_2.json", None),
        (lenses(P), "myTopic", f"other/{P}myTopic/1/2_0_2.json", None),
        (
            lenses(P, partition_by=("v",)),
            "myTopic",
            f"{P}name=first/title=[missing]/salary=200.0/myTopic(1_000000000003).json",
            (1, 3),
        ),
        (lenses(P, partition_by=("v",)), "myTopic", f"{P}2010/04/02/myTopic(000000000001_000000000000).json", (1, 0)),
        (lenses("", partition_by=("v",)), "myTopic", "region=8/name=sam/myTopic(01_00).json", (1, 0)),
        (
            lenses(P, template="{topic}({partition}_{offset:012})"),
            "myTopic",
            f"{P}/myTopic(1_000000000000).json",
            (1, 0),
        ),
        (
            lenses(P, template="{topic}({partition}_{offset:012})"),
            "myTopic",
            f"{P}myTopic(1_000000000000).json",
            (1, 0),
        ),
        (
            lenses("prefix/", partition_by=("v",), suffix="-my-suffix"),
            "my-topic",
            "prefix/my-topic/009/my-topic(009_081)-my-suffix.json",
            (9, 81),
        ),
        (named("topics/", CONFLUENT), "t", "topics/t/partition=0/t+0+0000000000.json", (0, 0)),
        (named("topics/", CONFLUENT), "t", "topics/t/partition=12/t+12+0000000009.snappy.parquet", (12, 9)),
        (named("topics/", CONFLUENT), "t", "topics/t/partition=12/t+12+0000000009", (12, 9)),
        (named("topics/", CONFLUENT), "t", "topics/t/partition=12/t+12+0000000009.headers.json", (12, 9)),
        (named("topics/", CONFLUENT), "t", "topics/t/partition=12/t+12+0000000009~0a1b2c3d4e5f.json", (12, 9)),
        (named("topics/", BY_HOUR), "t", "topics/t/2017/03/t+12+0000000009.json.gz", (12, 9)),
        (named("topics/", BY_FIELD), "t", "topics/t/type=a/b/t+12+0000000009.json.gz", (12, 9)),
        (
            named("", "{topic}_partition={partition}_{topic}#{partition}#{offset:02}"),
            "test-topic",
            "test-topic_partition=12_test-topic#12#03.avro",
            (12, 3),
        ),
        (
            named("topics/", CONFLUENT),
            "topic.avro",
            "topics/topic.avro/partition=0/topic.avro+0+0000000001.avro",
            (0, 1),
        ),
        (named("topics/", CONFLUENT), "t", "topics/other/partition=0/t+0+0000000000.json", None),
        (named("", AIVEN), "logs", "logs-0-1234.gz", (0, 1234)),
        (named("", AIVEN), "logs", "logs-0-1234", (0, 1234)),
        (
            named("example-s3-sink/", "{topic}-{partition}-{offset:020}"),
            "source_topic",
            "example-s3-sink/source_topic-0-00000000000000000000.gz",
            (0, 0),
        ),
        (named("", "{time:yyyy}/{time:MM}/{topic}-{partition}-{offset}.avro"), "t", "2026/11/t-3-44.avro", (3, 44)),
        (named("", "{topic}/{partition}/{key}-{offset}"), "t", "t/3/a-b-44", (3, 44)),
        (named("", AIVEN), "logs", "logs-extra-0-1234.gz", None),
        (
            named("iggy/raw/", "app_logs/{topic}/{time:yyyy-MM-dd/HH}/{partition:05}-{offset:020}-{last_offset:020}"),
            "api",
            "iggy/raw/app_logs/api/2024-03-16/14/00001-00000000000000000000-00000000000000000099.jsonl",
            (1, 0),
        ),
    ],
)
def test_a_key_tells_partition_and_offset(naming, topic, key, expected):
    assert numbers(naming, topic, key) == expected


@pytest.mark.parametrize(
    ("naming", "prefix"),
    [
        (lenses(P), f"{P}t/"),
        (lenses(P, include_keys=True), f"{P}topic=t/"),
        (lenses(P, partition_by=("v",)), P),
        (named("topics/", CONFLUENT), "topics/t/partition="),
        (named("a/", AIVEN), "a/t-"),
        (named("a/", BY_HOUR), "a/t/"),
        (lenses(P, template="{topic}({partition}_{offset:012})"), P),
    ],
)
def test_only_what_can_be_one_is_listed(naming, prefix):
    assert pattern(naming, "t").prefix == prefix


@pytest.mark.parametrize(
    "naming", [named("", text, exactly_once=False) for text in ("{key}", "{topic}-{partition}-{key}")]
)
def test_names_without_an_offset_tell_nothing(naming):
    assert pattern(naming, "t") is None


@pytest.mark.parametrize(
    "key", [".indexes/c/.locks/Topic(t)/1.lock", ".temp-upload/Topic(t)/1/3e2a/name=a/t(1_2).json"]
)
def test_the_connectors_own_objects_are_no_data(key):
    assert numbers(lenses(""), "t", key) is None
    assert numbers(lenses("", partition_by=("v",)), "t", key) is None
