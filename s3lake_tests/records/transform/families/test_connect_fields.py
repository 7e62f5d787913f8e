"""Kafka Connect's transforms of fields, in the words of its documentation."""

from __future__ import annotations

from typing import Any

import pytest

from s3lake.records.transform.step.record import parse_path
from s3lake_tests.records.transform.kit import (
    CLOCK,
    Message,
    after,
    chain,
    headers_after,
    refusal,
    run,
    smt,
    value_after,
)

# Every transform of a side, with options that work on {"a": …}.
SIDED: list[tuple[str, dict[str, Any]]] = [
    ("Cast", {"spec": "a:string"}),
    ("ExtractField", {"field": "a"}),
    ("Flatten", {}),
    ("HeaderFrom", {"fields": "a", "headers": "h", "operation": "copy"}),
    ("InsertField", {"static.field": "s", "static.value": "x"}),
    ("MaskField", {"fields": "a"}),
    ("ReplaceField", {"exclude": "a"}),
    ("TimestampConverter", {"field": "a", "target.type": "unix"}),
]
TOMBSTONES_PASS = {"Cast", "ExtractField", "Flatten", "InsertField", "ReplaceField", "TimestampConverter"}


@pytest.mark.parametrize(("name", "options"), [one for one in SIDED if one[0] in TOMBSTONES_PASS])
def test_tombstones_pass_unchanged(name: str, options: dict[str, Any]) -> None:
    assert after(Message(None), smt(f"{name}$Value", options)).value is None


@pytest.mark.parametrize(("name", "options"), [one for one in SIDED if one[0] not in TOMBSTONES_PASS])
def test_transforms_that_need_an_object_refuse_tombstones(name: str, options: dict[str, Any]) -> None:
    reason = refusal(Message(None), smt(f"{name}$Value", options))
    assert reason == f"transform {name}$Value: the value is null, a JSON object is needed"


@pytest.mark.parametrize(("name", "options"), SIDED)
def test_a_list_is_refused(name: str, options: dict[str, Any]) -> None:
    for side, message in (("Value", Message([1])), ("Key", Message({"v": 1}, key=[1]))):
        reason = refusal(message, smt(f"{name}${side}", options), key="json")
        assert reason == f"transform {name}${side}: the {side.lower()} is a list, a JSON object is needed"


@pytest.mark.parametrize(("name", "options"), SIDED)
def test_the_other_side_is_left_alone(name: str, options: dict[str, Any]) -> None:
    message = Message({"a": 1, "b": 2}, key={"a": 1, "b": 2})
    done = after(message, smt(f"{name}$Key", options), key="json")
    assert done.value == {"a": 1, "b": 2}
    done = after(message, smt(f"{name}$Value", options), key="json")
    assert done.key == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    ("options", "inserted"),
    [
        (
            {"topic.field": "t!", "partition.field": "p?", "offset.field": "o", "timestamp.field": "ts"},
            {"t": "orders", "p": 3, "o": 100, "ts": CLOCK},
        ),
        ({"static.field": "MessageSource", "static.value": "MyFileSource"}, {"MessageSource": "MyFileSource"}),
    ],
)
def test_insert_field_puts_parts_of_the_record_or_a_constant(options: dict[str, str], inserted: dict[str, Any]) -> None:
    assert value_after({"a": 1}, smt("InsertField$Value", options)) == {"a": 1, **inserted}
    without_time = {name: one for name, one in inserted.items() if name != "ts"}
    done = after(Message({"a": 1}, timestamp=-1), smt("InsertField$Value", options))
    assert done.value == {"a": 1, **without_time}


def test_insert_field_of_the_key_looks_at_the_key_alone() -> None:
    insert = smt("InsertField$Key", {"offset.field": "o"})
    for value in ({"v": 1}, None):
        assert after(Message(value, key={"id": 7}), insert, key="json").key == {"id": 7, "o": 100}
    assert after(Message({"v": 1}, key=None), insert, key="json").key is None


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"exclude": "dont"}, {"abc": 42, "foo": True, "etc": "etc"}),
        ({"include": "abc,foo"}, {"abc": 42, "foo": True}),
        ({"exclude": "foo", "include": "abc,foo"}, {"abc": 42}),
        ({"exclude": "dont", "renames": "abc:xyz,foo:bar"}, {"xyz": 42, "bar": True, "etc": "etc"}),
        ({"blacklist": "dont, etc"}, {"abc": 42, "foo": True}),
        ({"whitelist": ["etc"]}, {"etc": "etc"}),
    ],
)
def test_replace_field_excludes_includes_and_renames(options: dict[str, Any], expected: dict[str, Any]) -> None:
    value = {"dont": "whatever", "abc": 42, "foo": True, "etc": "etc"}
    assert value_after(value, smt("ReplaceField$Value", options)) == expected


@pytest.mark.parametrize(
    ("options", "value", "masked"),
    [
        (
            {"fields": "i,f,s,b,l,o,n"},
            {"i": 7, "f": 1.5, "s": "x", "b": True, "l": [1], "o": {"x": 1}, "n": None, "kept": 1},
            {"i": 0, "f": 0.0, "s": "", "b": False, "l": [], "o": {}, "n": None, "kept": 1},
        ),
        ({"fields": "b"}, {"a": 1}, {"a": 1, "b": None}),
        ({"fields": "i,f,s", "replacement": "123"}, {"i": 7, "f": 1.5, "s": "x"}, {"i": 123, "f": 123, "s": "123"}),
        ({"fields": "a", "replacement": "-1.5"}, {"a": 7}, {"a": -1}),
    ],
)
def test_mask_field_empties_or_replaces_by_type(options: dict[str, Any], value: Any, masked: Any) -> None:
    assert value_after(value, smt("MaskField$Value", options)) == masked


def test_value_to_key_makes_the_key_of_fields() -> None:
    done = after(Message({"a": 1, "b": 2, "c": 3}, key=b"\xff"), smt("ValueToKey", {"fields": "a,b,missing"}))
    assert (done.key, done.value) == ({"a": 1, "b": 2, "missing": None}, {"a": 1, "b": 2, "c": 3})


def test_value_to_key_and_extract_field_make_a_plain_key() -> None:
    done = after(Message({"id": 42}), smt("ValueToKey", {"fields": "id"}), smt("ExtractField$Key", {"field": "id"}))
    assert done.key == 42


@pytest.mark.parametrize(
    ("field", "version", "expected"),
    [
        ("magic", "V1", 42),
        ("missing", "V1", None),
        ("before.id", "V2", 7),
        ("before.id", "V1", None),
        ("before.missing.deeper", "V2", None),
        ("`a.b`.c", "V2", 1),
        ("n.x", "V2", None),
    ],
)
def test_extract_field_leaves_the_field_in_place_of_the_value(field: str, version: str, expected: Any) -> None:
    value = {"magic": 42, "before": {"id": 7}, "a.b": {"c": 1}, "n": None}
    options = {"field": field, "field.syntax.version": version}
    assert value_after(value, smt("ExtractField$Value", options)) == expected


# Paths to fields (KIP-821)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", ("a",)),
        ("a.b.c", ("a", "b", "c")),
        ("`a.b`.c", ("a.b", "c")),
        ("a.`b.c`", ("a", "b.c")),
        ("`a`b`.c", ("a`b", "c")),
        (r"`a\`.b`", ("a`.b",)),
        ("a.", ("a", "")),
        ("a`b.c", ("a`b", "c")),
    ],
)
def test_a_path_is_split_at_its_dots_in_nested_syntax_alone(text: str, expected: tuple[str, ...]) -> None:
    assert parse_path(text, nested=True) == expected
    assert parse_path(text, nested=False) == (text,)


@pytest.mark.parametrize(
    ("value", "converter", "hoisted"),
    [
        *((value, "json", value) for value in ({"a": 1}, [1], 42, "text", None)),
        (b"plain", "string", "plain"),
        (b"\xff\x00", "bytes", "/wA="),
    ],
)
def test_hoist_field_takes_anything(value: Any, converter: str, hoisted: Any) -> None:
    hoist = smt("HoistField$Value", {"field": "magic"})
    assert after(Message(value), hoist, value=converter).value == {"magic": hoisted}


def test_flatten_joins_the_names_of_inner_fields() -> None:
    value = {"content": {"id": 42, "name": {"first": "David", "middle": None, "last": "Wong"}}, "tags": [{"x": 1}]}
    expected = {
        "content.id": 42,
        "content.name.first": "David",
        "content.name.middle": None,
        "content.name.last": "Wong",
        "tags": [{"x": 1}],
    }
    assert value_after(value, smt("Flatten$Value")) == expected
    by_lines = {name.replace(".", "_"): one for name, one in expected.items()}
    assert value_after(value, smt("Flatten$Value", {"delimiter": "_"})) == by_lines


def test_header_from_moves_fields() -> None:
    move = smt("HeaderFrom$Value", {"fields": "id,ok", "headers": "record_id,is_ok", "operation": "move"})
    done = after(Message({"id": 11, "name": "Harry", "ok": True}, headers=(("first", b"1"),)), move)
    assert done.value == {"name": "Harry"}
    assert done.headers == [("first", b"1"), ("record_id", b"11"), ("is_ok", b"true")]


@pytest.mark.parametrize(
    ("value", "header"),
    [
        ({"a": "text"}, b"text"),
        ({"a": 7}, b"7"),
        ({"a": 1.5}, b"1.5"),
        ({"a": True}, b"true"),
        ({"a": None}, None),
        ({}, None),
        ({"a": {"a": [1]}}, b'{"a":[1]}'),
    ],
)
def test_header_values_are_texts(value: Any, header: bytes | None) -> None:
    options = {"fields": "a", "headers": "h", "operation": "copy"}
    assert headers_after(Message(value), smt("HeaderFrom$Value", options)) == [("h", header)]
    assert headers_after(Message({}, key=value), smt("HeaderFrom$Key", options), key="json") == [("h", header)]


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (42, "int8", 42),
        (-128, "int8", -128),
        (1.9, "int32", 1),
        (True, "int64", 1),
        ("17", "int16", 17),
        (1, "float64", 1.0),
        ("1.5", "float64", 1.5),
        (0.1, "float32", 0.1),
        (False, "float32", 0.0),
        (2, "boolean", True),
        (0.5, "boolean", False),
        ("TRUE", "boolean", True),
        ("yes", "boolean", False),
        (42, "string", "42"),
        (1.0, "string", "1.0"),
        (12345678.5, "string", "1.23456785E7"),
        (True, "string", "true"),
        (None, "int8", None),
    ],
)
def test_cast_changes_the_type_of_a_field_or_of_the_value(value: Any, kind: str, expected: Any) -> None:
    done = value_after({"a": value, "b": "kept"}, smt("Cast$Value", {"spec": f"a:{kind}"}))
    assert done == {"a": expected, "b": "kept"}
    assert type(done["a"]) is type(expected)
    assert value_after(value, smt("Cast$Value", {"spec": kind})) == expected
    assert after(Message(b"\xff"), smt("Cast$Value", {"spec": "string"}), value="bytes").value == "/w=="


# What refuses its record


@pytest.mark.parametrize(
    ("value", "name", "options", "why"),
    [
        (
            {"a": 1, "b": 2},
            "ReplaceField",
            {"renames": "a:b"},
            "two fields would be called 'b': rename or leave out one of them before",
        ),
        (
            {"a": {"b": 1}, "a.b": 2},
            "Flatten",
            {},
            "two fields would be called 'a.b': rename or leave out one of them before",
        ),
        (
            {"a": {"b": 1}},
            "ExtractField",
            {"field": "a.b.c", "field.syntax.version": "V2"},
            "field 'a.b' is 1 (a number), an object is needed for 'a.b.c'",
        ),
        (
            {"a": True},
            "MaskField",
            {"fields": "a", "replacement": "xxx"},
            "field 'a' is ******** (a boolean), which takes no replacement: only numbers and texts do",
        ),
        (
            {"a": [1]},
            "MaskField",
            {"fields": "a", "replacement": "xxx"},
            "field 'a' is a list, which takes no replacement: only numbers and texts do",
        ),
        *(
            (
                {"a": 7},
                "MaskField",
                {"fields": "a", "replacement": replacement},
                f"field 'a' is ******** (a number), but replacement '{replacement}' is not",
            )
            for replacement in ("xxx", "1e19")
        ),
        ({"a": {}}, "Cast", {"spec": "a:string"}, "field 'a' is an object, which cannot be cast to string"),
        *(
            ({"a": value}, "Cast", {"spec": f"a:{kind}"}, f"field 'a' is {shown}, which {kind} cannot hold")
            for value, kind, shown in (
                (128, "int8", "128 (a number)"),
                (1e300, "int64", "1E+300 (a number)"),
                ("x", "int32", "'x' (a text)"),
                ("1.5", "int32", "'1.5' (a text)"),
                ("nan", "float64", "'nan' (a text)"),
                (1e300, "float32", "1E+300 (a number)"),
            )
        ),
    ],
)
def test_a_field_that_cannot_be_changed_refuses_its_record(
    value: Any, name: str, options: dict[str, Any], why: str
) -> None:
    assert refusal(Message(value), smt(f"{name}$Value", options)) == f"transform {name}$Value: {why}"


def test_numbers_that_no_transform_changes_keep_their_digits() -> None:
    done = run(
        chain(smt("ReplaceField$Value", {"exclude": "x"})), Message(b'{"x":1,"p":0.10,"q":12345678901234567890.123}')
    )
    assert done.batch.column("value").to_pylist() == [b'{"p":0.10,"q":12345678901234567890.123}']


@pytest.mark.parametrize(
    ("name", "options", "notice"),
    [
        (
            "SetSchemaMetadata",
            {"schema.name": "com.acme.Order"},
            "it changes schemas only, and this sink's values have none",
        ),
        ("ReplaceField", {"blacklist": "b"}, "blacklist is called exclude today"),
    ],
)
def test_options_without_effect_or_of_old_names_are_accepted_with_a_notice(
    name: str, options: dict[str, str], notice: str
) -> None:
    links = chain(smt(f"{name}$Value", options))
    assert run(links, Message({"a": 1})).batch.column("value").to_pylist() == [b'{"a":1}']
    assert links.notices[0].startswith(f"transform {name}$Value: {notice}")
