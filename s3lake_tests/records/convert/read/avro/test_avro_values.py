"""Avro with a Schema Registry: the columns of each type, the JSON of each type, schemas that change, and what is
refused.
"""

import datetime
from decimal import Decimal
from typing import Any

import pytest

from s3lake.errors import TransientError
from s3lake.records.convert.conversion import Conversion
from s3lake.records.convert.convert_batch import convert_batch
from s3lake.records.convert.read.keys_and_values import RecordEnvelope
from s3lake.records.schema import registry as module
from s3lake.records.schema.columns.types import fields_of, from_document, to_document
from s3lake_tests.kit.avro_messages import avro_message, datum, logical, record
from s3lake_tests.records.convert.batches import batch, parts
from s3lake_tests.records.schema.registry.server import SchemaRegistry, framed, serving

UTC = datetime.timezone.utc
DEEP = '{"type":"array","items":' * 33 + '"int"' + "}" * 33


def conversion(registry: SchemaRegistry, format: str = "parquet", nulls: str = "skip", **more: Any) -> Conversion:
    return Conversion("string", "avro", format, nulls, registry=registry.connection, **more)


# Types that test_golden_types.py does not have


def test_a_field_of_nulls_has_no_column(registry: SchemaRegistry) -> None:
    value = avro_message(registry, record(("n", "int"), ("a", "null")), {"n": 7, "a": None})
    converted = convert_batch(conversion(registry), batch(value), {})
    assert (parts(converted), converted.seen) == ([(None, [{"n": 7}])], from_document({"n": "int32"}))


def test_a_wide_union_is_a_struct_with_a_field_for_each_branch(registry: SchemaRegistry) -> None:
    inner = record(("b", "int"), name="com.acme.Inner")
    price = logical("bytes", "decimal", precision=4, scale=1)
    number = registry.add(record(("a", ["null", "int", "long", price, inner])))
    values = [framed(number, data) for data in (b"\x00", b"\x02\x0a", b"\x04\x0a", b"\x06\x02\x0f", b"\x08\x02")]
    converted = convert_batch(conversion(registry), batch(*values), {})
    nothing = dict.fromkeys(("int", "long", "bytes", "Inner"))
    branches = [{"int": 5}, {"long": 5}, {"bytes": Decimal("1.5")}, {"Inner": {"b": 1}}]
    assert parts(converted) == [(None, [{"a": None}, *({"a": nothing | branch} for branch in branches)])]
    assert str(fields_of(converted.seen["a"])["bytes"]) == "decimal(4,1)"
    texts = convert_batch(conversion(registry, "json"), batch(values[1]), {}).parts[0].streams["data"].to_pylist()
    assert texts == [b'{"a":{"int":5,"long":null,"bytes":null,"Inner":null}}']


def test_branches_of_one_name_are_distinguished_by_their_namespaces(registry: SchemaRegistry) -> None:
    schema = [record(("b", "int"), name="com.one.Inner"), record(("c", "int"), name="com.two.Inner")]
    converted = convert_batch(
        conversion(registry), batch(avro_message(registry, schema, ("com.two.Inner", {"c": 1}))), {}
    )
    assert parts(converted) == [(None, [{"com_one_Inner": None, "com_two_Inner": {"c": 1}}])]
    assert converted.parts[0].names[0].as_py() == "io.confluent.connect.avro.Union"


def test_a_value_that_is_no_record_is_a_column_of_its_own(registry: SchemaRegistry) -> None:
    converted = convert_batch(
        conversion(registry), batch(avro_message(registry, "string", "a"), avro_message(registry, "string", "b")), {}
    )
    assert parts(converted) == [(None, [{"value": "a"}, {"value": "b"}])]
    assert converted.parts[0].names.to_pylist() == [None, None]


def test_types_of_references_are_known(registry: SchemaRegistry) -> None:
    address = record(("city", "string"), name="com.acme.Address")
    registry.add(address, subject="address-value")
    number = registry.add(record(("to", "Address")), refers=[("com.acme.Address", "address-value")])
    value = framed(number, datum(record(("to", address)), {"to": {"city": "Ulm"}}))
    assert parts(convert_batch(conversion(registry), batch(value), {})) == [(None, [{"to": {"city": "Ulm"}}])]


def test_each_schema_has_its_own_part_and_all_columns_are_reported(registry: SchemaRegistry) -> None:
    old, new = record(("a", "int")), record(("a", "long"), ("b", ["null", "string"]))
    values = [avro_message(registry, old, {"a": 1}), avro_message(registry, new, {"a": 2, "b": "x"})]
    converted = convert_batch(conversion(registry), batch(*values, values[0]), {})
    assert parts(converted) == [([0, 2], [{"a": 1}, {"a": 1}]), ([1], [{"a": 2, "b": "x"}])]
    assert to_document(converted.seen) == {"a": "int64", "b": "string"}
    assert [part.names.to_pylist() for part in converted.parts] == [["com.acme.Order"] * 2, ["com.acme.Order"]]
    assert converted.columns == {}


def refusal(registry: SchemaRegistry, value: bytes, format: str = "json") -> str:
    good = avro_message(registry, record(("a", "int")), {"a": 1})
    converted = convert_batch(conversion(registry, format), batch(good, value, good), {})
    assert list(converted.refused) == [1]
    assert [part.rows.to_pylist() for part in converted.parts] == [[0, 2]]
    return converted.refused[1]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("ID", "the data does not fit schema id ID: "),
        ("ID 06 61 62", "it ends too early: 3 bytes are expected at byte 6, 2 are there"),
        ("ID 01 61 62", "a length of -1, at byte 6"),
        ("ID 02 ff", "the text at byte 5 is not UTF-8"),
        ("ID 02 61 62", "1 bytes are left after it"),
        (
            "7b 7d 20 20 20",
            "0x7b, not 0x00: no schema id of a registry is before the value, or in a header: it looks like JSON",
        ),
        ("02 61 00 00 00", "before the value, or in a header: set the converter that fits"),
        ("03 05" + 18 * " 61", "AWS Glue's serializer, whose registry s3lake does not read: use bytes"),
        ("c3 01" + 10 * " 61", "Avro's single-object encoding"),
        ("00 00 00 00 00 00 00 00 01 02 61", "Apicurio's serializers write ids of eight bytes unless"),
        ("", "0 bytes are too few"),
        ("00 00 00 01", "4 bytes are too few"),
        ("00 00 00 00 07", "schema id 7: the registry reports 'Schema 7 not found'"),
    ],
)
def test_a_value_that_does_not_fit_its_schema_or_has_none_is_a_record_error(
    registry: SchemaRegistry, value: str, text: str
) -> None:
    number = registry.add(record(("a", "string")))
    raw = bytes.fromhex(value.replace("ID", framed(number, b"").hex()))
    assert text.replace("ID", str(number)) in refusal(registry, raw)


@pytest.mark.parametrize(
    ("schema", "kind", "text"),
    [
        ("{", "", "it is not valid Avro: JSONDecodeError"),
        ("{}", "JSON", "it is a schema of JSON, not of AVRO"),
        ('"Nobody"', "", "it is not valid Avro: UnknownType: Nobody"),
        ({"type": {"type": "string"}}, "", '{"type": {"type": "string"}} has another schema as its type'),
        (
            record(("a", {"type": ["null", "string"]})),
            "",
            '{"type": ["null", "string"]} has another schema as its type',
        ),
        ({"type": "array", "items": {"type": {"type": "int"}}}, "", "write the inner schema alone"),
        (DEEP, "", "nests deeper than 32 levels, which Parquet's readers refuse; use bytes"),
        (record(("a", ["null", "com.acme.Order"])), "", "the schema.a is com.acme.Order inside of itself"),
        (record(("a", "int"), ("a", "int")), "", "a field is called 'a'; a name that no other has is expected"),
        (record(("a", {"type": "enum", "name": "E", "symbols": 3})), "", "it is not valid Avro"),
        (record(("a", {"type": "fixed", "name": "F", "size": "2"})), "", "the schema.a.size is '2': a number of bytes"),
        (record(("a", {"type": "fixed", "name": "F", "size": -1})), "", "the schema.a.size is -1: a number of bytes"),
    ],
)
def test_a_schema_that_cannot_be_read_is_a_record_error(
    registry: SchemaRegistry, schema: Any, kind: str, text: str
) -> None:
    number = registry.add(schema, kind)
    reason = refusal(registry, framed(number, b"\0"))
    assert reason.startswith(f"schema id {number}: ")
    assert text in reason


@pytest.mark.parametrize(
    ("kind", "data", "text"),
    [
        ("int", b"\xfe\xff\xff\xff\x7f", "an integer beyond 32 bits, at byte 5, where the schema has 'int'"),
        (logical("int", "time-millis"), b"\x01", "field 'a' does not fit time"),
        (logical("string", "uuid"), b"\x02a", "field 'a' does not fit uuid"),
        (logical("bytes", "decimal", precision=2, scale=0), b"\x04\x03\xe8", "does not fit"),
    ],
)
def test_a_value_that_no_column_holds_is_a_record_error(
    registry: SchemaRegistry, kind: Any, data: bytes, text: str
) -> None:
    number = registry.add(record(("a", kind)))
    for format in ("parquet", "avro", "json"):
        assert text in refusal(registry, framed(number, data), format)


def test_a_registry_that_is_down_stops_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAUSE_S", 0.0)
    with serving() as registry:
        pass
    with pytest.raises(TransientError, match="did not answer"):
        convert_batch(conversion(registry), batch(framed(1, b"")), {})


def test_null_is_a_null_value_whether_it_comes_from_kafka_or_from_the_schema(registry: SchemaRegistry) -> None:
    values = [None, avro_message(registry, ["null", "string"], None)]
    assert convert_batch(conversion(registry, nulls="skip"), batch(*values), {}).skipped == 2
    assert list(convert_batch(conversion(registry, nulls="fail"), batch(*values), {}).refused) == [0, 1]
    (part,) = convert_batch(conversion(registry, "json", nulls="write"), batch(*values), {}).parts
    assert part.streams["data"].to_pylist() == [b"null", b"null"]


def test_values_and_keys_for_the_layout_are_json(registry: SchemaRegistry) -> None:
    by = Conversion("avro", "avro", "parquet", "skip", registry=registry.connection, keyed=True)
    key = avro_message(registry, record(("id", "int"), name="Key"), {"id": 5})
    (part,) = convert_batch(by, batch(avro_message(registry, record(("a", "int")), {"a": 1}), keys=[key]), {}).parts
    assert part.keys.to_pylist() == [b'{"id":5}']
    assert part.values.to_pylist() == [b'{"a":1}']


@pytest.mark.parametrize("format", ["parquet", "json"])
def test_an_envelope_has_keys_and_values_in_their_own_types(registry: SchemaRegistry, format: str) -> None:
    envelope = RecordEnvelope("record", ("key", "value"), "t")
    by = Conversion("avro", "avro", format, "skip", envelope, registry=registry.connection)
    keys = [avro_message(registry, "long", 5), b"broken", avro_message(registry, "long", 6)]
    value = avro_message(registry, record(("a", logical("int", "date"))), {"a": datetime.date(1970, 1, 2)})
    converted = convert_batch(by, batch(value, value, value, keys=keys), {})
    assert list(converted.refused) == [1]
    assert converted.refused[1].startswith("key: the first byte is 0x62")
    (part,) = converted.parts
    found = part.streams["data"].to_pylist()
    if format == "json":
        assert found == [b'{"key":5,"value":{"a":1}}', b'{"key":6,"value":{"a":1}}']
    else:
        day = {"a": datetime.date(1970, 1, 2)}
        assert found == [{"key": 5, "value": day}, {"key": 6, "value": day}]
        assert to_document(converted.seen) == {"key": "int64", "value": {"struct": {"a": "date"}}}


# JSON Schema


def test_json_schema_without_the_id_or_without_json_is_a_record_error() -> None:
    converted = convert_batch(
        Conversion("string", "json_schema", "json", "skip"), batch(b'{"a":1}', framed(1, b"{"), framed(1, b"")), {}
    )
    assert "the first byte is 0x7b" in converted.refused[0]
    assert "truncated" in converted.refused[1]
    assert converted.refused[2].startswith("empty value: expected JSON")
