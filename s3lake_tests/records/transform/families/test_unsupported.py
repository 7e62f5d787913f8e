"""Classes of others that s3lake does not run: their error says what to write instead."""

import re

import pytest

from s3lake.records.transform.families.class_names import TRANSFORMS, UnknownTypeError, build_step, find_full_name
from s3lake.records.transform.families.unsupported import REMEDIES
from s3lake.records.transform.sql import parser

_SQL = re.compile(r'(select|where): "((?:[^"\\]|\\.)*)"')


def refusal(type_name: str) -> str:
    with pytest.raises(UnknownTypeError) as raised:
        find_full_name(type_name, TRANSFORMS)
    return str(raised.value)


@pytest.mark.parametrize("class_name", REMEDIES)
def test_a_class_of_others_is_refused_with_what_to_write_instead(class_name: str) -> None:
    for name in (class_name, f"{class_name}$Value"):
        reason = refusal(name)
        assert reason == f"{name} is not a transform of s3lake: {REMEDIES[class_name]}"
        assert "did you mean" not in reason


@pytest.mark.parametrize(("class_name", "remedy"), REMEDIES.items(), ids=[name.rpartition(".")[2] for name in REMEDIES])
def test_a_remedy_for_an_unsupported_class_can_be_loaded(class_name: str, remedy: str) -> None:
    for part, text in _SQL.findall(remedy):
        parser.parse_sql(text if part == "select" else "*", text if part == "where" else None)
    for name in re.findall(r"\b(?:io|org)\.[\w.]+\.[A-Z]\w+(?:\$\w+)?", remedy):
        known = {full_name.partition("$")[0] for full_name in TRANSFORMS}
        assert name.partition("$")[0] in known, class_name


@pytest.mark.parametrize(
    ("type_name", "why"),
    [
        ("ContentBasedRouter", "of io.debezium.transforms.ContentBasedRouter: scripts are not run"),
        ("Filter$Value", "JsonPath is not read: write sql"),
        ("ChangeCase$Value", "it renames fields: write ReplaceField$Value with renames, which lists them"),
        ("PatternRename$Value", "it renames fields: write ReplaceField$Value with renames, which lists them"),
        ("CaseTransform$Value", 'write sql: {select: "* REPLACE (upper(x) AS x)"}'),
        ("io.debezium.transforms.Unheard", "classes of others are not run: write it with sql"),
        ("com.github.someone.Mine$Value", "classes of others are not run: write it with sql"),
        ("TombstoneHandler", "is in several packages, which differ: write io.aiven.kafka.connect.transforms.Tombst"),
        ("ExtractTopic$Value", "is in several packages, which differ: write io.aiven"),
        ("io.confluent.connect.transforms.Drop", "does not name what it changes: write Drop$Value or Drop$Key"),
    ],
)
def test_short_names_and_unknown_classes_are_refused_with_the_reason(type_name: str, why: str) -> None:
    assert why in refusal(type_name)


def test_short_names_of_kafka_are_its_own() -> None:
    assert find_full_name("Filter", TRANSFORMS) == "org.apache.kafka.connect.transforms.Filter"
    assert find_full_name("ReplaceField$Value", TRANSFORMS).startswith("org.apache.kafka.")
    assert find_full_name("DebeziumTransform", TRANSFORMS) == "org.apache.iceberg.connect.transforms.DebeziumTransform"


def test_a_step_of_two_packages_is_the_same() -> None:
    for package in ("org.apache", "io.tabular"):
        step, notices = build_step(f"{package}.iceberg.connect.transforms.DebeziumTransform", {})
        assert (step.reads, notices) == ({"key", "value"}, [])
