"""Avro that lands as Avro: the producer's bytes and schema, wherever they read back as the columns do."""

import io
import json
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3lake.convert.values import Conversion, Converted
from s3lake.encode import FileFormat
from s3lake_tests.convert.records import batch
from s3lake_tests.convert.test_avro_columns import KINDS, fresh, record
from s3lake_tests.encode.written import written
from s3lake_tests.schema.registry.server import SchemaRegistry, datum, framed

SIZE = {"type": "enum", "name": "com.acme.Size", "symbols": ["S", "L"]}


def landed(registry: SchemaRegistry, format: str, *values: bytes | None, **more: Any) -> Converted:
    return Conversion("string", "avro", format, "write", registry=registry.connection, **more)(batch(*values), {})


def file(payload: pa.RecordBatch) -> bytes:
    return written(FileFormat("avro", "none"), [payload])


def schema_in(payload: pa.RecordBatch) -> Any:
    return json.loads(fastavro.reader(io.BytesIO(file(payload))).metadata["avro.schema"])


def rows(payload: pa.RecordBatch) -> str:
    """By their text: no NaN is equal to itself."""
    return str(list(fastavro.reader(io.BytesIO(file(payload)))))


def field(kind: Any) -> dict[str, Any]:
    return {"type": "record", "name": "Order", "namespace": "com.acme", "fields": [{"name": "a", "type": kind}]}


def test_the_file_has_the_producers_schema_and_bytes(registry: SchemaRegistry) -> None:
    schema = field(["null", "int"])
    schema["fields"] += [{"name": "b", "type": "long", "default": 7}, {"name": "c", "type": SIZE}]
    number = registry.add(schema)
    datums = [b"\2\x02\x04\x02", b"\0\x04\0"]
    (part,) = landed(registry, "avro", *(framed(number, data) for data in datums)).parts
    assert schema_in(part.streams["data"]) == schema
    assert b"".join(datums) in file(part.streams["data"])
    assert rows(part.streams["data"]) == "[{'a': 1, 'b': 2, 'c': 'L'}, {'a': None, 'b': 2, 'c': 'S'}]"


def test_a_padded_integer_which_java_refuses_is_written_again(registry: SchemaRegistry) -> None:
    number, padded = registry.add(field("int")), b"\x82\x80\x80\x80\x80\0"
    (part,) = landed(registry, "avro", framed(number, padded)).parts
    assert rows(part.streams["data"]) == "[{'a': 1}]"
    assert padded not in file(part.streams["data"])


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
def test_what_would_not_read_back_as_its_column_is_written_anew(
    registry: SchemaRegistry, kind: Any, data: bytes
) -> None:
    schema = field("int")
    schema["fields"].append({"name": "b", "type": kind})
    (part,) = landed(registry, "avro", framed(registry.add(schema), b"\2" + data)).parts
    assert schema_in(part.streams["data"])["fields"][0] == {"name": "a", "type": "int"}


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


def test_a_type_that_stands_twice_is_defined_once(registry: SchemaRegistry) -> None:
    schema = field(SIZE)
    schema["fields"] += [
        {"name": "b", "type": ["null", "com.acme.Size"]},
        {"name": "c", "type": {"type": "array", "items": "Size"}},
    ]
    (part,) = landed(registry, "avro", framed(registry.add(schema), b"\2\2\0\2\2\0")).parts
    kinds = [one["type"] for one in schema_in(part.streams["data"])["fields"]]
    assert kinds == [SIZE, ["null", "com.acme.Size"], {"type": "array", "items": "com.acme.Size"}]
    assert rows(part.streams["data"]) == "[{'a': 'L', 'b': 'S', 'c': ['L']}]"


def test_schemas_that_differ_only_in_what_they_say_share_files(registry: SchemaRegistry) -> None:
    said = field("int") | {"doc": "An order.", "aliases": ["Bill"]}
    said["fields"][0] |= {"doc": "How many."}
    numbers = [registry.add(field("int")), registry.add(said)]
    (part,) = landed(registry, "avro", *(framed(number, b"\2") for number in (*numbers, *numbers))).parts
    assert part.rows is None
    assert schema_in(part.streams["data"]) == field("int")


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
    schema = fresh(record(n="int", x=kind))
    found = data.draw(st.lists(values, min_size=1, max_size=8))
    number = registry.add(schema)
    messages = [framed(number, datum(schema, {"n": at, "x": value})) for at, value in enumerate(found)]
    spliced, columns = landed(registry, "avro", *messages), landed(registry, "parquet", *messages)
    assert (spliced.refused, spliced.seen) == (columns.refused, columns.seen)
    for part, expected in zip(spliced.parts, columns.parts, strict=True):
        assert rows(part.streams["data"]) == rows(expected.streams["data"])
