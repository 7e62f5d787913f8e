"""Avro of a registry, landed from Kafka as Avro: the bytes that the producer wrote, verified and read back."""

import io
import json
from typing import Any
from uuid import UUID

import fastavro
import pytest

from s3lake import hours
from s3lake.lake.readback.arrow_dataset import open_dataset
from s3lake.land.hour.landing import land
from s3lake_tests.kit.lake import START, Lake, at
from s3lake_tests.records.schema.registry.server import datum, framed, serving

OLD: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "namespace": "com.acme",
    "fields": [
        {"name": "id", "type": "int"},
        {"name": "size", "type": {"type": "enum", "name": "com.acme.Size", "symbols": ["S", "L"]}},
    ],
}
NEW: dict[str, Any] = {**OLD, "fields": [*OLD["fields"], {"name": "note", "type": ["null", "string"]}]}


def test_avro_lands_as_its_producer_wrote_it(lake: Lake) -> None:
    with serving() as registry:
        old, new = registry.add(OLD), registry.add(NEW)
        topic = lake.topic()
        values = [framed(old, b"\2\2"), framed(old, b"\4\0"), framed(new, b"\6\2\2\2x"), None, framed(old, b"\2")]
        values += [bytes.fromhex("00ffffffff02"), framed(7, b"\2")]  # ids that no schema has
        lake.produce(topic, values, at(START, 5))
        converter = f"converter: {{value: avro, registry: {{url: '{registry.url}'}}}}"
        text = f"{converter}, format: {{type: avro, codec: snappy}}, errors: {{tolerance: all}}"
        target = lake.target(topic, text, at(START, 200))
        land(target, [START])
        report = lake.verify(target)
    assert report.differences == ()
    assert (report.landed, report.skipped, report.dead_letters) == (3, 1, 3)
    files = {}
    for key in lake.objects():
        if key.endswith(".avro"):
            reader = fastavro.reader(io.BytesIO(lake.body(key)))
            files[json.dumps(json.loads(reader.metadata["avro.schema"]), sort_keys=True)] = list(reader)
    assert files == {
        json.dumps(OLD, sort_keys=True): [{"id": 1, "size": "L"}, {"id": 2, "size": "S"}],
        json.dumps(NEW, sort_keys=True): [{"id": 3, "size": "L", "note": "x"}],
    }


def test_records_whose_headers_name_their_schema_land_and_are_verified(lake: Lake) -> None:
    with serving() as registry:
        guid, topic = registry.add_with_guid(OLD), lake.topic()
        named, unknown = b"\1" + guid.bytes, b"\1" + bytes(16)
        for data, header in ((b"\2\2", named), (b"\4\0", named), (b"\2\2", unknown)):
            lake.producer.produce(topic, data, headers=[("__value_schema_id", header)], timestamp=at(START, 5))
        lake.producer.flush()
        text = f"converter: {{value: avro, registry: {{url: '{registry.url}'}}}}, format: {{type: parquet}}"
        target = lake.target(topic, f"{text}, errors: {{tolerance: all}}", at(START, 200))
        land(target, [START])
        report = lake.verify(target)
        rows = open_dataset(target.sink, topic, target.stores, lake.connection, None, allow_incomplete=True).to_table()
    assert (report.differences, report.landed, report.dead_letters) == ((), 2, 1)
    assert [(row["id"], row["size"]) for row in rows.to_pylist()] == [(1, "L"), (2, "S")]
    (letters,) = [lake.body(key) for key in lake.objects() if "_dead_letters" in key]
    letter = json.loads(letters)
    assert (letter["value"], letter["message"]) == (
        "\2\2",
        f"schema GUID {UUID(int=0)}: the registry reports 'Schema {UUID(int=0)} not found'",
    )


@pytest.mark.slow("records of two schemas land for real above")
@pytest.mark.parametrize("format", ["parquet", "avro"])
def test_hours_of_long_and_of_double_are_verified_and_read_together(lake: Lake, format: str) -> None:
    def of(kind: str) -> dict[str, Any]:
        return {"type": "record", "name": "N", "fields": [{"name": "n", "type": kind}]}

    with serving() as registry:
        topic, next_hour = lake.topic(), hours.shift(START, 1)
        long, double = registry.add(of("long")), registry.add(of("double"))
        values = [framed(long, datum(of("long"), {"n": number})) for number in (2**53 + 1, 7)]
        lake.produce(topic, values, at(START, 2))
        lake.produce(topic, [framed(double, datum(of("double"), {"n": 0.5}))], at(next_hour, 1))
        converter = f"converter: {{value: avro, registry: {{url: '{registry.url}'}}}}"
        settings = f"{converter}, format: {{type: {format}}}, errors: {{tolerance: all}}"
        target = lake.target(topic, settings, at(START, 300))
        land(target, [START, next_hour])
        report = lake.verify(target)
    assert report.differences == ()
    assert (report.landed, report.dead_letters) == (2, 1)
    read = open_dataset(target.sink, topic, target.stores, lake.connection, None, allow_incomplete=True).to_table()
    assert read.column("n").to_pylist() == [2**53 + 1, 7]
