"""The time in a field of a value: numbers, digits and texts."""

from datetime import datetime, timezone
from typing import Any

import pytest

from s3lake.records.layout.field_times import explain_no_date, read_time
from s3lake.records.layout.pieces import NoObjectKeyError
from s3lake.text.dates.zones import parse_zone

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
def test_a_text_of_iso_8601_is_a_time(text: str, expected: str) -> None:
    assert read_time(text, NEW_YORK, "field ts") == utc(expected)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1_705_314_600_000, 1_705_314_600_000),
        (0, 0),
        (-1, -1),
        (1705314600000.0, 1_705_314_600_000),
        (1705314600000.9, 1_705_314_600_000),  # Connect takes any Number, as its long value
        ("2024", 2024),
        ("-1", -1),  # C38
        ("0", 0),
        ("-9223372036854775808", -(2**63)),
        ("9223372036854775807", 2**63 - 1),
    ],
)
def test_numbers_and_digits_are_epoch_milliseconds(value: Any, expected: int) -> None:
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


@pytest.mark.parametrize("number", [1_705_314_600, "1705314600", 1705314600.0, -1_705_314_600, 20_240_115, "20240115"])
def test_a_number_that_would_be_in_1970_as_milliseconds_is_refused(number: Any) -> None:
    with pytest.raises(NoObjectKeyError, match=r"Set layout\.time\.unit to seconds or to milliseconds"):
        read_time(number, NEW_YORK, "field ts")


@pytest.mark.parametrize("number", [9_999_999, 31_536_000_000, -31_536_000_000])
def test_a_number_of_another_size_is_milliseconds(number: int) -> None:
    assert read_time(number, NEW_YORK, "field ts") == number


@pytest.mark.parametrize(
    ("unit", "number", "epoch_ms"),
    [
        ("seconds", 1_705_314_600, 1_705_314_600_000),
        ("seconds", "1705314600", 1_705_314_600_000),
        ("seconds", 1705314600.123, 1_705_314_600_123),
        ("seconds", -0.5, -500),
        ("milliseconds", 1_705_314_600, 1_705_314_600),
        ("microseconds", 1_705_314_600_123_999, 1_705_314_600_123),
        ("nanoseconds", "1705314600123999999", 1_705_314_600_123),
        ("nanoseconds", -1, -1),
    ],
)
def test_a_number_without_a_type_is_in_the_unit_of_the_layout(unit: str, number: Any, epoch_ms: int) -> None:
    assert read_time(number, NEW_YORK, "field ts", unit=unit) == epoch_ms


def test_the_type_of_a_field_is_stronger_than_the_unit_of_the_layout() -> None:
    assert read_time(1_705_314_600_123, NEW_YORK, "field ts", "timestamp", "seconds") == 1_705_314_600_123


@pytest.mark.parametrize(
    ("epoch_ms", "unit", "proposed"),
    [
        (1_705_314_600_123_456, None, "microseconds"),
        (-1_705_314_600_123_456, "milliseconds", "microseconds"),
        (253_402_300_800_000, None, "microseconds"),
        (1_705_314_600_123_456_789, None, "nanoseconds"),
        (2**63 - 1, None, "nanoseconds"),
        (1_705_314_600_123_456, "microseconds", "nanoseconds"),
        (1_705_314_600_123_000, "seconds", "milliseconds"),
        (1_705_314_600_123_456_000, "seconds", "microseconds"),
    ],
)
def test_a_number_without_a_date_names_the_setting_and_the_unit_that_fits(
    epoch_ms: int, unit: str | None, proposed: str
) -> None:
    assert explain_no_date(epoch_ms, "field ts", None, unit) == (
        f"field ts has no date: {epoch_ms} milliseconds since 1970 is outside of the years 1 to 9999. "
        f"If the number is in {proposed}, set layout.time.unit to {proposed}"
    )


@pytest.mark.parametrize(
    ("epoch_ms", "type", "unit"),
    [
        (1_705_314_600_123_456, "timestamp", None),
        (10**30, None, None),
        (10**18, None, "nanoseconds"),
    ],
    ids=["the schema has the unit", "no unit fits", "the finest unit"],
)
def test_a_number_without_a_date_names_no_unit_that_changes_nothing(
    epoch_ms: int, type: str | None, unit: str | None
) -> None:
    assert explain_no_date(epoch_ms, "field ts", type, unit).endswith(" is outside of the years 1 to 9999")
