"""Random values with schemas through Kafka Connect's own JsonConverter: types, values and lines are what ours are.

What ours do otherwise on purpose is listed in docs/schemas.md.
"""

import base64
import datetime
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from s3lake.records.convert.conversion import Conversion
from s3lake.records.convert.convert_batch import convert_batch
from s3lake_tests.kit.connect_records import (
    Connect,
    ConnectRecord,
    ConnectValue,
    Limits,
    Refused,
    Schema,
    random_cases,
    start_connect,
)
from s3lake_tests.kit.oracles import LOGICAL
from s3lake_tests.records.convert.batches import batch

LIMITS = Limits(scales=(0, 1, 2, 5, 18, 38, -1, -3, 39, 127), empty_structs=True)
EMPTY = pa.field("__dummy_field_in_empty_struct", pa.string())
"""The field that a struct without fields has in columns, always null."""
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
STRICTER = re.compile(r"does not fit decimal\(38,(0|1|2|5|18|38)\): a number of at most 38 digits")
"""Why ours refuse a value that Connect takes: a column has 38 digits."""
ARROW = {
    **{"int8": pa.int32(), "int16": pa.int32(), "int32": pa.int32(), "int64": pa.int64()},
    **{"float": pa.float32(), "double": pa.float64(), "boolean": pa.bool_(), "string": pa.string()},
    **{"bytes": pa.binary(), "Date": pa.date32(), "Time": pa.time32("ms"), "Timestamp": pa.timestamp("ms", "UTC")},
}


def kind_of(schema: Schema) -> str:
    name = schema.get("name") or ""
    return str(name.removeprefix(LOGICAL) if name.startswith(LOGICAL) else schema["type"])


# What Connect has read, as Arrow and Python have it


def field_of(name: str, schema: Schema) -> pa.Field:
    return pa.field(name, arrow_of(schema), nullable=schema.get("optional", False))


def arrow_of(schema: Schema) -> pa.DataType:
    match kind_of(schema):
        case "struct":
            return pa.struct([field_of(one["field"], one) for one in schema["fields"]] or [EMPTY])
        case "array":
            return pa.list_(field_of("item", schema["items"]))
        case "map" if schema["keys"]["type"] == "string":
            return pa.map_(pa.string(), field_of("value", schema["values"]))
        case "map":
            entry = pa.struct([field_of("key", schema["keys"]), field_of("value", schema["values"])])
            return pa.list_(pa.field("item", entry, nullable=False))
        case "Decimal":
            scale = int(schema["parameters"]["scale"])
            return pa.decimal128(38, min(max(scale, 0), 38))
        case kind:
            return ARROW[kind]


def value_of(schema: Schema, payload: Any) -> Any:
    """Return a payload of JsonConverter, decimals in base64, as Python has the cell of a column."""
    if payload is None:
        return None
    match kind_of(schema):
        case "struct":
            known = {one["field"]: value_of(one, payload[one["field"]]) for one in schema["fields"]}
            return known or {EMPTY.name: None}
        case "array":
            return [value_of(schema["items"], item) for item in payload]
        case "map" if schema["keys"]["type"] == "string":
            return sort_entries((name, value_of(schema["values"], inner)) for name, inner in payload.items())
        case "map":
            entries = [(value_of(schema["keys"], key), value_of(schema["values"], inner)) for key, inner in payload]
            return sort_entries({"key": key, "value": inner} for key, inner in entries)
        case "Decimal":
            unscaled = int.from_bytes(base64.b64decode(payload), "big", signed=True)
            return Decimal(f"{unscaled}E{-int(schema['parameters']['scale'])}")
        case "Date":
            return (EPOCH + datetime.timedelta(days=payload)).date()
        case "Time":
            return (EPOCH + datetime.timedelta(milliseconds=payload)).time()
        case "Timestamp":
            return EPOCH + datetime.timedelta(milliseconds=payload)
        case "bytes":
            return base64.b64decode(payload)
        case "float":
            return float(np.float32(payload))
        case "double":
            return float(payload)
    return payload


def sort_entries(entries: Any) -> Any:
    """Return the entries of a map in one order: Java's have another one each time."""
    return sorted(entries, key=repr)


def sort_maps(value: Any, schema: Schema) -> Any:
    """Return the cell of a column with the entries of its maps in one order."""
    if value is None:
        return None
    match schema["type"]:
        case "struct":
            return {one["field"]: sort_maps(value[one["field"]], one) for one in schema["fields"]} or value
        case "array":
            return [sort_maps(item, schema["items"]) for item in value]
        case "map" if schema["keys"]["type"] == "string":
            return sort_entries((name, sort_maps(inner, schema["values"])) for name, inner in value)
        case "map":
            return sort_entries({**entry, "value": sort_maps(entry["value"], schema["values"])} for entry in value)
    return value


def line_of(schema: Schema, value: Any) -> Any:
    """Return the parsed JSON of a line with equal numbers equal, a null field as a missing one, and sorted pairs."""
    if value is None:
        return None
    match kind_of(schema):
        case "struct":
            known = {one["field"]: line_of(one, value.get(one["field"])) for one in schema["fields"]}
            others = {name: inner for name, inner in value.items() if name not in known}
            return {name: inner for name, inner in {**known, **others}.items() if inner is not None}
        case "array":
            return [line_of(schema["items"], item) for item in value]
        case "map" if schema["keys"]["type"] == "string":
            return {name: line_of(schema["values"], inner) for name, inner in value.items()}
        case "map":
            return sort_entries([line_of(schema["keys"], key), line_of(schema["values"], one)] for key, one in value)
        case "float":
            return float(np.float32(value))
        case "double":
            return float(value)  # Java 17 writes many of them in more digits than are needed
        case "Decimal":
            return Decimal(value).normalize()
    return value


def read_json(text: bytes) -> Any:
    return json.loads(text, parse_float=Decimal)


def fill_missing(schema: Schema, payload: Any) -> Any:
    """Return a payload with the defaults that ours give and Connect does not, if nulls are to stay nulls.

    Connect takes a missing field for a null, and refuses a null where its schema has a default and allows none.
    """
    if payload is None:
        return None if schema.get("optional") else schema.get("default")
    match schema["type"]:
        case "struct":
            return {
                one["field"]: fill_missing(one, payload.get(one["field"]))
                if one["field"] in payload
                else one.get("default")
                for one in schema["fields"]
            }
        case "array":
            return [fill_missing(schema["items"], item) for item in payload]
        case "map" if schema["keys"]["type"] == "string":
            return {name: fill_missing(schema["values"], inner) for name, inner in payload.items()}
        case "map":
            return [[key, fill_missing(schema["values"], inner)] for key, inner in payload]
    return payload


def as_numbers(schema: Schema, payload: Any) -> Any:
    """Return a payload with the decimals that a producer with `decimal.format=NUMERIC` writes."""
    if payload is None:
        return None
    match kind_of(schema):
        case "Decimal":
            return value_of(schema, payload)
        case "struct":
            return {
                one["field"]: as_numbers(one, payload[one["field"]])
                for one in schema["fields"]
                if one["field"] in payload
            }
        case "array":
            return [as_numbers(schema["items"], item) for item in payload]
        case "map" if schema["keys"]["type"] == "string":
            return {name: as_numbers(schema["values"], inner) for name, inner in payload.items()}
        case "map":
            return [[as_numbers(schema["keys"], key), as_numbers(schema["values"], one)] for key, one in payload]
    return payload


def draw(seed: int, count: int, decimals: str) -> list[ConnectValue]:
    cases = random_cases(seed, count, LIMITS)
    if decimals == "BASE64":
        return list(cases)
    return [ConnectValue(case.schema, as_numbers(case.schema or {}, case.payload)) for case in cases]


def compare(cases: Sequence[ConnectValue], connect: Connect, *, replace_nulls: bool) -> Counter[str]:
    """Compare each case in columns and in lines. Return how many were compared, and how many ours refused."""
    asked = (
        cases
        if replace_nulls
        else [ConnectValue(one.schema, fill_missing(one.schema or {}, one.payload)) for one in cases]
    )
    texts = [case.text for case in asked]
    read = connect.read(texts, replace_nulls=replace_nulls)
    lines = connect.write_lines(texts, replace_nulls=replace_nulls)
    counts = Counter[str]()
    for case, answer, line in zip(cases, read, lines, strict=True):
        assert isinstance(answer, ConnectRecord), (case.text, answer)
        assert not isinstance(line, Refused), (case.text, line)
        assert isinstance(line, ConnectRecord)
        counts[compare_columns(case, answer, replace_nulls=replace_nulls)] += 1
        compare_line(case, line, replace_nulls=replace_nulls)
        counts["lines"] += 1
    return counts


def convert(case: ConnectValue, format: str, *, replace_nulls: bool) -> Any:
    by = Conversion("string", "connect_json", format, "write", null_to_default=("value",) if replace_nulls else ())
    return convert_batch(by, batch(case.text), {})


def compare_columns(case: ConnectValue, answer: ConnectRecord, *, replace_nulls: bool) -> str:
    found = convert(case, "parquet", replace_nulls=replace_nulls)
    theirs = json.loads(answer.value or b"null")
    what = (case.text, theirs)
    if found.refused:
        assert STRICTER.search(found.refused[0]), (found.refused, what)
        return "refused by ours"
    schema, value = theirs["schema"], value_of(theirs["schema"], theirs["payload"])
    rows: pa.RecordBatch = found.parts[0].streams["data"]
    fields = schema["fields"] if schema["type"] == "struct" else [{**schema, "field": "value"}]
    (row,) = rows.to_pylist()
    if value is None:
        assert set(row.values()) == {None}, what
        return "columns"
    assert [strip(field) for field in rows.schema] == ([field_of(one["field"], one) for one in fields] or [EMPTY]), what
    mine = {one["field"]: sort_maps(row[one["field"]], one) for one in fields} or row
    assert mine == (value if schema["type"] == "struct" else {"value": value}), what
    return "columns"


def strip(field: pa.Field) -> pa.Field:
    """Return a field without metadata, at any depth, and with the names that Arrow gives to what is inside."""

    def of_type(type: pa.DataType) -> pa.DataType:
        if pa.types.is_struct(type):
            return pa.struct([strip(one) for one in type])
        if pa.types.is_list(type):
            return pa.list_(strip(type.value_field).with_name("item"))
        return pa.map_(type.key_type, strip(type.item_field)) if pa.types.is_map(type) else type

    return pa.field(field.name, of_type(field.type), nullable=field.nullable)


def compare_line(case: ConnectValue, line: ConnectRecord, *, replace_nulls: bool) -> None:
    found = convert(case, "json", replace_nulls=replace_nulls)
    assert found.refused == {}, case.text
    (mine,) = found.parts[0].streams["data"].to_pylist()
    assert case.schema is not None
    theirs = line.value or b"null"
    assert line_of(case.schema, read_json(mine)) == line_of(case.schema, read_json(theirs)), (case.text, mine, theirs)


@pytest.fixture(scope="module")
def connect(jvm: Path) -> Iterator[Connect]:  # noqa: ARG001 (it needs Java)
    with start_connect() as connect:
        yield connect


@pytest.mark.parametrize("replace_nulls", [True, False])
@pytest.mark.parametrize("decimals", ["BASE64", "NUMERIC"])
def test_some_values_are_what_connect_reads(connect: Connect, decimals: str, replace_nulls: bool) -> None:
    counts = compare(draw(1, 50, decimals), connect, replace_nulls=replace_nulls)
    print(counts)
    assert (counts["lines"], counts["columns"] > 30) == (50, True)


@pytest.mark.slow("4,000 random values; `make test` compares 200")
@pytest.mark.parametrize("replace_nulls", [True, False])
@pytest.mark.parametrize("seed", range(2, 6))
def test_values_are_what_connect_reads(connect: Connect, seed: int, replace_nulls: bool) -> None:
    counts = compare(draw(seed, 500, "NUMERIC" if seed % 2 else "BASE64"), connect, replace_nulls=replace_nulls)
    print(counts)
    assert (counts["lines"], counts["columns"] > 300) == (500, True)


ROW = {"type": "struct", "fields": [{"field": "a", "type": "int32"}]}
REFUSED = object()
# A value that its type does not have, what Connect reads, and why ours refuse its record.
MISREAD: list[tuple[Schema, Any, Any, str]] = [
    ({"type": "int8"}, 300, 44, "Expected `int` <= 127"),
    ({"type": "int8"}, -129, 127, "Expected `int` >= -128"),
    ({"type": "int16"}, 40_000, -25_536, "Expected `int` <= 32767"),
    ({"type": "int32"}, 2**31, -(2**31), "Expected `int` <= 2147483647"),
    ({"type": "int64"}, 2**63, -(2**63), "Expected `int` <= 9223372036854775807"),
    ({"type": "int64"}, 2**64, 0, "Expected `int` <= 9223372036854775807"),
    ({"type": "int32"}, 1.5, 1, "Expected `int`, got `float`"),
    ({"type": "int64"}, True, 0, "Expected `int`, got `bool`"),
    ({"type": "int32"}, "7", 0, "Expected `int`, got `str`"),
    ({"type": "boolean"}, 1, False, "Expected `bool`, got `int`"),
    ({"type": "boolean"}, "true", False, "Expected `bool`, got `str`"),
    ({"type": "string"}, 5, REFUSED, "Expected `str`, got `int`"),
    ({"type": "double"}, "NaN", 0.0, "Expected `int | float`, got `str`"),
    ({"type": "float"}, "Infinity", 0.0, "Expected `int | float`, got `str`"),
    ({"type": "double"}, True, 0.0, "Expected `int | float`, got `bool`"),
    ({"type": "float"}, 1e300, "Infinity", "does not fit float"),
    ({"type": "double"}, 2**53 + 1, 2**53, "does not hold exactly"),
    ({"type": "float"}, 2**24 + 1, 2**24, "does not hold exactly"),
    ({"type": "bytes"}, "???", REFUSED, "Invalid base64 encoded string"),
    ({"type": "bytes"}, 5, REFUSED, "Expected `bytes`, got `int`"),
    ({"type": "int32", "name": f"{LOGICAL}Date"}, 1.5, REFUSED, "Expected `int`, got `float`"),
    ({"type": "int32", "name": f"{LOGICAL}Time"}, 86_400_000, 86_400_000, "Expected `int` <= 86399999"),
    ({"type": "int32", "name": f"{LOGICAL}Time"}, -1, REFUSED, "Expected `int` >= 0"),
    ({"type": "array", "items": {"type": "int32"}}, {}, [], "Expected `array`, got `object`"),
    ({"type": "array", "items": {"type": "int32"}}, [None], REFUSED, "Expected `int`, got `null`"),
    (ROW, {"a": 1, "b": 2}, {"a": 1}, "Object contains unknown field `b`"),
]
IN_LINES = ("does not fit float", "does not hold exactly")
"""What a line holds as the producer wrote it."""


@pytest.mark.parametrize("format", ["parquet", "avro", "json"])
@pytest.mark.parametrize(("schema", "payload", "_", "reason"), MISREAD)
def test_a_value_that_is_none_of_its_type_is_refused_with_its_path(
    format: str, schema: Schema, payload: Any, _: Any, reason: str
) -> None:
    whole = {"type": "struct", "fields": [{"field": "in", "type": "struct", "fields": [{**schema, "field": "v"}]}]}
    found = convert(ConnectValue(whole, {"in": {"v": payload}}), format, replace_nulls=False)
    if format == "json" and reason in IN_LINES:
        (line,) = found.parts[0].streams["data"].to_pylist()
        assert read_json(line)["in"]["v"] == Decimal(str(payload))
    else:
        assert reason in found.refused[0]
        assert "in.v" in found.refused[0]


def test_connect_reads_misread_values_differently(connect: Connect) -> None:
    asked = [
        ConnectValue({"type": "struct", "fields": [{**schema, "field": "v"}]}, {"v": one})
        for schema, one, *_ in MISREAD
    ]
    for (schema, payload, right, _), answer in zip(MISREAD, connect.read([case.text for case in asked]), strict=True):
        read = json.loads(answer.value or b"")["payload"]["v"] if isinstance(answer, ConnectRecord) else REFUSED
        assert read == right, (schema, payload, answer)
