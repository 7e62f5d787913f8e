"""Elements of a record: how values are written in keys, and which cannot be."""

import json
from datetime import datetime, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3lake.records.layout.elements import (
    Reading,
    RecordColumns,
    decode_json,
    element_texts,
    format_primitive,
    read_field,
    read_time,
)
from s3lake.records.layout.pieces import FieldElement, KeyElement, NoObjectKeyError, SchemaNameElement
from s3lake.text.dates.zones import parse_zone


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
        decode_json(data, "the key")


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
        "the record has no key",
        "the key is null, not a primitive",
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
            return read_field(decode_json(json.dumps(value).encode(), "the value"), path, "a field", "null")
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


# Times

NEW_YORK = parse_zone("America/New_York")


def utc(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=timezone.utc).timestamp() * 1000)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-01-15T10:30:00Z", "2024-01-15T10:30:00"),
        ("2024-01-15T10:30:00", "2024-01-15T15:30:00"),
        ("2024-01-15", "2024-01-15T05:00:00"),
        ("2024-01", "2024-01-01T05:00:00"),
        ("2024-01-15T10", "2024-01-15T15:00:00"),
        ("2024-01-15T10:30", "2024-01-15T15:30:00"),
        ("2024-01-15T10:30:00.123456Z", "2024-01-15T10:30:00.123000"),
        ("2024-01-15T10:30:00,5Z", "2024-01-15T10:30:00.500000"),
        ("2024-01-15T10:30:00.123456789+02:00", "2024-01-15T08:30:00.123000"),
        ("2024-01-15T10:30:00+0530", "2024-01-15T05:00:00"),
        ("2024-01-15T10:30:00-08", "2024-01-15T18:30:00"),
        ("2024-W03-1", "2024-01-15T05:00:00"),
        ("2024-W03", "2024-01-15T05:00:00"),
        ("2024-015", "2024-01-15T05:00:00"),
        ("T10:30", "1970-01-01T15:30:00"),
        ("2024-01-15t10:30:00z", "2024-01-15T10:30:00"),
        ("2015-04-02T01:00:00-07:00", "2015-04-02T08:00:00"),
        ("2015-04-02T01:00:00.000-07:00", "2015-04-02T08:00:00"),
    ],
)
def test_iso_text(text: str, expected: str) -> None:
    assert read_time(text, NEW_YORK, "field ts") == utc(expected)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1_705_314_600_000, 1_705_314_600_000),
        (0, 0),
        (-1, -1),
        ("20240115", 20_240_115),
        (1705314600000.0, 1_705_314_600_000),
        (1705314600000.9, 1_705_314_600_000),  # Connect takes any Number, as its long value
        ("2024", 2024),
        ("-1", -1),  # C38
        ("0", 0),
        ("-9223372036854775808", -(2**63)),
        ("9223372036854775807", 2**63 - 1),
    ],
)
def test_numbers_and_digits_are_epoch_read_time(value: Any, expected: int) -> None:
    assert read_time(value, NEW_YORK, "field ts") == expected


NOT_TIMES = ["20240115T103000Z", "2024-13-01", "2024-02-30", "2023-366", "2024-W54-1", "2024-01-15T24:00", "", "T"]
NOT_TIMES += ["2024-01-15T10:60", "2024-01-15T10:30+24:00", "2024-01-15T10:30 Z", "Mon Jan 15", "٢٠٢٤-01-15"]
NOT_TIMES += ["12345678901234567890"]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("2024-01-15 10:30:00", "not a time: write epoch milliseconds or ISO 8601"),
        *((text, "not a time") for text in NOT_TIMES),
        ("2024-03-10T02:30:00", "which the clock of America/New_York skips"),
        (None, "is null or missing"),
        (float("inf"), "is inf, not a time"),
        (True, "is a boolean, not a time"),
        ([], "is a list, not a time"),
        ({}, "is an object, not a time"),
    ],
)
def test_any_other_value_of_a_time_is_refused(value: Any, why: str) -> None:
    with pytest.raises(NoObjectKeyError, match=why):
        read_time(value, NEW_YORK, "field ts")


@pytest.mark.parametrize(
    ("type", "number", "epoch_ms"),
    [
        ("date", 19_737, 1_705_276_800_000 + 5 * 3_600_000),  # midnight in New York
        ("date", -1, -86_400_000 + 5 * 3_600_000),
        ("timestamp", 1_705_314_600_123, 1_705_314_600_123),
        ("timestamp_us", 1_705_314_600_123_999, 1_705_314_600_123),
        ("timestamp_us", -1, -1),
        ("timestamp_ns", 1_705_314_600_123_999_999, 1_705_314_600_123),
        (None, 1_705_314_600_123, 1_705_314_600_123),
    ],
)
def test_a_number_is_in_the_unit_of_its_type(type: str | None, number: int, epoch_ms: int) -> None:
    assert read_time(number, NEW_YORK, "field ts", type) == epoch_ms


@pytest.mark.parametrize("days", [-719_163, 2_932_897, 2**62])
def test_a_date_of_no_year_is_refused(days: int) -> None:
    with pytest.raises(NoObjectKeyError, match="days since 1970, which is not of the years 1 to 9999"):
        read_time(days, NEW_YORK, "field ts", "date")


@pytest.mark.parametrize("type", ["time", "time_us"])
def test_a_time_of_day_is_refused_with_the_reason(type: str) -> None:
    with pytest.raises(NoObjectKeyError, match="field ts is a time of day by its schema, and has no date"):
        read_time(37_800_000, NEW_YORK, "field ts", type)
