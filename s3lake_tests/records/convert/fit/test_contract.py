"""What a sink asks of values: new fields, other types, what is required, and rules."""

import json
from dataclasses import replace
from typing import Any

import pytest

from s3lake.records.convert.conversion import Conversion
from s3lake.records.convert.convert_batch import ConvertedBatch, convert_batch
from s3lake.records.convert.fit.contract import Contract
from s3lake.records.schema.columns.types import Columns, Decimal, List, Map, Primitive, Struct
from s3lake_tests.kit.avro_messages import avro_message, record
from s3lake_tests.records.convert.batches import batch, table
from s3lake_tests.records.schema.registry.server import SchemaRegistry, serving

INT, TEXT = Primitive.INT64, Primitive.STRING
ORDERS: Columns = {"id": INT, "to": Struct({"zip": TEXT}), "items": List(Struct({"sku": TEXT}))}


def converted(contract: Contract, *values: Any, columns: Columns = ORDERS, **more: Any) -> ConvertedBatch:
    held = replace(contract, columns=columns)
    conversion = Conversion("string", "json", "parquet", "skip", contract=held, **more)
    return convert_batch(conversion, batch(*[json.dumps(value).encode() for value in values]), columns)


@pytest.mark.parametrize("rule", ["dead_letter", "fail"])
def test_a_new_field_refuses_its_record_alone_or_fails_the_micro_batch(rule: Any) -> None:
    found = converted(Contract(on_new_field=rule), {"id": 1, "note": "x"}, {"id": 2}, {"id": 3, "note": None})
    expected = {0: "field 'note' is new, and schema.on_new_field allows none"}
    assert (found.refused, found.forbidden) == ((expected, {}) if rule == "dead_letter" else ({}, expected))
    assert [row["id"] for row in table(found)] == [2, 3]
    assert found.fields_left_out == {}


def test_a_column_is_not_widened_where_types_are_fixed() -> None:
    found = converted(Contract(on_type_change="dead_letter"), {"id": 1.5}, {"id": 2, "note": "new"}, {"id": "3"})
    assert [row["id"] for row in table(found)] == [2]
    assert found.refused == {
        0: "field 'id' is double, its column is int64, and schema.on_type_change allows none",
        2: "field 'id' is string, its column is int64, and schema.on_type_change allows none",
    }
    assert found.columns == {**ORDERS, "note": TEXT}


NUMBERS: Columns = {"n": INT}


def test_a_list_of_several_types_is_refused_with_what_is_wrong() -> None:
    held = Contract(on_type_change="dead_letter", columns=NUMBERS)
    found = convert_batch(
        Conversion("string", "json", "parquet", "skip", contract=held), batch(b'{"n": [1, "mixed"]}'), NUMBERS
    )
    why, _, remedy = found.refused[0].rpartition(": ")
    assert why == "field 'n' fits no column: field 'n[]' is string, the sink's files have int64"
    assert remedy == "have the producer keep to one type, or use format json, which has no columns"


@pytest.mark.parametrize("rule", ["drop", "dead_letter", "fail"])
@pytest.mark.parametrize(
    "text",
    [
        b' {"new": 1}',
        b'\n{"new": 1}',
        b'{"new": [1, "mixed"]}',
        b'{"new": 1e400}',
        b'{"new": %s}' % (b"[" * 40 + b"]" * 40),
        b'{"new": 36893488147419103233}',
        b'{"n": 1e400}',
        b'{"n": [1, "mixed"]}',
    ],
)
def test_a_field_departs_though_blanks_are_before_the_value_or_no_column_could_hold_it(rule: Any, text: bytes) -> None:
    held = Contract(on_new_field=rule, on_type_change=rule, columns=NUMBERS)
    found = convert_batch(
        Conversion("string", "json", "parquet", "skip", contract=held), batch(b'{"n": 1}', text), NUMBERS
    )
    name = "new" if b"new" in text else "n"
    assert (found.columns, found.fields_left_out) == (NUMBERS, {name: 1} if rule == "drop" else {})
    assert list(found.refused) == ([1] if rule == "dead_letter" else [])
    assert list(found.forbidden) == ([1] if rule == "fail" else [])


def test_a_dropped_field_does_not_change_the_other_values() -> None:
    columns: Columns = {"price": Decimal(38, 20), "prices": Map(Decimal(10, 2))}
    text = b'{"price": 0.10000000000000000001, "prices": {"a": 1.10}, "note": 1}'
    held = Contract(on_new_field="drop", columns=columns)
    conversion = Conversion("string", "json", "parquet", "skip", declared=columns, contract=held)
    (row,) = table(convert_batch(conversion, batch(text), columns))
    assert (str(row["price"]), str(dict(row["prices"])["a"])) == ("0.10000000000000000001", "1.10")


def test_nothing_is_new_before_columns_were_recorded() -> None:
    found = converted(Contract(on_new_field="fail"), {"id": 1}, columns={})
    assert (found.forbidden, found.columns) == ({}, {"id": INT})


def test_a_required_field_that_is_missing_or_null_refuses_its_record() -> None:
    found = converted(
        Contract(required=(("to", "zip"),)), {"to": {"zip": "1"}}, {"to": {"zip": None}}, {"to": None}, {"id": 4}
    )
    assert found.refused == dict.fromkeys((1, 2, 3), "required field 'to.zip' is missing")
    assert found.broken == 3


def test_rules_refuse_a_record_and_name_no_value() -> None:
    rules = b'{"properties": {"id": {"minimum": 0}, "to": {"properties": {"zip": {"pattern": "^[0-9]*$"}}}}}'
    found = converted(Contract(rules=rules), {"id": -5}, {"id": 1, "to": {"zip": "secret"}}, {"id": 2})
    assert found.refused == {
        0: "rules: properties/id/minimum does not hold at id",
        1: "rules: properties/to/properties/zip/pattern does not hold at to.zip",
    }
    assert [row["id"] for row in table(found)] == [2]


def test_rules_hold_for_lines_too() -> None:
    conversion = Conversion("string", "json", "json", "skip", contract=Contract(rules=b'{"required": ["id"]}'))
    found = convert_batch(conversion, batch(b'{"id": 1}', b"{}", b"no json"), {})
    assert (sorted(found.refused), found.broken) == ([1, 2], 1)


def test_a_value_that_cannot_be_checked_is_refused_alone() -> None:
    rules = Contract(required=(("id",),), rules=b'{"properties": {"id": {"type": "integer"}}}')
    conversion = Conversion("string", "json", "json", "skip", contract=rules)
    deep = b"[" * 900 + b"]" * 900
    found = convert_batch(conversion, batch(b'{"id": 1}', b'{"id": 1, "n": 1e400}', b'{"id": %s}' % deep), {})
    assert found.refused == {1: "a number is beyond a double", 2: "nested too deeply"}


def order(to: list[tuple[str, Any]], *more: tuple[str, Any]) -> dict[str, Any]:
    address = record(*to, name="a.To")
    return record(("id", "long"), ("to", address), ("also", {"type": "array", "items": "a.To"}), *more)


V1 = order([("zip", "string")])
V2 = order([("zip", "string"), ("street", ["null", "string"])], ("note", ["null", "string"]))
KNOWN: Columns = {"id": INT, "to": Struct({"zip": TEXT}), "also": List(Struct({"zip": TEXT}))}


@pytest.mark.parametrize(("format", "files"), [("parquet", 1), ("avro", 2)])  # Avro splices what departs in nothing
def test_fields_of_a_schema_are_left_out_and_counted_where_they_hold_something(format: str, files: int) -> None:
    with serving() as registry:
        found = _of_schemas(registry, Contract(on_new_field="drop"), format)
    assert (found.refused, found.seen, len(found.parts)) == ({}, KNOWN, files)
    assert found.fields_left_out == {"note": 1, "to.street": 1, "also[].street": 1}
    rows = found.parts[-1].streams["data"].to_pylist()
    assert rows[-2:] == [
        {"id": 2, "to": {"zip": "2"}, "also": [{"zip": "4"}]},
        {"id": 3, "to": {"zip": "3"}, "also": []},
    ]


def test_a_record_whose_new_fields_hold_something_is_refused() -> None:
    with serving() as registry:
        found = _of_schemas(registry, Contract(on_new_field="dead_letter"), "parquet")
    assert found.refused == {1: "field 'to.street' is new, and schema.on_new_field allows none"}
    assert [row["id"] for part in found.parts for row in part.streams["data"].to_pylist()] == [1, 3]


def test_another_type_of_a_schema_refuses_its_records() -> None:
    with serving() as registry:
        conversion = _conversion(registry, Contract(on_type_change="dead_letter", columns=KNOWN), "parquet")
        changed = record(("id", "string"), name="a.Order")
        found = convert_batch(conversion, batch(avro_message(registry, changed, {"id": "x"})), KNOWN)
    assert found.refused == {0: "field 'id' is string, its column is int64, and schema.on_type_change allows none"}


def test_values_with_their_schema_in_them_are_held_to_the_contract() -> None:
    fields = [{"type": "int64", "field": "id"}, {"type": "string", "field": "note", "optional": True}]
    value = {"schema": {"type": "struct", "fields": fields}, "payload": {"id": 1, "note": "x"}}
    held = Contract(on_new_field="drop", columns={"id": INT})
    conversion = Conversion("string", "connect_json", "parquet", "skip", contract=held)
    found = convert_batch(conversion, batch(json.dumps(value).encode()), {"id": INT})
    assert (table(found), found.fields_left_out, found.seen) == ([{"id": 1}], {"note": 1}, {"id": INT})


def _conversion(registry: SchemaRegistry, contract: Contract, format: str) -> Conversion:
    return Conversion("string", "avro", format, "skip", registry=registry.connection, contract=contract, valued=False)


def _of_schemas(registry: SchemaRegistry, contract: Contract, format: str) -> ConvertedBatch:
    values = [
        avro_message(registry, V1, {"id": 1, "to": {"zip": "1"}, "also": []}),
        avro_message(
            registry,
            V2,
            {"id": 2, "to": {"zip": "2", "street": "s"}, "also": [{"zip": "4", "street": "t"}], "note": "n"},
        ),
        avro_message(registry, V2, {"id": 3, "to": {"zip": "3", "street": None}, "also": [], "note": None}),
    ]
    return convert_batch(_conversion(registry, replace(contract, columns=KNOWN), format), batch(*values), KNOWN)
