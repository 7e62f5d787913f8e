"""Debezium's transforms of values without a schema, and their options."""

import dataclasses
from typing import Any

import pytest

from s3lake_tests.records.transform.families.debezium_events import DELETE, EVENT, SOURCE, TYPE, unwrap
from s3lake_tests.records.transform.kit import After, Message, after, chain, refusal, run, smt, value_after

UPDATE = {**EVENT, "op": "u", "before": {"id": 1}, "after": {"id": 2}}
DROPPED = "dropped"
REWRITTEN = {"id": 1, "__deleted": "true"}


def unwrapped(event: Any, **options: str) -> After:
    return after(Message(event), unwrap(**options))


def notices(**options: str) -> str:
    return "\n".join(chain(unwrap(**options)).notices)


@pytest.mark.parametrize("kind", [TYPE, "io.debezium.transforms.UnwrapFromEnvelope", "ExtractNewRecordState"])
@pytest.mark.parametrize("op", ["c", "r", "u"])
def test_the_row_after_its_change_takes_the_place_of_the_event(kind: str, op: str) -> None:
    assert value_after({**EVENT, "op": op}, smt(kind)) == {"id": 1}


@pytest.mark.parametrize(
    "value",
    [
        1,
        [EVENT],
        {"ts_ms": 1},
        {"op": "m", "source": SOURCE, "message": {"prefix": "x"}},
        {"databaseName": "d", "ddl": "CREATE TABLE t", "source": SOURCE},
        {"op": "c", "after": {"id": 1}},
    ],
)
def test_a_value_that_is_not_a_change_event_is_unchanged(value: Any) -> None:
    assert unwrapped(value, add_headers="op") == After(value, None, [], "orders")


@pytest.mark.parametrize(
    ("options", "delete", "tombstone"),
    [
        ({}, DROPPED, DROPPED),
        ({"drop_tombstones": "false"}, DROPPED, None),
        ({"delete_handling_mode": "none"}, None, DROPPED),
        ({"delete_handling_mode": "none", "drop_tombstones": "false"}, None, None),
        ({"delete_handling_mode": "rewrite"}, REWRITTEN, DROPPED),
        ({"delete_handling_mode": "rewrite", "drop_tombstones": "false"}, REWRITTEN, None),
        ({"drop_deletes": "false"}, None, DROPPED),
        ({"drop_deletes": "true", "drop_tombstones": "false"}, DROPPED, None),
        ({"delete_tombstone_handling_mode": "drop"}, DROPPED, DROPPED),
        ({"delete_tombstone_handling_mode": "tombstone"}, None, DROPPED),
        ({"delete_tombstone_handling_mode": " Rewrite"}, REWRITTEN, DROPPED),
        ({"delete_tombstone_handling_mode": "rewrite-with-tombstone"}, REWRITTEN, None),
        ({"delete_tombstone_handling_mode": "delete-to-tombstone"}, None, DROPPED),
        ({"delete_tombstone_handling_mode": "drop", "delete_handling_mode": "rewrite"}, DROPPED, DROPPED),
    ],
)
def test_the_mode_decides_what_becomes_of_a_delete_and_of_its_tombstone(
    options: dict[str, str], delete: Any, tombstone: Any
) -> None:
    for value, expected in ((DELETE, delete), (None, tombstone)):
        if expected is DROPPED:
            assert run(chain(unwrap(**options)), Message(value)).filtered == 1
        else:
            assert unwrapped(value, **options).value == expected


def test_rows_have_a_field_that_they_are_not_deleted_when_deletes_are_rewritten() -> None:
    assert unwrapped(UPDATE, delete_handling_mode="rewrite").value == {"id": 2, "__deleted": "false"}


@pytest.mark.parametrize("event", [{**EVENT, "op": "t", "after": None}, {"op": "t", "source": SOURCE}])
@pytest.mark.parametrize("mode", ["tombstone", "rewrite"])
def test_a_truncation_is_dropped(event: dict[str, Any], mode: str) -> None:
    assert run(chain(unwrap(delete_tombstone_handling_mode=mode)), Message(event)).filtered == 1


@pytest.mark.parametrize(
    ("event", "options", "added"),
    [
        (DELETE, {"add_fields": "op, table,source.ts_ms,ts_ms"}, ("__op", "d", "__table", "t", "__source_ts_ms", 5)),
        (EVENT, {"add_fields": "source.ts_ms:AT", "add_fields_prefix": "_"}, ("_AT", 5)),
        (EVENT, {"add_fields": "op", "add_fields_prefix": ""}, ("op", "c")),
        (EVENT, {"add_fields": "transaction.id"}, ("__transaction_id", None)),
        (EVENT, {"add_fields": "before"}, ("__before", None)),
        ({**EVENT, "changed": ["id"]}, {"add_fields": "changed"}, ("__changed", ["id"])),
        (EVENT, {"add_source_fields": "table"}, ("__table", "t")),
    ],
)
def test_fields_of_the_event_are_added_to_the_row(
    event: dict[str, Any], options: dict[str, str], added: tuple[Any, ...]
) -> None:
    value = unwrapped(event, delete_handling_mode="rewrite", **options).value
    expected = dict(zip(added[::2], added[1::2], strict=True))
    assert {name: value.get(name, "missing") for name in expected} == expected


def test_a_field_that_the_event_does_not_have_is_not_added() -> None:
    assert unwrapped(EVENT, add_fields="nope,foo.bar", add_headers="nope") == After({"id": 1}, None, [], "orders")


def test_headers_are_added_also_to_tombstones_which_have_only_the_operation() -> None:
    options = {"add_headers": "op,db", "drop_tombstones": "false"}
    assert unwrapped(EVENT, **options).headers == [("__op", b"c"), ("__db", b"d")]
    assert unwrapped(None, **options).headers == [("__op", b"d")]
    assert unwrapped(EVENT, operation_header="true").headers == [("__op", b"c")]


def test_a_name_that_the_row_has_already_is_refused() -> None:
    assert "the row has a column 'id'" in refusal(Message(EVENT), unwrap(add_fields="op:id", add_fields_prefix=""))


@pytest.mark.parametrize(
    ("row", "topic"), [({"k": "archive"}, "archive"), ({"k": None}, "orders"), ({"k": " "}, "orders")]
)
def test_a_column_names_the_topic(row: dict[str, Any], topic: str) -> None:
    assert unwrapped({**EVENT, "after": row}, route_by_field="k").topic == topic
    null = {"route_by_field": "k", "delete_handling_mode": "none"}
    assert unwrapped({**DELETE, "before": row}, **null).topic == topic


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({}, "route.by.field: the row has no column 'k'"),
        ({"k": 1}, "column 'k' is 1 (a number), a text is needed"),
        ({"k": "a/.."}, "the topic would be called 'a/..'"),
    ],
)
def test_a_column_that_cannot_name_a_topic_refuses_the_record(row: dict[str, Any], why: str) -> None:
    assert why in refusal(Message({**EVENT, "after": row}), unwrap(route_by_field="k"))


def test_a_header_lists_columns_to_leave_out_of_the_row_and_of_the_key() -> None:
    drop = unwrap(drop_fields_header_name="h", drop_fields_from_key="true", add_fields="op,table")
    event = {**EVENT, "after": {"id": 1, "a": 2}}
    done = after(Message(event, {"id": 1, "a": 2}, (("h", b'["a","__op"]'),)), drop, key="json")
    assert (done.value, done.key) == ({"id": 1, "__table": "t"}, {"id": 1})
    assert after(Message(event, {"a": 2}), drop, key="json").key == {"a": 2}
    assert "header 'h' is not a JSON list" in refusal(Message(event, {}, (("h", b"a"),)), drop, key="json")


def test_added_fields_of_a_rewritten_delete_stay() -> None:
    drop = unwrap(drop_fields_header_name="h", add_fields="op", delete_handling_mode="rewrite")
    done = after(Message({**DELETE, "before": {"id": 1, "a": 2}}, None, (("h", b'["a","__op"]'),)), drop)
    assert done.value == {"id": 1, "__deleted": "true", "__op": "d"}


def test_an_event_of_mongodb_is_refused() -> None:
    assert "MongoDB's events need" in refusal(Message({**EVENT, "after": '{"_id": 1}'}), unwrap())


def test_an_option_that_versions_of_debezium_read_differently_gives_a_notice() -> None:
    assert "deletes and tombstones are left out, as in Debezium before 3.2" in notices()
    assert "here such a value is a change event if it has a text op" in notices()
    assert "drop.deletes=false is called delete.handling.mode=none today" in notices(drop_deletes="false")
    both = notices(delete_tombstone_handling_mode="drop", drop_tombstones="false")
    assert "drop.tombstones has no effect: delete.tombstone.handling.mode is set" in both
    assert "operation.header is called add.headers today" in notices(operation_header="true")


@pytest.mark.parametrize(
    ("value", "tabular", "by_shape"),
    [("json", True, True), ("avro", False, False), ("json_schema", True, False), ("json_schema", False, True)],
)
def test_events_that_are_known_by_their_shape_are_a_notice(value: str, tabular: bool, by_shape: bool) -> None:
    links = dataclasses.replace(chain(unwrap(), value=value), tabular=tabular)
    assert any("values without a schema" in notice for notice in links.notices) is by_shape


# HeaderToValue


def test_headers_become_fields() -> None:
    to_value = smt("HeaderToValue", {"headers": "h,i,absent", "fields": "a,o.b,c", "operation": "move"})
    done = after(Message({"o": {}}, None, (("h", b"x"), ("i", None), ("j", b"y"))), to_value)
    assert (done.value, done.headers) == ({"o": {"b": None}, "a": "x"}, [("j", b"y")])
    copy = smt("HeaderToValue", {"headers": "h", "fields": "a", "operation": "copy"})
    assert after(Message({}, None, (("h", b"x"),)), copy).headers == [("h", b"x")]
    assert after(Message(None, None, (("h", b"x"),)), copy).value is None


def test_a_header_that_has_no_place_refuses_the_record() -> None:
    to_value = smt("HeaderToValue", {"headers": "h", "fields": "o.b", "operation": "copy"})
    assert "field 'o' is null, an object is needed" in refusal(Message({}, None, (("h", b"x"),)), to_value)
    assert "the value is 1 (a number)" in refusal(Message(1, None, (("h", b"x"),)), to_value)
