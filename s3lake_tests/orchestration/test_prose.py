"""What columns are in words, from the registry's newest schema of a topic's values."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from s3lake.orchestration import prose
from s3lake.orchestration.prose import of_columns
from s3lake.schema import registry as module
from s3lake.schema.prose import of_fields
from s3lake.sink import Sink
from s3lake_tests.schema.registry.server import SchemaRegistry, serving

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long", "doc": " The order's key. "}, {"name": "city", "type": "string"}],
}
CLICK = {
    "type": "object",
    "properties": {"page": {"type": "string", "description": "Its path."}, "ms": {"title": "When"}},
}


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[SchemaRegistry]:
    monkeypatch.setattr(module, "_PAUSE_S", 0.0)
    prose._of_subject.cache_clear()  # a port may have been another registry's
    with serving() as served:
        yield served


def sink(url: str, converter: str = "avro", **settings: Any) -> Sink:
    least = {"name": "events", "topics": ["orders"], "bucket": "lake", "start": "2026-01-05T00"}
    return Sink.model_validate(
        {
            **least,
            "format": {"type": "parquet"},
            "converter": {"value": converter, "registry": {"url": url}},
            **settings,
        }
    )


@pytest.mark.parametrize(
    ("converter", "kind", "schema", "words"),
    [
        ("avro", "", ORDER, {"id": "The order's key."}),
        ("json_schema", "JSON", CLICK, {"page": "Its path.", "ms": "When"}),
    ],
)
def test_a_column_is_what_its_field_says(
    converter: str, kind: str, schema: Any, words: dict[str, str], registry: SchemaRegistry
) -> None:
    registry.add(schema, kind, subject="orders-value")
    assert of_columns(sink(registry.url, converter), "orders") == words


def test_a_process_asks_once_for_a_topic(registry: SchemaRegistry) -> None:
    registry.add(ORDER, subject="orders-value")
    for _ in range(2):
        of_columns(sink(registry.url), "orders")
    assert [path for path, _ in registry.asked] == ["/subjects/orders-value/versions/latest"]


def test_without_the_subject_or_an_answer_there_are_no_words_and_no_error(registry: SchemaRegistry) -> None:
    assert of_columns(sink(registry.url), "orders") == {}
    registry.answers += [(500, b"")] * 3
    assert of_columns(sink(registry.url), "clicks") == {}


def test_a_sink_whose_values_have_no_registered_schema_asks_nobody(registry: SchemaRegistry) -> None:
    assert of_columns(sink(registry.url, "json"), "orders") == {}
    assert of_columns(sink(registry.url, envelope={"fields": ["key", "value"]}), "orders") == {}
    assert registry.asked == []


@pytest.mark.parametrize(
    ("language", "text"),
    [("PROTOBUF", 'syntax = "proto3";'), ("AVRO", '"string"'), ("AVRO", '["null"]'), ("JSON", "true")],
)
def test_a_schema_without_fields_says_nothing(language: str, text: str) -> None:
    assert of_fields(language, text) == {}


def test_a_record_beside_null_is_the_record() -> None:
    assert of_fields("AVRO", f'["null", {json.dumps(ORDER)}]') == {"id": "The order's key."}
