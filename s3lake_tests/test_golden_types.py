"""The golden table of types: Avro, Protobuf, JSON Schema and Connect's JSON to columns, and back.

Each is written as Parquet, Avro, JSON, CSV and for Iceberg. One line a type; what a language has no word for is missing
from its line.
"""

import datetime
import io
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
from s3lake.lake.objects import ObjectShape, read_batches, spark_columns
from s3lake.lake.table.iceberg.iceberg_columns import list_schemas, widen_schema
from s3lake.records.schema.columns import grammar
from s3lake.records.schema.columns.arrow_types import to_arrow
from s3lake.records.schema.columns.types import from_document
from s3lake.records.schema.protobuf import compiler
from s3lake_tests.kit.avro_messages import datum, record
from s3lake_tests.lake.verify.staged_records import stage_records
from s3lake_tests.lake.verify.world import VerifiedTopic
from s3lake_tests.records.schema.registry.server import SchemaRegistry, framed


@dataclass(frozen=True)
class Line:
    """One type.

    Attributes:
        column: its column.
        cell: what a table of files with columns gives back.
        text: what a line of JSON gives back.
        csv: the cell of CSV; None if CSV refuses the type.
        avro: the type; here and below a pair with the value, if that is not what a line of JSON gives back.
        proto: the field `c` without its number; its value is Protobuf's JSON.
        json: JSON Schema, or the name of its type.
        connect: the schema of Connect's JSON, or the name of its type.
        read: what s3lake's own reader gives back, if that is not the cell: some of its readers know no such type.
    """

    column: str
    cell: Any
    text: Any
    csv: str | None
    avro: Any = None
    proto: Any = None
    json: Any = None
    connect: Any = None
    read: Any = None

    def in_language(self, language: str) -> tuple[Any, Any]:
        """Return the type and the value in a language."""
        given = getattr(self, language)
        kind, value = given if isinstance(given, tuple) else (given, self.text)
        return {"type": kind} if isinstance(kind, str) and language in ("json", "connect") else kind, value


def logical(name: str, connect: str, **more: Any) -> dict[str, Any]:
    return {"title": f"{LOGICAL}{name}", "connect.type": connect, **more}


def of_connect(kind: str, name: str | None = None, **more: Any) -> dict[str, Any]:
    return {"type": kind, **({"name": f"{LOGICAL}{name}"} if name else {}), **more}


UTC = datetime.timezone.utc
LOGICAL = "org.apache.kafka.connect.data."
DAY, AT = datetime.date(2026, 11, 20), datetime.datetime(2026, 11, 20, 8, 15, 0, 123000, UTC)
DAYS, MS, MOST = 20777, 1795162500123, 2**63 - 1
ID = "3f0b8a52-8f1c-4c2e-9d43-0c5d1a2b3c4d"
INNER = {"type": "record", "name": "Inner", "fields": [{"name": "x", "type": "long"}]}
OBJECT = {"type": "object", "properties": {"x": {"type": "integer"}}}
STRUCT = of_connect("struct", fields=[{"field": "x", "type": "int64"}])
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 2}
EMPTY_LINE = '""'
"""A row of one null in CSV, of which nothing would be an empty line."""
LINES = [
    Line("bool", True, True, "true", avro="boolean", proto="bool", json="boolean", connect="boolean"),
    Line("int32", -7, -7, "-7", "int", "sint32", {"type": "integer", "connect.type": "int32"}, "int32"),
    Line("int64", MOST, MOST, f"{MOST}", avro="long", proto="int64", json="integer", connect="int64"),
    Line("float", 0.5, 0.5, "0.5", "float", "float", {"type": "number", "connect.type": "float32"}, "float"),
    Line("double", 0.1, 0.1, "0.1", avro="double", proto="double", json="number", connect="double"),
    Line("string", "é\n", "é\n", '"é\n"', avro="string", proto="string", json="string", connect="string"),
    Line(
        "binary",
        *(b"\0\xff", "AP8=", '"AP8="'),
        avro=("bytes", b"\0\xff"),
        proto="bytes",
        json={"type": "string", "connect.type": "bytes"},
        connect="bytes",
    ),
    Line(
        "string",
        *("RED", "RED", '"RED"'),
        avro={"type": "enum", "name": "E", "symbols": ["NONE", "RED"]},
        proto="Colour",
        json={"enum": ["NONE", "RED"]},
    ),
    Line(
        "date",
        *(DAY, DAYS, "2026-11-20"),
        avro={"type": "int", "logicalType": "date"},
        proto=("google.type.Date", {"year": 2026, "month": 11, "day": 20}),
        json=logical("Date", "int32", type="integer"),
        connect=of_connect("int32", "Date"),
    ),
    Line(
        "time",
        *(datetime.time(8, 15), 29_700_000, "08:15:00.000"),
        avro={"type": "int", "logicalType": "time-millis"},
        proto=("google.type.TimeOfDay", {"hours": 8, "minutes": 15}),
        json=logical("Time", "int32", type="integer"),
        connect=of_connect("int32", "Time"),
        read="08:15:00.000",
    ),
    Line(
        "timestamp",
        *(AT, MS, "2026-11-20T08:15:00.123Z"),
        avro={"type": "long", "logicalType": "timestamp-millis"},
        proto=("google.protobuf.Timestamp", "2026-11-20T08:15:00.123Z"),
        json=logical("Timestamp", "int64", type="integer"),
        connect=of_connect("int64", "Timestamp"),
    ),
    Line(
        "decimal(38,2)",
        *(Decimal("-12.34"), -12.34, "-12.34"),
        avro=(DECIMAL, Decimal("-12.34")),
        json=logical("Decimal", "bytes", type="number", **{"connect.parameters": {"scale": "2"}}),
        connect=(of_connect("bytes", "Decimal", parameters={"scale": "2"}), "+y4="),
    ),
    Line("uuid", UUID(ID).bytes, ID, ID, avro={"type": "string", "logicalType": "uuid"}, read=ID),
    Line(
        "list<string>",
        *(["a", "b"], ["a", "b"], None),
        avro={"type": "array", "items": "string"},
        proto="repeated string",
        json={"type": "array", "items": {"type": "string"}},
        connect=of_connect("array", items=of_connect("string")),
    ),
    Line(
        "map<string, int64>",
        *([("k-1", 1)], {"k-1": 1}, None),
        avro={"type": "map", "values": "long"},
        proto="map<string, int64>",
        json={"type": "object", "additionalProperties": {"type": "integer"}},
        connect=of_connect("map", keys=of_connect("string"), values=of_connect("int64")),
    ),
    Line("struct<x: int64>", {"x": 1}, {"x": 1}, None, avro=INNER, proto="Inner", json=OBJECT, connect=STRUCT),
    Line(
        "list<struct<x: int64>>",
        *([{"x": 1}, {"x": 2}], [{"x": 1}, {"x": 2}], None),
        avro={"type": "array", "items": INNER},
        proto="repeated Inner",
        json={"type": "array", "items": OBJECT},
        connect=of_connect("array", items=STRUCT),
    ),
    Line(
        "int64",
        *(5, 5, "5"),
        avro=["null", "long"],
        proto="google.protobuf.Int64Value",
        json={"oneOf": [{"type": "null"}, {"type": "integer"}]},
        connect=of_connect("int64", optional=True),
    ),
    # What one language alone has
    Line("string", "a", "a", '"a"', avro={"type": "string"}),
    Line("string", "a", "a", '"a"', avro=["string"]),
    Line("int32", 1, 1, "1", avro=["int", "null"]),
    Line("binary", b"\0\1", "AAE=", '"AAE="', avro=({"type": "fixed", "name": "F", "size": 2}, b"\0\1")),
    Line("timestamp", AT, MS, "2026-11-20T08:15:00.123Z", {"type": "long", "logicalType": "local-timestamp-millis"}),
    Line("int64", 1_000_001, 1_000_001, "1000001", avro={"type": "long", "logicalType": "timestamp-micros"}),
    Line("int64", 1_001, 1_001, "1001", avro={"type": "long", "logicalType": "time-micros"}),
    Line(
        "decimal(9,0)",
        *(Decimal(7), 7, "7"),
        avro=({"type": "fixed", "name": "D", "size": 4, "logicalType": "decimal", "precision": 9}, Decimal(7)),
    ),
    Line("string", "a", "a", '"a"', avro={"type": "string", "logicalType": "date"}),  # not one by Avro's rules
    Line(
        "struct<__dummy_field_in_empty_struct: string>",
        *({"__dummy_field_in_empty_struct": None}, {}, None),
        avro={"type": "record", "name": "Nothing", "fields": []},
        proto="Nothing",
        json={"type": "object", "properties": {}},
        connect=of_connect("struct", fields=[]),
    ),
    Line("int64", 2**32 - 1, 2**32 - 1, f"{2**32 - 1}", proto="uint32"),
    Line("string", '{"a": 1.0}', '{"a": 1.0}', '"{""a"": 1.0}"', proto=("google.protobuf.Struct", {"a": 1})),
    Line("string", '{"a":1.0}', {"a": 1.0}, '"{""a"":1.0}"', json={}),
    Line("int32", -128, -128, "-128", connect="int8"),
    Line("int32", 32767, 32767, "32767", connect="int16"),
    Line("double", 1.0, 1, "1", connect="double"),
    Line("int64", 1_500, 1_500, "1500", connect={"type": "int64", "name": "io.debezium.time.MicroTimestamp"}),
    Line(
        "list<struct<key: int32, value: string>>",
        *([{"key": 1, "value": "x"}], [[1, "x"]], None),
        connect=of_connect("map", keys=of_connect("int32"), values=of_connect("string")),
    ),
    Line("string", "x", "x", '"x"', connect=(of_connect("string", default="x"), None)),
    Line("int32", None, None, "", connect=(of_connect("int32", optional=True, default=7), None)),
]
_FIELDS = [line.in_language("proto")[0] or "bool" for line in LINES]
PROTO = "\n".join(
    [
        'syntax = "proto3";',
        *(f'import "google/protobuf/{name}.proto";' for name in ("timestamp", "wrappers", "struct")),
        *(f'import "google/type/{name}.proto";' for name in ("date", "timeofday")),
        *(f"message M{number} {{ {field} c = 1; }}" for number, field in enumerate(_FIELDS)),
        "message Inner { int64 x = 1; }",
        "message Nothing { }",
        "enum Colour { NONE = 0; RED = 1; }",
    ]
)
CONVERTERS = {"avro": "avro", "proto": "protobuf", "json": "json_schema", "connect": "connect_json"}
CASES = [
    pytest.param(number, language, format, chain, id=f"{line.column} of {language} in {format}{chain} ({number})")
    for number, line in enumerate(LINES)
    for language in CONVERTERS
    if getattr(line, language) is not None
    for format in ("parquet", "avro", "json", "csv", "iceberg")
    for chain in ("", " behind a transform")
    if not (chain and format == "iceberg")  # it lists Parquet's files
]


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Any:
    from pyiceberg.catalog import load_catalog  # half a second, in all that collect

    home = tmp_path_factory.mktemp("iceberg")
    catalog = load_catalog("golden", type="sql", uri=f"sqlite:///{home}/catalog.db", warehouse=f"file://{home}")
    catalog.create_namespace("golden")
    return catalog


INSERT = {"type": "InsertField$Value", "options": {"static.field": "s", "static.value": "x"}}


@pytest.mark.parametrize(("number", "language", "format", "chain"), CASES)
def test_a_value_has_its_column_and_comes_back(
    registry: SchemaRegistry, catalog: Any, tmp_path: Path, number: int, language: str, format: str, chain: str
) -> None:
    line, more = LINES[number], {"s": "x"} if chain else {}
    converter: dict[str, Any] = {"value": CONVERTERS[language]}
    converter |= {} if language == "connect" else {"registry": {"url": registry.url}}
    form = {"type": "parquet" if format == "iceberg" else format}
    transforms = [INSERT] if chain else []
    world = VerifiedTopic(format=form, converter=converter, errors={"tolerance": "all"}, transforms=transforms)
    stage_records(world, [(None, _message(registry, line, number, language), [])])
    report = world.verify()
    is_refused = format == "csv" and line.csv is None
    assert (report.differences, report.landed, report.dead_letters) == ((), int(not is_refused), int(is_refused))
    (manifest,) = world.manifests.values()
    if is_refused:
        return
    (file,) = manifest.files
    body = world.store.objects[file.key][0]
    if format == "csv":
        assert body.decode() == (f'c,s\n{line.csv},"x"\n' if chain else f"c\n{line.csv or EMPTY_LINE}\n")
    if format == "json":
        assert json.loads(body) == {"c": line.text, **more}
        return
    assert manifest.columns
    types = from_document(manifest.columns)
    assert {name: str(type) for name, type in types.items()} == {"c": line.column, **({"s": "string"} if more else {})}
    if format == "csv":
        return
    if format == "iceberg" and line.column == "time":  # Iceberg's are to the microsecond, Connect's files are not
        with pytest.raises(TableConflictError, match=r"column 'c' holds times in milliseconds, .* give it as time_us"):
            _through_iceberg(catalog, tmp_path / "file.parquet", body, f"golden.t{number}_{language}")
        return
    if format == "iceberg":
        rows = _through_iceberg(catalog, tmp_path / "file.parquet", body, f"golden.t{number}_{language}")
    else:
        shape = ObjectShape.from_manifest(manifest)
        found = read_batches(shape, body, file.key, spark_columns.build_read_schema(shape))
        rows = [row for batch in found for row in batch.to_pylist()]
    assert rows == [{"c": line.read if line.read is not None and format != "iceberg" else line.cell, **more}]


def test_times_in_microseconds_are_columns_of_an_iceberg_table(catalog: Any, tmp_path: Path) -> None:
    world = VerifiedTopic(format={"type": "parquet"}, columns={"a": "time_us", "b": "timestamp_us"})
    stage_records(world, [(None, b'{"a":"08:15:00.123456","b":"2026-11-20T08:15:00.123456Z"}', [])])
    (manifest,) = world.manifests.values()
    body = world.store.objects[manifest.files[0].key][0]
    (row,) = _through_iceberg(catalog, tmp_path / "file.parquet", body, "golden.micros")
    assert row == {"a": datetime.time(8, 15, 0, 123456), "b": AT.replace(microsecond=123456)}


@pytest.mark.parametrize("type", ["timestamp_ns", "list<timestamp_ns>", "struct<x: timestamp_ns>"])
def test_times_that_iceberg_does_not_have_are_refused_with_the_type_to_give(type: str) -> None:
    file = io.BytesIO()
    pq.write_table(to_arrow({"a": grammar.parse_type(type)}).empty_table(), file)
    expected = r"column 'a' holds times in nanoseconds, .* give it as timestamp_us"
    with pytest.raises(TableConflictError, match=expected):
        list_schemas([pq.read_metadata(file)])


def _message(registry: SchemaRegistry, line: Line, number: int, language: str) -> bytes:
    type, value = line.in_language(language)
    if language == "proto":
        descriptor = compiler.compile_message(PROTO, {}, (number,))
        message = json_format.ParseDict({"c": value}, message_factory.GetMessageClass(descriptor)())
        path = b"\0" if number == 0 else bytes([2, 2 * number])
        return framed(registry.add(PROTO, "PROTOBUF"), path + message.SerializeToString())
    if language == "json":
        schema = {"type": "object", "properties": {"c": type}}
        return framed(registry.add(schema, "JSON"), json.dumps({"c": value}).encode())
    if language == "connect":
        schema = of_connect("struct", fields=[{**type, "field": "c"}])
        return json.dumps({"schema": schema, "payload": {"c": value}}).encode()
    schema = record(("c", type))
    return framed(registry.add(schema), datum(schema, {"c": value}))


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
