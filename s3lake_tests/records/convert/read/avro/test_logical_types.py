"""Invalid logical types of Avro are ignored wherever they are: the value is that of the underlying type."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from s3lake.lake.objects import ObjectShape, read_batches, spark_columns
from s3lake.records.convert.conversion import Conversion
from s3lake.records.convert.convert_batch import convert_batch
from s3lake_tests.kit.avro_messages import logical, record
from s3lake_tests.lake.verify.staged_records import stage_records
from s3lake_tests.lake.verify.world import VerifiedTopic
from s3lake_tests.records.convert.batches import batch
from s3lake_tests.records.schema.registry.server import SchemaRegistry, datum, framed

DECIMAL = logical("bytes", "decimal")
FIXED = {"type": "fixed", "name": "F", "size": 2}
INVALID: dict[str, tuple[Any, Any, str]] = {
    "a scale above the precision": ({**DECIMAL, "precision": 64, "scale": 127}, b"0", "binary"),
    "a scale below zero": ({**DECIMAL, "precision": 10, "scale": -2}, b"0", "binary"),
    "a precision of zero": ({**DECIMAL, "precision": 0}, b"0", "binary"),
    "a precision below zero": ({**DECIMAL, "precision": -1}, b"0", "binary"),
    "no precision": (DECIMAL, b"0", "binary"),
    "a precision as text": ({**DECIMAL, "precision": "10"}, b"0", "binary"),
    "a precision with a point": ({**DECIMAL, "precision": 10.0}, b"0", "binary"),
    "a precision of true": ({**DECIMAL, "precision": True}, b"0", "binary"),
    "a scale as text": ({**DECIMAL, "precision": 10, "scale": "2"}, b"0", "binary"),
    "a scale with a point": ({**DECIMAL, "precision": 10, "scale": 2.0}, b"0", "binary"),
    "a scale of null": ({**DECIMAL, "precision": 10, "scale": None}, b"0", "binary"),
    "a fixed that is too small": ({**FIXED, "logicalType": "decimal", "precision": 5}, b"01", "binary"),
    "a fixed that is far too small": ({**FIXED, "logicalType": "decimal", "precision": 10**9}, b"01", "binary"),
    "a decimal on int": (logical("int", "decimal", precision=4, scale=2), 5, "int32"),
    "a decimal on string": (logical("string", "decimal", precision=4, scale=5), "5", "string"),
    "a uuid on int": (logical("int", "uuid"), 5, "int32"),
    "a uuid on a fixed of 2": ({**FIXED, "logicalType": "uuid"}, b"01", "binary"),
    "a duration on a fixed of 2": ({**FIXED, "logicalType": "duration"}, b"01", "binary"),
    "a date on long": (logical("long", "date"), 5, "int64"),
    "a time on long": (logical("long", "time-millis"), -5, "int64"),
    "a time in microseconds on int": (logical("int", "time-micros"), -5, "int32"),
    "a timestamp on string": (logical("string", "timestamp-millis"), "5", "string"),
    "a local timestamp on int": (logical("int", "local-timestamp-millis"), 5, "int32"),
    "an unknown name": (logical("string", "colour"), "red", "string"),
    "a number as name": (logical("string", 7), "red", "string"),  # type: ignore[arg-type]
    "an object as name": (logical("string", {"a": []}), "red", "string"),  # type: ignore[arg-type]
    "a date on an array": ({"type": "array", "items": "int", "logicalType": "date"}, [5], "list<int32>"),
    "a uuid on an enum": ({"type": "enum", "name": "E", "symbols": ["A"], "logicalType": "uuid"}, "A", "string"),
}
PLACES: dict[str, tuple[Any, Any, str]] = {
    "alone": (lambda kind: kind, lambda value: value, "{}"),
    "or null": (lambda kind: ["null", kind], lambda value: value, "{}"),
    "nested": (lambda kind: record(("x", kind), name="com.acme.In"), lambda value: {"x": value}, "struct<x: {}>"),
    "in a list": (lambda kind: {"type": "array", "items": kind}, lambda value: [value], "list<{}>"),
    "in a map": (lambda kind: {"type": "map", "values": kind}, lambda value: {"k": value}, "map<string, {}>"),
    "in a union": (lambda kind: ["null", "boolean", kind], lambda value: value, "struct<boolean: bool, {1}: {0}>"),
}


def plain(kind: Any) -> Any:
    """Return a schema without its logical type, which the datums of the tests are written with."""
    return {name: part for name, part in kind.items() if name not in ("logicalType", "precision", "scale")}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("invalid", INVALID)
def test_an_invalid_logical_type_is_ignored_wherever_it_is(registry: SchemaRegistry, invalid: str, place: str) -> None:
    kind, value, column = INVALID[invalid]
    put, hold, expected = PLACES[place]
    message = framed(registry.add(record(("a", put(kind)))), datum(record(("a", put(plain(kind)))), {"a": hold(value)}))
    branch = kind.get("name", kind["type"])
    found = {}
    for format in ("parquet", "json", "avro", "csv"):
        converter = {"value": "avro", "registry": {"url": registry.url}}
        world = VerifiedTopic(format={"type": format}, converter=converter, errors={"tolerance": "all"})
        stage_records(world, [(None, message, [])])
        report = world.verify()
        (manifest,) = world.manifests.values()
        has_cell = format != "csv" or ("<" not in expected and "<" not in column)
        assert (report.differences, report.landed) == ((), int(has_cell))
        if format in ("parquet", "avro"):
            (file,) = manifest.files
            shape = ObjectShape.from_manifest(manifest)
            read = read_batches(
                shape, world.store.objects[file.key][0], file.key, spark_columns.build_read_schema(shape)
            )
            found[format] = [row for part in read for row in part.to_pylist()]
            assert manifest.columns is not None
            assert str(shape.columns) == f"struct<a: {expected.format(column, branch)}>"
    assert found["parquet"] == found["avro"]
    assert json.dumps(found["parquet"], default=list).count("null") == int(place == "in a union")


@pytest.mark.parametrize("invalid", INVALID)
def test_a_key_with_an_invalid_logical_type_is_read(registry: SchemaRegistry, invalid: str) -> None:
    kind, value, _ = INVALID[invalid]
    key = framed(registry.add(kind), datum(plain(kind), value))
    by = Conversion("avro", "json", "json", "write", registry=registry.connection, keyed=True)
    (part,) = convert_batch(by, batch(b"{}", keys=[key]), {}).parts
    shown = base64.b64encode(value).decode() if isinstance(value, bytes) else value
    assert part.keys is not None
    assert json.loads(part.keys[0].as_py()) == shown


@pytest.mark.parametrize("invalid", INVALID)
def test_a_schema_file_may_have_an_invalid_logical_type(tmp_path: Path, invalid: str) -> None:
    kind, value, _ = INVALID[invalid]
    (tmp_path / "a.avsc").write_text(json.dumps(record(("a", kind))))
    registry = {"schema_file": str(tmp_path / "a.avsc")}
    world = VerifiedTopic(format={"type": "parquet"}, converter={"value": "avro", "registry": registry})
    stage_records(world, [(None, datum(record(("a", plain(kind))), {"a": value}), [])])
    assert (world.verify().differences, world.verify().landed) == ((), 1)


def test_a_spliced_file_has_no_invalid_logical_type_because_readers_refuse_it(registry: SchemaRegistry) -> None:
    """Java ignores it, fastavro does not open the file."""
    kind = {**DECIMAL, "precision": 4, "scale": 9}
    by = Conversion("string", "avro", "avro", "write", registry=registry.connection)
    (part,) = convert_batch(by, batch(framed(registry.add(record(("a", kind))), b"\0")), {}).parts
    schema = json.loads(next(iter(part.streams["data"].schema.metadata.values())))
    assert "logicalType" not in str(schema)
