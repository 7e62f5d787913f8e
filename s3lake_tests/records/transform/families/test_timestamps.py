"""Kafka Connect's TimestampConverter."""

from __future__ import annotations

from typing import Any

import pytest

from s3lake_tests.records.transform.kit import CLOCK, Message, after, refusal, smt, value_after

DAY_MS = 86_400_000
# The connector's own vector: the second of January 1970, 1,234 ms after midnight.
MOMENT = 86_401_234
PATTERN = "yyyy MM dd HH mm ss SSS z"
TEXT = "1970 01 02 00 00 01 234 UTC"


@pytest.mark.parametrize(
    ("given", "precision", "target", "expected"),
    [
        (MOMENT, "milliseconds", "unix", MOMENT),
        (MOMENT, "milliseconds", "string", TEXT),
        (MOMENT, "milliseconds", "Date", 1),
        (MOMENT, "milliseconds", "Time", 1234),
        (MOMENT, "milliseconds", "Timestamp", MOMENT),
        (86_401, "seconds", "Timestamp", 86_401_000),
        (86_401_234_123, "microseconds", "Timestamp", MOMENT),
        (86_401_234_123_456, "nanoseconds", "Timestamp", MOMENT),
        (TEXT, "milliseconds", "Timestamp", MOMENT),
        (TEXT, "seconds", "unix", 86_401),
        (TEXT, "microseconds", "unix", 86_401_234_000),
        (TEXT, "nanoseconds", "unix", 86_401_234_000_000),
        (None, "milliseconds", "string", None),
    ],
)
def test_timestamp_converter_converts_a_value_or_a_field_of_it(
    given: Any, precision: str, target: str, expected: Any
) -> None:
    options = {"target.type": target, "format": PATTERN, "unix.precision": precision}
    assert value_after(given, smt("TimestampConverter$Value", options)) == expected
    of_field = smt("TimestampConverter$Value", {**options, "field": "ts"})
    assert value_after({"ts": given, "other": "test"}, of_field) == {"ts": expected, "other": "test"}


def test_timestamp_converter_converts_a_field_of_the_key() -> None:
    convert = smt("TimestampConverter$Key", {"field": "ts", "target.type": "string", "format": "yyyy-MM-dd"})
    assert after(Message({"v": 1}, key={"ts": CLOCK}), convert, key="json").key == {"ts": "2020-01-05"}


def test_text_after_a_date_is_not_read() -> None:
    convert = smt("TimestampConverter$Value", {"field": "ts", "target.type": "unix", "format": "yyyy-MM-dd"})
    assert value_after({"ts": "2020-01-05T11:21:04Z"}, convert) == {"ts": 1_578_182_400_000}
    assert "does not match" in refusal(Message({"ts": "2020-01-051"}), convert)


@pytest.mark.parametrize(("precision", "number"), [("microseconds", -999), ("nanoseconds", -999_999)])
def test_less_than_a_millisecond_before_1970_is_1970(precision: str, number: int) -> None:
    convert = smt("TimestampConverter$Value", {"target.type": "string", "format": "yyyy", "unix.precision": precision})
    assert value_after(number, convert) == "1970"


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("yesterday", "field 'ts': 'yesterday' does not match the pattern yyyy-MM-dd"),
        ("2020-02-30", "field 'ts': '2020-02-30' is not a date of the pattern yyyy-MM-dd"),
        (1.5, "field 'ts' is 1.5 (a number); a timestamp is a whole number or, with the option format, a text"),
        (True, "field 'ts' is true (a boolean); a timestamp is a whole number or, with the option format, a text"),
    ],
)
def test_a_bad_timestamp_refuses_its_record(given: Any, why: str) -> None:
    convert = smt("TimestampConverter$Value", {"field": "ts", "target.type": "unix", "format": "yyyy-MM-dd"})
    assert refusal(Message({"ts": given}), convert) == f"transform TimestampConverter$Value: {why}"


def test_texts_need_a_format() -> None:
    reason = refusal(Message({"ts": TEXT}), smt("TimestampConverter$Value", {"field": "ts", "target.type": "unix"}))
    assert "with the option format, a text" in reason


def test_a_timestamp_beyond_the_calendar_refuses_its_record() -> None:
    convert = smt("TimestampConverter$Value", {"field": "ts", "target.type": "string", "format": "yyyy"})
    assert refusal(Message({"ts": 10**18}), convert).endswith("1000000000000000000 ms after 1970 has no date")
