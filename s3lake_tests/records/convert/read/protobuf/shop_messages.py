"""A schema of Protobuf with a field of every kind, and its messages by Google's own library."""

from typing import Any

from google.protobuf import json_format, message_factory

from s3lake.records.schema.protobuf import compiler

PROTO = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/duration.proto";
enum Colour { NONE = 0; RED = 1; }
message Other { string name = 1; message Inner { int32 n = 1; } }
message Order {
  int32 i32 = 1; sint64 s64 = 2; uint32 u32 = 3; fixed64 u64 = 4; float f = 5; double d = 6; bool b = 7;
  string text = 8; bytes raw = 9; Colour colour = 10; optional int32 maybe = 11;
  repeated string tags = 12; map<string, int32> sizes = 13; map<int32, string> names = 14; Other other = 15;
  oneof contact { string email = 16; Other person = 17; }
  google.protobuf.Timestamp at = 18; google.protobuf.StringValue note = 19; google.protobuf.Struct free = 20;
  google.protobuf.Duration took = 21; repeated Other others = 22;
}
"""
FULL = {
    "i32": -1, "s64": "-5", "u32": 4294967295, "u64": "7", "f": 0.5, "d": 0.1, "b": True, "text": "ü", "raw": "/w==",
    "colour": "RED", "maybe": 0, "tags": ["a", "b"], "sizes": {"x": 1}, "names": {"7": "seven"},
    "other": {"name": "o"}, "email": "a@b", "at": "2026-11-20T05:00:00.123Z", "note": "n", "free": {"a": [1.0]},
    "took": "1.5s", "others": [{"name": "p"}, {}],
}  # fmt: skip


def message_class(name: str, proto: str = PROTO, references: dict[str, str] | None = None) -> Any:
    """The class of a message."""
    descriptor = compiler.compile_message(proto, references or {}, (0,)).file.pool.FindMessageTypeByName(name)
    return message_factory.GetMessageClass(descriptor)


def full_message() -> bytes:
    return bytes(json_format.ParseDict(FULL, message_class("shop.Order")()).SerializeToString())
