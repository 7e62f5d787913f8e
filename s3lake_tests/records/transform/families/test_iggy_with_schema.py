"""Iggy's transforms of values with a schema."""

from typing import Any

import pytest

from s3lake_tests.records.transform.kit import CLOCK, described, field, refusal_described, smt, struct

ORDER = struct(
    field("id", "int32"),
    field("at", "int64", "Timestamp"),
    struct(field("city", "string"), field("zip", "string", optional=True), field="to", optional=True),
    field("note", "string", optional=True),
    name="Order",
)
PAYLOAD = {"id": 1, "at": CLOCK, "to": {"city": "Rome", "zip": "00184"}, "note": "x"}
TYPES = {"id": "int32!", "at": "timestamp!", "to": "struct<city: string, zip: string>", "note": "string"}


def fields(*pairs: tuple[str, Any], **more: Any) -> dict[str, Any]:
    return {"fields": [{"key": key, "value": value, **more} for key, value in pairs]}


@pytest.mark.parametrize(
    ("value", "type", "expected"),
    [
        ({"static": 1}, "int64!", 1),
        ({"static": 1.5}, "double!", 1.5),
        ({"static": True}, "bool!", True),
        ({"static": "a"}, "string!", "a"),
        ({"static": [1, 2]}, "list<int64>!", [1, 2]),
        ({"static": {"a": "b"}}, "struct<a: string>!", {"a": "b"}),
        ({"static": None}, "string", None),
        ({"computed": "timestamp_millis"}, "int64!", CLOCK),
        ({"computed": "date_time"}, "string!", "2020-01-05T11:21:04.123+00:00"),
    ],
)
def test_an_added_field_has_the_type_of_its_value(value: dict[str, Any], type: str, expected: Any) -> None:
    done = described(ORDER, [PAYLOAD], smt("iggy.add_fields", fields(("new", value))))
    assert done.types == {**TYPES, "new": type}
    assert done.rows[0]["new"] == expected


def test_a_dotted_key_sets_a_field_of_the_struct_that_the_schema_has() -> None:
    done = described(ORDER, [PAYLOAD], smt("iggy.add_fields", fields(("to.country", {"static": "it"}))))
    assert done.types == {**TYPES, "to": "struct<city: string, zip: string, country: string>"}
    assert done.rows[0]["to"] == {"city": "Rome", "zip": "00184", "country": "it"}


def test_a_field_of_a_null_struct_cannot_be_set() -> None:
    add = smt("iggy.add_fields", fields(("to.country", {"static": "it"})))
    reason = refusal_described(ORDER, {**PAYLOAD, "to": None}, add)
    assert reason == "transform iggy.add_fields: field 'to' is null, so 'to.country' cannot be set"


@pytest.mark.parametrize(
    ("condition", "set"), [("key_exists", {"id": "string!"}), ("key_not_exists", {"new": "string!"})]
)
def test_update_fields_asks_the_schema_whether_a_field_exists(condition: str, set: dict[str, str]) -> None:
    update = smt("iggy.update_fields", fields(("id", {"static": "x"}), ("new", {"static": "x"}), condition=condition))
    assert described(ORDER, [PAYLOAD], update).types == {**TYPES, **set}


def test_delete_fields_takes_fields_out_of_the_schema() -> None:
    done = described(ORDER, [PAYLOAD], smt("iggy.delete_fields", {"fields": ["note", "to.zip", "absent"]}))
    assert done.types == {"id": "int32!", "at": "timestamp!", "to": "struct<city: string>"}
    assert done.rows[0]["to"] == {"city": "Rome"}


def test_unwrap_envelope_takes_a_field_with_its_schema() -> None:
    done = described(ORDER, [PAYLOAD, {**PAYLOAD, "to": None}], smt("iggy.unwrap_envelope", {"field": "to"}))
    assert done.types == {"city": "string!", "zip": "string"}
    assert done.rows == [{"city": "Rome", "zip": "00184"}, None]


def test_filter_fields_keeps_what_is_named_or_selected() -> None:
    keep = smt("iggy.filter_fields", {"keep_fields": ["to.city"], "patterns": [{"key_pattern": {"exact": "at"}}]})
    assert described(ORDER, [PAYLOAD], keep).types == {"at": "timestamp!", "to": "struct<city: string>"}


def test_a_field_that_only_some_records_keep_is_null_in_the_others() -> None:
    keep = smt("iggy.filter_fields", {"patterns": [{"value_pattern": {"greater_than": 1}}]})
    schema = struct(field("a", "int32"), field("b", "int32"))
    done = described(schema, [{"a": 1, "b": 2}, {"a": 2, "b": 2}], keep)
    assert (done.types, done.rows) == ({"a": "int32", "b": "int32!"}, [{"a": None, "b": 2}, {"a": 2, "b": 2}])
