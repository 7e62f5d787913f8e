"""Descriptions of columns, from the registry's newest schemas of a topic."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from grpc_tools import protoc

from s3lake.config.model import Sink
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.index.store.memory import MemoryStore
from s3lake.land.hour.landing import land
from s3lake.orchestration import column_descriptions
from s3lake.orchestration.column_descriptions import describe_columns, read_descriptions
from s3lake.orchestration.hour_metadata import hour_metadata
from s3lake.records.schema import registry as module
from s3lake_tests.index.commit.kafka import TOPIC
from s3lake_tests.kit.sinks import make_sink
from s3lake_tests.land.at_hand import FIRST, SECOND, TopicInMemory
from s3lake_tests.records.schema.registry.server import SchemaRegistry, serving

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long", "doc": " The order's key. "}, {"name": "city", "type": "string"}],
}
CLICK = {
    "type": "object",
    "properties": {"page": {"type": "string", "description": "Its path."}, "ms": {"title": "When"}},
}


SHOP = """syntax = "proto3";
import "money.proto";
message Order {
  // The order's
  // key.
  int64 id = 1;
  optional string note = 2; // What was noted.
  oneof payment { // How it is paid.
    string card = 3;
  }
  Money total = 4;
}
message Other { int64 id = 1; // Another.
}
"""
INDEX = TopicIndex(MemoryStore(), ".indexes", "events", "orders")
MONEY = 'syntax = "proto3"; message Money { int64 cents = 1; }'


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[SchemaRegistry]:
    monkeypatch.setattr(module, "PAUSE_S", 0.0)
    column_descriptions.describe_fields.cache_clear()  # a port may have been another registry's
    with serving() as served:
        yield served


def sink(url: str = "", converter: Any = "avro", registry: Any = None, **settings: Any) -> Sink:
    if not isinstance(converter, dict):
        converter = {"value": converter, "registry": registry or {"url": url}}
    return make_sink(format={"type": "parquet"}, converter=converter, **settings)


@pytest.mark.parametrize(
    ("converter", "kind", "schema", "words"),
    [
        ("avro", "", ORDER, {"id": "The order's key."}),
        ("avro", "", ["null", ORDER], {"id": "The order's key."}),
        ("json_schema", "JSON", CLICK, {"page": "Its path.", "ms": "When"}),
    ],
)
def test_a_column_has_the_description_of_its_field(
    converter: str, kind: str, schema: Any, words: dict[str, str], registry: SchemaRegistry
) -> None:
    registry.add(schema, kind, subject="orders-value")
    assert describe_columns(sink(registry.url, converter), "orders", INDEX) == words


def test_a_column_has_the_description_of_the_newest_schema_of_records() -> None:
    topic = TopicInMemory(format={"type": "parquet"}, converter={"value": "connect_json"})
    for number, text in enumerate(("The order's key.", "Its key.")):
        fields = [{"field": "id", "type": "int64", "doc": text}, {"field": "city", "type": "string"}]
        row = {"schema": {"type": "struct", "fields": fields}, "payload": {"id": 1, "city": "Bern"}}
        topic.produce(number, json.dumps(row).encode())
    target = topic.target()
    assert describe_columns(topic.sink, TOPIC, target.index) == {}
    *_, second = land(target, [FIRST, SECOND])
    words = describe_columns(topic.sink, TOPIC, target.index)
    schema = hour_metadata(second, target.index, None, words)["dagster/column_schema"]
    assert {column.name: column.description for column in schema.columns} == {"id": "Its key.", "city": None}


def test_a_process_asks_once_for_a_topic(registry: SchemaRegistry) -> None:
    registry.add(ORDER, subject="orders-value")
    for _ in range(2):
        describe_columns(sink(registry.url), "orders", INDEX)
    assert [path for path, _ in registry.asked] == ["/subjects/orders-value/versions/latest"]


def test_descriptions_are_missing_if_the_subject_is_unknown_or_no_answer_comes(registry: SchemaRegistry) -> None:
    assert describe_columns(sink(registry.url), "orders", INDEX) == {}
    registry.answers += [(500, b"")] * 3
    assert describe_columns(sink(registry.url), "clicks", INDEX) == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"type":"record","name":"R","fields":[5]}', {}),
        ('{"type":"record","name":"R","fields":[{"doc":"no name"}]}', {}),
        (r'{"type":"record","name":"R","fields":[{"name":"a","doc":"half \ud800"}]}', {"a": r"half \ud800"}),
    ],
)
def test_a_strange_schema_is_no_error(registry: SchemaRegistry, text: str, words: dict[str, str]) -> None:
    registry.add(text, subject="orders-value")
    assert describe_columns(sink(registry.url), "orders", INDEX) == words


def test_a_sink_whose_values_have_no_registered_schema_asks_no_registry(registry: SchemaRegistry) -> None:
    assert describe_columns(sink(registry.url, "json"), "orders", INDEX) == {}
    enveloped = {"fields": ["key", "value"]}
    assert describe_columns(sink(registry.url, "json", envelope=enveloped), "orders", INDEX) == {}
    assert registry.asked == []


@pytest.mark.parametrize(
    ("language", "text"),
    [("PROTOBUF", 'syntax = "proto3";'), ("AVRO", '"string"'), ("AVRO", '["null"]'), ("JSON", "true")],
)
def test_a_schema_without_fields_has_no_descriptions(language: str, text: str) -> None:
    assert read_descriptions(language, text, {}) == {}


def test_comments_of_protobuf_are_the_words_of_its_columns(registry: SchemaRegistry) -> None:
    registry.add(MONEY, "PROTOBUF", subject="money")
    registry.add(SHOP, "PROTOBUF", subject="orders-value", refers=[("money.proto", "money")])
    words = {"id": "The order's key.", "note": "What was noted.", "payment_0": "How it is paid."}
    assert describe_columns(sink(registry.url, "protobuf"), "orders", INDEX) == words


def test_comments_are_in_a_descriptor_set_that_was_asked_for_them(tmp_path: Path) -> None:
    for name, text in (("shop.proto", SHOP), ("money.proto", MONEY)):
        (tmp_path / name).write_text(text)
    command = [f"-I{tmp_path}", "--include_imports", "--descriptor_set_out={out}", "shop.proto"]
    for name, more in (("plain", []), ("commented", ["--include_source_info"])):
        arguments = [part.format(out=tmp_path / name) for part in command]
        assert protoc.main(["protoc", *more, *arguments]) == 0
    of = {"url": "", "message": "Other"}
    commented, plain = (
        describe_columns(
            sink(converter="protobuf", registry={**of, "descriptor_set": str(tmp_path / name)}), "orders", INDEX
        )
        for name in ("commented", "plain")
    )
    assert (commented, plain) == ({"id": "Another."}, {})


def test_in_an_envelope_a_column_has_the_words_of_its_fields(registry: SchemaRegistry) -> None:
    registry.add(ORDER, subject="orders-value")
    registry.add({**ORDER, "fields": [{"name": "n", "type": "int", "doc": "Its number."}]}, subject="orders-key")
    both = {"key": "avro", "value": "avro", "registry": {"url": registry.url}}
    enveloped = {"fields": ["key", "value", "metadata"]}
    words = describe_columns(sink(registry.url, converter=both, envelope=enveloped), "orders", INDEX)
    assert (words["key"], words["value"]) == ("n: Its number.", "id: The order's key.")
    assert words["metadata"].startswith("The record's topic, topic-partition and offset")
