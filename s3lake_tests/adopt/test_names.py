"""What connectors call their objects: vectors of the references."""

import pytest

from s3lake.adopt.names import AivenNames, ConfluentNames, LensesNames

P = "streamReactorBackups/"


def numbers(naming, topic, key):
    found = naming.names(topic).numbers(key)
    return found and found[:2]


@pytest.mark.parametrize(
    ("naming", "topic", "key", "expected"),
    [
        (LensesNames(P), "myTopic", f"{P}myTopic/1/000000000002_0_2.json", (1, 2)),
        (LensesNames(P), "myTopic", f"{P}myTopic/1/000000000000_0_0.avro", (1, 0)),
        (LensesNames(P), "myTopic", f"{P}myTopic/1/000000000000_-1_-1.avro", (1, 0)),
        (LensesNames(P), "myTopic", f"{P}myTopic/000000000001/000000000002_0_2.json", (1, 2)),
        (LensesNames(P, include_keys=True), "myTopic", f"{P}topic=myTopic/partition=1/000000000002_0_2.json", (1, 2)),
        (LensesNames(P), "myTopic", f"{P}myTopic/1/000000000002_0_2.gz", (1, 2)),
        (LensesNames(P), "myTopic", f"{P}myTopic/1/2.json", (1, 2)),
        (LensesNames(P, suffix="-my-suffix"), "myTopic", f"{P}myTopic/1/2_101_102-my-suffix.avro", (1, 2)),
        (LensesNames(P), "myTopic", f"{P}myTopic/1/000000000200~0a1b2c3d4e5f.json", (1, 200)),
        (LensesNames(""), "myTopic", "myTopic/0/7.csv", (0, 7)),
        (LensesNames(P, char="_"), "t", f"{P}t/__1/____12_0_2.json", (1, 12)),
        (LensesNames(P, padding="right", char="x"), "t", f"{P}t/1xx/12xxx_0_2.json", (1, 12)),
        (LensesNames(P), "myTopic", f"{P}myTopic/1/readme.md", None),
        (LensesNames(P), "myTopic", f"{P}myTopic2/1/2_0_2.json", None),
        (LensesNames(P), "myTopic", f"other/{P}myTopic/1/2_0_2.json", None),
        (
            LensesNames(P, "partition_by"),
            "myTopic",
            f"{P}name=first/title=[missing]/salary=200.0/myTopic(1_000000000003).json",
            (1, 3),
        ),
        (LensesNames(P, "partition_by"), "myTopic", f"{P}2010/04/02/myTopic(000000000001_000000000000).json", (1, 0)),
        (LensesNames("", "partition_by"), "myTopic", "region=8/name=sam/myTopic(01_00).json", (1, 0)),
        (LensesNames(P, "no_partition"), "myTopic", f"{P}/myTopic(1_000000000000).json", (1, 0)),
        (LensesNames(P, "no_partition"), "myTopic", f"{P}myTopic(1_000000000000).json", (1, 0)),
        (
            LensesNames("prefix/", "partition_by", suffix="-my-suffix"),
            "my-topic",
            "prefix/my-topic/009/my-topic(009_081)-my-suffix.json",
            (9, 81),
        ),
        (ConfluentNames(), "t", "topics/t/partition=0/t+0+0000000000.json", (0, 0)),
        (ConfluentNames(), "t", "topics/t/partition=12/t+12+0000000009.snappy.parquet", (12, 9)),
        (ConfluentNames(), "t", "topics/t/partition=12/t+12+0000000009", (12, 9)),
        (ConfluentNames(), "t", "topics/t/partition=12/t+12+0000000009.headers.json", (12, 9)),
        (ConfluentNames(partitioned=True), "t", "topics/t/year=2017/month=03/t+12+0000000009.json.gz", (12, 9)),
        (ConfluentNames("", "_", "#"), "test-topic", "test-topic_partition=12_test-topic#12#03.avro", (12, 3)),
        (ConfluentNames(), "topic.avro", "topics/topic.avro/partition=0/topic.avro+0+0000000001.avro", (0, 1)),
        (ConfluentNames(), "t", "topics/other/partition=0/t+0+0000000000.json", None),
        (AivenNames(), "logs", "logs-0-1234.gz", (0, 1234)),
        (AivenNames(), "logs", "logs-0-1234", (0, 1234)),
        (
            AivenNames("example-s3-sink/{{topic}}-{{partition}}-{{start_offset:padding=true}}"),
            "source_topic",
            "example-s3-sink/source_topic-0-00000000000000000000.gz",
            (0, 0),
        ),
        (
            AivenNames("{{ timestamp:unit=yyyy }}/{{timestamp:unit=MM}}/{{topic}}-{{partition}}-{{start_offset}}.avro"),
            "t",
            "2026/11/t-3-44.avro",
            (3, 44),
        ),
        (AivenNames("{{ utc_date }}/{{topic}}-{{partition}}-{{start_offset}}"), "t", "2026-11-20/t-3-44.gz", (3, 44)),
        (AivenNames("{{topic}}/{{partition}}/{{key}}-{{start_offset}}"), "t", "t/3/a-b-44", (3, 44)),
        (AivenNames(), "logs", "logs-extra-0-1234.gz", None),
    ],
)
def test_a_key_tells_partition_and_offset(naming, topic, key, expected):
    assert numbers(naming, topic, key) == expected


@pytest.mark.parametrize(
    ("naming", "prefix"),
    [
        (LensesNames(P), f"{P}t/"),
        (LensesNames(P, include_keys=True), f"{P}topic=t/"),
        (LensesNames(P, "partition_by"), P),
        (ConfluentNames(), "topics/t/"),
        (ConfluentNames(" "), "t/"),
        (AivenNames("a/{{topic}}-{{partition}}-{{start_offset}}"), "a/t-"),
        (AivenNames("a/{{utc_date}}/{{topic}}-{{partition}}-{{start_offset}}"), "a/"),
    ],
)
def test_only_what_can_be_one_is_listed(naming, prefix):
    assert naming.names("t").prefix == prefix


@pytest.mark.parametrize("naming", [AivenNames("{{key}}"), AivenNames("{{topic}}-{{partition}}-{{key}}")])
def test_names_without_an_offset_tell_nothing(naming):
    assert naming.names("t") is None


def test_zeros_on_the_right_tell_nothing():
    assert LensesNames(padding="right").names("t") is None


@pytest.mark.parametrize(
    "key", [".indexes/c/.locks/Topic(t)/1.lock", ".temp-upload/Topic(t)/1/3e2a/name=a/t(1_2).json"]
)
def test_the_connectors_own_objects_are_no_data(key):
    assert numbers(LensesNames(""), "t", key) is None
    assert numbers(LensesNames("", "partition_by"), "t", key) is None
