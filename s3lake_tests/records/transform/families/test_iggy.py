"""Iggy's transforms: the vectors of reference 4.8 by their numbers, and what s3lake adds."""

from __future__ import annotations

import re
from typing import Any

import pytest

from s3lake.records.transform.chain.apply import apply_chain
from s3lake_tests.records.transform.kit import CLOCK, Message, batch_of, chain, run, smt, value_after


def static(**fields: Any) -> list[dict[str, Any]]:
    return [{"key": key, "value": {"static": value}} for key, value in fields.items()]


def added(value: Any, fields: list[dict[str, Any]]) -> Any:
    return value_after(value, smt("iggy.add_fields", {"fields": fields}))


def updated(value: Any, *fields: dict[str, Any]) -> Any:
    return value_after(value, smt("iggy.update_fields", {"fields": list(fields)}))


def filtered(value: Any, **options: Any) -> Any:
    return value_after(value, smt("iggy.filter_fields", options))


def test_i1_add_overwrites_a_field_that_is_there_in_the_order_given() -> None:
    fields = [*static(status="newer"), *static(status="newest")]
    assert added({"id": 1, "status": "old"}, fields) == {"id": 1, "status": "newest"}


def test_i2_add_keeps_the_types_of_constants() -> None:
    fields = static(text="a", number=42, fraction=1.5, flag=True, nothing=None, nested={"a": [1]})
    expected = {
        "id": 1,
        "text": "a",
        "number": 42,
        "fraction": 1.5,
        "flag": True,
        "nothing": None,
        "nested": {"a": [1]},
    }
    assert added({"id": 1}, fields) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"a": {"x": 1}}, {"a": {"x": 1, "b": 0}}),
        ({"a.b": 1, "a": {}}, {"a.b": 0, "a": {}}),
        ({"c": 1}, {"c": 1, "a.b": 0}),
        ({"a": 5}, {"a": 5, "a.b": 0}),
    ],
)
def test_a_dotted_key_is_a_path_where_its_parent_is_there(value: Any, expected: Any) -> None:
    assert added(value, static(**{"a.b": 0})) == expected


@pytest.mark.parametrize("value", [[1], "text", 42, None])
def test_a_value_that_is_not_an_object_is_left_unchanged(value: Any) -> None:
    assert added(value, static(a=1)) == value
    assert filtered(value, keep_fields=["a"]) == value


def test_values_that_are_not_json_are_left_unchanged_with_a_notice() -> None:
    links = chain(smt("iggy.add_fields", {"fields": static(a=1)}), value="string")
    assert run(links, Message(b"{}")).batch.column("value").to_pylist() == [b"{}"]
    assert links.value_converter == "string"
    assert links.notices == ("transform iggy.add_fields: it changes JSON only, and converter.value is string",)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (["a"], {"b": {"c": 1, "d": 2}}),
        (["x", "b"], {"a": 1}),
        ([], {"a": 1, "b": {"c": 1, "d": 2}}),
        (["b.c", "a.x"], {"a": 1, "b": {"d": 2}}),
    ],
)
def test_delete_fields_deletes_fields_by_their_whole_names(fields: list[str], expected: Any) -> None:
    value = {"a": 1, "b": {"c": 1, "d": 2}}
    assert value_after(value, smt("iggy.delete_fields", {"fields": fields})) == expected


def test_delete_keeps_the_bytes_of_a_value_that_has_none_of_the_fields() -> None:
    done = run(chain(smt("iggy.delete_fields", {"fields": ["x", "y.z"]})), Message(b'{ "a":1.0}'))
    assert done.batch.column("value").to_pylist() == [b'{ "a":1.0}']


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({"keep_fields": ["a", "d"]}, {"a": 1, "d": "x"}),  # I4
        ({}, {"a": 1, "b": {"c": 1, "e": 2}, "d": "x"}),  # I10
        ({"keep_fields": ["a"], "include_matching": False}, {"a": 1, "b": {"c": 1, "e": 2}, "d": "x"}),
        (
            {"keep_fields": ["a"], "patterns": [{"value_pattern": "is_number"}], "include_matching": False},
            {"a": 1, "b": {"c": 1, "e": 2}, "d": "x"},
        ),
        ({"patterns": [{"value_pattern": "is_number"}], "include_matching": False}, {"b": {"c": 1, "e": 2}, "d": "x"}),
        ({"keep_fields": ["b.c"]}, {"b": {"c": 1}}),
    ],
)
def test_named_and_matching_fields_are_kept_or_dropped(options: dict[str, Any], kept: dict[str, Any]) -> None:
    assert filtered({"a": 1, "b": {"c": 1, "e": 2}, "d": "x"}, **options) == kept


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ({"key_pattern": {"exact": "n"}}, "n"),
        ({"key_pattern": {"starts_with": "n"}}, "n nul"),  # I5
        ({"value_pattern": "is_number"}, "n f"),  # I7
        ({"key_pattern": {"contains": "n"}, "value_pattern": "is_not_null"}, "n"),  # I8, together
        ({"key_pattern": {"ends_with": "l"}}, "nul"),
        ({"key_pattern": {"regex": "^(n|o)$"}}, "n o"),
        ({"value_pattern": {"equals": "text"}}, "s"),
        ({"value_pattern": {"equals": 42}}, "n"),
        ({"value_pattern": {"equals": {"x": 1}}}, "o"),
        ({"value_pattern": {"equals": True}}, "t"),
        ({"value_pattern": {"equals": 1}}, ""),
        ({"value_pattern": {"contains": "ex"}}, "s"),
        ({"value_pattern": {"regex": "x.$"}}, "s"),
        ({"value_pattern": {"less_than": 2}}, "f"),
        ({"value_pattern": {"between": [1.5, 42]}}, "n f"),
        ({"value_pattern": "is_null"}, "nul"),
        ({"value_pattern": "is_not_null"}, "n f s t o a"),
        ({"value_pattern": "is_boolean"}, "t"),
        ({"value_pattern": "is_object"}, "o"),
        ({"value_pattern": "is_array"}, "a"),
        ({}, "n f s t o a nul"),
    ],
)
def test_filter_fields_finds_fields_by_every_pattern(pattern: dict[str, Any], names: str) -> None:
    value = {"n": 42, "f": 1.5, "s": "text", "t": True, "o": {"x": 1}, "a": [1], "nul": None}
    assert " ".join(filtered(value, patterns=[pattern])) == names


@pytest.mark.parametrize("number", [42, 42.0, 10**30])
def test_i23_integers_are_compared_as_numbers(number: Any) -> None:
    assert filtered({"n": number}, patterns=[{"value_pattern": {"greater_than": 10}}]) == {"n": number}
    assert filtered({"n": number}, patterns=[{"value_pattern": {"less_than": 10}}]) == {}


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("key_exists", {"status": "new", "null": "new"}),
        ("key_not_exists", {"status": "old", "null": None, "other": "new"}),
        ("always", {"status": "new", "null": "new", "other": "new"}),
        (None, {"status": "new", "null": "new", "other": "new"}),
    ],
)
def test_update_fields_sets_a_field_if_the_condition_holds_i11_to_i13(condition: str | None, expected: Any) -> None:
    keys = ("status", "null", "other")
    fields = [{"key": key, "value": {"static": "new"}, "condition": condition} for key in keys]
    assert updated({"status": "old", "null": None}, *fields) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"data": {"id": 1}, "meta": 2}, b'{"id":1}'),
        ({"data": 42}, b"42"),
        ({"data": [1, 2]}, b"[1,2]"),
        ({"data": None}, b"null"),
        ({"other": 1}, b'{"other":1}'),
        ([1], b"[1]"),
    ],
)
def test_unwrap_envelope_leaves_the_field_as_the_value_i14(value: Any, expected: bytes) -> None:
    done = run(chain(smt("iggy.unwrap_envelope", {"field": "data"})), Message(value))
    assert done.batch.column("value").to_pylist() == [expected]


def computed(*kinds: str, clock: int = CLOCK, offset: int = 100, topic: str = "orders") -> dict[str, Any]:
    fields = [{"key": f"{n}", "value": {"computed": kind}} for n, kind in enumerate(kinds)]
    links = chain(smt("iggy.add_fields", {"fields": fields}))
    done = apply_chain(links, batch_of([Message({}, offset=offset)]), topic, clock)
    import json

    return json.loads(done.batch.column("value")[0].as_py())


def test_times_are_the_micro_batchs() -> None:
    kinds = ("timestamp_nanos", "timestamp_micros", "timestamp_millis", "timestamp_seconds", "date_time")
    expected = [CLOCK * 1_000_000, CLOCK * 1000, CLOCK, CLOCK // 1000, "2020-01-05T11:21:04.123+00:00"]
    assert list(computed(*kinds).values()) == expected


def test_uuids_differ_by_field_offset_topic_and_place_in_the_chain() -> None:
    seen = [*computed("uuid_v4", "uuid_v4").values(), *computed("uuid_v4", offset=101).values()]
    seen += computed("uuid_v4", topic="clicks").values()
    add = smt("iggy.add_fields", {"fields": [{"key": "id", "value": {"computed": "uuid_v4"}}]})
    seen.append(value_after({}, smt("iggy.delete_fields", {"fields": ["x"]}), add)["id"])
    assert len(set(seen)) == 5


def test_a_uuid_v4_does_not_depend_on_the_clock_and_a_uuid_v7_begins_with_it() -> None:
    assert computed("uuid_v4", clock=0) == computed("uuid_v4", clock=CLOCK)
    four, seven = computed("uuid_v4")["0"], computed("uuid_v7")["0"]
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", four)
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", seven)
    assert int(seven.replace("-", "")[:12], 16) == CLOCK


def test_a_transform_that_is_switched_off_does_nothing() -> None:
    off = {"fields": static(a=1), "enabled": False}
    assert value_after({}, smt("iggy.add_fields", off)) == {}
