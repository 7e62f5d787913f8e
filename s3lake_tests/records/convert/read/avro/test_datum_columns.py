"""Avro read column by column is what is read record by record, refusals included, whatever the bytes."""

import json
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from s3lake.records.convert.conversion import Conversion
from s3lake.records.convert.convert_batch import ConvertedBatch, convert_batch
from s3lake.records.convert.read.avro import avro_values as reading
from s3lake.records.convert.read.avro import datum_columns
from s3lake.records.convert.read.converters import ConverterRequest
from s3lake.records.schema.avro import read_schema
from s3lake_tests.records.convert.batches import batch
from s3lake_tests.records.schema.registry.server import SchemaRegistry, datum
from s3lake_tests.records.schema.registry.server import framed as message

Kind = tuple[Any, st.SearchStrategy[Any]]


def record(**fields: Any) -> dict[str, Any]:
    return {
        "type": "record",
        "name": f"com.acme.R{next(_numbers)}",
        "fields": [{"name": name, "type": kind} for name, kind in fields.items()],
    }


_numbers = iter(range(10**9))


@contextmanager
def one_by_one() -> Iterator[None]:
    """As if no record could be read together with others."""

    with pytest.MonkeyPatch.context() as patch:
        decode = datum_columns.decode

        def decode_nothing(decoder: Any, raw: Any, rows: Any, skipped: int) -> Any:
            return decode(decoder, raw, rows[:0], skipped)[0], np.zeros(len(rows), np.bool_)

        patch.setattr(datum_columns, "decode", decode_nothing)
        yield


def same(registry: SchemaRegistry, records: pa.RecordBatch, format: str = "parquet", **more: Any) -> ConvertedBatch:
    """What is made of records at once, after a look at whether it is the same as of one by one."""
    convert = Conversion("string", "avro", format, **{"nulls": "write", **more}, registry=registry.connection)
    found = convert_batch(convert, records, {})
    with one_by_one():
        expected = convert_batch(convert, records, {})
    assert found.refused == expected.refused
    assert (found.columns, found.seen, found.skipped) == (expected.columns, expected.seen, expected.skipped)
    assert len(found.parts) == len(expected.parts)
    for part, other in zip(found.parts, expected.parts, strict=True):
        assert (part.rows, part.names, part.values) == (other.rows, other.names, other.values)
        data, wanted = part.streams["data"], other.streams["data"]
        data.validate(full=True)
        if format == "parquet":
            assert data.schema.equals(wanted.schema, check_metadata=True)
            numbers = pa.schema([field.with_type(in_numbers(field.type)) for field in data.schema])
            data, wanted = data.cast(numbers), wanted.cast(numbers)
        assert str(data.to_pylist()) == str(wanted.to_pylist())  # by their texts: no NaN is equal to itself
    return found


def in_numbers(type: pa.DataType) -> pa.DataType:
    """A type with days and milliseconds for dates and timestamps: Python's end with the year 9999, Avro's do not."""
    if pa.types.is_temporal(type):
        return pa.int32() if type.bit_width == 32 else pa.int64()
    if pa.types.is_struct(type):
        return pa.struct([field.with_type(in_numbers(field.type)) for field in type])
    if pa.types.is_map(type):
        return pa.map_(type.key_type, type.item_field.with_type(in_numbers(type.item_type)))
    if pa.types.is_list(type):
        return pa.list_(type.value_field.with_type(in_numbers(type.value_type)))
    return type


def of(registry: SchemaRegistry, schema: Any, datums: list[bytes]) -> pa.RecordBatch:
    number = registry.add(schema)
    return batch(*(message(number, data) for data in datums))


def read_at_once(schema: Any, datums: list[bytes]) -> int:
    """How many of them are not left to be read one by one."""
    _, node = read_schema.read_schema(json.dumps(schema), {})
    decode = datum_columns.compile_schema(node.plain, node.type)
    _, plainly = datum_columns.decode(decode, pa.array(datums, pa.binary()), np.arange(len(datums)), 0)
    return int(plainly.sum())


# Every kind of value


LEAVES: list[Kind] = [
    ("null", st.none()),
    ("boolean", st.booleans()),
    ("int", st.integers(-(2**31), 2**31 - 1)),
    ("long", st.integers(-(2**63), 2**63 - 1) | st.integers(-200, 200)),
    ("float", st.floats(width=32)),
    ("double", st.floats()),
    ("bytes", st.binary(max_size=5)),
    ("string", st.text(max_size=5)),
    ({"type": "enum", "name": "E", "symbols": ["A", "B", "C"]}, st.sampled_from("ABC")),
    ({"type": "fixed", "name": "F", "size": 3}, st.binary(min_size=3, max_size=3)),
    ({"type": "int", "logicalType": "date"}, st.integers(-719_162, 2_932_896)),
    ({"type": "int", "logicalType": "time-millis"}, st.integers(-2, 86_400_001)),
    ({"type": "long", "logicalType": "timestamp-millis"}, st.integers(-(10**13), 10**13)),
    ({"type": "long", "logicalType": "timestamp-micros"}, st.integers(-(2**63), 2**63 - 1)),
    ({"type": "string", "logicalType": "uuid"}, st.uuids().map(str) | st.text("0-x", max_size=36)),
    ({"type": "fixed", "logicalType": "uuid", "name": "U", "size": 16}, st.binary(min_size=16, max_size=16)),
    ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}, st.binary(max_size=3)),
    ({"type": "bytes", "logicalType": "decimal", "precision": 50, "scale": 3}, st.binary(max_size=20)),
    (
        {"type": "fixed", "logicalType": "decimal", "precision": 38, "scale": 0, "name": "D", "size": 16},
        st.binary(min_size=16, max_size=16),
    ),
]


def _wider(inner: st.SearchStrategy[Kind]) -> st.SearchStrategy[Kind]:
    held = inner.filter(lambda one: one[0] != "null")
    return st.one_of(
        inner.map(lambda one: ({"type": "array", "items": one[0]}, st.lists(one[1], max_size=6))),
        inner.map(
            lambda one: (
                {"type": "map", "values": one[0]},
                st.dictionaries(st.text("xyz", max_size=3), one[1], max_size=3),
            )
        ),
        held.filter(lambda one: not isinstance(one[0], list)).map(lambda one: (["null", one[0]], st.none() | one[1])),
        st.dictionaries(st.sampled_from("abc"), inner, max_size=3).map(_record_of),
        inner.filter(lambda one: isinstance(one[0], str) and one[0] != "null").map(
            lambda one: ([one[0], "null", record(w="int")], st.none() | one[1] | st.just({"w": 5}))
        ),
    )


def _record_of(fields: dict[str, Kind]) -> Kind:
    schema = record(**{name: kind for name, (kind, _) in fields.items()})
    return schema, st.fixed_dictionaries({name: values for name, (_, values) in fields.items()})


def fresh(schema: Any) -> Any:
    """Give new names: a part that is there twice would be defined twice."""
    if isinstance(schema, list):
        return [fresh(one) for one in schema]
    if isinstance(schema, dict):
        named = schema.get("type") in ("record", "enum", "fixed")
        names = {"name": f"R{next(_numbers)}"} if named else {}
        return {name: fresh(one) for name, one in schema.items()} | names
    return schema


WAYS: list[dict[str, Any]] = [
    {"valued": False},
    {"valued": True, "nulls": "skip"},
    {"format": "json"},
]
"""A table that is not laid out by values, one that is, and texts."""


def same_each_way(registry: SchemaRegistry, records: pa.RecordBatch) -> None:
    for way in WAYS:
        note(f"as {way}")
        same(registry, records, **way)


KINDS = st.recursive(st.sampled_from(LEAVES), _wider, max_leaves=6)


@given(data=st.data())
def test_values_of_any_schema_are_the_same_as_one_by_one(registry: SchemaRegistry, data: st.DataObject) -> None:
    kind, values = data.draw(KINDS)
    schema = fresh(record(n="int", x=kind))
    found = data.draw(st.lists(values, min_size=1, max_size=30))
    datums = [datum(schema, {"n": at, "x": value}) for at, value in enumerate(found)]
    same_each_way(registry, of(registry, schema, datums))


@given(data=st.data())
def test_damaged_records_are_refused_with_the_same_words(registry: SchemaRegistry, data: st.DataObject) -> None:
    kind, values = data.draw(KINDS)
    schema = fresh(record(x=kind, n="int"))
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
    same_each_way(registry, of(registry, schema, datums))


FAR: list[Any] = [
    {"type": "int", "logicalType": "date"},
    {"type": "long", "logicalType": "timestamp-millis"},
    {"type": "array", "items": {"type": "int", "logicalType": "date"}},
    {"type": "map", "values": ["null", {"type": "int", "logicalType": "date"}]},
]


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("kind", FAR, ids=str)
def test_days_beyond_pythons_calendar_are_the_same(registry: SchemaRegistry, way: dict[str, Any], kind: Any) -> None:
    schema, far = record(x=kind), 2**31 - 1 if "date" in str(kind) else 2**59
    values = {"array": [far, 5], "map": {"a": far, "b": None}}
    same(registry, of(registry, schema, [datum(schema, {"x": values.get(kind["type"], far)})]), **way)


@given(data=st.data())
def test_records_of_several_schemas_keep_their_rows(registry: SchemaRegistry, data: st.DataObject) -> None:
    schemas = [record(a="int"), ["null", record(a="int", b=["null", "string"])], "string"]
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
    schema = record(**{f"f{at}": kind for at, (kind, _) in enumerate(SOUND)})
    row = {f"f{at}": value for at, (_, value) in enumerate(SOUND)}
    assert read_at_once(schema, [datum(schema, row)] * 3) == 3


@pytest.mark.parametrize("data", [b"\x02", b"\x02a\0", b"\x01", b"", b"\x80" * 9 + b"\x02", b"\xff" * 9 + b"\x01"])
def test_one_unsound_record_leaves_the_others_as_they_are(data: bytes) -> None:
    assert read_at_once(record(a="string"), [b"\x02x", data, b"\x04yz"]) == 2


def test_arrays_in_several_blocks_and_with_their_sizes_are_read_at_once(registry: SchemaRegistry) -> None:
    schema = record(a={"type": "array", "items": "int"})
    # 1 and 2; 1, and 2 in a block of its own; 1 and 2 in a block that states that it has two bytes; none
    datums = [b"\x04\x02\x04\x00", b"\x02\x02\x02\x04\x00", b"\x03\x04\x02\x04\x00", b"\x00"]
    converted = same(registry, of(registry, schema, datums))
    assert [row["a"] for row in converted.parts[0].streams["data"].to_pylist()] == [[1, 2], [1, 2], [1, 2], []]
    assert read_at_once(schema, datums) == 4


def test_a_few_very_long_arrays_do_not_make_a_lap_for_each_item(registry: SchemaRegistry) -> None:
    schema = record(a={"type": "array", "items": ["null", "long"]})
    datums = [datum(schema, {"a": [None, at] * (at % 3)}) for at in range(50)]
    datums[7] = datum(schema, {"a": list(range(100_000))})
    assert read_at_once(schema, datums) == 49
    converted = same(registry, of(registry, schema, datums))
    assert len(converted.parts[0].streams["data"].column("a")[7]) == 100_000


def test_a_map_that_says_a_name_twice_has_its_last_value(registry: SchemaRegistry) -> None:
    schema = record(a={"type": "map", "values": "int"})
    twice = b"\x04\x02x\x02\x02x\x04\x00"
    converted = same(registry, of(registry, schema, [datum(schema, {"a": {"x": 1, "y": 2}}), twice]))
    assert [row["a"] for row in converted.parts[0].streams["data"].to_pylist()] == [[("x", 1), ("y", 2)], [("x", 2)]]


def test_a_count_beyond_all_memory_is_no_allocation() -> None:
    schema = record(a={"type": "array", "items": "long"}, b="bytes")
    huge = b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f"
    assert read_at_once(schema, [huge, b"\x00" + huge, b"\x00\x00"]) == 1


def test_a_slice_of_a_batch_is_read_where_it_lies(registry: SchemaRegistry) -> None:
    schema = record(a="string", b="double")
    number = registry.add(schema)
    raw = pa.array(
        [message(number, b"\x02%c" % letter + struct.pack("<d", letter)) for letter in b"abcdef"], pa.binary()
    )
    found, refused = reading.read(
        raw.slice(2, 3), ConverterRequest(tabular=True, texts=False, registry=registry.connection)
    )
    assert refused == {}
    assert found.array.to_pylist() == [{"a": one, "b": ord(one)} for one in "cde"]
