"""The golden table of types: Avro, Protobuf and JSON Schema to columns, those to Parquet, Avro, JSON and Iceberg, and
back. One line a type; what a language has no word for is missing from its line."""

import datetime
import json
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow.parquet as pq
import pytest
from google.protobuf import json_format, message_factory

from s3lake.errors import TableConflictError
from s3lake.objects import Shape, columns, read_batches
from s3lake.schema import grammar, protoc
from s3lake.schema.arrow import to_arrow
from s3lake.schema.types import from_document
from s3lake.table.iceberg.columns import list_schemas, widen_schema
from s3lake_tests.convert.test_avro_values import datum, record
from s3lake_tests.schema.registry.server import SchemaRegistry, framed
from s3lake_tests.verify.test_writer_agrees import staged
from s3lake_tests.verify.world import World


@dataclass(frozen=True)
class Line:
    """One type.

    Attributes:
        column: its column.
        cell: what a table of files with columns gives back.
        text: what a line of JSON gives back.
        avro: type and value.
        proto: the field `c` without its number, and its value as Protobuf's JSON.
        json: schema and value.
        read: what s3lake's own reader gives back, where that is not the cell: some of its readers know no such type.
    """

    column: str
    cell: Any
    text: Any
    avro: tuple[Any, Any] | None = None
    proto: tuple[str, Any] | None = None
    json: tuple[Any, Any] | None = None
    read: Any = None


def logical(name: str, connect: str, **more: Any) -> dict[str, Any]:
    return {"title": f"org.apache.kafka.connect.data.{name}", "connect.type": connect, **more}


UTC = datetime.timezone.utc
DAY, AT = datetime.date(2026, 11, 20), datetime.datetime(2026, 11, 20, 8, 15, 0, 123000, UTC)
DAYS, MS = 20777, 1795162500123
ID = "3f0b8a52-8f1c-4c2e-9d43-0c5d1a2b3c4d"
INNER = {"type": "record", "name": "Inner", "fields": [{"name": "x", "type": "long"}]}
OBJECT = {"type": "object", "properties": {"x": {"type": "integer"}}}
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 2}
LINES = [
    Line("bool", True, True, ("boolean", True), ("bool", True), ({"type": "boolean"}, True)),
    Line("int32", -7, -7, ("int", -7), ("sint32", -7), ({"type": "integer", "connect.type": "int32"}, -7)),
    Line("int64", 2**40, 2**40, ("long", 2**40), ("int64", 2**40), ({"type": "integer"}, 2**40)),
    Line("float", 0.5, 0.5, ("float", 0.5), ("float", 0.5), ({"type": "number", "connect.type": "float32"}, 0.5)),
    Line("double", 0.1, 0.1, ("double", 0.1), ("double", 0.1), ({"type": "number"}, 0.1)),
    Line("string", "é\n", "é\n", ("string", "é\n"), ("string", "é\n"), ({"type": "string"}, "é\n")),
    Line(
        "binary",
        b"\0\xff",
        "AP8=",
        ("bytes", b"\0\xff"),
        ("bytes", "AP8="),
        ({"type": "string", "connect.type": "bytes"}, "AP8="),
    ),
    Line(
        "string",
        "RED",
        "RED",
        ({"type": "enum", "name": "E", "symbols": ["NONE", "RED"]}, "RED"),
        ("Colour", "RED"),
        ({"enum": ["NONE", "RED"]}, "RED"),
    ),
    Line(
        "date",
        DAY,
        DAYS,
        ({"type": "int", "logicalType": "date"}, DAYS),
        None,
        (logical("Date", "int32", type="integer"), DAYS),
    ),
    Line(
        "time",
        datetime.time(8, 15),
        29_700_000,
        ({"type": "int", "logicalType": "time-millis"}, 29_700_000),
        None,
        (logical("Time", "int32", type="integer"), 29_700_000),
        "08:15:00.000",
    ),
    Line(
        "timestamp",
        AT,
        MS,
        ({"type": "long", "logicalType": "timestamp-millis"}, MS),
        ("google.protobuf.Timestamp", "2026-11-20T08:15:00.123Z"),
        (logical("Timestamp", "int64", type="integer"), MS),
    ),
    Line(
        "decimal(38,2)",
        Decimal("-12.34"),
        -12.34,
        (DECIMAL, Decimal("-12.34")),
        None,
        (logical("Decimal", "bytes", type="number", **{"connect.parameters": {"scale": "2"}}), -12.34),
    ),
    Line("uuid", UUID(ID).bytes, ID, ({"type": "string", "logicalType": "uuid"}, ID), read=ID),
    Line(
        "list<string>",
        ["a", "b"],
        ["a", "b"],
        ({"type": "array", "items": "string"}, ["a", "b"]),
        ("repeated string", ["a", "b"]),
        ({"type": "array", "items": {"type": "string"}}, ["a", "b"]),
    ),
    Line(
        "map<string, int64>",
        [("k", 1)],
        {"k": 1},
        ({"type": "map", "values": "long"}, {"k": 1}),
        ("map<string, int64>", {"k": 1}),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, {"k": 1}),
    ),
    Line("struct<x: int64>", {"x": 1}, {"x": 1}, (INNER, {"x": 1}), ("Inner", {"x": 1}), (OBJECT, {"x": 1})),
    Line(
        "list<struct<x: int64>>",
        [{"x": 1}, {"x": 2}],
        [{"x": 1}, {"x": 2}],
        ({"type": "array", "items": INNER}, [{"x": 1}, {"x": 2}]),
        ("repeated Inner", [{"x": 1}, {"x": 2}]),
        ({"type": "array", "items": OBJECT}, [{"x": 1}, {"x": 2}]),
    ),
    Line(
        "int64",
        5,
        5,
        (["null", "long"], 5),
        ("google.protobuf.Int64Value", 5),
        ({"oneOf": [{"type": "null"}, {"type": "integer"}]}, 5),
    ),
    Line("int64", 2**32 - 1, 2**32 - 1, None, ("uint32", 2**32 - 1), None),
    Line("string", '{"a": 1.0}', '{"a": 1.0}', None, ("google.protobuf.Struct", {"a": 1}), None),
    Line("string", '{"a":1.0}', {"a": 1.0}, None, None, ({}, {"a": 1.0})),
]
_FIELDS = [line.proto[0] if line.proto else "bool" for line in LINES]
PROTO = "\n".join(
    [
        'syntax = "proto3";',
        *(f'import "google/protobuf/{name}.proto";' for name in ("timestamp", "wrappers", "struct")),
        *(f"message M{number} {{ {field} c = 1; }}" for number, field in enumerate(_FIELDS)),
        "message Inner { int64 x = 1; }",
        "enum Colour { NONE = 0; RED = 1; }",
    ]
)
CASES = [
    pytest.param(number, language, format, id=f"{line.column} of {language} in {format} ({number})")
    for number, line in enumerate(LINES)
    for language in ("avro", "proto", "json")
    if getattr(line, language) is not None
    for format in ("parquet", "avro", "json", "iceberg")
]


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Any:
    from pyiceberg.catalog import load_catalog  # half a second, in all that collect

    home = tmp_path_factory.mktemp("iceberg")
    catalog = load_catalog("golden", type="sql", uri=f"sqlite:///{home}/catalog.db", warehouse=f"file://{home}")
    catalog.create_namespace("golden")
    return catalog


@pytest.mark.parametrize(("number", "language", "format"), CASES)
def test_a_value_has_its_column_and_comes_back(
    registry: SchemaRegistry, catalog: Any, tmp_path: Path, number: int, language: str, format: str
) -> None:
    line = LINES[number]
    converter = {"avro": "avro", "proto": "protobuf", "json": "json_schema"}[language]
    world = World(
        format={"type": "parquet" if format == "iceberg" else format},
        converter={"value": converter, "registry": {"url": registry.url}},
    )
    staged(world, [(None, _message(registry, line, number, language), [])])
    report = world.verify()
    assert (report.differences, report.landed, report.dead_letters) == ((), 1, 0)
    (manifest,) = world.manifests.values()
    (file,) = manifest.files
    body = world.store.objects[file.key][0]
    if format == "json":
        assert json.loads(body) == {"c": line.text}
        return
    assert manifest.columns
    types = from_document(manifest.columns)
    assert {name: str(type) for name, type in types.items()} == {"c": line.column}
    if format == "iceberg" and line.column == "time":  # Iceberg's are to the microsecond, Connect's files are not
        with pytest.raises(TableConflictError, match=r"column 'c' holds times in milliseconds, .* give it as time_us"):
            _through_iceberg(catalog, tmp_path / "file.parquet", body, f"golden.t{number}_{language}")
        return
    if format == "iceberg":
        rows = _through_iceberg(catalog, tmp_path / "file.parquet", body, f"golden.t{number}_{language}")
    else:
        shape = Shape.from_manifest(manifest)
        found = read_batches(shape, body, file.key, columns.read_schema(shape))
        rows = [row for batch in found for row in batch.to_pylist()]
    assert rows == [{"c": line.read if line.read is not None and format != "iceberg" else line.cell}]


def test_times_in_microseconds_are_columns_of_an_iceberg_table(catalog: Any, tmp_path: Path) -> None:
    world = World(format={"type": "parquet"}, columns={"a": "time_us", "b": "timestamp_us"})
    staged(world, [(None, b'{"a":"08:15:00.123456","b":"2026-11-20T08:15:00.123456Z"}', [])])
    (manifest,) = world.manifests.values()
    body = world.store.objects[manifest.files[0].key][0]
    (row,) = _through_iceberg(catalog, tmp_path / "file.parquet", body, "golden.micros")
    assert row == {"a": datetime.time(8, 15, 0, 123456), "b": AT.replace(microsecond=123456)}


@pytest.mark.parametrize("type", ["timestamp_ns", "list<timestamp_ns>", "struct<x: timestamp_ns>"])
def test_times_that_iceberg_does_not_have_are_refused_with_the_type_to_give(catalog: Any, type: str) -> None:
    from pyiceberg.schema import Schema

    table = catalog.create_table(f"golden.{type[:4]}", Schema())
    expected = r"column 'a' holds times in nanoseconds, .* give it as timestamp_us"
    with table.transaction() as change, pytest.raises(TableConflictError, match=expected):
        widen_schema(change, [to_arrow({"a": grammar.parse(type)})])


def _message(registry: SchemaRegistry, line: Line, number: int, language: str) -> bytes:
    if language == "proto" and line.proto:
        descriptor = protoc.compile_message(PROTO, {}, (number,))
        message = json_format.ParseDict({"c": line.proto[1]}, message_factory.GetMessageClass(descriptor)())
        path = b"\0" if number == 0 else bytes([2, 2 * number])
        return framed(registry.add(PROTO, "PROTOBUF"), path + message.SerializeToString())
    if language == "json" and line.json:
        schema = {"type": "object", "properties": {"c": line.json[0]}}
        return framed(registry.add(schema, "JSON"), json.dumps({"c": line.json[1]}).encode())
    assert line.avro
    schema = record(("c", line.avro[0]))
    return framed(registry.add(schema), datum(schema, {"c": line.avro[1]}))


def _through_iceberg(catalog: Any, path: Path, body: bytes, name: str) -> list[Any]:
    """The rows of a table that lists the file by reference, as s3lake's own tables do."""
    from pyiceberg.schema import Schema

    path.write_bytes(body)
    (schema,) = list_schemas([pq.read_metadata(path)])
    table = catalog.create_table(name, Schema())
    with table.transaction() as change:
        widen_schema(change, [schema])
        change.add_files([f"file://{path}"])
    return list(table.scan().to_arrow().to_pylist())
