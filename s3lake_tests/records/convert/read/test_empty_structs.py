"""A struct without fields shows whether it is set: of each converter, in each format, in each place.

The columns have a placeholder, which is always null; text has `{}`.
"""

import io
import json
from collections.abc import Callable
from typing import Any

import fastavro
import pytest

from s3lake.lake.objects import ObjectShape, read_batches, spark_columns
from s3lake.lake.table.hive.spelling import HIVE, ROWS
from s3lake.records.schema.columns import grammar
from s3lake.records.schema.columns.types import PLACEHOLDER, from_document
from s3lake.records.schema.columns.union import unify_columns
from s3lake_tests.kit.avro_messages import datum, record
from s3lake_tests.lake.verify.staged_records import stage_records
from s3lake_tests.lake.verify.world import VerifiedTopic
from s3lake_tests.records.convert.read.landed_rows import leave_out_placeholders, read_landed_rows
from s3lake_tests.records.convert.read.protobuf.wire_format import field_bytes
from s3lake_tests.records.schema.registry.server import SchemaRegistry, framed

EMPTY = f"struct<{PLACEHOLDER}: string>"
FORMATS = ["json", "parquet", "avro"]
Make = Callable[[SchemaRegistry, str, bool], bytes]
"""Makes a value with an empty struct in a place, which is set or not."""


def _nothing(name: str = "Nothing") -> Any:
    return {"type": "record", "name": name, "fields": []}


AVRO: dict[str, tuple[Any, Any, Any]] = {
    "a field": (record(("a", ["null", _nothing()])), {"a": {}}, {"a": None}),
    "a nested field": (record(("a", record(("b", ["null", _nothing()]), name="In"))), {"a": {"b": {}}}, {"a": {}}),
    "a list": (record(("a", {"type": "array", "items": _nothing()})), {"a": [{}, {}]}, {"a": []}),
    "a list of nullables": (
        record(("a", {"type": "array", "items": ["null", _nothing()]})),
        {"a": [{}]},
        {"a": [None]},
    ),
    "a map": (record(("a", {"type": "map", "values": _nothing()})), {"a": {"k": {}}}, {"a": {}}),
    "a union": (
        record(("a", [_nothing("Joined"), _nothing("Left"), "string"])),
        {"a": ("com.acme.Joined", {})},
        {"a": ("com.acme.Left", {})},
    ),
    "a record of nulls": (
        record(("a", ["null", record(("n", "null"), name="Nulls")])),
        {"a": {"n": None}},
        {"a": None},
    ),
}
NULLS = {
    "a list": (record(("a", {"type": "array", "items": "null"})), {"a": [None, None]}, {"a": []}),
    "a list of unions": (record(("a", {"type": "array", "items": ["null"]})), {"a": [None]}, {"a": []}),
    "a map": (record(("a", {"type": "map", "values": "null"})), {"a": {"k": None}}, {"a": {}}),
}
PROTO = """
syntax = "proto3";
import "google/protobuf/empty.proto";
message Joined {} message Left {}
message Field { Joined a = 1; }
message Outer { Field a = 1; }
message Listed { repeated Joined a = 1; }
message Mapped { map<string, Joined> a = 1; }
message Numbered { map<int32, google.protobuf.Empty> a = 1; }
message Chosen { oneof o { Joined joined = 1; Left left = 2; } }
message Google { google.protobuf.Empty a = 1; }
"""
NEW_PROTO = 'syntax = "proto3"; message Field { Joined a = 1; } message Joined { string b = 1; }'
PROTOBUF = {
    "a field": (2, field_bytes(1, b""), b""),
    "a nested field": (3, field_bytes(1, field_bytes(1, b"")), field_bytes(1, b"")),
    "a list": (4, field_bytes(1, b"") * 2, b""),
    "a map": (5, field_bytes(1, field_bytes(1, b"k") + field_bytes(2, b"")), b""),
    "a map by number": (6, field_bytes(1, field_bytes(1, 5) + field_bytes(2, b"")), b""),
    "a union": (7, field_bytes(1, b""), field_bytes(2, b"")),
    "google.protobuf.Empty": (8, field_bytes(1, b""), b""),
}


def _connect(**field: Any) -> dict[str, Any]:
    return {"type": "struct", "fields": [{"field": "a", **field}]}


NOTHING = {"type": "struct", "fields": []}
CONNECT = {
    "a field": (_connect(**NOTHING, optional=True), {"a": {}}, {"a": None}),
    "a nested field": (_connect(**_connect(**NOTHING, optional=True)), {"a": {"a": {}}}, {"a": {"a": None}}),
    "a list": (_connect(type="array", items=NOTHING), {"a": [{}, {}]}, {"a": []}),
    "a map": (_connect(type="map", keys={"type": "string"}, values=NOTHING), {"a": {"k": {}}}, {"a": {}}),
}


def _object(**a: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": a}}


NO_PROPERTIES = {"type": "object", "properties": {}}
JSON = {
    "a field": (_object(**NO_PROPERTIES), {"a": {}}, {"a": None}),
    "a closed field": (_object(type="object", additionalProperties=False), {"a": {}}, {"a": None}),
    "a nested field": (_object(**_object(**NO_PROPERTIES)), {"a": {"a": {}}}, {"a": {"a": None}}),
    "a list": (_object(type="array", items=NO_PROPERTIES), {"a": [{}, {}]}, {"a": []}),
    "a map": (_object(type="object", additionalProperties=NO_PROPERTIES), {"a": {"k": {}}}, {"a": {}}),
}
PLACES = [
    *(("avro", place) for place in AVRO),
    *(("protobuf", place) for place in PROTOBUF),
    *(("connect_json", place) for place in CONNECT),
    *(("json_schema", place) for place in JSON),
]


def make(registry: SchemaRegistry, converter: str, place: str, *, is_set: bool) -> bytes:
    """A record whose empty struct is set or not."""
    at = 1 if is_set else 2
    match converter:
        case "avro":
            schema = AVRO[place][0]
            return framed(registry.add(schema), datum(schema, AVRO[place][at]))
        case "protobuf":
            number, *data = PROTOBUF[place]
            return framed(registry.add(PROTO, "PROTOBUF"), bytes([2, 2 * number]) + data[at - 1])
        case "connect_json":
            return json.dumps({"schema": CONNECT[place][0], "payload": CONNECT[place][at]}).encode()
    return framed(registry.add(JSON[place][0], "JSON"), json.dumps(JSON[place][at]).encode())


def world(registry: SchemaRegistry, converter: str, format: str, *, key: str = "string", **sink: Any) -> VerifiedTopic:
    registered = {} if {converter, key} <= {"connect_json", "string"} else {"registry": {"url": registry.url}}
    return VerifiedTopic(
        format={"type": format},
        converter={"key": key, "value": converter, **registered},
        errors={"tolerance": "all"},
        **sink,
    )


def expected(converter: str, place: str, *, is_set: bool) -> Any:
    if place == "a union":
        member = {"avro": ("Joined", "Left"), "protobuf": ("joined", "left")}[converter][not is_set]
        return {"a" if converter == "avro" else "o_0": {member: {}}}
    rows = {
        "a nested field": ({"a": {"b" if converter == "avro" else "a": {}}}, {"a": {}}),
        "a list": ({"a": [{}, {}]}, {"a": []}),
        "a list of nullables": ({"a": [{}]}, {"a": [None]}),
        "a map": ({"a": {"k": {}}}, {"a": {}}),
        "a map by number": ({"a": [{"key": 5, "value": {}}]}, {"a": []}),
    }
    return rows.get(place, ({"a": {}}, {}))[not is_set]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(("converter", "place"), PLACES)
def test_a_struct_without_fields_distinguishes_set_from_unset(
    registry: SchemaRegistry, converter: str, place: str, format: str
) -> None:
    made = world(registry, converter, format)
    stage_records(made, [(None, make(registry, converter, place, is_set=is_set), []) for is_set in (True, False)])
    assert list(map(leave_out_placeholders, read_landed_rows(made))) == [
        expected(converter, place, is_set=is_set) for is_set in (True, False)
    ]
    assert made.verify().clean


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(("converter", "place"), PLACES)
def test_verify_finds_one_that_is_lost(registry: SchemaRegistry, converter: str, place: str, format: str) -> None:
    unset = make(registry, converter, place, is_set=False)
    made = world(registry, converter, format)
    stage_records(made, [(None, unset, [])])
    made.log.records[0] = {0: (made.log.records[0][0][0], make(registry, converter, place, is_set=True))}
    report = made.verify()
    assert (report.missing, report.duplicated) == (1, 1)


WHOLE = {
    "avro": lambda registry: framed(registry.add(_nothing()), b""),
    "protobuf": lambda registry: framed(registry.add(PROTO, "PROTOBUF"), b"\2\0"),
    "connect_json": lambda _: json.dumps({"schema": NOTHING, "payload": {}}).encode(),
    "json_schema": lambda registry: framed(registry.add(NO_PROPERTIES, "JSON"), b"{}"),
}


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("converter", WHOLE)
def test_a_whole_value_without_fields_is_a_row(registry: SchemaRegistry, converter: str, format: str) -> None:
    made = world(registry, converter, format)
    stage_records(made, [(None, WHOLE[converter](registry), []) for _ in range(3)])
    assert list(map(leave_out_placeholders, read_landed_rows(made))) == [{}] * 3
    assert made.verify().clean


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("converter", WHOLE)
def test_in_an_envelope_a_key_or_value_without_fields_differs_from_null(
    registry: SchemaRegistry, converter: str, format: str
) -> None:
    empty = WHOLE[converter](registry)
    made = world(registry, converter, format, key=converter, envelope={"fields": ["key", "value"]}, nulls="write")
    stage_records(made, [(empty, empty, []), (None, empty, []), (empty, None, [])])
    rows = [(row.get("key"), row.get("value")) for row in read_landed_rows(made)]
    assert list(map(leave_out_placeholders, map(list, rows))) == [[{}, {}], [None, {}], [{}, None]]
    assert made.verify().clean


@pytest.mark.parametrize("format", ["json", "avro", "parquet"])
@pytest.mark.parametrize("converter", WHOLE)
def test_a_key_without_fields_is_in_its_sidecar(registry: SchemaRegistry, converter: str, format: str) -> None:
    empty = WHOLE[converter](registry)
    made = world(registry, converter, "json", key=converter, sidecars={"keys": format})
    stage_records(made, [(empty, empty, []), (empty, empty, [])])
    assert made.verify().clean
    (manifest,) = made.manifests.values()
    assert [(file.stream, file.records) for file in manifest.files] == [("data", 2), ("keys", 2)]


def test_avro_files_of_the_producers_bytes_keep_the_empty_record(registry: SchemaRegistry) -> None:
    made = world(registry, "avro", "avro")
    stage_records(made, [(None, make(registry, "avro", "a field", is_set=is_set), []) for is_set in (True, False)])
    (manifest,) = made.manifests.values()
    reader = fastavro.reader(io.BytesIO(made.store.objects[manifest.files[0].key][0]))
    assert list(reader) == [{"a": {}}, {"a": None}]
    assert json.dumps(reader.writer_schema).count(PLACEHOLDER) == 0


@pytest.mark.parametrize("converter", ["avro", "protobuf", "connect_json", "json_schema"])
@pytest.mark.parametrize("format", ["parquet", "avro"])
def test_a_schema_that_gets_its_first_field_joins(registry: SchemaRegistry, converter: str, format: str) -> None:
    new_of: dict[str, Callable[[], bytes]] = {
        "avro": lambda: _new_avro(registry),
        "protobuf": lambda: framed(
            registry.add(
                'syntax = "proto3"; message Field { Joined a = 1; } message Joined { string b = 1; }', "PROTOBUF"
            ),
            b"\0" + field_bytes(1, field_bytes(1, b"x")),
        ),
        "connect_json": lambda: json.dumps(
            {
                "schema": _connect(type="struct", fields=[{"field": "b", "type": "string"}], optional=True),
                "payload": {"a": {"b": "x"}},
            }
        ).encode(),
        "json_schema": lambda: framed(
            registry.add(_object(type="object", properties={"b": {"type": "string"}}), "JSON"), b'{"a": {"b": "x"}}'
        ),
    }
    made = world(registry, converter, format)
    old = [make(registry, converter, "a field", is_set=is_set) for is_set in (True, False)]
    stage_records(made, [(None, value, []) for value in (*old, new_of[converter]())])
    (manifest,) = made.manifests.values()
    types = from_document(manifest.columns or {})
    assert str(types["a"]) == f"struct<{PLACEHOLDER}: string, b: string>"
    assert sorted(map(str, map(leave_out_placeholders, read_landed_rows(made)))) == sorted(
        map(str, [{"a": {}}, {}, {"a": {"b": "x"}}])
    )
    assert made.verify().clean


def _new_avro(registry: SchemaRegistry) -> bytes:
    inner = {"type": "record", "name": "Nothing", "fields": [{"name": "b", "type": "string"}]}
    schema = record(("a", ["null", inner]))
    return framed(registry.add(schema), datum(schema, {"a": {"b": "x"}}))


def test_more_properties_of_an_object_without_are_counted(registry: SchemaRegistry) -> None:
    made = world(registry, "json_schema", "parquet")
    number = registry.add(_object(**NO_PROPERTIES), "JSON")
    stage_records(made, [(None, framed(number, b'{"a": {"b": 1}}'), [])])
    (manifest,) = made.manifests.values()
    assert (manifest.counts.fields_left_out, list(map(leave_out_placeholders, read_landed_rows(made)))) == (
        {"a.b": 1},
        [{"a": {}}],
    )
    assert made.verify().clean


def test_an_object_that_may_have_any_property_is_its_text(registry: SchemaRegistry) -> None:
    made = world(registry, "json_schema", "parquet")
    number = registry.add(_object(type="object"), "JSON")
    stage_records(made, [(None, framed(number, b'{"a": {"b": 1}}'), [])])
    assert read_landed_rows(made) == [{"a": '{"b":1}'}]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("place", NULLS)
def test_nulls_in_lists_and_maps_are_there(registry: SchemaRegistry, place: str, format: str) -> None:
    schema, *values = NULLS[place]
    made = world(registry, "avro", format)
    stage_records(made, [(None, framed(registry.add(schema), datum(schema, value)), []) for value in values])
    (manifest,) = made.manifests.values()
    body = made.store.objects[manifest.files[0].key][0]
    if format == "json":
        assert list(map(json.loads, body.splitlines())) == values
    else:
        shape = ObjectShape.from_manifest(manifest)
        batches = read_batches(shape, body, manifest.files[0].key, spark_columns.build_read_schema(shape))
        assert [row for batch in batches for row in batch.to_pylist(maps_as_pydicts="strict")] == values
    assert made.verify().clean


@pytest.mark.parametrize("rule", ["drop", "dead_letter", "fail"])
def test_the_placeholder_is_no_new_field_of_a_contract(registry: SchemaRegistry, rule: str) -> None:
    made = world(registry, "avro", "parquet", schema={"on_new_field": rule})
    recorded = {"a": grammar.parse_type("struct<b: string>")}
    stage_records(made, [(None, make(registry, "avro", "a field", is_set=True), [])], recorded)
    assert list(map(leave_out_placeholders, read_landed_rows(made))) == [{"a": {}}]
    assert made.verify().clean


@pytest.mark.parametrize("step", ["InsertField$Value", "Flatten$Value", "ReplaceField$Value"])
def test_a_transform_sees_a_struct_without_fields(registry: SchemaRegistry, step: str) -> None:
    options = {
        "InsertField$Value": {"static.field": "s", "static.value": "x"},
        "Flatten$Value": {},
        "ReplaceField$Value": {"exclude": "a"},
    }[step]
    made = world(registry, "avro", "parquet", transforms=[{"type": step, "options": options}])
    stage_records(made, [(None, make(registry, "avro", "a field", is_set=is_set), []) for is_set in (True, False)])
    rows = {"InsertField$Value": [{"a": {}, "s": "x"}, {"s": "x"}]}
    assert list(map(leave_out_placeholders, read_landed_rows(made))) == rows.get(step, [{}, {}])
    assert made.verify().clean


def test_the_type_is_written_for_people_and_engines() -> None:
    type = grammar.parse_type(EMPTY)
    assert str(type) == EMPTY
    assert HIVE.type(type) == f"struct<`{PLACEHOLDER}`:string>"
    assert ROWS.type(type) == f'row("{PLACEHOLDER}" varchar)'
    joined = unify_columns({"a": type}, {"a": grammar.parse_type("struct<b: int64>")})
    assert str(joined["a"]) == f"struct<{PLACEHOLDER}: string, b: int64>"
