"""The styles `flat` (Aiven's rows) and `iggy` (its S3 sink's lines). Their texts: `lake/verify/test_envelopes.py`."""

import io
import json

import fastavro
import pytest

from s3lake.records.convert.conversion import Conversion
from s3lake.records.convert.convert_batch import convert_batch
from s3lake.records.convert.read.keys_and_values import RecordEnvelope
from s3lake.records.encode import FileFormat
from s3lake.records.schema.columns.types import Primitive
from s3lake_tests.records.convert.batches import batch, lines, table
from s3lake_tests.records.encode.written_files import written

ALL = ("value", "key", "timestamp", "offset", "headers")


def flat(
    format: str, *fields: str, key: str = "bytes", value: str = "bytes", encoding: str = "base64", bare: bool = False
) -> Conversion:
    return Conversion(key, value, format, "write", RecordEnvelope("flat", fields, "orders", encoding, bare))


@pytest.mark.parametrize("value", [b"a\nb", b"a\rb"])
def test_a_line_break_in_a_value_that_is_written_unchanged_is_a_record_error(value: bytes) -> None:
    converted = convert_batch(flat("csv", "value", value="string", encoding="none"), batch(b"x", value, None), {})
    assert list(converted.refused) == [1]
    assert "set envelope.value_encoding to base64" in converted.refused[1]


@pytest.mark.parametrize(
    ("milliseconds", "instant"),
    [
        (0, '"1970-01-01T00:00:00Z"'),
        (1_500, '"1970-01-01T00:00:01.500Z"'),
        (-1, '"1969-12-31T23:59:59.999Z"'),
        (1795168800000, '"2026-11-20T10:00:00Z"'),
        (253_402_300_800_000, '"+10000-01-01T00:00:00Z"'),
        (None, "null"),
    ],
)
def test_a_timestamp_is_an_instant(milliseconds: int | None, instant: str) -> None:
    assert lines(flat("json", "timestamp"), batch(b"", timestamps=[milliseconds])) == ['{"timestamp":' + instant + "}"]


def test_the_timestamp_of_an_iggy_line_is_its_second() -> None:
    by = Conversion("string", "json", "json", "write", RecordEnvelope("iggy", ("metadata",), "orders"))
    found = [json.loads(line)["timestamp"] for line in lines(by, batch(b"1", b"2", timestamps=[1710597600123, -1]))]
    assert found == ["2024-03-16T14:00:00Z", "1969-12-31T23:59:59Z"]


@pytest.mark.parametrize("format", ["avro", "parquet"])
def test_a_table_has_one_column_a_field(format: str) -> None:
    records = batch(b'{"id":1}', keys=[b"\xff"], timestamps=[1500], headers=[[("a", b"1"), ("b", None), ("a", b"2")]])
    converted = convert_batch(flat(format, *ALL, value="json"), records, {})
    assert table(converted) == [
        {
            "value": {"id": 1},
            "key": b"\xff",
            "timestamp": 1500,
            "offset": 100,
            "headers": [("a", "2"), ("b", None)],
        }
    ]
    schema = converted.parts[0].streams["data"].schema
    assert schema.names == list(ALL)
    assert schema.metadata == {b"s3lake.name": b"io.aiven.avro.output.schema.connector_records"}


AIVENS = {
    "type": "record",
    "name": "connector_records",
    "namespace": "io.aiven.avro.output.schema",
    "fields": [
        {"name": "key", "type": ["null", "string"], "default": None},
        {"name": "offset", "type": "long"},
        {"name": "timestamp", "type": "long"},
        {"name": "headers", "type": {"type": "map", "values": ["null", "string"]}},
        {
            "name": "value",
            "type": {
                "type": "record",
                "name": "Order",
                "namespace": "com.acme",
                "fields": [{"name": "id", "type": "long"}],
            },
        },
    ],
}
"""As its SinkSchemaBuilder has it."""


def test_an_avro_file_has_aivens_schema_and_names() -> None:
    order = {"type": "struct", "name": "com.acme.Order", "fields": [{"field": "id", "type": "int64"}]}
    value = json.dumps({"schema": order, "payload": {"id": 1}}).encode()
    fields = ("key", "offset", "timestamp", "headers", "value")
    by = Conversion("string", "connect_json", "avro", "write", RecordEnvelope("flat", fields, "orders"))
    (part,) = convert_batch(by, batch(value, keys=[b"k"], timestamps=[5], headers=[[("h", b"x")]]), {}).parts
    reader = fastavro.reader(io.BytesIO(written(FileFormat("avro", "none"), [part.streams["data"]])))
    assert json.loads(reader.metadata["avro.schema"]) == AIVENS
    row = {"key": "k", "offset": 100, "timestamp": 5, "headers": {"h": "x"}, "value": {"id": 1}}
    assert list(reader) == [row]


def test_a_header_of_a_table_that_is_no_text_is_a_record_error() -> None:
    found = convert_batch(
        flat("parquet", "headers", "value", value="json"), batch(b"{}", headers=[[("h", b"\xff")]]), {}
    )
    assert found.refused == {0: "header 'h' is not UTF-8: byte 0 is 0xff"}


@pytest.mark.parametrize("field", ["value", "key"])
def test_a_bare_field_of_a_table_is_the_row(field: str) -> None:
    converted = convert_batch(
        flat("parquet", field, key="json", value="json", bare=True), batch(b'{"id":1}', keys=[b'{"id":1}']), {}
    )
    assert (table(converted), converted.columns) == ([{"id": 1}], {"id": Primitive.INT64})
