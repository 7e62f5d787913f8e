"""What a schema has besides types: files are one table with the files that a connector wrote from the same schema."""

import io
import json
from datetime import date
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from s3lake.records.convert.conversion import Conversion
from s3lake.records.convert.convert_batch import convert_batch
from s3lake.records.convert.read.keys_and_values import RecordEnvelope
from s3lake.records.encode import FileFormat
from s3lake_tests.records.convert.batches import batch
from s3lake_tests.records.encode.written_files import written

SPACE = "io.confluent.connect.avro"


def of_connect(name: str, type: str, /, **more: Any) -> dict[str, Any]:
    return {"field": name, "type": type, **more}


def of_avro(name: str, type: Any, /, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": type, **more}


def of_arrow(name: str, type: pa.DataType, /, *, optional: bool = False) -> pa.Field:
    return pa.field(name, type, nullable=optional)


TEXT = {"type": "string", "optional": False}
BUYER = {"type": "record", "name": "Buyer", "namespace": "com.acme", "fields": [of_avro("name", "string")]}
PLACE = {
    "type": "record",
    "name": "ConnectDefault",
    "namespace": SPACE,
    "fields": [of_avro("zip", ["null", "int"], default=None)],
}
PARAMETERS = {"a": "b", f"{SPACE}.field.default": "true"}
TABLE: list[tuple[dict[str, Any], dict[str, Any], pa.Field]] = [
    (of_connect("id", "int64"), of_avro("id", "long"), of_arrow("id", pa.int64())),
    (of_connect("count", "int32", default=7), of_avro("count", "int", default=7), of_arrow("count", pa.int32())),
    (
        of_connect("note", "string", optional=True),
        of_avro("note", ["null", "string"], default=None),
        of_arrow("note", pa.string(), optional=True),
    ),
    (
        of_connect("colour", "string", optional=True, default="red"),
        of_avro("colour", ["string", "null"], default="red"),
        of_arrow("colour", pa.string(), optional=True),
    ),
    (
        of_connect("raw", "bytes", default="/w=="),
        of_avro("raw", "bytes", default="\u00ff"),
        of_arrow("raw", pa.binary()),
    ),
    (
        of_connect("tags", "array", items=TEXT),
        of_avro("tags", {"type": "array", "items": "string"}),
        of_arrow("tags", pa.list_(pa.field("element", pa.string(), nullable=False))),
    ),
    (
        of_connect("sizes", "map", keys=TEXT, values={"type": "int32", "optional": True}),
        of_avro("sizes", {"type": "map", "values": ["null", "int"]}),
        of_arrow("sizes", pa.map_(pa.string(), pa.int32())),
    ),
    (
        of_connect("buyer", "struct", name="com.acme.Buyer", optional=True, fields=[of_connect("name", "string")]),
        of_avro("buyer", ["null", BUYER], default=None),
        of_arrow("buyer", pa.struct([of_arrow("name", pa.string())]), optional=True),
    ),
    (
        of_connect("place", "struct", fields=[of_connect("zip", "int32", optional=True)]),
        of_avro("place", PLACE),
        of_arrow("place", pa.struct([("zip", pa.int32())])),
    ),
    (
        of_connect("at", "int64", optional=True, name="io.debezium.time.Timestamp", version=1),
        of_avro("at", ["null", "long"], default=None),
        of_arrow("at", pa.int64(), optional=True),
    ),
    (
        of_connect("small", "int8", doc="how small", parameters=PARAMETERS),
        of_avro("small", "int"),
        of_arrow("small", pa.int32()),
    ),
    (
        of_connect("day", "int32", name="org.apache.kafka.connect.data.Date", version=1),
        of_avro("day", {"type": "int", "logicalType": "date"}),
        of_arrow("day", pa.date32()),
    ),
]
"""Fields of a schema of Connect, with what Confluent's AvroData makes of them, without what only Connect reads."""
FIELDS = [connect for connect, _, _ in TABLE]
CONNECT = {"type": "struct", "name": "com.shop.Order", "optional": False, "fields": FIELDS}
AVRO_DATA = {"type": "record", "name": "Order", "namespace": "com.shop", "fields": [avro for _, avro, _ in TABLE]}
ARROW = pa.schema([arrow for _, _, arrow in TABLE])
ROW: dict[str, Any] = {
    "id": 1,
    "count": 2,
    "note": None,
    "colour": "blue",
    "raw": b"\x00\xff",
    "tags": ["a", "b"],
    "sizes": {"x": 1, "y": None},
    "buyer": {"name": "Ann"},
    "place": {"zip": None},
    "at": 1_700_000_000_000,
    "small": 3,
    "day": date(2026, 1, 6),
}
OTHER: dict[str, Any] = {**ROW, "id": 2, "note": "n", "buyer": None, "tags": [], "sizes": {}, "place": {"zip": 8000}}


def payload(row: dict[str, Any] | None, schema: Any = CONNECT) -> bytes:
    expected = row and {**row, "raw": "AP8=", "day": 20_459}
    return json.dumps({"schema": schema, "payload": expected}).encode()


def converted(format: str, *values: bytes | None, **more: Any) -> pa.RecordBatch:
    by = Conversion("string", "connect_json", format, **{"nulls": "write", **more})
    found = convert_batch(by, batch(*values), {})
    assert not found.refused
    (part,) = found.parts
    return part.streams["data"]


def ours(format: str, *values: bytes | None) -> bytes:
    return written(FileFormat(format, "none"), [converted(format, *values)])


def test_an_avro_files_schema_is_what_the_connector_writes() -> None:
    schema = fastavro.reader(io.BytesIO(ours("avro", payload(ROW)))).metadata["avro.schema"]
    assert json.loads(schema) == AVRO_DATA


def test_parquet_files_of_the_connector_and_ours_are_one_table() -> None:
    out = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist([ROW, OTHER], ARROW), out)
    files = [out.getvalue().to_pybytes(), ours("parquet", payload(ROW), payload(OTHER))]
    schemas = [pq.read_schema(pa.BufferReader(file)) for file in files]
    assert [str(schema.remove_metadata()) for schema in schemas] == [str(schemas[0].remove_metadata())] * 2
    both = ds.dataset([pq.read_table(pa.BufferReader(file)) for file in files]).to_table()
    assert both.column("id").to_pylist() == [1, 2, 1, 2]


def test_a_null_payload_makes_its_columns_optional() -> None:
    schema = {**CONNECT, "optional": True}
    found = converted("parquet", *(payload(value, schema) for value in (ROW, None)))
    assert found.schema.field("id").nullable
    assert found.column("id").to_pylist() == [1, None]


DOCUMENTED = {**CONNECT, "fields": [{**FIELDS[0], "doc": " the order's key "}, *FIELDS[1:]]}


@pytest.mark.parametrize("format", ["parquet", "avro"])
def test_a_part_has_the_words_of_its_schema_for_columns(format: str) -> None:
    (part,) = convert_batch(
        Conversion("string", "connect_json", format, "write"), batch(payload(ROW, DOCUMENTED)), {}
    ).parts
    assert part.words == {"id": "the order's key", "small": "how small"}


def test_in_an_envelope_a_part_has_the_words_of_its_fields() -> None:
    by = Conversion(
        "string", "connect_json", "parquet", "write", RecordEnvelope("record", ("value", "metadata"), "orders")
    )
    (part,) = convert_batch(by, batch(payload(ROW, DOCUMENTED)), {}).parts
    assert part.words == {"value": "id: the order's key\nsmall: how small"}


def test_schemas_that_differ_in_a_default_alone_are_different() -> None:
    other = {**CONNECT, "fields": [{**FIELDS[0], "default": 5}, *FIELDS[1:]]}
    found = convert_batch(
        Conversion("string", "connect_json", "avro", "write"), batch(payload(ROW), payload(ROW, other)), {}
    )
    assert len(found.parts) == 2
    assert len({hash(part.streams["data"].schema) for part in found.parts}) == 2


@pytest.mark.parametrize("style", ["record", "flat"])
def test_an_envelope_keeps_the_details_of_the_values_schema(style: Any) -> None:
    found = converted("avro", payload(ROW), envelope=RecordEnvelope(style, ("value",), "orders")).schema.field("value")
    assert found.nullable == (style == "record")
    assert not found.type.field("id").nullable
    assert found.type.field("note").nullable
