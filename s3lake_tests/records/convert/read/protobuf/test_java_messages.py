"""Random messages that Google's Java makes of a newer schema, landed with an older one, against its JSON of the newer.

What ours do otherwise on purpose is listed in docs/schemas.md.
"""

import base64
import datetime
import json
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
import pytest

from s3lake.records.convert.conversion import Conversion
from s3lake.records.convert.convert_batch import ConvertedBatch, convert_batch
from s3lake.records.schema.registry.registry_connection import Connection
from s3lake_tests.kit.protobuf_messages import (
    NEW,
    ROOT,
    SCALARS,
    Field,
    JavaProtobuf,
    MadeMessage,
    Schema,
    random_schema,
    start_java,
)
from s3lake_tests.records.convert.batches import batch
from s3lake_tests.records.convert.read.landed_rows import leave_out_placeholders

pytestmark = pytest.mark.usefixtures("jvm")

EACH = 5
"""Messages of each schema."""
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_GOOGLE = "google.protobuf."
_WRAPPED = {
    f"{_GOOGLE}{name}Value": name.lower()
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
}
_COLUMNS = {
    **dict.fromkeys(("int32", "sint32", "sfixed32"), "int32"),
    **dict.fromkeys(("int64", "sint64", "sfixed64", "uint32", "fixed32", "uint64", "fixed64"), "int64"),
    **{"float": "float", "double": "double", "bool": "bool", "string": "string", "bytes": "binary", "enum": "string"},
    **dict.fromkeys((f"{_GOOGLE}Struct", f"{_GOOGLE}Value", f"{_GOOGLE}ListValue"), "string"),
    **{f"{_GOOGLE}Timestamp": "timestamp", "google.type.Date": "date", "google.type.TimeOfDay": "time"},
    **{f"{_GOOGLE}Duration": "struct<seconds: int64, nanos: int32>", "group": "struct<n: int32>"},
    f"{_GOOGLE}Empty": "struct<__dummy_field_in_empty_struct: string>",
}


class Unfit(Exception):
    """The columns cannot hold a value: ours refuse the record."""


class ProtobufFloat(float):
    """A float of 32 bits."""


@dataclass(frozen=True)
class Json:
    """A value whose text is the column."""

    value: Any


@dataclass
class Reading:
    """What should land of one printed message, with the older schema.

    Attributes:
        as_json: as lines, else as columns.
        left_out: paths of fields that the older schema does not have.
    """

    schema: Schema
    as_json: bool
    left_out: set[str] = field(default_factory=set)

    def message(self, number: int, printed: dict[str, Any], path: str = "") -> dict[str, Any]:
        row: dict[str, Any] = {}
        for one in self.schema.messages[number]:
            if one.name not in printed:
                continue
            value = printed[one.name]
            if one.is_new:
                if one.form in ("one", "optional") or value:
                    self.left_out.add(f"{path}#{one.number}")
            elif one.oneof is None:
                row[one.name] = self.field(one, value, f"{path}{one.name}")
            else:
                column = f"choice{one.oneof}_{one.oneof}"
                row[column] = {one.name: self.field(one, value, f"{path}{column}.{one.name}")}
        return row

    def field(self, one: Field, value: Any, path: str) -> Any:
        if one.form in ("repeated", "packed"):
            return [self.value(one.type, item, f"{path}[]") for item in value]
        if one.form != "map":
            return self.value(one.type, value, path)
        entries = {_key(one.key, name): self.value(one.type, item, f"{path}[]") for name, item in value.items()}
        if one.key == "string":
            return entries
        return [{"key": key, "value": entries[key]} for key in sorted(entries)]

    def value(self, type: str, value: Any, path: str) -> Any:
        type = _WRAPPED.get(type, type)
        if type.startswith("o.M"):
            return self.message(int(type.removeprefix("o.M")), value, f"{path}.")
        match type:
            case "enum":
                number = self.schema.enum.get(str(value), value)
                return value if isinstance(value, str) and not value.startswith(NEW) else str(number)
            case "float" | "double":
                number = float(value)
                if self.as_json and not math.isfinite(number):
                    return value
                return ProtobufFloat(number) if type == "float" else number
            case "bytes":
                return value if self.as_json else base64.b64decode(value)
            case "bool" | "string" | "group" | "google.protobuf.Empty":
                return value
            case "google.protobuf.Struct" | "google.protobuf.Value" | "google.protobuf.ListValue":
                return Json(value)
            case "google.protobuf.Duration":
                return _read_duration(value)
            case "google.protobuf.Timestamp":
                return _read_timestamp(value)
            case "google.type.Date":
                day = datetime.date(value["year"], value["month"], value["day"])
                return (day - EPOCH.date()).days if self.as_json else day
            case "google.type.TimeOfDay":
                seconds = (value["hours"] * 60 + value["minutes"]) * 60 + value["seconds"]
                return seconds * 1000 + value["nanos"] // 1_000_000
        if int(value) >= 2**63:
            raise Unfit
        return int(value)


def _key(type: str, name: str) -> Any:
    return name if type == "string" else name == "true" if type == "bool" else int(name)


def _read_duration(text: str) -> dict[str, int]:
    whole, _, part = text.removesuffix("s").partition(".")
    sign = -1 if whole.startswith("-") else 1
    return {"seconds": int(whole), "nanos": sign * int(part.ljust(9, "0")) if part else 0}


def _read_timestamp(text: str) -> int:
    """Return milliseconds since 1970, what is finer cut."""
    whole, _, part = text.removesuffix("Z").partition(".")
    seconds = (datetime.datetime.fromisoformat(f"{whole}+00:00") - EPOCH) // datetime.timedelta(seconds=1)
    return seconds * 1000 + int(part.ljust(3, "0")[:3] or 0)


def type_of(schema: Schema, number: int) -> str:
    """The type of a message's column, with the older schema."""
    fields = [one for one in schema.messages[number] if not one.is_new]
    oneofs: dict[str, list[str]] = {}
    plain = []
    for one in fields:
        inner = _WRAPPED.get(one.type, one.type)
        column = type_of(schema, int(inner[3:])) if inner.startswith("o.M") else _COLUMNS[inner]
        if one.form in ("repeated", "packed"):
            column = f"list<{column}>"
        elif one.form == "map":
            key = _COLUMNS[one.key]
            column = f"map<string, {column}>" if key == "string" else f"list<struct<key: {key}, value: {column}>>"
        if one.oneof is None:
            plain.append(f"{one.name}: {column}")
        else:
            oneofs.setdefault(f"choice{one.oneof}_{one.oneof}", []).append(f"{one.name}: {column}")
    members = [*(f"{name}: struct<{', '.join(each)}>" for name, each in oneofs.items()), *plain]
    return f"struct<{', '.join(members or ['__dummy_field_in_empty_struct: string'])}>"


def is_same(expected: Any, found: Any) -> bool:
    match expected:
        case dict():
            return (
                isinstance(found, dict)
                and expected.keys() == found.keys()
                and all(is_same(expected[name], found[name]) for name in expected)
            )
        case list():
            return isinstance(found, list) and len(expected) == len(found) and all(map(is_same, expected, found))
        case Json(value):
            return json.dumps(json.loads(found), sort_keys=True) == found and is_same(value, json.loads(found))
        case ProtobufFloat():
            return bool(np.array_equal(np.float32(expected), np.float32(found), equal_nan=True))
        case float():
            return bool(np.array_equal(expected, found, equal_nan=True))
    if isinstance(found, datetime.datetime):
        found = (found - EPOCH) // datetime.timedelta(milliseconds=1)
    if isinstance(found, datetime.time):
        found = ((found.hour * 60 + found.minute) * 60 + found.second) * 1000 + found.microsecond // 1000
    return type(expected) is type(found) and bool(expected == found)


def convert(schema: Schema, made: list[MadeMessage], format: str) -> tuple[ConvertedBatch, list[Any]]:
    """Convert messages with the older schema. Return what lands of them, without nulls."""
    connection = Connection((), descriptors=schema.to_set(is_newer=False), message=ROOT)
    done = convert_batch(
        Conversion("string", "protobuf", format, "skip", registry=connection), batch(*(one.data for one in made)), {}
    )
    rows: list[Any] = []
    for part in done.parts:
        data = part.streams["data"]
        if format == "json":
            rows += [json.loads(line) for line in data.to_pylist()]
        else:
            rows += data.to_pylist(maps_as_pydicts="strict")
    return done, list(map(leave_out_placeholders, rows))


def compare(java: JavaProtobuf, seed: int, schemas: int) -> Counter[str]:
    random, counts = Random(seed), Counter[str]()
    for number in range(schemas):
        schema = random_schema(random)
        made = java.make(schema, seed * 100_000 + number, EACH)
        for format in ("parquet", "json"):
            counts += compare_all(schema, made, format)
    return counts


def compare_all(schema: Schema, made: list[MadeMessage], format: str) -> Counter[str]:
    """Compare the messages of one schema in one format. Return how many were, and how many each side refused."""
    done, found = convert(schema, made, format)
    counts, left_out, is_known = Counter[str](), Counter[str](), True
    rows = iter(found)
    for row, one in enumerate(made):
        if one.refused:  # NaN within a Struct, which may be a field that the older schema does not have
            assert "cannot encode double values for infinity or nan" in one.refused
            is_refused = row in done.refused
            is_known &= is_refused
            counts["refused by both" if is_refused else "refused by Java"] += 1
            if not is_refused:
                next(rows)
            continue
        reading = Reading(schema, format == "json")
        try:
            expected = reading.message(0, one.printed)
        except Unfit:
            assert "does not fit int64" in done.refused[row]
            counts["refused by ours"] += 1
            continue
        assert row not in done.refused, (done.refused[row], one, schema)
        landed = next(rows)
        assert is_same(expected, landed), (format, expected, landed, schema)
        left_out.update(reading.left_out)
        counts["compared"] += 1
    assert list(rows) == []
    if is_known:
        assert done.fields_left_out == left_out, schema
    if format == "parquet" and found:
        members = ", ".join(f"{name}: {type}" for name, type in done.seen.items())
        assert f"struct<{members}>" == type_of(schema, 0)
    return counts


@pytest.fixture(scope="module")
def java() -> Iterator[JavaProtobuf]:
    with start_java() as java:
        yield java


def test_scalars_are_all_that_protobuf_has() -> None:
    assert {*_COLUMNS} >= {*SCALARS}


def test_some_messages_land_as_googles_java_prints_them(java: JavaProtobuf) -> None:
    counts = compare(java, 1, 10)
    print(counts)
    assert counts["compared"] >= 50


@pytest.mark.slow("more than 4,000 random messages; `make test` compares 50")
def test_messages_land_as_googles_java_prints_them(java: JavaProtobuf) -> None:
    counts = compare(java, 2, 600)
    print(counts)
    assert counts["compared"] >= 4_000
