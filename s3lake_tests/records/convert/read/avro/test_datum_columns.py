"""Avro read column by column is what is read record by record, refusals included, whatever the bytes."""

import json
import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from s3lake.records.convert.read.avro import avro_values as reading
from s3lake.records.convert.read.avro import datum_columns
from s3lake.records.convert.read.converters import ConverterRequest
from s3lake.records.schema.avro import read_schema
from s3lake_tests.conftest import short_id
from s3lake_tests.records.convert.batches import batch
from s3lake_tests.records.convert.read.avro.one_by_one import convert_both_ways
from s3lake_tests.records.convert.read.avro.random_datums import KINDS, batch_of, numbered_record, rename_types
from s3lake_tests.records.schema.registry.server import SchemaRegistry, datum
from s3lake_tests.records.schema.registry.server import framed as message


def read_at_once(schema: Any, datums: list[bytes]) -> int:
    """How many of them are not left to be read one by one."""
    _, node = read_schema.read_schema(json.dumps(schema), {})
    decode = datum_columns.compile_column_reader(node.plain, node.type)
    _, plainly = datum_columns.decode_datums(decode, pa.array(datums, pa.binary()), np.arange(len(datums)), 0)
    return int(plainly.sum())


# Every kind of value


WAYS: list[dict[str, Any]] = [
    {"valued": False},
    {"valued": True, "nulls": "skip"},
    {"format": "json"},
]
"""A table that is not laid out by values, one that is, and texts."""


def same_each_way(registry: SchemaRegistry, records: pa.RecordBatch) -> None:
    for way in WAYS:
        note(f"as {way}")
        convert_both_ways(registry, records, **way)


@given(data=st.data())
def test_values_of_any_schema_are_the_same_as_one_by_one(registry: SchemaRegistry, data: st.DataObject) -> None:
    kind, values = data.draw(KINDS)
    schema = rename_types(numbered_record(n="int", x=kind))
    found = data.draw(st.lists(values, min_size=1, max_size=30))
    datums = [datum(schema, {"n": at, "x": value}) for at, value in enumerate(found)]
    same_each_way(registry, batch_of(registry, schema, datums))


@given(data=st.data())
def test_damaged_records_are_refused_with_the_same_words(registry: SchemaRegistry, data: st.DataObject) -> None:
    kind, values = data.draw(KINDS)
    schema = rename_types(numbered_record(x=kind, n="int"))
    found = data.draw(st.lists(values, min_size=1, max_size=8))
    datums = []
    for value in found:
        sound = bytearray(datum(schema, {"n": 7, "x": value}))
        match data.draw(st.sampled_from(("sound", "short", "long", "other"))):
            case "short":
                sound = sound[: data.draw(st.integers(0, len(sound)))]
            case "long":
                sound += data.draw(st.binary(max_size=3))
            case "other":
                sound[data.draw(st.integers(0, len(sound) - 1))] = data.draw(st.integers(0, 255))
        datums.append(bytes(sound))
    same_each_way(registry, batch_of(registry, schema, datums))


FAR: list[Any] = [
    {"type": "int", "logicalType": "date"},
    {"type": "long", "logicalType": "timestamp-millis"},
    {"type": "array", "items": {"type": "int", "logicalType": "date"}},
    {"type": "map", "values": ["null", {"type": "int", "logicalType": "date"}]},
]


@pytest.mark.parametrize("way", WAYS, ids=short_id)
@pytest.mark.parametrize("kind", FAR, ids=short_id)
def test_days_beyond_pythons_calendar_are_the_same(registry: SchemaRegistry, way: dict[str, Any], kind: Any) -> None:
    schema, far = numbered_record(x=kind), 2**31 - 1 if "date" in str(kind) else 2**59
    values = {"array": [far, 5], "map": {"a": far, "b": None}}
    convert_both_ways(
        registry, batch_of(registry, schema, [datum(schema, {"x": values.get(kind["type"], far)})]), **way
    )


@given(data=st.data())
def test_records_of_several_schemas_keep_their_rows(registry: SchemaRegistry, data: st.DataObject) -> None:
    schemas = [numbered_record(a="int"), ["null", numbered_record(a="int", b=["null", "string"])], "string"]
    numbers = [registry.add(schema) for schema in schemas]
    values = [{"a": 1}, {"a": 2, "b": "x"}, "y"]
    datums = [message(number, datum(*pair)) for number, *pair in zip(numbers, schemas, values, strict=True)]
    others = [None, message(numbers[1], b"\0"), message(numbers[0], b""), b"none", message(7, b"")]
    records = batch(*data.draw(st.lists(st.sampled_from([*datums, *others]), min_size=1, max_size=12)))
    same_each_way(registry, records)


# What is left to be read one by one, and what is not


SOUND: list[tuple[Any, Any]] = [
    ("boolean", False),
    ("int", -1),
    ("long", 2**63 - 1),
    ("float", 0.0),
    ("double", 0.0),
    ("bytes", b""),
    ("string", "é"),
    ({"type": "enum", "name": "E", "symbols": ["A", "B", "C"]}, "C"),
    ({"type": "fixed", "name": "F", "size": 3}, b"\0\1\2"),
    ({"type": "int", "logicalType": "time-millis"}, 86_399_999),
    ({"type": "string", "logicalType": "uuid"}, "00112233-4455-6677-8899-AABBCCDDEEFF"),
    ({"type": "fixed", "logicalType": "uuid", "name": "U", "size": 16}, bytes(16)),
    ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}, b""),
    ({"type": "fixed", "logicalType": "decimal", "precision": 38, "name": "D", "size": 16}, b"\xff" * 16),
]


def test_sound_records_of_every_kind_are_read_at_once() -> None:
    schema = numbered_record(**{f"f{at}": kind for at, (kind, _) in enumerate(SOUND)})
    row = {f"f{at}": value for at, (_, value) in enumerate(SOUND)}
    assert read_at_once(schema, [datum(schema, row)] * 3) == 3


@pytest.mark.parametrize("data", [b"\x02", b"\x02a\0", b"\x01", b"", b"\x80" * 9 + b"\x02", b"\xff" * 9 + b"\x01"])
def test_one_unsound_record_leaves_the_others_as_they_are(data: bytes) -> None:
    assert read_at_once(numbered_record(a="string"), [b"\x02x", data, b"\x04yz"]) == 2


def test_arrays_in_several_blocks_and_with_their_sizes_are_read_at_once(registry: SchemaRegistry) -> None:
    schema = numbered_record(a={"type": "array", "items": "int"})
    # 1 and 2; 1, and 2 in a block of its own; 1 and 2 in a block that states that it has two bytes; none
    datums = [b"\x04\x02\x04\x00", b"\x02\x02\x02\x04\x00", b"\x03\x04\x02\x04\x00", b"\x00"]
    converted = convert_both_ways(registry, batch_of(registry, schema, datums))
    assert [row["a"] for row in converted.parts[0].streams["data"].to_pylist()] == [[1, 2], [1, 2], [1, 2], []]
    assert read_at_once(schema, datums) == 4


def test_a_few_very_long_arrays_do_not_make_a_lap_for_each_item(registry: SchemaRegistry) -> None:
    schema = numbered_record(a={"type": "array", "items": ["null", "long"]})
    datums = [datum(schema, {"a": [None, at] * (at % 3)}) for at in range(50)]
    datums[7] = datum(schema, {"a": list(range(100_000))})
    assert read_at_once(schema, datums) == 49
    converted = convert_both_ways(registry, batch_of(registry, schema, datums))
    assert len(converted.parts[0].streams["data"].column("a")[7]) == 100_000


def test_a_map_that_has_a_name_twice_keeps_its_last_value(registry: SchemaRegistry) -> None:
    schema = numbered_record(a={"type": "map", "values": "int"})
    twice = b"\x04\x02x\x02\x02x\x04\x00"
    converted = convert_both_ways(registry, batch_of(registry, schema, [datum(schema, {"a": {"x": 1, "y": 2}}), twice]))
    assert [row["a"] for row in converted.parts[0].streams["data"].to_pylist()] == [[("x", 1), ("y", 2)], [("x", 2)]]


def test_a_count_beyond_all_memory_is_no_allocation() -> None:
    schema = numbered_record(a={"type": "array", "items": "long"}, b="bytes")
    huge = b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f"
    assert read_at_once(schema, [huge, b"\x00" + huge, b"\x00\x00"]) == 1


def test_a_slice_of_a_batch_is_read_where_it_lies(registry: SchemaRegistry) -> None:
    schema = numbered_record(a="string", b="double")
    number = registry.add(schema)
    raw = pa.array(
        [message(number, b"\x02%c" % letter + struct.pack("<d", letter)) for letter in b"abcdef"], pa.binary()
    )
    found, refused = reading.read(
        raw.slice(2, 3), ConverterRequest(tabular=True, texts=False, registry=registry.connection)
    )
    assert refused == {}
    assert found.array.to_pylist() == [{"a": one, "b": ord(one)} for one in "cde"]
