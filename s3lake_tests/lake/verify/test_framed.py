"""Values of a Schema Registry: what the pipeline lands of them is what they are, read without the writer's code."""

import json
import struct
from contextlib import suppress
from typing import Any
from uuid import NAMESPACE_OID, uuid5

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3lake.lake.verify.decoded_values import UNDECODABLE
from s3lake.lake.verify.decoders import build_decoder
from s3lake.records.encode.formats import FORMATS
from s3lake.records.schema.registry import get_client
from s3lake_tests.lake.verify.random_records import headers
from s3lake_tests.lake.verify.staged_records import Record, require_agreement, stage_records
from s3lake_tests.lake.verify.world import VerifiedTopic, build_registered_topic
from s3lake_tests.records.convert.read.protobuf.shop_messages import PROTO, full_message
from s3lake_tests.records.convert.read.strange_schemas import GOOD, STRANGE
from s3lake_tests.records.schema.registry.server import SchemaRegistry, datum, framed

OLD = {
    "type": "record",
    "name": "Order",
    "namespace": "com.acme",
    "fields": [
        {"name": "id", "type": "int"},
        {"name": "price", "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}]},
        {"name": "size", "type": {"type": "enum", "name": "Size", "symbols": ["S", "L"]}},
    ],
}
NEW = {
    **OLD,
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "size", "type": ["null", {"type": "enum", "name": "Size", "symbols": ["S", "L"]}]},
        {"name": "at", "type": {"type": "int", "logicalType": "time-millis"}},
        {"name": "who", "type": ["null", {"type": "string", "logicalType": "uuid"}]},
        {"name": "tags", "type": {"type": "map", "values": "double"}},
        {"name": "any", "type": ["null", "int", "long", {"type": "array", "items": "bytes"}]},
        {"name": "blob", "type": {"type": "fixed", "name": "Blob", "size": 2}},
    ],
}
SPACELESS = {
    "type": "record",
    "name": "Flat",
    "fields": [{"name": "a", "type": "float"}, {"name": "b", "type": "string"}],
}
text = st.text(max_size=4)


@pytest.fixture(scope="module")
def messages(registry: SchemaRegistry) -> st.SearchStrategy[bytes]:
    """Values of three schemas, and bytes that are none."""
    price = st.none() | st.binary(min_size=1, max_size=3)
    old = st.fixed_dictionaries({"id": st.integers(-9, 9), "price": price, "size": st.sampled_from("SL")})
    wide = st.none() | st.integers(-9, 2**40) | st.lists(st.binary(max_size=2), max_size=2)
    new = st.fixed_dictionaries(
        {
            "id": st.integers(-(2**63), 2**63 - 1),
            "size": st.none() | st.sampled_from("SL"),
            "at": st.integers(-1, 86_400_000),
            "who": st.none() | st.uuids().map(str) | st.just("not a UUID"),
            "tags": st.dictionaries(text, st.floats(), max_size=2),
            "any": wide,
            "blob": st.binary(min_size=2, max_size=2),
        }
    )
    flat = st.fixed_dictionaries({"a": st.floats(width=32), "b": text})
    found: list[st.SearchStrategy[bytes]] = [st.binary(max_size=7)]
    for schema, values in ((OLD, old), (NEW, new), (SPACELESS, flat), ("string", text)):
        number = registry.add(schema)

        def message(value: Any, number: int = number, schema: Any = schema) -> bytes:
            return framed(number, datum(schema, value))

        found.append(values.map(message))
    return st.one_of(found)


SHAPES: list[dict[str, Any]] = [
    {"format": {"type": format}} for format in ("json", "json_array", "text", "bytes", "avro", "parquet")
]
SHAPES += [
    {"format": {"type": format}, "envelope": {"style": style, "fields": fields}}
    for style, fields in (
        ("record", ["key", "value", "headers", "metadata"]),
        ("flat", ["key", "value", "offset"]),
        ("iggy", ["metadata", "value"]),
    )
    for format in [form.name for form in FORMATS.values() if style in form.styles]
]
SHAPES += [{"format": {"type": "parquet"}, "sidecars": {"keys": keys}} for keys in ("json", "avro", "parquet", "bytes")]


def test_keys_in_bytes_next_to_files_that_overlap_are_counted(registry: SchemaRegistry) -> None:
    first, second = registry.add(OLD), registry.add(SPACELESS)
    values = [framed(first, b"\0\0\0"), framed(second, b"\0\0\0\0\0"), framed(first, b"\2\0\0")]
    some = build_registered_topic(
        registry, {"format": {"type": "parquet"}, "sidecars": {"keys": "bytes"}}, {"value": "avro"}
    )
    stage_records(some, [(b"k\n%d" % number, value, []) for number, value in enumerate(values)])
    report = some.verify()
    assert (report.clean, report.differences, report.not_compared) == (True, (), 3)
    assert "overlap" in report.counted_reasons[0]


@given(data=st.data(), sink=st.sampled_from(SHAPES), touched=st.integers(0, 5))
def test_writer_and_verifier_agree(
    registry: SchemaRegistry,
    messages: st.SearchStrategy[bytes],
    data: st.DataObject,
    sink: dict[str, Any],
    touched: int,
) -> None:
    drawn = st.tuples(st.none() | messages, messages, headers, st.sampled_from(["", "id", "GUID"]))
    records = [
        (key, value, others) if by == "" else name_in_header(registry, key, value, others, by_guid=by == "GUID")
        for key, value, others, by in data.draw(st.lists(drawn, min_size=1, max_size=6))
    ]
    require_agreement(build_registered_topic(registry, sink, {"key": "avro", "value": "avro"}), records, touched)


def name_in_header(
    registry: SchemaRegistry, key: bytes | None, value: bytes, headers: list[tuple[str, bytes | None]], *, by_guid: bool
) -> Record:
    """A record whose value has its schema named in a header, by the id that is before it, or by its GUID."""
    name, data = value[:5], value[5:]
    if by_guid:
        guid = uuid5(NAMESPACE_OID, name.hex())
        registry.guids[guid] = int.from_bytes(name[1:], "big")
        name = b"\1" + guid.bytes
    return key, data, [*headers, ("__value_schema_id", name)]


PROPERTIES: dict[str, Any] = {
    "id": {"type": "integer", "connect.type": "int32"},
    "price": {
        "type": "number",
        "title": "org.apache.kafka.connect.data.Decimal",
        "connect.type": "bytes",
        "connect.parameters": {"scale": "2"},
    },
    "any": {},
    "of": {"oneOf": [{"type": "string"}, {"$ref": "#/definitions/to"}, {"type": "null"}]},
    "n": {"type": "integer", "default": 7},
    "titled": {
        "oneOf": [
            {"type": "null", "title": "Not included"},
            {"properties": {"k": {"anyOf": [{"const": None}, {"type": "string"}], "default": "d"}}},
        ]
    },
    "list": {"type": "array", "items": {"$ref": "#/definitions/to"}},
}
TO = {"type": "object", "properties": {"zip": {"type": "string"}, "more": {"$ref": "#"}}, "required": ["zip"]}
JSON_VALUES: list[dict[str, Any]] = [
    {"id": 1, "price": 12.34},
    {"id": 2, "price": "BNI=", "any": [1, 0.5, "x"], "of": "text", "n": 5},
    {"id": 3, "any": "x", "of": {"zip": "z"}, "list": [{"zip": "a", "unknown": 1}], "more": {"y": 1}},
    {"id": 4, "of": None, "n": None, "list": [], "titled": None},
    {"id": 5.0, "titled": {}},
    {"id": 6, "titled": {"k": "x"}},
    {"price": 1},
    {"id": "x"},
]


@pytest.mark.parametrize("format", ["json", "parquet", "avro"])
@pytest.mark.parametrize("touched", [0, 3, 4, 5])
def test_writer_and_verifier_agree_on_the_meaning_of_a_json_schema(
    registry: SchemaRegistry, format: str, touched: int
) -> None:
    schema = {"properties": PROPERTIES, "definitions": {"to": TO}, "required": ["id"]}
    some = build_registered_topic(
        registry, {"format": {"type": format}}, {"value": "json_schema", "key": "json_schema"}
    )
    number = registry.add(schema, "JSON")
    key = registry.add({"type": "string"}, "JSON")
    values = [framed(number, json.dumps(value).encode()) for value in JSON_VALUES]
    values += [framed(number, b'{"id":%b}' % digits) for digits in (b"1e30", b"-1E2", b"6.5")]
    require_agreement(some, [(framed(key, b'"k"'), value, []) for value in values], touched)


NESTED = {"type": "object", "properties": {"n": {"$ref": "#/definitions/n"}}, "default": {"n": 1.0}}
FOREIGN = {
    "properties": {"n": {"$ref": "#/definitions/n"}, "to": NESTED},
    "definitions": {"n": {"type": "integer", "default": 7}},
}
"""A document with defaults behind references that are relative to itself."""


@pytest.mark.parametrize("format", ["json", "parquet", "avro"])
@pytest.mark.parametrize(
    "schema",
    [
        {"allOf": [{"$ref": "base.json"}, {"properties": {"own": {"type": "string", "default": "o"}}}]},
        {
            "properties": {"a": {"$ref": "base.json#/properties/to"}, "b": {"$ref": "#/oneOf/0"}},
            "oneOf": [{"default": 5}],
        },
        {
            "allOf": [
                {"properties": {"a": {"properties": {"x": {"type": "integer", "default": 1}}}}},
                {"properties": {"a": {"properties": {"y": {"type": "integer", "default": 2}}}}},
            ]
        },
        {"properties": {"a": {"type": ["string", "integer"], "default": "x"}, "b": {"default": {"k": [1.5]}}}},
        {"properties": {"a": {"oneOf": [{"type": "string"}, {"type": "integer"}], "default": 1}}},
        {"properties": {"a": {"type": "array", "default": [1, "x"]}, "b": {"type": "object", "default": {"k": 1}}}},
        {"properties": {"a": {"type": "integer", "default": "x"}, "b": {"type": "array", "default": ""}}},
        {"properties": {"a": {"type": "object", "properties": {"x": {"type": "number"}}, "default": {"x": "?"}}}},
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$ref": "base.json",
            "properties": {"own": {"default": 1}},
        },
    ],
)
def test_writer_and_verifier_agree_on_the_defaults_of_a_json_schema(
    registry: SchemaRegistry, format: str, schema: dict[str, Any]
) -> None:
    registry.add(FOREIGN, "JSON", "base-value")
    number = registry.add(
        {**schema, "definitions": {"n": {"default": 9}}}, "JSON", refers=[("base.json", "base-value")]
    )
    some = build_registered_topic(registry, {"format": {"type": format}}, {"value": "json_schema"})
    values = [{"id": 1}, {"id": 2, "a": {}, "to": {}}, {"id": 3, "n": None, "own": None}]
    require_agreement(some, [(b"k", framed(number, json.dumps(value).encode()), []) for value in values], 1)


@pytest.mark.parametrize("format", ["json", "parquet", "avro"])
def test_writer_and_verifier_agree_on_protobuf(registry: SchemaRegistry, format: str) -> None:
    some = build_registered_topic(registry, {"format": {"type": format}}, {"key": "protobuf", "value": "protobuf"})
    number = registry.add(PROTO, "PROTOBUF")
    values = [framed(number, b"\2\2" + full_message()), framed(number, b"\2\2"), framed(number, b"\0\xff"), b"{}"]
    require_agreement(some, [(framed(number, b"\0\x0a\1k"), value, []) for value in values], 1)


@pytest.mark.parametrize("format", ["json", "parquet", "avro"])
@pytest.mark.parametrize("field", ["other", "contact_0", "took", "others", "names", "sizes", "at", "colour"])
def test_a_field_that_is_extracted_of_a_message_lands_and_is_compared(
    registry: SchemaRegistry, format: str, field: str
) -> None:
    chain = [{"type": "ExtractField$Value", "options": {"field": field}}]
    some = build_registered_topic(registry, {"format": {"type": format}, "transforms": chain}, {"value": "protobuf"})
    number = registry.add(PROTO, "PROTOBUF")
    stage_records(some, [(b"k", framed(number, b"\2\2" + full_message()), [])] * 2)
    report = some.verify()
    assert (report.clean, report.landed, report.dead_letters) == (True, 2, 0)


FLOATS = [struct.pack("<f", number) for number in (0.1, -64.37988, 2.0**-149, float("nan"), -0.0, 7.0385307e-26)]


@pytest.mark.parametrize(
    "sink",
    [
        {"format": {"type": "json"}},
        {"format": {"type": "csv"}, "envelope": {"style": "flat", "fields": ["key", "value"]}},
        {
            "format": {"type": "parquet"},
            "envelope": {"style": "record", "fields": ["key", "value"]},
            "sidecars": {"keys": "json"},
        },
    ],
)
def test_writer_and_verifier_agree_on_floats(registry: SchemaRegistry, sink: dict[str, Any]) -> None:
    key, value = registry.add("float"), registry.add(SPACELESS)
    some = build_registered_topic(registry, sink, {"key": "avro", "value": "avro"})
    require_agreement(some, [(framed(key, number), framed(value, number + b"\0"), []) for number in FLOATS], 1)
    some = build_registered_topic(registry, sink, {"key": "avro", "value": "protobuf"})
    value = registry.add('syntax = "proto3"; message M { float f = 1; repeated float g = 2; }', "PROTOBUF")
    messages = [b"\0\x0d" + number + b"\x12\4" + number for number in FLOATS]
    require_agreement(some, [(framed(key, FLOATS[0]), framed(value, message), []) for message in messages], 1)


@pytest.mark.parametrize("converter", ["connect_json", "long"])
def test_json_that_s3lake_wrote_is_counted_if_a_separator_may_be_in_it(converter: str) -> None:
    form = {"type": "text", "framing": {"opening": "[", "between": ",", "closing": "]"}}
    some = VerifiedTopic(format=form, converter={"value": converter}, errors={"tolerance": "all"})
    stage_records(some, [(None, value, []) for value in (b"[1,2,3]", b"12345678")])
    report = some.verify()
    assert (report.clean, report.not_compared) == (True, 2)
    assert report.counted_reasons[0].endswith("in which what separates them may be: use format json")


@pytest.mark.parametrize("format", ["json", "parquet"])
def test_records_of_a_schema_that_the_registry_has_no_more_are_not_comparable_and_not_lost(
    registry: SchemaRegistry, format: str
) -> None:
    some = build_registered_topic(registry, {"format": {"type": format}}, {"value": "avro"})
    withheld_id, kept = registry.add(OLD), registry.add(SPACELESS)
    records = [framed(withheld_id, b"\0\0\0"), framed(kept, b"\0\0\0\0\0"), framed(withheld_id, b"\2\0\0")]
    stage_records(some, [(None, value, []) for value in records])
    get_client.cache_clear()
    registry.withheld.add(withheld_id)
    report = some.verify()
    assert (report.differences, report.missing, report.duplicated) == ((), 0, 0)
    assert (report.clean, report.compared, report.not_compared) == (False, 0, 3)
    (unchecked,) = report.checked[0].not_checkable
    assert f"converter.registry does not have a schema of its records: schema id {withheld_id}: " in unchecked.reason


NAMES = {
    "type": "record",
    "name": "Row",
    "namespace": "com.acme",
    "fields": [
        {"name": "a", "type": [{"type": "null"}, "int"]},
        {"name": "b", "type": [{"type": "null"}, "int", {"type": "enum", "name": "one.Size", "symbols": ["S"]}]},
        {"name": "c", "type": ["one.Size", {"type": "enum", "name": "Size", "symbols": ["L"]}]},
        {"name": "d", "type": {"type": "array", "items": "Size"}},
    ],
}


@pytest.mark.parametrize("format", ["json", "parquet", "avro"])
def test_writer_and_verifier_agree_on_names_and_nulls_of_avro_however_they_are_written(
    registry: SchemaRegistry, format: str
) -> None:
    some = build_registered_topic(registry, {"format": {"type": format}}, {"value": "avro"})
    number = registry.add(NAMES)
    data = [b"\0\0\0\0\2\0\0", b"\2\2\2\4\2\0\0", b"\2\4\4\0\0\0\0"]
    require_agreement(some, [(None, framed(number, one), []) for one in data], 1)
    assert some.verify().dead_letters == 0


@pytest.mark.parametrize("format", ["json", "parquet", "avro", "csv"])
@pytest.mark.parametrize("converter", STRANGE)
def test_strangers_among_the_records_leave_the_hour_comparable(
    registry: SchemaRegistry, converter: str, format: str
) -> None:
    """Ids that no registry has, and schemas that no compiler takes: their records alone are dead letters."""
    some = build_registered_topic(registry, {"format": {"type": format}}, {"value": converter})
    good, kind, data = GOOD[converter]
    sound = framed(registry.add(good, kind), data)
    strange = [framed(registry.add(schema, kind), data) for schema in STRANGE[converter].values()]
    records = [sound, framed(2**32 - 1, data), framed(7, data), *strange, sound]
    stage_records(some, [(None, value, []) for value in records])
    report = some.verify()
    assert (report.differences, report.missing, report.duplicated, report.not_compared) == ((), 0, 0, 0)
    assert report.compared >= 2


@pytest.mark.parametrize(("converter", "kind"), [(name, kind) for name, kinds in STRANGE.items() for kind in kinds])
def test_a_strange_schema_is_decoded_or_equals_nothing(registry: SchemaRegistry, converter: str, kind: str) -> None:
    _, language, data = GOOD[converter]
    decode = build_decoder(converter, registry.connection)
    value = framed(registry.add(STRANGE[converter][kind], language), data)
    with suppress(UNDECODABLE):  # all that the comparison knows of
        assert decode(value) == {"a": 7} or kind in ("field", "name")
