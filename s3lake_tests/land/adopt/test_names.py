"""What connectors call their objects: vectors of the references."""

import pytest

from s3lake.land.adopt.names import LensesNames, TemplateNames, naming_of
from s3lake.layout import template
from s3lake.sink import Padding, Sink, Time
from s3lake_tests.land.adopt.buckets import AIVEN, BY_FIELD, BY_HOUR, CONFLUENT, named

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
            LensesNames(P, True),
            "myTopic",
            f"{P}name=first/title=[missing]/salary=200.0/myTopic(1_000000000003).json",
            (1, 3),
        ),
        (LensesNames(P, True), "myTopic", f"{P}2010/04/02/myTopic(000000000001_000000000000).json", (1, 0)),
        (LensesNames("", True), "myTopic", "region=8/name=sam/myTopic(01_00).json", (1, 0)),
        (
            named(P, "{topic}({partition}_{offset:012})", last=True),
            "myTopic",
            f"{P}/myTopic(1_000000000000).json",
            (1, 0),
        ),
        (
            named(P, "{topic}({partition}_{offset:012})", last=True),
            "myTopic",
            f"{P}myTopic(1_000000000000).json",
            (1, 0),
        ),
        (
            LensesNames("prefix/", True, suffix="-my-suffix"),
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
        (LensesNames(P), f"{P}t/"),
        (LensesNames(P, include_keys=True), f"{P}topic=t/"),
        (LensesNames(P, True), P),
        (named("topics/", CONFLUENT), "topics/t/partition="),
        (named("a/", AIVEN), "a/t-"),
        (named("a/", BY_HOUR), "a/t/"),
        (named(P, "{topic}({partition}_{offset:012})", last=True), P),
    ],
)
def test_only_what_can_be_one_is_listed(naming, prefix):
    assert naming.names("t").prefix == prefix


@pytest.mark.parametrize(
    ("text", "alone"),
    [
        (CONFLUENT, True),
        (BY_FIELD, False),
        (BY_HOUR, False),
        ("{topic}/{header:h}/{partition}-{offset}", False),
        ("{topic}/{schema}/{partition}-{offset}", False),
    ],
)
def test_what_a_record_decides_makes_several_runs_of_files(text, alone):
    assert named("", text).names("t").alone is alone


def test_the_time_of_writing_makes_one_run_of_files():
    pieces = template.parse_template(BY_HOUR, Time(source="wallclock"), Padding())
    assert TemplateNames("", pieces).names("t").alone


@pytest.mark.parametrize("naming", [named("", "{key}"), named("", "{topic}-{partition}-{key}")])
def test_names_without_an_offset_tell_nothing(naming):
    assert naming.names("t") is None


def test_zeros_on_the_right_tell_nothing():
    assert LensesNames(padding="right").names("t") is None


@pytest.mark.parametrize(
    "key", [".indexes/c/.locks/Topic(t)/1.lock", ".temp-upload/Topic(t)/1/3e2a/name=a/t(1_2).json"]
)
def test_the_connectors_own_objects_are_no_data(key):
    assert numbers(LensesNames(""), "t", key) is None
    assert numbers(LensesNames("", True), "t", key) is None


# From the sink that a dialect makes


def sink(**settings):
    given = {"name": "s", "topics": ("t",), "bucket": "lake", "prefix": "p", "start": "2026-01-01T00", **settings}
    return Sink.model_validate(given)


def test_a_sink_without_a_template_is_named_as_lenses_does():
    made = sink(layout={"partition_by": ("type",), "suffix": "-x", "padding": {"char": "_"}})
    assert naming_of(made, lenses=True) == LensesNames("p/", True, True, "-x", "left", "_")
    assert naming_of(sink(layout={"template": None}), lenses=True) == LensesNames("p/")
    assert naming_of(sink(layout={"connector_names": True}), lenses=True).observed


def test_a_template_names_the_first_record_but_for_lenses():
    made = sink(layout={"template": CONFLUENT})
    assert not naming_of(made, lenses=False).names("t").last
    assert naming_of(made, lenses=True).names("t").last


def test_lines_are_known_from_the_format():
    text = {"template": AIVEN}
    assert naming_of(sink(layout=text), lenses=False).lines
    assert naming_of(sink(layout=text, format={"type": "csv", "header": False}), lenses=False).lines
    assert not naming_of(sink(layout=text, format={"type": "csv"}), lenses=False).lines
