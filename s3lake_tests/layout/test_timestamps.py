"""Times in fields: the table of the reference (1.5), but text without an offset is read in the configured zone."""

from datetime import datetime, timezone
from typing import Any

import pytest

from s3lake.layout.pieces import Unplaceable
from s3lake.layout.timestamps import milliseconds
from s3lake.text.dates.zones import zone

NEW_YORK = zone("America/New_York")


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
    assert milliseconds(text, NEW_YORK, "field ts") == utc(expected)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1_705_314_600_000, 1_705_314_600_000),
        (0, 0),
        (-1, -1),
        ("20240115", 20_240_115),
        ("2024", 2024),
        ("-1", -1),  # C38
        ("0", 0),
        ("-9223372036854775808", -(2**63)),
        ("9223372036854775807", 2**63 - 1),
    ],
)
def test_numbers_and_digits_are_epoch_milliseconds(value: Any, expected: int) -> None:
    assert milliseconds(value, NEW_YORK, "field ts") == expected


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("2024-01-15 10:30:00", "no time: write epoch milliseconds or ISO 8601"),
        ("20240115T103000Z", "no time"),
        ("2024-13-01", "no time"),
        ("2024-02-30", "no time"),
        ("2023-366", "no time"),
        ("2024-W54-1", "no time"),
        ("2024-01-15T24:00", "no time"),
        ("2024-01-15T10:60", "no time"),
        ("2024-01-15T10:30+24:00", "no time"),
        ("2024-01-15T10:30 Z", "no time"),
        ("Mon Jan 15", "no time"),
        ("", "no time"),
        ("T", "no time"),
        ("٢٠٢٤-01-15", "no time"),
        ("12345678901234567890", "no time"),
        ("2024-03-10T02:30:00", "which the clock of America/New_York jumps over"),
        (None, "is null or missing"),
        (1.5, "is a fraction, not a time"),
        (True, "is a boolean, not a time"),
        ([], "is a list, not a time"),
        ({}, "is an object, not a time"),
    ],
)
def test_anything_else_has_no_place(value: Any, why: str) -> None:
    with pytest.raises(Unplaceable, match=why):
        milliseconds(value, NEW_YORK, "field ts")
