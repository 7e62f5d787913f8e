"""Elements of `partition_by`: what is one, and how values are spelled in directories."""

from typing import Any

import pytest

from s3lake.layout.partitioners import Element, Unplaceable, decoded, field, parse, text_of


@pytest.mark.parametrize(
    ("text", "source", "path", "name"),
    [
        ("type", "value", ("type",), "type"),
        ("a.b.c", "value", ("a", "b", "c"), "a.b.c"),
        ("_value.user.name", "value", ("user", "name"), "user.name"),
        ("items.0.id", "value", ("items", "0", "id"), "items.0.id"),
        ("_key", "key", (), "key"),
        ("_key.region", "key", ("region",), "region"),
        ("_header.phonePrefix", "header", ("phonePrefix",), "phonePrefix"),
        ("_headers.h.a", "header", ("h", "a"), "h.a"),
        ("_topic", "topic", (), "topic"),
        ("_partition", "partition", (), "partition"),
        ("_date.yyyy-MM-dd", "date", ("yyyy-MM-dd",), "date"),
        ("_date.yyyy.MM", "date", ("yyyy.MM",), "date"),
        ("_KEY", "value", ("_KEY",), "_KEY"),
        ("_id", "value", ("_id",), "_id"),
    ],
)
def test_what_an_element_is(text: str, source: Any, path: tuple[str, ...], name: str) -> None:
    assert parse(text) == Element(text, source, path, name)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "a field name is empty"),
        ("a..b", "a field name is empty"),
        ("a.", "a field name is empty"),
        (".a", "a field name is empty"),
        ("a/b", "holds a slash"),
        ("a\\b", "holds a slash"),
        ("a\nb", "a control character"),
        ("_value", "name a field, for example _value.type"),
        ("_header", "name the header, for example _header.region"),
        ("_headers", "name the header"),
        ("_topic.a", "_topic takes no path"),
        ("_partition.a", "_partition takes no path"),
        ("_date", "a pattern is needed, for example _date.yyyy-MM-dd"),
        ("_date.", "a pattern is needed"),
        ("_date.YYYY", "is not among"),
        ("_date.yyyy/'..'/MM", "a path step cannot stand in a key"),
        ("_offset", "_offset is no element; use _key, _value"),
        ("_timestamp", "_timestamp is no element"),
    ],
)
def test_what_is_no_element(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse(text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("sam", "sam"),
        ("", ""),
        ("two\nlines", "two\\nlines"),
        (True, "true"),
        (False, "false"),
        (0, "0"),
        (-(2**63), "-9223372036854775808"),
        (100.43, "100.43"),
        (200.0, "200.0"),
        (32.0, "32.0"),
        (0.001, "0.001"),
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (12345678.9, "1.23456789E7"),
        (0.00012, "1.2E-4"),
        (-1.5e300, "-1.5E300"),
    ],
)
def test_primitives_are_spelled_as_java_spells_them(value: Any, text: str) -> None:
    assert text_of(value, "field a") == text


@pytest.mark.parametrize(("value", "kind"), [(None, "null"), ({}, "an object"), ([], "a list")])
def test_what_is_no_primitive_has_no_text(value: Any, kind: str) -> None:
    with pytest.raises(Unplaceable, match=f"field a is {kind}, not a primitive"):
        text_of(value, "field a")


@pytest.mark.parametrize(
    ("value", "path", "text"),
    [
        ({"a": "x"}, ("a",), "x"),
        ({"a": {"b": {"c": 1}}}, ("a", "b", "c"), "1"),
        ({"a": [{"b": 1}, {"b": 2}]}, ("a", "1", "b"), "2"),
        ({"a": None}, ("a",), "[missing]"),
        ({}, ("a",), "[missing]"),
        ({"a": 1}, ("a", "b"), "[missing]"),
        ({"a": [1]}, ("a", "1"), "[missing]"),
        ({"a": [1]}, ("a", "x"), "[missing]"),
        ({"a": [1]}, ("a", "²"), "[missing]"),
        (None, ("a",), "[missing]"),
        ("text", ("a",), "[missing]"),
        ([], ("0",), "[missing]"),
    ],
)
def test_a_field_that_is_null_or_missing_is_missing(value: Any, path: tuple[str, ...], text: str) -> None:
    assert field(value, path, "field a") == text


@pytest.mark.parametrize("data", [b"{", b"", b"\xff", b"1 2", b"1e999", b"9" * 5000, b"[" * 100_000])
def test_what_cannot_be_decoded_has_no_place(data: bytes) -> None:
    with pytest.raises(Unplaceable, match="the key is no JSON"):
        decoded(data, "the key")
