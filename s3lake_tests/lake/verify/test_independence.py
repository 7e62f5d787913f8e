"""A wrong converter is found: `verify` shares with the writer nothing that reads keys and values."""

import dataclasses
import json
import struct
import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest

from s3lake.records.convert.read import keys_and_values
from s3lake.records.convert.read.converters import CONVERTERS, ConverterRequest
from s3lake.records.convert.read.protobuf import message_columns
from s3lake.records.convert.read.value_checks import Refusals
from s3lake_tests.kit.connect_messages import connect_texts
from s3lake_tests.lake.verify.staged_records import stage_records
from s3lake_tests.lake.verify.world import VerifiedTopic, build_registered_topic
from s3lake_tests.records.schema.registry.server import SchemaRegistry, datum, framed

ROW = {"type": "record", "name": "Row", "fields": [{"name": "a", "type": "long"}, {"name": "b", "type": "string"}]}
JSON_ROW = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}}
PROTO = 'syntax = "proto3"; message Row { int64 a = 1; string b = 2; }'
FIELDS = {"right": {"a": 1, "b": "x"}, "altered": {"a": 2, "b": "x"}, "lost": {"a": 1}}
MESSAGES = {"right": b"\0\x08\1\x12\1x", "altered": b"\0\x08\2\x12\1x", "lost": b"\0\x08\1"}
NUMBERS = {"short": ">h", "integer": ">i", "long": ">q", "float": ">f", "double": ">d", "boolean": ">?"}


def values(converter: str, registry: SchemaRegistry) -> dict[str, bytes]:
    """A value of Kafka, one with another field, and one that lacks a field."""
    match converter:
        case "json":
            return {name: json.dumps(row).encode() for name, row in FIELDS.items()}
        case "connect_json":
            rows = {name: {field: str(value) for field, value in row.items()} for name, row in FIELDS.items()}
            return {name: connect_texts(**row) for name, row in rows.items()}
        case "json_schema":
            number = registry.add(JSON_ROW, "JSON")
            return {name: framed(number, json.dumps(row).encode()) for name, row in FIELDS.items()}
        case "avro":
            number = registry.add(ROW)
            return {name: framed(number, datum(ROW, {"b": "", **row})) for name, row in FIELDS.items()}
        case "protobuf":
            number = registry.add(PROTO, "PROTOBUF")
            return {name: framed(number, message) for name, message in MESSAGES.items()}
        case "string" | "bytes":
            return {"right": b"ab", "altered": b"ac", "lost": b"a"}
    return dict(zip(FIELDS, (struct.pack(NUMBERS[converter], number) for number in (1, 0, 0)), strict=True))


def landed(registry: SchemaRegistry, format: str, converter: str, value: bytes) -> VerifiedTopic:
    """A record in a file, landed in this process."""
    made = build_registered_topic(registry, {"format": {"type": format}}, {"value": converter})
    stage_records(made, [(None, value, [])])
    return made


@pytest.mark.parametrize("mistake", ["altered", "lost"])
@pytest.mark.parametrize("format", ["json", "parquet", "avro"])
@pytest.mark.parametrize("converter", list(CONVERTERS))
def test_a_converter_that_loses_or_alters_a_field_is_found(
    registry: SchemaRegistry, monkeypatch: pytest.MonkeyPatch, converter: str, format: str, mistake: str
) -> None:
    known = values(converter, registry)
    assert landed(registry, format, converter, known["right"]).verify().clean
    right = CONVERTERS[converter].read

    def read(raw: pa.BinaryArray, wanted: ConverterRequest) -> tuple[keys_and_values.Column, Refusals]:
        # Avro in Avro is copied, whatever was read of it: this one reads it.
        return right(pa.array([known[mistake]] * len(raw), pa.binary()), dataclasses.replace(wanted, spliced=False))

    monkeypatch.setitem(CONVERTERS, converter, dataclasses.replace(CONVERTERS[converter], read=read))
    report = landed(registry, format, converter, known["right"]).verify()
    assert (report.missing, report.duplicated, report.clean) == (1, 1, False)


@pytest.mark.parametrize("format", ["json", "parquet", "avro"])
def test_a_field_that_the_writer_does_not_see_in_a_protobuf_schema_is_found(
    registry: SchemaRegistry, monkeypatch: pytest.MonkeyPatch, format: str
) -> None:
    number = registry.add(PROTO.replace("Row", f"Lost{format}"), "PROTOBUF")  # compiled schemas are remembered
    list_fields = message_columns.list_fields

    def without_last(descriptor: Any) -> Any:
        oneofs, fields = list_fields(descriptor)
        return oneofs, fields[:-1]

    monkeypatch.setattr(message_columns, "list_fields", without_last)
    report = landed(registry, format, "protobuf", framed(number, MESSAGES["right"])).verify()
    assert (report.missing, report.duplicated) == (1, 1)


_IMPORTED = """
import pkgutil, sys, s3lake.lake.verify
for module in pkgutil.iter_modules(s3lake.lake.verify.__path__, "s3lake.lake.verify."):
    if module.name != "s3lake.lake.verify.repeat_transforms":
        __import__(module.name)
print(*(name for name in sys.modules if name.startswith({rooms})))
"""


@pytest.mark.long
def test_verify_imports_no_room_of_the_writer_except_where_it_is_listed() -> None:
    inner = ("convert", "encode", "layout", "transform")
    rooms = ("s3lake.land", *(f"s3lake.records.{room}" for room in inner))
    run = subprocess.run(
        [sys.executable, "-c", _IMPORTED.format(rooms=rooms)], capture_output=True, text=True, check=True
    )
    assert run.stdout.split() == []
