"""What a descriptor set does not know of a newer producer's messages: it lands, or is counted with its path.

Each place of an unknown number of an enum, and of an unknown field, is a row; `verify` finds the hour right, and
finds a field that was not counted.
"""

from dataclasses import dataclass
from typing import Any

import pytest

from s3lake.records.convert.read.protobuf import messages
from s3lake_tests.lake.verify.staged_records import stage_records
from s3lake_tests.lake.verify.world import VerifiedTopic
from s3lake_tests.records.convert.read.landed_rows import read_landed_rows
from s3lake_tests.records.convert.read.protobuf.wire_format import NAN, field_bytes
from s3lake_tests.records.schema.registry.server import SchemaRegistry, framed

OLD = """
syntax = "proto2";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/struct.proto";
enum Colour { RED = 0; BLUE = 1; }
message Inner { optional Colour colour = 1; optional string name = 2; extensions 100 to 200; }
message Event {
  optional string id = 1; optional Colour colour = 2; repeated Colour colours = 3;
  repeated Colour packed = 4 [packed = true]; map<string, Colour> by_name = 5; map<int32, Colour> by_number = 6;
  optional Inner inner = 7; repeated Inner inners = 8; map<string, Inner> inner_of = 9;
  oneof choice { Colour chosen = 10; Inner other = 11; string text = 12; }
  optional Colour wanted = 13 [default = BLUE];
  optional group Part = 14 { optional int32 n = 1; }
  optional google.protobuf.Timestamp at = 15; optional google.protobuf.Struct free = 16;
  extensions 100 to 200;
}
extend Event { optional string note = 100; optional Colour mood = 101; }
extend Inner { optional string remark = 100; }
"""


@dataclass(frozen=True)
class Row:
    """Bytes of a newer producer in one place.

    Attributes:
        column: where its value is.
        value: what lands there, as JSON has it.
        left_out: paths of what has no column.
    """

    data: bytes
    column: str
    value: Any
    left_out: tuple[str, ...] = ()


ROWS = {
    "an enum": Row(field_bytes(2, 7), "colour", "7"),
    "an enum's negative number": Row(field_bytes(2, -1), "colour", "-1"),
    "an enum, of which the last counts": Row(field_bytes(2, 1) + field_bytes(2, 7), "colour", "7"),
    "an enum with a default": Row(field_bytes(13, 7), "wanted", "7"),
    "a list of enums": Row(field_bytes(3, 0) + field_bytes(3, 7) + field_bytes(3, 1), "colours", ["RED", "7", "BLUE"]),
    "a list that came packed": Row(field_bytes(3, b"\0\7\1"), "colours", ["RED", "7", "BLUE"]),
    "a packed list": Row(field_bytes(4, b"\0\7\1"), "packed", ["RED", "7", "BLUE"]),
    "a packed list that came in parts": Row(
        field_bytes(4, b"\7\1") + field_bytes(4, 0), "packed", ["7", "BLUE", "RED"]
    ),
    "a map": Row(field_bytes(5, field_bytes(1, b"k") + field_bytes(2, 7)), "by_name", {"k": "7"}),
    "a map by number": Row(
        field_bytes(6, field_bytes(1, 5) + field_bytes(2, 7)), "by_number", [{"key": 5, "value": "7"}]
    ),
    "a message": Row(field_bytes(7, field_bytes(1, 7)), "inner", {"colour": "7"}),
    "a list of messages": Row(field_bytes(8, field_bytes(1, 7)) + field_bytes(8, b""), "inners", [{"colour": "7"}, {}]),
    "a map of messages": Row(
        field_bytes(9, field_bytes(1, b"k") + field_bytes(2, field_bytes(1, 7))), "inner_of", {"k": {"colour": "7"}}
    ),
    "a oneof": Row(field_bytes(10, 7), "choice_0", {"chosen": "7"}),
    "a oneof's message": Row(field_bytes(11, field_bytes(1, 7)), "choice_0", {"other": {"colour": "7"}}),
    "a field": Row(field_bytes(20, 99), "id", None, ("#20",)),
    "a field of bytes": Row(field_bytes(1, b"x") + field_bytes(20, b"abc"), "id", "x", ("#20",)),
    "a field, twice": Row(field_bytes(20, 1) + field_bytes(20, 2), "id", None, ("#20",)),
    "a field with the number of another wire type": Row(field_bytes(1, 5), "id", None, ("#1",)),
    "a field of a message": Row(
        field_bytes(7, field_bytes(2, b"n") + field_bytes(9, 1)), "inner", {"name": "n"}, ("inner.#9",)
    ),
    "a field in a list": Row(field_bytes(8, field_bytes(9, 1)), "inners", [{}], ("inners[].#9",)),
    "a field in a map": Row(
        field_bytes(9, field_bytes(1, b"k") + field_bytes(2, field_bytes(9, 1))),
        "inner_of",
        {"k": {}},
        ("inner_of[].#9",),
    ),
    "a field in a oneof": Row(field_bytes(11, field_bytes(9, 1)), "choice_0", {"other": {}}, ("choice_0.other.#9",)),
    "a group": Row(b"\x73" + field_bytes(1, 3) + field_bytes(5, 1) + b"\x74", "part", {"n": 3}, ("part.#5",)),
    "an unknown group": Row(b"\xa3\1" + field_bytes(1, 3) + b"\xa4\1", "id", None, ("#20",)),
    "an extension": Row(field_bytes(100, b"note"), "id", None, ("#100",)),
    "an extension that is an enum": Row(field_bytes(101, 1), "id", None, ("#101",)),
    "an extension of a message": Row(field_bytes(7, field_bytes(100, b"r")), "inner", {}, ("inner.#100",)),
    "a timestamp's field": Row(field_bytes(15, field_bytes(1, 5) + field_bytes(9, 1)), "at", 5000, ("at.#9",)),
    "a field of a Struct": Row(field_bytes(16, field_bytes(9, 1)), "free", "{}", ("free.#9",)),
}


def world(registry: SchemaRegistry, format: str, *, key: str = "string", **sink: Any) -> VerifiedTopic:
    converter = {"key": key, "value": "protobuf", "registry": {"url": registry.url}}
    return VerifiedTopic(format={"type": format}, converter=converter, errors={"tolerance": "all"}, **sink)


def message(registry: SchemaRegistry, data: bytes) -> bytes:
    return framed(registry.add(OLD, "PROTOBUF"), b"\2\2" + data)


@pytest.mark.parametrize("format", ["json", "parquet", "avro"])
@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_fields_of_a_newer_producer_land_or_are_counted(registry: SchemaRegistry, row: Row, format: str) -> None:
    made = world(registry, format)
    stage_records(made, [(None, message(registry, row.data), [])])
    (found,) = read_landed_rows(made)
    (manifest,) = made.manifests.values()
    assert (found.get(row.column), tuple(manifest.counts.fields_left_out)) == (row.value, row.left_out)
    assert made.verify().clean


@pytest.mark.parametrize("format", ["json", "parquet"])
def test_fields_of_keys_are_counted_apart_from_those_of_values(
    registry: SchemaRegistry, monkeypatch: pytest.MonkeyPatch, format: str
) -> None:
    def land() -> VerifiedTopic:
        made = world(registry, format, key="protobuf", envelope={"fields": ["key", "value"]})
        stage_records(made, [(message(registry, field_bytes(20, 1)), message(registry, field_bytes(1, b"v")), [])])
        return made

    made = land()
    (manifest,) = made.manifests.values()
    assert manifest.counts.fields_left_out == {"key:#20": 1}
    assert made.verify().clean
    monkeypatch.setattr(messages, "UnknownFieldSet", lambda _: ())
    assert not land().verify().clean


def test_a_record_that_is_refused_counts_no_field(registry: SchemaRegistry) -> None:
    made = world(registry, "parquet")
    stage_records(
        made,
        [
            (
                None,
                message(
                    registry,
                    field_bytes(20, 1) + field_bytes(16, field_bytes(1, field_bytes(1, b"k") + field_bytes(2, NAN))),
                ),
                [],
            )
        ],
    )
    (manifest,) = made.manifests.values()
    assert (manifest.counts.fields_left_out, made.verify().dead_letters) == ({}, 1)


@pytest.mark.parametrize("format", ["json", "parquet", "avro"])
@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if row.left_out])
def test_verify_finds_a_field_that_is_not_counted(
    registry: SchemaRegistry, monkeypatch: pytest.MonkeyPatch, format: str, name: str
) -> None:
    monkeypatch.setattr(messages, "UnknownFieldSet", lambda _: ())
    made = world(registry, format)
    stage_records(made, [(None, message(registry, ROWS[name].data), [])])
    report = made.verify()
    assert (report.missing, report.duplicated) == (1, 1)


@pytest.mark.parametrize("format", ["json", "parquet", "avro"])
def test_fields_of_keys_in_a_sidecar_are_counted(registry: SchemaRegistry, format: str) -> None:
    made = world(registry, "json", key="protobuf", sidecars={"keys": format})
    key, value = field_bytes(1, b"k") + field_bytes(20, 1), field_bytes(1, b"v") + field_bytes(21, 1)
    stage_records(made, [(message(registry, key), message(registry, value), [])])
    (manifest,) = made.manifests.values()
    assert manifest.counts.fields_left_out == {"#21": 1, "key:#20": 1}
    assert made.verify().clean


@pytest.mark.parametrize("format", ["json", "parquet", "avro"])
def test_a_chain_of_transforms_counts_them_too(registry: SchemaRegistry, format: str) -> None:
    insert = {"type": "InsertField$Value", "options": {"static.field": "s", "static.value": "x"}}
    made = world(registry, format, transforms=[insert])
    stage_records(made, [(None, message(registry, field_bytes(1, b"v") + field_bytes(20, 1)), [])])
    (manifest,) = made.manifests.values()
    assert manifest.counts.fields_left_out == {"#20": 1}
    assert read_landed_rows(made)[0]["s"] == "x"
    assert made.verify().clean


@pytest.mark.parametrize("format", ["parquet", "avro"])
def test_properties_that_the_schema_of_a_key_does_not_name_are_counted(registry: SchemaRegistry, format: str) -> None:
    number = registry.add({"type": "object", "properties": {"a": {"type": "string"}}}, "JSON")
    made = VerifiedTopic(
        format={"type": format},
        converter={"key": "json_schema", "value": "json_schema", "registry": {"url": registry.url}},
        envelope={"fields": ["key", "value"]},
    )
    both = framed(number, b'{"a": "x", "b": 1}')
    stage_records(made, [(both, both, [])])
    (manifest,) = made.manifests.values()
    assert manifest.counts.fields_left_out == {"b": 1, "key:b": 1}
    assert made.verify().clean


EDITION = """
edition = "2023";
enum Colour { option features.enum_type = CLOSED; RED = 0; BLUE = 1; }
message Event {
  repeated Colour colours = 1; Colour colour = 2; Inner inner = 3 [features.message_encoding = DELIMITED];
  int32 always = 4 [features.field_presence = IMPLICIT];
  repeated int32 spread = 5 [features.repeated_field_encoding = EXPANDED]; map<string, Colour> by_name = 6;
}
message Inner { int32 n = 1; }
"""


@pytest.mark.parametrize("format", ["json", "parquet", "avro"])
def test_a_schema_of_an_edition_is_read_alike(registry: SchemaRegistry, format: str) -> None:
    made = world(registry, format)
    inner = b"\x1b" + field_bytes(1, 5) + field_bytes(9, 1) + b"\x1c"
    data = (
        field_bytes(1, b"\0\7\1")
        + field_bytes(2, 9)
        + inner
        + field_bytes(5, 1)
        + field_bytes(5, 2)
        + field_bytes(6, field_bytes(1, b"k") + field_bytes(2, 7))
    )
    stage_records(made, [(None, framed(registry.add(EDITION, "PROTOBUF"), b"\0" + data), [])])
    (manifest,) = made.manifests.values()
    assert manifest.counts.fields_left_out == {"inner.#9": 1}
    row = {"colours": ["RED", "7", "BLUE"], "colour": "9", "inner": {"n": 5}, "always": 0}
    assert read_landed_rows(made) == [{**row, "spread": [1, 2], "by_name": {"k": "7"}}]
    assert made.verify().clean
