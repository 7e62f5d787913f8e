"""Kafka Connect's transforms of fields, applied to values with a schema: what becomes of the schema."""

import json
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pytest

from s3lake_tests.records.transform.kit import (
    CLOCK,
    TOPIC,
    described,
    field,
    refusal_described,
    run_described,
    smt,
    struct,
    texts_of,
)

AT = datetime(2020, 1, 5, 11, 21, 4, 123_000, timezone.utc)
ORDER = struct(
    field("id", "int32"),
    field("price", "bytes", "Decimal", parameters={"scale": "2", "connect.decimal.precision": "10"}),
    field("at", "int64", "Timestamp"),
    field("day", "int32", "Date", optional=True),
    field("blob", "bytes"),
    field("ratio", "float"),
    field("note", "string", optional=True),
    name="shop.Order",
    version=3,
)
PAYLOAD: dict[str, Any] = {
    "id": 1,
    "price": 12.34,
    "at": CLOCK,
    "day": 18_266,
    "blob": "AP8=",
    "ratio": 0.5,
    "note": None,
}
TYPES = {
    "id": "int32!",
    "price": "decimal(10,2)!",
    "at": "timestamp!",
    "day": "date",
    "blob": "binary!",
    "ratio": "float!",
    "note": "string",
}
ROW = {
    "id": 1,
    "price": Decimal("12.34"),
    "at": AT,
    "day": date(2020, 1, 5),
    "blob": b"\x00\xff",
    "ratio": 0.5,
    "note": None,
}
NESTED = struct(
    field("id", "int32"),
    struct(
        field("city", "string"),
        struct(field("lat", "double"), field="geo", optional=True),
        field="address",
        optional=True,
    ),
)


def test_insert_field_adds_fields_behind_those_of_the_schema() -> None:
    insert = smt(
        "InsertField$Value",
        {
            "topic.field": "t",
            "partition.field": "p?",
            "offset.field": "o!",
            "timestamp.field": "ts",
            "static.field": "s",
            "static.value": "x",
        },
    )
    done = described(ORDER, [PAYLOAD], insert)
    assert (done.name, done.version) == ("shop.Order", 3)
    assert done.types == {**TYPES, "t": "string", "p": "int32", "o": "int64!", "ts": "timestamp", "s": "string"}
    assert done.rows == [{**ROW, "t": TOPIC, "p": 3, "o": 100, "ts": AT, "s": "x"}]


def test_insert_field_refuses_a_name_that_the_schema_has() -> None:
    reason = refusal_described(ORDER, PAYLOAD, smt("InsertField$Value", {"offset.field": "id"}))
    assert reason == "transform InsertField$Value: field 'id' is in the schema already: insert it by another name"


def test_replace_field_leaves_fields_out_and_renames_others_with_their_types() -> None:
    replace = smt("ReplaceField$Value", {"exclude": "blob,ratio,id,note", "renames": "at:ordered_at"})
    done = described(ORDER, [PAYLOAD], replace)
    assert (done.name, done.types) == (
        "shop.Order",
        {"price": "decimal(10,2)!", "ordered_at": "timestamp!", "day": "date"},
    )
    assert done.rows == [{"price": Decimal("12.34"), "ordered_at": AT, "day": date(2020, 1, 5)}]


def test_replace_field_refuses_two_fields_of_one_name() -> None:
    reason = refusal_described(ORDER, PAYLOAD, smt("ReplaceField$Value", {"renames": "at:day"}))
    assert reason.endswith("two fields would be called 'day': rename or leave out one of them before")


@pytest.mark.parametrize(
    ("replacement", "fields", "masked"),
    [
        (None, "id,price,at,day,ratio,note", {"id": 0, "price": Decimal("0.00"), "day": date(1970, 1, 1), "ratio": 0}),
        ("7", "id,price,ratio,note", {"id": 7, "price": Decimal("7.00"), "ratio": 7.0}),
    ],
)
def test_mask_field_puts_values_of_the_same_type_and_keeps_null(
    replacement: str | None, fields: str, masked: dict[str, Any]
) -> None:
    options = {"fields": fields} | ({} if replacement is None else {"replacement": replacement})
    done = described(ORDER, [PAYLOAD], smt("MaskField$Value", options))
    at = {"at": datetime(1970, 1, 1, tzinfo=timezone.utc)} if replacement is None else {}
    assert (done.name, done.version, done.types) == ("shop.Order", 3, TYPES)
    assert done.rows == [{**ROW, **masked, **at}]


@pytest.mark.parametrize(
    ("fields", "replacement", "reason"),
    [
        ("blob", None, "field 'blob' is binary by its schema, which cannot be masked"),
        ("id", "3000000000", "field 'id': replacement is not int32"),
        ("id", "x", "but replacement 'x' is not"),
        ("at", "1", "takes no replacement: only numbers and texts do"),
    ],
)
def test_mask_field_refuses_what_its_type_cannot_hold(fields: str, replacement: str | None, reason: str) -> None:
    options = {"fields": fields} | ({} if replacement is None else {"replacement": replacement})
    assert reason in refusal_described(ORDER, PAYLOAD, smt("MaskField$Value", options))


def test_extract_field_makes_the_value_what_the_field_is() -> None:
    done = described(ORDER, [PAYLOAD, {**PAYLOAD, "price": 1}], smt("ExtractField$Value", {"field": "price"}))
    assert (done.name, done.types, done.rows) == (None, "decimal(10,2)", [Decimal("12.34"), Decimal("1.00")])


def test_extract_field_goes_down_a_path_through_null() -> None:
    payloads = [{"id": 1, "address": {"city": "Rome", "geo": {"lat": 41.9}}}, {"id": 2, "address": None}]
    extract = smt("ExtractField$Value", {"field": "address.geo.lat", "field.syntax.version": "V2"})
    assert described(NESTED, payloads, extract).rows == [41.9, None]


def test_extract_field_refuses_a_field_that_the_schema_lacks() -> None:
    reason = refusal_described(NESTED, {"id": 1, "address": None}, smt("ExtractField$Value", {"field": "name"}))
    assert reason == "transform ExtractField$Value: field 'name' is not in the schema: it has id, address"


def test_hoist_field_puts_the_whole_into_a_struct() -> None:
    done = described(ORDER, [PAYLOAD], smt("HoistField$Value", {"field": "order"}))
    assert list(done.types) == ["order"]
    assert (done.name, done.rows) == (None, [{"order": ROW}])


def test_flatten_names_fields_after_their_path_and_lets_them_be_null_where_a_struct_may_be() -> None:
    payloads = [{"id": 1, "address": {"city": "Rome", "geo": None}}, {"id": 2, "address": None}]
    done = described(NESTED, payloads, smt("Flatten$Value", {"delimiter": "_"}))
    assert done.types == {"id": "int32!", "address_city": "string", "address_geo_lat": "double"}
    assert done.rows == [
        {"id": 1, "address_city": "Rome", "address_geo_lat": None},
        {"id": 2, "address_city": None, "address_geo_lat": None},
    ]


def test_flatten_leaves_maps_as_they_are() -> None:
    by = {"field": "by", "type": "map", "keys": {"type": "string"}, "values": {"type": "int32"}}
    done = described(struct(struct(by, field="a")), [{"a": {"by": {"x": 1}}}], smt("Flatten$Value"))
    assert (done.types, done.rows) == ({"a.by": "map<string, int32>!"}, [{"a.by": [("x", 1)]}])


def test_header_from_moves_fields_to_headers_and_keeps_the_types_of_the_others() -> None:
    move = smt("HeaderFrom$Value", {"fields": "price,blob", "headers": "p,b", "operation": "move"})
    done = run_described(ORDER, [PAYLOAD], move)
    (headers,) = done.batch.column("headers").to_pylist()
    assert [(one["key"], one["value"]) for one in headers] == [("p", b"12.34"), ("b", b"\x00\xff")]
    types = {name: of for name, of in TYPES.items() if name not in ("price", "blob")}
    assert described(ORDER, [PAYLOAD], move).types == types


def test_value_to_key_makes_a_key_with_the_types_of_the_fields() -> None:
    to_key = smt("ValueToKey", {"fields": "at,id"})
    key = described(ORDER, [PAYLOAD], to_key, side="key")
    assert (key.name, key.types, key.rows) == (None, {"at": "timestamp!", "id": "int32!"}, [{"at": AT, "id": 1}])
    done = run_described(ORDER, [PAYLOAD], to_key)
    assert texts_of(done, "key") == done.batch.column("key").to_pylist() == [b'{"at":%d,"id":1}' % CLOCK]
    assert described(ORDER, [PAYLOAD], to_key).types == TYPES


def test_a_key_that_one_step_makes_keeps_its_schema_for_the_next_step() -> None:
    steps = smt("ValueToKey", {"fields": "at"}), smt("ExtractField$Key", {"field": "at"})
    key = described(ORDER, [PAYLOAD], *steps, side="key")
    assert (key.types, key.rows) == ("timestamp", [AT])


def test_set_schema_metadata_sets_name_and_version() -> None:
    rename = smt("SetSchemaMetadata$Value", {"schema.name": "com.acme.Purchase", "schema.version": "12"})
    done = described(ORDER, [PAYLOAD], rename)
    assert (done.name, done.version, done.types, done.rows) == ("com.acme.Purchase", 12, TYPES, [ROW])


@pytest.mark.parametrize(
    ("transform", "options"),
    [
        ("MaskField$Value", {"fields": "id"}),
        ("HeaderFrom$Value", {"fields": "id", "headers": "h", "operation": "copy"}),
        ("ValueToKey", {"fields": "id"}),
    ],
)
def test_transforms_that_need_a_struct_refuse_null(transform: str, options: dict[str, str]) -> None:
    reason = refusal_described({**ORDER, "optional": True}, None, smt(transform, options))
    assert reason == f"transform {transform}: the value is null, a struct is needed"


@pytest.mark.parametrize("transform", ["InsertField$Value", "ReplaceField$Value", "Flatten$Value", "Cast$Value"])
def test_other_transforms_leave_null_with_its_schema(transform: str) -> None:
    options = {
        "InsertField$Value": {"offset.field": "o"},
        "ReplaceField$Value": {"exclude": "id"},
        "Cast$Value": {"spec": "id:string"},
    }.get(transform, {})
    done = described({**ORDER, "optional": True}, [None], smt(transform, options))
    assert (done.types, done.rows) == (TYPES, [None])


def test_a_struct_is_needed_by_name() -> None:
    reason = refusal_described({"type": "int32"}, 7, smt("ReplaceField$Value", {"exclude": "a"}))
    assert reason == "transform ReplaceField$Value: the value is int32 by its schema, a struct is needed"


def test_a_struct_that_loses_its_last_field_is_set_and_not_null() -> None:
    schema = struct(struct(field("zip", "string"), field="to", optional=True))
    drop = smt("iggy.delete_fields", {"fields": ["to.zip"]})
    done = described(schema, [{"to": {"zip": "1"}}, {"to": None}], drop)
    assert [row["to"] is None for row in done.rows] == [False, True]
    kept = [one["to"] for one in map(json.loads, _texts(schema, [{"to": {"zip": "1"}}, {"to": None}], drop))]
    assert kept == [{}, None]


def test_a_field_that_is_added_to_a_struct_without_fields_takes_the_place_of_the_placeholder() -> None:
    schema = struct(struct(field("zip", "string"), field="to"))
    drop = smt("iggy.delete_fields", {"fields": ["to.zip"]})
    add = smt("iggy.add_fields", {"fields": [{"key": "to.city", "value": {"static": "Rome"}}]})
    done = described(schema, [{"to": {"zip": "1"}}], drop, add)
    assert (done.types, done.rows) == ({"to": "struct<city: string>!"}, [{"to": {"city": "Rome"}}])


def _texts(schema: dict[str, Any], payloads: list[Any], *transforms: Any) -> list[bytes]:
    texts = texts_of(run_described(schema, payloads, *transforms), "value")
    assert None not in texts
    return [text for text in texts if text is not None]


@pytest.mark.parametrize("options", [{}, {"replace.null.with.default": "true"}])
def test_a_struct_without_fields_has_nothing_to_mask(options: dict[str, str]) -> None:
    mask = smt("MaskField$Value", {"fields": "a", **options})
    done = described(struct(), [{}], mask)
    assert [row for row in done.rows if any(row.values())] == []
    assert len(done.rows) == 1
