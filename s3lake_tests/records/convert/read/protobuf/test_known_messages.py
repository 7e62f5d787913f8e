"""Messages and files that Protobuf's users know by name, names of methods as names of fields, texts made of maps."""

import base64
import datetime
import json
from decimal import Decimal
from typing import Any

import pytest
from google.protobuf import descriptor_pb2

from s3lake.records.schema.protobuf import compiler, known_files
from s3lake_tests.lake.verify.staged_records import stage_records
from s3lake_tests.lake.verify.world import VerifiedTopic
from s3lake_tests.records.convert.read.landed_rows import read_landed_rows
from s3lake_tests.records.convert.read.protobuf.wire_format import NAN, field_bytes, varint
from s3lake_tests.records.schema.registry.server import SchemaRegistry, framed

META = '[(confluent.field_meta) = {{ params: [{{key: "scale", value: "{}"}}, {{key: "precision", value: "{}"}}] }}]'
IMPORTS = "".join(
    f'import "{name}.proto"; '
    for name in (
        *("confluent/meta", "confluent/type/decimal", "google/type/date", "google/type/timeofday"),
        *("google/type/money", "google/protobuf/timestamp", "google/protobuf/struct", "google/protobuf/empty"),
    )
)


def landed_field(
    registry: SchemaRegistry, format: str, field: str, data: bytes
) -> tuple[VerifiedTopic, list[Any], str]:
    """Land a message with one field, whose number is 1. Return its values, and the type of its column."""
    number = registry.add(f'syntax = "proto3"; {IMPORTS} message M {{ {field}; }}', "PROTOBUF")
    converter = {"value": "protobuf", "registry": {"url": registry.url}}
    made = VerifiedTopic(format={"type": format}, converter=converter, errors={"tolerance": "all"})
    stage_records(made, [(None, framed(number, b"\0" + data), [])])
    (manifest,) = made.manifests.values()
    return made, [row.get("c") for row in read_landed_rows(made)], json.dumps((manifest.columns or {}).get("c"))


DECIMAL = field_bytes(1, field_bytes(1, b"\x30\x39") + field_bytes(2, 5) + field_bytes(3, 2))
"""123.45"""
DATE = field_bytes(1, field_bytes(1, 2026) + field_bytes(2, 11) + field_bytes(3, 21))
KNOWN = {
    "a decimal": (f"confluent.type.Decimal c = 1 {META.format(2, 10)}", DECIMAL, '"decimal(10,2)"', Decimal("123.45")),
    "a decimal without a precision": (
        'confluent.type.Decimal c = 1 [(confluent.field_meta).params = {key: "scale", value: "3"}]',
        *(DECIMAL, '"decimal(38,3)"', Decimal("123.450")),
    ),
    "a negative decimal": (
        f"confluent.type.Decimal c = 1 {META.format(0, 5)}",
        *(field_bytes(1, field_bytes(1, b"\xff")), '"decimal(5,0)"', Decimal(-1)),
    ),
    "a list of decimals": (
        f"repeated confluent.type.Decimal c = 1 {META.format(2, 10)}",
        *(DECIMAL, '{"list": "decimal(10,2)"}', [Decimal("123.45")]),
    ),
    "a decimal without a scale": (
        "confluent.type.Decimal c = 1",
        *(DECIMAL, '{"struct": {"value": "binary", "precision": "int64", "scale": "int32"}}'),
        {"value": b"\x30\x39", "precision": 5, "scale": 2},
    ),
    "a decimal with a scale of no column": (
        f"confluent.type.Decimal c = 1 {META.format(40, 50)}",
        *(DECIMAL, '{"struct": {"value": "binary", "precision": "int64", "scale": "int32"}}'),
        {"value": b"\x30\x39", "precision": 5, "scale": 2},
    ),
    "a date": ("google.type.Date c = 1", DATE, '"date"', datetime.date(2026, 11, 21)),
    "a date in a map": (
        "map<string, google.type.Date> c = 1",
        *(
            field_bytes(1, field_bytes(1, b"k") + field_bytes(2, DATE[2:])),
            '{"map": "date"}',
            {"k": datetime.date(2026, 11, 21)},
        ),
    ),
    "a time of day": (
        "google.type.TimeOfDay c = 1",
        *(
            field_bytes(1, field_bytes(1, 8) + field_bytes(2, 15) + field_bytes(3, 7) + field_bytes(4, 9_999_999)),
            '"time"',
            datetime.time(8, 15, 7, 9000),
        ),
    ),
    "an amount of money, which is any message": (
        "google.type.Money c = 1",
        *(
            field_bytes(1, field_bytes(1, b"CHF")),
            '{"struct": {"currency_code": "string", "units": "int64", "nanos": "int32"}}',
        ),
        {"currency_code": "CHF", "units": 0, "nanos": 0},
    ),
}


@pytest.mark.parametrize("format", ["parquet", "avro"])
@pytest.mark.parametrize(("field", "data", "type", "value"), KNOWN.values(), ids=KNOWN)
def test_a_message_that_confluent_or_google_knows_has_its_type(
    registry: SchemaRegistry, format: str, field: str, data: bytes, type: str, value: Any
) -> None:
    made, found, column = landed_field(registry, format, field, data)
    if isinstance(value, datetime.time):
        found = [datetime.time.fromisoformat(one) for one in found]  # readers have no time of day
    assert (column, found) == (type, [value])
    assert made.verify().clean


def test_known_messages_are_numbers_in_json(registry: SchemaRegistry) -> None:
    fields = [KNOWN["a decimal"], KNOWN["a date"], KNOWN["a time of day"]]
    values = [landed_field(registry, "json", field, data)[1] for field, data, *_ in fields]
    assert values == [[123.45], [20778], [29707009]]


@pytest.mark.parametrize("format", ["json", "parquet"])
@pytest.mark.parametrize(
    ("field", "data", "why"),
    [
        ("google.type.Date c = 1", field_bytes(1, field_bytes(1, 2026)), "field 'c' is not a day of the calendar"),
        ("google.type.TimeOfDay c = 1", field_bytes(1, field_bytes(1, 24)), "field 'c' does not fit time"),
        (
            KNOWN["a decimal"][0],
            field_bytes(1, field_bytes(1, b"\1") + field_bytes(3, 3)),
            "field 'c' does not fit decimal(10,2)",
        ),
        (KNOWN["a decimal"][0], field_bytes(1, field_bytes(1, b"\1" * 2000)), "field 'c' does not fit decimal(10,2)"),
        (
            "google.protobuf.Struct c = 1",
            field_bytes(1, field_bytes(1, field_bytes(1, b"k") + field_bytes(2, NAN))),
            "field 'c' holds NaN or an infinity, which JSON does not have: send it as a text",
        ),
        ("repeated google.protobuf.Value c = 1", field_bytes(1, NAN), "field 'c[]' holds NaN or an infinity"),
    ],
    ids=["a date", "a time of day", "the scale of a decimal", "the digits of a decimal", "a struct", "a value"],
)
def test_a_known_message_that_its_column_cannot_hold_is_refused_with_the_reason(
    registry: SchemaRegistry, format: str, field: str, data: bytes, why: str
) -> None:
    made, found, _ = landed_field(registry, format, field, data)
    assert found == []
    (manifest,) = made.manifests.values()
    (dead,) = (file for file in manifest.files if file.stream == "dead_letters")
    assert why in made.store.objects[dead.key][0].decode()
    assert made.verify().clean


def test_a_message_that_only_has_a_known_name_is_a_struct(registry: SchemaRegistry) -> None:
    texts = ('syntax = "proto3"; package google.type; message Date { string text = 1; }',)
    number = registry.add(f"{texts[0]} message M {{ Date c = 1; }}", "PROTOBUF")
    made = VerifiedTopic(format={"type": "parquet"}, converter={"value": "protobuf", "registry": {"url": registry.url}})
    stage_records(made, [(None, framed(number, b"\2\2" + field_bytes(1, field_bytes(1, b"x"))), [])])
    assert read_landed_rows(made) == [{"c": {"text": "x"}}]
    assert made.verify().clean


def test_files_that_are_known_need_no_reference() -> None:
    imports = "".join(f'import "{name}"; ' for name in (*known_files.CONFLUENT, *known_files.list_type_files()))
    assert compiler.compile_message(f'syntax = "proto3"; {imports} message M {{ }}', {}, (0,)).full_name == "M"


@pytest.mark.parametrize("name", ["google/protobuf/any.proto", "google/type/date.proto", *known_files.CONFLUENT])
def test_a_descriptor_needs_no_reference_of_a_file_that_is_known(name: str) -> None:
    main = descriptor_pb2.FileDescriptorProto(name="main.proto", dependency=[name])
    main.message_type.add(name="M")
    described = base64.b64encode(main.SerializeToString()).decode()
    assert compiler.compile_message(described, {}, (0,)).full_name == "M"


def test_a_reference_of_the_registry_is_taken_before_the_known_file() -> None:
    own = 'syntax = "proto3"; package google.type; message Date { string own = 1; }'
    text = 'syntax = "proto3"; import "google/type/date.proto"; message M { google.type.Date d = 1; }'
    message = compiler.compile_message(text, {"google/type/date.proto": own}, (0,))
    assert [field.name for field in message.fields_by_name["d"].message_type.fields] == ["own"]


METHODS = ("WhichOneof", "HasField", "ListFields", "DESCRIPTOR", "FromString", "ByteSize", "DiscardUnknownFields")
METHODS += ("SerializeToString", "Extensions", "Clear", "class", "self", "__class__", "__dict__", "keys", "get")


_OF_METHODS = " ".join(
    f"message M{at} {{ optional string {name} = 1; One one = 2; map<string, One> map = 3; "
    f"message One {{ oneof o {{ string {name} = 1; }} }} }}"
    for at, name in enumerate(METHODS)
)


@pytest.mark.parametrize("format", ["json", "parquet", "avro"])
@pytest.mark.parametrize("name", METHODS)
def test_a_field_may_have_the_name_of_a_method(registry: SchemaRegistry, format: str, name: str) -> None:
    number = registry.add(f'syntax = "proto3"; {_OF_METHODS}', "PROTOBUF")
    made = VerifiedTopic(format={"type": format}, converter={"value": "protobuf", "registry": {"url": registry.url}})
    one = field_bytes(1, b"w") + field_bytes(9, 1)
    data = (
        field_bytes(1, b"v")
        + field_bytes(2, one)
        + field_bytes(3, field_bytes(1, b"k") + field_bytes(2, one))
        + field_bytes(9, 1)
    )
    path = varint(2) + varint(2 * METHODS.index(name))
    stage_records(made, [(None, framed(number, path + data), [])])
    (manifest,) = made.manifests.values()
    inner = {"o_0": {name: "w"}}
    assert read_landed_rows(made) == [{name: "v", "one": inner, "map": {"k": inner}}]
    assert sorted(manifest.counts.fields_left_out) == ["#9", "map[].#9", "one.#9"]
    assert made.verify().clean


KEYS = [f"k{at}" for at in (5, 0, 3, 9, 1, 7)]


def entries(number: int, keys: list[bytes], value: bytes) -> bytes:
    return b"".join(field_bytes(number, key + value) for key in keys)


NAMED = [field_bytes(1, key.encode()) for key in KEYS]
NUMBER = field_bytes(2, b"\x11" + bytes(8))
STRUCT = entries(1, NAMED, NUMBER)
ORDERED = {
    "a Struct": ("google.protobuf.Struct c = 1", field_bytes(1, STRUCT)),
    "a Value": ("google.protobuf.Value c = 1", field_bytes(1, field_bytes(5, STRUCT))),
    "a Struct in a list": ("google.protobuf.ListValue c = 1", field_bytes(1, field_bytes(1, field_bytes(5, STRUCT)))),
    "a Struct in a Struct": (
        "google.protobuf.Struct c = 1",
        field_bytes(1, field_bytes(1, field_bytes(1, b"k") + field_bytes(2, field_bytes(5, STRUCT)))),
    ),
    "Structs": ("repeated google.protobuf.Struct c = 1", field_bytes(1, STRUCT) * 2),
    "Structs in a map": ("map<string, google.protobuf.Struct> c = 1", entries(1, NAMED, field_bytes(2, STRUCT))),
    "a map": ("map<string, int32> c = 1", entries(1, NAMED, field_bytes(2, 1))),
    "a map by number": (
        "map<int64, int32> c = 1",
        entries(1, [field_bytes(1, n) for n in (7, -1, 0, 9, 300)], field_bytes(2, 1)),
    ),
    "a map by truth": ("map<bool, int32> c = 1", entries(1, [field_bytes(1, n) for n in (1, 0)], field_bytes(2, 1))),
}


def _keys(value: Any) -> list[list[Any]]:
    """The keys of every object and of every map, in the order of the text."""
    if isinstance(value, str) and value.startswith(("{", "[")):
        value = json.loads(value)
    if isinstance(value, list):
        own = [[one["key"] for one in value]] if value and isinstance(value[0], dict) and "key" in value[0] else []
        return own + [keys for one in value for keys in _keys(one)]
    return [list(value), *(keys for one in value.values() for keys in _keys(one))] if isinstance(value, dict) else []


@pytest.mark.parametrize("format", ["json", "parquet", "avro"])
@pytest.mark.parametrize(("field", "data"), ORDERED.values(), ids=ORDERED)
def test_the_entries_of_a_map_have_the_order_of_its_keys(
    registry: SchemaRegistry, format: str, field: str, data: bytes
) -> None:
    made, (value,), _ = landed_field(registry, format, field, data)
    orders = _keys(value)
    assert max(map(len, orders)) >= 2
    assert orders == [sorted(keys) for keys in orders]
    assert made.verify().clean


def test_verify_takes_a_text_of_json_in_any_order_for_the_same(registry: SchemaRegistry) -> None:
    field = "google.protobuf.Struct c = 1"
    made, _, _ = landed_field(registry, "json", field, field_bytes(1, STRUCT))
    (manifest,) = made.manifests.values()
    (file,) = manifest.files
    text = {f"k{at}": 0.0 for at in range(10) if f"k{at}" in KEYS}
    turned = json.dumps({name: text[name] for name in reversed(text)})
    made.overwrite(file, json.dumps({"c": turned}).encode() + b"\n")
    assert "missing" not in {each.type for each in made.verify().differences}
    made.overwrite(file, json.dumps({"c": turned.replace("0.0", "1.0", 1)}).encode() + b"\n")
    assert "missing" in {each.type for each in made.verify().differences}


def test_varints_of_the_tests_are_protobufs() -> None:
    assert (varint(300), varint(-1)) == (b"\xac\2", b"\xff" * 9 + b"\1")
