"""Topics that transforms of Confluent, Aiven and others take from a part of the record."""

from typing import Any

import pytest

from s3lake.config.model.transforms import Transform
from s3lake_tests.records.transform.kit import (
    Message,
    after,
    chain,
    field,
    refusal,
    refusal_described,
    run,
    run_described,
    smt,
    struct,
)

AIVEN = "io.aiven.kafka.connect.transforms.ExtractTopic"
CONFLUENT = "io.confluent.connect.transforms.ExtractTopic"


def topic_of(step: Transform, value: Any = None, key: Any = None, headers: tuple[Any, ...] = ()) -> str:
    return after(Message(value, key, headers), step, key="json").topic


@pytest.mark.parametrize(
    ("kind", "options", "value", "topic"),
    [
        (f"{AIVEN}$Value", {"field.name": "a"}, {"a": "x"}, "x"),
        (f"{AIVEN}$Value", {"field.name": "a.b"}, {"a": {"b": 7}}, "7"),
        (f"{AIVEN}$Value", {"field.name": "a.b"}, {"a.b": "x", "a": {"b": 7}}, "x"),
        (f"{AIVEN}$Value", {"field.name": ".b"}, {".b": True}, "true"),
        (f"{AIVEN}$Value", {}, "x", "x"),
        (f"{AIVEN}$Value", {"field.name": "a", "skip.missing.or.null": "true"}, {"a": " "}, "orders"),
        (f"{CONFLUENT}$Value", {"field": "a"}, {"a": 1.5}, "1.5"),
        (f"{CONFLUENT}$Value", {"field": "a.b"}, {"a.b": "x", "a": {"b": 7}}, "x"),
        (f"{CONFLUENT}$Value", {"field": "$.a['b']", "field.format": "JSON_PATH"}, {"a": {"b": "x"}}, "x"),
        (f"{CONFLUENT}$Value", {"field": "a", "skip.missing.or.null": "true"}, {}, "orders"),
        (f"{CONFLUENT}$Value", {"field": "a", "skip.missing.or.null": "true"}, None, "orders"),
        (f"{CONFLUENT}$Value", {}, "x", "x"),
    ],
)
def test_a_value_or_a_field_of_it_names_the_topic(kind: str, options: dict[str, str], value: Any, topic: str) -> None:
    assert topic_of(smt(kind, options), value) == topic


def test_a_key_or_the_last_header_of_a_name_does_too() -> None:
    assert topic_of(smt(f"{AIVEN}$Key", {"field.name": "a"}), {}, {"a": "x"}) == "x"
    assert topic_of(smt(f"{CONFLUENT}$Key"), {}, "x") == "x"
    header = smt(f"{CONFLUENT}$Header", {"field": "h", "skip.missing.or.null": "true"})
    assert topic_of(header, {}, None, (("h", b"x"), ("h", b"y"))) == "y"
    assert topic_of(header, {}) == "orders"


def test_fields_with_a_schema_do_too() -> None:
    schema = struct(field("a", "string", optional=True), {**struct(field("b", "int32")), "field": "o"})
    for options, topic in (({"field.name": "a"}, "x"), ({"field.name": "o.b"}, "7")):
        done = run_described(schema, [{"a": "x", "o": {"b": 7}}], smt(f"{AIVEN}$Value", options))
        assert done.batch.column("topic").to_pylist() == [topic]


@pytest.mark.parametrize(
    ("kind", "options", "value", "why"),
    [
        (f"{AIVEN}$Value", {"field.name": "a"}, {}, "field 'a' is missing or null"),
        (f"{AIVEN}$Value", {"field.name": "a"}, {"a": ""}, "field 'a' is empty"),
        (f"{AIVEN}$Value", {"field.name": "a"}, {"a": {}}, "field 'a' is an object"),
        (f"{AIVEN}$Value", {"field.name": "a", "skip.missing.or.null": "true"}, None, "the value is null"),
        (f"{CONFLUENT}$Value", {"field": "a"}, None, "the value is missing or null"),
        (f"{CONFLUENT}$Value", {"field": "a"}, 1, "the value is 1 (a number), an object is needed"),
        (f"{CONFLUENT}$Value", {"field": "a"}, {"a": "x/../y"}, "the topic would be called"),
        (f"{CONFLUENT}$Header", {"field": "h"}, {}, "header 'h' is missing or null"),
    ],
    ids=["missing", "empty", "an object", "a null value", "no value", "a number", "two dots", "no header"],
)
def test_a_record_is_refused_when_its_value_cannot_name_a_topic(
    kind: str, options: dict[str, str], value: Any, why: str
) -> None:
    assert why in refusal(Message(value), smt(kind, options))


BY_SCHEMA = "io.aiven.kafka.connect.transforms.ExtractTopicFromSchemaName$Value"


@pytest.mark.parametrize(
    ("kind", "options", "topic"),
    [
        (BY_SCHEMA, {}, "com.acme.Order"),
        (BY_SCHEMA, {"schema.name.topic-map": "x:y,com.acme.Order:orders"}, "orders"),
        (BY_SCHEMA, {"schema.name.regex": r"acme\.(\w+)"}, "Order"),
        (BY_SCHEMA, {"schema.name.regex": "(x)"}, "com.acme.Order"),
        ("com.github.jcustenborder.kafka.connect.transform.common.SchemaNameToTopic$Value", {}, "com.acme.Order"),
    ],
)
def test_the_name_of_a_schema_names_the_topic(kind: str, options: dict[str, str], topic: str) -> None:
    done = run_described(struct(field("a", "int32"), name="com.acme.Order"), [{"a": 1}], smt(kind, options))
    assert done.batch.column("topic").to_pylist() == [topic]


def test_a_record_is_refused_when_its_schema_or_the_schemas_name_is_missing() -> None:
    assert "the value has no schema" in refusal(Message({"a": 1}), smt(BY_SCHEMA))
    assert "the schema of the value has no name" in refusal_described(
        struct(field("a", "int32")), {"a": 1}, smt(BY_SCHEMA)
    )


def test_the_topic_of_the_index_stays() -> None:
    done = run(chain(smt(f"{AIVEN}$Value", {"field.name": "a"})), Message({"a": "x"}), Message({"a": "y"}))
    assert done.batch.column("topic").to_pylist() == ["x", "y"]
    assert done.batch.column("value").to_pylist() == [b'{"a":"x"}', b'{"a":"y"}']
