"""Elements of a record: how values are written in keys, and which cannot be."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3lake.records.layout.elements import (
    Reading,
    RecordColumns,
    decode_json_for_key,
    element_texts,
    format_primitive,
    read_field,
)
from s3lake.records.layout.pieces import FieldElement, KeyElement, NoObjectKeyError, SchemaNameElement


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
def test_primitives_are_written_as_java_writes_them(value: Any, text: str) -> None:
    assert format_primitive(value, "field a") == text


@pytest.mark.parametrize(
    ("value", "path", "text"),
    [
        ({"a": "x"}, ("a",), "x"),
        ({"a": {"b": {"c": 1}}}, ("a", "b", "c"), "1"),
        ({"a": [{"b": 1}, {"b": 2}]}, ("a", "1", "b"), "2"),
        *((value, ("a",), "[missing]") for value in ({"a": None}, {}, None, "text")),
        *(({"a": [1]}, ("a", step), "[missing]") for step in ("1", "x", "²")),
        ({"a": 1}, ("a", "b"), "[missing]"),
        ([], ("0",), "[missing]"),
    ],
)
def test_a_field_that_is_null_or_missing_is_missing(value: Any, path: tuple[str, ...], text: str) -> None:
    assert read_field(value, path, "field a", "[missing]") == text


@pytest.mark.parametrize("data", [b"{", b"", b"\xff", b"1 2", b"1e999", b"9" * 5000, b"[" * 100_000])
def test_a_key_that_is_not_json_is_refused(data: bytes) -> None:
    with pytest.raises(NoObjectKeyError, match="the key is not JSON"):
        decode_json_for_key(data, "the key")


READING = Reading("json", "null")


def texts(element: Any, **fields: Any) -> list[Any]:
    (column,) = element_texts([element], RecordColumns(**fields), READING)
    return [str(one) if isinstance(one, NoObjectKeyError) else one for one in column]


def test_values_are_read_once_for_all_their_fields() -> None:
    values = [b'{"a":1,"b":{"c":"x"},"rest":[1,2]}', None, b"[5]", b'{"a":"s","a":"t"}', b"{"]
    elements = [FieldElement(("a",)), FieldElement(("b", "c")), FieldElement(("0",))]
    found = element_texts(elements, RecordColumns(values=values), READING)
    assert [column[:4] for column in found] == [
        ["1", "null", "null", "t"],
        ["x", "null", "null", "null"],
        ["null", "null", "5", "null"],
    ]
    assert all("the value is not JSON" in str(column[4]) for column in found)


@pytest.mark.parametrize("name", ["a b", "f0", "slots", "é", 'quo"te', "back\\slash", "__init__", ""])
def test_a_field_may_have_any_name(name: str) -> None:
    value = json.dumps({"other": 0, name: "x"}).encode()
    assert texts(FieldElement((name,)), values=[value]) == ["x"]


def test_a_null_key_is_missing_unless_it_is_required() -> None:
    assert texts(KeyElement(), keys=[None, b"null", b'"a"']) == ["null", "null", "a"]
    assert texts(KeyElement(("a",)), keys=[None, b"null", b'{"a":null}', b"{}", b'{"a":2}']) == ["null"] * 4 + ["2"]
    assert texts(KeyElement(required=True), keys=[None, b"null"]) == [
        "the record has no key: have the producer write it, or lay out by another element",
        "the key is null, not a primitive: lay out by one of its fields, or by another element",
    ]


def test_a_connect_key_is_its_payload() -> None:
    reading = Reading("connect_json", "null")
    keys = [
        b'{"schema":{"type":"string"},"payload":"eu"}',
        b'"us"',
        b'{"schema":null,"payload":null}',
        b'{"payload":1}',
    ]
    (column,) = element_texts([KeyElement()], RecordColumns(keys=keys), reading)
    assert column[:3] == ["eu", "us", "null"]
    assert "is an object" in str(column[3])


def test_a_value_without_a_schema_has_the_schema_null() -> None:
    assert texts(SchemaNameElement(), schemas=["com.acme.Order", None]) == ["com.acme.Order", "null"]


LEAVES = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    LEAVES | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(JSON, max_size=5), st.sampled_from([("a",), ("b",), ("a", "b"), ("0",), ("a", "0", "c")]))
def test_reading_a_few_fields_finds_what_reading_all_finds(values: list[Any], path: tuple[str, ...]) -> None:
    def whole(value: Any) -> str | None:
        try:
            return read_field(decode_json_for_key(json.dumps(value).encode(), "the value"), path, "a field", "null")
        except NoObjectKeyError:
            return None

    found, _ = element_texts(
        [FieldElement(path), FieldElement(("c",))],
        RecordColumns(values=[json.dumps(one).encode() for one in values]),
        READING,
    )
    texts = [one if isinstance(one, str) else None for one in found]
    expected = [whole(value) for value in values]
    assert [a for a, b in zip(texts, expected, strict=True) if a is not None] == [
        b for a, b in zip(texts, expected, strict=True) if a is not None
    ]
