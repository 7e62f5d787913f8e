"""Protobuf as columns and as JSON: the golden table of types, wire format, schemas with imports, descriptor sets."""

import base64
import io
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from google.protobuf import descriptor_pb2

from s3lake.records.convert.conversion import Conversion
from s3lake.records.convert.convert_batch import ConvertedBatch, convert_batch
from s3lake.records.encode import FileFormat
from s3lake.records.schema.connect_schema import SchemaError
from s3lake.records.schema.protobuf import compiler
from s3lake.records.schema.registry.registry_connection import Connection
from s3lake_tests.records.convert.batches import batch
from s3lake_tests.records.convert.read.protobuf.shop_messages import PROTO, full_message, message_class
from s3lake_tests.records.encode.written_files import written
from s3lake_tests.records.schema.registry.server import SchemaRegistry, framed

AT = datetime(2026, 11, 20, 5, 0, 0, 123000, timezone.utc)
GOLDEN: list[tuple[str, str, Any, Any]] = [
    ("contact_0", "struct<email: string, person: struct<name: string>>", {"email": "a@b", "person": None}, None),
    ("i32", "int32", -1, 0),
    ("s64", "int64", -5, 0),
    ("u32", "int64", 4294967295, 0),
    ("u64", "int64", 7, 0),
    ("f", "float", 0.5, 0.0),
    ("d", "double", 0.1, 0.0),
    ("b", "bool", True, False),
    ("text", "string", "ü", ""),
    ("raw", "binary", b"\xff", b""),
    ("colour", "string", "RED", "NONE"),
    ("maybe", "int32", 0, None),
    ("tags", "list<string>", ["a", "b"], []),
    ("sizes", "map<string, int32>", {"x": 1}, {}),
    ("names", "list<struct<key: int32, value: string>>", [{"key": 7, "value": "seven"}], []),
    ("other", "struct<name: string>", {"name": "o"}, None),
    ("at", "timestamp", AT, None),
    ("note", "string", "n", None),
    ("free", "string", '{"a": [1.0]}', None),
    ("took", "struct<seconds: int64, nanos: int32>", {"seconds": 1, "nanos": 500000000}, None),
    ("others", "list<struct<name: string>>", [{"name": "p"}, {"name": ""}], []),
]
"""Column, type, and what a full and an empty message have there."""


def conversion(registry: SchemaRegistry | Connection, format: str = "parquet") -> Conversion:
    connection = registry if isinstance(registry, Connection) else registry.connection
    return Conversion("string", "protobuf", format, "skip", registry=connection)


def converted(registry: SchemaRegistry, *data: bytes, format: str = "parquet") -> ConvertedBatch:
    number = registry.add(PROTO, "PROTOBUF")
    return convert_batch(conversion(registry, format), batch(*(framed(number, b"\2\2" + each) for each in data)), {})


def test_every_kind_of_field_becomes_its_column(registry: SchemaRegistry) -> None:
    found = converted(registry, full_message(), b"")
    assert not found.refused
    assert [(name, str(type)) for name, type in found.seen.items()] == [(name, type) for name, type, *_ in GOLDEN]
    (part,) = found.parts
    assert part.names[0].as_py() == "shop.Order"
    file = written(FileFormat("parquet", "none"), [part.streams["data"]])
    rows = pq.read_table(io.BytesIO(file)).to_pylist(maps_as_pydicts="strict")
    assert rows == [{name: value for name, _, value, _ in GOLDEN}, {name: value for name, *_, value in GOLDEN}]


def test_an_optional_field_whose_name_begins_with_an_underscore_is_a_column_of_its_own(
    registry: SchemaRegistry,
) -> None:
    proto = 'syntax = "proto3"; message Order { optional int32 _x = 1; oneof a { int32 y = 2; } }'
    number = registry.add(proto, "PROTOBUF")
    found = convert_batch(conversion(registry), batch(framed(number, b"\0" + b"\x08\x07")), {})
    assert {name: str(type) for name, type in found.seen.items()} == {"a_0": "struct<y: int32>", "_x": "int32"}


def test_several_messages_of_a_topic_have_files_of_their_own(registry: SchemaRegistry) -> None:
    number = registry.add(PROTO, "PROTOBUF")
    values = [
        framed(number, b"\0" + message_class("shop.Other")(name="first").SerializeToString()),
        framed(number, b"\2\2" + full_message()),
        framed(number, b"\4\0\0" + message_class("shop.Other.Inner")(n=3).SerializeToString()),
    ]
    found = convert_batch(conversion(registry), batch(*values), {})
    assert [part.names[0].as_py() for part in found.parts] == ["shop.Other", "shop.Order", "shop.Other.Inner"]
    assert found.parts[2].streams["data"].to_pylist() == [{"n": 3}]


def test_only_the_value_that_is_not_a_message_is_refused(registry: SchemaRegistry) -> None:
    number = registry.add(PROTO, "PROTOBUF")
    huge = message_class("shop.Order")(u64=2**63).SerializeToString()
    data = [b"\2\2" + full_message(), b"\2\2\xff", b"\2\2" + huge, b"\2\x0e", b"\2", b"\1", b"\4\1\xff"]
    found = convert_batch(conversion(registry), batch(*(framed(number, each) for each in data), b"plain"), {})
    assert [part.streams["data"].num_rows for part in found.parts] == [1]
    reasons = [found.refused[row] for row in range(1, 8)]
    assert "the data is not a shop.Order" in reasons[0]
    assert "or has a text that is not UTF-8, which needs a field of bytes: correct the producer" in reasons[0]
    assert "field 'u64' does not fit int64" in reasons[1]
    assert "the indexes before the data are 7, and it has no message there; it has 0 (Other), " in reasons[2]
    assert reasons[2].endswith("Let the producer register the schema that it writes with")
    assert "end too early: Confluent's serializers write them between the schema's id and the data" in reasons[3]
    assert reasons[4] == reasons[5]
    assert "-1 is not an index of a message: Confluent's serializers write them between" in reasons[4]
    assert "no schema id of a registry is before the value" in reasons[6]


def test_indexes_in_reverse_are_refused_with_the_message_that_they_mean(registry: SchemaRegistry) -> None:
    nested = 'syntax = "proto3"; package shop; message Outer { message First {} message Second { string s = 1; } }'
    number = registry.add(nested, "PROTOBUF")
    inner_first = framed(number, b"\4\2\0" + b"\n\1x")
    found = convert_batch(conversion(registry), batch(inner_first), {})
    assert found.refused == {
        0: f"schema id {number}: the indexes before the data are 1.0, and it has no message there; it has 0 (Outer), "
        "0.0 (Outer.First), 0.1 (Outer.Second). In reverse they are Outer.Second: use a version of the producer's "
        "serializer that writes the outermost first"
    }


REQUIRED = """
syntax = "proto2";
message Order { required string id = 1; optional Line one = 2; repeated Line lines = 3; map<string, Line> by = 4; }
message Line { required int32 n = 1; optional string note = 2; }
"""


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "missing required fields: id"),
        (b"\x0a\x01a\x12\x00", "missing required fields: one.n"),
        (b"\x0a\x01a\x1a\x02\x08\x01\x1a\x03\x12\x01x", "missing required fields: lines[1].n"),
        (b"\x0a\x01a\x22\x05\x0a\x01k\x12\x00", "missing required fields: by"),
    ],
)
def test_a_message_without_a_required_field_is_refused_alone(
    registry: SchemaRegistry, data: bytes, reason: str
) -> None:
    number = registry.add(REQUIRED, "PROTOBUF")
    found = convert_batch(conversion(registry), batch(framed(number, b"\0" + data), framed(number, b"\0\x0a\x01b")), {})
    assert list(found.refused) == [0]
    assert reason in found.refused[0]
    assert [row["id"] for row in found.parts[0].streams["data"].to_pylist()] == ["b"]


COMMON = 'syntax = "proto3"; package common; message Money { string currency = 1; int64 units = 2; }'
BILL = 'syntax = "proto3"; import "common/money.proto"; message Bill { common.Money total = 1; }'


def test_a_schema_with_references_is_compiled_with_them(registry: SchemaRegistry) -> None:
    registry.add(COMMON, "PROTOBUF", subject="money")
    number = registry.add(BILL, "PROTOBUF", refers=[("common/money.proto", "money")])
    bill = message_class("Bill", BILL, {"common/money.proto": COMMON})()
    bill.total.currency, bill.total.units = "CHF", 5
    found = convert_batch(conversion(registry), batch(framed(number, b"\0" + bill.SerializeToString())), {})
    assert found.parts[0].streams["data"].to_pylist() == [{"total": {"currency": "CHF", "units": 5}}]


def refused_with(registry: SchemaRegistry, *names: str, text: str = COMMON) -> str:
    """Return why a message is refused whose schema imports `text` by these names; empty if it is not."""
    registry.add(text, "PROTOBUF", subject="other")
    imports = " ".join(f'import "{name}";' for name in names)
    main = f'syntax = "proto3"; {imports} message A {{ int32 a = 1; }}'
    number = registry.add(main, "PROTOBUF", refers=[(name, "other") for name in names])
    return convert_batch(conversion(registry), batch(framed(number, b"\0\x08\x01")), {}).refused.get(0, "")


def test_a_reference_that_is_a_python_module_is_compiled_and_not_run(registry: SchemaRegistry, tmp_path: Path) -> None:
    name, ran = "grpc_tools/__init__.py", tmp_path / "ran"
    text = f'syntax = "proto3" """" ; // """; open({str(ran)!r}, "w").close()'
    exec(compile(text, name, "exec"), {})
    ran.unlink()
    assert not refused_with(registry, name, text=text)
    assert not ran.exists()


def test_references_may_have_names_that_files_cannot_have() -> None:
    long = ["n" * 300, f"{'d/' * 3000}x.proto"]
    names = [*long, "a", "a/b", "with blank.proto", "@x", "-I.", "ü.proto", "/etc/x.proto"]
    references = {name: f'syntax = "proto3"; message R{at} {{ int32 n = 1; }}' for at, name in enumerate(names)}
    imports = " ".join(f'import "{name}";' for name in names)
    fields = " ".join(f"R{at} r{at} = {at + 1};" for at in range(len(names)))
    message = compiler.compile_message(f'syntax = "proto3"; {imports} message A {{ {fields} }}', references, (0,))
    assert [field.message_type.file.name for field in message.fields] == names


@pytest.mark.parametrize("name", ["x=/etc/passwd", "x:/etc", "x;y", "x\0y", "x\n-I/etc", ""])
def test_a_reference_that_could_name_another_file_is_refused(registry: SchemaRegistry, name: str) -> None:
    assert "is not a path of an import" in refused_with(registry, name)


def test_a_reference_cannot_lead_out_of_what_is_registered(registry: SchemaRegistry) -> None:
    reason = refused_with(registry, "../x.proto")
    assert "not allowed in the virtual path" in reason
    assert "/tmp" not in reason


def test_a_descriptor_is_compiled_with_those_that_it_imports() -> None:
    names = ("a.proto", "b.proto", "google/protobuf/type.proto")
    texts = [descriptor(name="a.proto"), descriptor(dependency=names[:1])]
    main = descriptor(name="main", dependency=names[1:], message_type=[{"name": "M"}])
    imported = dict(zip(names, texts, strict=False))
    assert compiler.compile_message(main, imported, (0,)).full_name == "M"
    with pytest.raises(SchemaError, match="Depends on file"):
        compiler.compile_message(main, {"b.proto": texts[1]}, (0,))


def descriptor(**file: Any) -> str:
    """The descriptor of a file, as a registry keeps it."""
    return base64.b64encode(descriptor_pb2.FileDescriptorProto(**file).SerializeToString()).decode()


def test_a_schema_is_read_from_its_descriptor(registry: SchemaRegistry) -> None:
    """As confluent-kafka's serializer registers it."""
    file = descriptor_pb2.FileDescriptorProto()
    message_class("shop.Order").DESCRIPTOR.file.CopyToProto(file)
    number = registry.add(base64.b64encode(file.SerializeToString()).decode(), "PROTOBUF")
    found = convert_batch(conversion(registry), batch(framed(number, b"\2\2" + full_message())), {})
    assert found.parts[0].streams["data"].column("i32").to_pylist() == [-1]


def test_a_descriptor_set_needs_no_registry() -> None:
    files = descriptor_pb2.FileDescriptorSet()
    message_class("shop.Order").DESCRIPTOR.file.CopyToProto(files.file.add())
    connection = Connection((), descriptors=files.SerializeToString(), message="shop.Order")
    found = convert_batch(conversion(connection), batch(full_message(), None, b""), {})
    assert [part.streams["data"].num_rows for part in found.parts] == [2]
    missing = Connection((), descriptors=files.SerializeToString(), message="shop.Nothing")
    (reason,) = convert_batch(conversion(missing), batch(full_message()), {}).refused.values()
    assert reason == (
        "converter.registry.descriptor_set: it has no message 'shop.Nothing'; it has shop.Order, shop.Other"
    )


REGISTER = ". Register each file that it imports as a reference of the schema, by the path in the import"


def test_a_descriptor_without_what_it_imports_is_a_record_error_with_the_remedy(registry: SchemaRegistry) -> None:
    file = descriptor_pb2.FileDescriptorProto(name="a.proto", dependency=["x.proto"])
    file.message_type.add(name="A")
    number = registry.add(base64.b64encode(file.SerializeToString()).decode(), "PROTOBUF")
    (reason,) = convert_batch(conversion(registry), batch(framed(number, b"\0\x08\x01")), {}).refused.values()
    assert "'x.proto'" in reason
    assert reason.endswith(REGISTER)


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ("message A { A a = 1; }", "A.a is A inside of itself: recursive schemas are not supported; use bytes"),
        ("message A { B b = 1; }", '"B" is not defined'),
        (
            " ".join(f"message A{level} {{ A{level + 1} a = 1; }}" for level in range(33)) + "message A33 {}",
            "nests deeper than 32 levels, which Parquet's readers refuse; use bytes",
        ),
        ('import "x.proto"; message A { int32 a = 1; }', "x.proto: File not found."),
        ('import "x.proto"; message A { int32 a = 1; }', f"had errors{REGISTER}"),
        (
            "message A { int32 a_0 = 1; oneof a { int32 y = 2; } }",
            "A has a oneof a, whose column is a_0, and a field a_0: rename one of them",
        ),
        (None, "it is a schema of AVRO, not of PROTOBUF: set the converter that fits"),
    ],
)
def test_a_schema_that_has_no_columns_is_reported(registry: SchemaRegistry, schema: str | None, why: str) -> None:
    number = registry.add(f'syntax = "proto3"; {schema}', "PROTOBUF") if schema else registry.add('"string"')
    (reason,) = convert_batch(conversion(registry), batch(framed(number, b"\0\x08\x01")), {}).refused.values()
    assert reason.startswith(f"schema id {number}: ")
    assert why in reason
