"""The documents' configurations, with records for each and the keys of the objects that land of them."""

import base64
import io
import re
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import fastavro

from s3lake_tests.config import documents
from s3lake_tests.records.schema.registry.server import serving

HOUR = "2024-01-15T09"
"""The hour of the records; they are landed at `documents.NOON`, an hour later."""


class Example(NamedTuple):
    """A configuration, records as `s3lake preview` reads them, and the keys of the objects that land of them."""

    text: str
    records: tuple[dict[str, Any], ...]
    keys: tuple[str, ...]


def record(topic: str, value: Any, **fields: Any) -> dict[str, Any]:
    """A record of the hour before the one in which it is landed."""
    return {"topic": topic, "value": value, "timestamp": documents.NOON - 3_600_000, **fields}


_CAR = record("car_speed_events", {"speed": 50}, key="car", headers={"header1": "value1", "header2": "value2"})
_ALL_PARTS = record("demo", {"fieldA": 1}, key={"fieldB": 2}, headers={"fieldC": "3"})
_CUSTOMER = record("demo", {"metadata_id": 1, "customer_id": 2, "timestamp": documents.NOON - 3_600_000})
_WINDOW_KEY = "demo/demo/metadata_id=1/customer_id=2/ts=2024-01-15-09/wallclock=2024-01-15-10/demo(0_000000000000).json"
_EVENT = record("events", {"region": "us-east", "event_type": "click"})
_AN_HOUR = "topics/events/year=2024/month=01/day=15/hour=10/events+0+0000000000"
_CONFLUENT_KEYS = {
    "field": "topics/events/region=us-east/event_type=click/events+0+0000000000.parquet",
    "default": "topics/events/partition=0/events+0+0000000000.parquet",
    "avro": f"{_AN_HOUR}.avro",
    "json": f"{_AN_HOUR}.json",
}


def _one(text: str, record: dict[str, Any], *keys: str) -> Example:
    return Example(text, (record,), keys)


def _at_topic_a(query: str, object_key: str, **fields: Any) -> Example:
    return _one(documents.statement(query), record("topicA", {"fieldA": 1}, **fields), object_key)


EXAMPLES: dict[str, Example] = {
    "lenses: example": Example(
        documents.EXAMPLE,
        (record("demo", {"ts": 12}), record("demo", {"ts": 13}, offset=1)),
        ("demo/demo/ts=12/demo(0_000000000000).json", "demo/demo/ts=13/demo(0_000000000001).json"),
    ),
    "lenses: field with a dot": _one(
        documents.DOTTED,
        record("kafka-topic", {"a.b": "value"}),
        "prefix/kafka-topic/a.b=value/kafka-topic(0_000000000000).json",
    ),
    "lenses: prefix": _at_topic_a(
        "INSERT INTO testbucket:pathToWriteTo SELECT * FROM topicA;", "pathToWriteTo/topicA/0/000000000000.json"
    ),
    "lenses: no prefix": _at_topic_a("INSERT INTO testbucket SELECT * FROM topicA;", "topicA/0/000000000000.json"),
    "lenses: path": _at_topic_a(
        "INSERT INTO testbucket:path/To/Write/To SELECT * FROM topicA PARTITIONBY fieldA;",
        "path/To/Write/To/topicA/fieldA=1/topicA(0_000000000000).json",
    ),
    "lenses: statements": Example(
        documents.statement(
            "INSERT INTO testbucket:a SELECT * FROM topicA; INSERT INTO testbucket SELECT * FROM b", "topicA,b"
        ),
        (record("topicA", {"a": 1}), record("b", {"a": 2})),
        ("a/topicA/0/000000000000.json", "b/0/000000000000.json"),
    ),
    "lenses: whole key": _at_topic_a(
        "INSERT INTO testbucket SELECT * FROM topicA PARTITIONBY _key",
        "topicA/key=k1/topicA(0_000000000000).json",
        key="k1",
    ),
    "lenses: expression": _one(documents.EXPRESSION, record("sensor_data_12", 1), "sensor_data_12/0/000000000000.json"),
    "lenses: default key": _one(documents.DEFAULT_KEY, record("demo", {"a": 1}), "prefix/demo/0/000000000000.json"),
    "lenses: custom key": _one(
        documents.custom_key("true"), _ALL_PARTS, "prefix/demo/fieldA=1/fieldB=2/fieldC=3/demo(0_000000000000).avro"
    ),
    "lenses: custom key without names": _one(
        documents.custom_key("false"), _ALL_PARTS, "prefix/demo/1/2/3/demo(0_000000000000).avro"
    ),
    "lenses: rolling window": _one(documents.ROLLING_WINDOW, _CUSTOMER, _WINDOW_KEY),
    **{
        f"lenses: stored {at}": _one(
            documents.stored(query, converters), _CAR, f"car_speed/car_speed_events/0/000000000000{extension}"
        )
        for at, (query, converters, _, extension) in enumerate(documents.STORED)
    },
    **{
        f"lenses: {form}": _at_topic_a(
            f"INSERT INTO testbucket SELECT * FROM topicA STOREAS `{form}`", f"topicA/0/000000000000.{form.lower()}"
        )
        for form in ("AVRO", "Parquet", "JSON", "CSV", "Text", "BYTES")
    },
    **{
        f"lenses: index {name}": _one(
            documents.statement("INSERT INTO bucket SELECT * FROM demo", "demo", f"connect.s3.indexes.name={name}\n"),
            record("demo", {"a": 1}),
            "demo/0/000000000000.json",
        )
        for name in documents.INDEXES
    },
    "lenses: credentials": _one(documents.CREDENTIALS, record("demo", {"a": 1}), "demo/0/000000000000.json"),
    "lenses: retries": _one(documents.RETRIES, record("demo", {"a": 1}), "demo/0/000000000000.json"),
    **{
        f"confluent: {name}": _one(
            documents.fragment(**changes), _EVENT, _CONFLUENT_KEYS.get(name, f"{_AN_HOUR}.parquet")
        )
        for name, changes in documents.CONFLUENT.items()
    },
    "aiven: console": _one(documents.AIVEN_CONSOLE, record("YOUR-TOPIC", "value"), "YOUR-TOPIC-0-0.gz"),
    "aiven: rest": Example(
        documents.AIVEN_REST,
        (record("source_topic", "value", key="key0"), record("another_topic", "value", key="key0")),
        (
            "example-s3-sink/another_topic-0-00000000000000000000.gz",
            "example-s3-sink/source_topic-0-00000000000000000000.gz",
        ),
    ),
    "aiven: dates": _one(documents.AIVEN_DATES, record("t", "value"), "2024-01-15/t-0-00000000000000000000.gz"),
    "aiven: local dates": _one(
        documents.AIVEN_LOCAL_DATES, record("t", "value"), "2024-01-15/t-0-00000000000000000000.gz"
    ),
    "iggy: readme": _one(
        documents.IGGY,
        record("app_logs.api_requests", {"a": 1}, headers={"h": "x"}),
        "iggy/raw/app_logs/api_requests/2024-01-15/09/00000-00000000000000000000-00000000000000000000.jsonl",
    ),
}
"""One row an example. `docs/test_examples.py` lands each, `land/preview/test_connectors.py` previews it."""


@contextmanager
def registered(example: Example) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield text and records of an example; if it needs a Schema Registry, of one that runs, with values in Avro."""
    if "AvroConverter" not in example.text:
        yield example.text, list(example.records)
        return
    with serving() as registry:
        text = re.sub(r"http://(localhost|schema-registry):8081", registry.url, example.text)
        rows = []
        for row in example.records:
            fields = [
                {"name": name, "type": "long" if isinstance(value, int) else "string"}
                for name, value in row["value"].items()
            ]
            schema = {"type": "record", "name": "Value", "fields": fields}
            datum = io.BytesIO()
            fastavro.schemaless_writer(datum, fastavro.parse_schema(schema), row["value"])
            framed = struct.pack(">bI", 0, registry.add(schema)) + datum.getvalue()
            rows.append({**row, "value": {"base64": base64.b64encode(framed).decode()}})
        yield text, rows


CONFIGURATIONS: dict[str, str] = {name: example.text for name, example in EXAMPLES.items()}
