"""Random schemas of Protobuf, in two versions, and random messages that Google's Java makes of the newer one.

The older schema lacks some fields and some values of enums, whose names show it: `new_…`. The same seed gives the same.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from google.protobuf import (
    descriptor_pb2,
    duration_pb2,
    empty_pb2,
    struct_pb2,
    timestamp_pb2,
    wrappers_pb2,
)
from google.type import date_pb2, timeofday_pb2

from s3lake.land.spark import jars
from s3lake_tests.kit.oracles import run_jvm

VERSION = "4.29.3"
NEW = "new_"
"""What names begin with that the older schema does not have."""
ROOT = "o.M0"
_PROGRAM = Path(__file__).with_name("ProtobufMessages.java")
_OF = descriptor_pb2.FieldDescriptorProto
_KNOWN_FILES = (duration_pb2, empty_pb2, struct_pb2, timestamp_pb2, wrappers_pb2, date_pb2, timeofday_pb2)
_MESSAGES = 4
SCALARS = {
    name.removeprefix("TYPE_").lower(): number
    for name, number in _OF.Type.items()
    if name.removeprefix("TYPE_") not in ("MESSAGE", "GROUP", "ENUM")
}
KNOWN = (
    *(f"google.protobuf.{name}" for name in ("Timestamp", "Duration", "Empty", "Struct", "Value", "ListValue")),
    *(f"google.protobuf.{name}Value" for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32")),
    *(f"google.protobuf.{name}Value" for name in ("Bool", "String", "Bytes")),
    *("google.type.Date", "google.type.TimeOfDay"),
)
_KEYS = ("int32", "int64", "uint32", "sint64", "fixed32", "bool", "string", "string")


@dataclass(frozen=True)
class Field:
    """A field.

    Attributes:
        type: a scalar's name, `enum`, `group`, or the full name of a message.
        form: `one`, which has presence in proto2 alone, `optional`, `repeated`, `packed` or `map`.
        key: the type of a map's keys.
        oneof: the number of its oneof.
    """

    name: str
    number: int
    type: str
    form: str = "one"
    key: str = ""
    oneof: int | None = None

    @property
    def is_new(self) -> bool:
        return self.name.startswith(NEW)


@dataclass(frozen=True)
class Schema:
    """A file of messages `o.M0` to `o.M3`, of which each may hold those behind it, and an enum `o.E`."""

    syntax: str
    messages: list[list[Field]]
    enum: dict[str, int]

    def to_set(self, *, is_newer: bool) -> bytes:
        """Return the descriptor set of a version."""
        files = descriptor_pb2.FileDescriptorSet()
        main = descriptor_pb2.FileDescriptorProto(name="m.proto", package="o", syntax=self.syntax)
        for module in _KNOWN_FILES:
            module.DESCRIPTOR.CopyToProto(files.file.add())
            main.dependency.append(module.DESCRIPTOR.name)
        enum = main.enum_type.add(name="E")
        for name, number in self.enum.items():
            if is_newer or not name.startswith(NEW):
                enum.value.add(name=name, number=number)
        for at, fields in enumerate(self.messages):
            self._describe(main.message_type.add(name=f"M{at}"), [one for one in fields if is_newer or not one.is_new])
        files.file.append(main)
        return files.SerializeToString()

    def _describe(self, message: Any, fields: list[Field]) -> None:
        for number in sorted({one.oneof for one in fields if one.oneof is not None}):
            message.oneof_decl.add(name=f"choice{number}")
        for one in fields:
            described = message.field.add(name=one.name, number=one.number, label=_OF.LABEL_OPTIONAL)
            if one.form == "map":
                entry = message.nested_type.add(name="".join(map(str.capitalize, one.name.split("_"))) + "Entry")
                entry.options.map_entry = True
                _set_type(entry.field.add(name="key", number=1, label=_OF.LABEL_OPTIONAL), one.key)
                _set_type(entry.field.add(name="value", number=2, label=_OF.LABEL_OPTIONAL), one.type)
                described.label, described.type = _OF.LABEL_REPEATED, _OF.TYPE_MESSAGE
                described.type_name = f".o.{message.name}.{entry.name}"
                continue
            if one.type == "group":
                group = message.nested_type.add(name=one.name.capitalize())
                _set_type(group.field.add(name="n", number=1, label=_OF.LABEL_OPTIONAL), "sint32")
                described.type, described.type_name = _OF.TYPE_GROUP, f".o.{message.name}.{group.name}"
            else:
                _set_type(described, one.type)
            if one.form in ("repeated", "packed"):
                described.label = _OF.LABEL_REPEATED
            if one.form in ("repeated", "packed") and _is_packable(one.type):
                described.options.packed = one.form == "packed"
            if one.oneof is not None:
                described.oneof_index = one.oneof
            elif one.form == "optional" and self.syntax == "proto3":
                described.proto3_optional = True
        for at, described in enumerate(one for one in message.field if one.proto3_optional):
            described.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{at}_{described.name}")


def _set_type(described: Any, type: str) -> None:
    if type in SCALARS:
        described.type = SCALARS[type]
    elif type == "enum":
        described.type, described.type_name = _OF.TYPE_ENUM, ".o.E"
    else:
        described.type, described.type_name = _OF.TYPE_MESSAGE, f".{type}"


def _is_packable(type: str) -> bool:
    return type == "enum" or (type in SCALARS and type not in ("string", "bytes"))


def random_schema(random: Random) -> Schema:
    """Return a schema of any kind of field; some messages have none."""
    syntax = random.choice(("proto2", "proto3"))
    numbers = random.sample((*range(1, 9), -1, 2**31 - 1), 5)
    old = random.randint(0, 3)
    values = {f"{NEW if at >= old else ''}v{at}": number for at, number in enumerate(numbers)}
    messages = [_random_fields(random, at, syntax) for at in range(_MESSAGES)]
    return Schema(syntax, messages, {"zero": 0, **values})


def _random_fields(random: Random, message: int, syntax: str) -> list[Field]:
    inner = [f"o.M{at}" for at in range(message + 1, _MESSAGES)]
    count = random.randint(1, 8) if message == 0 else random.choice((0, 1, 2, 3, 5))
    fields: list[Field] = []
    for at in range(count):
        types = random.choice((tuple(SCALARS), ("enum",), tuple(inner) or KNOWN, KNOWN))
        is_new = at > 0 and random.random() < 0.25
        name = f"{NEW if is_new else ''}f{at}"
        form = random.choice(("one", "optional", "repeated", "packed", "map"))
        key = random.choice(_KEYS) if form == "map" else ""
        type = random.choice(types)
        if syntax == "proto2" and form == "one" and random.random() < 0.15:
            type = "group"
        if is_new and form == "one":
            form = "optional"  # so that what is printed shows whether it is there
        fields.append(Field(name, at + 1, type, form, key))
    for number in range(random.choice((0, 0, 1, 2)) if count else 0):
        types = (*SCALARS, "enum", "enum", *inner, *inner, *KNOWN)
        for at in range(random.randint(1, 4)):
            name = f"{NEW if at and random.random() < 0.3 else ''}c{number}_{at}"
            fields.append(Field(name, 20 + 10 * number + at, random.choice(types), "one", oneof=number))
    return fields


@dataclass(frozen=True)
class MadeMessage:
    """A message of the newer schema.

    Attributes:
        data: its bytes.
        printed: its JSON; None if Java refuses to print it.
        refused: why.
    """

    data: bytes
    printed: Any = None
    refused: str = field(default="")


@dataclass(frozen=True)
class JavaProtobuf:
    """Google's Java."""

    program: Any

    def make(self, schema: Schema, seed: int, count: int) -> list[MadeMessage]:
        """Return random messages."""
        newer = base64.b64encode(schema.to_set(is_newer=True)).decode()
        lines = str(self.program.make(newer, ROOT.removeprefix("o."), seed, count)).splitlines()
        return [_read_line(*line.split(" ", 1)) for line in lines]


def _read_line(data: str, text: str) -> MadeMessage:
    if text.startswith("refused "):
        return MadeMessage(base64.b64decode(data), refused=text)
    return MadeMessage(base64.b64decode(data), json.loads(text))


@contextmanager
def start_java() -> Iterator[JavaProtobuf]:
    """Google's Java in a JVM of its own."""
    janino = [jar for name in ("janino", "commons-compiler") for jar in jars.pyspark_jars_dir().glob(f"{name}-3*.jar")]
    own = jars.resolve("protobuf", [f"com.google.protobuf:protobuf-java-util:{VERSION}"])
    with run_jvm([*own, *janino]) as java:
        compiler = java.org.codehaus.janino.SimpleCompiler()
        compiler.cook(_PROGRAM.read_text("utf-8"))
        yield JavaProtobuf(compiler.getClassLoader().loadClass(_PROGRAM.stem).newInstance())
