"""Avro that lands as Avro: the producer's bytes and schema, wherever they read back as the columns do."""

import io
import json
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3lake.lake.objects.avro_objects import open_rows
from s3lake.records.convert.conversion import Conversion
from s3lake.records.convert.convert_batch import ConvertedBatch, convert_batch
from s3lake.records.schema.columns.types import PLACEHOLDER
from s3lake_tests.lake.verify.staged_records import stage_records
from s3lake_tests.lake.verify.world import VerifiedTopic
from s3lake_tests.records.convert.batches import batch
from s3lake_tests.records.convert.read.avro.avro_files import read_avro_schema, write_avro_file
from s3lake_tests.records.convert.read.avro.random_datums import KINDS, numbered_record, rename_types
from s3lake_tests.records.schema.registry.server import SchemaRegistry, datum, framed

SIZE = {"type": "enum", "name": "com.acme.Size", "symbols": ["S", "L"]}


def landed(registry: SchemaRegistry, format: str, *values: bytes | None, **more: Any) -> ConvertedBatch:
    return convert_batch(
        Conversion("string", "avro", format, "write", registry=registry.connection, **more), batch(*values), {}
    )


def rows(payload: pa.RecordBatch) -> str:
    """By their text: no NaN is equal to itself."""
    return str(list(fastavro.reader(io.BytesIO(write_avro_file(payload)))))


def field(kind: Any) -> dict[str, Any]:
    return {"type": "record", "name": "Order", "namespace": "com.acme", "fields": [{"name": "a", "type": kind}]}


def test_the_file_has_the_producers_schema_and_bytes(registry: SchemaRegistry) -> None:
    schema = field(["null", "int"])
    schema["fields"] += [{"name": "b", "type": "long", "default": 7}, {"name": "c", "type": SIZE}]
    number = registry.add(schema)
    datums = [b"\2\x02\x04\x02", b"\0\x04\0"]
    (part,) = landed(registry, "avro", *(framed(number, data) for data in datums)).parts
    assert read_avro_schema(part.streams["data"]) == schema
    assert b"".join(datums) in write_avro_file(part.streams["data"])
    assert rows(part.streams["data"]) == "[{'a': 1, 'b': 2, 'c': 'L'}, {'a': None, 'b': 2, 'c': 'S'}]"


def test_a_padded_integer_which_java_refuses_is_written_again(registry: SchemaRegistry) -> None:
    number, padded = registry.add(field("int")), b"\x82\x80\x80\x80\x80\0"
    (part,) = landed(registry, "avro", framed(number, padded)).parts
    assert rows(part.streams["data"]) == "[{'a': 1}]"
    assert padded not in write_avro_file(part.streams["data"])


@pytest.mark.parametrize("valued", [False, True])
def test_a_record_that_is_none_of_its_schema_is_refused_and_not_passed_on(
    registry: SchemaRegistry, valued: bool
) -> None:
    number = registry.add(field("string"))
    datums = [b"\2x", b"\2", b"\2xy", b"\2\xff", b"\4yz"]
    converted = landed(registry, "avro", *(framed(number, data) for data in datums), valued=valued)
    assert sorted(converted.refused) == [1, 2, 3]
    (part,) = converted.parts
    assert part.rows.to_pylist() == [0, 4]
    assert rows(part.streams["data"]) == "[{'a': 'x'}, {'a': 'yz'}]"


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("null", b""),
        (["null", "int", "string"], b"\0"),
        (["int"], b"\0\2"),
        ({"type": "long", "logicalType": "local-timestamp-millis"}, b"\0"),
        ({"type": "fixed", "name": "U", "size": 16, "logicalType": "uuid"}, bytes(16)),
        ({"type": "bytes", "logicalType": "decimal", "precision": 40, "scale": 2}, b"\0"),
        ({"type": "array", "items": ["null", "int", "string"]}, b"\0"),
        ({"type": "enum", "name": "E", "namespace": "", "symbols": ["A"]}, b"\0"),
        ({"type": "enum", "name": "no-name", "symbols": ["A"]}, b"\0"),
    ],
)
def test_values_that_would_not_read_back_as_their_column_are_encoded_again(
    registry: SchemaRegistry, kind: Any, data: bytes
) -> None:
    schema = field("int")
    schema["fields"].append({"name": "b", "type": kind})
    (part,) = landed(registry, "avro", framed(registry.add(schema), b"\2" + data)).parts
    assert read_avro_schema(part.streams["data"])["fields"][0] == {"name": "a", "type": "int"}


@pytest.mark.parametrize(
    ("kind", "default", "data"),
    [
        ("string", None, b"\2x"),
        (["null", "int"], "none", b"\2\2"),
        (field("int") | {"name": "I", "fields": [{"name": "b", "type": "int", "default": "1"}]}, {"b": 1}, b"\2"),
        (["int", "string"], 0, b"\0\2"),
    ],
)
def test_a_default_that_its_field_cannot_have_is_left_out(
    registry: SchemaRegistry, kind: Any, default: Any, data: bytes
) -> None:
    schema = field("int")
    schema["fields"].append({"name": "c", "type": kind, "default": default})
    for neighbour in ("int", ["int", "string"]):  # with the second one the values are written again
        schema["fields"][0]["type"] = neighbour
        value = framed(registry.add(schema), (b"\2" if neighbour == "int" else b"\0\2") + data)
        (part,) = landed(registry, "avro", value).parts
        assert rows(part.streams["data"])


def test_a_type_that_is_used_twice_is_defined_once(registry: SchemaRegistry) -> None:
    schema = field(SIZE)
    schema["fields"] += [
        {"name": "b", "type": ["null", "com.acme.Size"]},
        {"name": "c", "type": {"type": "array", "items": "Size"}},
    ]
    (part,) = landed(registry, "avro", framed(registry.add(schema), b"\2\2\0\2\2\0")).parts
    kinds = [one["type"] for one in read_avro_schema(part.streams["data"])["fields"]]
    assert kinds == [SIZE, ["null", "com.acme.Size"], {"type": "array", "items": "com.acme.Size"}]
    assert rows(part.streams["data"]) == "[{'a': 'L', 'b': 'S', 'c': ['L']}]"


DEBEZIUM: dict[str, Any] = {
    "type": "record",
    "name": "Value",
    "namespace": "db.prices",
    "fields": [
        {"name": "id", "type": "int", "pii": True, "order": "descending"},
        {
            "name": "at",
            "type": {"type": "long", "connect.version": 1, "connect.name": "io.debezium.time.MicroTimestamp"},
        },
        {"name": "seen", "type": {"type": "long", "logicalType": "timestamp-micros"}, "default": 3},
        {"name": "size", "type": SIZE | {"default": "L", "of": "shirts"}, "default": "S"},
        {"name": "day", "type": ["null", {"type": "int", "logicalType": "date", "connect.name": "D"}], "default": None},
        {"name": "code", "type": {"type": "fixed", "name": "db.prices.Code", "size": 2, "hex": True}},
        {
            "name": "tags",
            "type": {"type": "array", "items": {"type": "string", "avro.java.string": "String"}, "top": 9},
        },
        {"name": "more", "type": {"type": "map", "values": {"type": "double", "unit": "kg"}, "connect.type": "map"}},
        {"name": "who", "type": {"type": "record", "name": "db.prices.Who", "of": [{"x": None}], "fields": []}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2, "in": "EUR"}},
        {"name": "odd", "type": {"type": "string", "logicalType": "colour"}},
        {"name": "rate", "type": "double", "default": 0.0},
    ],
    "connect.name": "db.prices.Value",
    "owner": {"team": "shop"},
}
DEBEZIUM["fields"][8]["type"]["fields"] = [{"name": "name", "type": {"type": "string", "logicalType": "uuid", "v": 4}}]
ROW = {
    **{"id": 1, "at": 2, "seen": 3, "size": "L", "day": None, "code": b"xy", "tags": ["a"], "more": {"k": 0.5}},
    **{"who": {"name": "3f0b8a52-8f1c-4c2e-9d43-0c5d1a2b3c4d"}, "price": b"\x7d", "odd": "red", "rate": 1.0},
}


def without_connect(schema: Any) -> Any:
    if isinstance(schema, list):
        return list(map(without_connect, schema))
    if isinstance(schema, dict):
        kept = {name: without_connect(one) for name, one in schema.items() if not name.startswith("connect.")}
        return kept["type"] if list(kept) == ["type"] else kept
    return schema


def test_the_file_keeps_the_whole_schema_of_the_producer(registry: SchemaRegistry) -> None:
    value = framed(registry.add(DEBEZIUM), datum(DEBEZIUM, ROW))
    (part,) = landed(registry, "avro", value).parts
    assert read_avro_schema(part.streams["data"]) == DEBEZIUM
    (bare,) = landed(registry, "avro", value, connect_properties=False).parts
    assert read_avro_schema(bare.streams["data"]) == without_connect(DEBEZIUM) != DEBEZIUM


def test_a_file_that_is_written_from_columns_keeps_what_columns_can_express(registry: SchemaRegistry) -> None:
    """An enum is a text there, and a fixed is bytes: Parquet's readers know neither."""
    schema = {**DEBEZIUM, "fields": [*DEBEZIUM["fields"], {"name": "any", "type": ["int", "string"]}]}
    expected = json.loads(json.dumps(DEBEZIUM))
    fields = {field["name"]: field for field in expected["fields"]}
    fields["size"]["type"], fields["code"]["type"] = {"type": "string", "of": "shirts"}, {"type": "bytes", "hex": True}
    value = framed(registry.add(schema), datum(schema, {**ROW, "any": 5}))
    (part,) = landed(registry, "avro", value).parts
    found = read_avro_schema(part.streams["data"])
    found["fields"].pop()
    fields["who"]["type"] |= {"name": "Who"}
    assert found == expected
    (bare,) = landed(registry, "avro", value, connect_properties=False).parts
    found = read_avro_schema(bare.streams["data"])
    found["fields"].pop()
    assert found == without_connect(expected)


@pytest.mark.parametrize(
    ("logical", "kept"),
    [
        ({"logicalType": "duration"}, {}),
        ({"logicalType": "duration", "unit": "ms"}, {"unit": "ms"}),
        ({"logicalType": "colour"}, {"logicalType": "colour"}),
    ],
)
def test_a_fixed_that_is_written_again_keeps_no_logical_type_that_is_invalid_on_bytes(
    registry: SchemaRegistry, logical: dict[str, str], kept: dict[str, str]
) -> None:
    schema = field({"type": "fixed", "name": "com.acme.Period", "size": 12, **logical})
    schema["fields"].append({"name": "wide", "type": ["null", "int", "string"]})
    number = registry.add(schema)
    (part,) = landed(registry, "avro", framed(number, b"\1\0\0\0" * 3 + b"\0")).parts
    written = read_avro_schema(part.streams["data"])["fields"][0]["type"]
    assert written == ({"type": "bytes", **kept} if kept else "bytes")
    assert rows(part.streams["data"]) == str([{"a": b"\1\0\0\0" * 3, "wide": None}])


def test_schemas_that_differ_in_a_property_share_files_of_columns_and_text(registry: SchemaRegistry) -> None:
    other = json.loads(json.dumps(DEBEZIUM).replace('"kg"', '"lb"'))
    values = [framed(registry.add(schema), datum(schema, ROW)) for schema in (DEBEZIUM, other)]
    assert {format: len(landed(registry, format, *values).parts) for format in ("avro", "parquet", "json")} == {
        "avro": 2,
        "parquet": 1,
        "json": 1,
    }


def test_schemas_that_differ_only_in_connects_properties_share_files_without_them(registry: SchemaRegistry) -> None:
    values = [framed(registry.add(schema), datum(schema, ROW)) for schema in (DEBEZIUM, without_connect(DEBEZIUM))]
    (part,) = landed(registry, "avro", *values, connect_properties=False).parts
    assert len(part.streams["data"]) == 2


def test_a_default_of_a_double_without_a_point_is_kept_with_one(registry: SchemaRegistry) -> None:
    """fastavro opens no file with an integer as default of a double."""
    schema = field("double")
    schema["fields"][0]["default"] = 0
    (part,) = landed(registry, "avro", framed(registry.add(schema), bytes(8))).parts
    assert read_avro_schema(part.streams["data"])["fields"][0] == {"name": "a", "type": "double", "default": 0.0}
    assert rows(part.streams["data"]) == "[{'a': 0.0}]"


def test_schemas_that_differ_only_in_docs_and_aliases_share_files(registry: SchemaRegistry) -> None:
    message = field("int") | {"doc": "An order.", "aliases": ["Bill"]}
    message["fields"][0] |= {"doc": "How many."}
    numbers = [registry.add(field("int")), registry.add(message)]
    (part,) = landed(registry, "avro", *(framed(number, b"\2") for number in (*numbers, *numbers))).parts
    assert part.rows is None
    assert read_avro_schema(part.streams["data"]) == field("int")


def test_schemas_whose_bytes_differ_share_none(registry: SchemaRegistry) -> None:
    plain, optional = registry.add(field("int")), registry.add(field(["null", "int"]))
    converted = landed(registry, "avro", framed(plain, b"\2"), framed(optional, b"\2\4"), framed(plain, b"\6"))
    assert [part.rows.to_pylist() for part in converted.parts] == [[0, 2], [1]]
    assert [rows(part.streams["data"]) for part in converted.parts] == ["[{'a': 1}, {'a': 3}]", "[{'a': 2}]"]
    apart = landed(registry, "parquet", framed(plain, b"\2"), framed(optional, b"\2\4")).parts
    assert [part.streams["data"].schema.field("a").nullable for part in apart] == [False, True]


@given(data=st.data())
def test_files_read_back_as_if_their_columns_had_been_written(registry: SchemaRegistry, data: st.DataObject) -> None:
    kind, values = data.draw(KINDS)
    schema = rename_types(numbered_record(n="int", x=kind))
    found = data.draw(st.lists(values, min_size=1, max_size=8))
    number = registry.add(schema)
    messages = [framed(number, datum(schema, {"n": at, "x": value})) for at, value in enumerate(found)]
    spliced, columns = landed(registry, "avro", *messages), landed(registry, "parquet", *messages)
    assert (spliced.refused, spliced.seen) == (columns.refused, columns.seen)
    for part, expected in zip(spliced.parts, columns.parts, strict=True):
        # Times as the numbers that they are: Python has none after the year 9999.
        texts = (str(list(open_rows(write_avro_file(one.streams["data"]), "file")[1])) for one in (part, expected))
        found_text, wanted = (text.replace(f"'{PLACEHOLDER}': None", "") for text in texts)
        assert found_text == wanted


def test_a_file_has_the_name_that_a_transform_gave_its_schema(registry: SchemaRegistry) -> None:
    world = VerifiedTopic(
        format={"type": "avro"},
        converter={"value": "avro", "registry": {"url": registry.url}},
        transforms=[
            {
                "type": "org.apache.kafka.connect.transforms.SetSchemaMetadata$Value",
                "options": {"schema.name": "shop.Price"},
            }
        ],
    )
    stage_records(world, [(None, framed(registry.add(DEBEZIUM), datum(DEBEZIUM, ROW)), [])])
    (manifest,) = world.manifests.values()
    reader = fastavro.reader(io.BytesIO(world.store.objects[manifest.files[0].key][0]))
    schema = json.loads(reader.metadata["avro.schema"])
    assert (schema["name"], schema["namespace"], schema["connect.name"]) == ("Price", "shop", "shop.Price")
    assert (schema["owner"], schema["fields"][0]["pii"]) == ({"team": "shop"}, True)
